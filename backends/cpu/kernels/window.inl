// SPDX-License-Identifier: Apache-2.0
// A part is a plane. Each row of outputs is folded tap by tap.

#include "backends/cpu/gemm/phases.inl"

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

template <Vec (*fold)(Vec, Vec)>
void fold_row(const WindowArgs& p, const float* x, int64_t out_z, int64_t out_y, int64_t first, int64_t columns,
              float neutral, float* y) {
  const ConvAxis &z = p.axes[0], &rows = p.axes[1], &last = p.axes[2];
  float folded[kDirectWidth + kLanes];
  Phases phases;
  for (int64_t c = 0; c < columns; c += kLanes) store(folded + c, splat(neutral));
  for (int64_t i = 0; i < z.taps * rows.taps; ++i) {
    int64_t at_z = read_at(z, out_z, i / rows.taps), at_y = read_at(rows, out_y, i % rows.taps);
    if (at_z < 0 || at_y < 0) continue;
    read_phases(last, x + (at_z * rows.size + at_y) * last.size, first, columns, neutral, phases);
    for (int64_t tap = 0; tap < last.taps; ++tap) {
      const float* from = phases.at[tap * last.dilation % last.stride] + tap * last.dilation / last.stride;
      for (int64_t c = 0; c < columns; c += kLanes) store(folded + c, fold(load(folded + c), load(from + c)));
    }
  }
  for (int64_t c = 0; c < columns; c += kLanes) store_some(y + c, load(folded + c), columns - c);
}

template <Vec (*fold)(Vec, Vec)>
void fold_plane(const WindowArgs& p, int64_t plane, float neutral) {
  const ConvAxis &z = p.axes[0], &rows = p.axes[1], &last = p.axes[2];
  const float* x = p.x + plane * z.size * rows.size * last.size;
  float* y = p.y + plane * z.out * rows.out * last.out;
  for (int64_t row = 0; row < z.out * rows.out; ++row, y += last.out) {
    for (int64_t first = 0; first < last.out; first += kDirectWidth) {
      int64_t columns = last.out - first < kDirectWidth ? last.out - first : kDirectWidth;
      fold_row<fold>(p, x, row / rows.out, row % rows.out, first, columns, neutral, y + first);
    }
  }
}

inline void window_run(const WindowArgs& p, int64_t begin, int64_t end) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int64_t plane = begin; plane < end; ++plane) {
    switch (p.fn) {
      case ReduceFn::kMax: fold_plane<fold_max>(p, plane, -kInfinity); break;
      case ReduceFn::kMin: fold_plane<fold_min>(p, plane, kInfinity); break;
      default: fold_plane<fold_sum>(p, plane, 0); break;
    }
  }
}

inline constexpr WindowFns kWindow = {{window_parts, window_run}};
