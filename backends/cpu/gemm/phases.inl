// SPDX-License-Identifier: Apache-2.0
// Rows of x as windows read them, for loops that go over outputs vector by vector.

// Along one axis: the position in x, or -1.
inline int64_t read_at(const ConvAxis& axis, int64_t out, int64_t tap) {
  int64_t at = out * axis.stride + tap * axis.dilation - axis.lo;
  if (axis.spread > 1) {
    if (at < 0 || at % axis.spread) return -1;
    at /= axis.spread;
  }
  return at < 0 || at >= axis.size ? -1 : at;
}

inline constexpr int64_t kDirectWidth = 192;  // outputs of a row at a time

// A row of x as the taps read it: phase r holds every stride-th element from r on, `outside` beyond the row.
struct Phases {
  float at[kMostPhases][kDirectWidth + kMostReach];
};

template <int... I>
inline Vec even_lanes(Vec a, Vec b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...);
}

// Every stride-th of the elements from `from` on.
inline void copy_stepped(const float* from, int64_t stride, int64_t count, float* to) {
  int64_t i = 0;
  if (stride == 1) {
    for (; i < count; i += kLanes) store_some(to + i, load_some(from + i, count - i), count - i);
  } else if (stride == 2) {  // the last element of the second vector is not needed, so it may not be there
    for (; i + kLanes < count; i += kLanes) {
      const float* pair = from + 2 * i;
      store(to + i, even_lanes(load(pair), load(pair + kLanes), std::make_integer_sequence<int, kLanes>()));
    }
  }
  for (; i < count; ++i) to[i] = from[i * stride];
}

// The elements from + i * stride of a row for i in [0, length), `outside` where there are none and up to `end`.
inline void read_phase(const ConvAxis& axis, const float* row, int64_t from, int64_t length, int64_t end, float outside,
                       float* to) {
  int64_t begin = from >= 0 ? 0 : (axis.stride - 1 - from) / axis.stride;
  int64_t inside = from < axis.size ? (axis.size - from + axis.stride - 1) / axis.stride : 0;
  if (inside > length) inside = length;
  if (begin > inside) begin = inside;
  for (int64_t i = 0; i < begin; ++i) to[i] = outside;
  copy_stepped(row + from + begin * axis.stride, axis.stride, inside - begin, to + begin);
  for (int64_t i = inside; i < end; ++i) to[i] = outside;
}

// For outputs from `first` on.
inline void read_phases(const ConvAxis& axis, const float* row, int64_t first, int64_t columns, float outside,
                        Phases& phases) {
  int64_t reach = (axis.taps - 1) * axis.dilation / axis.stride, length = columns + reach;
  int64_t end = length + kLanes < kDirectWidth + kMostReach ? length + kLanes : kDirectWidth + kMostReach;
  for (int64_t r = 0; r < axis.stride; ++r)
    read_phase(axis, row, first * axis.stride - axis.lo + r, length, end, outside, phases.at[r]);
}
