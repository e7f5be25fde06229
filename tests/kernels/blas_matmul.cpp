// SPDX-License-Identifier: Apache-2.0
// Products cut into BLAS's tiles, of small whole numbers, so that every sum is exact in any order.
#include "backends/cpu/gemm/blas_matmul.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/visit.h"

namespace rlx::cpu {
namespace {

template <class T>
struct blas_matmul : testing::Test {};
using Types = testing::Types<float, double, c64, c128>;
TYPED_TEST_SUITE(blas_matmul, Types);

template <class T>
std::vector<T> numbers(int64_t count, uint32_t state) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    values.push_back(T(static_cast<float>(state >> 24) / 32 - 4 > 0 ? 2.0f : -1.0f));
    if constexpr (is_complex_type<T>) values.back() *= T(0, state >> 30 & 1);
  }
  return values;
}

// Runs the parts one by one in reverse order, and compares with sums element by element at a few places per tile.
template <class T>
void expect_product(MatmulSides<T> p, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> y(static_cast<size_t>(p.batches() * p.m * p.n), T(77));
  p.a = a.data(), p.b = b.data(), p.y = y.data(), p.y_row = p.n;
  ASSERT_TRUE(blas_takes(p));
  for (int64_t part = blas_parts(p); part-- > 0;) ASSERT_TRUE(blas_run(p, part, part + 1).ok());
  for (int64_t index = 0; index < p.batches(); index++) {
    BatchOffsets at = batch_offsets(p, index);
    for (int64_t i = 0; i<p.m; i += p.m> 300 ? 17 : 1)
      for (int64_t j = 0; j<p.n; j += p.n> 300 ? 23 : 1) {
        T sum(0);
        for (int64_t t = 0; t < p.k; t++)
          sum += a[static_cast<size_t>(at.a + i * p.a_row + t * p.a_col)] *
                 b[static_cast<size_t>(at.b + t * p.b_row + j * p.b_col)];
        ASSERT_EQ(y[static_cast<size_t>(at.y + i * p.n + j)], sum) << index << ": " << i << ", " << j;
      }
  }
}

template <class T>
MatmulSides<T> sides(int64_t m, int64_t n, int64_t k, bool flip_a = false, bool flip_b = false) {
  MatmulSides<T> p;
  p.m = m, p.n = n, p.k = k;
  p.a_row = flip_a ? 1 : k, p.a_col = flip_a ? m : 1;
  p.b_row = flip_b ? 1 : n, p.b_col = flip_b ? k : 1;
  return p;
}

TYPED_TEST(blas_matmul, every_tile_in_every_layout) {
  using T = TypeParam;
  for (bool flip_a : {false, true})
    for (bool flip_b : {false, true})
      expect_product(sides<T>(261, 517, 515, flip_a, flip_b), numbers<T>(261 * 515, 1), numbers<T>(515 * 517, 2));
}

TYPED_TEST(blas_matmul, small_and_empty_sizes) {
  using T = TypeParam;
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {1, 5, 3}, {5, 1, 3}, {3, 4, 0}, {0, 4, 3}, {4, 0, 3}})
    expect_product(sides<T>(m, n, k), numbers<T>(m * k + 1, 3), numbers<T>(k * n + 1, 4));
}

TYPED_TEST(blas_matmul, batches_of_which_one_side_is_shared) {
  using T = TypeParam;
  MatmulSides<T> p = sides<T>(3, 4, 5);
  p.batch_rank = 2;
  p.batch[0] = 2, p.batch[1] = 3;
  p.a_batch[0] = 45, p.a_batch[1] = 15;
  p.b_batch[1] = 20;  // the same for both of the first axis
  p.y_batch[0] = 36, p.y_batch[1] = 12;
  expect_product(p, numbers<T>(90, 5), numbers<T>(60, 6));
}

TYPED_TEST(blas_matmul, sides_without_a_unit_stride_or_with_overlap_are_left_to_others) {
  using T = TypeParam;
  auto takes = [](int64_t a_row, int64_t a_col) {
    MatmulSides<T> p = sides<T>(4, 4, 4);
    p.y_row = 4, p.a_row = a_row, p.a_col = a_col;
    return blas_takes(p);
  };
  EXPECT_TRUE(takes(4, 1) && takes(9, 1) && takes(1, 4));
  EXPECT_FALSE(takes(8, 2) || takes(0, 1) || takes(-4, 1) || takes(3, 1) || takes(int64_t{1} << 31, 1));
}

}  // namespace
}  // namespace rlx::cpu
