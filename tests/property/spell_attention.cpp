// SPDX-License-Identifier: Apache-2.0
// Attention as exporters spell it: two products, and a softmax of scores between them. The scores go through links,
// such as scales, soft caps and masks, in any order, wrong orders too.
#include <cmath>
#include <limits>

#include "draw.h"

namespace rlx::test {

namespace {

struct Heads {
  DType dtype;
  Dim batch, heads, queries, keys, depth, value_depth;
};

Dim one_of(Draw& draw, std::initializer_list<Dim> dims) {
  return *(dims.begin() + draw.random.below(static_cast<int64_t>(dims.size())));
}

Heads random_heads(Draw& draw) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  Heads heads{draw.float_type(),
              one_of(draw, {n, 1, 2}),
              one_of(draw, {1, 2, 2, 4}),
              one_of(draw, {m, m, 1, 3, n}),
              Dim(),
              one_of(draw, {1, 2, 4}),
              Dim()};
  heads.keys = draw.random.chance(60) ? heads.queries : one_of(draw, {m, 4, 1, n});
  heads.value_depth = draw.random.chance(70) ? heads.depth : one_of(draw, {1, 2, 3});
  return heads;
}

enum class Role : uint8_t { kQuery, kKeyOrValue };

// A value [batch, heads, length, depth]: of this shape, or split from [batch, length, heads * depth], or with one batch
// for all, or with shared heads.
Expr split_heads(Draw& draw, Builder& builder, const Heads& of, const Dim& length, const Dim& depth, Role role) {
  bool is_query = role == Role::kQuery;
  Dim batch = !is_query && draw.random.chance(12) ? Dim(1) : of.batch;
  if (draw.random.chance(40)) {
    Expr x = draw.value(builder, of.dtype, {batch, length, of.heads * depth});
    return transpose(reshape(x, {batch, length, of.heads, depth}), {0, 2, 1, 3});
  }
  if (!is_query && of.heads.is(4) && draw.random.chance(50)) {
    Expr z = draw.value(builder, of.dtype, {batch, 2, length, depth});
    Expr wide = broadcast_to(reshape(z, {batch, 2, 1, length, depth}), {batch, 2, 2, length, depth});
    return reshape(wide, {batch, 4, length, depth});
  }
  if (!is_query && draw.random.chance(10)) return draw.value(builder, of.dtype, {batch, 1, length, depth});
  if (draw.random.chance(10)) return draw.value(builder, of.dtype, {of.heads, length, depth});
  return draw.value(builder, of.dtype, {batch, of.heads, length, depth});
}

// ---- masks ----

// Along one axis of the scores: of queries along 0, of keys along 1.
Expr positions(Draw& draw, Builder& builder, const Dim& length, int64_t axis) {
  Shape shape = axis == 0 ? Shape{length, 1} : Shape{1, length};
  DType dtype = draw.random.chance(60) ? DType::kI64 : draw.random.chance(60) ? DType::kI32 : draw.float_type();
  if (draw.random.chance(50)) return iota(builder, shape, axis, dtype);
  return reshape(iota(builder, {length}, 0, dtype), shape);
}

Expr causal(Draw& draw, Builder& builder, const Heads& of) {
  Expr rows = positions(draw, builder, of.queries, 0), columns = positions(draw, builder, of.keys, 1);
  if (!rows.valid() || !columns.valid()) return {};
  columns = cast(columns, rows.dtype());
  if (draw.random.chance(25)) rows = rows + builder.size(of.keys - of.queries, rows.dtype());
  if (draw.random.chance(10)) rows = rows + 1.0;
  Expr mask = draw.random.chance(60) ? less_equal(columns, rows) : logical_not(less(rows, columns));
  if (draw.random.chance(25)) {
    Expr window = less(rows - static_cast<double>(draw.random.between(0, 3)), columns);
    mask = logical_and(mask, window);
  }
  return mask;
}

// True: attend. [queries, keys], or something that broadcasts to it.
Expr random_mask(Draw& draw, Builder& builder, const Heads& of) {
  switch (draw.random.below(7)) {
    case 0:
    case 1: return causal(draw, builder, of);
    case 2: return draw.value(builder, DType::kBool, {of.queries, of.keys});
    case 3: return draw.value(builder, DType::kBool, {of.batch, 1, 1, of.keys});
    case 4: {
      Expr given = draw.value(builder, draw.random.chance(50) ? DType::kI64 : DType::kI32, {of.batch, of.keys});
      Expr wide = reshape(given, {of.batch, 1, 1, of.keys});
      return draw.random.chance(50) ? cast(wide, DType::kBool) : not_equal(wide, 0.0);
    }
    case 5: {
      Expr a = causal(draw, builder, of), b = draw.value(builder, DType::kBool, {of.batch, 1, 1, of.keys});
      return draw.random.chance(70) ? logical_and(a, b) : logical_or(a, b);
    }
    default: {
      if (!all_literal(std::array{of.queries, of.keys})) return causal(draw, builder, of);
      Tensor triangle = *Tensor::create(DType::kBool, std::array{of.queries.literal(), of.keys.literal()});
      for (int64_t i = 0; i < triangle.count(); i++)
        triangle.as<bool>()[i] = i % of.keys.literal() <= i / of.keys.literal();
      return builder.constant(triangle);
    }
  }
}

double fill_value(Draw& draw, DType dtype) {
  double lowest = dtype == DType::kF16 ? -65504.0 : -3.3895313892515355e38;
  return draw.random.pick(std::array<double, 8>{-INFINITY, -INFINITY, -1e9, lowest, lowest, -1e4, -10000.0, 0.0});
}

Expr masked(Draw& draw, Builder& builder, const Heads& of, Expr scores) {
  Expr mask = random_mask(draw, builder, of);
  if (!mask.valid()) return {};
  Expr fill = scalar_like(scores, fill_value(draw, scores.dtype()));
  switch (draw.random.below(5)) {
    case 0: return scores + where(mask, scalar_like(scores, 0), fill);
    case 1: return scores + (1.0 - cast(mask, scores.dtype())) * fill;
    case 2: return where(logical_not(mask), fill, scores);
    case 3: {
      Expr b = cast(mask, scores.dtype());
      return scores * b + fill * (1.0 - b);
    }
    default: return where(mask, scores, fill);
  }
}

Expr biased(Draw& draw, Builder& builder, const Heads& of, Expr scores) {
  DType dtype = scores.dtype();
  switch (draw.random.below(4)) {
    case 0: return scores + draw.value(builder, dtype, {of.batch, 1, 1, of.keys});
    case 1: return draw.value(builder, dtype, {of.heads, of.queries, of.keys}) + scores;
    case 2: return scores + draw.value(builder, dtype, {of.queries, of.keys});
    default: return scores + draw.value(builder, dtype, scores.dims());
  }
}

// ---- links ----

Expr scaled(Draw& draw, const Heads& of, Expr scores) {
  double root = std::sqrt(static_cast<double>(of.depth.literal()));
  switch (draw.random.below(5)) {
    case 0: return scores / draw.number(scores, root);
    case 1: return scores * draw.number(scores, 1 / root);
    case 2: return scores / sqrt(scores.builder().size(of.depth, scores.dtype()));
    case 3: return scores * draw.number(scores, draw.random.pick(std::array{1e-9, -1.0, 0.0, 2.0, 1e9, 0x1p-17}));
    default: return scores / draw.number(scores, draw.random.pick(std::array<double, 4>{8.0, 0x1p-17, 3.0, INFINITY}));
  }
}

Expr capped(Draw& draw, Expr scores) {
  if (draw.random.chance(15)) scores = capped(draw, scores);  // twice: the order matters
  double cap = draw.random.pick(std::array{30.0, 2.0, 0.5, 50.0});
  double other = draw.random.chance(70) ? 1 / cap : draw.random.pick(std::array{0.5, 1.0, 2.0});
  Expr inner = draw.random.chance(50) ? scores / draw.number(scores, 1 / other) : scores * draw.number(scores, other);
  return draw.random.chance(80) ? tanh(inner) * draw.number(scores, cap) : tanh(inner);
}

Expr linked(Draw& draw, Builder& builder, const Heads& of, Expr scores) {
  switch (draw.random.below(11)) {
    case 0:
    case 1:
    case 2: return scaled(draw, of, scores);
    case 3:
    case 4: return capped(draw, scores);
    case 5:
    case 6:
    case 7: return masked(draw, builder, of, scores);
    case 8: return biased(draw, builder, of, scores);
    case 9: return scores * draw.weight(builder, scores.dtype(), {of.heads, 1, 1});
    default: return scores - reduce(scores, "max", {-1});
  }
}

Expr spelled_softmax(Draw& draw, Expr scores) {
  if (draw.random.chance(70)) return scores.builder().op(Op::kSoftmax, {scores});
  Expr e = exp(scores - reduce(scores, "max", {-1}));
  return e / sum(e, {-1});
}

Expr without_nan(Draw& draw, Expr p) {
  if (!draw.random.chance(20)) return p;
  return where(unary(Op::kIsNan, p), scalar_like(p, 0), p);
}

Expr attention(Draw& draw, Builder& builder) {
  Heads of = random_heads(draw);
  Expr q = split_heads(draw, builder, of, of.queries, of.depth, Role::kQuery);
  Expr k = split_heads(draw, builder, of, of.keys, of.depth, Role::kKeyOrValue);
  Expr v = split_heads(draw, builder, of, of.keys, of.value_depth, Role::kKeyOrValue);
  if (!q.valid() || !k.valid() || !v.valid()) return {};
  if (draw.random.chance(25)) q = scaled(draw, of, q);
  if (draw.random.chance(10)) k = scaled(draw, of, k);
  auto last = static_cast<int64_t>(k.rank()) - 1;
  Axes swapped = last == 3 ? Axes{0, 1, 3, 2} : Axes{0, 2, 1};
  if (draw.random.chance(15))
    for (int64_t& axis : swapped) axis = draw.random.chance(50) ? axis - last - 1 : axis;
  Expr scores = draw.random.chance(20) ? matmul(q, k, {.b = true}) : matmul(q, transpose(k, swapped));
  DType narrow = of.dtype;
  bool is_wide = is_half(narrow) && draw.random.chance(50);
  if (is_wide) scores = cast(scores, DType::kF32);
  for (int64_t links = draw.random.pick(std::array{0, 1, 1, 2, 2, 3, 4}); links > 0 && scores.valid(); links--)
    scores = linked(draw, builder, of, scores);
  if (!scores.valid()) return {};
  Expr p = without_nan(draw, spelled_softmax(draw, scores));
  if (is_wide) p = cast(p, narrow);
  Expr y = matmul(p, v);
  if (!y.valid() || y.rank() != 4 || draw.random.chance(50)) return y;
  Dim batch = y.dim(0);
  return reshape(transpose(y, {0, 2, 1, 3}), {batch, of.queries, of.heads * of.value_depth});
}

// Batch and heads as one axis, and regrouped to add a mask.
Expr regrouped(Draw& draw, Builder& builder) {
  Heads of = random_heads(draw);
  Dim rows = of.batch * of.heads;
  auto value = [&](const Dim& length, const Dim& depth) {
    Expr x = draw.value(builder, of.dtype, {of.batch, of.heads, length, depth});
    return reshape(x, {rows, length, depth});
  };
  Expr q = value(of.queries, of.depth), k = value(of.keys, of.depth), v = value(of.keys, of.value_depth);
  if (!q.valid() || !k.valid() || !v.valid()) return {};
  Expr scores = matmul(scaled(draw, of, q), transpose(k, {0, 2, 1}));
  if (draw.random.chance(60) && scores.valid()) {
    Expr wide = linked(draw, builder, of, reshape(scores, {of.batch, of.heads, of.queries, of.keys}));
    if (!wide.valid()) return {};
    scores = reshape(wide, {rows, of.queries, of.keys});
  }
  if (!scores.valid()) return {};
  return matmul(spelled_softmax(draw, scores), v);
}

constexpr Spelling kAttentions[] = {attention, attention, attention, attention, regrouped};

}  // namespace

std::span<const Spelling> attention_spellings() {
  return kAttentions;
}

}  // namespace rlx::test
