// SPDX-License-Identifier: Apache-2.0
// Axes and broadcasting. Only checked_axis interprets an axis below 0.
#include <algorithm>

#include "base/dim.h"

namespace rlx {

Status wrong_rank(std::string_view what, std::string_view expected, size_t got) {
  std::string message = expected == "0" ? format("{} must be a scalar, not of rank {}", what, got)
                                        : format("{} needs rank {}, not {}", what, expected, got);
  return Status(Code::kShape, std::move(message))
      .with("value", what)
      .with("expected", format("rank {}", expected))
      .with("got", format("rank {}", got));
}

Result<int64_t> checked_axis(int64_t axis, size_t rank) {
  auto limit = static_cast<int64_t>(rank);
  if (rank == 0)
    return Status(Code::kRange, "a scalar has no axis " + std::to_string(axis))
        .with("expected", "rank 1 or more")
        .with("got", std::to_string(axis));
  int64_t normal = axis < 0 ? axis + limit : axis;
  if (normal >= 0 && normal < limit) return normal;
  return Status(Code::kRange, format("axis {} is outside rank {}", axis, rank))
      .with("expected", format("{}..{}", -limit, limit - 1))
      .with("got", std::to_string(axis));
}

Result<std::vector<Dim>> broadcast(std::span<const Dim> a, std::span<const Dim> b, AgreeFn agree) {
  std::vector<Dim> dims(std::max(a.size(), b.size()));
  for (size_t i = 0; i < dims.size(); i++) {  // from the right
    Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1), y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    Dim& dim = dims[dims.size() - 1 - i];
    if (x.is(1) || y.is(1) || x == y)
      dim = x.is(1) ? y : x;
    else
      dim = RLX_TRY(agree(x, y));
  }
  return dims;
}

Result<std::vector<Dim>> stretch(std::span<const Dim> from, std::span<const Dim> to, AgreeFn agree) {
  if (from.size() > to.size())
    return Status(Code::kShape, format("rank {} does not broadcast to rank {}", from.size(), to.size()))
        .with("expected", format("rank {} or less", to.size()))
        .with("got", format("rank {}", from.size()));
  std::vector<Dim> dims(to.begin(), to.end());
  std::span<Dim> last = std::span(dims).last(from.size());
  for (size_t i = 0; i < from.size(); i++)
    if (!from[i].is(1) && !(from[i] == last[i])) last[i] = RLX_TRY(agree(last[i], from[i]));
  return dims;
}

}  // namespace rlx
