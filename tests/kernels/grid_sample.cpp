// SPDX-License-Identifier: Apache-2.0
// Samples of images against one loop over the elements of an axis, by the weight that each has at a coordinate.
#include "backends/cpu/kernels/grid_sample.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

double coordinate_of(const GridSampleArgs& args, double g, int64_t n) {
  auto size = static_cast<double>(n);
  return args.align_corners ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
}

// Where a position beyond the ends lies inside; -1 where it counts as 0.
int64_t place_of(const GridSampleArgs& args, double position, int64_t n) {
  auto last = static_cast<double>(n) - 1;
  if (args.padding == GridSampleArgs::kZeros) return position < 0 || position > last ? -1 : int64_t(position);
  return int64_t(std::clamp(position, 0.0, last));
}

double reflected(const GridSampleArgs& args, double c, int64_t n) {
  double low = args.align_corners ? 0 : -0.5, high = static_cast<double>(n) - (args.align_corners ? 1 : 0.5);
  if (low == high) return 0;
  while (c < low || c > high) c = c < low ? 2 * low - c : 2 * high - c;
  return c;
}

double cubic(double t) {
  constexpr double kA = -0.75;
  t = std::fabs(t);
  if (t <= 1) return ((kA + 2) * t - (kA + 3)) * t * t + 1;
  return t < 2 ? ((kA * t - 5 * kA) * t + 8 * kA) * t - 4 * kA : 0;
}

// What each element of an axis counts.
std::vector<double> weights_of(const GridSampleArgs& args, double g, int64_t n) {
  std::vector<double> weights(static_cast<size_t>(n));
  double c = coordinate_of(args, g, n);
  auto count = [&](double position, double weight) {
    if (args.mode == GridSampleArgs::kCubic && args.padding == GridSampleArgs::kReflection)
      position = reflected(args, position, n);
    if (int64_t at = place_of(args, position, n); at >= 0) weights[static_cast<size_t>(at)] += weight;
  };
  if (args.mode == GridSampleArgs::kCubic) {
    for (int k = -1; k <= 2; k++) count(std::floor(c) + k, cubic(c - (std::floor(c) + k)));
    return weights;
  }
  if (args.padding == GridSampleArgs::kReflection) c = reflected(args, c, n);
  if (args.padding != GridSampleArgs::kZeros) c = std::clamp(c, 0.0, static_cast<double>(n) - 1);
  if (args.mode == GridSampleArgs::kNearest) return count(std::nearbyint(c), 1), weights;
  count(std::floor(c), 1 - (c - std::floor(c)));
  count(std::floor(c) + 1, c - std::floor(c));
  return weights;
}

void check(GridSampleArgs args, std::mt19937& rng) {
  int64_t plane = 1;
  for (int32_t axis = 0; axis < args.axes; axis++) plane *= args.sizes[axis];
  Guarded x = Guarded::random(args.items * args.channels * plane, rng);
  Guarded grid = Guarded::random(args.items * args.places * args.axes, rng, -1.7f, 1.7f, 3);
  Guarded y(args.items * args.channels * args.places), again(y.size());
  args.x = x.data(), args.grid = grid.data(), args.y = y.data();
  run_whole(grid_sample_loop(), args);
  args.y = again.data();
  run_backwards(grid_sample_loop(), args);
  ASSERT_TRUE(y.same_bits(again) && y.guards_intact() && again.guards_intact());
  for (int64_t i = 0; i < args.items * args.places; i++) {
    std::vector<double> all{1};  // of the elements of a plane
    for (int32_t axis = 0; axis < args.axes; axis++) {
      std::vector<double> next;
      for (double outer : all)
        for (double own : weights_of(args, double(grid[i * args.axes + args.axes - 1 - axis]), args.sizes[axis]))
          next.push_back(outer * own);
      all = next;
    }
    for (int64_t c = 0; c < args.channels; c++) {
      int64_t image = i / args.places * args.channels + c;
      double want = 0;
      for (int64_t at = 0; at < plane; at++) want += all[static_cast<size_t>(at)] * double(x[image * plane + at]);
      ASSERT_NEAR(y[image * args.places + i % args.places], want, 1e-5) << i;
    }
  }
}

TEST(grid_sample, every_mode_padding_and_rank) {
  std::mt19937 rng(3);
  for (int mode = 0; mode < 3; mode++)
    for (int padding = 0; padding < 3; padding++)
      for (int32_t axes = 1; axes <= kGridAxes; axes++)
        for (bool align : {false, true})
          for (int64_t places : {0, 1, 63, 150}) {
            GridSampleArgs args;
            args.items = 2, args.channels = 3, args.places = places, args.axes = axes, args.align_corners = align;
            args.mode = static_cast<GridSampleArgs::Mode>(mode);
            args.padding = static_cast<GridSampleArgs::Padding>(padding);
            for (int32_t axis = 0; axis < axes; axis++) args.sizes[axis] = places == 63 && axis == 0 ? 1 : 5 + axis;
            ASSERT_NO_FATAL_FAILURE(check(args, rng)) << mode << padding << axes << align << places;
          }
}

}  // namespace
}  // namespace rlx::cpu
