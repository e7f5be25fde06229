// SPDX-License-Identifier: Apache-2.0
// Comparisons and tests: each composite is its formula.
#include <cstring>

#include "ops/expr.h"

namespace rlx {

Outputs decompose_ne(const Inputs& in, const Attrs&) {
  return {logical_not(equal(in[0], in[1]))};
}
Outputs decompose_gt(const Inputs& in, const Attrs&) {
  return {less(in[1], in[0])};
}
Outputs decompose_ge(const Inputs& in, const Attrs&) {
  return {less_equal(in[1], in[0])};
}

Outputs decompose_bit_not(const Inputs& in, const Attrs&) {
  Builder& b = in.builder();
  if (in[0].dtype() == DType::kBool) return {logical_not(in[0])};
  auto ones = Tensor::create(in[0].dtype(), {});
  if (!ones.ok()) return {b.fail(std::move(ones).status())};
  std::memset(ones->data(), 0xff, ones->bytes());
  return {exclusive_or(in[0], b.constant(*ones))};
}

Outputs decompose_is_nan(const Inputs& in, const Attrs&) {
  return {not_equal(in[0], in[0])};
}

Outputs decompose_is_inf(const Inputs& in, const Attrs& attrs) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Expr x = in[0], positive = equal(x, kInf), negative = equal(x, -kInf);
  if (attrs.flag("pos") && attrs.flag("neg")) return {logical_or(positive, negative)};
  if (attrs.flag("pos")) return {positive};
  return {attrs.flag("neg") ? negative : less(x, x)};  // x < x: false everywhere
}

Outputs decompose_is_finite(const Inputs& in, const Attrs&) {
  return {less(abs(in[0]), std::numeric_limits<double>::infinity())};
}

}  // namespace rlx
