// SPDX-License-Identifier: Apache-2.0
// What leaves hold.
#include <algorithm>
#include <cmath>

#include "base/visit.h"
#include "draw.h"

namespace rlx::test {

namespace {

enum class Kind { kTame, kOrdinary, kExtreme };

// `largest`: numbers whose products and sums are beyond the dtype, too.
template <class T>
T extreme_float(Random& random, bool largest) {
  using C = Compute<T>;
  if (!largest && random.chance(70)) {
    static constexpr double kSmall[] = {0x1p-17, 0x1p-24, 0x1p-14, 0x1p-149, 0x1p-126, 1e-9, 1.0 / 3, 100, -0.0};
    return T(static_cast<C>(random.pick(kSmall)));
  }
  static constexpr double kNumbers[] = {0x1p-17,  0x1p-24,  0x1p-14,  0x1p31, 0x1p32,  0x1p63, 65504,   448,
                                        57344,    0x1p-149, 0x1p-126, 1e38,   -1e9,    1e-9,   3e9,     0x1p127,
                                        -0x1p-17, 0x1p16,   1.0 / 3,  -65504, 0x1p-16, 0x1p15, 0x1p-133};
  switch (random.below(largest ? 8 : 4)) {
    case 0: return T(std::numeric_limits<C>::infinity());
    case 1: return T(-std::numeric_limits<C>::infinity());
    case 2: return T(std::numeric_limits<C>::quiet_NaN());
    case 3: return T(C(-0.0));
    case 4: return T(random.chance(50) ? std::numeric_limits<C>::max() : std::numeric_limits<C>::lowest());
    case 5: return T(random.chance(50) ? std::numeric_limits<C>::min() : std::numeric_limits<C>::denorm_min());
    default: return T(static_cast<C>(random.pick(kNumbers)));
  }
}

template <class T>
T extreme_integer(Random& random) {
  static constexpr uint64_t kNumbers[] = {1u << 31,
                                          uint64_t{1} << 32,
                                          INT64_MAX,
                                          INT32_MAX,
                                          1103515245,
                                          65536,
                                          255,
                                          127,
                                          128,
                                          32767,
                                          uint64_t{1} << 63,
                                          1u << 30,
                                          4294967295,
                                          3,
                                          0,
                                          uint64_t{1} << 62,
                                          (uint64_t{1} << 32) + 1};
  if (random.chance(30)) return random.chance(50) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
  return static_cast<T>(random.chance(25) ? uint64_t{0} - random.pick(kNumbers) : random.pick(kNumbers));
}

// Small numbers mostly, so that integers serve as indices and floats do not overflow; now and then a special one.
template <class T>
T random_element(Random& random, Kind kind, bool largest) {
  if constexpr (is_complex_type<T>) {
    using Part = typename T::value_type;
    Part real = random_element<Part>(random, kind, largest);
    return T(real, random_element<Part>(random, kind, largest));
  } else if constexpr (std::is_same_v<T, bool8>) {
    return random.chance(50);
  } else if constexpr (std::is_integral_v<T>) {
    if (kind == Kind::kExtreme) return extreme_integer<T>(random);
    return kind == Kind::kTame || random.chance(95) ? static_cast<T>(random.between(std::is_signed_v<T> ? -3 : 0, 3))
           : random.chance(50)                      ? std::numeric_limits<T>::max()
                                                    : std::numeric_limits<T>::min();
  } else {
    using C = Compute<T>;
    static constexpr C kSpecial[] = {C(0),
                                     C(-0.0),
                                     std::numeric_limits<C>::infinity(),
                                     -std::numeric_limits<C>::infinity(),
                                     std::numeric_limits<C>::quiet_NaN(),
                                     C(100)};
    if (kind == Kind::kExtreme) return extreme_float<T>(random, largest);
    return T(kind == Kind::kTame || random.chance(97) ? static_cast<C>(random.between(-2000, 2000)) / C(512)
                                                      : random.pick(kSpecial));
  }
}

enum class Elements : uint8_t { kAlike, kDrawnEach };

// The fields of a block (semantics.md Q1) whose bits are a float: their offsets, and how many bytes each has.
struct BlockFloats {
  DType dtype;
  std::vector<size_t> offsets;
  size_t bytes = 2;
};
const BlockFloats& floats_of(DType dtype) {
  static const std::vector<BlockFloats> kFloats{
      {DType::kQ4_0, {0}},    {DType::kQ4_1, {0, 2}},  {DType::kQ5_0, {0}},
      {DType::kQ5_1, {0, 2}}, {DType::kQ8_0, {0}},     {DType::kQ2_K, {80, 82}},
      {DType::kQ3_K, {108}},  {DType::kQ4_K, {0, 2}},  {DType::kQ5_K, {0, 2}},
      {DType::kQ6_K, {208}},  {DType::kQ8_K, {0}, 4},  {DType::kIQ4_NL, {0}},
      {DType::kIQ4_XS, {0}},  {DType::kMXFP4, {0}, 1}, {DType::kNVFP4, {0, 1, 2, 3}, 1}};
  return *std::find_if(kFloats.begin(), kFloats.end(), [&](const BlockFloats& it) { return it.dtype == dtype; });
}

// Blocks of any bits, but with scales of 2^-8 to 2^-7, so that no number is large.
Tensor blocks_of(Random& random, DType dtype, std::span<const int64_t> dims) {
  Tensor tensor = *Tensor::create(dtype, dims);
  for (size_t i = 0; i < tensor.bytes(); i++) tensor.data()[i] = static_cast<std::byte>(random.below(256));
  const BlockFloats& floats = floats_of(dtype);
  auto block_bytes = static_cast<size_t>(info(dtype).bytes);
  for (size_t block = 0; block < tensor.bytes(); block += block_bytes)
    for (size_t offset : floats.offsets) {
      std::byte* last = tensor.data() + block + offset + floats.bytes - 1;
      static constexpr uint8_t kHighBytes[] = {0, 0, 0x1c, 0, 0x3b};  // by the number of bytes
      *last = static_cast<std::byte>(floats.bytes == 1 ? (dtype == DType::kMXFP4 ? 119 : random.below(32))
                                                       : kHighBytes[floats.bytes]);
    }
  return tensor;
}

Tensor tensor_of(Random& random, DType dtype, std::span<const int64_t> dims, Kind kind, Elements elements) {
  if (is_block(dtype)) return blocks_of(random, dtype, dims);
  Tensor tensor = *Tensor::create(dtype, dims);
  bool is_splat = elements == Elements::kAlike, largest = is_splat || tensor.count() == 1;
  visit<dtypes::A>(dtype, [&]<class T>() {
    for (int64_t i = 0; i < tensor.count(); i++)
      tensor.as<T>()[i] = is_splat && i > 0 ? tensor.as<T>()[0] : random_element<T>(random, kind, largest);
  });
  return tensor;
}

}  // namespace

Tensor with_extremes(Random& random, const Tensor& given) {
  if (is_block(given.dtype())) return given;
  Tensor tensor = *Tensor::create(given.dtype(), given.dims());
  std::copy_n(given.data(), given.bytes(), tensor.data());
  bool largest = random.chance(10);
  int percent = random.pick(std::array{2, 10, 30, 100});
  visit<dtypes::A>(given.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < tensor.count(); i++)
      if (random.chance(percent)) tensor.as<T>()[i] = random_element<T>(random, Kind::kExtreme, largest);
  });
  return tensor;
}

Tensor random_tensor(Random& random, DType dtype, std::span<const int64_t> dims) {
  int64_t drawn = random.below(20);
  Kind kind = drawn < 11 ? Kind::kTame : drawn < 19 ? Kind::kOrdinary : Kind::kExtreme;
  return tensor_of(random, dtype, dims, kind, Elements::kDrawnEach);
}

Tensor random_constant(Random& random, DType dtype, std::span<const int64_t> dims) {
  int64_t drawn = random.below(10);
  Kind kind = drawn < 4 ? Kind::kTame : drawn < 7 ? Kind::kOrdinary : Kind::kExtreme;
  return tensor_of(random, dtype, dims, kind, random.chance(40) ? Elements::kAlike : Elements::kDrawnEach);
}

}  // namespace rlx::test
