// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of quantised numbers, and the rounding of quantisation-aware training.
#include <cmath>

#include "ops/expr.h"

namespace rlx {

// ---- integers ----

// One number, or one per channel, in a shape that broadcasts against `rank` axes with the channels at `axis`.
static Expr along_channels(Expr given, const char* what, const Dim& channels, size_t rank, size_t axis) {
  if (given.rank() == 0) return given;
  if (!require_shape(given, what, {channels})) return given;
  std::vector<Dim> dims(rank - axis, 1);
  dims[0] = channels;
  return reshape(given, dims);
}

// x - zp as i32.
static Expr centred(Expr x, Expr zp, const char* what, size_t channel_axis) {
  Expr wide = cast(x, DType::kI32);
  if (!zp) return wide;
  const Dim& channels = x.dim(static_cast<int64_t>(channel_axis));
  return wide - cast(along_channels(zp, what, channels, x.rank(), channel_axis), DType::kI32);
}

static bool are_quantised(const Inputs& in, const Attrs& attrs) {
  DType to = attrs.dtype("out_dtype");
  bool known = is_eight_bit(in[0].dtype()) && is_eight_bit(in[1].dtype()) && is_eight_bit(to);
  if (!known) return refuse(in[0], Code::kDtype, "x, w and the result must be i8 or u8"), false;
  if (in[6] && in[6].dtype() != to) return refuse(in[6], Code::kDtype, "out_zp and 'out_dtype' differ"), false;
  for (size_t i : {2, 6})
    if (in[i] && in[i].rank() != 0) return refuse(in[i], Code::kShape, "x_zp and out_zp must be scalars"), false;
  return true;
}

// The sum, scaled and rounded to the output's dtype. Its channels are at `axis`.
static Outputs requantised(Expr sum, const Inputs& in, const Attrs& attrs, size_t axis) {
  if (!sum.valid()) return {};
  const Dim& channels = sum.dim(static_cast<int64_t>(axis));
  size_t rank = sum.rank();
  if (in[4]) sum = sum + along_channels(in[4], "bias", channels, rank, axis);
  Expr y = cast(sum, DType::kF32) * along_channels(in[5], "mult", channels, rank, axis);
  y = unary(Op::kRound, y);
  if (in[6]) y = y + cast(in[6], DType::kF32);
  DType to = attrs.dtype("out_dtype");
  bool is_signed = to == DType::kI8;
  return {cast(minimum(maximum(y, is_signed ? -128 : 0), is_signed ? 127 : 255), to)};
}

Outputs decompose_q_matmul(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], w = in[1];
  if (!are_quantised(in, attrs)) return {};
  if (x.rank() < 2 || w.rank() < 2) return refuse(x, Code::kShape, "x and w need rank 2 or more");
  Expr y = matmul(centred(x, in[2], "x_zp", 0), centred(w, in[3], "w_zp", w.rank() - 1));
  return requantised(y, in, attrs, y.rank() - 1);
}

Outputs decompose_q_conv(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  if (!are_quantised(in, attrs)) return {};
  if (in[1].rank() < 3) return refuse(in[1], Code::kShape, "w needs rank 3 or more");
  NamedAttrs conv;
  for (const AttrDef& def : b.graph().info(Op::kConv).attrs)
    if (attrs.has(def.name)) conv.emplace_back(def.name, attrs.get(def.name));
  Expr y = b.op(Op::kConv, {centred(in[0], in[2], "x_zp", 0), centred(in[1], in[3], "w_zp", 0)}, conv);
  return requantised(y, in, attrs, 1);
}

// b_zero, scale and bias are scalars or have one number per column.
Outputs decompose_integer_matmul(const Inputs& in, const Attrs&) {
  Expr a = in[0], b = in[1];
  if (!is_eight_bit(a.dtype()) || !is_eight_bit(b.dtype())) return refuse(a, Code::kDtype, "a and b must be i8 or u8");
  if (in[5] && !in[4]) return refuse(a, Code::kOption, "a bias needs a scale");
  auto zeroed = [](Expr x, Expr zero) { return zero ? cast(x, DType::kI32) - zero : cast(x, DType::kI32); };
  Expr total = matmul(zeroed(a, in[2]), zeroed(b, in[3]));
  if (!in[4]) return {total};
  Expr y = cast(total, DType::kF32) * in[4];
  return {in[5] ? y + in[5] : y};
}

