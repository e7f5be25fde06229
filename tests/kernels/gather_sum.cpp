// SPDX-License-Identifier: Apache-2.0
// Weighted sums along an axis against a plain loop: rows and single elements, many taps, indices beyond the ends.
#include "backends/cpu/kernels/gather_sum.h"

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

TEST(gather_sum, is_a_plain_loops) {
  std::mt19937 rng(1);
  for (const Shape& shape : kShapes)
    for (Isa isa : available_isas()) {
      SCOPED_TRACE(::testing::Message() << isa_name(isa) << ", shape " << &shape - kShapes);
      ASSERT_NO_FATAL_FAILURE(check<int32_t>(isa, shape, rng));
      ASSERT_NO_FATAL_FAILURE(check<int64_t>(isa, shape, rng));
    }
}

}  // namespace
}  // namespace rlx::cpu
