// SPDX-License-Identifier: Apache-2.0
// Which ops pass a small error on, or jump.
#include "rules/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "ir/text.h"
#include "ops/interpret.h"
#include "tests/support/samples.h"
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

static bool is_like(ErrorEffect effect, std::initializer_list<Op> ops) {
  for (Op op : ops)
    if (error_effect(op_table().info(op)) != effect) {
      ADD_FAILURE() << op_table().info(op).name;
      return false;
    }
  return true;
}

TEST(flow, tells_steps_from_what_passes_errors_on) {
  EXPECT_TRUE(is_like(ErrorEffect::kPassesOn,
                      {Op::kRelu, Op::kWhere, Op::kConcat, Op::kLeakyRelu, Op::kHardSigmoid, Op::kReduce, Op::kPad,
                       Op::kGather, Op::kReshape, Op::kStopGradient, Op::kSort, Op::kClamp, Op::kMul, Op::kMaxPool}));
  EXPECT_TRUE(is_like(ErrorEffect::kJumps,
                      {Op::kFloor, Op::kRound, Op::kSign, Op::kRem, Op::kLt, Op::kShrink, Op::kHardmax, Op::kBitcast,
                       Op::kDynamicRange, Op::kUnique, Op::kArgMax, Op::kNonzero, Op::kFakeQuantize, Op::kIf,
                       Op::kWhile, Op::kScan, Op::kCustom, Op::kHostCall, Op::kElementwiseRegion}));
  EXPECT_TRUE(is_like(ErrorEffect::kDrowns,
                      {Op::kExp, Op::kTanh, Op::kMatmul, Op::kConv, Op::kSoftmax, Op::kLayerNorm, Op::kAttention}));
}

// A row that says nothing of its class is exact, so what is not known to pass errors on is taken for a step.
TEST(flow, takes_an_unknown_op_for_a_step) {
  OpInfo info;
  EXPECT_EQ(error_effect(info), ErrorEffect::kJumps);
  info.tol = Tol::kU1;
  EXPECT_EQ(error_effect(info), ErrorEffect::kJumps);
}

// f(x) for each x, or nothing if the row has no function of one real number.
static std::vector<double> results_of(const OpInfo& row, const std::vector<double>& xs) {
  Graph graph("one");
  Tensor in = *Tensor::create(DType::kF64, std::vector<int64_t>{std::ssize(xs)});
  std::memcpy(in.data(), xs.data(), in.bytes());
  Value x = *graph.add_input("x", DType::kF64, {Dim(std::ssize(xs))});
  auto y = graph.add(row.op(), std::vector<Value>{x});
  if (!y.ok() || !is_float(graph.type(*y).dtype) || !graph.add_output("y", *y).ok()) return {};
  auto results = interpret(graph, std::vector<Tensor>{in});
  std::vector<double> ys;
  for (size_t i = 0; results.ok() && i < xs.size(); i++) ys.push_back(element_as_f64((*results)[0], std::ssize(ys)));
  return ys;
}

// Just below and just above a number, what is no step has near results.
TEST(flow, knows_the_steps_among_functions_of_one_number) {
  std::vector<double> below, above;
  for (int i = -64; i <= 64; i++) {
    double x = i / 16.0, little = std::fabs(x) * 0x1p-30;
    below.push_back(x - little), above.push_back(x + little);
  }
  int tried = 0, steps = 0;
  for (const OpInfo& row : op_table().rows()) {
    if (!row.is(kElementwise) || row.signature.in.size() != 1) continue;
    std::vector<double> lower = results_of(row, below), upper = results_of(row, above);
    bool jumps = false;
    for (size_t i = 0; i < lower.size(); i++)
      jumps |= std::fabs(upper[i] - lower[i]) > 1e-4 * (1 + std::fabs(lower[i]));
    EXPECT_FALSE(jumps && error_effect(row) != ErrorEffect::kJumps) << row.name;
    tried += !lower.empty(), steps += jumps;
  }
  EXPECT_GE(tried, 40);
  EXPECT_GE(steps, 5);
}

static std::set<double> elements_of(const Tensor& tensor) {
  std::set<double> elements;
  for (int64_t i = 0; i < tensor.count(); i++) elements.insert(element_as_f64(tensor, i));
  return elements;
}

