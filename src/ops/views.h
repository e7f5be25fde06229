// SPDX-License-Identifier: Apache-2.0
// What views do to axes: how their results lie in the buffer of their input (nullopt where they have to be computed),
// and which axes a reshape splits and merges.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/view.h"

namespace rlx {

std::optional<Strided> view_same(const ViewArgs& args);
std::optional<Strided> view_reshape(const ViewArgs& args);
std::optional<Strided> view_transpose(const ViewArgs& args);
std::optional<Strided> view_broadcast_to(const ViewArgs& args);
std::optional<Strided> view_slice(const ViewArgs& args);

// A reshape as the shortest runs of axes with equal products, in order: axes [from, from_end) become [to, to_end).
struct AxisRun {
  size_t from, from_end, to, to_end;
};
std::vector<AxisRun> reshape_runs(std::span<const Dim> from, std::span<const Dim> to);  // empty: there are no such runs

}  // namespace rlx
