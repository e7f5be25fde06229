// SPDX-License-Identifier: Apache-2.0
// Rows for products of 8-bit numbers: with a resident right side, which is packed once, and of two variable sides.
#include "backends/cpu/gemm/int8.h"

#include "backends/cpu/rows/sides.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_int8(const KernelQuery& query) {
  if (!is_eight_bit(query.type(0).dtype) || !is_eight_bit(query.type(1).dtype)) return "takes 8-bit numbers only";
  if (query.node.out[0].rank() > kMaxBatchRank + 2) return "too many batch axes";
  return {};
}

bool flips(const KernelQuery& query, std::string_view side) {
  return query.node.op == Op::kMatmul && query.node.attrs.flag(side);
}

std::string_view refuse_packed(const KernelQuery& query) {
  if (std::string_view why = refuse_int8(query); !why.empty()) return why;
  if (!query.resident(1)) return "the right side is neither a param nor a constant";
  if (query.type(1).rank() != 2) return "the right side is not a single matrix";
  return flips(query, "transpose_a") ? "the left side is transposed" : "";
}

// ---- the packed form ----

constexpr std::string_view kPanels = "panels_8_bit";

Form form_of(const KernelQuery& query) {
  bool transposed = flips(query, "transpose_b");
  std::span<const Dim> dims(query.type(1).dims);
  int64_t k = dims[transposed ? 1 : 0].literal(), n = dims[transposed ? 0 : 1].literal();
  return {.layout = kPanels, .bytes = int8_packed_bytes(k, n), .transposed = transposed};
}

void encode_pack(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View& b = view.in[0];
  int64_t first = b.dims[0], second = b.dims[1];
  Int8PackArgs args;
  args.b = {b.as<uint8_t>(), b.dtype == DType::kI8};
  bool transposed = view.node.attrs.flag("transposed");
  args.k = transposed ? second : first;
  args.n = transposed ? first : second;
  args.k_stride = transposed ? 1 : second;
  args.n_stride = transposed ? second : 1;
  args.packed = view.out[0].data;
  load(block, kPackInt8, args, static_cast<double>(args.k * args.n), launch);
}

// ---- the products ----

void set_operands(const StepView& view, Int8ProductArgs& args) {
  args.a_signed = view.in[0].dtype == DType::kI8;
  args.b_signed = view.in[1].dtype == DType::kI8;
  if (view.node.op == Op::kMatmul) return;
  const View &b_zero = view.in[3], &scale = view.in[4];
  args.a_zero = data_or_null<const int32_t>(view.in[2]);
  args.b_zero = data_or_null<const int32_t>(b_zero);
  args.b_zero_by_column = b_zero && !b_zero.dims.empty();
  args.scale = data_or_null<const float>(scale);
  args.scale_by_column = scale && !scale.dims.empty();
  args.bias = data_or_null<const float>(view.in[5]);
}

// Products of bytes that take as long as one of f32.
double nanoseconds(const Caps& caps, const Int8ProductArgs& args) {
  constexpr double kAtOnce[] = {2, 4, 10};  // by pairs, fours, tiles
  double k = static_cast<double>(args.k) / kAtOnce[static_cast<int>(caps.cpu.bytes)];
  return product_nanoseconds(caps, static_cast<double>(args.batches()), static_cast<double>(args.m),
                             static_cast<double>(args.n), k);
}

// All rows of a times one matrix.
void encode_packed(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View &a = view.in[0], &y = view.out[0];
  Int8ProductArgs args;
  set_operands(view, args);
  args.packed = view.in[1].as<const std::byte>();
  args.a = a.as<const uint8_t>();
  args.y = y.as<uint8_t>();
  args.n = args.y_row = y.dims.back();
  args.k = args.a_row = a.dims.back();
  args.m = 1;
  for (size_t i = 0; i + 1 < a.dims.size(); i++) args.m *= a.dims[i];
  load(block, caps.int8_product, args, nanoseconds(caps, args), launch);
}

void encode_strided(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  Int8ProductArgs args;
  set_operands(view, args);
  bool has_flags = view.node.op == Op::kMatmul;
  set_sides<uint8_t>(view, args, has_flags && view.node.attrs.flag("transpose_a"),
                     has_flags && view.node.attrs.flag("transpose_b"));
  load(block, caps.int8_product, args, 2 * nanoseconds(caps, args), launch);
}

}  // namespace

void add_int8_rows(RowsByOp& by_op) {
  add(by_op, packer<Int8PackArgs, kPanels>(encode_pack));
  for (Op op : {Op::kMatmul, Op::kIntegerMatmul}) {
    add(by_op, native<Int8ProductArgs>(op, "matmul_8_bit_packed", refuse_packed, encode_packed).form(1, form_of));
    add(by_op, native<Int8ProductArgs>(op, "matmul_8_bit", refuse_int8, encode_strided).strided(0b11));
  }
}

}  // namespace rlx::cpu
