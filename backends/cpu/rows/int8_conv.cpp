// SPDX-License-Identifier: Apache-2.0
// Rows for convolutions of 8-bit numbers and the ops fused behind them: filters that are resident are packed once, and
// others in every run.
#include "backends/cpu/gemm/int8_conv.h"

#include <algorithm>

#include "backends/cpu/rows/windows.h"

namespace rlx::cpu {

namespace {

constexpr std::string_view kFilters = "filters_8_bit";

Form form_of(const KernelQuery& query) {
  std::span<const Dim> w(query.type(1).dims);
  int64_t bytes = w[0].literal() * int8_filter_bytes(w[1].literal(), literal_count(w.subspan(2)));
  return {.layout = kFilters, .bytes = bytes};
}

Int8FilterPackArgs pack_args(const View& w, std::byte* packed) {
  Int8FilterPackArgs args;
  args.w = {w.as<uint8_t>(), w.dtype == DType::kI8};
  args.filters = w.dims[0];
  args.channels = w.dims[1];
  args.taps = *element_count(std::span<const int64_t>(w.dims).subspan(2));
  args.packed = packed;
  return args;
}

void encode_pack(const StepView& view, const Caps&, void* block, Launch& launch) {
  Int8FilterPackArgs args = pack_args(view.in[0], view.out[0].data);
  load(block, kPackInt8Filters, args, static_cast<double>(view.in[0].count()), launch);
}

// Does not depend on the sizes of x, because a part may be a piece of a row.
std::string_view refuse_conv(const KernelQuery& query) {
  std::span<const Dim> w(query.type(1).dims);
  if (w.size() < 3 || w.size() > 2 + kConvAxes) return "windows have more than three axes";
  for (const Dim& dim : w)
    if (!dim.is_literal()) return "the filters have no fixed size";
  for (size_t i : {4, 6})
    if (query.has(i) && query.type(i).rank() == 0) return "what is added is not a vector";
  const Attrs& attrs = query.node.attrs;
  ConvShape shape;
  shape.groups = attrs.i64("groups");
  shape.channels = w[1].literal();
  shape.filters = w[0].literal() / shape.groups;
  for (size_t i = 2; i < w.size(); i++)
    shape.axes[kConvAxes - w.size() + i] = {.size = 1,
                                            .out = 1 << 20,
                                            .taps = w[i].literal(),
                                            .stride = attrs.i64s("strides")[i - 2],
                                            .dilation = attrs.i64s("rhs_dilation")[i - 2],
                                            .lhs_dilation = attrs.i64s("lhs_dilation")[i - 2]};
  return fits_int8_conv(shape) ? "" : "windows reach too far";
}

std::string_view refuse_packed(const KernelQuery& query) {
  return query.resident(1) ? refuse_conv(query) : "the filters are neither a param nor a constant";
}

// Filters of the run are packed in scratch, which is bounded.
std::string_view refuse_variable(const KernelQuery& query) {
  constexpr double kMost = 1 << 28;
  double numbers = 1;
  for (const Dim& dim : query.type(1).dims) {
    if (!dim.is_literal()) return "the filters have no fixed size";
    numbers *= std::max(1.0, static_cast<double>(dim.literal()));
  }
  return numbers <= kMost ? refuse_conv(query) : "the filters are large";
}

Int8ConvArgs conv_args(const StepView& view) {
  enum { kX, kW, kXZero, kWZero, kAdd, kScale, kBias, kYScale, kYZero };
  const View &w_zero = view.in[kWZero], &scale = view.in[kScale];
  Int8ConvArgs args;
  set_shape(view, args);
  args.x = view.in[kX].as<const uint8_t>();
  args.y = view.out[0].as<uint8_t>();
  args.x_signed = view.in[kX].dtype == DType::kI8;
  args.w_signed = view.in[kW].dtype == DType::kI8;
  args.y_signed = view.out[0].dtype == DType::kI8;
  args.x_zero = data_or_null<const uint8_t>(view.in[kXZero]);
  args.w_zero = data_or_null<const uint8_t>(w_zero);
  args.w_zero_by_filter = w_zero && !w_zero.dims.empty();
  args.add = data_or_null<const int32_t>(view.in[kAdd]);
  args.scale = data_or_null<const float>(scale);
  args.scale_by_filter = scale && !scale.dims.empty();
  args.bias = data_or_null<const float>(view.in[kBias]);
  args.relu = view.node.attrs.flag("relu");
  args.y_scale = data_or_null<const float>(view.in[kYScale]);
  args.y_zero = data_or_null<const uint8_t>(view.in[kYZero]);
  join_places(args);
  return args;
}

double nanoseconds(const Caps& caps, const Int8ConvArgs& args) {
  const bool fills_tiles = caps.cpu.bytes == ByteProducts::kTiles && args.channels >= 32;
  return 200 + terms_of(args) / (args.channels < 4 ? 15 : fills_tiles ? 400 : 150);
}

void encode_packed(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  Int8ConvArgs args = conv_args(view);
  args.packed = view.in[1].as<const std::byte>();
  load(block, caps.int8_conv, args, nanoseconds(caps, args), launch);
}

void encode_variable(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  Int8FilterPackArgs pack = pack_args(view.in[1], view.scratch);
  load(block, kPackInt8Filters, pack, static_cast<double>(view.in[1].count()), launch);
  Int8ConvArgs args = conv_args(view);
  args.packed = view.scratch;
  load_after<Int8FilterPackArgs>(block, caps.int8_conv, args, nanoseconds(caps, args), launch);
}

// Filters have a fixed size.
size_t packed_scratch(const Node&, std::span<const Dims> upper) {
  std::span<const int64_t> w = upper[1];
  return static_cast<size_t>(w[0] * int8_filter_bytes(w[1], *element_count(w.subspan(2))));
}

}  // namespace

// Small scales may be denormal, so denormals are kept.
void add_int8_conv_rows(RowsByOp& by_op) {
  using Args = Int8ConvArgs;
  add(by_op, packer<Int8FilterPackArgs, kFilters>(encode_pack));
  add(by_op, loops<Args>(Op::kIntegerConv, "conv_8_bit_packed", refuse_packed, encode_packed).form(1, form_of));
  add(by_op, loops<Int8FilterPackArgs, Args>(Op::kIntegerConv, "conv_8_bit", refuse_variable, encode_variable)
                 .scratch(packed_scratch));
}

}  // namespace rlx::cpu
