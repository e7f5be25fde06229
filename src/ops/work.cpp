// SPDX-License-Identifier: Apache-2.0
// What each primitive does for an element of its result, as its `eval` is written. All elements that it reads and makes
// are one step each.
#include "ops/work.h"

#include <algorithm>
#include <cmath>

namespace rlx {

static double last_size(const Node&, std::span<const Operand> in) {
  return in[0].rank() ? static_cast<double>(in[0].dims.back()) : 1;
}

// Each round of an iteration costs as much as a factorisation.
static double iterated(const Node& node, std::span<const Operand> in) {
  constexpr double kRounds = 32;
  return kRounds * last_size(node, in);
}

static double filter_size(const Node&, std::span<const Operand> in) {
  constexpr double kEach = 3;  // it finds the place of each element anew
  const Operand& filter = in[1];
  return kEach * static_cast<double>(filter.count()) / static_cast<double>(std::max<int64_t>(filter.dims[0], 1));
}

static double window_size(const Node& node, std::span<const Operand>) {
  double size = 1;
  for (int64_t side : node.attrs.i64s("window")) size *= static_cast<double>(side);
  return size;
}

static double sum_of_factors(int64_t n) {
  double sum = 0;
  for (int64_t p = 2; p * p <= n; p++)
    for (; n % p == 0; n /= p) sum += static_cast<double>(p);
  return sum + static_cast<double>(n);
}

static double transform_size(const Node& node, std::span<const Operand> in) {
  double size = 0;
  for (int64_t axis : node.attrs.i64s("axes")) size += sum_of_factors(in[0].dims[static_cast<size_t>(axis)]);
  return size;
}

static double comparisons(const Node& node, std::span<const Operand> in) {
  return std::log2(1 + static_cast<double>(in[0].dims[static_cast<size_t>(node.attrs.i64("axis"))]));
}

namespace {

// Where an element of the result takes more than one step: how many.
struct Steps {
  Op op;
  double (*count)(const Node& node, std::span<const Operand> in);
};

}  // namespace

static constexpr Steps kSteps[] = {
    {Op::kMatmul, last_size},
    {Op::kConv, filter_size},
    {Op::kReduceWindow, window_size},
    {Op::kSelectAndScatter, window_size},
    {Op::kSort, comparisons},
    {Op::kFft, transform_size},
    {Op::kLu, last_size},
    {Op::kCholesky, last_size},
    {Op::kTriangularSolve, last_size},
    {Op::kQr, last_size},
    {Op::kEigh, iterated},
    {Op::kSvd, iterated},
};

double work_of(const Node& node, std::span<const Operand> in, std::span<const Operand> out) {
  constexpr double kOfAnyNode = 256;
  double all = 0, largest = 0;
  for (const Operand& operand : in)
    if (operand) all += static_cast<double>(operand.count());
  for (const Operand& operand : out) {
    all += static_cast<double>(operand.count());
    largest = std::max(largest, static_cast<double>(operand.count()));
  }
  const Steps* steps = std::ranges::find(kSteps, node.op, &Steps::op);
  return kOfAnyNode + all + (steps == std::end(kSteps) ? 0 : largest * steps->count(node, in));
}

}  // namespace rlx
