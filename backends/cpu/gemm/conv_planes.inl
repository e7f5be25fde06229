// SPDX-License-Identifier: Apache-2.0
// Convolutions with places along the lanes, for groups of few filters, above all depthwise ones. A part is a block of a
// plane for all filters of a group; some channels are copied and added to the sums of some filters at a time. If x is
// dilated, the outputs of each residue are a plane of their own: they read neighbours by some of the taps.

#include "backends/cpu/gemm/plane_sums.inl"
#include "backends/cpu/gemm/small_planes.inl"

inline constexpr int64_t kMaxPlaneFilters = 8;

// Every step-th tap reads for the outputs of a residue modulo `lhs_dilation`.
inline int64_t residue_step(const ConvAxis& axis) {
  int64_t step = 1;
  while (step * (axis.dilation % axis.lhs_dilation) % axis.lhs_dilation != 0) ++step;
  return step;
}
// The axis of a residue; `lo` is that of the first of its taps.
struct ResidueAxis {
  ConvAxis axis;
  int64_t first_tap, step;
};
inline ResidueAxis residue_axis(const ConvAxis& axis, int64_t residue) {
  if (axis.lhs_dilation == 1) return {axis, 0, 1};
  ResidueAxis it{.axis = {.size = axis.size}, .first_tap = 0, .step = residue_step(axis)};
  int64_t at = residue - axis.lo;
  while (it.first_tap < axis.taps && at % axis.lhs_dilation != 0) ++it.first_tap, at += axis.dilation;
  it.axis.out = residue < axis.out ? ceil_div(axis.out - residue, axis.lhs_dilation) : 0;
  it.axis.taps = ceil_div(axis.taps - it.first_tap, it.step);
  it.axis.dilation = axis.dilation / (axis.lhs_dilation / it.step);
  it.axis.lo = it.axis.taps > 0 ? -(at / axis.lhs_dilation) : 0;
  return it;
}
// As many outputs and taps as any residue has.
inline ConvAxis largest_residue(const ConvAxis& axis) {
  if (axis.lhs_dilation == 1) return axis;
  int64_t step = residue_step(axis);
  return {.size = axis.size,
          .out = ceil_div(axis.out, axis.lhs_dilation),
          .taps = ceil_div(axis.taps, step),
          .dilation = axis.dilation / (axis.lhs_dilation / step)};
}

inline PlaneShape conv_plane_shape(const ConvArgs& p) {
  return plane_shape(largest_residue(p.axes[1]), largest_residue(p.axes[2]),
                     sums_each(filters_at_once(p.filters)) - kPlaneSlack * kLanes);
}
inline int64_t plane_parts(const ConvArgs& p) {
  if (!p.places() || !p.filters) return 0;
  return p.items * p.groups * p.axes[1].lhs_dilation * p.axes[2].lhs_dilation * conv_plane_shape(p).blocks();
}

