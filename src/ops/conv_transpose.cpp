// SPDX-License-Identifier: Apache-2.0
// Convolutions that are expressed by other convolutions: transposed ones, gradients, and those along a sequence.
#include "ops/expr.h"
#include "ops/fused_act.h"

namespace rlx {

// Weights with input and output channels exchanged in each group, and the kernel reversed.
static Expr flipped_weights(Expr w, int64_t groups) {
  auto per_group = divided(w, w.dim(0), groups);
  if (!per_group) return {};
  std::vector<Dim> split = w.dims(), merged = w.dims();
  split[0] = *per_group;
  split.insert(split.begin(), Dim(groups));
  merged[0] = Dim(groups) * w.dim(1), merged[1] = *per_group;
  Axes perm = trailing_axes(0, split.size());
  std::swap(perm[1], perm[2]);
  Expr y = reshape(transpose(reshape(w, split), perm), merged);
  return y.builder().op(Op::kFlip, {y}, {{"axes", trailing_axes(2, y.rank())}});
}

static bool suits(Expr x, Expr w) {
  bool suits = x.rank() == w.rank() && x.rank() >= 3 && x.rank() <= 5;
  if (!suits)
    refuse(x, Code::kShape, format("x and w need rank 3, 4 or 5, both the same, not {} and {}", x.rank(), w.rank()));
  return suits;
}

Outputs decompose_conv_transpose(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], w = in[1], bias = in[2];
  if (!suits(x, w)) return {};
  const Axes &strides = attrs.i64s("strides"), &dilation = attrs.i64s("dilation"), &more = attrs.i64s("output_padding");
  int64_t groups = attrs.i64("groups");
  if (!require(x, Guard::kEqual, x.dim(1), w.dim(0))) return {};
  Expr flipped = flipped_weights(w, groups);
  if (!flipped) return {};
  std::vector<Dim> lo, hi;
  for (size_t i = 0; i < strides.size(); i++) {
    if (more[i] >= std::max(strides[i], dilation[i]))
      return refuse(x, Code::kOption, "'output_padding' must be below the stride or the dilation");
    Dim reach = Dim(dilation[i]) * (w.dims()[2 + i] - Dim(1));
    lo.push_back(reach - attrs.dims("pad_lo")[i]);
    hi.push_back(reach - attrs.dims("pad_hi")[i] + Dim(more[i]));
  }
  Expr y = in.builder().op(
      Op::kConv, {x, flipped},
      {{"lhs_dilation", strides}, {"rhs_dilation", dilation}, {"pad_lo", lo}, {"pad_hi", hi}, {"groups", groups}});
  if (!y.valid()) return {};
  if (!bias) return {y};
  if (!require_shape(bias, "bias", {y.dim(1)})) return {};
  std::vector<Dim> dims(y.rank() - 1, 1);
  dims[0] = y.dim(1);
  return {y + reshape(bias, dims)};
}

// ---- gradients of a convolution ----

// Attributes of the convolution whose gradient this is.
struct Forward {
  const Axes &strides, &spread, &dilation;
  const std::vector<Dim>&lo, &hi;
  int64_t groups;
  explicit Forward(const Attrs& attrs)
      : strides(attrs.i64s("strides")),
        spread(attrs.i64s("lhs_dilation")),
        dilation(attrs.i64s("rhs_dilation")),
        lo(attrs.dims("pad_lo")),
        hi(attrs.dims("pad_hi")),
        groups(attrs.i64("groups")) {}
};

// How far n elements reach with `step` from one to the next; infer_conv says it in the same form.
static Dim spread_size(const Graph& graph, const Dim& n, int64_t step) {
  return graph.not_negative((n - Dim(1)) * Dim(step) + Dim(1));
}

