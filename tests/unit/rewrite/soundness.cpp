// SPDX-License-Identifier: Apache-2.0
// Graphs on which rules once changed what is computed: each compiled for the CPU, run, and compared with the typed
// interpreter. What a rule may assume is written in rewrite/rule_set.h.
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/text.h"
#include "ops/interpret.h"
#include "rewrite/rule_set.h"
#include "tests/support/tolerance.h"
#include "tests/support/transforms.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

// What the CPU computes must be what the interpreter does, to a few roundings of the values' size. Returns the passes
// report.
static std::string expect_same(const char* text, const std::vector<Tensor>& in, const NamedAttrs& options = {}) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  auto want = interpret(*graph, in);
  EXPECT_TRUE(want.ok()) << want.status().message();
  auto program = Program::compile(env_with(1), *graph, nullptr, nullptr, options);
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!want.ok() || !program.ok()) return {};
  auto got = (*program)->run({}, in, {}, graph->outputs().size());
  EXPECT_TRUE(got.ok()) << got.status().message();
  for (size_t i = 0; got.ok() && i < got->size(); i++)
    for (int64_t k = 0; k < (*got)[i].count(); k++) {
      double a = element_as_f64((*got)[i], k), b = element_as_f64((*want)[i], k);
      bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-3 * (std::fabs(b) + 1e-3);
      EXPECT_TRUE(same) << text << "\noutput " << i << ", element " << k << ": " << a << ", not " << b;
      if (!same) return {};
    }
  return *(*program)->report("passes");
}

static Tensor filled(DType dtype, std::vector<int64_t> dims, double value) {
  Tensor tensor = *Tensor::create(dtype, dims);
  Tensor element = *scalar_tensor(dtype, value);
  for (size_t at = 0; at < tensor.bytes(); at += element.bytes())
    std::memcpy(tensor.data() + at, element.data(), element.bytes());
  return tensor;
}

// A quotient that a step sees, behind ops that pass its error on, is correctly rounded (semantics.md R2).
TEST(rewrite_soundness, a_quotient_before_a_step_stays_one) {
  Tensor x = filled(DType::kF32, {3}, 0);
  auto* numbers = reinterpret_cast<float*>(x.data());
  numbers[0] = 41, numbers[1] = 82, numbers[2] = 123;
  for (const char* between :
       {"relu(q)", "leaky_relu(q)", "concat(q, zero) axis=0", "where(yes, q, zero)", "max(q, zero)",
        "reduce(q) fn=max axes=[0]", "reduce(q) fn=sum axes=[0]", "sort(q)", "clamp(q, zero)"})
    expect_same((std::string(R"(graph "g" {
      x = input f32[3]
      yes = constant bool[1] {true}
      zero = constant f32[1] {0}
      c = constant f32[] {41}
      q = div(x, c)
      b = )") + between +
                 "\ny = floor(b)\noutput y\n}")
                    .c_str(),
                {x});
  numbers[0] = 1.5381433F, numbers[1] = 1.5381434F, numbers[2] = 0;
  expect_same(R"(graph "g" {
    x = input f32[3]
    c = constant f32[] {3}
    q = div(x, c)
    y = arg_max(q) axis=0
    output y
  })",
              {x});
}

