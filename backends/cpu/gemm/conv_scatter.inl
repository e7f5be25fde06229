// SPDX-License-Identifier: Apache-2.0
// Convolutions of a dilated x, from the elements of x to the places that read them. A loop that gathers windows would
// multiply mostly zeros. A part is a slab of the planes of one filter, or of several that have few taps: products of a
// block of elements and a block of taps are summed over the channels on the stack, and added to y where they belong.

inline constexpr int64_t kScatterTaps = 2 * kLanes, kScatterElements = 128, kScatterTerms = 256;  // of a block, at most

// ---- how the outputs are divided

// Slabs are cut along the first axis that is not flat. `elements`, `places` and `taps` count what lies behind one
// position on it.
struct ScatterCut {
  int axis;
  int64_t elements = 1, places = 1, taps = 1;
  int64_t slabs, size;
  int64_t filters, filter_blocks;  // of a part, at most; of a group
};
inline ScatterCut cut_scatter(const ConvArgs& p) {
  constexpr int64_t kPlaces = 16384;  // of a slab, at least
  ScatterCut cut;
  cut.axis = !is_flat(p.axes[0]) ? 0 : !is_flat(p.axes[1]) ? 1 : 2;
  for (int i = cut.axis + 1; i < kConvAxes; ++i)
    cut.elements *= p.axes[i].size, cut.places *= p.axes[i].out, cut.taps *= p.axes[i].taps;
  const ConvAxis& axis = p.axes[cut.axis];
  int64_t size = ceil_div(kPlaces, max(cut.places, 1));
  int64_t least = axis.lhs_dilation * ceil_div(kScatterElements, max(cut.elements, 1));
  if (size < least) size = least;
  cut.slabs = size < axis.out ? axis.out / size : 1;
  cut.size = ceil_div(axis.out, cut.slabs);
  int64_t taps = p.taps(), filters = taps > 0 && taps < kScatterTaps ? kScatterTaps / taps : 1;
  cut.filter_blocks = ceil_div(p.filters, filters);
  cut.filters = ceil_div(p.filters, cut.filter_blocks);
  return cut;
}
inline int64_t scatter_parts(const ConvArgs& p) {
  if (p.places() == 0 || p.filters == 0) return 0;
  ScatterCut cut = cut_scatter(p);
  return p.items * p.groups * cut.filter_blocks * cut.slabs;
}

struct ScatterPart {
  ScatterCut cut;
  int64_t row, filters;                      // the first plane of y
  int64_t begin[kConvAxes], end[kConvAxes];  // the outputs
  int64_t first_place, end_place;            // the same in a plane
  const float *x, *w;                        // [channels, plane], [filters, channels, taps]
  float* y;                                  // [filters, places]
};
inline void find_scatter_part(const ConvArgs& p, const ScatterCut& cut, int64_t index, ScatterPart& part) {
  part.cut = cut;
  int64_t block = index / cut.slabs % cut.filter_blocks, group = index / cut.slabs / cut.filter_blocks;
  int64_t filter = block * cut.filters;  // of the group
  part.row = group * p.filters + filter;
  part.filters = min(p.filters - filter, cut.filters);
  for (int i = 0; i < kConvAxes; ++i) part.begin[i] = 0, part.end[i] = p.axes[i].out;
  int64_t first = index % cut.slabs * cut.size, end = first + cut.size, out = p.axes[cut.axis].out;
  part.begin[cut.axis] = min(first, out);
  part.end[cut.axis] = min(end, out);
  part.first_place = part.begin[cut.axis] * cut.places, part.end_place = part.end[cut.axis] * cut.places;
  part.x = p.x + group * p.channels * p.plane();
  part.w = p.w + part.row % (p.groups * p.filters) * p.terms();
  part.y = p.y + part.row * p.places();
}

// ---- blocks

// Some taps of one filter, or all taps of several.
struct TapBlock {
  int64_t first, count, filters;
};

// The elements of x that any tap of a block gives to this part: [first, end).
struct ElementRange {
  int64_t first, end;
};
inline ElementRange elements_of(const ConvArgs& p, const ScatterPart& part, const TapBlock& taps) {
  const ScatterCut& cut = part.cut;
  const ConvAxis& axis = p.axes[cut.axis];
  int64_t first_tap = taps.first / cut.taps, last_tap = (taps.first + taps.count - 1) / cut.taps;
  int64_t from = part.begin[cut.axis] - axis.lo + first_tap * axis.dilation;
  int64_t last = part.end[cut.axis] - 1 - axis.lo + last_tap * axis.dilation;
  int64_t first = from > 0 ? ceil_div(from, axis.lhs_dilation) : 0, end = last < 0 ? 0 : last / axis.lhs_dilation + 1;
  if (end > axis.size) end = axis.size;
  return {first * cut.elements, end * cut.elements};
}

