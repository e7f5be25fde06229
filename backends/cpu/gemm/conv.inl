// SPDX-License-Identifier: Apache-2.0
// Convolutions on the register tile. A part of a product is a block of filters against kConvWidth places of one item.

#include "backends/cpu/gemm/finish.inl"
#include "backends/cpu/gemm/phases.inl"

#include "backends/cpu/gemm/planes.inl"

#include "backends/cpu/gemm/conv_lanes.inl"
#include "backends/cpu/gemm/conv_planes.inl"
#include "backends/cpu/gemm/conv_points.inl"

#include "backends/cpu/gemm/conv_depthwise.inl"

inline constexpr int64_t kConvWidth = 32;
inline constexpr int64_t kConvTerms = 256;    // of a panel on the stack
inline constexpr int64_t kConvFilters = 256;  // of a block, at most
inline constexpr int64_t kListedTaps = 64;

// ---- the positions that windows read

struct Place3 {
  int64_t at[kConvAxes];
};
inline Place3 split_place(const ConvArgs& p, int64_t place) {
  Place3 it;
  for (int axis = kConvAxes - 1; axis >= 0; --axis) {
    it.at[axis] = place % p.axes[axis].out;
    place /= p.axes[axis].out;
  }
  return it;
}
// How a tap reads the columns of a panel in one channel: runs of columns whose elements lie a step apart, with zeros
// between runs.
struct TapRun {
  int32_t offset;
  int16_t column, length;
};
struct TapRuns {
  TapRun runs[kConvWidth];
  int32_t count;
};

inline void add_run(TapRuns& taps, int64_t offset, int64_t column, int64_t length, int64_t step) {
  if (taps.count > 0) {
    TapRun& last = taps.runs[taps.count - 1];
    if (last.column + last.length == column && last.offset + last.length * step == offset) {
      last.length = static_cast<int16_t>(last.length + length);
      return;
    }
  }
  taps.runs[taps.count++] = {static_cast<int32_t>(offset), static_cast<int16_t>(column), static_cast<int16_t>(length)};
}

// Columns whose windows lie side by side and read one row of x, which begins at `row`.
struct PlaceRun {
  int64_t row, place, column, length;  // `place`: of the first, on the last axis
};
// `outer` is the position of a row of the window on the other axes.
inline int64_t find_place_runs(const ConvArgs& p, const Place3 (&places)[kConvWidth], int64_t columns, int64_t outer,
                               PlaceRun* runs) {
  const ConvAxis &z = p.axes[0], &y = p.axes[1];
  int64_t count = 0, tap_z = outer / y.taps, tap_y = outer % y.taps;
  for (int64_t c = 0; c < columns; ++c) {
    const int64_t* at = places[c].at;
    if (c > 0 && at[2] > 0 && count > 0 && runs[count - 1].column + runs[count - 1].length == c) {
      ++runs[count - 1].length;
      continue;
    }
    if (c > 0 && at[2] > 0) continue;  // in the row of the last column, which is not in x
    int64_t at_z = read_at(z, at[0], tap_z), at_y = read_at(y, at[1], tap_y);
    if (at_z >= 0 && at_y >= 0) runs[count++] = {(at_z * y.size + at_y) * p.axes[2].size, at[2], c, 1};
  }
  return count;
}

// The runs of the taps [first, last) of one row of the window.
inline void find_runs(const ConvArgs& p, const Place3 (&places)[kConvWidth], int64_t columns, int64_t outer,
                      int64_t first, int64_t last, TapRuns* taps) {
  const ConvAxis& x = p.axes[2];
  PlaceRun runs[kConvWidth];
  int64_t count = find_place_runs(p, places, columns, outer, runs);
  for (int64_t tap = first; tap < last; ++tap, ++taps) {
    taps->count = 0;
    for (const PlaceRun* run = runs; run < runs + count; ++run) {
      for (int64_t i = 0; x.lhs_dilation > 1 && i < run->length; ++i) {
        int64_t at = read_at(x, run->place + i, tap);
        if (at >= 0) add_run(*taps, run->row + at, run->column + i, 1, 1);
      }
      if (x.lhs_dilation > 1) continue;
      int64_t at = run->place * x.stride + tap * x.dilation - x.lo, begin = 0, end = run->length;
      if (at < 0) begin = ceil_div(-at, x.stride);
      if (at + (end - 1) * x.stride >= x.size) end = at < x.size ? (x.size - 1 - at) / x.stride + 1 : 0;
      if (begin < end) add_run(*taps, run->row + at + begin * x.stride, run->column + begin, end - begin, x.stride);
    }
  }
}

// ---- products

inline void gather_term(const float* plane, const TapRuns& tap, int64_t step, float* to) {
  const TapRun& first = tap.runs[0];
  if (step == 1 && tap.count == 1 && first.length == kConvWidth) {
    for (int64_t c = 0; c < kConvWidth; c += kLanes) store(to + c, load(plane + first.offset + c));
    return;
  }
  for (int64_t c = 0; c < kConvWidth; c += kLanes) store(to + c, Vec{});
  for (int32_t i = 0; i < tap.count; ++i) {
    const TapRun& run = tap.runs[i];
    const float* from = plane + run.offset;
    float* target = to + run.column;
    if (step == 1) {
      for (int64_t c = 0; c < run.length; c += kLanes)
        store_some(target + c, load_some(from + c, run.length - c), run.length - c);
    } else {
      for (int64_t c = 0; c < run.length; ++c) target[c] = from[c * step];
    }
  }
}

