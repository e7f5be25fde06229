// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/grid_sample.h"

#include <algorithm>
#include <cmath>

namespace rlx::cpu {

namespace {

constexpr int64_t kPlaces = 64;   // of a part
constexpr int kMaxCorners = 64;   // 4 on each of three axes
constexpr int64_t kOutside = -1;  // the position of a corner that counts as 0
constexpr float kNothing = 0;     // what stands in each place of an image without elements

// One element of an axis that contributes to a place.
struct Tap {
  int64_t at;
  double weight;
};

// As std::floor, which would be a call where the instruction set has no instruction for it.
double floor_of(double c) {
  constexpr double kWhole = 0x1p52;  // from here on all numbers are whole
  if (!(std::abs(c) < kWhole)) return c;
  auto truncated = static_cast<double>(static_cast<int64_t>(c));
  return truncated - (truncated > c ? 1 : 0);
}

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
    double far = std::abs(c - low), flips = floor_of(far / span), rest = far - flips * span;
    return std::fmod(flips, 2) == 0 ? rest + low : span + low - rest;
  }
  double held(double c) const { return std::isnan(c) ? c : std::max(std::min(c, last()), 0.0); }
  double padded(double c) const {
    if (args.padding == GridSampleArgs::kZeros) return c;
    return held(args.padding == GridSampleArgs::kReflection ? reflected(c) : c);
  }
  // A whole number. Those beyond the ends count as 0, or as the nearest element.
  int64_t element(double position) const {
    double nearest = std::max(std::min(position, last()), 0.0);  // no call and no jump: positions may be in any order
    if (args.padding == GridSampleArgs::kZeros) return nearest == position ? static_cast<int64_t>(nearest) : kOutside;
    return std::isnan(position) ? 0 : static_cast<int64_t>(nearest);
  }

  int taps(double g, Tap* to) const {
    double c = coordinate(g);
    if (args.mode == GridSampleArgs::kCubic) return cubic_taps(c, to);
    c = padded(c);
    if (args.mode == GridSampleArgs::kNearest) {
      to[0] = {element(std::nearbyint(c)), 1};
      return 1;
    }
    double low = floor_of(c), part = c - low;
    to[0] = {element(low), 1 - part};
    to[1] = {element(low + 1), part};
    return 2;
  }
  int cubic_taps(double c, Tap* to) const {
    constexpr double kA = -0.75;
    double low = floor_of(c), part = c - low;
    for (int k = -1; k <= 2; k++) {
      double t = k <= 0 ? part : 1 - part, s = k <= 0 ? 1 - part : part;
      double weight = k == 0 || k == 1 ? s * (1 + t - (kA + 2) * t * t) : kA * t * s * s;
      *to++ = {element(padded(low + k)), weight};
    }
    return 4;
  }
};

// What a place reads of every channel.
struct Corner {
  int64_t at;
  float weight;
};
struct Corners {
  int count = 0;
  Corner list[kPlaces * kMaxCorners];  // [place][corner]
};

void find_corners(const GridSampleArgs& args, const float* grid, int64_t place, Corners& corners) {
  int64_t at[kMaxCorners];
  double weight[kMaxCorners];
  int count = 1;
  at[0] = 0, weight[0] = 1;
  for (int32_t axis = 0; axis < args.axes; axis++) {
    Tap taps[4];
    int each = Axis{args, args.sizes[axis]}.taps(grid[args.axes - 1 - axis], taps);
    for (int outer = count; outer-- > 0;)
      for (int i = each; i-- > 0;) {
        int64_t so_far = at[outer];
        at[outer * each + i] = so_far < 0 || taps[i].at < 0 ? kOutside : so_far * args.sizes[axis] + taps[i].at;
        weight[outer * each + i] = weight[outer] * taps[i].weight;
      }
    count *= each;
  }
  corners.count = count;
  for (int i = 0; i < count; i++) corners.list[place * count + i] = {at[i], static_cast<float>(weight[i])};
}

void copy_nearest(const Corners& corners, const float* x, int64_t places, float* y) {
  for (int64_t i = 0; i < places; i++) y[i] = corners.list[i].at < 0 ? 0 : x[corners.list[i].at];
}

void sum_channel(const Corners& corners, const float* x, int64_t places, float* y) {
  const Corner* corner = corners.list;
  for (int64_t i = 0; i < places; i++) {
    float sum = 0;
    for (int k = 0; k < corners.count; k++, corner++)
      if (corner->at >= 0) sum += x[corner->at] * corner->weight;
    y[i] = sum;
  }
}
// Of four channels: what is looked up of a corner serves all of them.
void sum_four(const Corners& corners, const float* x, int64_t plane, int64_t places, float* y, int64_t pitch) {
  using Four [[gnu::vector_size(16)]] = float;
  const Corner* corner = corners.list;
  for (int64_t i = 0; i < places; i++) {
    Four sum{};
    for (int k = 0; k < corners.count; k++, corner++) {
      if (corner->at < 0) continue;
      const float* from = x + corner->at;
      sum += Four{from[0], from[plane], from[2 * plane], from[3 * plane]} * corner->weight;
    }
    for (int c = 0; c < 4; c++) y[c * pitch + i] = sum[c];
  }
}

int64_t blocks_of(const GridSampleArgs& args) {
  return ceil_div(args.places, kPlaces);
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
    for (int64_t i = 0; i < places; i++) find_corners(args, grid + i * args.axes, i, corners);
    if (plane == 0)  // a corner is a 0 with its weight, which may be NaN
      for (Corner& corner : corners.list) corner.at = args.padding == GridSampleArgs::kZeros ? kOutside : 0;
    int64_t c = item * args.channels, last = c + args.channels;
    auto x = [&] { return plane == 0 ? &kNothing : args.x + c * plane; };
    auto y = [&] { return args.y + c * args.places + first; };
    if (args.mode == GridSampleArgs::kNearest)
      for (; c < last; c++) copy_nearest(corners, x(), places, y());
    for (; c + 4 <= last; c += 4) sum_four(corners, x(), plane, places, y(), args.places);
    for (; c < last; c++) sum_channel(corners, x(), places, y());
  }
}

}  // namespace

Loop<GridSampleArgs> grid_sample_loop() {
  return {grid_sample_parts, grid_sample_run};
}

}  // namespace rlx::cpu
