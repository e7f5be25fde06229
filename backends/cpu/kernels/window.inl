// SPDX-License-Identifier: Apache-2.0
// Folds over windows. A part is a plane, or some that are small. Common windows are folded in registers. Of others, a
// row of outputs is folded in two steps: the rows of x that it reads to one line, then the taps of that line. The lines
// of several rows are written before the first of them is read: a vector that begins inside another one, which has just
// been written, would wait for it.

#include "backends/cpu/gemm/phases.inl"

#include "backends/cpu/gemm/small_planes.inl"

inline constexpr int64_t kLinesAtOnce = 16;
static_assert(kWindowLine >= (kDirectWidth + kMaxReach) * kMaxDirectStride);  // what fits_direct lets a row read

inline Vec fold_sum(Vec a, Vec b) {
  return a + b;
}
inline Vec fold_max(Vec a, Vec b) {
  return max(a, b);
}
inline Vec fold_min(Vec a, Vec b) {
  return min(a, b);
}

// Whether planes are folded in registers: common windows on rows of f32 that fill nearly half a vector or more.
inline bool folds_bands(const WindowArgs& p) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  for (const ConvAxis* axis : {&y, &x}) {
    bool is_common = (axis->taps == 2 || axis->taps == 3) && (axis->stride == 1 || axis->stride == 2);
    if (!is_common || axis->dilation != 1 || axis->lo < 0 || axis->lo >= axis->taps) return false;
  }
  return p.type == WindowArgs::kF32 && is_flat(p.axes[0]) && y.taps == x.taps && y.stride == x.stride &&
         16 * x.out >= 7 * kLanes;
}

// Large windows are folded in two steps also where planes are small.
inline constexpr int64_t kFewTaps = 16;
inline bool folds_small(const WindowArgs& p) {
  return !folds_bands(p) && is_small_plane(p.axes, p.planes);
}

// Small planes are folded side by side: fewer at once would take as long.
inline int64_t planes_in_part(const WindowArgs& p) {
  return folds_small(p) ? kLanes : 1;
}
inline int64_t window_parts(const WindowArgs& p) {
  return ceil_div(p.planes, planes_in_part(p));
}

// Rows of x and y of one type. f32 holds every 8-bit number, so folds run in f32.
struct FloatPlanes {
  using Row = FloatRow;
  static Row row(const WindowArgs& p, int64_t at) { return {static_cast<const float*>(p.x) + at}; }
  static void store(const WindowArgs& p, int64_t at, Vec v, int64_t n) {
    store_some(static_cast<float*>(p.y) + at, v, n);
  }
};
template <bool kSigned>
struct BytePlanes {
  using Row = ByteRow<kSigned>;
  static Row row(const WindowArgs& p, int64_t at) { return {static_cast<const uint8_t*>(p.x) + at}; }
  static void store(const WindowArgs& p, int64_t at, Vec v, int64_t n) {
    store_bytes(static_cast<uint8_t*>(p.y) + at, to_int(v), n);
  }
};

// The taps of an output that read inside of x, which may be far fewer than the window has.
struct TapRange {
  int64_t begin, end;
};
inline TapRange taps_inside(const ConvAxis& axis, int64_t out) {
  int64_t at = out * axis.stride - axis.lo;  // what the first tap reads
  int64_t begin = at < 0 ? steps_in(-at - 1, axis.dilation) + 1 : 0;
  int64_t end = at < axis.size ? steps_in(axis.size - 1 - at, axis.dilation) + 1 : 0;
  return {begin, min(end, axis.taps)};
}

// What all rows of outputs share: the columns [first, first + columns), and the line that they read.
struct WindowRow {
  int64_t first, columns, from;           // from: the position in x where the line begins
  int64_t length, pitch, before, inside;  // the line is neutral except for [before, inside)
};
inline WindowRow window_row(const ConvAxis& last, int64_t first, int64_t columns) {
  WindowRow row{.first = first, .columns = columns, .from = first * last.stride - last.lo};
  row.length = (columns - 1) * last.stride + (last.taps - 1) * last.dilation + 1;
  row.pitch = ceil_div(row.length, kLanes) * kLanes;
  row.before = max(min(-row.from, row.length), 0);
  row.inside = max(min(last.size - row.from, row.length), row.before);
  return row;
}