// The same behind ops that have another form when the rule looks at them again: a power is a product by then, and so
// are ops that only select and sum.
TEST(rewrite_soundness, a_quotient_stays_one_behind_powers_selections_and_sums) {
  Tensor x = filled(DType::kF32, {4}, 0);
  auto* numbers = reinterpret_cast<float*>(x.data());
  numbers[0] = 41, numbers[1] = 82, numbers[2] = 123, numbers[3] = 47;
  for (const char* between : {
           "b = square(q)",
           "p = constant f32[] {3}\n b = pow(q, p)",
           "a = relu(q)\n c = mul(a, q)\n b = mul(q, c)",
           "v = constant f32[4] {0, 1, 2, 3}\n b = add(q, v)",
           "v = constant f32[1,2] {1, 2}\n w = reshape(v) shape=[2,1]\n r = reshape(q) shape=[2,2]\n b = mul(r, w)",
           "v = constant f32[4] {0, 1, 2, 3}\n b = gated_residual(q, v, q)",
           "r = concat(q, q) axis=0\n b = glu(r) axis=0 act=relu",
           "r = relu(q)\n b = gated_act(q, r) act=relu",
           "r = reshape(q) shape=[1,1,4]\n b = resize(r) scales=[2] axes=[2] mode=nearest",
           "r = reshape(q) shape=[1,1,4]\n b = resize(r) sizes=[7] axes=[2] mode=linear coord=align_corners",
           "r = reshape(q) shape=[2,2]\n b = einsum(r) equation=\"ij->ji\"",
           "r = reshape(q) shape=[2,2]\n b = einsum(r) equation=\"ii->i\"",
           "r = reshape(q) shape=[1,4,1]\n w = constant f32[1,5] {1, 1, 1, 1, 1}\n c, b = causal_conv1d(r, w)",
           "r = reshape(q) shape=[1,1,4]\n b = avg_pool(r) kernel=[1]",
           "r = reshape(q) shape=[1,1,4]\n b = lp_pool(r) kernel=[1] p=2",
           "r = reshape(q) shape=[4,1]\n b = sum_square(r) axes=[1]",
           "r = reshape(q) shape=[4,1]\n b = reduce_l2(r) axes=[1]",
           "n = neg(q)\n r = stack(q, n) axis=1\n b = var(r) axes=[1]",
           "r = reshape(q) shape=[4,1]\n f = rfft(r) axis=1\n b = real(f)",
           "z = constant f32[4] {0, 0, 0, 0}\n c = complex(q, z)\n r = reshape(c) shape=[4,1]\n f = fft(r) axes=[1]\n "
           "b = real(f)",
           "r = reshape(q) shape=[1,1,2,2]\n c = constant f32[2,1] {1, 1}\n s = constant f32[2,1] {0, 0}\n"
           " b = rope(r, c, s)",
           "r = reshape(q) shape=[4,1]\n l = constant i64[4] {0, 0, 0, 0}\n n = nll_loss(r, l)\n b = neg(n)",
           "r = reshape(q) shape=[4,1]\n n, b, i = layer_norm(r)",
           "r = reshape(q) shape=[4,1]\n b = mean(r) axes=[1] keep_dims=true\n d = sub(r, b)\n dd = mul(d, d)\n"
           " v = mean(dd) axes=[1] keep_dims=true\n e = constant f32[] {1e-5}\n ve = add(v, e)\n s = sqrt(ve)\n"
           " n = div(d, s)\n output n",
       })
    expect_same((std::string("graph \"g\" {\n x = input f32[4]\n c41 = constant f32[] {41}\n q = div(x, c41)\n ") +
                 between + "\n y = floor(b)\n output y\n}")
                    .c_str(),
                {x});
}

// A stored boolean may have any byte; what computes one makes 0 or 1 (semantics.md T6).
TEST(rewrite_soundness, booleans_are_computed_from_any_byte) {
  auto graph = parse(R"(graph "g" {
    x = input bool[4]
    yes = constant bool[] {true}
    no = constant bool[] {false}
    a = bit_and(x, yes)
    o = bit_or(no, x)
    n = bit_xor(x, yes)
    d = bit_xor(n, yes)
    c = cast(x) to=bool
    r = reshape(x) shape=[2,2]
    v = bit_and(r, yes)
    output a
    output o
    output d
    output c
    output v
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Tensor x = filled(DType::kBool, {4}, 0);
  const unsigned char bytes[] = {0, 1, 2, 255}, computed[] = {0, 1, 1, 1};
  std::memcpy(x.data(), bytes, sizeof bytes);
  auto program = Program::compile(env_with(1), *graph, nullptr, nullptr, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  auto got = (*program)->run({}, std::vector<Tensor>{x}, {}, graph->outputs().size());
  ASSERT_TRUE(got.ok()) << got.status().message();
  for (const Tensor& tensor : *got) EXPECT_EQ(std::memcmp(tensor.data(), computed, sizeof computed), 0);
}

// v serves all of b: attention would need b = 1.
TEST(rewrite_soundness, a_rule_that_declines_leaves_no_guard) {
  expect_same(R"(graph "g" (b in [0, 8]) {
    q = input f32[b,2,3,4]
    k = input f32[b,2,4,3]
    v = input f32[1,2,3,4]
    s = matmul(q, k)
    p = softmax(s)
    y = matmul(p, v)
    output y
  })",
              {noise({3, 2, 3, 4}, 1), noise({3, 2, 4, 3}, 2), noise({1, 2, 3, 4}, 3)});
}

