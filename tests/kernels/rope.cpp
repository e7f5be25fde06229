// SPDX-License-Identifier: Apache-2.0
// Rope against its formula in f64: both styles, rotated forth and back, with elements that are not rotated.
#include "backends/cpu/kernels/rope.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct RopeCase {
  int64_t batch, seq, heads, d, pairs;
  bool heads_first, interleaved, inverse;
};

// The two elements of head (b, s, h) that pair i rotates, counted from the first of the head.
std::pair<int64_t, int64_t> elements_of_pair(const RopeCase& c, int64_t i) {
  return c.interleaved ? std::pair{2 * i, 2 * i + 1} : std::pair{i, i + c.pairs};
}

std::vector<double> turned(const RopeCase& c, const float* x, const float* cos, const float* sin) {
  std::vector<double> y(x, x + c.d);
  for (int64_t i = 0; i < c.pairs; ++i) {
    auto [first, second] = elements_of_pair(c, i);
    double a = x[first], b = x[second], s = c.inverse ? -sin[i] : sin[i];
    y[first] = a * cos[i] - b * s;
    y[second] = b * cos[i] + a * s;
  }
  return y;
}

void check_rope(const RopeCase& c, std::mt19937& rng) {
  // x lies with three floats between heads; y is dense. The cosines differ by batch, the sines do not.
  int64_t step = c.d + 3;
  HeadStrides x_strides = c.heads_first ? HeadStrides{c.heads * c.seq * step, step, c.seq * step}
                                        : HeadStrides{c.seq * c.heads * step, c.heads * step, step};
  HeadStrides y_strides{x_strides.batch / step * c.d, x_strides.seq / step * c.d, x_strides.head / step * c.d};
  Guarded x = Guarded::random(c.batch * c.seq * c.heads * step, rng);
  Guarded cos = Guarded::random(c.batch * c.seq * c.pairs, rng), sin = Guarded::random(c.seq * c.pairs, rng);
  for (Isa isa : available_isas()) {
    SCOPED_TRACE(testing::Message() << isa_name(isa) << " d " << c.d << " pairs " << c.pairs);
    Guarded y(c.batch * c.seq * c.heads * c.d), again = y;
    RopeArgs args{x.data(),
                  y.data(),
                  {cos.data(), c.seq * c.pairs, c.pairs},
                  {sin.data(), 0, c.pairs},
                  c.batch,
                  c.seq,
                  c.heads,
                  c.d,
                  c.pairs,
                  x_strides,
                  y_strides,
                  c.interleaved,
                  c.inverse};
    run_whole(rope_fns(isa).rope, args);
    args.y = again.data();
    run_backwards(rope_fns(isa).rope, args);
    ASSERT_TRUE(y.guards_intact() && again.same_bits(y));
    for (int64_t at = 0; at < c.batch * c.seq * c.heads; ++at) {
      int64_t b = at / c.heads / c.seq, s = at / c.heads % c.seq, h = at % c.heads;
      std::vector<double> want = turned(c, &x[b * x_strides.batch + s * x_strides.seq + h * x_strides.head],
                                        &cos[(b * c.seq + s) * c.pairs], &sin[s * c.pairs]);
      const float* got = &y[b * y_strides.batch + s * y_strides.seq + h * y_strides.head];
      for (int64_t i = 0; i < c.d; ++i) ASSERT_NEAR(got[i], want[i], 2e-7) << "element " << i;
    }
  }
}

TEST(rope, both_styles_and_layouts_at_every_width) {
  std::mt19937 rng(4);
  for (bool heads_first : {false, true})
    for (bool interleaved : {false, true})
      for (bool inverse : {false, true})
        for (auto [d, pairs] : {std::pair<int64_t, int64_t>{64, 32}, {2, 1}, {34, 17}, {80, 16}, {5, 2}, {7, 0}})
          ASSERT_NO_FATAL_FAILURE(check_rope({2, 37, 3, d, pairs, heads_first, interleaved, inverse}, rng));
}

TEST(rope, takes_sizes_of_zero) {
  std::mt19937 rng(5);
  check_rope({0, 3, 2, 8, 4, false, false, false}, rng);
  check_rope({2, 0, 2, 8, 4, false, false, false}, rng);
}

}  // namespace
}  // namespace rlx::cpu
