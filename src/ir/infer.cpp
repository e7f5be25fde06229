// SPDX-License-Identifier: Apache-2.0
// What inference functions share: equal dims, exact quotients, broadcasting (semantics.md S2-S4).
#include "ir/graph.h"

namespace rlx {

Status InferArgs::fail(Code code, std::string message) const {
  return Status(code, std::move(message));
}

std::string InferArgs::where() const {
  return std::string(info.name) + (name.empty() ? "" : " '" + std::string(name) + "'");
}

Result<Dim> InferArgs::same(const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return a;
  Status status = graph.add_guard({Guard::kEqual, a, b, where()});
  if (!status.ok())
    return Status(Code::kShape, format("{}: {} is not {}", what, b, a))
        .with("expected", a.text())
        .with("got", b.text());
  return b.is_literal() ? b : a;
}

Status InferArgs::require_le(const Dim& a, const Dim& b, std::string_view what) {
  Status status = graph.add_guard({Guard::kLessEqual, a, b, where()});
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
  auto dims = rlx::broadcast(a, b, [&](const Dim& x, const Dim& y) { return same(x, y, "do not broadcast"); });
  if (dims.ok()) return dims;
  std::vector<Dim> left(a.begin(), a.end()), right(b.begin(), b.end());
  return std::move(dims).status().prefixed(text_of(left) + " and " + text_of(right) + " ");
}

}  // namespace rlx
