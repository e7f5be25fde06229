// SPDX-License-Identifier: Apache-2.0
#include "rules/products.h"

#include <cmath>

namespace rlx {

Expr column_vector(Expr y, Expr v) {
  std::vector<Dim> dims = v.dims();
  while (dims.size() > 1 && dims[0].is(1)) dims.erase(dims.begin());
  if (dims != std::vector<Dim>{y.dim(-1)}) return Expr();
  return v.rank() == 1 ? v : reshape(v, dims);
}

Expr channel_vector(const Match& m, Expr y, Expr v) {
  if (!m.has_shape(y) || y.rank() < 2) return Expr();
  if (is_half(y.dtype()) && !m.allows(close)) return Expr();  // what follows comes before rounding
  std::vector<Dim> per_channel(y.rank() - 1, Dim(1)), dims = v.dims();
  per_channel[0] = y.dim(1);
  if (dims.size() == y.rank() && dims[0].is(1)) dims.erase(dims.begin());
  return dims == per_channel ? reshape(v, {y.dim(1)}) : Expr();
}

bool has_no_ending(const Attrs& product) {
  return !has_act(product) && !product.has("lo") && !product.has("hi");
}

// clamp(y, lo, hi), max(y, lo), min(y, hi), for bounds that are numbers
static Ending bounds_of(const Match& m) {
  bool is_clamp = m.is(m.anchor(), Op::kClamp), is_max = m.is(m.anchor(), Op::kMax);
  size_t of = !is_clamp && m.splat(m.in(0)) ? 1 : 0;
  Expr lo = is_clamp ? m.in(1) : is_max ? m.in(1 - of) : Expr();
  Expr hi = is_clamp ? m.in(2) : is_max ? Expr() : m.in(1 - of);
  Ending ending{m.in(of), {}};
  for (auto [name, bound] : {std::pair{"lo", lo}, {"hi", hi}}) {
    if (!bound) continue;
    auto number = m.splat(bound);
    if (!number || !std::isfinite(*number)) return {};
    ending.attrs.emplace_back(name, *number);
  }
  return is_float(ending.of.dtype()) && m.has_shape(ending.of) ? ending : Ending();
}

Ending ending_of(const Match& m) {
  if (NamedAttrs act = act_attrs_of(m.node(m.anchor())); !act.empty()) return {m.in(0), act};
  for (Op op : {Op::kClamp, Op::kMax, Op::kMin})
    if (m.is(m.anchor(), op)) return bounds_of(m);
  return {};
}

std::vector<Op> ending_ops() {
  std::vector<Op> ops = activation_ops();
  ops.insert(ops.end(), {Op::kClamp, Op::kMax, Op::kMin});
  return ops;
}

bool may_end(const Attrs& product, const Ending& ending) {
  if (ending.attrs.empty() || product.has("hi")) return false;
  std::string_view first = ending.attrs[0].first;
  return first == "hi" || (!product.has("lo") && (first == "lo" || !has_act(product)));
}

Attrs ended(const Attrs& product, const Ending& ending) {
  Attrs attrs = product;
  for (const auto& [name, value] : ending.attrs) attrs = attrs.with(name, value);
  return attrs;
}

}  // namespace rlx
