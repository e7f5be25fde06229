// SPDX-License-Identifier: Apache-2.0
// Rows for products of 8-bit numbers: with a resident right side, packed once, and of two sides of a run.
#include "backends/cpu/gemm/integer.h"

#include "backends/cpu/rows/sides.h"

namespace rlx::cpu {

namespace {

bool is_eight_bit(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8;
}

std::string_view refuse_integer(const KernelQuery& query) {
  if (!is_eight_bit(query.type(0).dtype) || !is_eight_bit(query.type(1).dtype)) return "takes 8-bit numbers only";
  if (query.node.out[0].rank() > kMaxBatchRank + 2) return "too many batch axes";
  return {};
}

bool flips(const KernelQuery& query, std::string_view side) {
  return query.node.op == Op::kMatmul && query.node.attrs.flag(side);
}

std::string_view refuse_packed(const KernelQuery& query) {
  if (std::string_view why = refuse_integer(query); !why.empty()) return why;
  if (!query.resident(1)) return "the right side is no param or constant";
  if (query.type(1).rank() != 2) return "the right side is no single matrix";
  return flips(query, "transpose_a") ? "the left side is transposed" : "";
}

// ---- the packed form ----

struct Matrix {
  int64_t k, n, k_stride, n_stride;
};

Matrix matrix_of(const KernelQuery& query) {
  int64_t first = query.type(1).dims[0].literal(), second = query.type(1).dims[1].literal();
  if (flips(query, "transpose_b")) return {second, first, 1, second};
  return {first, second, second, 1};
}

std::string panel_name(const KernelQuery& query) {
  return flips(query, "transpose_b") ? "panels_8_bit_transposed" : "panels_8_bit";
}

size_t panel_bytes(const KernelQuery& query) {
  Matrix matrix = matrix_of(query);
  return static_cast<size_t>(integer_packed_bytes(matrix.k, matrix.n));
}

void pack_panels(const KernelQuery& query, const std::byte* source, std::byte* form) {
  Matrix matrix = matrix_of(query);
  EightBit b{reinterpret_cast<const uint8_t*>(source), query.type(1).dtype == DType::kI8};
  pack_integers(b, matrix.k, matrix.n, matrix.k_stride, matrix.n_stride, form);
}

constexpr Form kPanels = {panel_name, panel_bytes, pack_panels};

// ---- the products ----

void set_operands(const StepView& view, IntegerProductArgs& args) {
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

double nanoseconds(const IntegerProductArgs& args) {
  return product_nanoseconds(static_cast<double>(args.batches() * args.m), static_cast<double>(args.n),
                             static_cast<double>(args.k) / 2);
}

// All rows of a against one matrix.
void encode_packed(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View &a = view.in[0], &y = view.out[0];
  IntegerProductArgs args;
  set_operands(view, args);
  args.packed = view.in[1].as<const std::byte>();
  args.a = a.as<const uint8_t>();
  args.y = y.as<uint8_t>();
  args.n = args.y_row = y.dims.back();
  args.k = args.a_row = a.dims.back();
  args.m = 1;
  for (size_t i = 0; i + 1 < a.dims.size(); i++) args.m *= a.dims[i];
  load(block, caps.integer_product, args, nanoseconds(args), launch);
}

void encode_strided(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  IntegerProductArgs args;
  set_operands(view, args);
  bool has_flags = view.node.op == Op::kMatmul;
  set_sides<uint8_t>(view, args, has_flags && view.node.attrs.flag("transpose_a"),
                     has_flags && view.node.attrs.flag("transpose_b"));
  load(block, caps.integer_product, args, 2 * nanoseconds(args), launch);
}

}  // namespace

void add_integer_rows(RowsByOp& by_op) {
  for (Op op : {Op::kMatmul, Op::kIntegerMatmul}) {
    add(by_op, native<IntegerProductArgs>(op, "matmul_8_bit_packed", refuse_packed, encode_packed).form(1, kPanels));
    add(by_op, native<IntegerProductArgs>(op, "matmul_8_bit", refuse_integer, encode_strided).strided(0b11));
  }
}

}  // namespace rlx::cpu