// Positions [0, n) of `rows` become one line, or are added to it. Writes whole vectors.
template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_some_rows(const WindowArgs& p, const int64_t* rows, int64_t count, bool is_first, int64_t n, float neutral,
                    float* line) {
  for (int64_t c = 0; c < n; c += kLanes) {
    Vec folded = is_first ? splat(neutral) : load(line + c);
    for (int64_t k = 0; k < count; ++k) folded = fold(folded, Planes::row(p, rows[k]).load(c, n - c));
    store(line + c, folded);
  }
}

// Folds the rows of x that row [out_z, out_y] of the outputs reads to a line.
template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_line(const WindowArgs& p, const WindowRow& row, int64_t x, int64_t out_z, int64_t out_y, float neutral,
               float* line) {
  const ConvAxis &z = p.axes[0], &rows = p.axes[1];
  int64_t at[kLinesAtOnce], count = 0, n = row.inside - row.before;
  bool is_first = true;
  for (int64_t i = 0; i < row.before; ++i) line[i] = neutral;
  TapRange in_z = taps_inside(z, out_z), in_y = taps_inside(rows, out_y);
  for (int64_t tap_z = in_z.begin; tap_z < in_z.end; ++tap_z) {
    int64_t at_z = read_at(z, out_z, tap_z);
    for (int64_t tap_y = in_y.begin; tap_y < in_y.end; ++tap_y) {
      int64_t at_y = read_at(rows, out_y, tap_y);
      if (count == kLinesAtOnce) {
        fold_some_rows<Planes, fold>(p, at, count, is_first, n, neutral, line + row.before);
        is_first = false;
        count = 0;
      }
      at[count++] = x + (at_z * rows.size + at_y) * p.axes[2].size + row.from + row.before;
    }
  }
  fold_some_rows<Planes, fold>(p, at, count, is_first, n, neutral, line + row.before);
  for (int64_t i = row.inside; i < row.length; ++i) line[i] = neutral;
}

// Folds the taps of a line: `tap_at(tap, c)` is the vector of what the columns from c on read.
template <class Planes, Vec (*fold)(Vec, Vec), class TapAt>
void fold_columns(const WindowArgs& p, int64_t columns, float neutral, int64_t y, TapAt&& tap_at) {
  for (int64_t c = 0; c < columns; c += kLanes) {
    Vec folded = splat(neutral);
    for (int64_t tap = 0; tap < p.axes[2].taps; ++tap) folded = fold(folded, tap_at(tap, c));
    Planes::store(p, y + c, folded, columns - c);
  }
}
// The fold of adjacent elements, at least a vector of them.
template <Vec (*fold)(Vec, Vec)>
float fold_adjacent(const float* x, int64_t count, float neutral) {
  Vec folded = load(x);
  int64_t i = kLanes;
  for (; i + kLanes <= count; i += kLanes) folded = fold(folded, load(x + i));
  // To fold elements twice changes only sums, and for these a missing lane, which is 0, is neutral.
  if (i < count) folded = fold(folded, neutral == 0 ? load_some(x + i, count - i) : load(x + count - kLanes));
  return fold_lanes<kLanes / 2, fold>(folded)[0];
}
// Windows that are far apart or wide: window by window, or else tap by tap.
template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_far_taps(const WindowArgs& p, const WindowRow& row, const float* line, float neutral, int64_t y) {
  alignas(64) float folded[kDirectWidth + kLanes], read[kDirectWidth + kLanes] = {};
  const ConvAxis& last = p.axes[2];
  bool is_whole = last.dilation == 1 && last.taps >= kLanes;
  for (int64_t c = 0; c < row.columns; c += kLanes) store(folded + c, splat(neutral));
  for (int64_t c = 0; is_whole && c < row.columns; ++c)
    folded[c] = fold_adjacent<fold>(line + c * last.stride, last.taps, neutral);
  for (int64_t tap = 0; !is_whole && tap < last.taps; ++tap) {
    copy_stepped(FloatRow{line}, tap * last.dilation, last.stride, row.columns, read);
    for (int64_t c = 0; c < row.columns; c += kLanes) store(folded + c, fold(load(folded + c), load(read + c)));
  }
  for (int64_t c = 0; c < row.columns; c += kLanes) Planes::store(p, y + c, load(folded + c), row.columns - c);
}

