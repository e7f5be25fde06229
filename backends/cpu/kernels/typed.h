// SPDX-License-Identifier: Apache-2.0
// One elementwise op over elements of any type, computed in that type. Regions compute in f32 and cannot do these.
#pragma once

#include <cstddef>

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"
#include "base/dtype.h"
#include "base/static_vector.h"
#include "ir/op.h"

namespace rlx::cpu {

// y[i] = op(a[i], b[i], c[i]) for adjacent elements. y may be an operand whose elements have the size of y's.
using TypedFn = void (*)(const void* a, const void* b, const void* c, void* y, int64_t n);

inline constexpr int kMaxTypedInputs = 3;

struct TypedInput {
  const std::byte* data = nullptr;
  int64_t element = 1;             // bytes: 1, 2, 4, 8 or 16
  int64_t strides[kMaxRank] = {};  // in elements, 0 where it is broadcast
};
// Dense row-major y in dims.
struct TypedArgs {
  TypedFn fn = nullptr;
  int32_t rank = 0, input_count = 0;
  int64_t dims[kMaxRank] = {};
  TypedInput inputs[kMaxTypedInputs];
  std::byte* y = nullptr;
  int64_t element = 1;
};
void collapse_dims(TypedArgs&);  // see collapse.h

struct TypedFns {
  // The loop from the dtype of the last input to that of the result; null if there is none.
  TypedFn (*find)(Op op, DType from, DType to);
  Loop<TypedArgs> loop;
};
const TypedFns& typed_fns(Isa isa);

}  // namespace rlx::cpu
