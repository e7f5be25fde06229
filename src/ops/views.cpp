// SPDX-License-Identifier: Apache-2.0
#include "ops/views.h"

namespace rlx {

std::optional<Strided> view_same(const ViewArgs& args) {
  return args.input;
}

// Matches new dims with old ones from the left: equal ones pass, one old dim may split into several new ones.
std::optional<Strided> view_reshape(const ViewArgs& args) {
  const auto& [from, to, attrs, input] = args;
  if (is_dense(from, input)) return Strided{dense_strides(to), input.shift};
  std::vector<Dim> strides;
  size_t i = 0;
  for (size_t j = 0; j < to.size();) {
    if (to[j].is(1)) {
      strides.push_back(0);
      j++;
      continue;
    }
    while (i < from.size() && from[i].is(1)) i++;
    if (i == from.size()) return std::nullopt;
    size_t end = j;
    Dim product = 1;
    while (end < to.size() && !(product == from[i])) product *= to[end++];
    if (!(product == from[i])) return std::nullopt;
    Dim inner = 1;
    std::vector<Dim> split(end - j);
    for (size_t k = end; k-- > j;) {
      split[k - j] = inner * input.strides[i];
      inner *= to[k];
    }
    strides.insert(strides.end(), split.begin(), split.end());
    j = end;
    i++;
  }
  while (i < from.size() && from[i].is(1)) i++;
  if (i != from.size()) return std::nullopt;
  return Strided{std::move(strides), input.shift};
}

std::optional<Strided> view_transpose(const ViewArgs& args) {
  Strided result{{}, args.input.shift};
  for (int64_t axis : args.attrs.i64s("perm")) result.strides.push_back(args.input.strides[static_cast<size_t>(axis)]);
  return result;
}

std::optional<Strided> view_broadcast_to(const ViewArgs& args) {
  const auto& [from, to, attrs, input] = args;
  Strided result{std::vector<Dim>(to.size()), input.shift};
  size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); i++)
    if (!from[i].is(1) || to[lead + i].is(1)) result.strides[lead + i] = input.strides[i];
  return result;
}

// A reversed slice is computed, because no kernel takes a stride below 0.
std::optional<Strided> view_slice(const ViewArgs& args) {
  const auto& starts = args.attrs.dims("starts");
  const auto &axes = args.attrs.i64s("axes"), &steps = args.attrs.i64s("steps");
  Strided result = args.input;
  for (size_t i = 0; i < starts.size(); i++) {
    auto at = static_cast<size_t>(axes[i]);
    if (steps[i] < 0) return std::nullopt;
    Dim start = starts[i];
    if (start.is_literal() && start.literal() < 0) start += args.from[at];
    if (!start.is(0)) start = min(max(start, 0), args.from[at]);  // semantics.md S8
    result.shift += start * args.input.strides[at];
    result.strides[at] *= steps[i];
  }
  return result;
}

std::vector<AxisRun> reshape_runs(std::span<const Dim> from, std::span<const Dim> to) {
  std::vector<AxisRun> runs;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    AxisRun run{i, i, j, j};
    Dim left = 1, right = 1;
    if (i < from.size()) left = from[i++];
    if (j < to.size()) right = to[j++];
    // Grow the side that divides the other until both products agree.
    while (!(left == right)) {
      if (i < from.size() && (exact_div(right, left) || j == to.size()))
        left *= from[i++];
      else if (j < to.size())
        right *= to[j++];
      else
        return {};
    }
    run.from_end = i, run.to_end = j;
    runs.push_back(run);
  }
  return runs;
}

}  // namespace rlx