Outputs decompose_conv_input_grad(const Inputs& in, const Attrs& attrs) {
  Expr dy = in[0], w = in[1];
  if (!suits(dy, w)) return {};
  Forward conv(attrs);
  const std::vector<Dim>& shape = attrs.dims("input_shape");
  if (shape.size() != conv.strides.size()) return refuse(dy, Code::kOption, "'input_shape' needs one entry per axis");
  Expr flipped = flipped_weights(w, conv.groups);
  if (!flipped) return {};
  std::vector<Dim> lo, hi;
  for (size_t i = 0; i < shape.size(); i++) {
    const Dim &k = w.dims()[2 + i], &o = dy.dims()[2 + i];
    lo.push_back(Dim(conv.dilation[i]) * (k - Dim(1)) - conv.lo[i]);
    // The result has the size floor((hi + lo + spread of dy - ...) / spread) + 1. That is the shape, 0 included.
    Dim reach = (shape[i] - Dim(1)) * Dim(conv.spread[i]) + Dim(1);
    hi.push_back(reach - spread_size(in.builder().graph(), o, conv.strides[i]) + conv.lo[i]);
  }
  return {in.builder().op(Op::kConv, {dy, flipped},
                          {{"strides", conv.spread},
                           {"lhs_dilation", conv.strides},
                           {"rhs_dilation", conv.dilation},
                           {"pad_lo", lo},
                           {"pad_hi", hi},
                           {"groups", conv.groups}})};
}

Outputs decompose_conv_weight_grad(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], dy = in[1];
  if (!suits(x, dy)) return {};
  Forward conv(attrs);
  const std::vector<Dim>& kernel = attrs.dims("kernel");
  if (kernel.size() != conv.strides.size()) return refuse(x, Code::kOption, "'kernel' needs one entry per axis");
  auto channels = divided(x, x.dim(1), conv.groups);
  if (!channels) return {};
  std::vector<Dim> split = x.dims(), merged = x.dims(), lo, hi;
  split[1] = *channels;
  split.insert(split.begin() + 1, Dim(conv.groups));
  merged[0] = *channels, merged[1] = Dim(conv.groups) * x.dim(0);
  Axes perm = trailing_axes(0, split.size()), swapped = trailing_axes(0, x.rank());
  perm[0] = 2, perm[2] = 0;  // [N, g, C] as [C, g, N]
  std::swap(swapped[0], swapped[1]);
  for (size_t i = 0; i < kernel.size(); i++) {
    const Dim& o = dy.dims()[2 + i];
    lo.push_back(conv.lo[i]);
    hi.push_back(Dim(conv.dilation[i]) * (kernel[i] - Dim(1)) + Dim(conv.strides[i]) * (o - Dim(1)) + Dim(1) -
                 spread_size(in.builder().graph(), x.dims()[2 + i], conv.spread[i]) - conv.lo[i]);
  }
  Expr y = in.builder().op(Op::kConv, {reshape(transpose(reshape(x, split), perm), merged), transpose(dy, swapped)},
                           {{"strides", conv.dilation},
                            {"lhs_dilation", conv.spread},
                            {"rhs_dilation", conv.strides},
                            {"pad_lo", lo},
                            {"pad_hi", hi},
                            {"groups", conv.groups}});
  return {transpose(y, swapped)};
}

// ---- along a sequence ----

Outputs decompose_causal_conv1d(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0], w = in[1], bias = in[2], state = in[3];
  if (x.rank() != 3 || w.rank() != 2) return refuse(x, Code::kShape, "x needs rank 3, w rank 2");
  if (!w.dim(0).is_literal()) return refuse(w, Code::kShape, "the number of channels must be a literal");
  Dim channels = w.dim(0), kept = w.dim(1) - Dim(1), steps = x.dim(1);
  if (!require(w, Guard::kLessEqual, 1, w.dim(1))) return {};
  std::array before{x.dim(0), kept, channels};
  if (!require_shape(x, "x", {x.dim(0), steps, channels})) return {};
  if (state && !require_shape(state, "state", before)) return {};
  if (!state) state = broadcast_to(scalar_like(x, 0), {before.begin(), before.end()});
  Expr all = concat(std::array{state, x}, 1);
  Expr y = b.op(Op::kConv, {transpose(all, {0, 2, 1}), reshape(w, {channels, 1, w.dim(1)})},
                {{"groups", channels.literal()}});
  y = transpose(y, {0, 2, 1});
  if (bias && !require_shape(bias, "bias", {channels})) return {};
  if (bias) y = y + bias;
  return {apply_act(y, attrs.str("act")), slice(all, 1, steps, steps + kept)};
}

}  // namespace rlx
