// SPDX-License-Identifier: Apache-2.0
// A part is a plane. A row of outputs is folded in two steps: the rows of x that it reads to one line, then the taps of
// that line.

#include "backends/cpu/gemm/phases.inl"

inline constexpr int64_t kLinesAtOnce = 16;
inline constexpr int64_t kLine = (kDirectWidth + kMostReach) * kMostPhases;  // what fits_direct lets a row read

inline Vec fold_sum(Vec a, Vec b) {
  return a + b;
}
inline Vec fold_max(Vec a, Vec b) {
  return max(a, b);
}
inline Vec fold_min(Vec a, Vec b) {
  return min(a, b);
}

inline int64_t window_parts(const WindowArgs& p) {
  return p.planes;
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
  int64_t count() const { return end > begin ? end - begin : 0; }
};
inline TapRange taps_inside(const ConvAxis& axis, int64_t out) {
  int64_t at = out * axis.stride - axis.lo;  // what the first tap reads
  int64_t begin = at < 0 ? (-at - 1) / axis.dilation + 1 : 0;
  int64_t end = at < axis.size ? (axis.size - 1 - at) / axis.dilation + 1 : 0;
  return {begin, end < axis.taps ? end : axis.taps};
}

// Folds a window row by row: positions [from, from + n) of all rows of x that a row of outputs reads become one line.
template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_lines(const WindowArgs& p, int64_t x, int64_t out_z, int64_t out_y, int64_t from, int64_t n, float neutral,
                float* line) {
  const ConvAxis &z = p.axes[0], &rows = p.axes[1];
  for (int64_t c = 0; c < n; c += kLanes) store_some(line + c, splat(neutral), n - c);
  TapRange in_z = taps_inside(z, out_z), in_y = taps_inside(rows, out_y);
  int64_t at[kLinesAtOnce], count = 0;
  for (int64_t i = 0, taps = in_z.count() * in_y.count(); i < taps; ++i) {
    int64_t at_z = read_at(z, out_z, in_z.begin + i / in_y.count());
    int64_t at_y = read_at(rows, out_y, in_y.begin + i % in_y.count());
    at[count++] = x + (at_z * rows.size + at_y) * p.axes[2].size + from;
    if (count < kLinesAtOnce && i + 1 < taps) continue;
    for (int64_t c = 0; c < n; c += kLanes) {
      Vec folded = load_some(line + c, n - c);
      for (int64_t k = 0; k < count; ++k) folded = fold(folded, Planes::row(p, at[k]).load(c, n - c));
      store_some(line + c, folded, n - c);
    }
    count = 0;
  }
}

// x and y: where the plane and the row begin.
template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_row(const WindowArgs& p, int64_t x, int64_t out_z, int64_t out_y, int64_t first, int64_t columns,
              float neutral, int64_t y) {
  alignas(64) float line[kLine + kLanes];
  Phases phases;
  const ConvAxis& last = p.axes[2];
  // The line begins where the first tap reads; what of it lies outside of x is neutral.
  int64_t reach = (last.taps - 1) * last.dilation, length = (columns - 1) * last.stride + reach + 1;
  int64_t from = first * last.stride - last.lo, before = from < 0 ? (-from < length ? -from : length) : 0;
  int64_t inside = last.size - from < length ? last.size - from : length;
  if (inside < before) inside = before;
  for (int64_t i = 0; i < before; ++i) line[i] = neutral;
  fold_lines<Planes, fold>(p, x, out_z, out_y, from + before, inside - before, neutral, line + before);
  for (int64_t i = inside; i < length; ++i) line[i] = neutral;
  for (int64_t r = 0; last.stride > 1 && r < last.stride && r <= reach; ++r)
    copy_stepped(FloatRow{line}, r, last.stride, (length - r + last.stride - 1) / last.stride, phases.at[r]);
  const float* taps[kMostReach * kMostPhases];
  for (int64_t tap = 0; tap < last.taps; ++tap) {
    int64_t at = tap * last.dilation;
    taps[tap] = last.stride == 1 ? line + at : phases.at[at % last.stride] + at / last.stride;
  }
  for (int64_t c = 0; c < columns; c += kLanes) {
    Vec folded = splat(neutral);
    for (int64_t tap = 0; tap < last.taps; ++tap) folded = fold(folded, load(taps[tap] + c));
    Planes::store(p, y + c, folded, columns - c);
  }
}

template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_planes(const WindowArgs& p, int64_t begin, int64_t end, float neutral) {
  const ConvAxis &z = p.axes[0], &rows = p.axes[1], &last = p.axes[2];
  for (int64_t plane = begin; plane < end; ++plane) {
    int64_t x = plane * z.size * rows.size * last.size, y = plane * z.out * rows.out * last.out;
    for (int64_t row = 0; row < z.out * rows.out; ++row, y += last.out) {
      for (int64_t first = 0; first < last.out; first += kDirectWidth) {
        int64_t columns = last.out - first < kDirectWidth ? last.out - first : kDirectWidth;
        fold_row<Planes, fold>(p, x, row / rows.out, row % rows.out, first, columns, neutral, y + first);
      }
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
  switch (p.type) {
    case WindowArgs::kF32: fold_all<FloatPlanes>(p, begin, end, -kInfinity, kInfinity); break;
    case WindowArgs::kU8: fold_all<BytePlanes<false>>(p, begin, end, 0, 255); break;
    case WindowArgs::kI8: fold_all<BytePlanes<true>>(p, begin, end, -128, 127); break;
  }
}

inline constexpr WindowFns kWindow = {{window_parts, window_run}};