// Rows of outputs, `pitch` apart in sums, `row` in y, where their elements are `apart`.
struct PlaneRows {
  const float *sums, *residual;
  float bias;
  float* y;
  int64_t rows, columns, pitch, row, apart;
};
template <End last>
struct FinishPlane {
  static void run(const PlaneRows& p, Ending ending) {
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t c = 0; c < p.columns; c += kLanes) {
        int64_t at = r * p.row + c * p.apart, left = p.columns - c;
        Vec v = load(p.sums + r * p.pitch + c) + splat(p.bias);
        if (p.apart > 1) {
          alignas(64) float lanes[kLanes] = {};
          if (left > kLanes) left = kLanes;
          for (int64_t i = 0; p.residual && i < left; ++i) lanes[i] = p.residual[at + i * p.apart];
          if (p.residual) v += load(lanes);
          store(lanes, last(v, ending));
          for (int64_t i = 0; i < left; ++i) p.y[at + i * p.apart] = lanes[i];
          continue;
        }
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

// What the taps of other residues add to a filter of a group: they read zeros, so they matter only for weights that are
// not finite.
inline float other_taps(const ConvArgs& p, const ResidueAxis& y, const ResidueAxis& x, int64_t group, int64_t filter) {
  if (y.axis.taps * x.axis.taps == p.taps()) return 0;
  int64_t panels = filter_panels(p.filters), first = group * panels * kFilterPanel + filter;
  if (p.w[p.groups * panels * kFilterPanel * p.terms() + first] == 0) return 0;
  const float* w = p.w + group * panels * kFilterPanel * p.terms() + filter;
  float sum = 0;
  for (int64_t term = 0; term < p.terms(); ++term) {
    int64_t row = term % p.taps() / p.axes[2].taps, column = term % p.axes[2].taps;
    bool is_read = row >= y.first_tap && (row - y.first_tap) % y.step == 0 && column >= x.first_tap &&
                   (column - x.first_tap) % x.step == 0;
    if (!is_read) sum += 0 * w[term * kFilterPanel];
  }
  return sum;
}

// The weights of a residue for some channels and filters, tap by tap.
inline void pick_taps(const ConvArgs& p, const ResidueAxis& y, const ResidueAxis& x, const float* w, int64_t channels,
                      int64_t filters, float* to) {
  for (int64_t c = 0; c < channels; ++c, w += p.taps() * kFilterPanel) {
    for (int64_t i = 0; i < y.axis.taps; ++i) {
      for (int64_t j = 0; j < x.axis.taps; ++j) {
        int64_t tap = (y.first_tap + i * y.step) * p.axes[2].taps + x.first_tap + j * x.step;
        for (int64_t f = 0; f < filters; ++f) *to++ = w[tap * kFilterPanel + f];
      }
    }
  }
}

// How many channels are summed at once: as many as the copy and the list of taps have room for.
inline int64_t channels_at_once(const ConvArgs& p, int64_t taps, int64_t copied) {
  int64_t most = kPlaneTerms / max(taps, 1), room = kPlaneCopy / copied;
  if (room < most) most = room;
  return most < 1 ? 1 : min(most, p.channels);
}

inline void sum_terms_of_planes(int64_t filters, PlaneSpan span, int64_t length, bool add) {
  for (int64_t left = span.count; left > 0 || !add; left -= kPlaneTerms, add = true) {
    span.count = min(left, kPlaneTerms);
    sum_planes(filters, span, length, add);
    span.taps += span.count, span.w += span.count * span.w_tap;
  }
}

// What a part computes: a block of the plane of one residue, for all filters of a group of one item.
struct PlanePart {
  ResidueAxis y, x;
  int64_t y_residue, x_residue;
  PlaneBlock block;
  int64_t group, item;
};
inline PlanePart plane_part_at(const ConvArgs& p, const PlaneShape& shape, int64_t part) {
  int64_t blocks = shape.blocks(), block = part % blocks, rest = part / blocks;
  int64_t x_residues = p.axes[2].lhs_dilation, residues = p.axes[1].lhs_dilation * x_residues;
  int64_t y_residue = rest % residues / x_residues, x_residue = rest % x_residues;
  rest /= residues;
  ResidueAxis y = residue_axis(p.axes[1], y_residue), x = residue_axis(p.axes[2], x_residue);
  return {y, x, y_residue, x_residue, plane_block(y.axis, x.axis, shape, block), rest % p.groups, rest / p.groups};
}

// Writes the results of `count` filters from `first` on, whose sums are `apart`.
inline void finish_filters(const ConvArgs& p, const PlaneShape& shape, const PlanePart& part, int64_t first,
                           int64_t count, const float* sums, int64_t apart) {
  const Epilogue& e = p.epilogue;
  const PlaneBlock& block = part.block;
  int64_t y_step = p.axes[1].lhs_dilation, x_step = p.axes[2].lhs_dilation;
  int64_t row = part.y_residue + block.row * y_step, column = part.x_residue + block.column * x_step;
  for (int64_t i = 0; i < count; ++i) {
    int64_t filter = part.group * p.filters + first + i;
    int64_t to = ((part.item * p.filters * p.groups + filter) * p.axes[1].out + row) * p.axes[2].out + column;
    float bias = e.row_bias ? e.row_bias[filter] : 0;
    float other = y_step * x_step > 1 ? other_taps(p, part.y, part.x, part.group, first + i) : 0;
    if (other != 0) bias += other;
    finish_plane({sums + i * apart, e.residual ? e.residual + to : nullptr, bias, p.y + to, block.rows, block.columns,
                  shape.width, y_step * p.axes[2].out, x_step},
                 e);
  }
}

inline void plane_part(const ConvArgs& p, const PlaneShape& shape, int64_t index, TapList& taps) {
  alignas(64) float copy[kPlaneCopy + kPlaneSlack * kLanes];
  alignas(64) float sums[kPlaneSums];
  float picked[kPlaneFilters * kPlaneTaps];
  const PlanePart part = plane_part_at(p, shape, index);
  const ConvAxis &y = part.y.axis, &x = part.x.axis;
  const PlaneBlock& block = part.block;
  if (block.rows <= 0 || block.columns <= 0) return;
  bool is_dilated = p.axes[1].lhs_dilation * p.axes[2].lhs_dilation > 1;
  int64_t length = block_length(shape, block), count = y.taps * x.taps;
  auto rows_of = [&](int64_t plane) {
    return [from = p.x + plane, &x](int64_t row) { return FloatRow{from + row * x.size}; };
  };
  if (is_dilated) taps.rows = -1;
  list_taps(y, x, shape, block, taps);
  int64_t copied = copy_length(shape, block), at_once = channels_at_once(p, count, copied);
  for (int64_t i = count; i < count * at_once; ++i) taps.at[i] = static_cast<int32_t>(taps.at[i - count] + copied);
  int64_t panels = filter_panels(p.filters) * kFilterPanel;
  const float* w = p.w + part.group * (p.is_packed ? panels : p.filters) * p.terms();
  int64_t w_filter = p.is_packed ? 1 : p.terms(), w_tap = p.is_packed ? kFilterPanel : 1;
  for (int64_t f = 0, now; f < p.filters; f += now) {
    now = filters_at_once(p.filters - f);
    int64_t apart = sums_each(now);
    if (p.channels == 0) {
      for (int64_t i = 0; i < kPlaneSums; i += kLanes) store(sums + i, Vec{});
    }
    for (int64_t c = 0; c < p.channels; c += at_once) {
      int64_t channels = min(p.channels - c, at_once), terms = channels * count;
      const float* weights = w + f * w_filter + c * p.taps() * w_tap;
      for (int64_t i = 0; i < channels && (p.channels > at_once || f == 0); ++i) {
        int64_t plane = ((part.item * p.groups + part.group) * p.channels + c + i) * p.plane();
        copy_plane(y, x, shape, block, rows_of(plane), 0, copy + i * copied);
      }
      if (is_dilated) pick_taps(p, part.y, part.x, weights, channels, now, picked);
      PlaneSpan span = is_dilated ? PlaneSpan{copy, picked, taps.at, terms, 1, now, sums, apart}
                                  : PlaneSpan{copy, weights, taps.at, terms, w_filter, w_tap, sums, apart};
      sum_terms_of_planes(now, span, length, c > 0);
    }
    finish_filters(p, shape, part, f, now, sums, apart);
  }
}

// ---- small planes with a filter each

inline bool are_small(const ConvArgs& p) {
  return p.channels == 1 && p.filters == 1 && is_small_plane(p.axes, p.items * p.groups) &&
         conv_plane_shape(p).blocks() == 1;
}
// The weights of `count` planes from `group` on, plane i in lane i of each tap; further lanes repeat the last plane.
inline void turn_weights(const ConvArgs& p, int64_t group, int64_t count, float* to) {
  int64_t taps = p.taps();
  auto plane = [&](int64_t i) { return group + min(i, count - 1); };
  if (p.is_packed) {
    for (int64_t i = 0; i < kLanes; ++i) {
      for (int64_t tap = 0; tap < taps; ++tap) to[tap * kLanes + i] = p.w[(plane(i) * taps + tap) * kFilterPanel];
    }
    return;
  }
  for (int64_t tap = 0; tap < taps; tap += kLanes) {
    Vec rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = load_some(p.w + plane(i) * taps + tap, taps - tap);
    transpose(rows);
    for (int64_t i = 0; i < kLanes; ++i) store(to + (tap + i) * kLanes, rows[i]);
  }
}
// Planes of a vector have adjacent filters.
inline void small_run(const ConvArgs& p, int64_t begin, int64_t end) {
  SmallPlanes planes(p.axes[1], p.axes[2], 0);
  SmallSums sums;
  const Epilogue& e = p.epilogue;
  int64_t last = min(end * kLanes, p.items * p.groups);
  for (int64_t first = begin * kLanes, count; first < last; first += count) {
    int64_t group = first % p.groups;
    count = min(p.groups - group, last - first);
    if (count > kLanes) count = kLanes;
    planes.read(count, [&](int64_t i) { return FloatRow{p.x + (first + i) * p.plane()}; });
    turn_weights(p, group, count, sums.w);
    sums.compute(planes, count);
    for (int64_t i = 0; i < count; ++i) {
      int64_t to = (first + i) * planes.outs;
      finish_plane({sums.sums + i * kSmallOuts, e.residual ? e.residual + to : nullptr,
                    e.row_bias ? e.row_bias[group + i] : 0, p.y + to, 1, planes.outs, 0, 0, 1},
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
  for (const ConvAxis* axis : {&y, &x}) {
    if (axis->lhs_dilation == 1) continue;
    if (!p.is_packed || axis->stride > 1) return false;
    if (axis->lhs_dilation > kMaxDirectStride || axis->dilation > ConvAxis::kFar) return false;
  }
  return is_flat(p.axes[0]) && p.filters <= kMaxPlaneFilters && p.taps() > 0 && p.taps() <= kPlaneTaps &&
         (p.places() == 0 || conv_plane_shape(p).rows > 0);
}
