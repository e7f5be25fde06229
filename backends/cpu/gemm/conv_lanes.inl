// SPDX-License-Identifier: Apache-2.0
// Convolutions with the filters along the lanes. A tile multiplies a vector of weights by single elements of x. It
// reads them in place, or from a copy of the rows with zeros around them. Sums are transposed into rows of y when they
// are stored. A part is a block of filters times some places of one item. These lie side by side in y, or
// `lhs_dilation` apart, and all have one position on the first of three axes.

inline constexpr int64_t kLaneFilters = 2 * kFilterPanel;  // of a part
inline constexpr int64_t kLanePlaces = 224;                // of a part, at most
inline constexpr int64_t kLaneTerms = 512;                 // that run in one accumulator
inline constexpr int64_t kLaneCopy = 10240;                // elements of x, on the stack
inline constexpr int64_t kLaneTaps = 128;                  // along an axis, at most
inline constexpr int64_t kMaxJoined = 8;                   // residues of a part

// ---- how the outputs are divided

// Along an axis, the outputs of one residue modulo `lhs_dilation` form a row of their own. A part has all residues of a
// row of y if they are few, so that it stores whole rows.
struct LaneCut {
  int64_t filter_blocks, rows, columns;  // of a part, at most
  int64_t row_blocks, column_blocks;     // of one residue
  int64_t y_residues, x_residues;        // that have outputs; of x, `joined` of a part count as one
  int64_t joined;
};
// The most elements of a channel that a part of this many outputs copies: all rows that it spans, or those of each tap
// by themselves.
inline int64_t lane_copy_size(const ConvArgs& p, int64_t rows, int64_t columns) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  int64_t spanned = (rows - 1) * y.stride + y.reach() / y.lhs_dilation + 1;
  int64_t lines = min(rows * y.taps, spanned);
  int64_t width = columns + x.reach() / (x.stride * x.lhs_dilation) + 1;
  return lines * width * min(x.taps, x.stride);
}
inline LaneCut cut_lanes(const ConvArgs& p) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  LaneCut cut;
  cut.filter_blocks = ceil_div(p.filters, kLaneFilters);
  cut.y_residues = min(y.lhs_dilation, y.out);
  cut.x_residues = min(x.lhs_dilation, x.out);
  cut.joined = cut.x_residues > 1 && cut.x_residues <= kMaxJoined ? cut.x_residues : 1;
  cut.x_residues /= cut.joined;
  int64_t height = ceil_div(y.out, y.lhs_dilation), width = ceil_div(x.out, x.lhs_dilation);
  int64_t places = kLanePlaces / cut.joined;
  cut.column_blocks = width > places ? ceil_div(width, places) : 1;
  cut.columns = ceil_div(width, cut.column_blocks);
  int64_t most = cut.column_blocks > 1 || cut.columns == 0 ? 1 : places / cut.columns;
  while (most > 1 && lane_copy_size(p, most, cut.columns) > kLaneCopy / 4) --most;
  cut.row_blocks = ceil_div(height, most);
  cut.rows = cut.row_blocks ? ceil_div(height, cut.row_blocks) : 0;
  return cut;
}
inline int64_t lane_parts(const ConvArgs& p) {
  LaneCut cut = cut_lanes(p);
  if (!p.places()) return 0;
  return p.items * p.axes[0].out * p.groups * cut.filter_blocks * cut.y_residues * cut.x_residues * cut.row_blocks *
         cut.column_blocks;
}

// The outputs of a part along an axis are first + i * lhs_dilation. The taps that reach x for any of them: tap k reads
// base[k] + i * stride.
struct LaneAxis {
  int64_t first, count, taps;
  int16_t tap[kLaneTaps];
  int64_t base[kLaneTaps];  // as far outside of x as pads say
  int64_t lowest, highest;  // of `base`
};
inline void find_lane_axis(const ConvAxis& axis, int64_t residue, int64_t begin, int64_t most, LaneAxis& it) {
  it.first = residue + begin * axis.lhs_dilation;
  int64_t left = it.first < axis.out ? ceil_div(axis.out - it.first, axis.lhs_dilation) : 0;
  it.count = min(left, most);
  it.taps = 0;
  for (int64_t tap = 0; tap < axis.taps; ++tap) {
    int64_t at = it.first * axis.stride + tap * axis.dilation - axis.lo;
    if (axis.lhs_dilation > 1) {
      if (at % axis.lhs_dilation != 0) continue;
      at /= axis.lhs_dilation;
    }
    if (at >= axis.size || at + (it.count - 1) * axis.stride < 0) continue;
    if (it.taps == 0 || at < it.lowest) it.lowest = at;
    if (it.taps == 0 || at > it.highest) it.highest = at;
    it.tap[it.taps] = static_cast<int16_t>(tap);
    it.base[it.taps++] = at;
  }
}