template <int... I>
inline Vec reversed(Vec v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (kLanes - 1 - I)...);
}

// Copies the weights of some taps for some channels, the last tap first: so they lie in the order of the outputs.
inline void copy_taps(const float* w, int64_t all_taps, int64_t count, int64_t channels, float* to) {
  for (int64_t c = 0; c < channels; ++c, w += all_taps, to += kScatterTaps) {
    int64_t column = 0;
    for (; column + kLanes <= count; column += kLanes) {
      Vec weights = load(w + count - column - kLanes);
      store(to + column, reversed(weights, std::make_integer_sequence<int, kLanes>()));
    }
    for (; column < count; ++column) to[column] = w[count - 1 - column];
  }
}

inline void copy_weights(const ConvArgs& p, const ScatterPart& part, const TapBlock& taps, int64_t channel,
                         int64_t channels, float* panel) {
  int64_t all_taps = p.taps(), columns = taps.filters * taps.count;
  for (int64_t c = 0; c < channels && columns % kLanes != 0; ++c)
    store(panel + c * kScatterTaps + columns / kLanes * kLanes, Vec{});
  const float* w = part.w + channel * all_taps + taps.first;
  for (int64_t f = 0; f < taps.filters; ++f, w += p.terms())
    copy_taps(w, all_taps, taps.count, channels, panel + f * taps.count);
}

// sums[element, column]: the products of a block, each filter with its last tap first.
inline void multiply_taps(const ConvArgs& p, const ScatterPart& part, const TapBlock& taps, int64_t first,
                          int64_t elements, float* sums) {
  alignas(64) float panel[kScatterTerms * kScatterTaps];
  int64_t plane = p.plane(), columns = taps.filters * taps.count, k = 0;
  int vecs = static_cast<int>(ceil_div(columns, kLanes));
  do {
    int64_t count = min(p.channels - k, kScatterTerms);
    copy_weights(p, part, taps, k, count, panel);
    const float* x = part.x + k * plane + first;
    for_each_tile(elements, vecs, [&](int64_t r, int64_t, TileFn fn) {
      fn({x + r, 1, plane, panel, kScatterTaps, count, sums + r * kScatterTaps, kScatterTaps, panel}, k > 0);
    });
    k += kScatterTerms;
  } while (k < p.channels);
}

// Whether rows of x are long, and their elements lead to places next to each other, or to every second one.
inline bool leads_rows(const ConvAxis& x) {
  return x.dilation == 1 && x.lhs_dilation <= 2 && x.size >= 8;
}

// sums[column, element]: the same products as rows of elements. They read x in place, but for the end of a plane.
inline void multiply_rows(const ConvArgs& p, const ScatterPart& part, const TapBlock& taps, int64_t first,
                          int64_t elements, float* sums) {
  constexpr int64_t kWidth = kMaxVecs * kLanes;
  alignas(64) float panel[kScatterTerms * kScatterTaps], copy[kScatterTerms * kWidth];
  int64_t plane = p.plane(), columns = taps.filters * taps.count, k = 0;
  do {
    int64_t count = min(p.channels - k, kScatterTerms);
    copy_weights(p, part, taps, k, count, panel);
    for (int64_t i = 0; i < elements; i += kWidth) {
      const float* x = part.x + k * plane + first + i;
      int64_t left = min(elements - i, kWidth), rest = plane - first - i, x_row = plane;
      int vecs = static_cast<int>(ceil_div(left, kLanes));
      if (rest < vecs * kLanes) {
        for (int64_t c = 0; c < count; ++c) {
          for (int64_t j = 0; j < rest; j += kLanes)
            store(copy + c * kWidth + j, load_some(x + c * plane + j, rest - j));
        }
        x = copy, x_row = kWidth;
      }
      for_each_tile(columns, vecs, [&](int64_t r, int64_t, TileFn fn) {
        fn({panel + r, 1, kScatterTaps, x, x_row, count, sums + r * kScatterElements + i, kScatterElements, panel},
           k > 0);
      });
    }
    k += kScatterTerms;
  } while (k < p.channels);
}

// Taps of a block in one row of the window of one filter. `at`: where the first column lies for element 0; `y`: in
// which plane.
struct TapRow {
  int64_t at[kConvAxes];
  int64_t y, column, count;
};
inline int64_t find_tap_rows(const ConvArgs& p, const TapBlock& taps, TapRow* rows) {
  const ConvAxis &z = p.axes[0], &y = p.axes[1], &x = p.axes[2];
  int64_t found = 0, end = taps.first + taps.count, places = p.places();
  for (int64_t f = 0; f < taps.filters; ++f) {
    for (int64_t tap = taps.first, count; tap < end; tap += count) {
      int64_t line = tap / x.taps, first = tap % x.taps;
      count = min(x.taps - first, end - tap);
      TapRow& row = rows[found++];
      row.at[0] = z.lo - line / y.taps * z.dilation, row.at[1] = y.lo - line % y.taps * y.dilation;
      row.at[2] = x.lo - (first + count - 1) * x.dilation;
      row.y = f * places, row.column = f * taps.count + end - tap - count, row.count = count;
    }
  }
  return found;
}

