// SPDX-License-Identifier: Apache-2.0
// Reductions against a plain f64 loop: rows and columns, short and long, none at all, NaN.
#include "backends/cpu/kernels/reduce.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Size {
  int64_t outer, n, inner;
};
const Size kSizes[] = {{5, 0, 1},  {5, 0, 3},     {0, 4, 1}, {7, 1, 1},   {9, 2, 1},   {3, 31, 1},  {3, 32, 1},
                       {2, 33, 1}, {1, 20000, 1}, {3, 5, 7}, {2, 700, 3}, {1, 9, 300}, {4, 2, 1025}};

double join(ReduceFn fn, double a, double b) {
  if (fn == ReduceFn::kSum) return a + b;
  if (fn == ReduceFn::kProd) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return fn == ReduceFn::kMax ? std::max(a, b) : std::min(a, b);
}

TEST(reduce, is_a_plain_loops) {
  std::mt19937 rng(1);
  const double identities[] = {0, 1, -HUGE_VAL, HUGE_VAL};
  for (const Size& size : kSizes)
    for (ReduceFn fn : {ReduceFn::kSum, ReduceFn::kProd, ReduceFn::kMax, ReduceFn::kMin})
      for (bool has_nan : {false, true}) {
        Guarded x = Guarded::random(size.outer * size.n * size.inner, rng, -1, 1.5);
        if (has_nan && x.size()) x[x.size() / 3] = std::numeric_limits<float>::quiet_NaN();
        Guarded y(size.outer * size.inner, 2), again(size.outer * size.inner, 2);
        ReduceArgs args{x.data(), y.data(), size.outer, size.n, size.inner, fn};
        run_whole(reduce_loop(), args);
        args.y = again.data();
        run_backwards(reduce_loop(), args);
        ASSERT_TRUE(y.same_bits(again) && y.guards_intact());
        for (int64_t i = 0; i < y.size(); i++) {
          double want = identities[static_cast<int>(fn)], sum = 0;
          for (int64_t k = 0; k < size.n; k++) {
            float value = x[(i / size.inner * size.n + k) * size.inner + i % size.inner];
            want = join(fn, want, value), sum += std::fabs(value);
          }
          double bound = fn == ReduceFn::kSum    ? 1e-6 * (16 + sum)
                         : fn == ReduceFn::kProd ? 1e-4 * std::fabs(want) + 1e-30
                                                 : 0;
          ASSERT_TRUE(same_special(y[i], want) || std::fabs(y[i] - want) <= bound)
              << size.outer << 'x' << size.n << 'x' << size.inner << ", fold " << static_cast<int>(fn) << " at " << i
              << ": " << y[i] << ", not " << want;
        }
      }
}

}  // namespace
}  // namespace rlx::cpu
