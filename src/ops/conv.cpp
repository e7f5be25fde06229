// SPDX-License-Identifier: Apache-2.0
// Convolution, for any number of spatial axes: sums over the window, position by position.
#include "ops/contraction.h"
#include "ops/eval.h"
#include "ops/expr.h"
#include "ops/fused_act.h"

namespace rlx {

struct ConvAttrs {
  const std::vector<int64_t>&strides, &spread, &dilation;  // lhs_dilation, rhs_dilation
  const std::vector<Dim>&lo, &hi;
  explicit ConvAttrs(const Attrs& attrs)
      : strides(attrs.i64s("strides")),
        spread(attrs.i64s("lhs_dilation")),
        dilation(attrs.i64s("rhs_dilation")),
        lo(attrs.dims("pad_lo")),
        hi(attrs.dims("pad_hi")) {}
};

// ---- inference ----

static Result<DType> conv_dtype(InferArgs& args) {
  DType x = args.in[0]->dtype, w = args.in[1]->dtype;
  if (kEightBit.has(x) && kEightBit.has(w)) return DType::kI32;
  if (x == w && (is_float(x) || x == DType::kI32)) return x;
  return args
      .fail(Code::kDtype, "no convolution of " + std::string(name(x)) + " with weights of " + std::string(name(w)))
      .with("input", "w")
      .with("expected", name(x))
      .with("got", name(w));
}

Status infer_conv(InferArgs& args) {
  args.out[0].dtype = RLX_TRY(conv_dtype(args));
  const std::vector<Dim>&x = args.dims(0), &w = args.dims(1);
  if (x.size() < 3 || x.size() > 5) return wrong_rank("x", "3, 4 or 5", x.size());
  if (w.size() != x.size()) return wrong_rank("w", format("{}, that of x", x.size()), w.size());
  size_t axes = x.size() - 2;
  ConvAttrs conv(args.attrs);
  int64_t groups = args.attrs.i64("groups");
  RLX_TRY(args.same(x[1], w[1] * Dim(groups), "the channels of x, and those of w times the groups"));
  RLX_TRY(args.divided(w[0], groups, "the output channels over the groups"));
  args.out[0].dims = {x[0], w[0]};
  for (size_t i = 0; i < axes; i++) {
    Dim spread = args.not_negative((x[2 + i] - 1) * Dim(conv.spread[i]) + 1);
    Dim room = spread + conv.lo[i] + conv.hi[i] - Dim(conv.dilation[i]) * (w[2 + i] - 1) - 1;
    args.out[0].dims.push_back(args.not_negative(floor_div(room, conv.strides[i]) + 1));
  }
  return {};
}

// ---- eval ----

// Maps the position of an output and of a weight to that of an element of x.
struct Window {
  ConvAttrs conv;
  Dims lo, sizes, x_strides;

  // The offset in a channel of x, or -1: in the padding, or between the elements of a spread x.
  int64_t offset(const Dims& out, const Dims& tap) const {
    int64_t offset = 0;
    for (size_t i = 0; i < sizes.size(); i++) {
      int64_t at = out[i] * conv.strides[i] + tap[i] * conv.dilation[i] - lo[i];
      if (at < 0 || at % conv.spread[i] || at / conv.spread[i] >= sizes[i]) return -1;
      offset += at / conv.spread[i] * x_strides[i];
    }
    return offset;
  }
};

static Result<Window> window_of(const EvalArgs& args) {
  std::span<const int64_t> spatial = std::span<const int64_t>(args.in[0].dims).subspan(2);
  ConvAttrs conv(args.attrs);
  Dims lo;
  for (const Dim& dim : conv.lo) lo.push_back(RLX_TRY(evaluate(dim, args.sizes)));
  return Window{conv, lo, Dims(spatial), dense_strides(spatial)};
}

// One output: the sum over all channels and taps of a filter. `first`: the first channel of x that it reads. Zeros are
// not skipped, because 0 times an infinite weight is NaN.
template <class X, class W>
static Accumulator<X> sum_at(const Window& window, const Dims& place, const X* first, int64_t x_plane, const W* filter,
                             std::span<const int64_t> filter_dims) {
  int64_t channels = filter_dims[0], taps = *element_count(filter_dims.subspan(1));
  Accumulator<X> sum = 0;
  Odometer<0> tap(Dims(filter_dims.subspan(1)), {});
  for (int64_t k = 0; k < taps; k++, tap.next()) {
    int64_t at = window.offset(place, tap.index());
    for (int64_t c = 0; c < channels; c++) {
      Accumulator<X> read = at < 0 ? Accumulator<X>(0) : term<Accumulator<X>>(first[c * x_plane + at]);
      sum += read * term<Accumulator<X>>(filter[c * taps + k]);
    }
  }
  return sum;
}

template <class X, class W, class Out>
static void convolve(const EvalArgs& args, const Window& window) {
  const Operand &x = args.in[0], &w = args.in[1], &out = args.out[0];
  std::span<const int64_t> out_dims(out.dims), filter_dims = std::span<const int64_t>(w.dims).subspan(1);
  int64_t items = out_dims[0], filters = out_dims[1], channels = w.dims[1], x_channels = x.dims[1];
  int64_t per_group = filters / args.attrs.i64("groups");
  int64_t places = *element_count(out_dims.subspan(2)), weights = *element_count(filter_dims);
  int64_t x_plane = *element_count(std::span<const int64_t>(x.dims).subspan(2));
  for (int64_t item = 0; item < items; item++)
    for (int64_t filter = 0; filter < filters; filter++) {
      const X* first = x.as<X>() + (item * x_channels + filter / per_group * channels) * x_plane;
      Odometer<0> place(Dims(out_dims.subspan(2)), {});
      for (int64_t p = 0; p < places; p++, place.next())
        out.as<Out>()[(item * filters + filter) * places + p] =
            rounded<Out>(sum_at(window, place.index(), first, x_plane, w.as<W>() + filter * weights, filter_dims));
    }
}

Status eval_conv(EvalArgs& args) {
  Window window = RLX_TRY(window_of(args));
  DType x = args.in[0].dtype, w = args.in[1].dtype;
  if (kEightBit.has(x))
    visit<kEightBit>(
        x, [&]<class X>() { visit<kEightBit>(w, [&]<class W>() { convolve<X, W, int32_t>(args, window); }); });
  else
    visit<dtypes::F | DTypeSet{DType::kI32}>(x, [&]<class T>() { convolve<T, T, T>(args, window); });
  return {};
}

// ---- composites ----

Outputs decompose_conv_bias_act(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  NamedAttrs conv;
  for (const AttrDef& def : b.graph().info(Op::kConv).attrs)
    if (attrs.has(def.name)) conv.emplace_back(def.name, attrs.get(def.name));
  Expr y = b.op(Op::kConv, {in[0], in[1]}, conv), bias = in[2], residual = in[3];
  if (!y.valid()) return {y};
  if (bias && require_shape(bias, "bias", {y.dim(1)})) {
    std::vector<Dim> dims(y.rank() - 1, 1);
    dims[0] = y.dim(1);
    y = y + reshape(bias, dims);
  }
  if (residual && require_shape(residual, "residual", y.dims())) y = y + residual;
  return {apply_ending(y, attrs)};
}

}  // namespace rlx
