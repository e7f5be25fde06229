// SPDX-License-Identifier: Apache-2.0
// A part is a plane. If it has two axes and is not too wide, whole blocks of it are folded in registers; otherwise each
// row of outputs is folded tap by tap.

#include "backends/cpu/gemm/phases.inl"

#include "backends/cpu/gemm/planes.inl"

inline constexpr int64_t kFolded = 8192;  // outputs of a block, on the stack

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

// x and y point to the beginning of the plane and of the row.
template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_row(const WindowArgs& p, int64_t x, int64_t out_z, int64_t out_y, int64_t first, int64_t columns,
              float neutral, int64_t y) {
  const ConvAxis &z = p.axes[0], &rows = p.axes[1], &last = p.axes[2];
  float folded[kDirectWidth + kLanes];
  Phases phases;
  for (int64_t c = 0; c < columns; c += kLanes) store(folded + c, splat(neutral));
  for (int64_t i = 0; i < z.taps * rows.taps; ++i) {
    int64_t at_z = read_at(z, out_z, i / rows.taps), at_y = read_at(rows, out_y, i % rows.taps);
    if (at_z < 0 || at_y < 0) continue;
    read_phases(last, Planes::row(p, x + (at_z * rows.size + at_y) * last.size), first, columns, neutral, phases);
    for (int64_t tap = 0; tap < last.taps; ++tap) {
      const float* from = phases.at[tap * last.dilation % last.stride] + tap * last.dilation / last.stride;
      for (int64_t c = 0; c < columns; c += kLanes) store(folded + c, fold(load(folded + c), load(from + c)));
    }
  }
  for (int64_t c = 0; c < columns; c += kLanes) Planes::store(p, y + c, load(folded + c), columns - c);
}

template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_plane(const WindowArgs& p, int64_t plane, float neutral) {
  const ConvAxis &z = p.axes[0], &rows = p.axes[1], &last = p.axes[2];
  int64_t x = plane * z.size * rows.size * last.size, y = plane * z.out * rows.out * last.out;
  for (int64_t row = 0; row < z.out * rows.out; ++row, y += last.out) {
    for (int64_t first = 0; first < last.out; first += kDirectWidth) {
      int64_t columns = last.out - first < kDirectWidth ? last.out - first : kDirectWidth;
      fold_row<Planes, fold>(p, x, row / rows.out, row % rows.out, first, columns, neutral, y + first);
    }
  }
}

template <Vec (*fold)(Vec, Vec), int Vecs>
inline void fold_span(const float* x, const int32_t* taps, int64_t count, float neutral, float* folded) {
  Vec acc[Vecs];
  RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[v] = splat(neutral);
  for (int64_t tap = 0; tap < count; ++tap) {
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[v] = fold(acc[v], load(x + taps[tap] + v * kLanes));
  }
  RLX_UNROLL for (int v = 0; v < Vecs; ++v) store(folded + v * kLanes, acc[v]);
}

template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_blocks(const WindowArgs& p, const PlaneShape& shape, int64_t plane, float neutral, TapList& taps) {
  alignas(64) float copy[kPlaneCopy + kPlaneSlack * kLanes];
  alignas(64) float folded[kFolded];
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  for (int64_t i = 0; i < shape.blocks(); ++i) {
    PlaneBlock block = plane_block(y, x, shape, i);
    int64_t length = block_length(shape, block), count = y.taps * x.taps, at = 0;
    auto row_at = [&](int64_t row) { return Planes::row(p, (plane * y.size + row) * x.size); };
    copy_plane(y, x, shape, block, row_at, neutral, copy);
    list_taps(y, x, shape, block, taps);
    for (; at + 3 * kLanes < length; at += 4 * kLanes)
      fold_span<fold, 4>(copy + at, taps.at, count, neutral, folded + at);
    for (; at < length; at += kLanes) fold_span<fold, 1>(copy + at, taps.at, count, neutral, folded + at);
    int64_t to = (plane * y.out + block.row) * x.out + block.column;
    for (int64_t r = 0; r < block.rows; ++r, to += x.out) {
      const float* row = folded + r * shape.width;
      for (int64_t c = 0; c < block.columns; c += kLanes) Planes::store(p, to + c, load(row + c), block.columns - c);
    }
  }
}

template <class Planes, Vec (*fold)(Vec, Vec)>
void fold_planes(const WindowArgs& p, int64_t begin, int64_t end, float neutral) {
  PlaneShape shape{};
  TapList taps;
  if (is_flat(p.axes[0]) && p.axes[1].taps * p.axes[2].taps <= kPlaneTaps && p.axes[1].out && p.axes[2].out)
    shape = plane_shape(p.axes[1], p.axes[2], kFolded - kPlaneSlack * kLanes);
  for (int64_t plane = begin; plane < end; ++plane)
    shape.rows ? fold_blocks<Planes, fold>(p, shape, plane, neutral, taps)
               : fold_plane<Planes, fold>(p, plane, neutral);
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
