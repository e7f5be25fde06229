// SPDX-License-Identifier: Apache-2.0
// Products with weights: linear with its bias on either side, siblings of one input, gated layers.
#include <array>
#include <cmath>

#include "draw.h"

namespace rlx::test {

namespace {

constexpr int64_t kWidths[] = {1, 2, 3, 4, 8};

Expr layer_input(Draw& draw, Builder& builder, DType dtype) {
  Expr x = draw.any(builder, DTypeSet{dtype}, 2);
  if (x.valid() && !x.dim(-1).is_literal()) return builder.fail(Status(Code::kShape, "an open width"));
  return x;
}

Expr activation(Draw& draw, Expr x) {
  if (!x.valid()) return x;
  switch (draw.random.below(8)) {
    case 0: return maximum(x, 0.0);
    case 1: return unary(Op::kGelu, x);
    case 2: return x * unary(Op::kSigmoid, x);
    case 3: return tanh(x);
    case 4: return unary(Op::kSigmoid, x);
    case 5: return unary(Op::kRelu, x);
    case 6: return x * 0.5 * (1.0 + erf(x * std::sqrt(0.5)));
    default: return x;
  }
}

// x [.., K] times W, stored as [K,N] or transposed; halves now and then in f32.
Expr product(Draw& draw, Builder& builder, Expr x, const Dim& width) {
  if (!x.valid() || x.rank() < 2) return {};
  DType dtype = x.dtype();
  Dim depth = x.dim(-1);
  Expr y;
  switch (draw.random.below(4)) {
    case 0: y = matmul(x, draw.weight(builder, dtype, {width, depth}), {.b = true}); break;
    case 1: y = matmul(x, transpose(draw.weight(builder, dtype, {width, depth}), {1, 0})); break;
    case 2: {
      Shape rows{1, depth}, shape = x.dims();
      for (size_t i = 0; i + 1 < shape.size(); i++) rows[0] *= shape[i];
      shape.back() = width;
      y = reshape(matmul(reshape(x, rows), draw.weight(builder, dtype, {depth, width})), shape);
      break;
    }
    default: y = matmul(x, draw.weight(builder, dtype, {depth, width}));
  }
  return y;
}

Expr with_bias(Draw& draw, Builder& builder, Expr y) {
  if (!y.valid() || draw.random.chance(30)) return y;
  Shape shape{y.dim(-1)};
  if (draw.random.chance(15)) shape.insert(shape.begin(), 1);
  if (draw.random.chance(10)) shape = {1};
  Expr bias = draw.weight(builder, y.dtype(), shape);
  return draw.random.chance(50) ? y + bias : bias + y;
}

Expr linear(Draw& draw, Builder& builder) {
  Expr x = layer_input(draw, builder, draw.float_type());
  if (x.valid() && draw.random.chance(15)) x = x * draw.number(x, 0.125);
  Expr y = activation(draw, with_bias(draw, builder, product(draw, builder, x, draw.random.pick(kWidths))));
  if (y.valid() && draw.random.chance(20)) y = y * draw.number(y, 0.5);
  if (y.valid() && draw.random.chance(30)) y = y + draw.value(builder, y.dtype(), y.dims());
  return y;
}

// A half that is widened around a product, or whose product is rounded between two.
Expr linear_in_casts(Draw& draw, Builder& builder) {
  DType narrow = draw.random.chance(60) ? DType::kF16 : DType::kBF16;
  Expr x = layer_input(draw, builder, narrow);
  if (!x.valid()) return {};
  Expr y = with_bias(draw, builder, product(draw, builder, cast(x, DType::kF32), draw.random.pick(kWidths)));
  if (!y.valid()) return {};
  y = cast(activation(draw, y), narrow);
  return draw.random.chance(50) ? product(draw, builder, y, draw.random.pick(kWidths)) : y;
}

Expr siblings(Draw& draw, Builder& builder) {
  Expr x = layer_input(draw, builder, draw.float_type());
  if (!x.valid()) return {};
  std::vector<Expr> parts;
  for (int64_t count = draw.random.between(2, 4); count > 0; count--)
    parts.push_back(with_bias(draw, builder, product(draw, builder, x, draw.random.pick(kWidths))));
  if (!parts[0].valid()) return {};
  for (const Expr& part : parts)
    if (!part.valid()) return {};
  return concat(parts, -1);
}

Expr gated(Draw& draw, Builder& builder) {
  Expr x = layer_input(draw, builder, draw.float_type());
  if (!x.valid()) return {};
  Dim width = draw.random.pick(kWidths);
  Expr gate, up;
  if (draw.random.chance(50)) {
    Expr both = with_bias(draw, builder, product(draw, builder, x, 2 * width));
    if (!both.valid()) return {};
    gate = slice(both, -1, 0, width), up = slice(both, -1, width, 2 * width);
  } else {
    gate = with_bias(draw, builder, product(draw, builder, x, width));
    up = with_bias(draw, builder, product(draw, builder, x, width));
  }
  if (!gate.valid() || !up.valid()) return {};
  if (draw.random.chance(40)) std::swap(gate, up);
  Expr y = draw.random.chance(50) ? activation(draw, gate) * up : up * activation(draw, gate);
  return draw.random.chance(50) ? with_bias(draw, builder, product(draw, builder, y, x.dim(-1))) : y;
}

// Batches that broadcast, scalars on either side, products of products.
Expr products(Draw& draw, Builder& builder) {
  DType dtype = draw.float_type();
  Expr a = draw.any(builder, DTypeSet{dtype}, 2);
  if (!a.valid()) return {};
  Shape shape = a.dims();
  for (size_t i = 0; i + 2 < shape.size(); i++)
    if (draw.random.chance(30)) shape[i] = 1;
  shape[shape.size() - 2] = a.dim(-1), shape.back() = draw.random.pick(kWidths);
  Expr b = draw.value(builder, dtype, shape);
  if (draw.random.chance(40)) a = a * draw.number(a, 0.125);
  if (b.valid() && draw.random.chance(40)) b = b * draw.number(b, 0x1p-12);
  Expr y = matmul(a, b);
  if (y.valid() && draw.random.chance(30)) y = y / draw.number(y, 8);
  return y;
}

// A param of blocks, one or more in a row.
Expr block_weight(Draw& draw, Builder& builder, int64_t rows) {
  static constexpr DType kTypes[] = {DType::kQ4_0,   DType::kQ4_1,  DType::kQ5_0,  DType::kQ5_1, DType::kQ8_0,
                                     DType::kIQ4_NL, DType::kMXFP4, DType::kNVFP4, DType::kQ4_K, DType::kQ6_K};
  DType dtype = draw.random.pick(kTypes);
  int64_t width = info(dtype).block * draw.random.pick(std::array{1, 1, 2});
  std::string name = "q" + std::to_string(draw.graph.nodes().size()) + "." + draw.graph.name();
  if (draw.is_body) name += std::to_string(draw.random.below(1000000));
  auto made = draw.graph.add_param(name, dtype, {rows, width});
  return made.ok() ? builder.wrap(*made) : builder.fail(made.status());
}

// Weights of blocks: products, rows, and their values; with a bias, an activation, a scale.
Expr of_blocks(Draw& draw, Builder& builder) {
  int64_t rows = draw.random.pick(kWidths);
  Expr w = block_weight(draw, builder, rows);
  if (!w.valid()) return {};
  DType dtype = draw.random.chance(70) ? DType::kF32 : draw.float_type();
  Shape shape{draw.random.chance(40) && !draw.is_body ? draw.dim() : Dim(draw.random.between(1, 5)), w.dim(-1)};
  if (draw.random.chance(20)) shape.insert(shape.begin(), draw.random.between(1, 2));
  auto values = [&] { return builder.op(Op::kDequantize, {w}, {{"out_dtype", dtype}}); };
  Expr y;
  switch (draw.random.below(6)) {
    case 0: y = builder.op(Op::kGather, {w, draw.any(builder, DTypeSet{DType::kI64}, 1)}); break;
    case 1: y = values(); break;
    case 2: y = matmul(draw.value(builder, dtype, shape), values(), {.b = true}); break;
    case 3: y = matmul(draw.value(builder, dtype, shape), transpose(values(), {1, 0})); break;
    default: y = matmul(draw.value(builder, dtype, shape), w, {.b = true});
  }
  y = activation(draw, with_bias(draw, builder, y));
  if (y.valid() && draw.random.chance(20)) y = y * draw.weight(builder, y.dtype(), {y.dim(-1)});
  if (y.valid() && draw.random.chance(20)) y = y + draw.value(builder, y.dtype(), y.dims());
  return y;
}

constexpr Spelling kLayers[] = {linear, linear, linear_in_casts, siblings, gated, products, of_blocks};

}  // namespace

std::span<const Spelling> layer_spellings() {
  return kLayers;
}

}  // namespace rlx::test