template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_taps(const WindowArgs& p, const WindowRow& row, const float* line, float neutral, int64_t y) {
  const ConvAxis& last = p.axes[2];
  if (!fits_direct(last)) return fold_far_taps<Planes, fold>(p, row, line, neutral, y);
  if (last.stride == 1)
    return fold_columns<Planes, fold>(p, row.columns, neutral, y,
                                      [&](int64_t tap, int64_t c) { return load(line + tap * last.dilation + c); });
  if (last.stride == 2)
    return fold_columns<Planes, fold>(p, row.columns, neutral, y, [&](int64_t tap, int64_t c) {
      const float* at = line + tap * last.dilation + 2 * c;
      return even_lanes(load(at), load(at + kLanes), std::make_integer_sequence<int, kLanes>());
    });
  Phases phases;
  for (int64_t r = 0; r < last.stride && r <= (last.taps - 1) * last.dilation; ++r)
    copy_stepped(FloatRow{line}, r, last.stride, ceil_div(row.length - r, last.stride), phases.at[r]);
  const float* taps[kMaxReach * kMaxDirectStride];
  for (int64_t tap = 0; tap < last.taps; ++tap)
    taps[tap] = phases.at[tap * last.dilation % last.stride] + tap * last.dilation / last.stride;
  fold_columns<Planes, fold>(p, row.columns, neutral, y, [&](int64_t tap, int64_t c) { return load(taps[tap] + c); });
}

// All rows of a plane. x and y: where the plane begins, and column row.first of its outputs.
template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_rows(const WindowArgs& p, const WindowRow& row, int64_t x, float neutral, int64_t y) {
  alignas(64) float lines[kWindowLine + 4 * kLanes];  // a vector of the last column may read beyond its line
  int64_t at_once = kWindowLine / row.pitch, rows = p.axes[1].out, total = p.axes[0].out * rows;
  for (int64_t first = 0; first < total; first += at_once) {
    int64_t count = min(total - first, at_once);
    for (int64_t i = 0, out_z = first / rows, out_y = first % rows; i < count; ++i) {
      fold_line<Planes, fold>(p, row, x, out_z, out_y, neutral, lines + i * row.pitch);
      if (++out_y == rows) ++out_z, out_y = 0;
    }
    for (int64_t i = 0; i < count; ++i)
      fold_taps<Planes, fold>(p, row, lines + i * row.pitch, neutral, y + (first + i) * p.axes[2].out);
  }
}

// A lambda without captures would also make a plain function, which GCC compiles for the baseline.
template <Vec (*fold)(Vec, Vec)>
struct FoldTap {
  Vec operator()(Vec acc, Vec x, int64_t) const { return fold(acc, x); }
};

template <Vec (*fold)(Vec, Vec)>
struct FoldRows {
  Vec operator()(Vec a, Vec b) const { return fold(a, b); }
};

