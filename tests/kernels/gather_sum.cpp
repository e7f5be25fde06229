// SPDX-License-Identifier: Apache-2.0
// Weighted sums along an axis against a plain loop: rows and single elements, many taps, indices beyond the ends.
#include "backends/cpu/kernels/gather_sum.h"

#include <array>

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Shape {
  int64_t outer, n, inner, count, taps;
};
const Shape kShapes[] = {{3, 9, 1, 17, 2},   {33, 40, 1, 300, 4}, {2, 5, 7, 11, 2}, {1, 6, 40, 3, 37},
                         {2, 300, 1, 5, 35}, {4, 3, 2, 0, 2},     {0, 3, 1, 4, 2},  {2, 3, 4, 5, 0},
                         {1, 1, 1, 1, 1},    {2, 4, 0, 3, 2},     {5, 7, 1, 33, 0}};

template <class Index>
void check(Isa isa, const Shape& s, std::mt19937& rng) {
  Guarded x = Guarded::random(s.outer * s.n * s.inner, rng), weight = Guarded::random(s.count * s.taps, rng, -1, 1, 3);
  std::vector<Index> index(static_cast<size_t>(s.count * s.taps));
  for (Index& i : index) i = static_cast<Index>(rng() % static_cast<uint64_t>(s.n + 4)) - 2;
  Guarded y(s.outer * s.count * s.inner, 2), again(y.size(), 2);
  GatherSumArgs args{.x = x.data(), .index = index.data(), .index_is_i64 = sizeof(Index) == 8, .weight = weight.data()};
  args.outer = s.outer, args.n = s.n, args.inner = s.inner, args.count = s.count, args.taps = s.taps;
  args.y = y.data();
  const Loop<GatherSumArgs>& loop = gather_sum_fns(isa).sum;
  run_whole(loop, args);
  args.y = again.data();
  run_backwards(loop, args);
  ASSERT_TRUE(y.same_bits(again));
  ASSERT_TRUE(y.guards_intact());
  for (int64_t i = 0; i < y.size(); i++) {
    int64_t inner = i % s.inner, o = i / s.inner % s.count, outer = i / s.inner / s.count;
    double sum = 0;
    for (int64_t t = 0; t < s.taps; t++) {
      int64_t at = std::clamp<int64_t>(index[static_cast<size_t>(o * s.taps + t)], 0, s.n - 1);
      sum += double(weight[o * s.taps + t]) * double(x[(outer * s.n + at) * s.inner + inner]);
    }
    ASSERT_NEAR(y[i], sum, 1e-5) << i;
  }
}

TEST(gather_sum, equals_a_plain_loop) {
  std::mt19937 rng(1);
  for (const Shape& shape : kShapes)
    for (Isa isa : available_isas()) {
      SCOPED_TRACE(::testing::Message() << isa_name(isa) << ", shape " << &shape - kShapes);
      ASSERT_NO_FATAL_FAILURE(check<int32_t>(isa, shape, rng));
      ASSERT_NO_FATAL_FAILURE(check<int64_t>(isa, shape, rng));
    }
}

template <class Index>
void check_plane(Isa isa, int64_t outer, int64_t n, int64_t count, double step, std::mt19937& rng) {
  const int64_t m = n + 3, lines = count + 5;  // rows
  Guarded x = Guarded::random(outer * m * n, rng), y(outer * lines * count, 2), again(y.size(), 2);
  std::vector<Index> rows(static_cast<size_t>(lines)), columns(static_cast<size_t>(count));
  for (size_t i = 0; i < rows.size(); i++) rows[i] = static_cast<Index>(static_cast<double>(i) * step) - 1;
  for (size_t i = 0; i < columns.size(); i++)
    columns[i] =
        static_cast<Index>(step < 0 ? rng() % static_cast<uint64_t>(n + 4) : static_cast<double>(i) * step) - 1;
  GatherPlaneArgs args{.x = x.data(), .y = y.data(), .outer = outer};
  args.rows = {rows.data(), sizeof(Index) == 8, m, lines},
  args.columns = {columns.data(), sizeof(Index) == 8, n, count};
  run_whole(gather_sum_fns(isa).plane, args);
  args.y = again.data();
  run_backwards(gather_sum_fns(isa).plane, args);
  ASSERT_TRUE(y.same_bits(again));
  ASSERT_TRUE(y.guards_intact());
  for (int64_t i = 0; i < y.size(); i++) {
    int64_t row = std::clamp<int64_t>(rows[static_cast<size_t>(i / count % lines)], 0, m - 1);
    int64_t column = std::clamp<int64_t>(columns[static_cast<size_t>(i % count)], 0, n - 1);
    ASSERT_EQ(y[i], x[(i / count / lines * m + row) * n + column]) << i;
  }
}

TEST(gather_sum, planes_are_picked_by_row_and_column) {
  std::mt19937 rng(2);
  for (Isa isa : available_isas())
    for (double step : {0.5, 0.3, 1.0, 1.7, 2.0, -1.0})
      for (auto [outer, n, count] : {std::array<int64_t, 3>{3, 5, 10},
                                     {1, 40, 80},
                                     {2, 33, 19},
                                     {1, 700, 1100},
                                     {0, 3, 4},
                                     {40, 8, 8},
                                     {2, 3, 0},
                                     {1, 1, 17}}) {
        SCOPED_TRACE(::testing::Message() << isa_name(isa) << ", " << n << " to " << count << " by " << step);
        ASSERT_NO_FATAL_FAILURE(check_plane<int32_t>(isa, outer, n, count, step, rng));
        ASSERT_NO_FATAL_FAILURE(check_plane<int64_t>(isa, outer, n, count, step, rng));
      }
}

}  // namespace
}  // namespace rlx::cpu
