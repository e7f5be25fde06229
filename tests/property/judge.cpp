// SPDX-License-Identifier: Apache-2.0
// The judge of random graphs sees a fault that is planted, and no fault where there is none.
#include <gtest/gtest.h>

#include <ctime>

#include "base/visit.h"
#include "examples.h"
#include "ir/text.h"
#include "meaning.h"
#include "planted.h"
#include "properties.h"

namespace rlx::test {

static Results right_results(const RandomGraph& random) {
  return interpret(random.graph, random.runs[0], random.params, {EvalMode::kTyped, Bounds::kError}).value();
}

// What the judge says of the right results with this number as the first of the first output.
static std::string difference_with_first(const RandomGraph& random, float result) {
  auto meaning = Meaning::of(random);
  EXPECT_TRUE(meaning.ok()) << meaning.status().message();
  Results results = right_results(random);
  *results[0].as<float>() = result;
  return meaning->difference(results);
}

TEST(judge, sees_a_planted_fault) {
  auto graph = parse(R"(
    graph "g" {
      x = input f32[4,16]
      w = input f32[16,8]
      %1 = matmul(x, w)
      %2 = gelu(%1)
      %3 = layer_norm(%2)
      %4 = bitcast(x) to=i32
      output y = %3
      output bits = %4
    })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  for (size_t output = 0; output < 2; output++) {
    auto meaning = Meaning::of(random);
    ASSERT_TRUE(meaning.ok()) << meaning.status().message();
    Results results = right_results(random);
    EXPECT_EQ(meaning->difference(results), "");
    EXPECT_EQ(meaning->difference_in_bits(results), "");
    results[output].data()[3] ^= std::byte{1};  // of a float, its exponent
    EXPECT_NE(meaning->difference(results), "") << output;
    EXPECT_NE(meaning->difference_in_bits(results), "") << output;
  }
}

// Attention whose weights are guarded against NaN, with the sorted sums of its results. The last key is not allowed.
static RandomGraph guarded_attention() {
  auto graph = parse(R"(graph (n) {
    q = input f32[1,2,n,3]
    k = input f32[1,2,3,4]
    v = input f32[1,2,4,2]
    allowed = input bool[1,1,1,4]
    %4 = matmul(q, k)
    %5 = constant f32[] {-inf}
    %6 = constant f32[] {0}
    %7 = where(allowed, %6, %5)
    %8 = add(%4, %7)
    %9 = softmax(%8)
    %10 = is_nan(%9)
    %11 = where(%10, %6, %9)
    %12 = matmul(%11, v)
    %13 = reduce(%12) fn=sum axes=[3] keep_dims=false
    %14 = sort(%13) axis=1
    output y = %14
  })");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  while (random.runs[0][0].count() == 0) random.runs.erase(random.runs.begin());
  for (int i = 0; i < 4; i++) random.runs[0][3].as<bool8>()[i] = i != 3;
  return random;
}

// Attention does without the guard of the weights, and may not read what the mask forbids. Where sums of the results,
// or their order, show that, it is known what they may be.
TEST(judge, knows_the_exceptions_of_attention_and_no_more) {
  RandomGraph random = guarded_attention();
  auto fill = [&](size_t input, std::vector<float> values) {
    Tensor& tensor = random.runs[0][input];
    for (int64_t i = 0; i < tensor.count(); i++) tensor.as<float>()[i] = values[static_cast<size_t>(i) % values.size()];
  };
  fill(0, {0.5f, 1, -1, 0.25f, 2, 1.5f});
  fill(1, {0.5f, 1, 0.25f, NAN, -1, 0.5f, 2, 1, 0, 1, 0.5f, 0.75f});  // a key that is not allowed
  fill(2, {1, 2, 3, 5});
  auto difference = [&](const Results& results) {
    auto meaning = Meaning::of(random);
    EXPECT_TRUE(meaning.ok()) << meaning.status().message();
    return meaning->difference(results);
  };
  Results right = right_results(random), guarded = right;
  EXPECT_EQ(difference(right), "");
  EXPECT_EQ(right[0].as<float>()[0], 0);  // the NaN of one key is that of all weights
  RandomGraph chosen = random;
  chosen.graph = *parse(
      std::string(print(random.graph)).replace(print(random.graph).find("add(%4, %7)"), 11, "where(allowed, %4, %5)"));
  Results unread = right_results(chosen);
  EXPECT_NE(unread[0].as<float>()[0], 0);
  EXPECT_EQ(difference(unread), "");
  for (int64_t i = 0; i < right[0].count(); i++) guarded[0].as<float>()[i] = NAN;
  EXPECT_EQ(difference(guarded), "");
  unread[0].as<float>()[0] += 1;
  EXPECT_NE(difference(unread), "");
  fill(1, {0.5f, 1, 0.25f, 0.75f, -1, 0.5f, 2, 1, 0, 1, 0.5f, 0.75f});  // now nothing is NaN
  EXPECT_EQ(difference(right_results(random)), "");
  EXPECT_NE(difference(guarded), "");
}

