// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/grid_sample.h"

#include <algorithm>
#include <cmath>

namespace rlx::cpu {

namespace {

constexpr int64_t kPlaces = 64;    // of a part
constexpr int kMostCorners = 64;   // 4 on each of three axes
constexpr int64_t kOutside = -1;   // the position of a corner that counts as 0

// One element of an axis that contributes to a place.
struct Tap {
  int64_t at;
  double weight;
};

struct Axis {
  const GridSampleArgs& args;
  int64_t size;

  double last() const { return static_cast<double>(size) - 1; }

  double coordinate(double g) const {
    return args.align_corners ? (g + 1) / 2 * last() : ((g + 1) * static_cast<double>(size) - 1) / 2;
  }
  // Mirrored at the ends as often as needed.
  double reflected(double c) const {
    double low = args.align_corners ? 0 : -0.5, span = args.align_corners ? last() : static_cast<double>(size);
    if (span == 0) return 0;
    double far = std::abs(c - low), flips = std::floor(far / span), rest = far - flips * span;
    return std::fmod(flips, 2) == 0 ? rest + low : span + low - rest;
  }
  double held(double c) const { return std::isnan(c) ? c : std::max(std::min(c, last()), 0.0); }
  double padded(double c) const {
    if (args.padding == GridSampleArgs::kZeros) return c;
    return held(args.padding == GridSampleArgs::kReflection ? reflected(c) : c);
  }
  // A whole number. Those beyond the ends count as 0, or as the nearest element.
  int64_t element(double position) const {
    bool is_inside = position >= 0 && position <= last();
    if (!is_inside && args.padding == GridSampleArgs::kZeros) return kOutside;
    return std::isnan(position) ? 0 : static_cast<int64_t>(held(position));
  }

  int taps(double g, Tap* to) const {
    double c = coordinate(g);
    if (args.mode == GridSampleArgs::kCubic) return cubic_taps(c, to);
    c = padded(c);
    if (args.mode == GridSampleArgs::kNearest) {
      to[0] = {element(std::nearbyint(c)), 1};
      return 1;
    }
    double low = std::floor(c), part = c - low;
    to[0] = {element(low), 1 - part};
    to[1] = {element(low + 1), part};
    return 2;
  }
  int cubic_taps(double c, Tap* to) const {
    constexpr double kA = -0.75;
    double low = std::floor(c), part = c - low;
    for (int k = -1; k <= 2; k++) {
      double t = k <= 0 ? part : 1 - part, s = k <= 0 ? 1 - part : part;
      double weight = k == 0 || k == 1 ? s * (1 + t - (kA + 2) * t * t) : kA * t * s * s;
      *to++ = {element(padded(low + k)), weight};
    }
    return 4;
  }
};

// What the places of a part read of every channel: corner by corner.
struct Corners {
  int count = 0;
  bool all_inside = true;
  int64_t at[kMostCorners][kPlaces];
  float weight[kMostCorners][kPlaces];
};

void find_corners(const GridSampleArgs& args, const float* grid, int64_t place, Corners& corners) {
  Tap taps[kGridAxes][4];
  int each = 1;
  corners.count = 1;
  for (int32_t axis = 0; axis < args.axes; axis++) {
    each = Axis{args, args.sizes[axis]}.taps(grid[args.axes - 1 - axis], taps[axis]);
    corners.count *= each;
  }
  for (int corner = 0; corner < corners.count; corner++) {
    int64_t at = 0;
    double weight = 1;
    for (int32_t axis = 0, step = corners.count; axis < args.axes; axis++) {
      step /= each;
      const Tap& tap = taps[axis][corner / step % each];
      at = at < 0 || tap.at < 0 ? kOutside : at * args.sizes[axis] + tap.at;
      weight *= tap.weight;
    }
    corners.all_inside &= at >= 0;
    corners.at[corner][place] = at;
    corners.weight[corner][place] = static_cast<float>(weight);
  }
}

template <bool all_inside>
void sum_corners(const Corners& corners, const float* x, int64_t places, float* y) {
  for (int corner = 0; corner < corners.count; corner++) {
    const int64_t* at = corners.at[corner];
    const float* weight = corners.weight[corner];
    for (int64_t i = 0; i < places; i++) {
      float value = all_inside || at[i] >= 0 ? x[at[i]] * weight[i] : 0;
      y[i] = corner ? y[i] + value : value;
    }
  }
}
// The usual case, without a pass over y for each corner.
void sum_four(const Corners& corners, const float* x, int64_t places, float* y) {
  auto value = [&](int corner, int64_t i) { return x[corners.at[corner][i]] * corners.weight[corner][i]; };
  for (int64_t i = 0; i < places; i++) y[i] = value(0, i) + value(1, i) + value(2, i) + value(3, i);
}

int64_t blocks_of(const GridSampleArgs& args) {
  return (args.places + kPlaces - 1) / kPlaces;
}

int64_t grid_sample_parts(const GridSampleArgs& args) {
  return args.channels > 0 ? args.items * blocks_of(args) : 0;
}

void grid_sample_run(const GridSampleArgs& args, int64_t begin, int64_t end) {
  int64_t plane = 1;
  for (int32_t axis = 0; axis < args.axes; axis++) plane *= args.sizes[axis];
  Corners corners;
  for (int64_t part = begin; part < end; part++) {
    int64_t item = part / blocks_of(args), first = part % blocks_of(args) * kPlaces;
    int64_t places = std::min(kPlaces, args.places - first);
    const float* grid = args.grid + (item * args.places + first) * args.axes;
    corners.all_inside = plane > 0;
    for (int64_t i = 0; i < places; i++) find_corners(args, grid + i * args.axes, i, corners);
    if (plane == 0)  // nothing can be read
      for (auto& at : corners.at) std::fill_n(at, kPlaces, kOutside);
    auto sum = !corners.all_inside   ? sum_corners<false>
               : corners.count == 4 ? sum_four
                                     : sum_corners<true>;
    for (int64_t c = item * args.channels; c < (item + 1) * args.channels; c++)
      sum(corners, args.x + c * plane, places, args.y + c * args.places + first);
  }
}

}  // namespace

Loop<GridSampleArgs> grid_sample_loop() {
  return {grid_sample_parts, grid_sample_run};
}

}  // namespace rlx::cpu