struct LanePart {
  int64_t item, group, filter, filters;  // `filter` of the group
  int64_t residue, column;               // of x: the first of those joined, and the first output of each
  LaneAxis z, y, x;                      // z: one output; x: of the present residue
};
inline void find_lane_part(const ConvArgs& p, const LaneCut& cut, int64_t part, LanePart& it) {
  auto take = [&](int64_t count) {
    int64_t index = part % count;
    part /= count;
    return index;
  };
  it.column = take(cut.column_blocks) * cut.columns;
  int64_t rows = take(cut.row_blocks);
  it.residue = take(cut.x_residues) * cut.joined;
  int64_t y_residue = take(cut.y_residues);
  int64_t block = take(cut.filter_blocks);
  it.group = take(p.groups);
  find_lane_axis(p.axes[0], take(p.axes[0].out), 0, 1, it.z);
  it.item = part;
  it.filter = block * kLaneFilters;
  it.filters = min(p.filters - it.filter, kLaneFilters);
  find_lane_axis(p.axes[1], y_residue, rows * cut.rows, cut.rows, it.y);
}

// ---- the source of the tiles

// How a line is made from a row of x, vector by vector: what the masks leave out is 0. A vector may reach into what
// comes next in the copy, which is written after it. Long lines and wide strides are not listed.
struct LaneVector {
  int64_t from, to;
  Lanes low, high;  // of the vector at `from`, and of the next one, of which a stride of 2 takes every other element
};
struct LaneLine {
  static constexpr int kMost = 16;
  int count;  // 0: not listed
  LaneVector at[kMost];
};
inline void list_vectors(const ConvAxis& x, const int64_t* phase_from, int64_t phases, int64_t width, LaneLine& line) {
  line.count = 0;
  if (x.stride > 2 || phases * ceil_div(width, kLanes) > LaneLine::kMost) return;
  for (int64_t phase = 0; phase < phases; ++phase) {
    for (int64_t c = 0; c < width; c += kLanes) {
      int64_t from = phase_from[phase] + c * x.stride;
      line.at[line.count++] = {from, phase * width + c, lanes_inside(x.size, from),
                               lanes_inside(x.size, from + kLanes)};
    }
  }
}

// Elements of a channel: the tap (j, k) of the output (r, c) lies at tap_y[j] + tap_x[k] + r * row + c.
struct LaneSource {
  bool copies;
  int64_t channel, row, line;  // line: between neighbouring rows of the copy
  int64_t rows;                // of the copy
  bool by_tap;                 // the copy has the rows of each tap by themselves, else all from y.lowest on
  int32_t tap_y[kLaneTaps], tap_x[kLaneTaps];
  int64_t phases, phase_from[kMaxDirectStride], width;  // of a line: the start of each phase in x, and the length
  LaneLine vectors;
};
inline void find_source(const ConvArgs& p, const LanePart& part, LaneSource& it) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  int64_t last_y = part.y.highest + (part.y.count - 1) * y.stride, last_x = part.x.highest + part.x.count - 1;
  it.copies = x.stride != 1 || part.y.lowest < 0 || part.x.lowest < 0 || last_y >= y.size || last_x >= x.size;
  if (!it.copies) {
    it.channel = p.plane(), it.row = y.stride * x.size;
    for (int64_t i = 0; i < part.y.taps; ++i) it.tap_y[i] = static_cast<int32_t>(part.y.base[i] * x.size);
    for (int64_t i = 0; i < part.x.taps; ++i) it.tap_x[i] = static_cast<int32_t>(part.x.base[i]);
    return;
  }
  it.width = part.x.count + (part.x.highest - part.x.lowest) / x.stride;
  it.phases = 0;
  for (int64_t i = 0; i < part.x.taps; ++i) {
    int64_t from = part.x.lowest + (part.x.base[i] - part.x.lowest) % x.stride, phase = 0;
    while (phase < it.phases && it.phase_from[phase] != from) ++phase;
    if (phase == it.phases) it.phase_from[it.phases++] = from;
    it.tap_x[i] = static_cast<int32_t>(phase * it.width + (part.x.base[i] - from) / x.stride);
  }
  it.line = it.phases * it.width;
  it.rows = last_y - part.y.lowest + 1;
  it.by_tap = part.y.taps * part.y.count < it.rows;
  if (it.by_tap) it.rows = part.y.taps * part.y.count;
  it.row = it.by_tap ? it.line : y.stride * it.line;
  for (int64_t i = 0; i < part.y.taps; ++i)
    it.tap_y[i] = static_cast<int32_t>((it.by_tap ? i * part.y.count : part.y.base[i] - part.y.lowest) * it.line);
  it.channel = it.rows * it.line;
  list_vectors(x, it.phase_from, it.phases, it.width, it.vectors);
}