TEST(rewrite_soundness, integers_wrap) {
  expect_same(R"(graph "g" {
    c = constant i64[] {4294967296}
    x = cast(c) to=i32
    five = constant i32[] {5}
    y = lt(x, five)
    i = iota() shape=[4] axis=0 dtype=i32
    k = constant i32[] {1103515245}
    p = mul(i, k)
    zero = constant i32[] {0}
    n = lt(p, zero)
    big = constant i64[] {9223372036854775807}
    one = constant i64[] {1}
    w = add(big, one)
    last = lt(w, one)
    output y
    output n
    output last
  })",
              {});
}

TEST(rewrite_soundness, a_half_holds_no_reciprocal_of_a_tiny_number) {
  for (double c : {-17.0, -24.0, 15.0, -1.0}) {
    std::string text = "graph \"g\" {\n x = input f16[4]\n c = constant f16[] {" +
                       std::to_string(std::ldexp(1.0, static_cast<int>(c))) + "}\n y = div(x, c)\n output y\n}";
    expect_same(text.c_str(), {filled(DType::kF16, {4}, 0.000244140625)});
    expect_same(text.c_str(), {filled(DType::kF16, {4}, 0)});
  }
}

// The formulas of gelu and silu, but for the number beside 1: gelu(-8) is nothing, the sum that stands here is not.
TEST(rewrite_soundness, the_half_beside_1_is_not_1) {
  expect_same(R"(graph "g" {
    x = input f16[4]
    root = constant f16[] {0.70710678}
    one = constant f16[] {1.0009766}
    half = constant f16[] {0.5}
    s = mul(x, root)
    e = erf(s)
    t = add(e, one)
    p = mul(x, t)
    y = mul(p, half)
    output y
  })",
              {filled(DType::kF16, {4}, -8)});
  expect_same(R"(graph "g" {
    x = input bf16[4]
    e = sigmoid(x)
    next = constant bf16[] {1.0078125}
    p = mul(x, e)
    y = mul(p, next)
    output y
  })",
              {filled(DType::kBF16, {4}, 4)});
}

