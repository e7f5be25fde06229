// SPDX-License-Identifier: Apache-2.0
// Convolutions on the register tile. A part of a product is a block of filters against kConvWidth places of one item.

#include "backends/cpu/gemm/finish.inl"

inline constexpr int64_t kConvWidth = 32;
inline constexpr int64_t kConvTerms = 256;    // of a panel on the stack
inline constexpr int64_t kConvFilters = 256;  // most in a block
inline constexpr int64_t kListedTaps = 64;

// ---- where windows read

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
inline Place3 split_tap(const ConvArgs& p, int64_t tap) {
  Place3 it;
  for (int axis = kConvAxes - 1; axis >= 0; --axis) {
    it.at[axis] = tap % p.axes[axis].taps;
    tap /= p.axes[axis].taps;
  }
  return it;
}
// Along one axis: the position in x, or -1.
inline int64_t read_at(const ConvAxis& axis, int64_t out, int64_t tap) {
  int64_t at = out * axis.stride + tap * axis.dilation - axis.lo;
  if (axis.spread > 1) {
    if (at < 0 || at % axis.spread) return -1;
    at /= axis.spread;
  }
  return at < 0 || at >= axis.size ? -1 : at;
}
inline int64_t read_at(const ConvArgs& p, const Place3& place, const Place3& tap) {
  int64_t offset = 0;
  for (int axis = 0; axis < kConvAxes; ++axis) {
    int64_t at = read_at(p.axes[axis], place.at[axis], tap.at[axis]);
    if (at < 0) return -1;
    offset = offset * p.axes[axis].size + at;
  }
  return offset;
}

// For each column of a panel where a tap reads in a channel, or -1; the columns behind the last place read nothing.
struct TapOffsets {
  int64_t at[kConvWidth];
  bool is_run;  // they all read, one element after the other
};
inline void find_offsets(const ConvArgs& p, const Place3 (&places)[kConvWidth], int64_t columns, int64_t tap,
                         TapOffsets& offsets) {
  Place3 split = split_tap(p, tap);
  offsets.is_run = true;
  for (int64_t c = 0; c < kConvWidth; ++c) {
    offsets.at[c] = c < columns ? read_at(p, places[c], split) : -1;
    offsets.is_run = offsets.is_run && offsets.at[c] >= 0 && offsets.at[c] == offsets.at[0] + c;
  }
}

// ---- products

inline void gather_term(const float* plane, const TapOffsets& offsets, float* to) {
  if (offsets.is_run) {
    for (int64_t c = 0; c < kConvWidth; c += kLanes) store(to + c, load(plane + offsets.at[0] + c));
    return;
  }
  for (int64_t c = 0; c < kConvWidth; ++c) to[c] = offsets.at[c] < 0 ? 0 : plane[offsets.at[c]];
}

struct ConvPart {
  int64_t item, group, first, filters;  // `first` of the group
  int64_t place, columns;
};

inline int64_t conv_panels(const ConvArgs& p) {
  return (p.places() + kConvWidth - 1) / kConvWidth;
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
  it.filters = p.filters - it.first < blocks.size ? p.filters - it.first : blocks.size;
  it.columns = p.places() - it.place < kConvWidth ? p.places() - it.place : kConvWidth;
  return it;
}