// Copies a row of a channel, or zeros if there is none. Up to a vector after the line is overwritten.
inline void copy_line(const ConvAxis& last, const LaneSource& source, const float* x, float* to) {
  if (!x) {
    for (int64_t i = 0; i < source.line; i += kLanes) store(to + i, Vec{});
    return;
  }
  for (int64_t phase = 0; source.vectors.count == 0 && phase < source.phases; ++phase)
    read_phase(last, FloatRow{x}, source.phase_from[phase], source.width, source.width, 0, to + phase * source.width);
  const LaneVector* end = source.vectors.at + source.vectors.count;
  if (last.stride == 1) {
    for (const LaneVector* v = source.vectors.at; v < end; ++v) store(to + v->to, load(x + v->from, v->low));
    return;
  }
  for (const LaneVector* v = source.vectors.at; v < end; ++v) {
    Vec low = load(x + v->from, v->low), high = load(x + v->from + kLanes, v->high);
    store(to + v->to, even_lanes(low, high, std::make_integer_sequence<int, kLanes>()));
  }
}

// Copies the rows of a channel in the order of the taps, with zeros outside x.
inline void copy_channel(const ConvArgs& p, const LanePart& part, const LaneSource& source, const float* x, float* to) {
  const ConvAxis &rows = p.axes[1], &last = p.axes[2];
  auto copy_rows = [&](int64_t at, int64_t step, int64_t count) {
    for (int64_t i = 0; i < count; ++i, at += step, to += source.line)
      copy_line(last, source, at < 0 || at >= rows.size ? nullptr : x + at * last.size, to);
  };
  if (!source.by_tap) return copy_rows(part.y.lowest, 1, source.rows);
  for (int64_t tap = 0; tap < part.y.taps; ++tap) copy_rows(part.y.base[tap], rows.stride, part.y.count);
}

// ---- tiles: some places of a row times some vectors of filters

struct LaneTerm {
  int32_t x, w;  // the offsets of a term
};
struct LaneTile {
  const float *x, *w;
  const LaneTerm* terms;
  int64_t count;
  int64_t panel;  // from a panel of filters to the next
  float* sums;    // places kLaneFilters apart
};

template <int Rows, int Vecs>
void lane_tile(const LaneTile& t, bool add) {
  constexpr int kInPanel = kFilterPanel / kLanes;
  Vec acc[Rows][Vecs] = {};
  for (int64_t i = 0; i < t.count; ++i) {
    const float *x = t.x + t.terms[i].x, *w = t.w + t.terms[i].w;
    Vec right[Vecs];
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
      const float* from = w + (v / kInPanel) * t.panel + v % kInPanel * kLanes;
      right[v] = load(from);
      __builtin_prefetch(from + 16 * kFilterPanel);
    }
    RLX_UNROLL for (int r = 0; r < Rows; ++r) {
      Vec left = splat(x[r]);
      RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[r][v] = fma(left, right[v], acc[r][v]);
    }
  }
  RLX_UNROLL for (int r = 0; r < Rows; ++r) {
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
      float* to = t.sums + r * kLaneFilters + v * kLanes;
      store(to, add ? load(to) + acc[r][v] : acc[r][v]);
    }
  }
}