// The results within an ulp of the exact ones, in the default grade: a half holds no exact reciprocal of 41, and one
// rounding more would show. The numbers are those for which it does.
TEST(rewrite_soundness, a_half_is_rounded_once) {
  struct Case {
    const char* line;
    double constant, x, exact;
  };
  for (auto [line, constant, x, exact] : {Case{"div(x, c)", 41, 1.265625, 1.265625 / 41},
                                          {"div(x, c)", 0.99951171875, 1.5, 1.5 / 0.99951171875},
                                          {"pow(x, c)", 3, 3.150390625, 3.150390625 * 3.150390625 * 3.150390625}}) {
    std::string text = "graph \"g\" {\n x = input f16[4]\n c = constant f16[] {" + format("{:.17}", constant) +
                       "}\n y = " + line + "\n output y\n}";
    auto program = Program::compile(env_with(1), *parse(text), nullptr, nullptr, {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto got = (*program)->run({}, std::vector{filled(DType::kF16, {4}, x)}, {}, 1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    double ulp = std::ldexp(1.0, std::ilogb(exact) - 10);
    EXPECT_LE(std::fabs(element_as_f64((*got)[0], 0) - exact), ulp) << text;
  }
}

static const char* kHalfScores = R"(graph "g" {
    q = input f16[1,2,3,4]
    m = input f32[1,1,3,3]
    h = input f16[1,1,3,3]
    k = transpose(q) perm=[0,1,3,2]
    s = matmul(q, k)
    LINKS
    p = softmax(l)
    r = cast(p) to=f16
    y = matmul(r, q)
    output y
  })";

// A mask of f32 is infinite as a half, and then a row without a key is NaN. What is added to scores, and what these are
// multiplied with, may have no finite product in halves where the scaled sum is finite.
TEST(rewrite_soundness, halves_added_to_scores_overflow_where_they_did) {
  Tensor q = *convert(noise({1, 2, 3, 4}, 1), DType::kF16);
  Tensor mask = filled(DType::kF32, {1, 1, 3, 3}, 0), low = filled(DType::kF16, {1, 1, 3, 3}, -1000);
  for (int i = 0; i < 5; i++) mask.as<float>()[i] = i % 2 ? -1e5f : -3.4e38f;
  const char* kLinks[] = {
      "t = cast(m) to=f16\n l = add(s, t)",
      "w = cast(s) to=f32\n t = add(w, m)\n l = cast(t) to=f16",
      "t = add(s, h)\n w = cast(t) to=f32\n c = constant f32[] {100}\n l = mul(w, c)",
      "t = add(s, h)\n n = neg(h)\n u = add(t, n)\n c = constant f16[] {100}\n l = mul(u, c)",
      "t = add(s, m16)\n u = add(t, m16)\n l = cast(u) to=f32",
  };
  for (std::string links : kLinks) {
    if (links.find("m16") != std::string::npos) links = "m16 = cast(m) to=f16\n" + links;
    std::string text = kHalfScores;
    expect_same(text.replace(text.find("LINKS"), 5, links).c_str(), {q, mask, low});
  }
  expect_same(R"(graph "g" {
    q = input f16[1,2,3,4]
    m = input f32[1,1,3,3]
    b = cast(m) to=f16
    y, lse = attention(q, q, q, _, b)
    output y
    output lse
  })",
              {q, mask});
}

// The scale times the softcap would be 0, and 0 * inf NaN, where tanh gives 1.
TEST(rewrite_soundness, a_tiny_softcap_keeps_infinite_scores) {
  Tensor q = filled(DType::kF64, {1, 1, 2, 2}, 1), k = filled(DType::kF64, {1, 1, 2, 2}, INFINITY);
  expect_same(R"(graph "g" {
    q = input f64[1,1,2,2]
    k = input f64[1,1,2,2]
    s = matmul(q, k)
    half = constant f64[] {0.5}
    t = mul(s, half)
    cap = constant f64[] {5e-324}
    a = tanh(t)
    l = mul(a, cap)
    p = softmax(l)
    y = matmul(p, q)
    output y
  })",
              {q, k});
}

// The factor moves to the queries, of which another rounding would show in every score.
TEST(rewrite_soundness, a_factor_of_a_head_does_not_round_queries_of_halves) {
  for (std::string half : {"f16", "bf16"}) {
    std::string text = R"(graph "g" {
      q = input HALF[1,2,16,64]
      k = input HALF[1,2,16,64]
      v = input HALF[1,2,16,8]
      factors = constant HALF[1,2,1,1] {0.3, 0.2}
      s = matmul(q, k) transpose_b=true
      t = mul(s, factors)
      p = softmax(t)
      y = matmul(p, v)
      output y
    })";
    for (size_t at; (at = text.find("HALF")) != std::string::npos;) text.replace(at, 4, half);
    DType dtype = half == "f16" ? DType::kF16 : DType::kBF16;
    std::vector<Tensor> in;
    for (uint32_t i = 0; i < 3; i++) in.push_back(*convert(noise({1, 2, 16, i < 2 ? 64 : 8}, i + 1, 2), dtype));
    auto graph = parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    auto oracle = interpret(*graph, in, {}, {EvalMode::kOracle});
    auto program = Program::compile(env_with(1), *graph, nullptr, nullptr, {});
    ASSERT_TRUE(program.ok() && oracle.ok());
    auto got = (*program)->run({}, in, {}, 1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_NE((*program)->report("text")->find("attention"), std::string::npos);
    EXPECT_EQ(test::difference((*got)[0], (*oracle)[0], dtype, Tol::kATT, {}), "") << text;
  }
}