// w_zero, scale, add and bias are scalars or have one number per channel of y.
Outputs decompose_integer_conv(const Inputs& in, const Attrs& attrs) {
  enum { kX, kW, kXZero, kWZero, kAdd, kScale, kBias, kYScale, kYZero };
  Expr x = in[kX], w = in[kW];
  Builder& b = in.builder();
  if (!is_eight_bit(x.dtype()) || !is_eight_bit(w.dtype())) return refuse(x, Code::kDtype, "x and w must be i8 or u8");
  if (w.rank() < 3) return refuse(w, Code::kShape, "w needs rank 3 or more");
  bool is_real = in[kBias] || in[kYScale] || attrs.flag("relu");
  if ((is_real && !in[kScale]) || !in[kYScale] != !in[kYZero])
    return refuse(x, Code::kOption, "a bias, relu and y_scale need a scale, and y_scale and y_zero each other");
  if (in[kYZero] && !is_eight_bit(in[kYZero].dtype())) return refuse(x, Code::kDtype, "y_zero must be i8 or u8");
  NamedAttrs conv;
  for (const AttrDef& def : b.graph().info(Op::kConv).attrs)
    if (attrs.has(def.name)) conv.emplace_back(def.name, attrs.get(def.name));
  Expr y = b.op(Op::kConv, {centred(x, in[kXZero], "x_zero", 0), centred(w, in[kWZero], "w_zero", 0)}, conv);
  if (!y.valid()) return {};
  auto by_channel = [&](size_t i, const char* what) { return along_channels(in[i], what, w.dim(0), w.rank(), 1); };
  if (in[kAdd]) y = y + by_channel(kAdd, "add");
  if (in[kScale]) y = cast(y, DType::kF32) * by_channel(kScale, "scale");
  if (in[kBias]) y = y + by_channel(kBias, "bias");
  if (attrs.flag("relu")) y = b.op(Op::kRelu, {y});
  return {in[kYScale] ? b.op(Op::kQuantizeLinear, {y, in[kYScale], in[kYZero]}) : y};
}

Outputs decompose_quantized_pair(const Inputs& in, const Attrs& attrs) {
  enum { kA, kB, kAScale, kAZero, kBScale, kBZero, kYScale, kYZero };
  Builder& b = in.builder();
  for (Expr it : {in[kA], in[kB], in[kYZero]})
    if (!is_eight_bit(it.dtype())) return refuse(it, Code::kDtype, "all numbers must be i8 or u8");
  Expr left = b.op(Op::kDequantizeLinear, {in[kA], in[kAScale], in[kAZero]});
  Expr right = b.op(Op::kDequantizeLinear, {in[kB], in[kBScale], in[kBZero]});
  Expr y = attrs.flag("product") ? left * right : left + right;
  return {b.op(Op::kQuantizeLinear, {y, in[kYScale], in[kYZero]})};
}

Outputs decompose_byte_table(const Inputs& in, const Attrs&) {
  Expr x = in[0], table = in[1];
  if (!is_eight_bit(x.dtype()) || !is_eight_bit(table.dtype()))
    return refuse(x, Code::kDtype, "x and the table must be i8 or u8");
  if (table.rank() != 1) return refuse(table, Code::kShape, "the table needs rank 1");
  if (!require(table, Guard::kEqual, table.dim(0), 256)) return {};
  return {gather(table, cast(x, DType::kI32), 0)};
}

// ---- weights in few bits ----

Outputs decompose_matmul_nbits(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0], packed = in[1], scale = in[2], zp = in[3], bias = in[4];
  int64_t bits = attrs.i64("bits"), block = attrs.i64("block");
  if (bits != 2 && bits != 4 && bits != 8) return refuse(x, Code::kOption, "'bits' may be 2, 4 or 8");
  if (block < 16 || (block & (block - 1)))
    return refuse(x, Code::kOption, "'block' must be a power of 2 of at least 16");
  if (packed.rank() != 3 || x.rank() == 0) return refuse(x, Code::kShape, "packed needs rank 3, x rank 1 or more");
  const Dim &rows = packed.dim(0), &blocks = packed.dim(1);
  if (!require(x, Guard::kEqual, packed.dim(2), block * bits / 8)) return {};
  if (!require(x, Guard::kLessEqual, x.dim(-1), blocks * Dim(block))) return {};
  auto unpacked = [&](Expr p) { return bits == 8 ? p : b.op(Op::kUnpackBits, {p}, {{"bits", bits}}); };
  std::array per_block{rows, blocks};
  bool is_typed = !zp || zp.dtype() == DType::kU8 || zp.dtype() == scale.dtype();
  if (!is_typed) return refuse(zp, Code::kDtype, "zp must be u8 or have the dtype of scale");
  scale = reshape(cast(scale, x.dtype()), {per_block.begin(), per_block.end()});
  Expr q = cast(unpacked(packed), scale.dtype());
  if (!zp) {
    q = q - std::ldexp(1.0, static_cast<int>(bits) - 1);
  } else {
    if (zp.dtype() == DType::kU8)
      zp = slice(unpacked(reshape(zp, {rows, floor_div(blocks * Dim(bits) + Dim(7), Dim(8))})), 1, 0, blocks);
    q = q - cast(reshape(zp, {rows, blocks, 1}), scale.dtype());
  }
  Expr w = reshape(q * reshape(scale, {rows, blocks, 1}), {rows, blocks * Dim(block)});
  w = cast(slice(w, 1, 0, x.dim(-1)), x.dtype());
  return {b.op(Op::kLinear, {x, w, bias}, {{"transpose_w", int64_t{1}}})};
}

