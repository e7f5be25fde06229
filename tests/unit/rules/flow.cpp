// SPDX-License-Identifier: Apache-2.0
// Which ops pass a small error on, or jump.
#include "rules/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "ops/interpret.h"
#include "tests/support/samples.h"

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

}  // namespace rlx