// to[at + i * step] += from[i] where that is in [0, end).
inline void add_taps(const float* from, int64_t count, int64_t at, int64_t step, int64_t end, float* to) {
  if (step > 1) {
    for (int64_t i = 0; i < count; ++i, at += step) {
      if (at >= 0 && at < end) to[at] += from[i];
    }
    return;
  }
  int64_t i = max(-at, 0);
  if (count > end - at) count = end - at;
  for (; i + kLanes <= count; i += kLanes) store(to + at + i, load(to + at + i) + load(from + i));
  if (i < count) store_some(to + at + i, load_some(to + at + i, count - i) + load_some(from + i, count - i), count - i);
}

inline void scatter_block(const ConvArgs& p, const ScatterPart& part, const TapRow* rows, int64_t row_count,
                          int64_t first, int64_t elements, const float* sums) {
  const ConvAxis &z = p.axes[0], &y = p.axes[1], &x = p.axes[2];
  int64_t at_x = first % x.size, at_y = first / x.size % y.size, at_z = first / x.size / y.size;
  for (int64_t i = 0; i < elements; ++i, sums += kScatterTaps) {
    for (const TapRow* row = rows; row < rows + row_count; ++row) {
      int64_t to_z = at_z * z.lhs_dilation + row->at[0], to_y = at_y * y.lhs_dilation + row->at[1];
      if (to_z < part.begin[0] || to_z >= part.end[0] || to_y < part.begin[1] || to_y >= part.end[1]) continue;
      // A slab of a single axis starts at its first place.
      int64_t begin = part.begin[2], at = at_x * x.lhs_dilation + row->at[2] - begin;
      add_taps(sums + row->column, row->count, at, x.dilation, part.end[2] - begin,
               part.y + row->y + (to_z * y.out + to_y) * x.out + begin);
    }
    if (++at_x < x.size) continue;
    at_x = 0;
    if (++at_y == y.size) at_y = 0, ++at_z;
  }
}

// to[at + i] += v[i] for the n first lanes, where that is in [0, end).
inline void add_some(Vec v, int64_t n, int64_t at, int64_t end, float* to) {
  if (at >= 0 && at + n <= end) return store_some(to + at, load_some(to + at, n) + v, n);
  alignas(64) float some[kLanes];
  store(some, v);
  for (int64_t i = 0; i < n; ++i) {
    if (at + i >= 0 && at + i < end) to[at + i] += some[i];
  }
}

// Adds what a row of elements gives through one tap, or through two at every second place each.
inline void add_row(const float* from, int64_t count, int64_t at, int64_t end, float* to) {
  for (int64_t i = 0; i < count; i += kLanes) add_some(load(from + i), min(count - i, kLanes), at + i, end, to);
}
inline void add_two_rows(const float* even, const float* odd, int64_t count, int64_t at, int64_t end, float* to) {
  constexpr auto kAll = std::make_integer_sequence<int, kLanes>();
  for (int64_t i = 0; i < count; i += kLanes) {
    Vec a = load(even + i), b = odd ? load(odd + i) : Vec{};
    int64_t n = 2 * (count - i), here = at + 2 * i;
    add_some(interleave_low(a, b, kAll), min(n, kLanes), here, end, to);
    if (n > kLanes) add_some(interleave_high(a, b, kAll), min(n - kLanes, kLanes), here + kLanes, end, to);
  }
}

// As scatter_block, for sums that are rows of elements.
inline void scatter_rows(const ConvArgs& p, const ScatterPart& part, const TapRow* rows, int64_t row_count,
                         int64_t first, int64_t elements, const float* sums) {
  const ConvAxis &z = p.axes[0], &y = p.axes[1], &x = p.axes[2];
  int64_t begin = part.begin[2], end = part.end[2] - begin;
  for (int64_t i = 0, count; i < elements; i += count) {
    int64_t at_x = (first + i) % x.size, line = (first + i) / x.size, left = x.size - at_x;
    count = min(elements - i, left);
    for (const TapRow* row = rows; row < rows + row_count; ++row) {
      int64_t to_z = line / y.size * z.lhs_dilation + row->at[0], to_y = line % y.size * y.lhs_dilation + row->at[1];
      if (to_z < part.begin[0] || to_z >= part.end[0] || to_y < part.begin[1] || to_y >= part.end[1]) continue;
      const float* from = sums + row->column * kScatterElements + i;
      float* to = part.y + row->y + (to_z * y.out + to_y) * x.out + begin;
      int64_t at = at_x * x.lhs_dilation + row->at[2] - begin;
      for (int64_t tap = 0; tap < row->count; tap += x.lhs_dilation, from += x.lhs_dilation * kScatterElements) {
        if (x.lhs_dilation == 1)
          add_row(from, count, at + tap, end, to);
        else
          add_two_rows(from, tap + 1 < row->count ? from + kScatterElements : nullptr, count, at + tap, end, to);
      }
    }
  }
}

