// SPDX-License-Identifier: Apache-2.0
// Folds a scale and a shift per channel, which params give (as a batch norm does after training), into the weights of
// the product before it. The prologue then computes the new weights.
#include "rules/products.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

// Weights of fewer bits would round once more.
static bool is_foldable(const Match& m, Expr y) {
  return (y.dtype() == DType::kF32 || y.dtype() == DType::kF64) && m.has_shape(y);
}

// batch_norm(x, gamma, beta, mean, var) -> x * scale + shift, where all but x are resident
static Expr batch_norm_of_params(const Match& m) {
  Expr x = m.in(0);
  if (!is_foldable(m, x) || x.rank() < 2 || m.is_resident(x)) return Expr();
  for (size_t i = 1; i < 5; i++)
    if (!m.is_resident(m.in(i)) || m.in(i).dtype() != x.dtype()) return Expr();
  std::vector<Dim> dims(x.rank() - 1, 1);
  dims[0] = x.dim(1);
  Expr scale = m.in(1) / sqrt(m.in(4) + m.attrs().f64("eps")), shift = m.in(2) - m.in(3) * scale;
  return x * reshape(scale, dims) + reshape(shift, dims);
}

// A product of resident weights whose channels may be changed: nothing follows it yet.
struct Channels {
  Expr product, numbers;  // one for each channel
};

static Channels channels(const Match& m) {
  for (size_t i : {0, 1}) {
    Expr y = m.in(i), v = m.in(1 - i);
    bool is_linear = m.is(y, Op::kLinear), can_end = is_linear || m.is(y, Op::kConvBiasAct);
    if ((!can_end && !m.is(y, Op::kConv)) || !is_foldable(m, y) || !m.is_resident(v)) continue;
    if (can_end && !has_no_ending(m.node(y).attrs)) continue;
    if (m.is(y, Op::kConvBiasAct) && m.input(y, 3)) continue;  // a residual comes in between
    Expr w = m.input(y, 1);
    if (!m.is_resident(w) || w.dtype() != y.dtype()) continue;
    if (Expr numbers = is_linear ? column_vector(y, v) : channel_vector(m, y, v)) return {y, numbers};
  }
  return {};
}

// conv(x, w) * s -> conv(x, w * s), and so for linear
static Expr scaled_channels(const Match& m) {
  auto [y, s] = channels(m);
  if (!y || !m.take(y)) return Expr();
  Expr w = m.input(y, 1), bias = m.input(y, 2);
  if (element_count(w.dims()).is(0)) return m.miss("a sum of no products, times infinity, is not 0");
  std::vector<Dim> along(w.rank(), 1);
  bool by_column = m.is(y, Op::kLinear) && !m.node(y).attrs.flag("transpose_w");
  along[by_column ? 1 : 0] = s.dim(0);
  Expr scaled = w * reshape(s, along);
  return (bias ? m.rebuilt(y, {{1, scaled}, {2, bias * s}}) : m.rebuilt(y, {{1, scaled}}))[0];
}

// conv_bias_act(x, w, b) + c -> conv_bias_act(x, w, b + c), and so for linear
static Expr shifted_channels(const Match& m) {
  auto [y, c] = channels(m);
  Expr bias = y ? m.input(y, 2) : Expr();
  if (!bias || !m.take(y)) return Expr();
  return m.rebuilt(y, {{2, bias + c}})[0];
}

void add_channel_rules(RuleSet& rules) {
  rules.add(close, "batch_norm_of_params", {Op::kBatchNorm}, batch_norm_of_params);
  const Reach products{.needs = {Op::kLinear, Op::kConv, Op::kConvBiasAct}};
  rules.add(close, "scaled_channels", {Op::kMul}, scaled_channels, products);
  rules.add(close, "shifted_channels", {Op::kAdd}, shifted_channels, products);
}

}  // namespace rlx
