// SPDX-License-Identifier: Apache-2.0
// Copies of views and picks of single elements against plain walks by index: every element size, any order of axes.
#include "backends/cpu/kernels/movement.h"

#include <algorithm>
#include <array>

#include "guarded.h"

namespace rlx::cpu {
namespace {

// A view of a dense tensor with these dims: axes in another order, backwards, by steps, or all at one place.
struct ViewOf {
  std::vector<int64_t> dims, strides;  // strides in elements
  int64_t start = 0;
};
const ViewOf kViews[] = {
    {{}, {}},
    {{7}, {1}},
    {{9}, {-1}, 8},
    {{9}, {2}},
    {{5, 40}, {1, 0}},
    {{40, 33}, {1, 40}},
    {{3, 5}, {1, 3}},
    {{130, 3}, {1, 130}},
    {{3, 130}, {1, 3}},
    {{2, 70, 65}, {4550, 1, 70}},
    {{70, 2, 65}, {1, 70, 140}},
    {{6, 5, 4, 3}, {1, 12, 60, 300}},
    {{4, 6, 5, 2}, {10, 40, 2, 1}},
    {{5, 4, 2}, {2, 10, 1}},
    {{64, 30, 4}, {4, 0, 1}},
    {{0, 4}, {1, 7}},
    {{4, 0}, {1, 4}},
    {{20, 30}, {1, -20}, 580},
    {{17, 16}, {-1, 17}, 16},
    {{3, 12000}, {1, 3}},
    {{12000, 3}, {1, 12000}},
    {{2, 6000, 5}, {30000, 1, 6000}},
    {{6000, 2, 3}, {1, 18000, 6000}},
    {{11, 900}, {1, 11}},
    {{900, 11}, {1, 900}},
    {{150, 149}, {1, 150}},
    {{3, 100}, {1, -3}, 297},
    {{7, 3}, {1, -14}, 28},
    // Matrices one after another, each of one block or of several.
    {{2, 2, 3, 5, 37}, {74, 1, 740, 148, 2}},
    {{3, 3, 4, 5, 11}, {33, 1, 495, 99, 3}},
    {{2, 3, 2, 130}, {780, 1, 390, 3}},
    {{40, 3, 500}, {1, 20000, 40}},
    {{2, 2, 14000}, {28000, 1, 2}},
};

TEST(movement, copies_are_plain_walks) {
  std::mt19937 rng(5);
  std::vector<std::byte> x(60000 * 16);
  for (std::byte& byte : x) byte = static_cast<std::byte>(rng());
  for (const ViewOf& view : kViews)
    for (int64_t element : {1, 2, 4, 8, 16}) {
      CopyArgs args{.from = x.data() + view.start * element, .element = element};
      args.rank = static_cast<int32_t>(view.dims.size());
      int64_t count = 1;
      for (size_t i = 0; i < view.dims.size(); i++) {
        count *= args.dims[i] = view.dims[i];
        args.strides[i] = view.strides[i] * element;
      }
      Guarded y((count * element + 3) / 4), again(y.size());
      collapse_dims(args);
      args.to = reinterpret_cast<std::byte*>(y.data());
      run_whole(copy_loop(), args);
      args.to = reinterpret_cast<std::byte*>(again.data());
      run_backwards(copy_loop(), args);
      ASSERT_TRUE(y.guards_intact() && again.guards_intact());
      for (int64_t i = 0; i < count; i++) {
        int64_t at = view.start;
        for (int64_t rest = i, d = std::ssize(view.dims) - 1; d >= 0; d--) {
          auto axis = static_cast<size_t>(d);
          at += rest % view.dims[axis] * view.strides[axis];
          rest /= view.dims[axis];
        }
        for (const Guarded* it : {&y, &again})
          ASSERT_EQ(std::memcmp(reinterpret_cast<const std::byte*>(it->data()) + i * element, x.data() + at * element,
                                static_cast<size_t>(element)),
                    0)
              << "view " << &view - kViews << ", element " << element << " at " << i;
      }
    }
}

// Of x [4, 5, 6], with indices of these dims.
template <class T, class Index>
void check_gather(const std::vector<int64_t>& dims, int32_t axis, Bounds bounds, std::mt19937& rng) {
  const std::array<int64_t, 3> kSizes{4, 5, 6}, kStrides{30, 6, 1};
  std::vector<T> x(120), y;
  for (T& value : x) value = static_cast<T>(rng());
  int64_t count = dims[0] * dims[1] * dims[2], n = kSizes[static_cast<size_t>(axis)];
  int64_t reach = bounds == Bounds::kError ? n : n + 3;
  std::vector<Index> index(static_cast<size_t>(count));
  for (Index& it : index)
    it = static_cast<Index>(static_cast<int64_t>(rng() % static_cast<uint32_t>(2 * reach)) - reach);
  y.assign(index.size() + 1, T(9));
  GatherElementsArgs args{.from = reinterpret_cast<const std::byte*>(x.data()),
                          .to = reinterpret_cast<std::byte*>(y.data()),
                          .index = index.data(),
                          .index_is_i64 = sizeof(Index) == 8,
                          .element = sizeof(T),
                          .rank = 3,
                          .axis = axis,
                          .n = n,
                          .bounds = bounds};
  std::copy(dims.begin(), dims.end(), args.dims);
  std::copy(kStrides.begin(), kStrides.end(), args.strides);
  ASSERT_EQ(gather_elements(args, 0, gather_elements_parts(args)), -1);
  ASSERT_EQ(y.back(), T(9));
  for (int64_t i = 0; i < count; i++) {
    int64_t at[3] = {i / (dims[1] * dims[2]), i / dims[2] % dims[1], i % dims[2]};
    int64_t pick = index[static_cast<size_t>(i)];
    if (pick < 0) pick += n;
    bool is_in = pick >= 0 && pick < n;
    at[axis] = std::clamp<int64_t>(pick, 0, n - 1);
    T want = is_in || bounds == Bounds::kClamp ? x[static_cast<size_t>(at[0] * 30 + at[1] * 6 + at[2])] : T(0);
    ASSERT_EQ(y[static_cast<size_t>(i)], want) << "axis " << axis << " at " << i;
  }
}

TEST(movement, elements_are_picked_one_by_one) {
  std::mt19937 rng(6);
  for (int32_t axis : {0, 1, 2})
    for (Bounds bounds : {Bounds::kError, Bounds::kClamp, Bounds::kDrop})
      for (const std::vector<int64_t>& given : {std::vector<int64_t>{4, 5, 6}, {2, 3, 4}, {1, 5, 1}, {4, 0, 6}}) {
        std::vector<int64_t> dims = given;
        dims[static_cast<size_t>(axis)] *= 2;
        ASSERT_NO_FATAL_FAILURE((check_gather<uint8_t, int64_t>(dims, axis, bounds, rng)));
        ASSERT_NO_FATAL_FAILURE((check_gather<uint16_t, int32_t>(dims, axis, bounds, rng)));
        ASSERT_NO_FATAL_FAILURE((check_gather<uint32_t, int32_t>(dims, axis, bounds, rng)));
        ASSERT_NO_FATAL_FAILURE((check_gather<uint64_t, int64_t>(dims, axis, bounds, rng)));
      }
}

TEST(movement, a_bad_index_is_told) {
  const uint32_t x[] = {1, 2, 3, 4};
  const int64_t index[] = {0, -2, 1, 2};
  uint32_t y[4] = {};
  GatherElementsArgs args{.from = reinterpret_cast<const std::byte*>(x), .to = reinterpret_cast<std::byte*>(y)};
  args.index = index, args.index_is_i64 = true, args.element = 4, args.rank = 2, args.axis = 1, args.n = 2;
  args.dims[0] = args.dims[1] = 2, args.strides[0] = 2, args.strides[1] = 1;
  EXPECT_EQ(gather_elements(args, 0, gather_elements_parts(args)), 3);
}

// Of x [2, 4, 5, width], at pairs of indices over the axes in the middle.
template <class T, class Index>
void check_tuples(int64_t width, Bounds bounds, std::mt19937& rng) {
  const int64_t kRows = 100, kSizes[] = {4, 5};
  std::vector<T> x(static_cast<size_t>(40 * width)), y(static_cast<size_t>(2 * kRows * width) + 1, T(9));
  for (T& value : x) value = static_cast<T>(rng());
  std::vector<Index> index(4 * kRows);
  int64_t beyond = bounds == Bounds::kError ? 0 : 3;
  for (size_t i = 0; i < index.size(); i++) {
    int64_t reach = kSizes[i % 2] + beyond;
    index[i] = static_cast<Index>(static_cast<int64_t>(rng() % static_cast<uint32_t>(2 * reach)) - reach);
  }
  GatherTuplesArgs args{.from = reinterpret_cast<const std::byte*>(x.data()),
                        .to = reinterpret_cast<std::byte*>(y.data()),
                        .index = index.data(),
                        .index_is_i64 = sizeof(Index) == 8,
                        .batch = 2,
                        .count = kRows,
                        .n = 20,
                        .bytes = width * static_cast<int64_t>(sizeof(T)),
                        .depth = 2,
                        .dims = {4, 5},
                        .bounds = bounds};
  for (int64_t part = gather_tuples_parts(args); part-- > 0;) ASSERT_LT(gather_tuples(args, part, part + 1).n, 0);
  ASSERT_EQ(y.back(), T(9));
  for (int64_t i = 0; i < 2 * kRows * width; i++) {
    int64_t row = i / width, at = row / kRows;
    bool is_in = true;
    for (size_t k : {0, 1}) {
      int64_t pick = index[static_cast<size_t>(2 * row) + k], n = kSizes[k];
      if (pick < 0) pick += n;
      is_in = is_in && pick >= 0 && pick < n;
      at = at * n + std::clamp<int64_t>(pick, 0, n - 1);
    }
    T want = is_in || bounds == Bounds::kClamp ? x[static_cast<size_t>(at * width + i % width)] : T(0);
    ASSERT_EQ(y[static_cast<size_t>(i)], want) << "at " << i;
  }
  index[7] = 5;
  args.bounds = Bounds::kError;
  BadIndex bad = gather_tuples(args, 0, 1);
  if (bounds == Bounds::kError) {
    ASSERT_TRUE(bad.value == 5 && bad.position == 7 && bad.n == 5);
  }
}

TEST(movement, slices_are_picked_by_tuples) {
  std::mt19937 rng(8);
  for (Bounds bounds : {Bounds::kError, Bounds::kClamp, Bounds::kDrop})
    for (int64_t width : {0, 1, 3}) {
      ASSERT_NO_FATAL_FAILURE((check_tuples<uint8_t, int64_t>(width, bounds, rng)));
      ASSERT_NO_FATAL_FAILURE((check_tuples<uint16_t, int32_t>(width, bounds, rng)));
      ASSERT_NO_FATAL_FAILURE((check_tuples<uint32_t, int32_t>(width, bounds, rng)));
      ASSERT_NO_FATAL_FAILURE((check_tuples<uint64_t, int64_t>(width, bounds, rng)));
    }
}

// Indices 0, 0, 1, 1 ... and others that begin like them.
template <class T>
void check_repeats(int64_t n, int64_t times, int64_t odd_one) {
  std::vector<T> x(static_cast<size_t>(20 * n)), y(static_cast<size_t>(20 * n * times) + 1, T{7});
  std::vector<int32_t> index(static_cast<size_t>(n * times));
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<T>(i);
  for (size_t i = 0; i < index.size(); i++) index[i] = static_cast<int32_t>(i / static_cast<size_t>(times));
  if (odd_one >= 0) index[static_cast<size_t>(odd_one)] = static_cast<int32_t>(n - 1);
  GatherArgs args;
  args.from = reinterpret_cast<const std::byte*>(x.data()), args.to = reinterpret_cast<std::byte*>(y.data());
  args.index = index.data(), args.outer = 20, args.n = n, args.count = n * times, args.bytes = sizeof(T);
  ASSERT_EQ(gather_rows(args, 0, gather_parts(args)), -1);
  for (size_t i = 0; i + 1 < y.size(); i++)
    ASSERT_EQ(y[i], x[i / index.size() * static_cast<size_t>(n) + static_cast<size_t>(index[i % index.size()])]) << i;
  ASSERT_EQ(y.back(), T{7});
}

TEST(movement, repeated_elements_equal_a_plain_loop) {
  for (int64_t n : {1, 5, 16, 35})
    for (int64_t times : {1, 2, 3, 4})
      for (int64_t odd_one : {int64_t{-1}, int64_t{0}, n * times - 2}) {
        if (odd_one >= n * times) continue;
        SCOPED_TRACE(testing::Message() << n << " elements " << times << " times");
        ASSERT_NO_FATAL_FAILURE(check_repeats<uint8_t>(n, times, odd_one));
        ASSERT_NO_FATAL_FAILURE(check_repeats<uint16_t>(n, times, odd_one));
        ASSERT_NO_FATAL_FAILURE(check_repeats<uint32_t>(n, times, odd_one));
        ASSERT_NO_FATAL_FAILURE(check_repeats<uint64_t>(n, times, odd_one));
      }
}

// Of rows [2, mid, 6, width], folded at indices that repeat, and count from the end; in place, and beside x.
template <class T, class Index>
void check_fold(const char* reduction, DType dtype, int64_t mid, int64_t width, int64_t count, Bounds bounds,
                std::mt19937& rng) {
  constexpr int64_t kRows = 6;
  const T specials[] = {T(NAN), T(INFINITY), T(-INFINITY), T(-0.0F), T(0.0F)};
  auto value = [&] {
    if (std::is_floating_point_v<T> && rng() % 8 == 0) return specials[rng() % 5];
    return static_cast<T>(static_cast<int32_t>(rng() % 200) - 100);
  };
  std::vector<T> x(static_cast<size_t>(2 * mid * kRows * width)), u(static_cast<size_t>(2 * mid * count * width));
  for (T& it : x) it = value();
  for (T& it : u) it = value();
  std::vector<Index> index(static_cast<size_t>(count));
  int64_t reach = bounds == Bounds::kError ? kRows : kRows + 2;
  for (Index& it : index)
    it = static_cast<Index>(static_cast<int64_t>(rng() % static_cast<uint32_t>(2 * reach)) - reach);
  std::vector<T> want = x, y(x.size() + 1, T(9));
  std::string_view fn = reduction;
  auto fold = [&](T a, T b) {
    if (fn == "add") return static_cast<T>(a + b);
    if (fn == "mul") return static_cast<T>(a * b);
    if (a != a || b != b) return static_cast<T>(NAN);
    return fn == "max" ? std::max(a, b) : std::min(a, b);
  };
  for (int64_t slice = 0; slice < 2 * mid; slice++)
    for (int64_t i = 0; i < count; i++) {
      int64_t at = index[static_cast<size_t>(i)];
      if (at < 0) at += kRows;
      if (bounds == Bounds::kDrop && (at < 0 || at >= kRows)) continue;
      at = std::clamp<int64_t>(at, 0, kRows - 1);
      for (int64_t k = 0; k < width; k++) {
        T& to = want[static_cast<size_t>((slice * kRows + at) * width + k)];
        to = fold(to, u[static_cast<size_t>((slice * count + i) * width + k)]);
      }
    }
  WriteRowsArgs args{.rows = reinterpret_cast<const std::byte*>(u.data()), .index = index.data()};
  args.index_is_i64 = sizeof(Index) == 8, args.fold = row_fold(reduction, dtype), args.bounds = bounds;
  args.batch = 2, args.mid = mid, args.n = kRows, args.count = count;
  args.bytes = width * static_cast<int64_t>(sizeof(T));
  for (bool in_place : {false, true}) {
    if (in_place) std::copy(x.begin(), x.end(), y.begin());
    args.y = reinterpret_cast<std::byte*>(y.data());
    args.x = in_place ? args.y : reinterpret_cast<const std::byte*>(x.data());
    cut_rows(args);
    for (int64_t part = write_rows_parts(args); part-- > 0;) ASSERT_LT(write_rows(args, part, part + 1).n, 0);
    ASSERT_EQ(y.back(), T(9));
    for (size_t i = 0; i < want.size(); i++)
      ASSERT_TRUE(y[i] == want[i] || (y[i] != y[i] && want[i] != want[i])) << reduction << " at " << i;
  }
}

TEST(movement, rows_are_folded_in_order) {
  std::mt19937 rng(9);
  for (const char* reduction : {"add", "mul", "max", "min"})
    for (Bounds bounds : {Bounds::kError, Bounds::kClamp, Bounds::kDrop})
      for (int64_t mid : {1, 3})
        for (int64_t width : {0, 1, 7, 33})
          for (int64_t count : {0, 1, 25}) {
            ASSERT_NO_FATAL_FAILURE(
                (check_fold<float, int64_t>(reduction, DType::kF32, mid, width, count, bounds, rng)));
            ASSERT_NO_FATAL_FAILURE(
                (check_fold<double, int32_t>(reduction, DType::kF64, mid, width, count, bounds, rng)));
            ASSERT_NO_FATAL_FAILURE(
                (check_fold<uint8_t, int64_t>(reduction, DType::kU8, mid, width, count, bounds, rng)));
            ASSERT_NO_FATAL_FAILURE(
                (check_fold<uint64_t, int32_t>(reduction, DType::kU64, mid, width, count, bounds, rng)));
          }
}

}  // namespace
}  // namespace rlx::cpu
