// SPDX-License-Identifier: Apache-2.0
// The element types, and the sets of them that op signatures use (semantics.md T1-T7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

enum class DType : uint8_t {
  kNone = 0,
#define RLX_DTYPE(id, Enum, name, block, bytes) k##Enum = id,
#include "base/dtype.def"
#undef RLX_DTYPE
};

struct DTypeInfo {
  std::string_view name;
  uint16_t block;  // elements that are stored together: 1 except for block-quantised types
  uint16_t bytes;  // of one block
};

const DTypeInfo& info(DType dtype);
std::optional<DType> find_dtype(std::string_view name);
inline std::string_view name(DType dtype) {
  return info(dtype).name;
}

// Bytes of so many consecutive elements; nullopt if they are not a whole number of blocks or the bytes exceed 63 bits.
std::optional<int64_t> byte_size(DType dtype, int64_t elements);
inline int64_t element_bytes(DType dtype) {
  return info(dtype).bytes;
}  // of a type that has no blocks

// A set of dtypes: bit i stands for the dtype with id i (block types, 64..78, share the upper half).
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> members) {
    for (DType member : members) bits_ |= bit(member);
  }
  constexpr bool has(DType dtype) const { return (bits_ & bit(dtype)) != 0; }
  constexpr DTypeSet operator|(DTypeSet other) const { return DTypeSet(bits_ | other.bits_); }
  constexpr bool operator==(const DTypeSet&) const = default;

 private:
  constexpr explicit DTypeSet(uint64_t members) : bits_(members) {}
  static constexpr uint64_t bit(DType dtype) {
    auto id = static_cast<unsigned>(dtype);
    return uint64_t{1} << (id < 64 ? id : id - 32);
  }

 public:
  uint64_t bits_ = 0;  // public only because template arguments must be
};

namespace dtypes {  // the sets of semantics.md, by their letters
inline constexpr DTypeSet F{DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
inline constexpr DTypeSet S{DType::kI8, DType::kI16, DType::kI32, DType::kI64};
inline constexpr DTypeSet U{DType::kU8, DType::kU16, DType::kU32, DType::kU64};
inline constexpr DTypeSet I = S | U;
inline constexpr DTypeSet N = F | I;
inline constexpr DTypeSet B{DType::kBool};
inline constexpr DTypeSet Z{DType::kC64, DType::kC128};
inline constexpr DTypeSet D = N | B | Z;
inline constexpr DTypeSet E{DType::kF8E4M3, DType::kF8E5M2};
inline constexpr DTypeSet A = D | E;
inline constexpr DTypeSet X{DType::kI32, DType::kI64};
inline constexpr DTypeSet Q{DType::kQ4_0, DType::kQ4_1,   DType::kQ5_0,   DType::kQ5_1,  DType::kQ8_0,
                            DType::kQ2_K, DType::kQ3_K,   DType::kQ4_K,   DType::kQ5_K,  DType::kQ6_K,
                            DType::kQ8_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4, DType::kNVFP4};
}  // namespace dtypes

// "f32, f64 or c64", for messages; all block-quantised ones are named as one.
std::string text_of(DTypeSet set);

inline bool is_float(DType dtype) {
  return dtypes::F.has(dtype);
}
inline bool is_half(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}
// The dtype in which arithmetic on this one is done: f32 for halves (semantics.md N6), for all others the dtype itself.
inline DType compute_dtype(DType dtype) {
  return is_half(dtype) ? DType::kF32 : dtype;
}
inline bool is_between_half_and_f32(DType from, DType to) {  // a conversion, either way
  return (is_half(from) && to == DType::kF32) || (from == DType::kF32 && is_half(to));
}
inline bool is_complex(DType dtype) {
  return dtypes::Z.has(dtype);
}
inline bool is_integer(DType dtype) {
  return dtypes::I.has(dtype);
}
inline bool is_eight_bit(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8;
}
inline bool is_block(DType dtype) {
  return info(dtype).block > 1;
}

}  // namespace rlx