// An op that tells finite numbers from others shows whether attention has read the value of a key that is not allowed.
TEST(judge, knows_that_attention_may_not_read_a_value) {
  auto graph = parse(R"(graph {
    q = input f32[1,2,3]
    k = input f32[1,2,3]
    v = input f32[1,2,3]
    %3 = attention(q, k, v) layout=bsx num_heads=1 causal=true
    %4 = is_finite(%3)
    output y = %4
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, std::move(*graph));
  for (Tensor& tensor : random.runs[0])
    for (int64_t i = 0; i < tensor.count(); i++) tensor.as<float>()[i] = 0.5f;
  for (bool is_read : {false, true}) {  // v has an infinite row that both queries use, or one that the first does not
    float* v = random.runs[0][2].as<float>();
    v[2] = is_read ? INFINITY : 0.5f, v[5] = is_read ? 0.5f : INFINITY;
    auto meaning = Meaning::of(random);
    ASSERT_TRUE(meaning.ok()) << meaning.status().message();
    Results results = right_results(random);
    EXPECT_EQ(meaning->difference(results), "");
    results[0].as<bool8>()[2] = results[0].as<bool8>()[2] ? bool8(false) : bool8(true);
    EXPECT_EQ(meaning->difference(results).empty(), !is_read);
  }
}

// Two exceptions at once: a mask that is added forbids even a score that is infinite, and what it forbids is not read.
TEST(judge, knows_that_a_masked_key_is_not_read_either) {
  auto graph = parse(R"(graph {
    q = input f32[2,1]
    k = input f32[1,2]
    v = input f32[2,2]
    %3 = matmul(q, k)
    %4 = constant f32[2,2] {0, -inf, 0, 0}
    %5 = add(%3, %4)
    %6 = softmax(%5)
    %7 = matmul(%6, v)
    %8 = hardmax(%7)
    output y = %8
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, std::move(*graph));
  auto set = [&](size_t input, std::initializer_list<float> numbers) {
    std::copy(numbers.begin(), numbers.end(), random.runs[0][input].as<float>());
  };
  set(0, {1, 1}), set(1, {1, INFINITY}), set(2, {1, 2, INFINITY, 1});
  Results results = right_results(random);
  auto difference = [&](float first, float second) {
    results[0].as<float>()[0] = first, results[0].as<float>()[1] = second;
    auto meaning = Meaning::of(random);
    EXPECT_TRUE(meaning.ok()) << meaning.status().message();
    return meaning->difference(results);
  };
  EXPECT_EQ(difference(1, 0), "") << "of a row that is NaN";
  EXPECT_EQ(difference(0, 1), "") << "the second is the larger one of the first key";
  EXPECT_NE(difference(5, 0), "");
}

