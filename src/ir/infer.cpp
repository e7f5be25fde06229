// SPDX-License-Identifier: Apache-2.0
// What inference functions share: axes, equal dims, broadcasting (semantics.md S2-S5).
#include <algorithm>

#include "ir/graph.h"

namespace rlx {

Status InferArgs::fail(Code code, std::string message) const {
  return Status(code, std::move(message));
}

Result<int64_t> InferArgs::axis(int64_t axis, size_t rank, int64_t extra) const {
  int64_t limit = static_cast<int64_t>(rank) + extra;
  int64_t normal = axis < 0 ? axis + limit : axis;
  if (normal < 0 || normal >= limit)
    return Status(Code::kRange, format("axis {} is outside rank {}", axis, limit))
        .with("expected", format("{}..{}", -limit, limit - 1))
        .with("got", std::to_string(axis));
  return normal;
}

Result<std::vector<int64_t>> InferArgs::axes(const std::vector<int64_t>& list, size_t rank) const {
  std::vector<int64_t> normal;
  for (int64_t item : list) normal.push_back(RLX_TRY(axis(item, rank)));
  std::sort(normal.begin(), normal.end());
  if (std::adjacent_find(normal.begin(), normal.end()) != normal.end())
    return Status(Code::kInvalidArgument, "an axis is named twice");
  return normal;
}

Result<Dim> InferArgs::same(const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return a;
  Status status = graph.add_guard({Guard::kEqual, a, b, where});
  if (!status.ok())
    return Status(Code::kShape, format("{}: {} is not {}", what, b, a))
        .with("expected", a.text())
        .with("got", b.text());
  return b.is_literal() ? b : a;
}

Status InferArgs::require_le(const Dim& a, const Dim& b, std::string_view what) {
  Status status = graph.add_guard({Guard::kLessEqual, a, b, where});
  if (status.ok()) return status;
  return Status(Code::kShape, format("{}: {} is above {}", what, a, b))
      .with("expected", "at most " + b.text())
      .with("got", a.text());
}

Result<Dim> InferArgs::divided(const Dim& a, const Dim& b, std::string_view what) {
  if (auto exact = exact_div(a, b)) return *exact;
  if (b.is(0)) return Status(Code::kShape, std::string(what) + ": division by a size of 0");
  Dim quotient = floor_div(a, b);
  RLX_TRY(same(a, quotient * b, what));
  return quotient;
}

Dim InferArgs::not_negative(const Dim& dim) const {
  return graph.range(dim).lo >= 0 ? dim : max(Dim(0), dim);
}

Result<std::vector<Dim>> InferArgs::broadcast(std::span<const Dim> a, std::span<const Dim> b) {
  size_t rank = std::max(a.size(), b.size());
  std::vector<Dim> dims(rank);
  for (size_t i = 0; i < rank; i++) {  // from the right
    Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    Dim y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    Dim& dim = dims[rank - 1 - i];
    if (x.is(1) || y.is(1)) {
      dim = x.is(1) ? y : x;
      continue;
    }
    auto agreed = same(x, y, "do not broadcast");
    if (!agreed.ok()) {
      std::vector<Dim> left(a.begin(), a.end()), right(b.begin(), b.end());
      return std::move(agreed).status().prefixed(text_of(left) + " and " + text_of(right) + " ");
    }
    dim = *agreed;
  }
  return dims;
}

}  // namespace rlx
