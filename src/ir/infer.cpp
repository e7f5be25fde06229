// SPDX-License-Identifier: Apache-2.0
// What inference functions share: equal dims, exact quotients, broadcasting (semantics.md S2-S4).
#include "base/shortened.h"
#include "ir/graph.h"

namespace rlx {

Status InferArgs::fail(Code code, std::string message) const {
  return Status(code, std::move(message));
}

std::string InferArgs::where() const {
  return std::string(info.name) + (name.empty() ? "" : " '" + std::string(name) + "'");
}

Status InferArgs::require(Guard::Relation relation, const Dim& a, const Dim& b) {
  return graph.add_guard({relation, a, b, where(), true});
}

Result<Dim> InferArgs::same(const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return a;
  Status status = require(Guard::kEqual, a, b);
  if (status.code() == Code::kUnsupported) return std::move(status).prefixed(format("{}: ", what));
  if (!status.ok())
    return Status(Code::kShape, format("{}: {} is not {}", what, shortened(b.text()), shortened(a.text())))
        .with("expected", shortened(a.text()))
        .with("got", shortened(b.text()));
  return b.is_literal() ? b : a;
}

Status InferArgs::require_le(const Dim& a, const Dim& b, std::string_view what) {
  Status status = require(Guard::kLessEqual, a, b);
  if (status.ok()) return status;
  if (status.code() == Code::kUnsupported) return std::move(status).prefixed(format("{}: ", what));
  return Status(Code::kShape, format("{}: {} is above {}", what, shortened(a.text()), shortened(b.text())))
      .with("expected", "at most " + shortened(b.text()))
      .with("got", shortened(a.text()));
}

Result<Dim> InferArgs::divided(const Dim& a, const Dim& b, std::string_view what) {
  if (auto exact = exact_div(a, b)) return *exact;
  if (b.is(0)) return Status(Code::kShape, std::string(what) + ": division by a size of 0");
  Dim quotient = floor_div(a, b);
  RLX_TRY(same(a, quotient * b, what));
  return quotient;
}

Result<std::vector<Dim>> InferArgs::broadcast(std::span<const Dim> a, std::span<const Dim> b) {
  auto dims = rlx::broadcast(a, b, [&](const Dim& x, const Dim& y) { return same(x, y, "do not broadcast"); });
  if (dims.ok()) return dims;
  std::vector<Dim> left(a.begin(), a.end()), right(b.begin(), b.end());
  return std::move(dims).status().prefixed(shortened(text_of(left)) + " and " + shortened(text_of(right)) + " ");
}

}  // namespace rlx