// Whether the result is made of elements of one operand, of at least two that such a result need not have.
static bool is_made_of(const Tensor& result, const Tensor& operand) {
  std::set<double> from = elements_of(operand), made = elements_of(result);
  std::erase_if(made, [](double it) { return !std::isfinite(it) || it == 0 || std::fabs(it) == 1; });
  return made.size() >= 2 && std::ranges::all_of(made, [&](double it) { return from.contains(it); });
}

// What only selects passes errors on, however loose its class is: no sample of an op in which they drown may show that.
// Products of matrices may select, by factors of 0 and 1, and are not followed all the same.
TEST(flow, no_op_that_selects_drowns_errors) {
  auto is_real = [](DType dtype) { return is_float(dtype) && !is_block(dtype); };
  const std::set<std::string> products{"attention", "deform_conv"};
  int tried = 0;
  for (const test::Sample& sample : test::all_samples()) {
    const OpInfo* row = op_table().find(sample.op);
    if (!row || !sample.program.empty() || !sample.error.empty() || error_effect(*row) != ErrorEffect::kDrowns)
      continue;
    tried++;
    if (products.contains(sample.op) || sample.out.empty() || !is_real(sample.out[0].dtype)) continue;
    for (const Tensor& operand : sample.in) {
      bool selects = operand && is_real(operand.dtype()) && is_made_of(sample.out[0].value, operand);
      EXPECT_FALSE(selects) << sample.where << ": " << sample.op;
    }
  }
  EXPECT_GE(tried, 100);
}