static const char* kScores = R"(graph "g" {
    q = input f32[1,2,3,4]
    k = input f32[1,2,4,3]
    v = input f32[1,2,3,4]
    m = input bool[1,1,3,3]
    s = matmul(q, k)
    LINKS
    p = softmax(l)
    y = matmul(p, v)
    output y
  })";

static std::string scores(const char* links) {
  std::string text = kScores;
  return text.replace(text.find("LINKS"), 5, links);
}

TEST(rewrite_soundness, links_of_scores_keep_their_order) {
  Tensor mask = *Tensor::create(DType::kBool, std::array<int64_t, 4>{1, 1, 3, 3});
  for (int64_t i = 0; i < 9; i++) reinterpret_cast<uint8_t*>(mask.data())[i] = i % 3 <= i / 3;
  std::vector<Tensor> in{noise({1, 2, 3, 4}, 1, 8), noise({1, 2, 4, 3}, 2, 8), noise({1, 2, 3, 4}, 3), mask};
  const char* kLinks[] = {
      // one softcap in another
      "a = constant f32[] {0.5}\n b = constant f32[] {30}\n t = tanh(s)\n u = mul(t, a)\n w = tanh(u)\n l = mul(w, b)",
      // a soft mask: the fill shrinks to -1
      "f = constant f32[] {-1e9}\n z = constant f32[] {1e-9}\n t = where(m, s, f)\n l = mul(t, z)",
      // a mask inside a softcap
      "f = constant f32[] {-1e9}\n c = constant f32[] {3}\n t = where(m, s, f)\n u = div(t, c)\n w = tanh(u)\n l = "
      "mul(w, c)",
      // a scale outside a softcap, one inside
      "a = constant f32[] {0.25}\n c = constant f32[] {3}\n t = mul(s, a)\n u = div(t, c)\n w = tanh(u)\n o = mul(w, "
      "c)\n l = mul(o, a)",
      // a bias inside a scale
      "a = constant f32[] {0.25}\n b = constant f32[3] {1, 2, 3}\n t = add(s, b)\n l = mul(t, a)",
  };
  for (const char* links : kLinks) expect_same(scores(links).c_str(), in);
}

TEST(rewrite_soundness, no_pass_needs_another_for_the_form_of_attributes) {
  const char* text = R"(graph "g" {
    x = input f32[2,3]
    t = transpose(x) perm=[-1,-2]
    r = reshape(t) shape=[6]
    s = slice(r) starts=[-5] ends=[100] axes=[-1]
    output t
    output s
  })";
  expect_same(text, {noise({2, 3})});
  expect_same(
      text, {noise({2, 3})},
      {{"passes.skip", std::vector<std::string>{"transpose_once", "slice_bounds", "canonicalize", "simplify"}}});
}

static size_t count_of(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) count++;
  return count;
}

