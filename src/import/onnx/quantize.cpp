// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds on quantised numbers. A product of 8-bit numbers is built as a product of integers after subtracting
// the zero points.
#include "import/onnx/quantize.h"

#include "import/onnx/call.h"
#include "import/onnx/e2m1.h"
#include "import/onnx/matmul.h"
#include "import/onnx/tensor.h"

namespace rlx::onnx {

namespace {

std::optional<DType> dtype_attr(Call& call, const char* name) {
  int64_t type = call.i64(name, 0);
  if (type == 0) return std::nullopt;
  auto dtype = dtype_of(static_cast<int32_t>(type));
  if (dtype.ok()) return *dtype;
  call.fail(dtype.status().code(), std::string(dtype.status().message()));
  return std::nullopt;
}

NamedAttrs affine_attrs(Call& call, Expr x, Expr scale) {
  NamedAttrs attrs{{"block_size", call.i64("block_size", 0)}};
  int64_t axis = call.i64("axis", 1);
  if (x.valid() && scale.valid() && scale.rank() > 0) attrs.emplace_back("axis", call.axis(axis, x.rank()));
  return attrs;
}

// x over its scale, which may be one for a block; the zero point is 0.
void quantize_to_e2m1(Call& call, Expr x, Expr scale, NamedAttrs attrs) {
  if (!x.valid() || !scale.valid()) return;
  attrs.emplace_back("out_dtype", DType::kF32);
  Expr ones = broadcast_to(call.builder().scalar(DType::kI8, 1), x.dims());
  Expr scales = call.op("dequantize_linear", {ones, cast(scale, DType::kF32), Expr(&call.builder(), kAbsent)}, attrs);
  call.out(0, to_e2m1(call, cast(x, DType::kF32) / scales));
  call.set_bits(0, 4);
}

void build_quantize(Call& call) {
  Expr x = call.in(0), scale = per_tensor(call.in(1)), zero = per_tensor(call.in(2));
  NamedAttrs attrs = affine_attrs(call, x, scale);
  auto to = dtype_attr(call, "output_dtype"), precision = dtype_attr(call, "precision");
  int64_t saturate = call.i64("saturate", 1);
  if (!zero) attrs.emplace_back("dtype", to.value_or(DType::kU8));
  if (zero && zero.valid() && to && *to != zero.dtype())
    return call.fail(Code::kDtype, format("'output_dtype' is {}, the zero point {}", *to, zero.dtype()));
  int bits = zero ? call.bits(2) : to ? bits_of(static_cast<int32_t>(call.i64("output_dtype", 0))) : 0;
  if (is_e2m1(zero && zero.valid() ? zero.dtype() : to.value_or(DType::kU8), bits)) {
    if (!zero) attrs.pop_back();
    return quantize_to_e2m1(call, x, scale, attrs);
  }
  attrs.emplace_back("saturate", saturate);
  if (!is_float(x.dtype())) x = cast(x, DType::kF32);
  if (precision) x = cast(x, *precision), scale = cast(scale, *precision);
  Expr y = call.op("quantize_linear", {x, scale, zero}, attrs);
  if (bits != 0 && y.valid()) {  // clamped to the range of the bits
    bool has_sign = y.dtype() == DType::kI8;
    double most = (1 << (has_sign ? bits - 1 : bits)) - 1;
    y = minimum(maximum(y, has_sign ? -most - 1 : 0), most);
  }
  call.out(0, y);
  call.set_bits(0, bits);
}

void build_dequantize(Call& call) {
  Expr x = call.in(0), scale = per_tensor(call.in(1)), zero = per_tensor(call.in(2));
  NamedAttrs attrs = affine_attrs(call, x, scale);
  if (auto to = dtype_attr(call, "output_dtype")) attrs.emplace_back("out_dtype", *to);
  call.out(0, call.op("dequantize_linear", {x, scale, zero}, attrs));
}

void build_dynamic_quantize(Call& call) {
  Expr in[] = {call.in(0)};
  Outputs y = call.ops("dynamic_quantize_linear", in);
  for (size_t i = 0; i < 3 && i < y.size(); i++) call.out(i, y[i]);
}

// ---- products ----

// A vector as one along an axis of a value of this rank; a scalar stays one.
Expr along(Expr x, size_t axis, size_t rank) {
  x = per_tensor(x);
  if (!x || !x.valid() || x.rank() != 1) return x;
  std::vector<Dim> dims(rank, Dim(1));
  if (axis < rank) dims[axis] = x.dim(0);
  return reshape(x, dims);
}

// x as i32, minus its zero point, which may have one number for each index of an axis.
Expr centred_along(Expr x, Expr zero, size_t axis) {
  if (!x.valid()) return x;
  Expr wide = cast(x, DType::kI32);
  return zero ? wide - cast(along(zero, axis, x.rank()), DType::kI32) : wide;
}

// The product of a and b, each minus its zero point: one number, or one for each row of a and each column of b.
Expr integer_product(Expr a, Expr a_zero, Expr b, Expr b_zero) {
  size_t row = a.valid() && a.rank() > 1 ? a.rank() - 2 : 0, column = b.valid() && b.rank() > 0 ? b.rank() - 1 : 0;
  return matmul(centred_along(a, a_zero, row), centred_along(b, b_zero, column));
}

// round(total * scale) + zero, clamped to the dtype of zero.
Expr requantized(Call& call, Expr total, Expr scale, Expr zero) {
  Expr real = cast(total, DType::kF32) * cast(scale, DType::kF32);
  Expr one = call.builder().scalar(DType::kF32, 1);
  return call.op("quantize_linear", {real, one, per_tensor(zero)});
}

void build_matmul_integer(Call& call) {
  auto product = [&](Expr a, Expr b) { return integer_product(a, call.in(2), b, call.in(3)); };
  call.out(0, matmul_with_vectors(call.in(0), call.in(1), product));
}

// a, its scale and zero point, b, its scale and zero point, the scale and zero point of the result
void build_q_matmul(Call& call) {
  auto f32 = [](Expr x) { return cast(x, DType::kF32); };
  auto product = [&](Expr a, Expr b) {
    Expr total = integer_product(a, call.in(2), b, call.in(5));
    if (!total.valid()) return total;
    size_t rank = total.rank();
    Expr scale =
        f32(along(call.in(1), rank - 2, rank)) * f32(along(call.in(4), rank - 1, rank)) / f32(per_tensor(call.in(6)));
    return requantized(call, total, scale, call.in(7));
  };
  call.out(0, matmul_with_vectors(call.in(0), call.in(3), product));
}

constexpr NodeKind kKinds[] = {
    {.op_type = "QuantizeLinear", .build = build_quantize, .per_channel = 0b110},
    {.op_type = "DequantizeLinear", .build = build_dequantize, .per_channel = 0b110},
    {.op_type = "QuantizeLinear", .build = build_quantize, .domain = "com.microsoft", .per_channel = 0b110},
    {.op_type = "DequantizeLinear", .build = build_dequantize, .domain = "com.microsoft", .per_channel = 0b110},
    {"DynamicQuantizeLinear", build_dynamic_quantize},
    {"MatMulInteger", build_matmul_integer},
    {"QLinearMatMul", build_q_matmul},
};

}  // namespace

std::span<const NodeKind> quantize_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