// floor(x / 41) for 41 * i. The quotient is in a body: what rounds it is around the body, or comes after a number that
// the body gets from outside.
TEST(flow, a_quotient_in_a_body_that_is_rounded_stays_one) {
  const std::string branch = "x = input f32[100]\nk = constant f32[] {41}\nq = div(x, k)\noutput q\n",
                    rest = "x = input f32[100]\noutput x\n";
  const std::string with_number =
      "x = input f32[100]\nw = input f32[]\nk = constant f32[] {41}\nq = div(x, k)\ns = add(q, w)\nz = floor(s)\n"
      "output z\n";
  const std::string cases[] = {
      "y = if(p, x) then=graph {\n" + branch + "} else=graph {\n" + rest + "}\nz = floor(y)\n",
      "t = constant bool[] {true}\ny = if(t, x) then=graph {\n" + branch + "} else=graph {\n" + rest +
          "}\nz = floor(y)\n",
      "y = scan(x) n_carry=1 n_xs=0 length=1 body=graph {\n" + branch + "}\nz = floor(y)\n",
      "w = constant f32[] {1}\none = constant f32[] {1}\ny = scan(x, w) n_carry=1 n_xs=0 length=1 body=graph {\n" +
          with_number + "}\nz = sub(y, one)\n",
  };
  Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 1>{100}), p = *Tensor::create(DType::kBool, {});
  for (int i = 0; i < 100; i++) x.as<float>()[i] = 41.0f * static_cast<float>(i);
  p.as<uint8_t>()[0] = 1;
  for (const std::string& nodes : cases) {
    auto graph = parse("graph {\nx = input f32[100]\np = input bool[]\n" + nodes + "output z\n}");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    auto program = Program::compile(testing_programs::env_with(1), *graph, std::make_shared<Weights>(), nullptr, {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto got = (*program)->run({}, std::array{x, p}, {}, 1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (int i = 0; i < 100; i++) EXPECT_EQ((*got)[0].as<float>()[i], i) << nodes;
  }
}

// p / 41 and x / sqrt(x), computed before the run: what compares or rounds them is in the graph.
TEST(flow, a_quotient_of_params_that_is_rounded_stays_one) {
  const std::string cases[] = {
      "q = div(p, k)\nb = eq(q, x)\n",
      "r = sqrt(s)\nq = div(s, r)\nb = eq(q, x)\n",
      "q = div(p, k)\nm = max(q, z)\nf = floor(m)\nb = eq(f, x)\n",
  };
  using testing_programs::filled;
  Tensor p = filled({2}, 41), squares = filled({2}, 1), x = filled({2}, 1);
  p.as<float>()[1] = 41 * 7, squares.as<float>()[1] = 49, x.as<float>()[1] = 7;
  auto weights = std::make_shared<Weights>();
  ASSERT_TRUE(weights->put("p", p).ok() && weights->put("s", squares).ok());
  for (const std::string& nodes : cases) {
    auto graph = parse(
        "graph {\nx = input f32[2]\nz = input f32[2]\np = param f32[2]\ns = param f32[2]\n"
        "k = constant f32[] {41}\n" +
        nodes + "y = cast(b) to=f32\noutput y\n}");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    auto program = Program::compile(testing_programs::env_with(1), *graph, weights, nullptr, {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto got = (*program)->run({}, std::array{x, filled({2}, -9)}, {}, 1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (int i = 0; i < 2; i++) EXPECT_EQ((*got)[0].as<float>()[i], 1) << nodes;
  }
}

// What a function gives where it ends or has a pole.
TEST(flow, a_quotient_that_a_function_reads_at_its_edge_stays_one) {
  auto result = [](const std::string& nodes, float of = 41, const std::string& readers = "") {
    auto graph = parse("graph {\nx = input f32[1]\nk = constant f32[] {41}\none = constant f32[] {1}\nq = div(x, k)\n" +
                       nodes + "output y\n" + readers + "}");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    auto program = Program::compile(testing_programs::env_with(1), *graph, std::make_shared<Weights>(), nullptr, {});
    EXPECT_TRUE(program.ok()) << program.status().message();
    Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 1>{1});
    x.as<float>()[0] = of;
    return (*(*program)->run({}, std::array{x}, {}, 1))[0].as<float>()[0];
  };
  EXPECT_EQ(result("d = sub(q, one)\ny = sqrt(d)\n"), 0);
  EXPECT_EQ(result("d = sub(q, one)\nh = constant f32[] {0.5}\ny = pow(d, h)\n"), 0);
  EXPECT_EQ(result("y = acosh(q)\n"), 0);
  EXPECT_EQ(result("d = sub(one, q)\ny = log(d)\n"), -INFINITY);
  EXPECT_EQ(result("d = sub(one, q)\ny = recip(d)\n"), INFINITY);
  EXPECT_EQ(result("y = atanh(q)\n"), INFINITY);
  EXPECT_TRUE(std::isnan(result("d = sub(q, one)\ny = div(d, d)\n")));
  for (const char* log : {"log", "log2", "log10"}) {
    EXPECT_EQ(result(format("d = sub(q, one)\ny = {}(d)\n", log)), -INFINITY) << log;
    EXPECT_EQ(result(format("d = add(q, one)\ny = {}(d)\n", log), -41), -INFINITY) << log << ": below 0 and shifted up";
  }
  EXPECT_EQ(result("d = add(q, one)\ny = recip(d)\n", -41), INFINITY);
  EXPECT_EQ(result("d = sub(q, one)\ny = lp_norm(d)\n"), 0);
  EXPECT_EQ(result("d = sub(q, one)\ny = log_sum(d) axes=[0]\n"), -INFINITY);
  EXPECT_GT(result("d = sub(one, q)\nm = neg(one)\ny = atan2(d, m)\n"), 3) << "the angle jumps from pi to -pi";
  const std::string join = "m = constant f32[1] {-1}\nc = concat(q, m) axis=0\n";
  EXPECT_EQ(result(join + "d = reduce(c) fn=sum\ny = sqrt(d)\n"), 0) << "a sum may add numbers, too";
  EXPECT_EQ(result(join + "d = einsum(c) equation=\"i->\"\ny = log(d)\n"), -INFINITY);
  const float product = 41 * (1 / 41.0f);
  EXPECT_EQ(result("s = mul(q, q)\ny = add(s, one)\n", 41, "r = rsqrt(y)\noutput r\n"), product * product + 1)
      << "what is never negative is not shifted to 0";
  EXPECT_EQ(result("y = mul(q, one)\n"), 41 * (1 / 41.0f)) << "a quotient that nothing reads in this way";
}

// `c and true` is c only if the bytes of c are 0 and 1.
TEST(flow, a_boolean_of_another_byte_is_made_1) {
  Graph graph;
  Builder b(graph);
  Tensor bytes = *Tensor::create(DType::kBool, std::array<int64_t, 1>{4});
  for (int i = 0; i < 4; i++) bytes.as<uint8_t>()[i] = static_cast<uint8_t>(85 * i);
  testing_programs::output(b, "y", logical_and(b.constant(bytes), b.scalar(DType::kBool, 1)));
  auto program = Program::compile(testing_programs::env_with(1), graph, nullptr, nullptr, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  auto ran = (*program)->run({}, std::span<const Tensor>(), {}, 1);
  ASSERT_TRUE(ran.ok()) << ran.status().message();
  for (int i = 0; i < 4; i++) EXPECT_EQ((*ran)[0].as<uint8_t>()[i], i > 0) << i;
}

}  // namespace rlx