TEST(rewrite_soundness, a_statistic_that_is_read_comes_from_the_norm) {
  auto graph = parse(R"(graph "g" {
    x = input f32[4,8]
    mu = mean(x) axes=[1] keep_dims=true
    c = sub(x, mu)
    cc = mul(c, c)
    var = mean(cc) axes=[1] keep_dims=true
    eps = constant f32[] {1e-5}
    ve = add(var, eps)
    std = sqrt(ve)
    y = div(c, std)
    output y
    output mu
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto fused = test::find_transform("fuse")->run(*graph);
  ASSERT_TRUE(fused.ok()) << fused.status().message();
  std::string text = print(*fused);
  EXPECT_EQ(count_of(text, "= layer_norm("), 1u) << text;
  EXPECT_EQ(count_of(text, "mean("), 0u) << text;
}

// Where nothing is read, a position out of range is no error.
TEST(rewrite_soundness, a_guard_fails_no_run_that_works) {
  const char* wide = R"(graph "g" (b in [0, 8], n in [0, 64]) {
    table = input f32[4,2]
    x = input f32[b,n]
    i = iota() shape=[n] axis=0 dtype=i64
    wide = broadcast_to(i) shape=[b,n]
    y = gather(table, wide) axis=0
    c = constant i64[] {2}
    z = gather(x, c) axis=1
    output y
    output z
  })";
  expect_same(wide, {noise({4, 2}), noise({0, 9})});
  expect_same(wide, {noise({4, 2}), noise({2, 3})});
  const char* shifted = R"(graph "g" (n in [0, 64], past in [0, 64]) {
    table = input f32[4,2]
    x = input f32[n]
    one = input f32[past]
    i = iota() shape=[n] axis=0 dtype=i64
    p = dim_size(one) axis=0
    j = add(i, p)
    z = gather(table, j) axis=0
    output z
  })";
  expect_same(shifted, {noise({4, 2}), noise({0}), noise({9})});
  expect_same(shifted, {noise({4, 2}), noise({3}), noise({1})});
}

// 2n - 1 rows are none where n is 0: no slice of so many can be built.
TEST(rewrite_soundness, a_rule_declines_what_cannot_be_built) {
  const char* text = R"(graph "g" (n in [0, 8]) {
    x = input f32[4,2]
    like = input f32[n]
    i = iota() shape=[1,n] axis=1 dtype=i64
    k = broadcast_to(i) shape=[n,2*n - 1]
    y = gather(x, k) axis=0
    output y
    output like
  })";
  expect_same(text, {noise({4, 2}), noise({1})});
}

// However much of it there is.
TEST(rewrite_soundness, rules_that_make_more_and_more_come_to_an_end) {
  using namespace patterns;
  Pattern x = any();
  RuleSet rules;
  rules.add(exact, "restless", tanh(x), [=](const Match& m) { return unary(Op::kNeg, tanh(unary(Op::kNeg, m[x]))); });
  RewriteReport report;
  auto graph = rewrite(*parse("graph {\n x = input f32[2]\n y = tanh(x)\n output y\n}"), rules, {.report = &report});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(report.lines.back().reason, kOutOfBudget);
}

// The guard that a rule requires allows no second one, which its replacement would need, whatever guards there were.
TEST(rewrite_soundness, a_rule_gets_the_guards_that_it_requires_and_no_other) {
  for (bool asks_more : {false, true}) {
    RuleSet rules;
    rules.add(exact, "bounded", {Op::kExp}, [&](const Match& m) {
      Graph& graph = m.builder().graph();
      if (!m.require(Dim::symbol("n"), Guard::kLessEqual, 100)) return Expr();
      if (asks_more) EXPECT_TRUE(graph.add_guard({Guard::kLessEqual, 5, Dim::symbol("n"), "more"}).ok());
      return unary(Op::kTanh, m.in(0));
    });
    auto given = parse(
        "graph (n) {\nx = input f32[n]\nu = slice(x) starts=[0] ends=[2] axes=[0]\ny = exp(x)\n"
        "output y\noutput u\n}");
    ASSERT_TRUE(given.ok()) << given.status().message();
    ASSERT_TRUE(given->add_guard({Guard::kLessEqual, 3, Dim::symbol("n"), "given"}).ok());
    size_t before = given->guards().size();
    auto graph = rewrite(*given, rules, {});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    EXPECT_EQ(test::has_op(*graph, Op::kTanh), !asks_more);
    EXPECT_EQ(graph->guards().size(), before + !asks_more);
  }
}

