// SPDX-License-Identifier: Apache-2.0
// Random numbers of distributions, from the bits of rng_bits. Key and counter decide them; each op also returns the
// counter after what it used.
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/visit.h"
#include "ops/expr.h"

namespace rlx {

struct Drawn {
  Expr value, next;
};

static Drawn bits(Expr key, Expr counter, const std::vector<Dim>& shape, DType dtype) {
  Outputs drawn = key.builder().ops(Op::kRngBits, {key, counter}, {{"shape", shape}, {"dtype", dtype}});
  return {drawn[0], drawn.size() > 1 ? drawn[1] : drawn[0]};
}

// Numbers in [0, 1), from as many high bits as the dtype holds, so that each is exact.
static Drawn uniform(Expr key, Expr counter, const std::vector<Dim>& shape, DType dtype) {
  DType word = dtype == DType::kF64 ? DType::kU64 : DType::kU32;
  int held = dtype == DType::kF64 ? 53 : dtype == DType::kF32 ? 24 : dtype == DType::kF16 ? 11 : 8;
  auto [raw, next] = bits(key, counter, shape, word);
  int width = word == DType::kU64 ? 64 : 32;
  Expr high = binary(Op::kShr, raw, scalar_like(raw, width - held));
  return {cast(high, dtype) * std::ldexp(1.0, -held), next};
}

// The largest number of the dtype below `high`. Above -2^-126, f32 and bf16 may be treated as 0 (semantics.md N5).
static double number_below(DType dtype, double high) {
  double below = 0;
  visit<dtypes::F>(dtype, [&]<class T>() {
    using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
    auto number = [](Bits bits) { return static_cast<double>(static_cast<Compute<T>>(std::bit_cast<T>(bits))); };
    auto nearest = std::bit_cast<Bits>(T(high));
    below = number(nearest);
    if (below < high) return;
    if (below == 0)
      below = dtype == DType::kF64 || dtype == DType::kF16 ? -number(1) : -0x1p-126;
    else
      below = number(static_cast<Bits>(below > 0 ? nearest - 1 : nearest + 1));
  });
  return below;
}

// Rounding may reach `high`, and the distance of the two may be above the dtype's largest number.
Outputs decompose_rng_uniform(const Inputs& in, const Attrs& attrs) {
  DType dtype = attrs.dtype("dtype");
  double low = attrs.f64("low"), high = attrs.f64("high");
  auto [u, next] = uniform(in[0], in[1], attrs.dims("shape"), dtype);
  if (low == 0 && high == 1) return {u, next};
  u = cast(u, compute_dtype(dtype));
  double most = u.dtype() == DType::kF64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  bool is_far = high - low > most;
  Expr y = cast(is_far ? low * (1.0 - u) + high * u : low + u * (high - low), dtype);
  double last = number_below(dtype, high);
  return {low <= last ? minimum(y, last) : y, next};
}

// Box and Muller (1958): two normal numbers from each pair of uniform ones.
Outputs decompose_rng_normal(const Inputs& in, const Attrs& attrs) {
  DType dtype = attrs.dtype("dtype");
  const std::vector<Dim>& shape = attrs.dims("shape");
  Dim count = element_count(shape), pairs = floor_div(count + Dim(1), Dim(2));
  auto [u, next] = uniform(in[0], in[1], {pairs, 2}, compute_dtype(dtype));
  Expr radius = sqrt(-2.0 * log(1.0 - slice(u, 1, 0, 1))), angle = slice(u, 1, 1, 2) * (2 * std::numbers::pi);
  Expr z = concat(std::array{radius * unary(Op::kCos, angle), radius * unary(Op::kSin, angle)}, 1);
  z = reshape(slice(reshape(z, {pairs * Dim(2)}), 0, 0, count), shape);
  if (attrs.f64("std") != 1) z = z * attrs.f64("std");
  if (attrs.f64("mean") != 0) z = z + attrs.f64("mean");
  return {cast(z, dtype), next};
}

Outputs decompose_rng_int(const Inputs& in, const Attrs& attrs) {
  static constexpr uint64_t kWidest = uint64_t{1} << 32;
  Builder& b = in.builder();
  DType dtype = attrs.dtype("dtype");
  int64_t low = attrs.i64("low"), high = attrs.i64("high");
  uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (low >= high || span > kWidest) return refuse(in, Code::kOption, "'high' must be above 'low', by 2^32 at most");
  auto [raw, next] = bits(in[0], in[1], attrs.dims("shape"), DType::kU32);
  Expr scaled = cast(raw, DType::kU64) * static_cast<double>(span);
  Expr offset = cast(binary(Op::kShr, scaled, scalar_like(scaled, 32)), dtype);
  return {offset + b.size(low, dtype), next};
}

Outputs decompose_bernoulli(const Inputs& in, const Attrs&) {
  Expr p = in[0];
  auto [u, next] = uniform(in[1], in[2], p.dims(), DType::kF32);
  return {less(cast(u, p.dtype()), p), next};
}

Outputs decompose_dropout(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  double p = attrs.f64("p");
  auto [u, next] = uniform(in[1], in[2], x.dims(), DType::kF32);
  Expr keep = less_equal(scalar_like(u, p), u);
  return {where(keep, p < 1 ? x / (1 - p) : x, 0), keep, next};
}

// The index that u selects: how many running sums are at most u times the last one. c: [R,V], u: [R,n].
static Expr drawn_index(Expr c, Expr u) {
  Builder& b = c.builder();
  const Dim &rows = c.dim(0), &count = c.dim(1);
  Expr total = slice(c, 1, count - Dim(1), count);
  Expr below = less_equal(reshape(c, {rows, 1, count}), unsqueeze(u * total, 2));
  return minimum(reduce(cast(below, DType::kI64), "sum", {2}, KeepDims::kNo), b.size(count, DType::kI64) - 1.0);
}

static bool holds_classes(Expr logits, DType index) {
  const Dim& count = logits.dim(1);
  if (index != DType::kI32 || logits.builder().graph().range(count).hi <= INT32_MAX) return true;
  refuse(logits, Code::kOption, "index_dtype i32 cannot hold every position of an axis of size " + count.text());
  return false;
}

Outputs decompose_categorical(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr logits = in[0];
  if (logits.rank() != 2) return refuse(in, Code::kShape, format("logits has rank {}, not 2", logits.rank()));
  if (!require(logits, Guard::kLessEqual, 1, logits.dim(1)) || !holds_classes(logits, attrs.dtype("index_dtype")))
    return {};
  Expr c = cumulative(b.op(Op::kSoftmax, {logits}), "sum", 1);
  auto [u, next] = uniform(in[1], in[2], {logits.dim(0), attrs.dim("n")}, DType::kF32);
  return {cast(drawn_index(c, cast(u, c.dtype())), attrs.dtype("index_dtype")), next};
}

// A parameter per row, or one for all rows: [R,1] or [].
static Expr per_row(Expr given, const Dim& rows, const char* what) {
  if (given.rank() == 0) return given;
  if (!require_shape(given, what, {rows})) return given;
  return reshape(given, {rows, 1});
}

Outputs decompose_sample_token(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr logits = in[0];
  if (logits.rank() != 2) return refuse(in, Code::kShape, format("logits has rank {}, not 2", logits.rank()));
  if (!require(logits, Guard::kLessEqual, 1, logits.dim(1)) || !holds_classes(logits, attrs.dtype("index_dtype")))
    return {};
  const Dim &rows = logits.dim(0), &count = logits.dim(1);
  Outputs sorted = b.ops(Op::kSort, {cast(logits, DType::kF32)}, {{"descending", int64_t{1}}});
  Expr l = sorted[0], rank = iota(b, {1, count}, 1, DType::kI64), greedy;
  if (in[3]) {
    Expr t = cast(per_row(in[3], rows, "temperature"), DType::kF32);
    greedy = equal(t, 0), l = l / where(greedy, 1, t);
  }
  if (in[4]) {
    Expr k = cast(per_row(in[4], rows, "top_k"), DType::kI64);
    l = where(logical_or(less(k, 1), less(rank, k)), l, -std::numeric_limits<double>::infinity());
  }
  Expr p = b.op(Op::kSoftmax, {l}), keep = equal(rank, 0);
  Expr good = b.scalar(DType::kBool, 1);
  if (in[5]) good = less(cumulative_before(p, "sum", 1), cast(per_row(in[5], rows, "top_p"), DType::kF32));
  if (in[6])
    good = logical_and(good, less_equal(cast(per_row(in[6], rows, "min_p"), DType::kF32) * slice(p, 1, 0, 1), p));
  Expr c = cumulative(where(logical_or(keep, good), p, 0), "sum", 1);
  auto [u, next] = uniform(in[1], in[2], {rows, 1}, DType::kF32);
  Expr j = drawn_index(c, u);
  if (greedy) j = where(greedy, 0, j);
  Expr index = b.op(Op::kGatherElements, {sorted[1], j}, {{"axis", int64_t{1}}});
  return {reshape(cast(index, attrs.dtype("index_dtype")), {rows}), next};
}

}  // namespace rlx