using LaneFn = void (*)(const LaneTile&, bool add);
inline constexpr int kMaxLaneVecs = RLX_ISA == 2 ? 4 : 2;
constexpr int lane_rows(int vecs) {
  return RLX_ISA != 2 ? (vecs == 2 ? 6 : 12) : vecs == 4 ? 7 : vecs == 3 ? 9 : vecs == 2 ? 14 : 24;
}
struct LaneTable {
  LaneFn fns[kMaxLaneVecs + 1][25];
};
template <int Vecs, int Rows>
constexpr void fill_lanes(LaneTable& table) {
  if constexpr (Rows > 0) {
    table.fns[Vecs][Rows] = lane_tile<Rows, Vecs>;
    fill_lanes<Vecs, Rows - 1>(table);
  }
}
constexpr LaneTable make_lanes() {
  LaneTable table{};
  fill_lanes<1, lane_rows(1)>(table);
  fill_lanes<2, lane_rows(2)>(table);
#if RLX_ISA == 2
  fill_lanes<3, lane_rows(3)>(table);
  fill_lanes<4, lane_rows(4)>(table);
#endif
  return table;
}
inline constexpr LaneTable kLaneTiles = make_lanes();

// The number of vectors at once with which a row of `columns` places fills the registers.
inline int lane_vecs(int64_t left, int64_t columns) {
  if (left == 1) return 1;
#if RLX_ISA == 2
  if (columns <= lane_rows(4) && left >= 3) return left == 3 ? 3 : 4;
  if (left == 3 && columns <= lane_rows(3)) return 3;
#endif
  return columns < 0 ? 1 : 2;
}

// Adds the terms of a block for all places of a part.
inline void sum_lanes(const ConvArgs& p, const LanePart& part, const LaneSource& source, const float* x, const float* w,
                      const LaneTerm* terms, int64_t count, float* sums, bool add) {
  int64_t vecs = ceil_div(part.filters, kLanes), panel = p.terms() * kFilterPanel, in_panel = kFilterPanel / kLanes;
  for (int64_t v = 0; v < vecs;) {
    int now = lane_vecs(vecs - v, part.x.count);
    int64_t tiles = ceil_div(part.x.count, lane_rows(now));
    for (int64_t r = 0; r < part.y.count; ++r) {
      for (int64_t tile = 0; tile < tiles; ++tile) {
        int64_t from = part.x.count * tile / tiles, until = part.x.count * (tile + 1) / tiles;
        kLaneTiles.fns[now][until - from](
            {x + r * source.row + from, w + v / in_panel * panel + v % in_panel * kLanes, terms, count, panel,
             sums + (r * part.x.count + from) * kLaneFilters + v * kLanes},
            add);
      }
    }
    v += now;
  }
}

// ---- from sums to y

// Transposes the sums of kLanes places of some filters into rows of places.
inline void turn_sums(const float* sums, int64_t filters, int64_t places, float* tile) {
  for (int64_t f = 0; f < filters; f += kLanes) {
    for (int64_t c = 0; c < places; c += kLanes) {
      Vec rows[kLanes];
      RLX_UNROLL for (int i = 0; i < kLanes; ++i) rows[i] = load(sums + (c + i) * kLaneFilters + f);
      transpose(rows);
      RLX_UNROLL for (int i = 0; i < kLanes; ++i) store(tile + (f + i) * kTileStride + c, rows[i]);
    }
  }
}

inline Epilogue lane_epilogue(const ConvArgs& p) {
  Epilogue e = p.epilogue;
  e.residual_row = p.places();
  return e;
}
// The outputs of filter `f` of a part, from `at` on.
inline Corner lane_corner(const ConvArgs& p, const Epilogue& e, const LanePart& part, int64_t f, int64_t at) {
  int64_t filter = part.group * p.filters + part.filter + f;
  Corner to = corner(e, part.item * p.groups * p.filters + filter, at, p.y, p.places());
  to.row_bias = e.row_bias ? e.row_bias + filter : nullptr;
  return to;
}

