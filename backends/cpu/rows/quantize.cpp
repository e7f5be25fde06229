// SPDX-License-Identifier: Apache-2.0
// Rows for quantisation between f32 and numbers of 8 or 16 bits. Halves, and scales per block, run by the definition.
#include "backends/cpu/kernels/quantize.h"

#include <algorithm>
#include <array>

#include "backends/cpu/kernels/collapse.h"
#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

// Bits of the integers that kernels take; 0 for other dtypes.
int bits_of(DType dtype) {
  if (dtype == DType::kI8 || dtype == DType::kU8) return 8;
  return dtype == DType::kI16 || dtype == DType::kU16 ? 16 : 0;
}

std::string_view refuse_affine(const KernelQuery& query, DType real, DType integer) {
  if (real != DType::kF32 || query.type(1).dtype != DType::kF32) return "takes f32 only";
  if (bits_of(integer) == 0) return "takes numbers of 8 or 16 bits only";
  return query.node.attrs.i64("block_size") > 0 ? "takes no blocks of scales" : "";
}

std::string_view refuse_quantize(const KernelQuery& query) {
  return refuse_affine(query, query.type(0).dtype, query.node.out[0].dtype);
}

std::string_view refuse_dequantize(const KernelQuery& query) {
  return refuse_affine(query, query.node.out[0].dtype, query.type(0).dtype);
}

// Divides x into rows with one scale each, or one for each of their elements.
void set_rows(const StepView& view, DType integer, AffineRows& args) {
  const View &x = view.in[0], &scale = view.in[1];
  args.bits = bits_of(integer);
  args.is_signed = dtypes::S.has(integer);
  args.scale = scale.as<const float>();
  args.zero = data_or_null<const std::byte>(view.in[2]);
  args.rows = 1;
  args.n = x.count();
  if (scale.dims.empty()) return;
  auto axis = static_cast<size_t>(view.node.attrs.i64("axis"));
  args.n = 1;
  for (size_t i = axis + 1; i < x.dims.size(); i++) args.n *= x.dims[i];
  args.channels = x.dims[axis];
  args.by_element = args.n == 1;
  if (args.by_element) std::swap(args.n, args.channels);
  for (size_t i = 0; i < axis; i++) args.rows *= x.dims[i];
  if (!args.by_element) args.rows *= args.channels;
}

void encode_quantize(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  QuantizeArgs args;
  set_rows(view, view.out[0].dtype, args);
  args.x = view.in[0].as<const float>();
  args.y = view.out[0].as<std::byte>();
  load(block, caps.fns.quantize.quantize, args, 50 + 0.3 * static_cast<double>(view.in[0].count()), launch);
}

void encode_dequantize(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  DequantizeArgs args;
  set_rows(view, view.in[0].dtype, args);
  args.x = view.in[0].as<const std::byte>();
  args.y = view.out[0].as<float>();
  load(block, caps.fns.quantize.dequantize, args, 50 + 0.2 * static_cast<double>(view.in[0].count()), launch);
}

void encode_dynamic(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  DynamicQuantizeArgs args;
  args.x = view.in[0].as<const float>();
  args.n = view.in[0].count();
  args.y = view.out[0].as<uint8_t>();
  args.scale = view.out[1].as<float>();
  args.zero = view.out[2].as<uint8_t>();
  double work = 50 + 0.25 * static_cast<double>(args.n);
  if (range_pieces(args.n).count == 1) return load(block, caps.fns.quantize.dynamic, args, 2 * work, launch);
  args.ranges = reinterpret_cast<ValueRange*>(view.scratch);
  load(block, caps.fns.quantize.ranges, args, work, launch);
  load_after<DynamicQuantizeArgs>(block, caps.fns.quantize.dynamic, args, work, launch);
}

size_t dynamic_scratch(const Node&, std::span<const Dims> upper) {
  return largest_count(upper[0]) < 2 * kRangePiece ? 0 : kManyParts * sizeof(ValueRange);
}

// ---- pairs ----

std::string_view refuse_pair(const KernelQuery& query) {
  for (size_t i : {0, 1})
    if (bits_of(query.type(i).dtype) != 8) return "takes numbers of 8 bits only";
  if (bits_of(query.node.out[0].dtype) != 8) return "makes numbers of 8 bits only";
  if (query.node.out[0].rank() > kMaxPairDims) return "has too many dims";
  for (size_t i = 2; i < 8; i++)
    if (query.type(i).rank() != 0) return "takes one scale and zero point for each";
  return {};
}

QuantizedPairArgs::Numbers numbers_of(const View& scale, const View& zero) {
  return {scale.as<const float>(), zero.as<const uint8_t>(), dtypes::S.has(zero.dtype)};
}

void set_pair_dims(const StepView& view, QuantizedPairArgs& args) {
  const Dims& dims = view.out[0].dims;
  std::copy(dims.begin(), dims.end(), args.dims);
  set_strides(view.in[0], dims, args.a_strides);
  set_strides(view.in[1], dims, args.b_strides);
  args.rank = collapse(static_cast<int>(dims.size()), args.dims, std::array{&args.a_strides[0], &args.b_strides[0]});
}

void encode_pair(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  QuantizedPairArgs args;
  args.a = view.in[0].as<const uint8_t>();
  args.b = view.in[1].as<const uint8_t>();
  args.out = view.out[0].as<uint8_t>();
  args.n = view.out[0].count();
  args.of_a = numbers_of(view.in[2], view.in[3]);
  args.of_b = numbers_of(view.in[4], view.in[5]);
  args.of_out = numbers_of(view.in[6], view.in[7]);
  args.is_product = view.node.attrs.flag("product");
  set_pair_dims(view, args);
  load(block, caps.fns.quantize.pair, args, 50 + 0.2 * static_cast<double>(args.n), launch);
}

// ---- tables ----

void encode_table(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  ByteTableArgs args;
  args.x = view.in[0].as<const uint8_t>();
  args.table = view.in[1].as<const uint8_t>();
  args.y = view.out[0].as<uint8_t>();
  args.n = view.out[0].count();
  const QuantizeFns& fns = caps.fns.quantize;
  bool permutes = caps.cpu.permutes_bytes && fns.table_by_permutes.parts != nullptr;
  double each = permutes ? 0.03 : 0.4;
  load(block, permutes ? fns.table_by_permutes : fns.table, args, 50 + each * static_cast<double>(args.n), launch);
}

std::string_view refuse_table(const KernelQuery& query) {
  return bits_of(query.type(0).dtype) == 8 && bits_of(query.type(1).dtype) == 8 ? "" : "takes numbers of 8 bits only";
}

}  // namespace

// Small scales may be denormal, so denormals are kept.
void add_quantize_rows(RowsByOp& by_op) {
  add(by_op, loops<QuantizeArgs>(Op::kQuantizeLinear, "quantize_f32", refuse_quantize, encode_quantize));
  add(by_op, loops<DequantizeArgs>(Op::kDequantizeLinear, "dequantize_f32", refuse_dequantize, encode_dequantize));
  add(by_op, loops<DynamicQuantizeArgs, DynamicQuantizeArgs>(Op::kDynamicQuantizeLinear, "dynamic_quantize_f32",
                                                             nullptr, encode_dynamic)
                 .scratch(dynamic_scratch));
  add(by_op, loops<QuantizedPairArgs>(Op::kQuantizedPair, "quantized_pair", refuse_pair, encode_pair).in_place(0b11));
  add(by_op, loops<ByteTableArgs>(Op::kByteTable, "byte_table", refuse_table, encode_table).in_place(1));
}

}  // namespace rlx::cpu
