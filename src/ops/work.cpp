// SPDX-License-Identifier: Apache-2.0
#include "ops/work.h"

#include <algorithm>
#include <cmath>

namespace rlx {

double work_of_last_axis(const Node&, std::span<const Operand> in) {
  return in[0].rank() ? static_cast<double>(in[0].dims.back()) : 1;
}

double work_of_rounds(const Node& node, std::span<const Operand> in) {
  constexpr double kRounds = 32;
  return kRounds * work_of_last_axis(node, in);
}

double work_of_filter(const Node&, std::span<const Operand> in) {
  constexpr double kEach = 3;  // it finds the place of each element anew
  const Operand& filter = in[1];
  return kEach * static_cast<double>(filter.count()) / static_cast<double>(std::max<int64_t>(filter.dims[0], 1));
}

double work_of_window(const Node& node, std::span<const Operand>) {
  double size = 1;
  for (int64_t side : node.attrs.i64s("window")) size *= static_cast<double>(side);
  return size;
}

double work_of_sort(const Node& node, std::span<const Operand> in) {
  return std::log2(1 + static_cast<double>(in[0].dims[static_cast<size_t>(node.attrs.i64("axis"))]));
}

double work_of(const Node& node, std::span<const Operand> in, std::span<const Operand> out) {
  constexpr double kOfAnyNode = 256;
  double all = 0, largest = 0;
  for (const Operand& operand : in)
    if (operand) all += static_cast<double>(operand.count());
  for (const Operand& operand : out) {
    all += static_cast<double>(operand.count());
    largest = std::max(largest, static_cast<double>(operand.count()));
  }
  WorkFn work = node.attrs.info()->work;
  return kOfAnyNode + all + (work ? largest * work(node, in) : 0);
}

}  // namespace rlx