// As many taps as there are lanes, which read adjacent elements for all columns, some apart.
inline bool are_adjacent(const TapRuns* taps, int64_t step, int64_t columns) {
  bool all = step > 1;
  for (int64_t i = 0; all && i < kLanes; ++i)
    all = taps[i].count == 1 && taps[i].runs[0].length == columns && taps[i].runs[0].offset == taps->runs[0].offset + i;
  return all;
}
inline void gather_terms(const float* from, int64_t step, int64_t columns, float* to) {
  for (int64_t c = 0; c < kConvWidth; c += kLanes) {
    Vec terms[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) terms[i] = c + i < columns ? load(from + (c + i) * step) : Vec{};
    transpose(terms);
    for (int64_t i = 0; i < kLanes; ++i) store(to + i * kConvWidth + c, terms[i]);
  }
}

// The filters of a group are processed in blocks of nearly equal height; all but the last are whole panels.
struct FilterBlocks {
  int64_t count, size;
};
inline FilterBlocks filter_blocks(int64_t filters) {
  int64_t count = ceil_div(filters, kConvFilters);
  return {count, count == 0 ? 0 : ceil_div(ceil_div(filters, count), kFilterPanel) * kFilterPanel};
}

struct ConvPart {
  int64_t item, group, first, filters;  // `first` of the group
  int64_t place, columns;
};

inline int64_t conv_panels(const ConvArgs& p) {
  return ceil_div(p.places(), kConvWidth);
}
inline int64_t conv_parts(const ConvArgs& p) {
  return p.items * p.groups * filter_blocks(p.filters).count * conv_panels(p);
}
inline ConvPart conv_part(const ConvArgs& p, int64_t part) {
  FilterBlocks blocks = filter_blocks(p.filters);
  ConvPart it;
  int64_t panels = conv_panels(p);
  it.place = part % panels * kConvWidth;
  part /= panels;
  it.first = part % blocks.count * blocks.size;
  part /= blocks.count;
  it.group = part % p.groups;
  it.item = part / p.groups;
  it.filters = min(p.filters - it.first, blocks.size);
  it.columns = min(p.places() - it.place, kConvWidth);
  return it;
}

// The runs of taps from `first` on: of all taps, or, if these are too many, of some of one row of the window.
struct ListedTaps {
  TapRuns runs[kListedTaps];
  int64_t first = 0, count = 0;
};
inline void list_taps(const ConvArgs& p, const Place3 (&places)[kConvWidth], int64_t columns, int64_t tap,
                      ListedTaps& listed) {
  int64_t taps = p.taps(), row = p.axes[2].taps, at = tap % row;
  if (taps > kListedTaps) {
    listed.first = tap;
    listed.count = min(row - at, kListedTaps);
    return find_runs(p, places, columns, tap / row, at, at + listed.count, listed.runs);
  }
  listed.first = 0;
  listed.count = taps;
  for (int64_t line = 0; line * row < taps; ++line)
    find_runs(p, places, columns, line, 0, row, listed.runs + line * row);
}

// Gathers terms [k, k + count) of x, the channels of a group.
inline void gather_panel(const ConvArgs& p, const Place3 (&places)[kConvWidth], int64_t columns, const float* x,
                         int64_t k, int64_t count, ListedTaps& listed, float* panel) {
  int64_t taps = p.taps(), channel = k / taps, tap = k % taps, plane = p.plane();
  int64_t step = p.axes[2].lhs_dilation > 1 ? 1 : p.axes[2].stride;
  for (int64_t t = 0, now; t < count; t += now, panel += now * kConvWidth) {
    if (tap < listed.first || tap >= listed.first + listed.count) list_taps(p, places, columns, tap, listed);
    int64_t at = tap - listed.first, left = min(listed.count - at, count - t);
    const TapRuns* taps_here = listed.runs + at;
    now = left >= kLanes && are_adjacent(taps_here, step, columns) ? kLanes : 1;
    if (now > 1)
      gather_terms(x + channel * plane + taps_here->runs[0].offset, step, columns, panel);
    else
      gather_term(x + channel * plane, *taps_here, step, panel);
    if ((tap += now) == taps) tap = 0, ++channel;
  }
}

