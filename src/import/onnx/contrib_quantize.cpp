// SPDX-License-Identifier: Apache-2.0
// Node kinds of the domain com.microsoft on quantised numbers: the op is computed on their real values, and its result
// is quantised again.
#include "import/onnx/contrib.h"
#include "import/onnx/quantize.h"
#include "import/onnx/softmax.h"

namespace rlx::onnx {

namespace {

// The values of the three inputs from i on: numbers, scale, zero point. A list of scales is one of the last axis.
Expr real(Call& call, size_t i) {
  Expr x = call.in(i), scale = per_tensor(call.in(i + 1)), zero = per_tensor(call.in(i + 2));
  NamedAttrs attrs;
  if (x.valid() && scale.valid() && scale.rank() > 0) attrs.emplace_back("axis", static_cast<int64_t>(x.rank()) - 1);
  return call.op("dequantize_linear", {x, scale, zero}, attrs);
}

// Quantises the result, with the scale and zero point of inputs i and i + 1. Without a zero point it has the dtype of
// the first input.
void give(Call& call, Expr y, size_t i, DType dtype) {
  NamedAttrs attrs;
  Expr zero = per_tensor(call.in(i + 1));
  if (!zero) attrs.emplace_back("dtype", dtype);
  call.out(0, call.op("quantize_linear", {y, per_tensor(call.in(i)), zero}, attrs));
}

void build_binary(Call& call) {
  give(call, call.op(call.kind().op, {real(call, 0), real(call, 3)}), 6, call.type(0).dtype);
}

void build_unary(Call& call) {
  NamedAttrs attrs;
  if (call.kind().op == "leaky_relu") attrs.emplace_back("alpha", call.f64("alpha", 0.01));
  give(call, call.op(call.kind().op, {real(call, 0)}, attrs), 3, call.type(0).dtype);
}

// The attribute `opset` is that of ai.onnx, which decides the meaning of `axis`.
void build_softmax(Call& call) {
  Expr x = real(call, 0);
  if (!x.valid()) return;
  int64_t axis = call.axis(call.i64("axis", -1), x.rank());
  bool is_old = call.i64("opset", 13) < 13;
  Expr y = is_old ? softmax_from_axis(call, "softmax", x, axis) : call.op("softmax", {x}, {{"axis", axis}});
  give(call, y, 3, call.type(0).dtype);
}

void build_concat(Call& call) {
  std::vector<Expr> parts;
  for (size_t i = 2; i + 1 < call.inputs(); i += 3) parts.push_back(real(call, i));
  if (parts.empty() || !parts[0].valid()) return call.fail(Code::kData, "there is nothing to join");
  int64_t axis = call.axis(call.i64("axis", 0), parts[0].rank());
  give(call, concat(parts, axis), 0, call.type(2).dtype);
}

void build_where(Call& call) {
  give(call, where(call.in(0), real(call, 1), real(call, 4)), 7, call.type(1).dtype);
}

// Channels last, or second.
void build_global_average(Call& call) {
  bool is_last = call.i64("channels_last", 0) != 0;
  Expr x = real(call, 0);
  if (!x.valid() || x.rank() < 3) return call.fail(Code::kShape, "X must have rank 3 or more");
  Axes axes = trailing_axes(is_last ? 1 : 2, x.rank() - (is_last ? 1 : 0));
  give(call, mean(x, axes), 3, call.type(0).dtype);
}

void build_reduce_mean(Call& call) {
  Expr x = real(call, 0);
  if (!x.valid()) return;
  std::vector<int64_t> given = call.i64s("axes");
  Axes axes = given.empty() ? trailing_axes(0, x.rank()) : call.axes(given, x.rank());
  Expr y = call.op("mean", {x}, {{"axes", axes}, {"keep_dims", call.i64("keepdims", 1)}});
  give(call, y, 3, call.type(0).dtype);
}

// ---- products ----

Expr product(Expr a, Expr a_zero, Expr b, Expr b_zero, Expr scale) {
  return cast(matmul(centred(a, a_zero), centred(b, b_zero)), DType::kF32) * scale;
}

// The result has the dtype of the scales, which may be halves; it is computed in f32.
void build_integer_to_float(Call& call) {
  Expr scale = per_tensor(call.in(2)), b_scale = per_tensor(call.in(3));
  Expr wide = cast(scale, DType::kF32) * cast(b_scale, DType::kF32);
  Expr y = product(call.in(0), call.in(4), call.in(1), call.in(5), wide);
  if (call.has(6)) y = y + cast(call.in(6), DType::kF32);
  if (y.valid()) call.out(0, cast(y, scale.dtype()));
}

void build_dynamic_matmul(Call& call) {
  Expr in[] = {call.in(0)};
  Outputs a = call.ops("dynamic_quantize_linear", in);
  if (a.size() < 3 || !a[0].valid()) return;
  Expr y = product(a[0], a[2], call.in(1), call.in(3), a[1] * per_tensor(call.in(2)));
  call.out(0, call.has(4) ? y + call.in(4) : y);
}

// a and its zero point, b and its zero point: i32.
void build_mul_integer(Call& call) {
  call.out(0, centred(call.in(0), call.in(1)) * centred(call.in(2), call.in(3)));
}

DType accumulator(bool is_unsigned) {
  return is_unsigned ? DType::kU32 : DType::kI32;
}

void build_sum_integer(Call& call) {
  Expr x = call.in(0);
  if (!x.valid()) return;
  std::vector<int64_t> given = call.i64s("axes");
  Axes axes = given.empty() ? trailing_axes(0, x.rank()) : call.axes(given, x.rank());
  call.out(0,
           reduce(cast(x, accumulator(x.dtype() == DType::kU8)), "sum", axes, KeepDims{call.i64("keepdims", 1) != 0}));
}

void build_matmul_integer16(Call& call) {
  Expr a = call.in(0), b = call.in(1), y = matmul(cast(a, DType::kI32), cast(b, DType::kI32));
  call.out(0, y.valid() ? cast(y, accumulator(a.dtype() == DType::kU16 && b.dtype() == DType::kU16)) : y);
}

// Inputs: a, its scale and zero point; b, its scale and zero point; an i32 bias; the scale and zero point of the
// result. Without the last two the result is f32.
void build_q_gemm(Call& call) {
  Expr a = centred(call.in(0), call.in(2)), b = call.in(3), b_zero = per_tensor(call.in(5)),
       b_scale = per_tensor(call.in(4));
  bool turns_b = call.i64("transB", 0) != 0;
  if (turns_b && b_zero && b_zero.valid() && b_zero.rank() == 1) b_zero = unsqueeze(b_zero, 1);
  Expr total = matmul(a, centred(b, b_zero), {.a = call.i64("transA", 0) != 0, .b = turns_b});
  if (call.has(6)) total = total + call.in(6);
  Expr y = cast(total, DType::kF32) * (per_tensor(call.in(1)) * b_scale);
  if (double alpha = call.f64("alpha", 1); alpha != 1) y = y * alpha;
  if (!call.has(7)) return call.out(0, y);
  give(call, y, 7, call.type(0).dtype);
}

// Embeddings of words, positions and segments, summed and normalised: numbers from input 2 on, their scales from 8 on,
// their zero points from 13 on.
void build_q_embed(Call& call) {
  Expr ids = call.in(0), segments = call.in(1), mask = call.in(7);
  if (!ids.valid() || ids.rank() != 2) return call.fail(Code::kShape, "input_ids must have rank 2");
  auto value = [&](size_t i, Expr x) {
    return call.op("dequantize_linear", {x, per_tensor(call.in(8 + i)), per_tensor(call.in(13 + i))});
  };
  Builder& b = call.builder();
  Expr total =
      value(0, gather(call.in(2), ids, 0)) + value(1, gather(call.in(3), iota(b, {ids.dim(1)}, 0, DType::kI64), 0));
  if (segments && call.has(4)) total = total + value(2, gather(call.in(4), segments, 0));
  call.out(0, call.op("layer_norm", {total, value(3, call.in(5)), value(4, call.in(6))},
                      {{"eps", call.f64("epsilon", 1e-12)}}));
  call.out(1, ones_of_rows(mask, ids));
}

// ---- rows of a table of few bits, in blocks along its last axis ----

// A table that is packed in bytes.
struct PackedTable {
  int64_t bits;  // of each number; 0: the table is not packed