// A graph of x: `lines`, which compute %9; then its output.
static RandomGraph graph_of_lines(const char* shape, const char* lines) {
  auto graph = parse(std::string("graph {\n x = input f32") + shape + "\n" + lines + "\n output y = %9\n}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return with_contents(1, std::move(*graph));
}

// The first of two rows or matrices may be anything: the judge must accept a wrong element in it, and refuse one in the
// second.
static void expect_only_first_is_open(RandomGraph random, std::span<const float> x) {
  ASSERT_EQ(random.runs[0][0].count(), static_cast<int64_t>(x.size()));
  std::copy(x.begin(), x.end(), random.runs[0][0].as<float>());
  SCOPED_TRACE(print(random.graph));
  Results right = right_results(random);
  int64_t count = right[0].count();
  auto difference = [&](int64_t at, float value) {
    auto meaning = Meaning::of(random);
    EXPECT_TRUE(meaning.ok()) << meaning.status().message();
    Results wrong = right_results(random);
    wrong[0].as<float>()[at] = value;
    return meaning->difference(wrong);
  };
  for (float value : {NAN, INFINITY, -INFINITY}) EXPECT_EQ(difference(0, value), "") << value;
  for (float value : {NAN, INFINITY, -INFINITY}) EXPECT_NE(difference(count - 1, value), "") << value;
  EXPECT_NE(difference(count - 1, right[0].as<float>()[count - 1] + 1), "");
}

TEST(judge, asks_nothing_of_what_overflows_on_the_way_and_all_of_what_stands_beside_it) {
  constexpr float kLarge = 3e38f;
  static constexpr float kRows[] = {kLarge, kLarge, -kLarge, -kLarge, 1, 2, -3, -4};
  static constexpr const char* kSums[] = {
      " %9 = reduce(x) fn=sum axes=[1]",
      " %8 = cumulative(x) fn=sum axis=1\n %9 = slice(%8) starts=[3] ends=[4] axes=[1]",
      " %7 = constant f32[4,1] {1, 1, 1, 1}\n %9 = matmul(x, %7)",
      " %6 = constant f32[2,1] {0, 0}\n %7 = constant i64[4] {0, 0, 0, 0}\n"
      " %9 = scatter(%6, %7, x) axis=1 reduction=add",
  };
  for (const char* lines : kSums) expect_only_first_is_open(graph_of_lines("[2,4]", lines), kRows);
  static constexpr float kFactors[] = {kLarge, kLarge, 1e-38f, 1e-38f, 1, 2, -3, -4};
  expect_only_first_is_open(graph_of_lines("[2,4]", " %9 = reduce(x) fn=prod axes=[1]"), kFactors);
}

// By semantics R2, the scale of a batch_norm is assumed to be moderate.
TEST(judge, knows_that_the_product_with_the_scale_of_a_batch_norm_may_overflow_and_no_more) {
  RandomGraph random = graph_of_lines("[1,2]",
                                      " %1 = constant f32[2] {-3.4e38, -3.4}\n %2 = constant f32[2] {5, 5}\n"
                                      " %3 = constant f32[2] {-0.9, -0.9}\n %4 = constant f32[2] {1.8, 1.8}\n"
                                      " %9 = batch_norm(x, %1, %2, %3, %4)");
  std::fill_n(random.runs[0][0].as<float>(), 2, -1.8f);
  for (int64_t at : {0, 1})
    for (float value : {NAN, INFINITY, -INFINITY, 0.0f}) {
      Results results = right_results(random);
      results[0].as<float>()[at] = value;
      auto meaning = Meaning::of(random);
      ASSERT_TRUE(meaning.ok());
      bool is_accepted = meaning->difference(results).empty();
      EXPECT_EQ(is_accepted, at == 0 ? !std::isfinite(value) : value == 0) << at << " " << value;
    }
}

TEST(judge, asks_nothing_of_singular_matrices_and_all_of_those_beside_them) {
  static constexpr float kMatrices[] = {1, 2, 3, 2, 4, 6, 1, 1, 7, 2, 0.5f, 0, 0, 1, 0.25f, 0, -0.5f, 3};
  static constexpr float kOneNotFinite[] = {1, 2, 3, 2, NAN, 6, 1, 1, 7, 2, 0.5f, 0, 0, 1, 0.25f, 0, -0.5f, 3};
  for (const char* lines : {" %9 = inverse(x)", " %9, %9.perm, %9.sign = lu(x)", " %8, %9 = qr(x)",
                            " %7, %8, %6 = lu(x)\n %9 = cast(%8) to=f32"})
    for (std::span<const float> matrices : {std::span(kMatrices), std::span(kOneNotFinite)})
      expect_only_first_is_open(graph_of_lines("[2,3,3]", lines), matrices);
  static constexpr float kTriangles[] = {1e-9f, 2, 2, 1, 1, 0, 1, 1};
  expect_only_first_is_open(graph_of_lines("[2,2,2]", " %9 = triangular_solve(x, x) lower=true"), kTriangles);
  static constexpr float kSymmetric[] = {1, 2, 2, 4, 2, 1, 1, 3};
  expect_only_first_is_open(graph_of_lines("[2,2,2]", " %9 = cholesky(x)"), kSymmetric);
}

// A factor of scores may move to the queries, whose numbers may then be less than normal: 0, and NaN times infinity.
TEST(judge, knows_that_a_moved_factor_may_make_a_number_vanish_and_no_more) {
  auto graph = parse(R"(graph {
    q = input f32[1,2,1]
    k = input f32[1,1,2]
    v = input f32[1,2,1]
    %3 = matmul(q, k)
    %4 = constant f32[] {1e-12}
    %5 = mul(%3, %4)
    %6 = softmax(%5)
    %7 = matmul(%6, v)
    output y = %7
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, std::move(*graph));
  float *q = random.runs[0][0].as<float>(), *k = random.runs[0][1].as<float>(), *v = random.runs[0][2].as<float>();
  k[0] = -INFINITY, k[1] = 1, v[0] = 2, v[1] = 3;
  for (bool vanishes : {false, true}) {
    q[0] = q[1] = vanishes ? 0x1p-99f : 1;
    auto difference = [&](float result) { return difference_with_first(random, result); };
    EXPECT_EQ(difference(3), "");
    EXPECT_EQ(difference(NAN).empty(), vanishes);
    EXPECT_NE(difference(2), "");
  }
}

// Or their numbers may be too large for f32, and infinity times another factor is NaN.
TEST(judge, knows_that_a_moved_factor_may_make_a_number_infinite_and_no_more) {
  auto graph = parse(R"(graph {
    q = input f32[1,2,1]
    k = input f32[1,1,2]
    v = input f32[1,2,1]
    t = param f32[1,1,1]
    %3 = matmul(q, k)
    %4 = constant f32[] {0}
    %5 = mul(%3, %4)
    %6 = mul(%5, t)
    %7 = softmax(%6)
    %8 = matmul(%7, v)
    output y = %8
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, std::move(*graph));
  *random.params.at("t").as<float>() = -3e38f;
  float *q = random.runs[0][0].as<float>(), *k = random.runs[0][1].as<float>();
  k[0] = k[1] = 0.25f;
  for (bool overflows : {false, true}) {
    q[0] = q[1] = overflows ? 2 : 0.25f;
    auto difference = [&](float result) { return difference_with_first(random, result); };
    EXPECT_EQ(difference(*right_results(random)[0].as<float>()), "");
    EXPECT_EQ(difference(NAN).empty(), overflows);
  }
}

// What a factor makes infinite another op may make finite: then it may be any number that this op gives.
TEST(judge, knows_that_an_infinite_number_may_become_finite_and_no_more) {
  auto graph = parse(R"(graph {
    q = input f64[1,1,1]
    k = input f64[1,1,1]
    t = param f64[1,1,1]
    %3 = matmul(q, k)
    %4 = mul(%3, t)
    %5 = tanh(%4)
    output y = %5
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, std::move(*graph));
  for (bool overflows : {false, true}) {
    *random.params.at("t").as<double>() = overflows ? 1.7e308 : 3;
    *random.runs[0][0].as<double>() = 2, *random.runs[0][1].as<double>() = 0.5;
    Results results = right_results(random);
    auto meaning = Meaning::of(random);
    ASSERT_TRUE(meaning.ok()) << meaning.status().message();
    *results[0].as<double>() = -1;
    EXPECT_EQ(meaning->difference(results).empty(), overflows);
  }
}

// What a kernel makes of the tail of gelu may be 0, or a number that infinity times it is infinite: in a body too, and
// in one that only the meaning of the layer has.
TEST(judge, knows_that_the_tail_of_an_activation_in_a_layer_may_vanish) {
  auto graph = parse(R"(graph {
    x = input f32[2,1,1]
    w = constant f32[1,1,1] {1}
    r = constant f32[1,1,1] {0}
    y, h = rnn(x, w, r) act=gelu
    %5 = constant f32[] {inf}
    %6 = mul(y, %5)
    output z = %6
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, std::move(*graph));
  float* x = random.runs[0][0].as<float>();
  for (bool vanishes : {false, true}) {
    x[0] = vanishes ? -9 : -1, x[1] = 1;
    auto meaning = Meaning::of(random);
    ASSERT_TRUE(meaning.ok()) << meaning.status().message();
    Results results = right_results(random);
    *results[0].as<float>() = 3;
    EXPECT_EQ(meaning->difference(results).empty(), vanishes);
  }
}

// A device that takes a number below the normal ones as 0 keeps the sign of another 0: an infinity of each sign.
TEST(judge, knows_that_numbers_vanish_beside_a_zero_of_another_sign) {
  RandomGraph random = graph_of_lines("[2,2]", " %7 = rsqrt(x)\n %8 = reduce(%7) fn=sum axes=[1]\n %9 = tanh(%8)");
  std::copy_n(std::array{0x1p-149f, -0.0f, 1.0f, 4.0f}.begin(), 4, random.runs[0][0].as<float>());
  for (int64_t row : {0, 1}) {
    auto meaning = Meaning::of(random);
    ASSERT_TRUE(meaning.ok()) << meaning.status().message();
    Results results = right_results(random);
    results[0].as<float>()[row] = NAN;
    EXPECT_EQ(meaning->difference(results).empty(), row == 0);
  }
}

// A weight near the least number of f16 is 0 if it is rounded once, and not twice: times infinity it is NaN.
TEST(judge, knows_that_one_rounding_to_f16_may_make_a_number_vanish_and_no_more) {
  auto graph = parse(R"(graph {
    x = input f16[1,2]
    v = input f16[2,1]
    %2 = exp(x)
    %3 = reduce(%2) fn=sum axes=[1] keep_dims=true
    %4 = div(%2, %3)
    %5 = matmul(%4, v)
    output y = %5
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, std::move(*graph));
  f16 *x = random.runs[0][0].as<f16>(), *v = random.runs[0][1].as<f16>();
  x[1] = f16(0.25f), v[0] = f16(INFINITY), v[1] = f16(1.0f);
  for (bool vanishes : {false, true}) {
    x[0] = f16(vanishes ? -17.2f : -14.0f);  // of 2^-24: the exponential is 0.57, the weight 0.44
    auto meaning = Meaning::of(random);
    ASSERT_TRUE(meaning.ok()) << meaning.status().message();
    Results results = right_results(random);
    ASSERT_EQ(static_cast<float>(*results[0].as<f16>()), INFINITY);
    *results[0].as<f16>() = f16(NAN);
    EXPECT_EQ(meaning->difference(results).empty(), vanishes);
  }
}

// What is left of terms that cancel may be 0 in another order of the sum: then its inverse is infinite.
TEST(judge, knows_that_terms_may_cancel_and_no_more) {
  static constexpr const char* kSums[] = {
      " %8 = reduce(x) fn=sum axes=[1]\n %9 = recip(%8)",
      " %7 = constant f32[3,1] {1, 1, 1}\n %8 = matmul(x, %7)\n %9 = recip(%8)",
  };
  for (const char* lines : kSums) {
    RandomGraph random = graph_of_lines("[2,3]", lines);
    std::copy_n(std::array{1.0f, 1e-8f, -1.0f, 1.0f, 0.25f, -1.0f}.begin(), 6, random.runs[0][0].as<float>());
    for (int64_t row : {0, 1}) {
      auto meaning = Meaning::of(random);
      ASSERT_TRUE(meaning.ok()) << meaning.status().message();
      Results results = right_results(random);
      results[0].as<float>()[row] = INFINITY;
      EXPECT_EQ(meaning->difference(results).empty(), row == 0) << lines;
    }
  }
}

// How many numbers are not 0 depends on whether a device has those below the normal ones (semantics.md N5).
TEST(judge, lets_a_device_take_what_is_not_normal_as_nothing) {
  auto graph = parse("graph (n in [0, 6]) {\n x = input f32[6]\n y = nonzero(x) symbol=\"n\"\n output y\n}");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  std::copy_n(std::array{0x1p-149f, 0x1p-99f, 1.0f, -0.0f, -0x1p-130f, -0x1p-99f}.begin(), 6,
              random.runs[0][0].as<float>());
  auto difference = [&](int64_t count) {
    auto meaning = Meaning::of(random);
    EXPECT_TRUE(meaning.ok()) << meaning.status().message();
    return meaning->difference({*Tensor::create(DType::kI64, std::array<int64_t, 2>{count, 1})});
  };
  EXPECT_EQ(difference(3), "");
  EXPECT_NE(difference(2), "");
  EXPECT_NE(difference(6), "");
}

// One op may take such a number for 0 where all others have it: what is chosen by one has as many as the other says.
TEST(judge, lets_one_op_of_many_take_what_is_not_normal_as_nothing) {
  auto graph = parse(R"(graph (n in [1, 2], k in [0, 2]) {
    x = input f32[2]
    c = constant i64[] {0}
    first = gather(x, c) axis=0
    zero = constant f32[] {0}
    p = lt(zero, first)
    y = if(p, x) then=graph {
      x = input f32[2]
      y = slice(x) starts=[0] ends=[1]
      output y
    } else=graph {
      x = input f32[2]
      output x
    } symbols=["n"]
    a = abs(y)
    b = abs(a)
    d = abs(b)
    e = abs(d)
    z = nonzero(e) symbol="k"
    output z
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  auto difference = [&](float x, int64_t count) {
    random.runs[0][0].as<float>()[0] = random.runs[0][0].as<float>()[1] = x;
    auto meaning = Meaning::of(random);
    EXPECT_TRUE(meaning.ok()) << meaning.status().message();
    return meaning->difference({*Tensor::create(DType::kI64, std::array<int64_t, 2>{count, 1})});
  };
  for (float x : {0x1p-149f, 1.0f}) {
    EXPECT_EQ(difference(x, 1), "");
    EXPECT_EQ(difference(x, 2).empty(), x < 1);
    EXPECT_EQ(difference(x, 0).empty(), x < 1);
    EXPECT_NE(difference(x, 3), "");
  }
}

// One of 24 readers of such a number may take it for 0, whichever it is. Noise that is drawn does not find each.
TEST(judge, lets_any_reader_alone_take_what_is_not_normal_as_nothing) {
  std::string lines = "graph {\n x = input f32[]\n zero = constant f32[] {0}\n c0 = lt(zero, x)\n a0 = bit_not(c0)\n";
  for (int i = 1; i < 24; i++) lines += format(" c{} = lt(zero, x)\n a{} = bit_and(a{}, c{})\n", i, i, i - 1, i);
  auto graph = parse(lines + " output y = a23\n}");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  for (float x : {0x1p-149f, 1.0f}) {
    *random.runs[0][0].as<float>() = x;
    auto meaning = Meaning::of(random);
    ASSERT_TRUE(meaning.ok()) << meaning.status().message();
    Results results = right_results(random);
    EXPECT_EQ(meaning->difference(results), "");
    *results[0].as<bool8>() = bool8(true);
    EXPECT_EQ(meaning->difference(results).empty(), x < 1);
  }
}

// How many numbers are distinct may depend on roundings: exp of these two is 1 in f32, or 1 and the number after it.
// Where numbers below the normal ones are 0, the first output has an infinite count.
TEST(judge, knows_the_noise_of_an_output_beside_one_that_does_not_run) {
  auto graph = parse(R"(graph {
    a = input f32[]
    x = input f32[2,2]
    least = constant f32[] {1e-38}
    end = div(a, least)
    beyond = constant f32[] {3.4028235e+38}
    more = mul(beyond, a)
    y = dynamic_range(more, end, beyond) max=4 symbol="k"
    fill = constant f32[] {1e+09}
    p = matmul(x, x)
    z = mul(p, fill)
    output z
    output y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  *random.runs[0][0].as<float>() = 0.5f;
  std::copy_n(std::array{0.8f, 0.5f, 0.6f, -0.9609375f}.begin(), 4, random.runs[0][1].as<float>());
  Results right = right_results(random);
  float exact = *right[0].as<float>();
  EXPECT_EQ(difference_with_first(random, exact * (1 + 0x1p-22f)), "");
  EXPECT_NE(difference_with_first(random, exact * (1 + 0x1p-8f)), "");
}

TEST(judge, lets_rounding_decide_how_many_there_are) {
  auto graph = parse(
      "graph (n in [0, 4]) {\n x = input f32[4]\n e = exp(x)\n y, i, j, c = unique(e) symbol=\"n\"\n output c\n}");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  std::copy_n(std::array{1e-9f, 0x1p-24f, 2.0f, 3.0f}.begin(), 4, random.runs[0][0].as<float>());
  auto difference = [&](int64_t count) {
    auto meaning = Meaning::of(random);
    EXPECT_TRUE(meaning.ok()) << meaning.status().message();
    return meaning->difference({*Tensor::create(DType::kI64, std::array{count})});
  };
  EXPECT_EQ(difference(3), "");
  EXPECT_NE(difference(2), "");
  EXPECT_NE(difference(5), "");
}

// Where numbers below the normal ones decide a size, a value that no output needs may fail at the other one.
TEST(judge, lets_what_is_not_normal_decide_how_many_there_are) {
  auto graph = parse(R"(graph (n in [0, 2]) {
    guard 1 <= n "a value that nobody reads"
    x = input f32[2]
    %1 = constant f32[] {0}
    %2 = lt(%1, x)
    %3 = compress(x, %2) axis=0 symbol="n"
    output y = %3
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  for (bool is_normal : {false, true}) {
    std::copy_n(std::array{is_normal ? 1.0f : 0x1p-140f, -1.0f}.begin(), 2, random.runs[0][0].as<float>());
    auto meaning = Meaning::of(random);
    ASSERT_TRUE(meaning.ok()) << meaning.status().message();
    EXPECT_EQ(meaning->difference({*Tensor::create(DType::kF32, std::array<int64_t, 1>{0})}).empty(), !is_normal);
  }
}

// Graphs of examples, random graphs, and random graphs whose sizes vary, in turn.
static RandomGraph graph_of(uint64_t number) {
  uint64_t seed = number / 3;
  if (number % 3 == 0) return varying_graph(seed);
  auto made = drawn(examples()[seed % examples().size()], seed);
  return number % 3 == 1 && made.ok() ? std::move(*made) : random_graph(seed, op_table());
}

// Each within these graphs, of which the first 2,000 take some 7 seconds.
TEST(judge, finds_every_planted_fault) {
  static constexpr uint64_t kGraphs = 4000;
  std::span<const Planted> planted = planted_faults();
  std::vector<uint64_t> found(planted.size());
  size_t missing = planted.size();
  std::clock_t begin = std::clock();
  for (uint64_t number = 1; number <= kGraphs && missing > 0; number++) {
    RandomGraph random = graph_of(number);
    for (size_t i = 0; i < planted.size(); i++) {
      if (found[i]) continue;
      auto wrong = planted[i].apply(random.graph);
      Strictness strictness{.exact = planted[i].exact, .with_checks = planted[i].with_checks};
      if (!wrong || check_same_meaning(random, *wrong, strictness).empty()) continue;
      found[i] = number;
      missing--;
      double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      std::printf("graph %llu, %.2f s: %s\n", static_cast<unsigned long long>(number), seconds, planted[i].name);
    }
  }
  for (size_t i = 0; i < planted.size(); i++) EXPECT_NE(found[i], 0u) << "not found: " << planted[i].name;
}

// Rules that a set must not have: one that never comes to rest, one that asks for what the run does not.
TEST(judge, finds_rules_that_are_wrong) {
  using namespace patterns;
  Pattern x = any();
  RuleSet restless, anxious;
  restless.add(exact, "restless", tanh(x),
               [=](const Match& m) { return unary(Op::kNeg, tanh(unary(Op::kNeg, m[x]))); });
  anxious.add(exact, "anxious", tanh(x), [=](const Match& m) {
    if (m[x].rank() == 0 || !m.require(m[x].dim(0), Guard::kLessEqual, 2)) return Expr();
    return unary(Op::kNeg, tanh(unary(Op::kNeg, m[x])));
  });
  auto graph = parse("graph (n) {\n x = input f32[n,2]\n y = tanh(x)\n output y\n}");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  EXPECT_EQ(check_rules(RuleSet(), exact, random), "");
  EXPECT_NE(check_rules(restless, exact, random).find(kOutOfBudget), std::string::npos);
  EXPECT_NE(check_rules(anxious, exact, random), "");
}

}  // namespace rlx::test