// Places that lie side by side in y. Rows that do so, too, are stored together.
inline void finish_lanes(const ConvArgs& p, const LanePart& part, const float* sums) {
  alignas(64) float tile[kLaneFilters * kTileStride];
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  Epilogue e = lane_epilogue(p);
  bool joined = y.lhs_dilation == 1 && part.x.count == x.out;
  int64_t lines = joined ? 1 : part.y.count, length = joined ? part.y.count * part.x.count : part.x.count;
  for (int64_t line = 0; line < lines; ++line, sums += length * kLaneFilters) {
    int64_t at = (part.z.first * y.out + part.y.first + line * y.lhs_dilation) * x.out + part.x.first;
    for (int64_t c = 0; c < length; c += kTileStride) {
      int64_t columns = min(length - c, kTileStride);
      turn_sums(sums + c * kLaneFilters, part.filters, columns, tile);
      finish(e, tile, part.filters, columns, lane_corner(p, e, part, 0, at + c));
    }
  }
}

// Places that lie `lhs_dilation` apart.
inline void finish_apart(const ConvArgs& p, const LanePart& part, const float* sums) {
  alignas(64) float tile[kLaneFilters * kTileStride];
  alignas(64) float results[kTileStride], beside[kTileStride];
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  Epilogue e = lane_epilogue(p);
  for (int64_t line = 0; line < part.y.count; ++line, sums += part.x.count * kLaneFilters) {
    int64_t at = (part.z.first * y.out + part.y.first + line * y.lhs_dilation) * x.out + part.x.first;
    for (int64_t c = 0; c < part.x.count; c += kTileStride) {
      int64_t columns = min(part.x.count - c, kTileStride);
      turn_sums(sums + c * kLaneFilters, part.filters, columns, tile);
      for (int64_t f = 0; f < part.filters; ++f) {
        Corner to = lane_corner(p, e, part, f, at + c * x.lhs_dilation), one = to;
        one.y = results;
        if (to.residual) {
          for (int64_t i = 0; i < columns; ++i) beside[i] = to.residual[i * x.lhs_dilation];
          one.residual = beside;
        }
        finish(e, tile + f * kTileStride, 1, columns, one);
        for (int64_t i = 0; i < columns; ++i) to.y[i * x.lhs_dilation] = results[i];
      }
    }
  }
}

// The sums of all residues of a part: of residue j, rows of counts[j] places from j * apart on.
struct JoinedSums {
  const float* sums;
  int64_t residues, apart;
  int64_t counts[kMaxJoined];
};

template <int... I>
inline Vec interleave_low(Vec a, Vec b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + I % 2 * kLanes)...);
}
template <int... I>
inline Vec interleave_high(Vec a, Vec b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (kLanes / 2 + I / 2 + I % 2 * kLanes)...);
}
// to[c * Count + j] = from[j * kLanes * kLanes + c] for all lanes c.
template <int Count>
inline void join_vectors(const float* from, float* to) {
  constexpr auto kAll = std::make_integer_sequence<int, kLanes>();
  Vec rows[Count], next[Count];
  RLX_UNROLL for (int j = 0; j < Count; ++j) rows[j] = load(from + j * kLanes * kLanes);
  RLX_UNROLL for (int round = 1; round < Count; round *= 2) {
    RLX_UNROLL for (int j = 0; j < Count / 2; ++j) {
      next[2 * j] = interleave_low(rows[j], rows[j + Count / 2], kAll);
      next[2 * j + 1] = interleave_high(rows[j], rows[j + Count / 2], kAll);
    }
    RLX_UNROLL for (int j = 0; j < Count; ++j) rows[j] = next[j];
  }
  RLX_UNROLL for (int j = 0; j < Count; ++j) store(to + j * kLanes, rows[j]);
}
inline void join_lanes(const float* from, int64_t count, float* to) {
  if (count == 2) return join_vectors<2>(from, to);
  if (count == 4) return join_vectors<4>(from, to);
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t c = 0; c < kLanes; ++c) to[c * count + j] = from[j * kLanes * kLanes + c];
  }
}