  // Bytes as the numbers that they hold, `count` of them along the last axis: the last byte may have room for more.
  Expr unpacked(Call& call, Expr x, const Dim& count) const {
    if (bits == 0 || bits == 8) return x;
    return slice(call.op("unpack_bits", {x}, {{"bits", bits}}), -1, 0, count);
  }
  Dim width(const Dim& bytes) const { return bits == 0 ? bytes : bytes * Dim(8 / bits); }
  // The number that stands for 0 if there are no zero points.
  double zero() const { return bits == 0 ? 0 : static_cast<double>(int64_t{1} << (bits - 1)); }
};

// x with one axis at the place of another.
Expr with_axis_at(Expr x, int64_t from, int64_t to) {
  if (!x.valid() || from == to) return x;
  Axes perm = trailing_axes(0, x.rank());
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return transpose(x, perm);
}

void build_gather_blocks(Call& call) {
  int64_t bits = packed_bits(call, "bits", 4), block = call.i64("block_size", 128);
  Expr table = call.in(0), index = call.in(1), scale = call.in(2), zero = call.in(3);
  if (!table.valid() || !index.valid() || !scale.valid()) return;
  if (scale.rank() != table.rank() || (zero && zero.valid() && zero.rank() != table.rank()))
    return call.fail(Code::kShape, "the table, its scales and its zero points must have one rank");
  int64_t axis = call.axis(call.i64("gather_axis", 0), table.rank()),
          blocked = call.axis(call.i64("quantize_axis", 1), table.rank()),
          last = static_cast<int64_t>(table.rank()) - 1;
  PackedTable packed{table.dtype() == DType::kU8 && call.bits(0) == 0 ? bits : 0};
  if (blocked == axis || (packed.bits != 0 && blocked != last))
    return call.fail(Code::kUnsupported, "blocks along the axis that is gathered, or along another than that of bytes");
  // What is gathered has the blocks along its last axis until the end.
  int64_t place = blocked < axis ? blocked : blocked + static_cast<int64_t>(index.rank()) - 1;
  last += static_cast<int64_t>(index.rank()) - 1;
  auto gathered = [&](Expr x) { return with_axis_at(gather(x, index, axis), place, last); };
  Dim blocks = scale.dim(blocked), width = packed.width(table.dim(blocked));
  Expr rows = gathered(table), scales = gathered(scale);
  rows = cast(packed.unpacked(call, rows, width), scale.dtype());
  if (!rows.valid() || block < 1 || !(blocks == floor_div(width + Dim(block - 1), Dim(block))))
    return call.fail_of_sizes("an axis that is not as many blocks as there are scales");
  std::vector<Dim> flat = rows.dims(), whole = flat, split = flat;
  whole.back() = blocks * Dim(block), split.back() = blocks, split.push_back(block);
  std::vector<Dim> none(flat.size(), 0), behind = none;
  behind.back() = whole.back() - width;  // the last block may be short
  if (!behind.back().is(0)) rows = call.op("pad", {rows}, {{"lo", none}, {"hi", behind}});
  Expr zeros = scalar_like(rows, packed.zero());
  if (zero) zeros = unsqueeze(cast(packed.unpacked(call, gathered(zero), blocks), scale.dtype()), -1);
  Expr y = reshape((reshape(rows, split) - zeros) * unsqueeze(scales, -1), whole);
  call.out(0, with_axis_at(slice(y, -1, 0, width), last, place));
}

constexpr NodeKind kKinds[] = {
    microsoft("QLinearAdd", build_binary, "add"),
    microsoft("QLinearMul", build_binary, "mul"),
    microsoft("QLinearSigmoid", build_unary, "sigmoid"),
    microsoft("QLinearLeakyRelu", build_unary, "leaky_relu"),
    microsoft("QLinearSoftmax", build_softmax),
    microsoft("QLinearConcat", build_concat),
    microsoft("QLinearWhere", build_where),
    microsoft("QLinearGlobalAveragePool", build_global_average),
    microsoft("QLinearReduceMean", build_reduce_mean),
    microsoft("MatMulIntegerToFloat", build_integer_to_float),
    microsoft("DynamicQuantizeMatMul", build_dynamic_matmul),
    microsoft("MulInteger", build_mul_integer),
    microsoft("ReduceSumInteger", build_sum_integer),
    microsoft("MatMulInteger16", build_matmul_integer16),
    microsoft("QGemm", build_q_gemm),
    microsoft("QEmbedLayerNormalization", build_q_embed),
    microsoft("GatherBlockQuantized", build_gather_blocks),
};

}  // namespace

std::span<const NodeKind> contrib_quantize_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
