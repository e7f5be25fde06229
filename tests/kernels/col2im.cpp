// SPDX-License-Identifier: Apache-2.0
// Windows added back against one loop over all of them.
#include "backends/cpu/kernels/col2im.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

// Each element of `from`, to where it belongs.
std::vector<double> added(const Col2imArgs& args, const Guarded& from) {
  const Col2imAxis(&a)[kCol2imAxes] = args.axes;
  std::vector<double> to(static_cast<size_t>(args.planes * a[0].size * a[1].size * a[2].size));
  int64_t at = 0;
  for (int64_t plane = 0; plane < args.planes; plane++)
    for (int64_t t = 0; t < a[0].taps * a[1].taps * a[2].taps; t++)
      for (int64_t w = 0; w < a[0].count * a[1].count * a[2].count; w++, at++) {
        int64_t taps[] = {t / a[2].taps / a[1].taps, t / a[2].taps % a[1].taps, t % a[2].taps};
        int64_t windows[] = {w / a[2].count / a[1].count, w / a[2].count % a[1].count, w % a[2].count};
        int64_t index = plane;
        bool inside = true;
        for (int i = 0; i < kCol2imAxes; i++) {
          int64_t place = taps[i] * a[i].dilation + windows[i] * a[i].stride - a[i].lo;
          inside &= place >= 0 && place < a[i].size;
          index = index * a[i].size + place;
        }
        if (inside) to[static_cast<size_t>(index)] += static_cast<double>(from[at]);
      }
  return to;
}

void check(Col2imArgs args, std::mt19937& rng) {
  int64_t windows = 1, taps = 1, size = 1;
  for (const Col2imAxis& axis : args.axes) windows *= axis.count, taps *= axis.taps, size *= axis.size;
  Guarded from = Guarded::random(args.planes * taps * windows, rng);
  Guarded whole(args.planes * size), parts(args.planes * size);
  args.from = from.data(), args.to = whole.data();
  run_whole(col2im_loop(), args);
  args.to = parts.data();
  run_backwards(col2im_loop(), args);
  ASSERT_TRUE(whole.same_bits(parts));
  ASSERT_TRUE(whole.guards_intact() && parts.guards_intact());
  std::vector<double> want = added(args, from);
  for (int64_t i = 0; i < whole.size(); i++) ASSERT_NEAR(whole[i], want[static_cast<size_t>(i)], 1e-5 * double(taps));
}

TEST(col2im, every_window_is_added_where_it_lies) {
  std::mt19937 rng(1);
  auto draw = [&](int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(rng() % static_cast<uint32_t>(hi - lo + 1));
  };
  for (int round = 0; round < 400; round++) {
    Col2imArgs args;
    args.planes = draw(0, 3);
    for (int i = static_cast<int>(draw(0, 2)); i < kCol2imAxes; i++)
      args.axes[i] = {draw(1, 19), draw(0, 9), draw(1, 5), draw(1, 3), draw(1, 3), draw(-2, 4)};
    ASSERT_NO_FATAL_FAILURE(check(args, rng)) << round;
  }
}

}  // namespace
}  // namespace rlx::cpu