// ---- parts

// Taps that read zeros, between the elements of x or beyond x, matter only for weights that are not finite.
inline bool are_finite(const float* w, int64_t count) {
  Vec sums = {};
  for (int64_t i = 0; i < count; i += kLanes) sums += 0 * load_some(w + i, count - i);
  return reduce_add(sums) == 0;
}
inline bool tap_is_finite(const float* w, int64_t channels, int64_t all_taps) {
  float sum = 0;
  for (int64_t c = 0; c < channels; ++c) sum += 0 * w[c * all_taps];
  return sum == 0;
}
inline void add_unread_taps(const ConvArgs& p, const ScatterPart& part, const float* w, float* y_plane) {
  const ConvAxis &z = p.axes[0], &y = p.axes[1], &x = p.axes[2];
  int64_t taps = p.taps(), left = 1;  // how many outputs are numbers
  for (int64_t tap = 0; tap < taps && left > 0; ++tap) {
    if (tap_is_finite(w + tap, p.channels, taps)) continue;
    left = 0;
    for (int64_t i = part.first_place; i < part.end_place; ++i) {
      Place3 place = split_place(p, i);
      bool is_read = read_at(z, place.at[0], tap / x.taps / y.taps) >= 0 &&
                     read_at(y, place.at[1], tap / x.taps % y.taps) >= 0 && read_at(x, place.at[2], tap % x.taps) >= 0;
      if (!is_read) y_plane[i] = std::numeric_limits<float>::quiet_NaN();
      left += y_plane[i] == y_plane[i];
    }
  }
}

// Stores one plane through the epilogue.
inline void end_plane(const ConvArgs& p, const ScatterPart& part, int64_t row, float* y) {
  alignas(64) float tile[kTileStride];
  Epilogue e = p.epilogue;
  if (is_plain(e)) return;
  e.residual_row = p.places();
  for (int64_t at = part.first_place; at < part.end_place; at += kTileStride) {
    int64_t columns = min(part.end_place - at, kTileStride);
    for (int64_t c = 0; c < columns; c += kLanes) store(tile + c, load_some(y + at + c, columns - c));
    Corner to = corner(e, row, at, p.y, p.places());
    to.row_bias = e.row_bias ? e.row_bias + row % (p.groups * p.filters) : nullptr;
    finish(e, tile, 1, columns, to);
  }
}

inline void scatter_part(const ConvArgs& p, const ScatterPart& part) {
  alignas(64) float sums[kScatterElements * kScatterTaps + kLanes];  // a row is read in whole vectors
  TapRow rows[kScatterTaps];
  bool by_rows = leads_rows(p.axes[2]);
  for (int64_t f = 0; f < part.filters; ++f) {
    float* y = part.y + f * p.places();
    for (int64_t i = part.first_place; i < part.end_place; ++i) y[i] = 0;
  }
  for (int64_t tap = 0, all = p.taps(); tap < all; tap += kScatterTaps) {
    TapBlock taps = {tap, min(all - tap, kScatterTaps), part.filters};
    int64_t row_count = find_tap_rows(p, taps, rows);
    ElementRange range = elements_of(p, part, taps);
    for (int64_t first = range.first; first < range.end; first += kScatterElements) {
      int64_t elements = min(range.end - first, kScatterElements);
      (by_rows ? multiply_rows : multiply_taps)(p, part, taps, first, elements, sums);
      (by_rows ? scatter_rows : scatter_block)(p, part, rows, row_count, first, elements, sums);
    }
  }
  for (int64_t f = 0; f < part.filters; ++f) {
    const float* w = part.w + f * p.terms();
    float* y = part.y + f * p.places();
    if (!are_finite(w, p.terms())) add_unread_taps(p, part, w, y);
    end_plane(p, part, part.row + f, y);
  }
}

inline void scatter_run(const ConvArgs& p, int64_t begin, int64_t end) {
  ScatterCut cut = cut_scatter(p);
  ScatterPart part;
  for (int64_t i = begin; i < end; ++i) {
    find_scatter_part(p, cut, i, part);
    if (part.first_place < part.end_place) scatter_part(p, part);
  }
}
