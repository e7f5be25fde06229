// SPDX-License-Identifier: Apache-2.0
// Products of integers against plain loops: every bit, at any strides, on every instruction set.
#include "backends/cpu/gemm/integer.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

template <class T>
std::vector<T> noise(int64_t count, std::mt19937& rng) {
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& it : numbers) it = static_cast<T>(uint64_t{rng()} << 32 | rng());
  return numbers;
}

template <class T>
void check(const Loop<MatmulSides<T>>& loop, int64_t m, int64_t n, int64_t k, bool flip_a, bool flip_b) {
  constexpr int64_t kBatches = 2, kGuards = 8;
  std::mt19937 rng(7);
  std::vector<T> a = noise<T>(kBatches * m * k, rng), b = noise<T>(k * n, rng);
  std::vector<T> y = noise<T>(kBatches * m * n + kGuards, rng), before = y;
  MatmulSides<T> sides;
  sides.a = a.data(), sides.b = b.data(), sides.y = y.data();
  sides.m = m, sides.n = n, sides.k = k;
  sides.a_row = flip_a ? 1 : k, sides.a_col = flip_a ? m : 1;
  sides.b_row = flip_b ? 1 : n, sides.b_col = flip_b ? k : 1;
  sides.y_row = n;
  sides.batch_rank = 1;
  sides.batch[0] = kBatches, sides.a_batch[0] = m * k, sides.y_batch[0] = m * n;
  run_backwards(loop, sides);
  for (int64_t i = 0; i < kGuards; i++) ASSERT_EQ(y[y.size() - 1 - i], before[y.size() - 1 - i]);
  for (int64_t batch = 0; batch < kBatches; batch++)
    for (int64_t r = 0; r < m; r++)
      for (int64_t c = 0; c < n; c++) {
        T sum = 0;
        for (int64_t t = 0; t < k; t++)
          sum += a[batch * m * k + r * sides.a_row + t * sides.a_col] * b[t * sides.b_row + c * sides.b_col];
        ASSERT_EQ(y[(batch * m + r) * n + c], sum)
            << "row " << r << ", column " << c << " of " << m << "x" << k << "x" << n;
      }
}

TEST(integer_product, products_are_sums_that_wrap) {
  const int64_t kSizes[][3] = {{1, 1, 1}, {5, 70, 3}, {33, 17, 130}, {4, 64, 64}, {67, 5, 65}, {3, 9, 0}, {0, 4, 4}};
  for (Isa isa : available_isas())
    for (const auto& [m, n, k] : kSizes)
      for (int flips = 0; flips < 4; flips++) {
        SCOPED_TRACE(isa_name(isa));
        ASSERT_NO_FATAL_FAILURE(check(integer_fns(isa).product32, m, n, k, flips & 1, flips & 2));
        ASSERT_NO_FATAL_FAILURE(check(integer_fns(isa).product64, m, n, k, flips & 1, flips & 2));
      }
}

}  // namespace
}  // namespace rlx::cpu
