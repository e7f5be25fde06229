// SPDX-License-Identifier: Apache-2.0
// Extremes and the k first in order against a stable sort, with ties, NaN and infinities.
#include "backends/cpu/kernels/select.h"

#include <algorithm>
#include <numeric>

#include "base/half.h"
#include "guarded.h"

namespace rlx::cpu {
namespace {

// By the definition: a stable order in which NaN is greater than every number; of the smallest with `nan_wins`, that
// of -x.
std::vector<int64_t> order_of(const std::vector<float>& line, bool largest, bool nan_wins) {
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  auto less = [](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    float a = line[static_cast<size_t>(i)], b = line[static_cast<size_t>(j)];
    if (!largest && nan_wins) return less(-b, -a);
    return largest ? less(b, a) : less(a, b);
  });
  return order;
}

struct Case {
  int64_t outer, n, inner, k;
};

// `varied`: most elements differ.
void check(const Case& it, bool largest, bool nan_wins, bool varied, std::mt19937& rng) {
  Guarded x(it.outer * it.n * it.inner);
  const float kValues[] = {-1, 0, -0.0f, 1, 2, 3, NAN, INFINITY, -INFINITY};
  for (int64_t i = 0; i < x.size(); i++)
    x[i] = varied && rng() % 8 ? std::ldexp(static_cast<float>(rng()), -static_cast<int>(rng() % 40)) - 1
                               : kValues[rng() % 9];
  int64_t count = it.outer * it.k * it.inner;
  std::vector<float> values(static_cast<size_t>(count) + 1, 7);
  std::vector<int32_t> indices(static_cast<size_t>(count) + 1, 7);
  SelectArgs args;
  args.x = x.data(), args.values = values.data(), args.indices = indices.data(), args.wide_indices = false;
  args.outer = it.outer, args.n = it.n, args.inner = it.inner, args.k = it.k;
  args.largest = largest, args.nan_wins = nan_wins;
  std::vector<int64_t> partial(selected_bytes(static_cast<double>(it.n), it.k) / sizeof(int64_t));
  if (SelectArgs pieces; cut_lines(args, pieces, reinterpret_cast<std::byte*>(partial.data())))
    run_backwards(select_loop(), pieces);
  run_backwards(select_loop(), args);
  ASSERT_EQ(indices.back(), 7);
  for (int64_t o = 0; o < it.outer; o++)
    for (int64_t c = 0; c < it.inner; c++) {
      std::vector<float> line;
      for (int64_t i = 0; i < it.n; i++) line.push_back(x[(o * it.n + i) * it.inner + c]);
      std::vector<int64_t> order = order_of(line, largest, nan_wins);
      for (int64_t i = 0; i < it.k; i++) {
        auto at = static_cast<size_t>((o * it.k + i) * it.inner + c);
        ASSERT_EQ(indices[at], order[static_cast<size_t>(i)]) << i;
        ASSERT_EQ(std::memcmp(&values[at], &line[static_cast<size_t>(order[static_cast<size_t>(i)])], 4), 0);
      }
    }
}

TEST(select, the_first_in_order) {
  std::mt19937 rng(9);
  for (Case it : {Case{1, 1, 1, 1},     Case{3, 7, 1, 1},       Case{2, 9, 70, 1},     Case{2, 9, 130, 4},
                  Case{5, 300, 1, 128}, Case{2, 1500, 1, 1000}, Case{400, 50, 1, 3},   Case{0, 5, 3, 2},
                  Case{2, 5, 0, 1},     Case{4, 6, 1, 6},       Case{1, 50000, 1, 1},  Case{60, 37, 1, 1},
                  Case{5000, 5, 1, 1},  Case{100, 8, 1, 1},     Case{9, 512, 1, 1},    Case{9, 513, 1, 1},
                  Case{2, 700, 3, 99},  Case{3, 40001, 1, 9},   Case{7, 9, 1, 9},      Case{7, 47, 2, 5},
                  Case{7, 48, 1, 5},    Case{3, 64, 1, 64},     Case{2, 4096, 1, 46},  Case{2, 4097, 1, 300},
                  Case{3, 600, 21, 3},  Case{2, 500, 70, 20},   Case{1, 5000, 7, 300}, Case{1, 60000, 1, 900},
                  Case{90, 8, 1, 2},    Case{100, 12, 1, 1},    Case{70, 63, 1, 1},    Case{130, 64, 1, 1},
                  Case{70, 65, 1, 1},   Case{5, 256, 1, 16},    Case{3, 257, 1, 16},   Case{6, 77, 5, 11},
                  Case{4, 255, 1, 17},  Case{3, 9000, 1, 100},  Case{17, 7000, 1, 90}, Case{40, 80, 1, 1}})
    for (int bits = 0; bits < 8; bits++)
      ASSERT_NO_FATAL_FAILURE(check(it, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, rng)) << it.n << ' ' << it.k;
}

// Each element of a rising line is the largest so far.
TEST(select, lines_in_order) {
  constexpr int64_t kLong = 12000, kSelected = 128;
  std::vector<float> x(kLong), values(kSelected);
  std::iota(x.begin(), x.end(), 0.0F);
  std::vector<int64_t> indices(kSelected);
  for (bool largest : {false, true}) {
    SelectArgs args{.x = x.data(), .values = values.data(), .indices = indices.data()};
    args.n = kLong, args.k = kSelected, args.largest = largest;
    run_backwards(select_loop(), args);
    for (int64_t i = 0; i < kSelected; i++)
      ASSERT_EQ(indices[static_cast<size_t>(i)], largest ? kLong - 1 - i : i) << largest;
  }
}

TEST(select, extremes_of_long_integers) {
  std::mt19937 rng(12);
  for (int64_t n : {1, 2, 7, 100, 600})
    for (int bits = 0; bits < 4; bits++) {
      std::vector<int64_t> x(static_cast<size_t>(n));
      for (int64_t& it : x)
        it = static_cast<int64_t>(rng() % 9) - 4 + (int64_t{1} << 60) * static_cast<int64_t>(rng() % 3);
      int64_t index = -1;
      SelectArgs args{.x = x.data(), .indices = &index, .dtype = DType::kI64};
      args.n = n, args.largest = (bits & 1) != 0, args.last = (bits & 2) != 0;
      run_backwards(select_loop(), args);
      int64_t want = 0;
      for (int64_t i = 1; i < n; i++) {
        int64_t a = x[static_cast<size_t>(i)], b = x[static_cast<size_t>(want)];
        if (args.largest ? a > b : a < b) want = i;
        if (args.last && a == b) want = i;
      }
      ASSERT_EQ(index, want) << n << ' ' << bits;
    }
}

TEST(select, more_than_a_heap_holds) {
  std::mt19937 rng(10);
  for (Case it : {Case{1, 9000, 1, 2000}, Case{2, 5000, 3, 1500}, Case{1, 1100, 1, 1100}, Case{1, 40000, 1, 4096}})
    for (int bits = 0; bits < 4; bits++)
      ASSERT_NO_FATAL_FAILURE(check(it, (bits & 1) != 0, false, (bits & 2) != 0, rng)) << it.n << ' ' << it.k;
}

// NaN of either sign, zeros of either sign, infinities.
template <class T>
void check_halves(DType dtype, int64_t k) {
  for (int bits = 0; bits < 8; bits++) {
    bool largest = (bits & 1) != 0, nan_wins = (bits & 2) != 0;
    int64_t n = 41, inner = (bits & 4) != 0 ? 11 : 1;
    std::vector<T> x;
    const float kValues[] = {-1, 0, -0.0f, 0.5f, 2, 3, NAN, -NAN, INFINITY, -INFINITY};
    for (int64_t i = 0; i < n * inner; i++) x.push_back(T(kValues[i * 7 % 53 % 10]));
    std::vector<int64_t> indices(static_cast<size_t>(k * inner));
    SelectArgs args;
    args.x = x.data(), args.indices = indices.data(), args.dtype = dtype, args.n = n, args.inner = inner;
    args.k = k, args.largest = largest, args.nan_wins = nan_wins;
    run_whole(select_loop(), args);
    for (int64_t c = 0; c < inner; c++) {
      std::vector<float> line;
      for (int64_t i = 0; i < n; i++) line.push_back(x[static_cast<size_t>(i * inner + c)]);
      std::vector<int64_t> order = order_of(line, largest, nan_wins);
      for (int64_t i = 0; i < k; i++)
        ASSERT_EQ(indices[static_cast<size_t>(i * inner + c)], order[static_cast<size_t>(i)]) << bits;
    }
  }
}

TEST(select, orders_halves_with_nan_and_zeros) {
  for (int64_t k : {1, 2, 7}) {
    ASSERT_NO_FATAL_FAILURE(check_halves<f16>(DType::kF16, k));
    ASSERT_NO_FATAL_FAILURE(check_halves<bf16>(DType::kBF16, k));
  }
}

TEST(select, the_last_of_equal_ones) {
  const float x[] = {1, 3, NAN, 3, NAN, 2};
  int64_t index = -1;
  SelectArgs args;
  args.x = x, args.indices = &index, args.n = 6, args.last = true, args.nan_wins = true;
  run_whole(select_loop(), args);
  EXPECT_EQ(index, 4);
  args.n = 2, args.largest = false;
  run_whole(select_loop(), args);
  EXPECT_EQ(index, 0);
  std::vector<float> equal(61, 2);  // in all lanes
  args.x = equal.data(), args.n = 61;
  run_whole(select_loop(), args);
  EXPECT_EQ(index, 60);
  args.last = false;
  run_whole(select_loop(), args);
  EXPECT_EQ(index, 0);
}

}  // namespace
}  // namespace rlx::cpu
