// SPDX-License-Identifier: Apache-2.0
// Places of truths against a scan element by element.
#include "backends/cpu/kernels/nonzero.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct NonzeroCase {
  std::vector<int64_t> dims;
  uint32_t one_in;  // so many are true
  int64_t most;
};

std::vector<int64_t> tuple_of(const std::vector<int64_t>& dims, int64_t place) {
  std::vector<int64_t> tuple(dims.size());
  for (size_t d = dims.size(); d-- > 0; place /= dims[d]) tuple[d] = place % dims[d];
  return tuple;
}

void check_nonzero(const NonzeroCase& c, std::mt19937& rng) {
  NonzeroArgs args{.most = c.most, .rank = static_cast<int32_t>(c.dims.size())};
  std::copy(c.dims.begin(), c.dims.end(), args.dims);
  for (int64_t dim : c.dims) args.n *= dim;
  std::vector<uint8_t> x(static_cast<size_t>(args.n));
  for (uint8_t& it : x) it = static_cast<uint8_t>(rng() % c.one_in ? 0 : 1 + rng() % 255);
  std::vector<int64_t> want, index(static_cast<size_t>(args.most * args.rank + 1), 7), again = index;
  int64_t found = 0, count = -1, counts[kManyParts];
  for (int64_t i = 0; i < args.n && found < args.most; i++) {
    if (!x[static_cast<size_t>(i)]) continue;
    found++;
    for (int64_t at : tuple_of(c.dims, i)) want.push_back(at);
  }
  want.resize(static_cast<size_t>(args.most * args.rank), -1);
  want.push_back(7);  // behind the end
  args.x = x.data(), args.index = index.data(), args.count = &count;
  if (nonzero_pieces(args.n).count > 1) {
    args.counts = counts;
    run_backwards(nonzero_count_loop(), args);
  }
  run_whole(nonzero_loop(), args);
  ASSERT_EQ(index, want);
  ASSERT_EQ(count, found);
  args.index = again.data();
  run_backwards(nonzero_loop(), args);
  ASSERT_EQ(again, want);
}

TEST(nonzero, tuples_of_every_rank_and_density_in_one_piece_and_in_several) {
  std::mt19937 rng(1);
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{},
                                                                            {0},
                                                                            {1},
                                                                            {7},
                                                                            {64},
                                                                            {13, 1},
                                                                            {3, 0, 2},
                                                                            {5, 9},
                                                                            {2, 3, 4, 5},
                                                                            {1, 1, 2, 1, 3},
                                                                            {70001},
                                                                            {300, 257},
                                                                            {40, 3, 1000}})
    for (uint32_t one_in : {1u, 2u, 50u, 1000000u}) {
      int64_t n = 1;
      for (int64_t dim : dims) n *= dim;
      for (int64_t most : {int64_t{0}, n / 3, n, n + 5})
        ASSERT_NO_FATAL_FAILURE(check_nonzero({dims, one_in, most}, rng)) << n << " elements, 1 in " << one_in;
    }
}

}  // namespace
}  // namespace rlx::cpu