inline void conv_block(const ConvArgs& p, const ConvPart& part) {
  alignas(64) float panel[kConvTerms * kConvWidth];
  alignas(64) float sums[kConvFilters * kTileStride];
  ListedTaps listed;
  Place3 places[kConvWidth];
  int64_t terms = p.terms();
  for (int64_t c = 0; c < part.columns; ++c) places[c] = split_place(p, part.place + c);

  int64_t filter = part.group * p.filters + part.first;
  const float* x = p.x + (part.item * p.groups + part.group) * p.channels * p.plane();
  // Where the weights of a filter of this part lie for the terms from k on, and their strides.
  int64_t w_row = p.is_packed ? 1 : terms, w_col = p.is_packed ? kFilterPanel : 1;
  const float* w = p.w + (p.is_packed ? (part.group * filter_panels(p.filters) * kFilterPanel + part.first) * terms
                                      : filter * terms);
  // Filters that lie together.
  int64_t height = p.is_packed && part.filters > kFilterPanel ? kFilterPanel : part.filters;
  int64_t k = 0;
  do {
    int64_t count = min(terms - k, kConvTerms);
    if (count > 0) gather_panel(p, places, part.columns, x, k, count, listed, panel);
    for (int64_t c = 0; c < part.columns; c += 2 * kLanes) {
      for (int64_t first = 0; first < part.filters; first += height) {
        int64_t rows = min(part.filters - first, height);
        for_each_tile(rows, 2, [&](int64_t r, int64_t, TileFn fn) {
          fn({w + first * terms + r * w_row + k * w_col, w_row, w_col, panel + c, kConvWidth, count,
              sums + (first + r) * kTileStride + c, kTileStride, panel},
             k > 0);
        });
      }
    }
    k += kConvTerms;
  } while (k < terms);
  int64_t all = p.places(), row = part.item * p.groups * p.filters + filter;
  Epilogue e = p.epilogue;
  e.residual_row = all;
  Corner to = corner(e, row, part.place, p.y, all);
  to.row_bias = e.row_bias ? e.row_bias + filter : nullptr;
  finish(e, sums, part.filters, part.columns, to);
}

inline void conv_run(const ConvArgs& p, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; ++part) conv_block(p, conv_part(p, part));
}

// ---- groups of few channels, filter by filter

static_assert(kDirectWidth % kTileStride == 0);

inline int64_t direct_parts(const ConvArgs& p) {
  return p.items * p.groups * p.filters;
}

// One row of outputs, [first, first + columns).
inline void direct_row(const ConvArgs& p, const float* x, const float* w, const Place3& place, int64_t columns,
                       float* sums) {
  const ConvAxis &z = p.axes[0], &y = p.axes[1], &last = p.axes[2];
  for (int64_t c = 0; c < columns; c += kLanes) store(sums + c, Vec{});
  float outside = 0;  // rows of zeros, which a weight that is not finite makes NaN
  Phases phases;
  for (int64_t channel = 0; channel < p.channels; ++channel, x += p.plane()) {
    for (int64_t i = 0; i < z.taps; ++i) {
      for (int64_t j = 0; j < y.taps; ++j, w += last.taps) {
        int64_t at_z = read_at(z, place.at[0], i), at_y = read_at(y, place.at[1], j);
        if (at_z < 0 || at_y < 0) {
          for (int64_t tap = 0; tap < last.taps; ++tap) outside += 0 * w[tap];
          continue;
        }
        read_phases(last, FloatRow{x + (at_z * y.size + at_y) * last.size}, place.at[2], columns, 0, phases);
        for (int64_t tap = 0; tap < last.taps; ++tap) {
          const float* from = phases.at[tap * last.dilation % last.stride] + tap * last.dilation / last.stride;
          Vec weight = splat(w[tap]);
          for (int64_t c = 0; c < columns; c += kLanes) store(sums + c, fma(load(from + c), weight, load(sums + c)));
        }
      }
    }
  }
  for (int64_t c = 0; c < columns && outside != 0; c += kLanes) store(sums + c, load(sums + c) + splat(outside));
}

inline void direct_filter(const ConvArgs& p, int64_t index) {
  alignas(64) float sums[kDirectWidth + kLanes];
  int64_t filter = index % (p.groups * p.filters), item = index / (p.groups * p.filters);
  const float* x = p.x + (item * p.groups + filter / p.filters) * p.channels * p.plane();
  const ConvAxis& last = p.axes[2];
  int64_t rows = p.axes[0].out * p.axes[1].out;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t first = 0; first < last.out; first += kDirectWidth) {
      int64_t columns = min(last.out - first, kDirectWidth);
      Place3 place = {{row / p.axes[1].out, row % p.axes[1].out, first}};
      direct_row(p, x, p.w + filter * p.terms(), place, columns, sums);
      for (int64_t c = 0; c < columns; c += kTileStride) {
        Epilogue e = p.epilogue;
        e.residual_row = p.places();
        Corner to = corner(e, index, row * last.out + first + c, p.y, p.places());
        to.row_bias = e.row_bias ? e.row_bias + filter : nullptr;
        finish(e, sums + c, 1, min(columns - c, kTileStride), to);
      }
    }
  }
}

inline void direct_run(const ConvArgs& p, int64_t begin, int64_t end) {
  for (int64_t index = begin; index < end; ++index) direct_filter(p, index);
}

#include "backends/cpu/gemm/conv_scatter.inl"

inline constexpr ConvFns kConv = {
    {conv_parts, conv_run},   {direct_parts, direct_run},       {lane_parts, lane_run},      {plane_shares, plane_run},
    {point_parts, point_run}, {depthwise_parts, depthwise_run}, {scatter_parts, scatter_run}};
