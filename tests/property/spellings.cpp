// SPDX-License-Identifier: Apache-2.0
// Which spelling, and the normalisations: layer_norm, rms_norm, softmax and its like.
#include "draw.h"

namespace rlx::test {

bool add_spelling(Draw& draw) {
  std::span<const Spelling> tables[] = {norm_spellings(),      activation_spellings(), attention_spellings(),
                                        attention_spellings(), layer_spellings(),      position_spellings()};
  Spelling spelling = draw.random.pick(draw.random.pick(tables));
  return draw.attempt([&](Draw& of, Builder& builder) { return spelling(of, builder); });
}

namespace {

// ---- parts, each in one of its spellings ----

Expr spelled_mean(Draw& draw, Expr x, const Axes& axes) {
  Dim count = 1;
  for (int64_t axis : axes) count *= x.dim(axis);
  Builder& builder = x.builder();
  switch (draw.random.below(4)) {
    case 0: return sum(x, axes) / builder.size(count, x.dtype());
    case 1: return sum(x, axes) * (1.0 / builder.size(count, x.dtype()));
    case 2:
      if (count.is_literal() && count.literal() > 0)
        return sum(x, axes) * draw.number(x, 1.0 / static_cast<double>(count.literal()));
      [[fallthrough]];
    default: return mean(x, axes);
  }
}

Expr spelled_square(Draw& draw, Expr x) {
  switch (draw.random.below(4)) {
    case 0: return binary(Op::kPow, x, draw.number(x, 2));
    case 1: return unary(Op::kSquare, x);
    default: return x * x;
  }
}

Expr times_inverse_root(Draw& draw, Expr x, Expr square) {
  switch (draw.random.below(5)) {
    case 0: return x / sqrt(square);
    case 1: return x * (1.0 / sqrt(square));
    case 2: return x * binary(Op::kPow, square, draw.number(square, -0.5));
    case 3: return x / binary(Op::kPow, square, draw.number(square, 0.5));
    default: return x * unary(Op::kRsqrt, square);
  }
}

enum class Shift : uint8_t { kNever, kMaybe };

Expr scaled_and_shifted(Draw& draw, Builder& builder, Expr y, const Axes& axes, Shift shift) {
  if (!y.valid()) return y;
  Shape shape(y.dims().end() - static_cast<ptrdiff_t>(axes.size()), y.dims().end());
  if (draw.random.chance(65)) {
    Expr gamma = draw.weight(builder, y.dtype(), shape);
    if (draw.random.chance(15)) gamma = gamma + 1.0;
    y = draw.random.chance(50) ? y * gamma : gamma * y;
  }
  if (shift == Shift::kMaybe && draw.random.chance(65)) y = y + draw.weight(builder, y.dtype(), shape);
  return y;
}

// The input, now and then a sum that is read again; and whether a half is computed in f32.
Expr norm_input(Draw& draw, Builder& builder) {
  Expr x = draw.any(builder, DTypeSet{draw.float_type()}, 1);
  if (x.valid() && draw.random.chance(40)) x = x + draw.value(builder, x.dtype(), x.dims());
  return x;
}

constexpr double kEpsilons[] = {1e-5, 1e-6, 1e-12, 0, 0.5};

Axes norm_axes(Draw& draw, Expr x) {
  int64_t count = draw.random.chance(80) ? 1 : draw.random.between(1, static_cast<int64_t>(x.rank()));
  return trailing_axes(-count, x.rank());
}

Expr finish_norm(Draw& draw, Expr residual, Expr y) {
  return draw.random.chance(25) ? residual + y : y;
}

Expr layer_norm(Draw& draw, Builder& builder) {
  Expr given = norm_input(draw, builder);
  if (!given.valid()) return {};
  bool is_wide = is_half(given.dtype()) && draw.random.chance(60);
  Expr x = is_wide ? cast(given, DType::kF32) : given;
  Axes axes = norm_axes(draw, x);
  Expr centered = x - spelled_mean(draw, x, axes);
  Expr again = draw.random.chance(25) ? x - mean(x, axes) : centered;
  Expr square = spelled_mean(draw, spelled_square(draw, again), axes);
  Expr y = times_inverse_root(draw, centered, square + draw.number(square, draw.random.pick(kEpsilons)));
  if (is_wide && draw.random.chance(50)) y = cast(y, given.dtype());
  y = scaled_and_shifted(draw, builder, y, axes, Shift::kMaybe);
  if (y.valid() && y.dtype() != given.dtype()) y = cast(y, given.dtype());
  return finish_norm(draw, given, y);
}

Expr rms_norm(Draw& draw, Builder& builder) {
  Expr given = norm_input(draw, builder);
  if (!given.valid()) return {};
  bool is_wide = is_half(given.dtype()) && draw.random.chance(60);
  Expr x = is_wide ? cast(given, DType::kF32) : given;
  Axes axes = norm_axes(draw, x);
  Expr square = spelled_mean(draw, spelled_square(draw, x), axes);
  Expr eps = draw.number(square, draw.random.pick(kEpsilons));
  Expr y = times_inverse_root(draw, x, draw.random.chance(90) ? square + eps : maximum(square, eps));
  if (is_wide && draw.random.chance(50)) y = cast(y, given.dtype());
  y = scaled_and_shifted(draw, builder, y, axes, Shift::kNever);
  if (y.valid() && y.dtype() != given.dtype()) y = cast(y, given.dtype());
  return finish_norm(draw, given, y);
}

// A whole composite, whose statistics are read too.
Expr norm_with_statistics(Draw& draw, Builder& builder) {
  Expr x = norm_input(draw, builder);
  if (!x.valid()) return {};
  Outputs out = builder.ops(draw.random.chance(50) ? Op::kLayerNorm : Op::kRmsNorm, {x});
  Expr y = draw.random.chance(50) ? scaled_and_shifted(draw, builder, out[0], {-1}, Shift::kMaybe) : out[0];
  Expr statistic = out[out.size() - 1];
  return draw.random.chance(50) ? y : cast(y, statistic.dtype()) * statistic;
}

Expr softmax(Draw& draw, Builder& builder) {
  Expr x = draw.any(builder, DTypeSet{draw.float_type()}, 1);
  if (!x.valid()) return {};
  Axes axis{draw.random.chance(75) ? -1 : draw.random.between(0, static_cast<int64_t>(x.rank()) - 1)};
  Expr shifted = draw.random.chance(80) ? x - reduce(x, "max", axis) : x;
  Expr e = exp(shifted);
  Expr total = sum(e, axis);
  switch (draw.random.below(4)) {
    case 0: return e * (1.0 / total);
    case 1: return shifted - log(total);  // log_softmax
    default: return e / total;
  }
}

Expr variance(Draw& draw, Builder& builder) {
  Expr x = draw.any(builder, DTypeSet{draw.float_type()}, 1);
  if (!x.valid()) return {};
  Axes axes = norm_axes(draw, x);
  Expr m = spelled_mean(draw, x, axes);
  if (draw.random.chance(50)) return spelled_mean(draw, spelled_square(draw, x), axes) - m * m;
  return sqrt(spelled_mean(draw, spelled_square(draw, x - m), axes));
}

constexpr Spelling kNorms[] = {layer_norm, layer_norm, rms_norm, norm_with_statistics, softmax, softmax, variance};

}  // namespace

std::span<const Spelling> norm_spellings() {
  return kNorms;
}

}  // namespace rlx::test
