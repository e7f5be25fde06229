// SPDX-License-Identifier: Apache-2.0
// Rows for conv and conv_bias_act over f32: as a product of packed filters and gathered windows, if a group has few
// channels, filter by filter, or, if x is dilated, from its elements to the places that read them.
#include "backends/cpu/gemm/conv.h"

#include <algorithm>

#include "backends/cpu/rows/windows.h"

namespace rlx::cpu {

namespace {

// ---- the packed form of w: [groups * filters, channels, taps] ----

constexpr std::string_view kFilters = "filters_f32";

Form form_of(const KernelQuery& query) {
  std::span<const Dim> dims(query.type(1).dims);
  int64_t groups = query.node.attrs.i64("groups");
  int64_t elements = packed_filters(groups, dims[0].literal() / groups, literal_count(dims.subspan(1)));
  return {.layout = kFilters, .bytes = elements * static_cast<int64_t>(sizeof(float)), .groups = groups};
}

void encode_pack(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View& w = view.in[0];
  FilterPackArgs args;
  args.w = w.as<LooseFloat>();
  args.groups = view.node.attrs.i64("groups");
  args.filters = w.dims[0] / args.groups;
  args.terms = *element_count(std::span<const int64_t>(w.dims).subspan(1));
  args.packed = view.out[0].as<float>();
  load(block, kPackFilters, args, static_cast<double>(w.count()) / 2, launch);
}

// ---- refusals ----

std::string_view refuse_any(const KernelQuery& query) {
  if (!all_f32(query)) return "takes f32 only";
  if (query.node.op == Op::kConvBiasAct && !fused_activation(query.node)) return "no kernel has this activation";
  return {};
}

std::string_view refuse_packed(const KernelQuery& query) {
  return query.resident(1) ? refuse_any(query) : "the filters are neither a param nor a constant";
}

// Takes groups that would leave most of a register tile empty.
std::string_view refuse_direct(const KernelQuery& query) {
  constexpr int64_t kFew = 4;
  if (std::string_view why = refuse_any(query); !why.empty()) return why;
  std::span<const Dim> w(query.type(1).dims);
  int64_t groups = query.node.attrs.i64("groups");
  if (groups == 1) return "there is one group";
  for (const Dim& dim : w)
    if (!dim.is_literal()) return "the filters have no fixed size";
  if (w[0].literal() / groups > kFew || w[1].literal() > kFew) return "a group has many channels";
  auto last = [&](std::string_view attr) { return query.node.attrs.i64s(attr).back(); };
  ConvAxis axis{.taps = w.back().literal(),
                .stride = last("strides"),
                .dilation = last("rhs_dilation"),
                .lhs_dilation = last("lhs_dilation")};
  return fits_direct(axis) ? "" : "windows reach too far";
}

// Whether, with packed filters, other loops would leave most lanes empty or multiply mostly zeros.
bool suits_scatter(const KernelQuery& query) {
  constexpr int64_t kLongRow = 8, kManyTaps = 128, kManyChannels = 32, kFewInVolume = 4, kFewFilters = 16;
  const Attrs& attrs = query.node.attrs;
  std::span<const Dim> w(query.type(1).dims);
  int64_t filters = w[0].literal() / attrs.i64("groups"), channels = w[1].literal();
  if (std::ranges::any_of(attrs.i64s("lhs_dilation"), [](int64_t apart) { return apart > kMaxDirectStride; }))
    return true;
  bool has_dense_rows = attrs.i64s("rhs_dilation").back() == 1;  // of the window
  if (has_dense_rows && w.back().literal() >= kLongRow) return true;
  if (has_dense_rows && attrs.i64s("lhs_dilation").back() <= 2 && filters <= kFewFilters) return true;
  if (literal_count(w.subspan(2)) > kManyTaps) return true;
  return channels >= kManyChannels * filters || (w.size() == 2 + kConvAxes && filters <= kFewInVolume);
}

std::string_view refuse_scattered(const KernelQuery& query) {
  if (std::string_view why = refuse_any(query); !why.empty()) return why;
  const Attrs& attrs = query.node.attrs;
  auto is_one = [](int64_t step) { return step == 1; };
  if (!std::ranges::all_of(attrs.i64s("strides"), is_one)) return "windows are more than one apart";
  if (std::ranges::all_of(attrs.i64s("lhs_dilation"), is_one)) return "x is not dilated";
  return !query.resident(1) || suits_scatter(query) ? "" : "windows are short";
}

// ---- encoding ----

ConvArgs conv_args(const StepView& view) {
  const View &x = view.in[0], &w = view.in[1], &y = view.out[0];
  ConvArgs args;
  args.x = x.as<float>();
  args.w = w.as<float>();
  args.y = y.as<float>();
  set_shape(view, args);
  if (view.node.op == Op::kConvBiasAct) {
    set_ending(view.node, args.epilogue);
    args.epilogue.row_bias = data_or_null<const float>(view.in[2]);
    args.epilogue.residual = data_or_null<const float>(view.in[3]);
  }
  return args;
}

// Planes are copied for each channel, which a single tap would not repay.
constexpr int64_t kSomeTaps = 2;

// Places of a plane from which those along the lanes fill the strips well.
constexpr int64_t kManyPlaces = 256;

// With few filters most lanes would be empty. They are used even so for a dilated x if planes do not fit: a product
// would gather mostly zeros.
const Loop<ConvArgs>& packed_loop(const ConvFns& fns, const ConvArgs& args) {
  constexpr int64_t kFewFilters = 8;
  bool is_dilated = false;
  for (const ConvAxis& axis : args.axes) is_dilated = is_dilated || axis.lhs_dilation > 1;
  if (fits_points(args) && args.places() >= kManyPlaces) return fns.points;
  if (args.filters > kFewFilters) return fits_lanes(args) ? fns.lanes : fns.product;
  if (args.taps() < kSomeTaps && !is_dilated) return fns.product;
  return fits_planes(args) ? fns.planes : fits_lanes(args) ? fns.lanes : fns.product;
}

void encode_packed(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  ConvArgs args = conv_args(view);
  args.is_packed = true;
  join_places(args);
  load(block, packed_loop(caps.fns.conv, args), args, 200 + terms_of(args) / 50, launch);
}

void encode_product(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  ConvArgs args = conv_args(view);
  join_places(args);
  bool planes = args.taps() >= kSomeTaps && fits_planes(args);  // a product would gather more than it multiplies
  load(block, planes ? caps.fns.conv.planes : caps.fns.conv.product, args, 200 + terms_of(args) / 25, launch);
}

void encode_scattered(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  ConvArgs args = conv_args(view);
  if (!fits_scatter(args)) return encode_product(view, caps, block, launch);
  double products = static_cast<double>(args.items * args.groups * args.filters) * static_cast<double>(args.plane()) *
                    static_cast<double>(args.terms());
  load(block, caps.fns.conv.scatter, args, 200 + products / 15, launch);
}

void encode_direct(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  ConvArgs args = conv_args(view);
  const ConvFns& fns = caps.fns.conv;
  bool planes = fits_planes(args);
  const Loop<ConvArgs>& loop = fits_depthwise(args) ? fns.depthwise : planes ? fns.planes : fns.direct;
  load(block, loop, args, 200 + terms_of(args) / (planes ? 15 : 5), launch);
}

}  // namespace

void add_conv_rows(RowsByOp& by_op) {
  add(by_op, packer<FilterPackArgs, kFilters>(encode_pack));
  for (Op op : {Op::kConv, Op::kConvBiasAct}) {
    add(by_op, native<ConvArgs>(op, "conv_f32_scattered", refuse_scattered, encode_scattered));
    add(by_op, native<ConvArgs>(op, "conv_f32_direct", refuse_direct, encode_direct));
    add(by_op, native<ConvArgs>(op, "conv_f32_packed", refuse_packed, encode_packed).form(1, form_of));
    add(by_op, native<ConvArgs>(op, "conv_f32", refuse_any, encode_product));
  }
}

}  // namespace rlx::cpu
