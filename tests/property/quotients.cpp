// SPDX-License-Identifier: Apache-2.0
// A quotient of whole multiples is a whole number, exactly. Whatever whole-number steps follow it, in the graph, in
// bodies or before the run, a jump or a function at its edge gives what `math=strict` gives (semantics.md R2).
#include <gtest/gtest.h>

#include <cmath>

#include "generate.h"
#include "ir/text.h"
#include "ops/expr.h"
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx::test {

namespace {

using namespace testing_programs;

// x / c for many of these c and many multiples is another number than x * (1 / c).
constexpr double kDivisors[] = {3, 7, 41, 47, 49, 55, 61, 82, 83};
constexpr int64_t kMultiples = 25;  // from -12 to 12

double whole(Random& random) {
  return static_cast<double>(random.between(-3, 3));
}

Expr steps(Random& random, Expr x, int depth);

// The same graph in both branches.
Expr in_branches(Random& random, Expr x, int depth, FunctionRef<Expr(Expr)> first) {
  auto body = std::make_shared<Graph>("branch");
  Builder inner(*body);
  Expr y = steps(random, first(inner.wrap(*body->add_input("a", x.dtype(), x.dims()))), depth + 1);
  EXPECT_TRUE(y.valid() && body->add_output("y", y.value()).ok()) << inner.status().message();
  Builder& builder = x.builder();
  Expr condition = builder.wrap({builder.graph().inputs()[0], 0});
  std::shared_ptr<const Graph> branch = body;
  return builder.ops(Op::kIf, std::array{condition, x}, {{"then", branch}, {"else", branch}})[0];
}

Expr step(Random& random, Expr x, int depth) {
  Expr list = x.builder().constant(filled({2}, static_cast<float>(whole(random))));
  bool is_in_graph = depth == 0;
  switch (random.below(is_in_graph ? 11 : 10)) {
    case 0: return x + whole(random);
    case 1: return whole(random) - x;
    case 2: return x * whole(random);
    case 3: return -x;
    case 4: return abs(x);
    case 5: return maximum(x, whole(random));
    case 6: return minimum(x, whole(random));
    case 7: return concat(std::array{x, list}, 0);
    case 8: return cumulative(x, "sum", 0);
    case 9: return x * x;
    default: return in_branches(random, x, depth, [](Expr a) { return a; });
  }
}

Expr steps(Random& random, Expr x, int depth) {
  for (int64_t count = random.between(0, 3); count > 0; count--) x = step(random, x, depth);
  return x;
}

// A value that another one by an ulp would show in, and whether it is whole.
std::pair<Expr, bool> jump(Random& random, Expr x) {
  constexpr Op kEdges[] = {Op::kSqrt, Op::kRsqrt, Op::kLog, Op::kLog2, Op::kLog10, Op::kRecip, Op::kAcosh};
  switch (random.below(5)) {
    case 0: return {floor(x), true};
    case 1: return {cast(x, DType::kI32), true};
    case 2: return {equal(x, whole(random)), true};
    case 3: return {less(x, whole(random)), true};
    default: return {unary(random.pick(kEdges), x), false};
  }
}

// The sign of a zero, and so of its reciprocal, is left open by `max` and `min`.
bool is_alike(double a, double b, bool is_whole) {
  if (!std::isfinite(a)) return (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && std::isinf(b));
  if (is_whole) return a == b;
  return std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(a));
}

void check(uint64_t seed) {
  Random random(seed);
  Graph graph("quotients");
  Builder builder(graph);
  auto weights = std::make_shared<Weights>();
  Tensor condition = *Tensor::create(DType::kBool, {}), x = filled({kMultiples}, 0);
  condition.as<uint8_t>()[0] = random.chance(50);
  double divisor = random.pick(kDivisors);
  for (int64_t i = 0; i < kMultiples; i++) x.as<float>()[i] = static_cast<float>(divisor) * static_cast<float>(i - 12);
  ASSERT_TRUE(graph.add_input("p", DType::kBool, {}).ok() && weights->put("w", x).ok());
  bool is_param = random.chance(40), is_in_branch = !is_param && random.chance(30);
  auto source =
      is_param ? graph.add_param("w", DType::kF32, {kMultiples}) : graph.add_input("x", DType::kF32, {kMultiples});
  auto quotient = [&](Expr a) { return a / divisor; };
  Expr dividend = builder.wrap(*source);
  Expr y = is_in_branch ? in_branches(random, dividend, 0, quotient) : quotient(dividend);
  y = steps(random, y, 0);
  // A param decides nothing alone: what reads it meets a value of the run. A comparison keeps it as it is.
  if (is_param) y = maximum(y, where(builder.wrap({graph.inputs()[0], 0}), scalar_like(y, -1e9), scalar_like(y, -1e8)));
  auto [result, is_whole] = jump(random, y);
  output(builder, "y", cast(result, DType::kF64));
  std::vector<Tensor> in{condition};
  if (!is_param) in.push_back(x);
  std::vector<Tensor> results;
  for (const char* math : {"close", "strict"}) {
    auto program = Program::compile(env_with(1), graph, weights, nullptr, {{"math", math}});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto ran = (*program)->run({}, in, {}, 1);
    ASSERT_TRUE(ran.ok()) << ran.status().message();
    results.push_back((*ran)[0]);
  }
  for (int64_t i = 0; i < results[0].count(); i++) {
    double got = results[0].as<double>()[i], wanted = results[1].as<double>()[i];
    ASSERT_TRUE(is_alike(wanted, got, is_whole)) << seed << ": " << got << ", not " << wanted << " at " << i << "\n"
                                                 << print(graph);
  }
}

}  // namespace

TEST(quotients, are_exact_where_a_jump_would_show_it) {
  for (uint64_t seed = 0; seed < 1000 && !testing::Test::HasFatalFailure(); seed++) check(seed);
}

}  // namespace rlx::test
