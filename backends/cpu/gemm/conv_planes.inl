// SPDX-License-Identifier: Apache-2.0
// Convolutions with places along the lanes, for groups of few filters, above all depthwise ones. A part is a block of a
// plane for all filters of a group; each channel is copied once and added to the sums of some filters at a time.

#include "backends/cpu/gemm/plane_sums.inl"
#include "backends/cpu/gemm/small_planes.inl"

inline constexpr int64_t kMostPlaneFilters = 8;

inline PlaneShape conv_plane_shape(const ConvArgs& p) {
  return plane_shape(p.axes[1], p.axes[2], kPlaneSums / filters_at_once(p.filters) - kPlaneSlack * kLanes);
}
inline int64_t plane_parts(const ConvArgs& p) {
  return p.places() && p.filters ? p.items * p.groups * conv_plane_shape(p).blocks() : 0;
}

// Rows of outputs, `pitch` apart in sums, `row` in y.
struct PlaneRows {
  const float *sums, *residual;
  float bias;
  float* y;
  int64_t rows, columns, pitch, row;
};
template <End last>
struct FinishPlane {
  static void run(const PlaneRows& p, Ending ending) {
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t c = 0; c < p.columns; c += kLanes) {
        int64_t at = r * p.row + c, left = p.columns - c;
        Vec v = load(p.sums + r * p.pitch + c) + splat(p.bias);
        if (p.residual) v += load_some(p.residual + at, left);
        store_some(p.y + at, last(v, ending), left);
      }
    }
  }
};
inline void finish_plane(const PlaneRows& rows, const Ending& ending) {
  using Finish = void (*)(const PlaneRows&, Ending);
  kByActivation<Finish, FinishPlane>[static_cast<int>(ending.act)](rows, ending);
}

inline void plane_part(const ConvArgs& p, const PlaneShape& shape, int64_t part, TapList& taps) {
  alignas(64) float copy[kPlaneCopy + kPlaneSlack * kLanes];
  alignas(64) float sums[kPlaneSums];
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  PlaneBlock block = plane_block(y, x, shape, part % shape.blocks());
  int64_t group = part / shape.blocks() % p.groups, item = part / shape.blocks() / p.groups;
  int64_t length = block_length(shape, block), all = p.filters * p.groups;
  auto rows_of = [&](int64_t plane) {
    return [from = p.x + plane, &x](int64_t row) { return FloatRow{from + row * x.size}; };
  };
  list_taps(y, x, shape, block, taps);
  const float* w =
      p.w + (p.is_packed ? group * filter_panels(p.filters) * kFilterPanel : group * p.filters) * p.terms();
  int64_t w_filter = p.is_packed ? 1 : p.terms(), w_tap = p.is_packed ? kFilterPanel : 1;
  for (int64_t f = 0, now; f < p.filters; f += now) {
    now = filters_at_once(p.filters - f);
    int64_t apart = kPlaneSums / now;
    if (p.channels == 0) {
      for (int64_t i = 0; i < kPlaneSums; i += kLanes) store(sums + i, Vec{});
    }
    for (int64_t c = 0; c < p.channels; ++c) {
      if (p.channels > 1 || f == 0)
        copy_plane(y, x, shape, block, rows_of(((item * p.groups + group) * p.channels + c) * p.plane()), 0, copy);
      sum_planes(now, {copy, w + f * w_filter + c * p.taps() * w_tap, taps.at, p.taps(), w_filter, w_tap, sums, apart},
                 length, c > 0);
    }
    for (int64_t i = 0; i < now; ++i) {
      int64_t filter = group * p.filters + f + i;
      int64_t to = ((item * all + filter) * y.out + block.row) * x.out + block.column;
      const Epilogue& e = p.epilogue;
      finish_plane({sums + i * apart, e.residual ? e.residual + to : nullptr, e.row_bias ? e.row_bias[filter] : 0,
                    p.y + to, block.rows, block.columns, shape.width, x.out},
                   e);
    }
  }
}

// ---- small planes with a filter each

inline bool are_small(const ConvArgs& p) {
  return p.channels == 1 && p.filters == 1 && is_small_plane(p.axes, p.items * p.groups) &&
         conv_plane_shape(p).blocks() == 1;
}
// Planes of a vector have adjacent filters.
inline void small_run(const ConvArgs& p, int64_t begin, int64_t end) {
  SmallPlanes planes(p.axes[1], p.axes[2], 0);
  SmallSums sums;
  const Epilogue& e = p.epilogue;
  int64_t w_tap = p.is_packed ? kFilterPanel : 1;
  int64_t last = end * kLanes < p.items * p.groups ? end * kLanes : p.items * p.groups;
  for (int64_t first = begin * kLanes, count; first < last; first += count) {
    int64_t group = first % p.groups;
    count = p.groups - group < last - first ? p.groups - group : last - first;
    if (count > kLanes) count = kLanes;
    planes.read(count, [&](int64_t i) { return FloatRow{p.x + (first + i) * p.plane()}; });
    for (int64_t i = 0; i < kLanes; ++i) {
      const float* w = p.w + (group + (i < count ? i : 0)) * p.terms() * w_tap;
      for (int64_t tap = 0; tap < planes.tap_count; ++tap) sums.w[tap * kLanes + i] = w[tap * w_tap];
    }
    sums.compute(planes, count);
    for (int64_t i = 0; i < count; ++i) {
      int64_t to = (first + i) * planes.outs;
      finish_plane({sums.sums + i * kSmallOuts, e.residual ? e.residual + to : nullptr,
                    e.row_bias ? e.row_bias[group + i] : 0, p.y + to, 1, planes.outs, 0, 0},
                   e);
    }
  }
}

// Small planes are computed side by side: fewer at once would take as long.
inline int64_t plane_shares(const ConvArgs& p) {
  return p.places() > 0 && are_small(p) ? ceil_div(p.items * p.groups, kLanes) : plane_parts(p);
}
inline void plane_run(const ConvArgs& p, int64_t begin, int64_t end) {
  if (are_small(p)) return small_run(p, begin, end);
  PlaneShape shape = conv_plane_shape(p);
  TapList taps;
  for (int64_t part = begin; part < end; ++part) plane_part(p, shape, part, taps);
}

inline bool planes_fit(const ConvArgs& p) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  return is_flat(p.axes[0]) && p.filters <= kMostPlaneFilters && y.spread == 1 && x.spread == 1 && p.taps() > 0 &&
         p.taps() <= kPlaneTaps && (p.places() == 0 || conv_plane_shape(p).rows > 0);
}