template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_small(const WindowArgs& p, int64_t begin, int64_t end, float neutral) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  SmallPlanes planes(y, x, neutral);
  bool in_two_steps = y.taps * x.taps > kFewTaps;
  if (in_two_steps) planes.list_columns(y, x);
  for (int64_t first = begin, count; first < end; first += count) {
    count = min(end - first, kLanes);
    if (in_two_steps && first > begin) planes.clear(y, x, neutral);
    planes.read(count, [&](int64_t i) { return Planes::row(p, (first + i) * planes.elements); });
    if (in_two_steps) planes.fold_rows(y, x, FoldRows<fold>());
    planes.fold(count, splat(neutral), FoldTap<fold>(), [&](int64_t i, int64_t at, Vec v, int64_t n) {
      Planes::store(p, (first + i) * planes.outs + at, v, n);
    });
  }
}

// ---- bands: kLanes columns of a plane, row by row. Each row of x is read once, and folded along its taps.

// `others` where a lane is not one of `some`.
inline Vec load_or(const float* p, Lanes some, Vec others) {
#if RLX_ISA == 2
  return _mm512_mask_loadu_ps(others, some, p);
#elif RLX_ISA == 1
  return _mm256_blendv_ps(others, load(p, some), _mm256_castsi256_ps(some));
#else
  for (int64_t i = some.begin; i < some.end; ++i) others[i] = p[i];
  return others;
#endif
}

template <Vec (*fold)(Vec, Vec), int Taps, int Stride>
struct Band {
  const float* x;  // what the first tap of the first column reads in row 0
  int64_t row, rows;
  float neutral;
  bool is_inside;            // all that is read
  Lanes some[Taps][Stride];  // else: the lanes that are

  Vec vector(const float* from, int tap, int i) const {
    from += tap + i * kLanes;
    return is_inside ? load(from) : load_or(from, some[tap][i], splat(neutral));
  }
  // With stride 2 a tap and the next one read the even and the odd elements of the same two vectors.
  Vec read(int64_t at) const {
    constexpr auto kAll = std::make_integer_sequence<int, kLanes>();
    Vec folded = splat(neutral);
    if (at < 0 || at >= rows) return folded;
    const float* from = x + at * row;
    RLX_UNROLL for (int tap = 0; tap < Taps; tap += Stride) {
      Vec low = vector(from, tap, 0), high = vector(from, tap, Stride - 1);
      folded = fold(folded, Stride == 1 ? low : even_lanes(low, high, kAll));
      if (Stride == 2 && tap + 1 < Taps) folded = fold(folded, odd_lanes(low, high, kAll));
    }
    return folded;
  }
};

template <Vec (*fold)(Vec, Vec), int Taps, int Stride>
void fold_band(const WindowArgs& p, const float* x, float* y, int64_t column, float neutral) {
  const ConvAxis &rows = p.axes[1], &last = p.axes[2];
  int64_t at = column * Stride - last.lo, columns = last.out - column;
  bool is_inside = at >= 0 && at + Taps - 1 + Stride * kLanes <= last.size;
  Band<fold, Taps, Stride> band{x + at, last.size, rows.size, neutral, is_inside, {}};
  for (int tap = 0; tap < Taps && !is_inside; ++tap)
    for (int i = 0; i < Stride; ++i) band.some[tap][i] = lanes_inside(last.size, at + tap + i * kLanes);
  Vec read[Taps];  // the rows under a row of outputs
  for (int i = Stride; i < Taps; ++i) read[i] = band.read(i - Stride - rows.lo);
  for (int64_t r = 0; r < rows.out; ++r) {
    RLX_UNROLL for (int i = 0; i + Stride < Taps; ++i) read[i] = read[i + Stride];
    RLX_UNROLL for (int i = Taps > Stride ? Taps - Stride : 0; i < Taps; ++i) read[i] =
        band.read(r * Stride + i - rows.lo);
    Vec folded = read[0];
    RLX_UNROLL for (int i = 1; i < Taps; ++i) folded = fold(folded, read[i]);
    store_some(y + r * last.out + column, folded, columns);
  }
}
template <Vec (*fold)(Vec, Vec)>
void fold_bands(const WindowArgs& p, int64_t begin, int64_t end, float neutral) {
  constexpr decltype(&fold_band<fold, 2, 1>) kBands[2][2] = {{fold_band<fold, 2, 1>, fold_band<fold, 2, 2>},
                                                             {fold_band<fold, 3, 1>, fold_band<fold, 3, 2>}};
  const ConvAxis &rows = p.axes[1], &last = p.axes[2];
  auto band = kBands[last.taps == 3][last.stride == 2];
  for (int64_t plane = begin; plane < end; ++plane) {
    const float* x = static_cast<const float*>(p.x) + plane * rows.size * last.size;
    float* y = static_cast<float*>(p.y) + plane * rows.out * last.out;
    for (int64_t column = 0; column < last.out; column += kLanes) band(p, x, y, column, neutral);
  }
}