static constexpr const char* kReadTwice = R"(graph {
  x = input f32[2]
  b = neg(x)
  y = exp(b)
  output y
  output b
})";

// The nodes of a replacement keep their operands, even if the rule also offers another value in the place of one of
// these.
TEST(rewrite_soundness, a_replacement_reads_what_it_was_made_of) {
  RuleSet rules;
  rules.add(exact, "two", {Op::kExp}, [](const Match& m) {
    Expr b = m.in(0), made = unary(Op::kTanh, b);
    m.offer(b.value(), unary(Op::kSin, m.input(b, 0)));
    return made;
  });
  auto graph = rewrite(*parse(kReadTwice), rules, {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto input_of = [&](size_t output) {
    const Node& node = graph->node(graph->outputs()[output].value);
    return std::pair(node.op, graph->node(node.in[0]).op);
  };
  EXPECT_EQ(input_of(0), std::pair(Op::kTanh, Op::kNeg));
  EXPECT_EQ(input_of(1), std::pair(Op::kSin, Op::kInput));
}

// A value is not replaced by one that is made of it, which would read itself; by another one it is.
TEST(rewrite_soundness, a_value_that_a_rule_offers_closes_no_cycle) {
  for (bool of_itself : {false, true}) {
    RuleSet rules;
    rules.add(exact, "two", {Op::kExp}, [&](const Match& m) {
      Expr b = m.in(0);
      m.offer(b.value(), unary(Op::kSin, unary(Op::kCos, of_itself ? b : m.input(b, 0))));
      return unary(Op::kTanh, m.input(b, 0));
    });
    auto graph = rewrite(*parse(kReadTwice), rules, {});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    EXPECT_EQ(graph->node(graph->outputs()[0].value).op, Op::kTanh);
    EXPECT_EQ(graph->node(graph->outputs()[1].value).op, of_itself ? Op::kNeg : Op::kSin);
  }
}

// What a rule has replaced is given to no other one.
TEST(rewrite_soundness, a_node_that_is_replaced_is_left_alone) {
  RuleSet rules;
  int tried = 0;
  rules.add(exact, "first", {Op::kExp}, [](const Match& m) { return unary(Op::kTanh, m.in(0)); });
  rules.add(exact, "second", {Op::kExp}, [&](const Match&) { return tried++, Expr(); });
  auto graph = rewrite(*parse("graph {\n x = input f32[2]\n y = exp(x)\n output y\n}"), rules, {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(tried, 0);
}

// A rule that spells a node in another way (here with an axis from the back) gets the node that is there.
TEST(rewrite_soundness, a_rule_finds_a_node_by_other_attributes) {
  RuleSet rules;
  size_t nodes = 0;
  rules.add(exact, "spelled", {Op::kExp}, [&](const Match& m) {
    nodes = m.graph().nodes().size();
    m.builder().op(Op::kSoftmax, {m.in(0)}, {{"axis", int64_t{-1}}});
    nodes = m.graph().nodes().size() - nodes;
    return Expr();
  });
  auto graph = rewrite(*parse(R"(graph {
    x = input f32[2,3]
    s = softmax(x) axis=1
    y = exp(x)
    output s
    output y
  })"),
                       rules, {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(nodes, 0u);
}

// A sliding window is no row-major block, and positions may count down.
TEST(rewrite_soundness, positions_that_overlap_are_gathered) {
  expect_same(R"(graph "g" (n in [0, 8]) {
    x = input f32[n]
    w = input f32[4]
    c = constant i64[3,1] {0, 1, 2}
    two = constant i64[] {2}
    rest = slice(x) starts=[2] ends=[100] axes=[0]
    i = iota() shape=[1] axis=0 dtype=i64
    k = add(i, c)
    y = gather(x, k) axis=0
    d = constant i64[2,2] {0, -4, 1, -3}
    z = gather(w, d) axis=0
    output y
    output z
    output rest
  })",
              {noise({6}), noise({4}, 2)});
}

}  // namespace rlx
