// SPDX-License-Identifier: Apache-2.0
// The layouts of views in the buffer of their input (nullopt if they must be computed), and the axes that a reshape
// splits and merges.
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

// A reshape as a list of the shortest runs of axes with equal products: axes [from, from_end) become [to, to_end).
struct AxisRun {
  size_t from, from_end, to, to_end;
};
std::vector<AxisRun> reshape_runs(std::span<const Dim> from, std::span<const Dim> to);  // empty: there are no such runs

}  // namespace rlx