template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_planes(const WindowArgs& p, int64_t begin, int64_t end, float neutral) {
  const ConvAxis &z = p.axes[0], &rows = p.axes[1], &last = p.axes[2];
  if (folds_bands(p)) return fold_bands<fold>(p, begin, end, neutral);
  if (folds_small(p)) return fold_small<Planes, fold>(p, begin, end, neutral);
  int64_t most = fits_direct(last) ? kDirectWidth : (kWindowLine - 1 - last.reach()) / last.stride + 1;
  if (most > kDirectWidth) most = kDirectWidth;
  for (int64_t first = 0; first < last.out; first += most) {
    WindowRow row = window_row(last, first, min(last.out - first, most));
    for (int64_t plane = begin; plane < end; ++plane) {
      int64_t x = plane * z.size * rows.size * last.size, y = plane * z.out * rows.out * last.out;
      fold_rows<Planes, fold>(p, row, x, neutral, y + first);
    }
  }
}

// The value outside x: below, or above, all values of the type.
template <class Planes>
void fold_all(const WindowArgs& p, int64_t begin, int64_t end, float lowest, float highest) {
  switch (p.fn) {
    case ReduceFn::kMax: fold_planes<Planes, fold_max>(p, begin, end, lowest); break;
    case ReduceFn::kMin: fold_planes<Planes, fold_min>(p, begin, end, highest); break;
    default: fold_planes<Planes, fold_sum>(p, begin, end, 0); break;
  }
}

inline void window_run(const WindowArgs& p, int64_t begin, int64_t end) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  begin *= planes_in_part(p);
  end = min(end * planes_in_part(p), p.planes);
  switch (p.type) {
    case WindowArgs::kF32: fold_all<FloatPlanes>(p, begin, end, -kInfinity, kInfinity); break;
    case WindowArgs::kU8: fold_all<BytePlanes<false>>(p, begin, end, 0, 255); break;
    case WindowArgs::kI8: fold_all<BytePlanes<true>>(p, begin, end, -128, 127); break;
  }
}

// ---- where extremes are: a part is some rows of outputs

inline constexpr int64_t kArgPart = 16384;  // elements that are compared, about

inline int64_t arg_lines_in_part(const ArgWindowArgs& p) {
  double line = static_cast<double>(p.axes[2].out) * static_cast<double>(p.axes[0].taps * p.axes[1].taps) *
                static_cast<double>(p.axes[2].taps);
  return line >= 1 && line < kArgPart ? static_cast<int64_t>(kArgPart / line) : 1;
}
inline int64_t arg_lines(const ArgWindowArgs& p) {
  return p.axes[2].out == 0 ? 0 : p.planes * p.axes[0].out * p.axes[1].out;
}
inline int64_t arg_parts(const ArgWindowArgs& p) {
  return ceil_div(arg_lines(p), arg_lines_in_part(p));
}

