// SPDX-License-Identifier: Apache-2.0
// From a dtype at run time to a C++ type: visit<set>(dtype, [&]<class T>() { ... }). The function is instantiated only
// for the dtypes of the set. Any other dtype is our bug.
#pragma once

#include <cassert>
#include <complex>
#include <cstdlib>
#include <type_traits>

#include "base/dtype.h"
#include "base/half.h"

namespace rlx {

using c64 = std::complex<float>;
using c128 = std::complex<double>;

// The C++ type of the elements of each dense dtype.
template <DType kType>
struct Element;
#define RLX_ELEMENT(Enum, Type)    \
  template <>                      \
  struct Element<DType::k##Enum> { \
    using type = Type;             \
  };
RLX_ELEMENT(F32, float)
RLX_ELEMENT(F16, f16)
RLX_ELEMENT(BF16, bf16)
RLX_ELEMENT(F64, double)
RLX_ELEMENT(I8, int8_t)
RLX_ELEMENT(I16, int16_t)
RLX_ELEMENT(I32, int32_t)
RLX_ELEMENT(I64, int64_t)
RLX_ELEMENT(U8, uint8_t)
RLX_ELEMENT(U16, uint16_t)
RLX_ELEMENT(U32, uint32_t)
RLX_ELEMENT(U64, uint64_t)
RLX_ELEMENT(Bool, bool8)
RLX_ELEMENT(C64, c64)
RLX_ELEMENT(C128, c128)
RLX_ELEMENT(F8E4M3, f8e4m3)
RLX_ELEMENT(F8E5M2, f8e5m2)
#undef RLX_ELEMENT

template <class T>
inline constexpr bool is_small_float =
    std::is_same_v<T, f16> || std::is_same_v<T, bf16> || std::is_same_v<T, f8e4m3> || std::is_same_v<T, f8e5m2>;
template <class T>
inline constexpr bool is_complex_type = std::is_same_v<T, c64> || std::is_same_v<T, c128>;

// The type in which arithmetic on a storage type is done: float for floats of 8 and 16 bits (semantics.md N6), bool for
// bool8, the type itself for all others.
template <class T>
using Compute = std::conditional_t<is_small_float<T>, float, std::conditional_t<std::is_same_v<T, bool8>, bool, T>>;

template <DTypeSet kSet, class Fn>
decltype(auto) visit(DType dtype, Fn&& fn) {
  switch (dtype) {
#define RLX_CASE(Enum)                                                                                               \
  case DType::k##Enum:                                                                                               \
    if constexpr (kSet.has(DType::k##Enum)) return fn.template operator()<typename Element<DType::k##Enum>::type>(); \
    break;
    RLX_CASE(F32)
    RLX_CASE(F16)
    RLX_CASE(BF16)
    RLX_CASE(F64)
    RLX_CASE(I8)
    RLX_CASE(I16)
    RLX_CASE(I32)
    RLX_CASE(I64)
    RLX_CASE(U8)
    RLX_CASE(U16)
    RLX_CASE(U32)
    RLX_CASE(U64)
    RLX_CASE(Bool)
    RLX_CASE(C64)
    RLX_CASE(C128)
    RLX_CASE(F8E4M3)
    RLX_CASE(F8E5M2)
#undef RLX_CASE
    default: break;
  }
  std::abort();  // unreachable: signatures were checked before
}

}  // namespace rlx
