// SPDX-License-Identifier: Apache-2.0
// Attention (semantics.md A1-A5) and rotary position embedding: the formulas, step by step, over [B, H, S, D].
#include "ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/expr.h"

namespace rlx {

// ---- layouts ----

// [B, S, heads * D] as [B, S, heads, D]; B and S may be 0.
static Expr split_heads(Expr x, const Attrs& attrs, std::string_view count) {
  int64_t heads = attrs.i64(count);
  if (heads < 1) return x.builder().fail(Status(Code::kOption, "'" + std::string(count) + "' must be at least 1"));
  auto width = divided(x, x.dim(2), heads);
  return width ? reshape(x, {x.dim(0), x.dim(1), heads, *width}) : Expr();
}

struct Heads {
  Builder& b;
  std::string layout;

  // Any layout as [B, H, S, D].
  Expr split(Expr x, const Attrs& attrs, std::string_view count) const {
    if (layout == "bsx") {
      if (x.rank() != 3) return b.fail(wrong_rank("layout bsx", "3", x.rank()));
      if (!attrs.has(count)) return b.fail(Status(Code::kOption, "layout bsx needs '" + std::string(count) + "'"));
      x = split_heads(x, attrs, count);
      if (!x.valid()) return x;
    }
    if (x.rank() != 4) return b.fail(wrong_rank("layout " + layout, "4", x.rank()));
    Expr heads_first = layout == "bhsd" ? x : transpose(x, {0, 2, 1, 3});
    if (attrs.has(count) && heads_first.valid() && !heads_first.dim(1).is(attrs.i64(count)))
      return b.fail(Status(Code::kShape,
                           format("'{}' is {}, but there are {} heads", count, attrs.i64(count), heads_first.dim(1))));
    return heads_first;
  }

