// SPDX-License-Identifier: Apache-2.0
// Pointwise convolutions with places along the lanes. A window is one element, so the channels of x are the rows of the
// right factor as they lie, or what windows with a stride read of them, and no sum has to be transposed. This pays for
// large planes, where strips are full. A part is a strip of places of one item for all filters of a group.

inline constexpr int64_t kPointWidth = kMaxVecs * kLanes;
inline constexpr int64_t kPointChannels = 512;  // at most: the copy of a strip is on the stack
static_assert(kPointWidth <= kTileStride);

inline bool points_fit(const ConvArgs& p) {
  for (const ConvAxis& axis : p.axes) {
    if (axis.taps != 1 || axis.lhs_dilation != 1 || axis.lo != 0) return false;
    bool is_inside = axis.out < 2 ? axis.out <= axis.size : axis.stride <= (axis.size - 1) / (axis.out - 1);
    if (!is_inside) return false;
  }
  return p.is_packed && p.channels > 0 && p.channels <= kPointChannels;
}

inline int64_t point_strips(const ConvArgs& p) {
  return ceil_div(p.places(), kPointWidth);
}
inline int64_t point_parts(const ConvArgs& p) {
  return p.items * p.groups * point_strips(p);
}

// The places of a strip; all strips have nearly the same number of vectors.
struct PointStrip {
  int64_t first, columns;
};
inline PointStrip point_strip(const ConvArgs& p, int64_t strip) {
  int64_t vectors = ceil_div(p.places(), kLanes), strips = point_strips(p);
  int64_t first = vectors * strip / strips * kLanes, end = vectors * (strip + 1) / strips * kLanes;
  return {first, min(end, p.places()) - first};
}

// Whether windows read every element of x.
inline bool reads_all_points(const ConvArgs& p) {
  for (const ConvAxis& axis : p.axes)
    if (axis.size != axis.out) return false;
  return true;
}

// Rows of x are copied where they have gaps, where whole vectors would read beyond x, or where many tiles would read
// them from far apart.
inline bool copies_points(const ConvArgs& p, const PointStrip& strip) {
  constexpr int64_t kFewChannels = 32;
  return !reads_all_points(p) || strip.columns % kLanes != 0 || (p.filters > kFilterPanel && p.channels > kFewChannels);
}

// Copies a strip of each channel of x. `x`: the planes of an item and a group.
inline void copy_points(const ConvArgs& p, const float* x, const PointStrip& strip, float* to) {
  const int64_t plane = p.plane();
  if (reads_all_points(p)) {
    for (int64_t c = 0; c < p.channels; ++c, x += plane, to += kPointWidth)
      for (int64_t i = 0; i < strip.columns; i += kLanes)
        store(to + i, load_some(x + strip.first + i, strip.columns - i));
    return;
  }
  int64_t at[kPointWidth];  // in a plane
  for (int64_t i = 0; i < strip.columns; ++i) {
    at[i] = 0;
    int64_t place = strip.first + i, stride = 1;
    for (int axis = kConvAxes - 1; axis >= 0; stride *= p.axes[axis--].size) {
      at[i] += place % p.axes[axis].out * p.axes[axis].stride * stride;
      place /= p.axes[axis].out;
    }
  }
  for (int64_t c = 0; c < p.channels; ++c, x += plane, to += kPointWidth) {
    for (int64_t i = 0; i < strip.columns; ++i) to[i] = x[at[i]];
    for (int64_t i = strip.columns; i % kLanes != 0; ++i) to[i] = 0;
  }
}

inline void point_part(const ConvArgs& p, int64_t part) {
  alignas(64) float tile[kFilterPanel * kTileStride], copy[kPointChannels * kPointWidth];
  int64_t places = p.places(), strips = point_strips(p), group = part / strips % p.groups,
          item = part / strips / p.groups;
  PointStrip strip = point_strip(p, part % strips);
  const float* x = p.x + (item * p.groups + group) * p.channels * p.plane();
  int64_t x_row = places;
  if (copies_points(p, strip)) {
    copy_points(p, x, strip, copy);
    x = copy, x_row = kPointWidth;
  } else {
    x += strip.first;
  }
  Epilogue e = p.epilogue;
  e.residual_row = places;
  bool is_direct = ends_in_tile(e) && strip.columns % kLanes == 0;
  const float* w = p.w + group * filter_panels(p.filters) * p.channels * kFilterPanel;
  for (int64_t first = 0; first < p.filters; first += kFilterPanel, w += p.channels * kFilterPanel) {
    int64_t filter = group * p.filters + first, rows = min(p.filters - first, kFilterPanel);
    Corner to = corner(e, item * p.groups * p.filters + filter, strip.first, p.y, places);
    to.row_bias = e.row_bias ? e.row_bias + filter : nullptr;
    TileEnd end = tile_end(e, to.row_bias);
    float* out = is_direct ? to.y : tile;
    int64_t out_row = is_direct ? to.y_row : kTileStride;
    for_each_tile(
        rows, static_cast<int>(ceil_div(strip.columns, kLanes)),
        [&](int64_t r, int64_t, TileFn fn) {
          TileEnd from_r{end.row_bias ? end.row_bias + r : nullptr, end.lo, end.hi};
          fn({w + r, 1, kFilterPanel, x, x_row, p.channels, out + r * out_row, out_row, w, &from_r}, false);
        },
        is_direct ? kEndingTiles : kTiles);
    if (!is_direct) finish(e, tile, rows, strip.columns, to);
  }
}

inline void point_run(const ConvArgs& p, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; ++part) point_part(p, part);
}
