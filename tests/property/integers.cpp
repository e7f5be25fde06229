// SPDX-License-Identifier: Apache-2.0
// Integers that count, wrap, are narrowed, and are compared: what masks, indices and random numbers are made of.
#include "base/visit.h"
#include "draw.h"

namespace rlx::test {

namespace {

constexpr DType kIntegers[] = {DType::kI32, DType::kI32, DType::kI64, DType::kI64, DType::kI16,
                               DType::kI8,  DType::kU8,  DType::kU32, DType::kU64, DType::kU16};
constexpr uint64_t kNumbers[] = {0,
                                 1,
                                 2,
                                 3,
                                 5,
                                 7,
                                 64,
                                 127,
                                 128,
                                 255,
                                 256,
                                 32767,
                                 65536,
                                 1103515245,
                                 INT32_MAX,
                                 1u << 31,
                                 UINT32_MAX,
                                 1u << 30,
                                 12345,
                                 INT64_MAX,
                                 uint64_t{1} << 32,
                                 uint64_t{1} << 62,
                                 uint64_t{1} << 63,
                                 uint64_t{0} - 1,
                                 uint64_t{0} - 2,
                                 (uint64_t{1} << 32) + 1};

// What is left of a number in this dtype.
Expr number(Draw& draw, Builder& builder, DType dtype) {
  if (!dtypes::I.has(dtype)) return builder.scalar(dtype, static_cast<double>(draw.random.pick(kNumbers)));
  uint64_t value =
      draw.random.chance(50) ? static_cast<uint64_t>(draw.random.between(0, 4)) : draw.random.pick(kNumbers);
  if (draw.random.chance(20)) value = uint64_t{0} - value;
  static constexpr int64_t kOnes[] = {1, 1};
  Tensor tensor = *Tensor::create(dtype, std::span(kOnes, draw.random.chance(75) ? 0 : 1));
  visit<dtypes::I>(dtype, [&]<class T>() { *tensor.as<T>() = static_cast<T>(value); });
  return builder.constant(tensor);
}

Expr counted(Draw& draw, Builder& builder) {
  DType dtype = draw.random.pick(kIntegers);
  if (draw.random.chance(15)) return draw.any(builder, DTypeSet{dtype});
  Shape shape;
  for (int64_t rank = draw.random.between(1, 2); rank > 0; rank--) shape.push_back(draw.attribute_dim(draw.dim()));
  int64_t axis = draw.random.below(static_cast<int64_t>(shape.size()));
  if (draw.random.chance(30) && shape.size() == 2) shape[static_cast<size_t>(1 - axis)] = 1;
  return iota(builder, shape, axis, dtype);
}

Expr step(Draw& draw, Builder& builder, Expr x) {
  Expr c = draw.random.chance(85) ? number(draw, builder, x.dtype())
                                  : builder.size(draw.attribute_dim(Dim::symbol("n")), x.dtype());
  switch (draw.random.below(16)) {
    case 0:
    case 1:
    case 2: return x * c;
    case 3:
    case 4: return x + c;
    case 5: return x - c;
    case 6: return c - x;
    case 7: return x / c;
    case 8: return binary(draw.random.chance(50) ? Op::kRem : Op::kFloorMod, x, c);
    case 9: return binary(draw.random.chance(50) ? Op::kShl : Op::kShr, x, c);
    case 10: return draw.random.chance(50) ? maximum(x, c) : minimum(x, c);
    case 11: return binary(Op::kFloorDiv, x, c);
    case 12: return draw.random.chance(50) ? -x : abs(x);
    case 13: return x * x;
    default: return cast(x, draw.random.pick(kIntegers));
  }
}

Expr chain(Draw& draw, Builder& builder) {
  Expr x = counted(draw, builder);
  for (int64_t steps = draw.random.between(1, 5); steps > 0 && x.valid(); steps--) x = step(draw, builder, x);
  return x;
}

Expr compared(Draw& draw, Expr a, Expr b) {
  static constexpr Op kCompare[] = {Op::kLt, Op::kLe, Op::kEq, Op::kNe, Op::kGt, Op::kGe};
  return binary(draw.random.pick(kCompare), a, b);
}

// A condition, and what it chooses.
Expr compared_chain(Draw& draw, Builder& builder) {
  Expr a = chain(draw, builder);
  if (!a.valid()) return {};
  Expr b = draw.random.chance(65) ? number(draw, builder, a.dtype()) : chain(draw, builder);
  if (!b.valid()) return {};
  if (draw.random.chance(15)) a = cast(a, DType::kF32);
  Expr condition =
      draw.random.chance(80) ? compared(draw, a, cast(b, a.dtype())) : compared(draw, cast(b, a.dtype()), a);
  if (!condition.valid() || draw.random.chance(40)) return condition;
  if (draw.random.chance(30)) condition = logical_and(condition, compared(draw, a, number(draw, builder, a.dtype())));
  if (!condition.valid()) return {};
  Expr x = draw.random.chance(50) ? draw.any(builder, DTypeSet{draw.float_type()}) : a;
  if (!x.valid()) return {};
  return draw.random.chance(50) ? where(condition, x, scalar_like(x, 0)) : where(condition, scalar_like(x, 1), x);
}

}  // namespace

bool add_integers(Draw& draw) {
  return draw.attempt([](Draw& of, Builder& builder) {
    return of.random.chance(70) ? compared_chain(of, builder) : chain(of, builder);
  });
}

}  // namespace rlx::test