  Expr join(Expr y) const {
    if (layout == "bhsd") return y;
    y = transpose(y, {0, 2, 1, 3});
    return layout == "bshd" ? y : reshape(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
  }
};

static Expr per_head(Expr x) {
  return reshape(x, {1, x.dim(0), 1, 1});
}

// ---- keys that a query attends to ----

// j of keys, i of queries among them, n keys in all. An absent kv_len: all keys are there.
struct Positions {
  Expr i, j, n;
};
static Positions positions_of(Builder& b, const Attrs& attrs, const Dim& rows, const Dim& keys, Expr kv_len) {
  Expr n = b.size(keys, DType::kI64);
  if (kv_len)
    n = reshape(minimum(maximum(cast(kv_len, DType::kI64), b.scalar(DType::kI64, 0)), n), {kv_len.dim(0), 1, 1, 1});
  Expr j = iota(b, {1, 1, 1, keys}, 3, DType::kI64), i = iota(b, {1, 1, rows, 1}, 2, DType::kI64);
  if (attrs.is("align", "lower_right")) i = i + (n - b.size(rows, DType::kI64));
  return {i, j, n};
}

// semantics.md A3: j < n, the causal and window bounds, the mask. Absent if every key is allowed.
static Expr allowed_keys(Builder& b, const Attrs& attrs, const Positions& at, Expr mask, Expr kv_len) {
  const auto& [i, j, n] = at;
  Expr allowed;
  auto also = [&](Expr condition) { allowed = allowed ? logical_and(allowed, condition) : condition; };
  auto number = [&](int64_t window) { return b.size(std::min(window, kWidestWindow), DType::kI64); };
  if (kv_len) also(less(j, n));
  if (attrs.flag("causal")) also(less_equal(j, i));
  if (int64_t left = attrs.i64("window_left"); left >= 0) also(less_equal(i - number(left), j));
  if (int64_t right = attrs.i64("window_right"); right >= 0) also(less_equal(j, i + number(right)));
  if (mask) also(mask);
  return allowed;
}

// Fills the rows without an allowed key (semantics.md A4). y is 0 in these rows, and if there are no keys at all; v is
// 0 beyond the n keys.
static Expr fill_empty_rows(Expr y, Expr total, Expr v, Expr n, const Attrs& attrs) {
  if (attrs.is("empty_row", "zero")) return y;
  Expr empty = equal(total, 0);
  Builder& builder = y.builder();
  const Dim& keys = v.dim(2);
  if (builder.graph().range(keys).lo < 1)
    empty = logical_and(empty, less(builder.scalar(DType::kI64, 0), builder.size(keys, DType::kI64)));
  if (attrs.is("empty_row", "nan")) return where(empty, NAN, y);
  return where(empty, sum(v, {2}) / cast(maximum(n, 1), y.dtype()), y);
}

// Repeats each kv head for the query heads that read it.
static Expr repeat_heads(Expr x, const Dim& kv_heads, const Dim& group) {
  if (group.is(1)) return x;
  Expr split = reshape(x, {x.dim(0), kv_heads, 1, x.dim(2), x.dim(3)});
  Expr wide = broadcast_to(split, {x.dim(0), kv_heads, group, x.dim(2), x.dim(3)});
  return reshape(wide, {x.dim(0), kv_heads * group, x.dim(2), x.dim(3)});
}

// Products and sums broadcast, but q, k and v of attention must not; only mask and bias may.
static bool shapes_agree(Expr q, Expr k, Expr v, const Inputs& in) {
  Dim batch = q.dim(0), heads = q.dim(1);
  std::array scores{batch, heads, q.dim(2), k.dim(2)};
  auto fits = [&](size_t i, const char* what, std::initializer_list<Dim> dims) {
    return !in[i] || require_shape(in[i], what, dims);
  };
  return require_shape(k, "k", {batch, k.dim(1), k.dim(2), q.dim(3)}) &&
         require_shape(v, "v", {batch, k.dim(1), k.dim(2), v.dim(3)}) &&
         (!in[3] || require_stretch(in[3], "mask", scores)) && (!in[4] || require_stretch(in[4], "bias", scores)) &&
         fits(5, "kv_len", {batch}) && fits(6, "alibi", {heads}) && fits(7, "sinks", {heads});
}

double softcap_of(const Attrs& attrs, DType dtype) {
  double cap = attrs.f64("softcap");
  if (dtype == DType::kF64 || cap == 0) return cap == 0 ? 0 : std::max(cap, std::numeric_limits<double>::min());
  using F32 = std::numeric_limits<float>;
  return cap > F32::max() ? 0 : std::max<double>(cap, F32::min());
}

// Attention up to its scores.
struct Scored {
  Heads heads;
  Expr q, k, v;  // [B, H, S, D]; each kv head is repeated for each query head that reads it
  Dim kv_heads, group;
  Expr j, n;    // positions of keys, number of keys
  Expr capped;  // scores before alibi, bias and mask
  Expr s;       // scores; -inf where a key is not allowed
};

static std::optional<Scored> scored(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Heads heads{b, attrs.str("layout")};
  Expr q = heads.split(in[0], attrs, "num_heads");
  Expr k = heads.split(in[1], attrs, "num_kv_heads"), v = heads.split(in[2], attrs, "num_kv_heads");
  Expr mask = in[3], bias = in[4], kv_len = in[5], alibi = in[6];
  if (!q.valid() || !k.valid() || !v.valid()) return std::nullopt;
  bool is_known_ratio = q.dim(1).is_literal() && k.dim(1).is_literal() && q.dim(1) != k.dim(1);
  auto group = is_known_ratio ? exact_div(q.dim(1), k.dim(1)) : divided(q, q.dim(1), k.dim(1));
  if (!group) {
    b.fail(Status(Code::kShape, format("{} query heads do not divide into {} kv heads", q.dim(1), k.dim(1))));
    return std::nullopt;
  }
  Dim kv_heads = k.dim(1), rows = q.dim(2), keys = k.dim(2);
  DType type = q.dtype();
  if (!shapes_agree(q, k, v, in)) return std::nullopt;
  k = repeat_heads(k, kv_heads, *group), v = repeat_heads(v, kv_heads, *group);

  Positions at = positions_of(b, attrs, rows, keys, kv_len);
  Expr s = matmul(q, k, {.b = true});
  s = attrs.has("scale") ? s * attrs.f64("scale") : s / sqrt(b.size(q.dim(3), type));
  if (double cap = softcap_of(attrs, type); cap > 0) s = tanh(s / cap) * cap;
  Expr capped = s;
  if (alibi) s = s - per_head(cast(alibi, type)) * cast(abs(at.i - at.j), type);
  if (bias) s = s + cast(bias, type);
  Expr allowed = allowed_keys(b, attrs, at, mask, kv_len);
  if (allowed) s = where(allowed, s, scalar_like(s, -INFINITY));
  return Scored{heads, q, k, v, kv_heads, *group, at.j, at.n, capped, s};
}

// Keys beyond kv_len must not be read: they may be NaN.
static Expr read_keys(const Scored& all, Expr x, Expr kv_len) {
  if (!kv_len) return x;
  return where(reshape(less(all.j, all.n), {kv_len.dim(0), 1, x.dim(2), 1}), x, scalar_like(x, 0));
}

Outputs decompose_attention(const Inputs& in, const Attrs& attrs) {
  Expr kv_len = in[5], sinks = in[7];
  auto all = scored(in, attrs);
  if (!all) return {in.builder().wrap(kInvalid), in.builder().wrap(kInvalid)};
  Expr s = all->s, top = reduce(s, "max", {3});
  if (sinks) top = maximum(top, per_head(cast(sinks, s.dtype())));
  top = stop_gradient(where(equal(top, scalar_like(top, -INFINITY)), scalar_like(top, 0), top));
  Expr e = exp(s - top), total = sum(e, {3});
  if (sinks) total = total + exp(per_head(cast(sinks, s.dtype())) - top);
  Expr v = read_keys(*all, all->v, kv_len);
  Expr y = matmul(e, v) / where(equal(total, scalar_like(total, 0)), scalar_like(total, 1), total);
  y = fill_empty_rows(y, total, v, all->n, attrs);
  Expr lse = top + log(total);
  return {all->heads.join(y), reshape(lse, {lse.dim(0), lse.dim(1), lse.dim(2)})};
}

// ---- its gradient ----

// Sums over the axes that broadcasting stretched.
static Expr summed_to(Expr x, std::span<const Dim> dims) {
  Axes stretched;
  size_t extra = x.rank() - dims.size();
  for (size_t axis = 0; axis < x.rank(); axis++)
    if (axis < extra || (dims[axis - extra].is(1) && !x.dims()[axis].is(1)))
      stretched.push_back(static_cast<int64_t>(axis));
  return reshape(sum(x, stretched), {dims.begin(), dims.end()});
}

// The sum over the query heads that read each kv head.
static Expr fold_heads(Expr x, const Scored& all) {
  if (all.group.is(1)) return x;
  return reduce(reshape(x, {x.dim(0), all.kv_heads, all.group, x.dim(2), x.dim(3)}), "sum", {2}, KeepDims::kNo);
}

// From y and lse, which the forward op has returned. p are the weights, ds is the gradient of the scores.
Outputs decompose_attention_grad(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr bias = in[4], kv_len = in[5], sinks = in[7];
  auto all = scored(in, attrs);
  if (!all) return {};
  Expr y = all->heads.split(in[8], attrs, "num_heads"), dy = all->heads.split(in[10], attrs, "num_heads");
  DType type = all->q.dtype();
  Expr k = read_keys(*all, all->k, kv_len), v = read_keys(*all, all->v, kv_len);
  std::array out{all->q.dim(0), all->q.dim(1), all->q.dim(2), v.dim(3)};
  if (!require_shape(y, "y", out) || !require_shape(dy, "dy", out)) return {};
  if (!require_shape(in[9], "lse", std::span(out).first(3))) return {};
  Expr lse = unsqueeze(cast(in[9], type), 3), sees = less(scalar_like(lse, -INFINITY), lse);
  Expr p = where(sees, exp(all->s - lse), 0), delta = sum(dy * y, {3});
  Expr ds = p * (matmul(dy, v, {.b = true}) - delta);
  Expr dv = matmul(transpose(p, {0, 1, 3, 2}), dy);
  if (attrs.is("empty_row", "mean")) {
    Expr share = where(sees, 0, dy / cast(maximum(all->n, 1), type));
    dv = dv + read_keys(*all, broadcast_to(sum(share, {2}), dv.dims()), kv_len);
  }
  Expr none = b.constant(*Tensor::create(type, std::array<int64_t, 1>{0}));
  Expr dbias = bias ? summed_to(ds, bias.dims()) : none, dsinks = none;
  if (sinks) {
    Expr weight = where(sees, exp(per_head(cast(sinks, type)) - lse), 0);
    dsinks = -reshape(sum(weight * delta, {0, 2}), {all->q.dim(1)});
  }
  if (double cap = softcap_of(attrs, type); cap > 0) {
    Expr part = all->capped / cap;
    ds = where(equal(p, 0), 0, ds * (1.0 - part * part));
  }
  ds = attrs.has("scale") ? ds * attrs.f64("scale") : ds / sqrt(b.size(all->q.dim(3), type));
  Expr dk = matmul(transpose(ds, {0, 1, 3, 2}), all->q);
  return {all->heads.join(matmul(ds, k)), all->heads.join(fold_heads(dk, *all)), all->heads.join(fold_heads(dv, *all)),
          dbias, dsinks};
}

// `scores` annotates a value for the rules that form attention; its value is its first input.
Outputs decompose_scores(const Inputs& in, const Attrs&) {
  return {in[0]};
}

// ---- rope ----

// A table [S, R/2] or [B, S, R/2], in a shape that broadcasts against x. The head axis of x may stand before or after
// S.
static Expr align_table(Expr table, Expr positions, bool heads_first, const Dim& batch, const Dim& rows, DType type) {
  if (positions) table = gather(table, positions, 0);
  bool batched = table.rank() == 3 && !table.dim(0).is(1);
  std::array expected{batched ? batch : Dim(1), rows, table.dim(-1)};
  std::span<const Dim> dims(expected);
  if (!require_shape(table, "a table", table.rank() == 3 ? dims : dims.last(2))) return table.builder().wrap(kInvalid);
  table = cast(table, type);
  if (!heads_first) return unsqueeze(table, -2);
  return table.rank() == 3 ? unsqueeze(table, 1) : table;
}

// The first elements of each head rotated by angles with these cosines and sines: element i with element i + half.
static std::vector<Expr> rotated_halves(Expr x, Expr c, Expr s) {
  Dim half = c.dim(-1);
  Expr lo = slice(x, -1, 0, half), hi = slice(x, -1, half, half * 2);
  return {lo * c - hi * s, hi * c + lo * s};
}

// The same: element 2 i with element 2 i + 1.
static std::vector<Expr> rotated_pairs(Expr x, Expr c, Expr s) {
  Dim half = c.dim(-1), rotated = half * 2;
  std::vector<Dim> dims = x.dims();
  dims.back() = half;
  dims.push_back(2);
  Expr pairs = reshape(slice(x, -1, 0, rotated), dims);
  dims.pop_back();
  Expr even = reshape(slice(pairs, -1, 0, 1), dims), odd = reshape(slice(pairs, -1, 1, 2), dims);
  std::vector<Expr> joined{unsqueeze(even * c - odd * s, -1), unsqueeze(odd * c + even * s, -1)};
  dims.back() = rotated;
  return {reshape(concat(joined, -1), dims)};
}

Outputs decompose_rope(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  bool joined = attrs.is("layout", "bsx");
  if (joined) {
    if (!attrs.has("num_heads")) return {b.fail(Status(Code::kOption, "layout bsx needs 'num_heads'"))};
    if (x.rank() != 3) return {b.fail(wrong_rank("layout bsx", "3", x.rank()))};
    x = split_heads(x, attrs, "num_heads");
    if (!x.valid()) return {};
  } else if (x.rank() != 4) {
    return {b.fail(wrong_rank("x", "4", x.rank()))};
  }
  bool heads_first = attrs.is("layout", "bhsd");
  Dim seq = x.dim(heads_first ? 2 : 1);
  Expr c = align_table(in[1], in[3], heads_first, x.dim(0), seq, x.dtype());
  Expr s = align_table(in[2], in[3], heads_first, x.dim(0), seq, x.dtype());
  if (!c.valid() || !s.valid() || !require_shape(s, "sin", c.dims())) return {};
  if (!require(x, Guard::kLessEqual, c.dim(-1) * 2, x.dim(-1))) return {};
  if (attrs.flag("inverse")) s = -s;
  std::vector<Expr> parts = attrs.is("style", "half") ? rotated_halves(x, c, s) : rotated_pairs(x, c, s);
  if (Dim rotated = c.dim(-1) * 2, width = x.dim(-1); width != rotated) parts.push_back(slice(x, -1, rotated, width));
  Expr y = parts.size() == 1 ? parts[0] : concat(parts, -1);
  if (joined) y = reshape(y, in[0].dims());
  return {y};
}

// cos and sin of scale * position * base^(-2i/R) / factor_i, all in f64.
Outputs decompose_rope_table(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  int64_t rotated = attrs.i64("dim"), half = rotated / 2;
  if (rotated % 2) return {b.fail(Status(Code::kOption, "'dim' must be even")), b.wrap(kInvalid)};
  auto frequencies = Tensor::create(DType::kF64, std::array{half});
  if (!frequencies.ok()) return {b.fail(std::move(frequencies).status()), b.wrap(kInvalid)};
  for (int64_t i = 0; i < half; i++)
    frequencies->as<double>()[i] =
        attrs.f64("scale") * std::pow(attrs.f64("base"), -2.0 * static_cast<double>(i) / static_cast<double>(rotated));
  Expr angle = unsqueeze(cast(in[0], DType::kF64), -1) * b.constant(*frequencies);
  if (in[1] && require_shape(in[1], "freq_factors", {Dim(half)})) angle = angle / cast(in[1], DType::kF64);
  auto scaled = [&](Op op) { return cast(unary(op, angle) * attrs.f64("mscale"), attrs.dtype("dtype")); };
  return {scaled(Op::kCos), scaled(Op::kSin)};
}

// Positions of an image with end_x columns, row by row: the first half of each head is rotated by the column, the
// second by the row.
Outputs decompose_axial_rope_2d(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  bool joined = attrs.is("layout", "bsx");
  if (joined && attrs.i64_or("num_heads", 0) < 1)
    return {b.fail(Status(Code::kOption, "layout bsx needs 'num_heads', at least 1"))};
  if (x.rank() != (joined ? 3u : 4u)) return {b.fail(wrong_rank("x", joined ? "3" : "4", x.rank()))};
  int64_t columns = attrs.i64("end_x"), places = columns * attrs.i64("end_y"), rows = places * attrs.i64("repeat");
  Dim width = joined ? floor_div(x.dim(2), attrs.i64("num_heads")) : x.dim(3);
  if (!width.is_literal() || width.literal() % 4)
    return {b.fail(Status(Code::kShape, format("a head is {} wide, not a multiple of 4", width)))};
  if (!require(x, Guard::kEqual, x.dim(attrs.is("layout", "bhsd") ? 2 : 1), rows)) return {};
  int64_t quarter = width.literal() / 4;
  auto angles = Tensor::create(DType::kF64, std::array{rows, 2 * quarter});
  if (!angles.ok()) return {b.fail(std::move(angles).status())};
  for (int64_t row = 0; row < rows; row++)
    for (int64_t i = 0; i < 2 * quarter; i++) {
      int64_t place = row % places, at = i < quarter ? place % columns : place / columns;
      double step = static_cast<double>(i % quarter) / static_cast<double>(quarter);
      angles->as<double>()[row * 2 * quarter + i] = static_cast<double>(at) * std::pow(attrs.f64("theta"), -step);
    }
  Expr angle = b.constant(*angles);
  auto table = [&](Op op) { return cast(unary(op, angle), x.dtype()); };
  NamedAttrs turn{{"layout", attrs.str("layout")},
                  {"style", std::string("interleaved")},
                  {"inverse", int64_t{attrs.flag("inverse")}}};
  if (attrs.has("num_heads")) turn.emplace_back("num_heads", attrs.i64("num_heads"));
  return {b.op(Op::kRope, {x, table(Op::kCos), table(Op::kSin)}, turn)};
}

}  // namespace rlx