// kLanes places of each residue, from `column` of a line on, of kLanes filters: rows of y that lie side by side.
inline void join_sums(const JoinedSums& all, int64_t line, int64_t column, int64_t filter, float* rows) {
  alignas(64) float transposed[kMaxJoined * kLanes * kLanes];
  for (int64_t j = 0; j < all.residues; ++j) {
    const float* from = all.sums + (j * all.apart + line * all.counts[j] + column) * kLaneFilters + filter;
    Vec places[kLanes];
    RLX_UNROLL for (int i = 0; i < kLanes; ++i) places[i] = load(from + i * kLaneFilters);
    transpose(places);
    RLX_UNROLL for (int i = 0; i < kLanes; ++i) store(transposed + (j * kLanes + i) * kLanes, places[i]);
  }
  for (int64_t i = 0; i < kLanes; ++i)
    join_lanes(transposed + i * kLanes, all.residues, rows + i * kMaxJoined * kLanes);
}

inline void finish_joined(const ConvArgs& p, const LanePart& part, const JoinedSums& all) {
  alignas(64) float rows[kLanes * kMaxJoined * kLanes], tile[kLanes * kTileStride];
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  Epilogue e = lane_epilogue(p);
  int64_t length = 0, step = kLanes * all.residues;
  for (int64_t j = 0; j < all.residues; ++j) length += all.counts[j];
  for (int64_t line = 0; line < part.y.count; ++line) {
    int64_t at = (part.z.first * y.out + part.y.first + line * y.lhs_dilation) * x.out + part.column * x.lhs_dilation;
    for (int64_t first = 0; first < length; first += step) {
      for (int64_t f = 0; f < part.filters; f += kLanes) {
        int64_t filters = min(part.filters - f, kLanes);
        join_sums(all, line, first / all.residues, f, rows);
        for (int64_t c = 0; c < step && first + c < length; c += kTileStride) {
          int64_t left = min(step - c, length - first - c);
          int64_t columns = min(left, kTileStride);
          for (int64_t i = 0; i < filters; ++i) {
            for (int64_t k = 0; k < columns; k += kLanes)
              store(tile + i * kTileStride + k, load(rows + i * kMaxJoined * kLanes + c + k));
          }
          finish(e, tile, filters, columns, lane_corner(p, e, part, f, at + first + c));
        }
      }
    }
  }
}

// ---- a part

inline void list_terms(const ConvArgs& p, const LanePart& part, const LaneSource& source, int64_t channels,
                       LaneTerm* term) {
  int64_t all_taps = p.taps();
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t j = 0; j < part.y.taps; ++j) {
      for (int64_t k = 0; k < part.x.taps; ++k) {
        int64_t w = (c * all_taps + part.y.tap[j] * p.axes[2].taps + part.x.tap[k]) * kFilterPanel;
        *term++ = {static_cast<int32_t>(c * source.channel + source.tap_y[j] + source.tap_x[k]),
                   static_cast<int32_t>(w)};
      }
    }
  }
}

// Adds the taps that fall between the elements of a dilated x, or beyond x. They read zeros, so they matter only for
// weights that are not finite. `w`: of the filters of this part.
inline void add_skipped_taps(const ConvArgs& p, const LanePart& part, const float* w, float* sums) {
  int64_t panels = filter_panels(p.filters), first = part.group * panels + part.filter / kFilterPanel;
  const float* of_zeros = p.w + (p.groups * panels * p.terms() + first) * kFilterPanel;
  bool is_finite = true;
  for (int64_t f = 0; f < part.filters; ++f) is_finite = is_finite && of_zeros[f] == 0;
  if (is_finite || part.z.taps * part.y.taps * part.x.taps == p.taps()) return;
  auto is_read = [](const LaneAxis& axis, int64_t tap) {
    for (int64_t i = 0; i < axis.taps; ++i) {
      if (axis.tap[i] == tap) return true;
    }
    return false;
  };
  float skipped[kLaneFilters] = {};
  for (int64_t term = 0; term < p.terms(); ++term) {
    int64_t lines = term % p.taps() / p.axes[2].taps, column = term % p.axes[2].taps;
    if (is_read(part.z, lines / p.axes[1].taps) && is_read(part.y, lines % p.axes[1].taps) && is_read(part.x, column))
      continue;
    for (int64_t f = 0; f < part.filters; ++f)
      skipped[f] += 0 * w[(f / kFilterPanel * p.terms() + term) * kFilterPanel + f % kFilterPanel];
  }
  for (int64_t place = 0; place < part.y.count * part.x.count; ++place) {
    for (int64_t f = 0; f < part.filters; ++f) sums[place * kLaneFilters + f] += skipped[f];
  }
}

