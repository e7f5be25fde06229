// SPDX-License-Identifier: Apache-2.0
// Affine quantisation: q represents (q - zp) * scale. There is one scale for all elements, for each index of an axis,
// or for each block along it. Arithmetic is in f32, but differences of integers are exact.
#include <cmath>

#include "ops/expr.h"

namespace rlx {

struct Quantization {
  Expr scale, zp;  // f32, and a dtype of the op; broadcasting against x; zp may be absent
  bool ok = false;
};

// Repeats each element along `axis` `block` times, and cuts the axis to n.
static Expr spread_blocks(Expr p, size_t axis, int64_t block, const Dim& n) {
  auto at = static_cast<ptrdiff_t>(axis);
  std::vector<Dim> dims = p.dims();
  if (dims.size() == kMaxRank) {  // there is no room for an axis of the blocks
    std::span<const Dim> all = dims;
    p = reshape(p, {element_count(all.first(axis)), all[axis], element_count(all.subspan(axis + 1))});
    dims[axis] = n;
    return reshape(spread_blocks(p, 1, block, n), dims);
  }
  dims.insert(dims.begin() + at + 1, block);
  p = broadcast_to(unsqueeze(p, at + 1), dims);
  dims.erase(dims.begin() + at + 1);
  dims[axis] *= block;
  return slice(reshape(p, dims), at, 0, n);
}

// A scale or zero point of any of the three kinds, in a shape that broadcasts against x.
static Expr aligned(Expr x, Expr p, const char* what, const Attrs& attrs) {
  if (p.rank() == 0) return p;
  auto at = static_cast<size_t>(attrs.i64("axis"));
  int64_t block = attrs.i64("block_size");
  std::vector<Dim> dims = x.dims();
  if (block > 0) {
    dims[at] = floor_div(dims[at] + (block - 1), block);
    return require_shape(p, what, dims) ? spread_blocks(p, at, block, x.dims()[at]) : p;
  }
  if (!require_shape(p, what, {dims[at]})) return p;
  dims.assign(x.rank() - at, 1);
  dims[0] = x.dims()[at];
  return reshape(p, dims);
}

static Quantization affine_of(Expr x, Expr scale, Expr zp, DType zp_dtype, const Attrs& attrs) {
  Builder& b = x.builder();
  if (scale.dtype() == DType::kF64) {
    b.fail(Status(Code::kDtype, "scale may be f32, f16 or bf16, not f64").with("input", "scale"));
    return {};
  }
  Quantization affine{aligned(x, cast(scale, DType::kF32), "scale", attrs), {}, true};
  if (zp && require_shape(zp, "zp", scale.dims())) affine.zp = aligned(x, cast(zp, zp_dtype), "zp", attrs);
  affine.ok = affine.scale.valid() && (!zp || affine.zp.valid());
  return affine;
}

// The smallest and largest value of an integer dtype of at most 16 bits.
static std::optional<std::pair<double, double>> small_range(DType dtype) {
  int bits = static_cast<int>(8 * element_bytes(dtype));
  if (!is_integer(dtype) || bits > 16) return std::nullopt;
  bool is_signed = dtypes::S.has(dtype);
  double low = is_signed ? -std::ldexp(1, bits - 1) : 0;
  return std::pair(low, low + std::ldexp(1, bits) - 1);
}

Outputs decompose_quantize_linear(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0], zp = in[2];
  if (!attrs.has("dtype")) return {b.fail(Status(Code::kOption, "'dtype' is needed where there is no zp"))};
  DType to = attrs.dtype("dtype");
  if (zp && zp.dtype() != to) return {b.fail(Status(Code::kDtype, "zp and 'dtype' differ").with("input", "zp"))};
  auto range = small_range(to);
  if (!range && !dtypes::E.has(to))
    return {b.fail(Status(Code::kDtype, "no quantisation to " + std::string(name(to))))};
  Quantization affine = affine_of(x, in[1], zp, DType::kF32, attrs);
  if (!affine.ok) return {};
  Expr y = cast(x, DType::kF32) / affine.scale;
  if (!range) return {b.op(Op::kCast, {y}, {{"to", to}, {"saturate", int64_t{attrs.flag("saturate")}}})};
  y = unary(Op::kRound, y);
  if (zp) y = y + affine.zp;
  return {cast(minimum(maximum(y, range->first), range->second), to)};
}