inline void conv_block(const ConvArgs& p, const ConvPart& part) {
  alignas(64) float panel[kConvTerms * kConvWidth];
  alignas(64) float sums[kConvFilters * kTileStride];
  TapOffsets listed[kListedTaps], other;
  Place3 places[kConvWidth];
  int64_t taps = p.taps(), terms = p.terms(), plane = p.plane();
  for (int64_t c = 0; c < part.columns; ++c) places[c] = split_place(p, part.place + c);
  bool lists = taps <= kListedTaps;
  for (int64_t tap = 0; lists && tap < taps; ++tap) find_offsets(p, places, part.columns, tap, listed[tap]);

  int64_t filter = part.group * p.filters + part.first;
  const float* x = p.x + (part.item * p.groups + part.group) * p.channels * plane;
  const float* w = p.w + filter * terms;
  int64_t w_row = p.is_packed ? 1 : terms, w_col = p.is_packed ? part.filters : 1;
  int64_t channel = 0, tap = 0, k = 0;
  do {
    int64_t count = terms - k < kConvTerms ? terms - k : kConvTerms;
    for (int64_t t = 0; t < count; ++t) {
      if (!lists) find_offsets(p, places, part.columns, tap, other);
      gather_term(x + channel * plane, lists ? listed[tap] : other, panel + t * kConvWidth);
      if (++tap == taps) tap = 0, ++channel;
    }
    for (int64_t c = 0; c < part.columns; c += 2 * kLanes) {
      for_each_tile(part.filters, 2, [&](int64_t r, int64_t, TileFn fn) {
        fn({w + r * w_row + k * w_col, w_row, w_col, panel + c, kConvWidth, count, sums + r * kTileStride + c,
            kTileStride, panel},
           k > 0);
      });
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

inline constexpr int64_t kDirectWidth = 192;  // places of a row at a time, a whole number of tiles
static_assert(kDirectWidth % kTileStride == 0);

// A row of x as the taps read it: phase r holds every stride-th element from r on, zeros outside of the row.
struct Phases {
  float at[kMostPhases][kDirectWidth + kMostReach];
};

// For outputs from `first` on. `row`: null where the whole row is outside.
inline void read_phases(const ConvAxis& axis, const float* row, int64_t first, int64_t columns, Phases& phases) {
  int64_t reach = (axis.taps - 1) * axis.dilation / axis.stride, length = columns + reach;
  for (int64_t r = 0; r < axis.stride; ++r) {
    float* to = phases.at[r];
    int64_t from = first * axis.stride - axis.lo + r;
    for (int64_t i = 0; i < length; ++i, from += axis.stride)
      to[i] = row && from >= 0 && from < axis.size ? row[from] : 0;
    for (int64_t i = length; i < columns + reach + kLanes && i < kDirectWidth + kMostReach; ++i) to[i] = 0;
  }
}

inline int64_t direct_parts(const ConvArgs& p) {
  return p.items * p.groups * p.filters;
}

// One row of outputs, [first, first + columns).
inline void direct_row(const ConvArgs& p, const float* x, const float* w, const Place3& place, int64_t columns,
                       float* sums) {
  const ConvAxis &z = p.axes[0], &y = p.axes[1], &last = p.axes[2];
  for (int64_t c = 0; c < columns; c += kLanes) store(sums + c, Vec{});
  Phases phases;
  for (int64_t channel = 0; channel < p.channels; ++channel, x += p.plane()) {
    for (int64_t i = 0; i < z.taps; ++i) {
      for (int64_t j = 0; j < y.taps; ++j, w += last.taps) {
        int64_t at_z = read_at(z, place.at[0], i), at_y = read_at(y, place.at[1], j);
        if (at_z < 0 || at_y < 0) continue;
        read_phases(last, x + (at_z * y.size + at_y) * last.size, place.at[2], columns, phases);
        for (int64_t tap = 0; tap < last.taps; ++tap) {
          const float* from = phases.at[tap * last.dilation % last.stride] + tap * last.dilation / last.stride;
          Vec weight = splat(w[tap]);
          for (int64_t c = 0; c < columns; c += kLanes) store(sums + c, fma(load(from + c), weight, load(sums + c)));
        }
      }
    }
  }
}

inline void direct_filter(const ConvArgs& p, int64_t index) {
  alignas(64) float sums[kDirectWidth + kLanes];
  int64_t filter = index % (p.groups * p.filters), item = index / (p.groups * p.filters);
  const float* x = p.x + (item * p.groups + filter / p.filters) * p.channels * p.plane();
  const ConvAxis& last = p.axes[2];
  int64_t rows = p.axes[0].out * p.axes[1].out;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t first = 0; first < last.out; first += kDirectWidth) {
      int64_t columns = last.out - first < kDirectWidth ? last.out - first : kDirectWidth;
      Place3 place = {{row / p.axes[1].out, row % p.axes[1].out, first}};
      direct_row(p, x, p.w + filter * p.terms(), place, columns, sums);
      for (int64_t c = 0; c < columns; c += kTileStride) {
        Epilogue e = p.epilogue;
        e.residual_row = p.places();
        Corner to = corner(e, index, row * last.out + first + c, p.y, p.places());
        to.row_bias = e.row_bias ? e.row_bias + filter : nullptr;
        finish(e, sums + c, 1, columns - c < kTileStride ? columns - c : kTileStride, to);
      }
    }
  }
}

inline void direct_run(const ConvArgs& p, int64_t begin, int64_t end) {
  for (int64_t index = begin; index < end; ++index) direct_filter(p, index);
}

inline constexpr ConvFns kConv = {{conv_parts, conv_run}, {direct_parts, direct_run}};