// A scale for all, for each row, or for each block of a row, in a shape that broadcasts against [..., rows, K].
static Expr scale_of_rows(Expr x, Expr scale, int64_t block, DType dtype) {
  scale = cast(scale, dtype);
  if (scale.rank() < 2 || block <= 0) return scale;
  const Dim& width = x.dim(-1);
  std::vector<Dim> dims = scale.dims();
  if (scale.rank() == kMaxRank) scale = reshape(scale, {element_count(dims)});  // room for an axis of the blocks
  std::vector<Dim> spread = scale.dims();
  spread.emplace_back(block);
  Expr wide = broadcast_to(unsqueeze(scale, -1), spread);
  dims.back() *= Dim(block);
  return slice(reshape(wide, dims), -1, 0, width);
}

Outputs decompose_scaled_matmul(const Inputs& in, const Attrs& attrs) {
  Expr a = in[0], w = in[1], bias = in[4];
  int64_t block = attrs.i64("block");
  DType to = attrs.dtype("out_dtype"), wide = to == DType::kF64 ? to : DType::kF32;
  Expr left = cast(a, wide) * scale_of_rows(a, in[2], block, wide);
  Expr right = cast(w, wide) * scale_of_rows(w, in[3], block, wide);
  if (!require_shape(left, "a with its scale", a.dims()) || !require_shape(right, "b with its scale", w.dims()))
    return {};
  Expr y = matmul(left, right, {.b = true});
  if (bias && y.valid() && require_shape(bias, "bias", {y.dim(-1)})) y = y + cast(bias, wide);
  return {cast(y, to)};
}

Outputs decompose_lora_matmul(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  return {matmul(x, in[1], {.b = attrs.flag("transpose_w")}) + matmul(matmul(x, in[2]), in[3]) * attrs.f64("scale")};
}

Outputs decompose_grouped_matmul(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], w = in[1], index = in[2];
  if (x.rank() != 2 || w.rank() != 3) return refuse(x, Code::kShape, "x needs rank 2, w rank 3");
  if (!require_shape(index, "idx", {x.dim(0)})) return {};
  Expr chosen = gather(w, index, 0);
  Expr y = matmul(unsqueeze(x, 1), cast(chosen, x.dtype()), {.b = attrs.flag("transpose_w")});
  if (!y.valid()) return {};
  return {reshape(y, {y.dim(0), y.dim(2)})};
}

// ---- rounding in training ----

// One number for all of x, or one per index of an axis.
static Expr along_axis(Expr x, Expr given, const char* what, const Attrs& attrs) {
  if (!attrs.has("axis")) return require_shape(given, what, {}) ? given : Expr(&x.builder(), kInvalid);
  auto axis = static_cast<size_t>(attrs.i64("axis"));
  return along_channels(given, what, x.dims()[axis], x.rank(), axis);
}

Outputs decompose_fake_quantize(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], state = in[1];
  double most = std::ldexp(1.0, static_cast<int>(attrs.i64("bits")) - 1) - 1;
  bool is_batch = attrs.is("mode", "batch");
  if (is_batch == static_cast<bool>(state))
    return refuse(x, Code::kOption, "'mode' batch takes no state, and the others need one");
  Axes axes;
  for (int64_t axis : trailing_axes(0, x.rank()))
    if (axis != attrs.i64_or("axis", -1)) axes.push_back(axis);
  Expr amax = state;
  if (!attrs.is("mode", "fixed")) amax = reduce(abs(x), "max", axes, KeepDims::kNo);
  double decay = attrs.f64("decay");
  if (attrs.is("mode", "ema")) amax = state * decay + amax * (1 - decay);
  Expr s = along_axis(x, amax, "state", attrs);
  if (!s.valid()) return {};
  s = s / most;
  s = where(equal(s, 0), 1, s);
  return {minimum(maximum(unary(Op::kRound, x / s), -most), most) * s, amax};
}

Outputs decompose_fake_quantize_lsq(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  double most = std::ldexp(1.0, static_cast<int>(attrs.i64("bits")) - 1) - 1;
  Expr s = along_axis(x, in[1], "scale", attrs);
  if (!s.valid()) return {};
  s = maximum(s, 1e-12);
  return {minimum(maximum(unary(Op::kRound, x / s), -most), most) * s};
}

}  // namespace rlx