// Elements of a row from `at` on, `stride` apart, for n outputs; `is_there` says which of them are inside.
inline Vec strided_lanes(const float* row, int64_t size, int64_t at, int64_t stride, int64_t n, Int& is_there) {
  is_there = splat(-1);
  if (n >= kLanes && at >= 0 && stride == 1 && at + kLanes <= size) return load(row + at);
  if (n >= kLanes && at >= 0 && stride == 2 && at + 2 * kLanes <= size)
    return even_lanes(load(row + at), load(row + at + kLanes), std::make_integer_sequence<int, kLanes>());
  alignas(64) float lanes[kLanes] = {};
  alignas(64) int32_t there[kLanes] = {};
  for (int64_t i = 0; i < kLanes && i < n; ++i, at += stride) {
    if (at < 0 || at >= size) continue;
    lanes[i] = row[at];
    there[i] = -1;
  }
  __builtin_memcpy(&is_there, there, sizeof there);
  return load(lanes);
}

// The best elements so far of kLanes windows, negated for a minimum, and where they are: in which row of x that the
// windows read, at which tap. -1: nowhere.
struct BestOf {
  Vec value;
  Int row, tap;
  void take(Vec v, Int is_there, int64_t from_row, int64_t from_tap) {
    Int is_better = (v > value) | ((v != v) & (value == value)) | (row < splat(0));
    is_better &= is_there;
    value = select(is_better, v, value);
    row = is_better ? splat(static_cast<int32_t>(from_row)) : row;
    tap = is_better ? splat(static_cast<int32_t>(from_tap)) : tap;
  }
};

// Where the rows lie that a row of outputs reads, in order.
struct ReadRows {
  int64_t first_z, first_y, count_y, count;
  static ReadRows of(const ArgWindowArgs& p, int64_t out_z, int64_t out_y) {
    TapRange z = taps_inside(p.axes[0], out_z), y = taps_inside(p.axes[1], out_y);
    int64_t count_y = max(y.end - y.begin, 0), count_z = max(z.end - z.begin, 0);
    return {read_at(p.axes[0], out_z, z.begin), read_at(p.axes[1], out_y, y.begin), count_y, count_z * count_y};
  }
  int64_t at(const ArgWindowArgs& p, int64_t row) const {
    const ConvAxis &z = p.axes[0], &y = p.axes[1];
    return (first_z + row / count_y * z.dilation) * y.size + first_y + row % count_y * y.dilation;
  }
};

inline void find_extremes(const ArgWindowArgs& p, int64_t plane, int64_t out_z, int64_t out_y, int64_t* y) {
  const ConvAxis& last = p.axes[2];
  const Int flip = splat(p.is_min ? INT32_MIN : 0);
  ReadRows rows = ReadRows::of(p, out_z, out_y);
  int64_t first = plane * p.axes[0].size * p.axes[1].size;
  for (int64_t c = 0; c < last.out; c += kLanes) {
    BestOf best{Vec{}, splat(-1), splat(-1)};
    int64_t n = min(last.out - c, kLanes);
    for (int64_t row = 0; row < rows.count; ++row) {
      const float* x = p.x + (first + rows.at(p, row)) * last.size;
      for (int64_t tap = 0; tap < last.taps; ++tap) {
        Int is_there;
        Vec v = strided_lanes(x, last.size, c * last.stride + tap * last.dilation - last.lo, last.stride, n, is_there);
        best.take(from_bits(bits(v) ^ flip), is_there, row, tap);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      int64_t row = best.row[i], column = (c + i) * last.stride + best.tap[i] * last.dilation - last.lo;
      y[c + i] = row < 0 ? -1 : (first + rows.at(p, row)) * last.size + column;
    }
  }
}

inline void arg_run(const ArgWindowArgs& p, int64_t begin, int64_t end) {
  int64_t each = arg_lines_in_part(p), stop = min(end * each, arg_lines(p));
  for (int64_t line = begin * each; line < stop; ++line) {
    int64_t rest = line / p.axes[1].out;
    find_extremes(p, rest / p.axes[0].out, rest % p.axes[0].out, line % p.axes[1].out, p.y + line * p.axes[2].out);
  }
}

inline constexpr WindowFns kWindow = {{window_parts, window_run}, {arg_parts, arg_run}};
