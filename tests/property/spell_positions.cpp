// SPDX-License-Identifier: Apache-2.0
// Positions: rotations in their styles, rows taken by what counts, chains of views.
#include <cmath>

#include "draw.h"

namespace rlx::test {

namespace {

// [length, width], equal halves (or pairs) mostly.
Expr rotation_table(Draw& draw, Builder& builder, const Dim& length, int64_t width, bool in_pairs, Op fn, Expr angles) {
  DType dtype = angles.dtype();
  Expr part = draw.random.chance(70) ? unary(fn, angles) : draw.value(builder, dtype, {length, width / 2});
  if (!part.valid()) return {};
  Expr other = draw.random.chance(90) ? part : draw.value(builder, dtype, {length, width / 2});
  if (!in_pairs) return concat(std::array{part, other}, -1);
  return reshape(builder.op(Op::kStack, {part, other}, {{"axis", int64_t{-1}}}), {length, width});
}

Expr halves_turned(Draw& draw, Expr x, int64_t width) {
  Expr lo = slice(x, -1, 0, width / 2), hi = slice(x, -1, width / 2, width);
  return draw.random.chance(90) ? concat(std::array{-hi, lo}, -1) : concat(std::array{hi, -lo}, -1);
}

Expr pairs_turned(Expr x, int64_t width) {
  Expr even = slice(x, -1, 0, width, 2), odd = slice(x, -1, 1, width, 2);
  return reshape(x.builder().op(Op::kStack, {-odd, even}, {{"axis", int64_t{-1}}}), x.dims());
}

Expr rope(Draw& draw, Builder& builder) {
  DType dtype = draw.float_type();
  Dim length = draw.random.chance(60) ? Dim::symbol("m") : Dim(3),
      batch = draw.random.chance(50) ? Dim::symbol("n") : Dim(2);
  int64_t width = draw.random.pick(std::array{2, 4, 4, 8});
  bool in_pairs = draw.random.chance(40);
  Expr x = draw.value(builder, dtype, {batch, 2, length, width});
  if (!x.valid()) return {};
  Expr steps = cast(iota(builder, {length, 1}, 0, DType::kI64), dtype);
  Expr angles = steps * draw.weight(builder, dtype, {1, width / 2});
  if (!angles.valid()) return {};
  Expr c = rotation_table(draw, builder, length, width, in_pairs, Op::kCos, angles);
  Expr s = rotation_table(draw, builder, length, width, in_pairs, Op::kSin, angles);
  if (!c.valid() || !s.valid()) return {};
  if (draw.random.chance(30)) {
    Expr lo = slice(x, -1, 0, width / 2), hi = slice(x, -1, width / 2, width);
    Expr c2 = slice(c, -1, 0, width / 2), s2 = slice(s, -1, 0, width / 2);
    return concat(std::array{lo * c2 - hi * s2, draw.random.chance(85) ? hi * c2 + lo * s2 : hi * s2 + lo * c2}, -1);
  }
  Expr turned = in_pairs == draw.random.chance(90) ? pairs_turned(x, width) : halves_turned(draw, x, width);
  return x * c + turned * s;
}

// Rows of a table by positions that count, are given, or stand one past the end.
Expr counted_rows(Draw& draw, Builder& builder) {
  Expr table = draw.any(builder, DTypeSet{draw.float_type()}, 1);
  if (!table.valid()) return {};
  DType dtype = draw.random.chance(70) ? DType::kI64 : DType::kI32;
  int64_t axis = draw.random.between(0, static_cast<int64_t>(table.rank()) - 1);
  Dim length = draw.random.chance(50) ? table.dim(axis) : draw.attribute_dim(draw.dim());
  Expr steps = iota(builder, {length}, 0, dtype);
  if (!steps.valid()) return {};
  switch (draw.random.below(6)) {
    case 0: steps = steps + static_cast<double>(draw.random.between(-1, 1)); break;
    case 1: steps = steps * 2.0; break;
    case 2: steps = steps + builder.size(table.dim(axis), dtype) - builder.size(length, dtype); break;
    case 3: return gather(table, builder.scalar(dtype, static_cast<double>(draw.random.between(-1, 1))), axis);
    default: break;
  }
  if (!steps.valid()) return {};
  if (draw.random.chance(20)) steps = reshape(steps, {1, length});
  if (draw.random.chance(15)) return builder.op(Op::kGatherNd, {table, unsqueeze(steps, -1)});
  return gather(table, steps, axis);
}

// Axes counted from either end.
Axes random_order(Random& random, int64_t rank) {
  Axes perm;
  for (int64_t i = 0; i < rank; i++) perm.insert(perm.begin() + random.below(i + 1), random.chance(30) ? i - rank : i);
  return perm;
}

// The axis joined to the one behind it; where there is none, an axis of 1 before it.
Expr reshaped(Expr x, size_t axis) {
  Shape shape = x.dims();
  auto at = shape.begin() + static_cast<ptrdiff_t>(axis);
  if (axis + 1 < shape.size()) {
    shape[axis] *= shape[axis + 1];
    shape.erase(at + 1);
  } else {
    shape.insert(at, 1);
  }
  return reshape(x, shape);
}

Expr stretched(Draw& draw, Expr x) {
  Shape shape = x.dims();
  for (Dim& dim : shape)
    if (dim.is(1) && draw.random.chance(50)) dim = draw.attribute_dim(draw.dim());
  return broadcast_to(x, shape);
}

// Cut in two, and joined again.
Expr halved(Expr x, int64_t axis) {
  Dim size = x.dim(axis);
  if (!size.is_literal() || size.literal() < 2) return x;
  Dim half = size.literal() / 2;
  return concat(std::array{slice(x, axis, 0, half), slice(x, axis, half, size)}, axis);
}

// Views of views, with axes counted from either end.
Expr view_chain(Draw& draw, Builder& builder) {
  Expr x = draw.any(builder, dtypes::A, 1);
  for (int64_t count = draw.random.between(2, 5); count > 0 && x.valid() && x.rank() > 0; count--) {
    auto rank = static_cast<int64_t>(x.rank());
    int64_t axis = draw.random.between(-rank, rank - 1);
    switch (draw.random.below(7)) {
      case 0:
      case 1: x = transpose(x, random_order(draw.random, rank)); break;
      case 2: x = reshaped(x, static_cast<size_t>(draw.random.below(rank))); break;
      case 3:
        x = slice(x, axis, draw.random.between(-2, 1), draw.random.chance(50) ? Dim(INT32_MAX) : x.dim(axis));
        break;
      case 4: x = slice(x, axis, draw.random.between(0, 1), x.dim(axis), draw.random.between(1, 2)); break;
      case 5: x = stretched(draw, x); break;
      default: x = halved(x, axis);
    }
  }
  return x;
}

constexpr Spelling kPositions[] = {rope, rope, counted_rows, view_chain, view_chain};

}  // namespace

std::span<const Spelling> position_spellings() {
  return kPositions;
}

}  // namespace rlx::test