// The sums of one residue.
inline void lane_sums(const ConvArgs& p, const LanePart& part, const LaneSource& source, float* sums) {
  alignas(64) float copy[kLaneCopy + kLanes];
  LaneTerm terms[kLaneTerms];
  int64_t taps = part.y.taps * part.x.taps, all_taps = p.taps(), plane = p.plane();
  int64_t places = part.y.count * part.x.count;
  const float* x = p.x + (part.item * p.groups + part.group) * p.channels * plane;
  const float* w =
      p.w + (part.group * filter_panels(p.filters) + part.filter / kFilterPanel) * p.terms() * kFilterPanel;
  int64_t block = taps ? kLaneTerms / taps : 1;  // channels
  if (taps && source.copies && block > kLaneCopy / source.channel) block = kLaneCopy / source.channel;
  if (taps == 0 || part.z.taps == 0 || p.channels == 0) {
    for (int64_t i = 0; i < places * kLaneFilters; i += kLanes) store(sums + i, Vec{});
    return add_skipped_taps(p, part, w, sums);
  }
  list_terms(p, part, source, min(block, p.channels), terms);
  int64_t slice = p.axes[1].size * p.axes[2].size, slice_taps = p.axes[1].taps * p.axes[2].taps;
  for (int64_t k = 0; k < part.z.taps; ++k) {
    for (int64_t channel = 0; channel < p.channels; channel += block) {
      int64_t channels = min(p.channels - channel, block);
      const float* from = x + channel * plane + part.z.base[k] * slice;
      if (source.copies) {
        for (int64_t c = 0; c < channels; ++c)
          copy_channel(p, part, source, from + c * plane, copy + c * source.channel);
        from = copy;
      }
      const float* weights = w + (channel * all_taps + part.z.tap[k] * slice_taps) * kFilterPanel;
      sum_lanes(p, part, source, from, weights, terms, channels * taps, sums, k > 0 || channel > 0);
    }
  }
  add_skipped_taps(p, part, w, sums);
}

inline void lane_part(const ConvArgs& p, const LaneCut& cut, LanePart& part) {
  alignas(64) float sums[(kLanePlaces + kLanes) * kLaneFilters];
  LaneSource source;
  JoinedSums all{sums, cut.joined, cut.rows * cut.columns, {}};
  for (int64_t j = 0; j < cut.joined; ++j) {
    find_lane_axis(p.axes[2], part.residue + j, part.column, cut.columns, part.x);
    all.counts[j] = max(part.x.count, 0);
    if (all.counts[j] == 0) continue;
    if (part.y.taps && part.x.taps) find_source(p, part, source);
    lane_sums(p, part, source, sums + j * all.apart * kLaneFilters);
  }
  if (cut.joined > 1) return finish_joined(p, part, all);
  if (all.counts[0] > 0) p.axes[2].lhs_dilation > 1 ? finish_apart(p, part, sums) : finish_lanes(p, part, sums);
}

inline void lane_run(const ConvArgs& p, int64_t begin, int64_t end) {
  LaneCut cut = cut_lanes(p);
  LanePart part;
  for (int64_t i = begin; i < end; ++i) {
    find_lane_part(p, cut, i, part);
    if (part.y.count > 0) lane_part(p, cut, part);
  }
}

inline bool lanes_fit(const ConvArgs& p) {
  const ConvAxis &z = p.axes[0], &y = p.axes[1], &x = p.axes[2];
  for (const ConvAxis* axis : {&z, &y, &x}) {
    if (axis->taps > kLaneTaps || (axis->stride > 1 && axis->lhs_dilation > 1)) return false;
  }
  if (y.taps * x.taps > kLaneTerms || x.stride > kMaxDirectStride || y.stride > ConvAxis::kFar) return false;
  if (kLaneTerms * p.plane() > INT32_MAX) return false;
  return lane_copy_size(p, 1, cut_lanes(p).columns) <= kLaneCopy;
}