// The float dtype in which numbers of q's dtype, and their differences, are exact; of 64 bits none is, so q's own.
static DType exact_dtype(DType q) {
  if (!is_integer(q) || element_bytes(q) <= 2) return DType::kF32;
  return element_bytes(q) == 4 ? DType::kF64 : q;
}

// q - zp as f32, rounded once where it is below 2^53; both have the dtype exact_dtype(q). Integers of 64 bits are
// subtracted as an upper and a lower half, whose differences f64 holds.
static Expr difference(Expr q, Expr zp) {
  if (is_float(q.dtype())) return cast(q - zp, DType::kF32);
  auto of_halves = [&](Op half, Expr by) {
    return cast(binary(half, q, by), DType::kF64) - cast(binary(half, zp, by), DType::kF64);
  };
  Expr upper = of_halves(Op::kShr, scalar_like(q, 32)), lower = of_halves(Op::kBitAnd, scalar_like(q, 0xffffffff));
  return cast(upper * 0x1p32 + lower, DType::kF32);
}

Outputs decompose_dequantize_linear(const Inputs& in, const Attrs& attrs) {
  Expr q = in[0], zp = in[2];
  DType exact = exact_dtype(q.dtype());
  Quantization affine = affine_of(q, in[1], zp, exact, attrs);
  if (!affine.ok) return {};
  q = zp ? difference(cast(q, exact), affine.zp) : cast(q, DType::kF32);
  return {cast(q * affine.scale, attrs.dtype("out_dtype"))};
}

Outputs decompose_dynamic_quantize_linear(const Inputs& in, const Attrs&) {
  Builder& b = in.builder();
  Expr x = in[0];
  Axes all = trailing_axes(0, x.rank());
  Expr hi = maximum(reduce(x, "max", all, KeepDims::kNo), 0), lo = minimum(reduce(x, "min", all, KeepDims::kNo), 0);
  Expr scale = where(equal(hi, lo), 1, hi - lo) / 255;
  Expr zp = cast(minimum(maximum(unary(Op::kRound, -lo / scale), 0), 255), DType::kU8);
  return {b.op(Op::kQuantizeLinear, {x, scale, zp}), scale, zp};
}

Outputs decompose_unpack_bits(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  int64_t bits = attrs.i64("bits"), count = 8 / std::max<int64_t>(bits, 1);
  if (bits != 1 && bits != 2 && bits != 4) return {b.fail(Status(Code::kOption, "'bits' may be 1, 2 or 4"))};
  if (x.rank() == 0) return {b.fail(wrong_rank("x", "1 or more", 0))};
  std::vector<Dim> dims = x.dims();
  dims.back() *= count;
  if (x.rank() == kMaxRank) x = reshape(x, {element_count(x.dims())});  // room for an axis of the parts
  Expr shift = iota(b, {count}, 0, DType::kU8) * scalar_like(x, static_cast<double>(bits));
  Expr up = scalar_like(x, static_cast<double>(8 - bits));
  // Shifting to the top of the byte drops the bits above; shifting back extends the sign of signed numbers.
  Expr top = binary(Op::kShl, binary(Op::kShr, unsqueeze(x, -1), shift), up);
  if (attrs.flag("signed")) {
    top = b.op(Op::kBitcast, {top}, {{"to", DType::kI8}});
    up = cast(up, DType::kI8);
  }
  return {reshape(binary(Op::kShr, top, up), dims)};
}

}  // namespace rlx
