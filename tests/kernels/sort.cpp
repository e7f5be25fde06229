// SPDX-License-Identifier: Apache-2.0
// Sorted lines against a stable sort by the definition, however a line is cut.
#include "backends/cpu/kernels/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <numeric>

#include "base/visit.h"
#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Case {
  int64_t outer, n;
  Pieces pieces;
};
constexpr Case kCases[] = {{1, 1, {1, 1}},       {3, 0, {1, 0}},      {0, 5, {1, 5}},         {4, 33, {1, 33}},
                           {3, 97, {5, 20}},     {1, 1000, {32, 32}}, {2, 40000, {2, 20000}}, {2, 700, {1, 700}},
                           {3, 4096, {1, 4096}}, {1, 3000, {4, 750}}, {2, 9001, {1, 9001}}};

enum class Draw : uint8_t { kFew, kAll, kLast };  // few values, so that many are equal; all; most are the last in order
constexpr std::array kDraws{Draw::kFew, Draw::kAll, Draw::kLast};

template <class T>
T drawn(std::mt19937& rng, bool spread) {
  if constexpr (std::is_floating_point_v<T> || is_small_float<T>) {
    const float kValues[] = {-1, 0, -0.0f, 1e-40f, 2, -3, NAN, -NAN, INFINITY, -INFINITY};
    return T(spread ? static_cast<float>(rng()) - 2e9f : kValues[rng() % 10]);
  } else {
    auto bits = static_cast<uint64_t>(rng()) << 32 | rng();
    if constexpr (std::is_same_v<T, bool8>)
      return T(bits % 2 == 1);
    else
      return spread ? static_cast<T>(bits) : static_cast<T>(bits % 7);
  }
}

template <class T>
std::vector<int64_t> order_of(const T* line, int64_t n, bool descending) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  auto less = [](Compute<T> a, Compute<T> b) {
    if constexpr (std::is_floating_point_v<Compute<T>>)
      if (std::isnan(b)) return !std::isnan(a);
    return a < b;
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    auto a = static_cast<Compute<T>>(line[i]), b = static_cast<Compute<T>>(line[j]);
    return descending ? less(b, a) : less(a, b);
  });
  return order;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  return std::bit_cast<Bytes>(a) == std::bit_cast<Bytes>(b);
}

template <class T, class Index>
void check(const Case& it, DType dtype, bool descending, Draw draw) {
  std::mt19937 rng(5);
  auto count = static_cast<size_t>(it.outer * it.n);
  std::vector<T> x(count), values(count + 1);
  for (T& value : x) value = drawn<T>(rng, draw != Draw::kFew);
  if (draw == Draw::kLast && count > 0) {
    T last = x[static_cast<size_t>(order_of(x.data(), it.n, descending).back())];
    for (T& value : x)
      if (rng() % 4 > 0) value = last;
  }
  std::vector<Index> indices(count + 1, 77);
  std::vector<int64_t> counts(static_cast<size_t>(it.outer * it.pieces.count * it.pieces.count));
  SortArgs args;
  args.x = x.data(), args.values = values.data(), args.indices = indices.data(), args.dtype = dtype;
  args.wide_indices = sizeof(Index) == 8, args.descending = descending;
  args.outer = it.outer, args.n = it.n, args.pieces = it.pieces, args.counts = counts.data();
  if (it.pieces.count > 1) {
    run_backwards(sort_count_loop(), args);
    run_backwards(sort_spread_loop(), args);
  }
  run_backwards(sort_loop(), args);
  ASSERT_EQ(indices.back(), 77);
  for (int64_t line = 0; line < it.outer; line++) {
    const T* own = x.data() + line * it.n;
    std::vector<int64_t> order = order_of(own, it.n, descending);
    for (int64_t i = 0; i < it.n; i++) {
      auto at = static_cast<size_t>(line * it.n + i);
      int64_t place = order[static_cast<size_t>(i)];
      ASSERT_EQ(indices[at], place) << i;
      ASSERT_TRUE(same_bits(values[at], own[place])) << i;
    }
  }
}

TEST(sort, lines_in_stable_order) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kI16, DType::kI32,
                      DType::kI64, DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kBool}) {
    SCOPED_TRACE(name(dtype));
    ASSERT_TRUE(can_sort(dtype));
    constexpr DTypeSet kAll = dtypes::N | dtypes::B;
    visit<kAll>(dtype, [&]<class T>() {
      for (const Case& it : kCases)
        for (Draw draw : kDraws)
          for (bool descending : {false, true}) {
            ASSERT_NO_FATAL_FAILURE((check<T, int64_t>(it, dtype, descending, draw)));
            ASSERT_NO_FATAL_FAILURE((check<T, int32_t>(it, dtype, descending, draw)));
          }
    });
  }
}

template <class T, class Index>
void check_first(int64_t n, int64_t k, DType dtype, bool descending, bool spread) {
  constexpr int64_t kLines = 2;
  std::mt19937 rng(6);
  std::vector<T> x(static_cast<size_t>(kLines * n)), values(static_cast<size_t>(kLines * k) + 1);
  for (T& value : x) value = drawn<T>(rng, spread);
  std::vector<Index> indices(values.size(), 77);
  SortArgs args;
  args.x = x.data(), args.values = values.data(), args.indices = indices.data(), args.dtype = dtype;
  args.wide_indices = sizeof(Index) == 8, args.descending = descending;
  args.outer = kLines, args.n = n, args.k = k;
  run_backwards(sort_first_loop(), args);
  ASSERT_EQ(indices.back(), 77);
  for (int64_t line = 0; line < kLines; line++) {
    std::vector<int64_t> order = order_of(x.data() + line * n, n, descending);
    for (int64_t i = 0; i < k; i++) {
      auto at = static_cast<size_t>(line * k + i);
      int64_t place = order[static_cast<size_t>(i)];
      ASSERT_EQ(indices[at], place) << i;
      ASSERT_TRUE(same_bits(values[at], x[static_cast<size_t>(line * n + place)])) << i;
    }
  }
}

TEST(sort, the_first_of_a_line) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI8, DType::kI64, DType::kU32}) {
    SCOPED_TRACE(name(dtype));
    constexpr DTypeSet kSome = {DType::kF32, DType::kF64, DType::kF16, DType::kI8, DType::kI64, DType::kU32};
    visit<kSome>(dtype, [&]<class T>() {
      for (auto [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {7, 3}, {90, 90}, {500, 60}, {9001, 5000}})
        for (int bits = 0; bits < 4; bits++) {
          SCOPED_TRACE(testing::Message() << k << " of " << n);
          ASSERT_NO_FATAL_FAILURE((check_first<T, int64_t>(n, k, dtype, (bits & 1) != 0, (bits & 2) != 0)));
          ASSERT_NO_FATAL_FAILURE((check_first<T, int32_t>(n, k, dtype, (bits & 1) != 0, (bits & 2) != 0)));
        }
    });
  }
}

TEST(sort, long_lines_are_cut) {
  EXPECT_EQ(pieces_of_sort(1, 1000).count, 1);
  EXPECT_EQ(pieces_of_sort(64, 1 << 20).count, 1);
  EXPECT_EQ(pieces_of_sort(1, 1 << 20).count, kManyParts);
  EXPECT_EQ(pieces_of_sort(2, 1 << 20).count, kManyParts / 2);
  EXPECT_GE(sort_bytes(1 << 20), static_cast<size_t>(kManyParts * kManyParts) * sizeof(int64_t));
}

}  // namespace
}  // namespace rlx::cpu
