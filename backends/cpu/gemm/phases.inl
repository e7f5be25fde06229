// SPDX-License-Identifier: Apache-2.0
// Rows of x in the order in which windows read them, for loops that go over outputs vector by vector.

// The position in x that a tap reads along one axis, or -1.
inline int64_t read_at(const ConvAxis& axis, int64_t out, int64_t tap) {
  int64_t at = out * axis.stride + tap * axis.dilation - axis.lo;
  if (axis.lhs_dilation > 1) {
    if (at < 0 || at % axis.lhs_dilation) return -1;
    at /= axis.lhs_dilation;
  }
  return at < 0 || at >= axis.size ? -1 : at;
}

inline bool is_flat(const ConvAxis& z) {
  return z.size == 1 && z.out == 1 && z.taps == 1 && z.lo == 0;
}

#include "backends/cpu/kernels/bytes.inl"

inline constexpr int64_t kDirectWidth = 192;  // outputs of a row at a time

// A row of x divided into phases: phase r holds every stride-th element from r on, and `outside` beyond the row.
struct Phases {
  float at[kMaxDirectStride][kDirectWidth + kMaxReach];
};

template <int... I>
inline Vec even_lanes(Vec a, Vec b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...);
}
template <int... I>
inline Vec odd_lanes(Vec a, Vec b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I + 1)...);
}

// A row of x: `load` reads up to n elements from an index on as f32 lanes, `one` reads a single one.
struct FloatRow {
  const float* x;
  Vec load(int64_t at, int64_t n) const { return load_some(x + at, n); }
  float one(int64_t at) const { return x[at]; }
};
template <bool kSigned>
struct ByteRow {
  const uint8_t* x;
  Vec load(int64_t at, int64_t n) const { return to_float(widened_bytes(load_bytes(x + at, n), kSigned)); }
  float one(int64_t at) const { return kSigned ? static_cast<int8_t>(x[at]) : x[at]; }
};

// Every stride-th of the elements from `from` on.
template <class Row>
inline void copy_stepped(const Row& row, int64_t from, int64_t stride, int64_t count, float* to) {
  int64_t i = 0;
  if (stride == 1) {
    for (; i < count; i += kLanes) store_some(to + i, row.load(from + i, count - i), count - i);
  } else if (stride == 2) {  // the last element of the second vector is not needed, and may lie outside
    for (; i < count; i += kLanes) {
      int64_t at = from + 2 * i, there = 2 * (count - i) - 1;
      Vec low = row.load(at, there), high = there > kLanes ? row.load(at + kLanes, there - kLanes) : low;
      store_some(to + i, even_lanes(low, high, std::make_integer_sequence<int, kLanes>()), count - i);
    }
  }
  for (; i < count; ++i) to[i] = row.one(from + i * stride);
}

// n / stride for n >= 0, without a division for small strides, because divisions are slow.
inline int64_t steps_in(int64_t n, int64_t stride) {
  return stride == 1 ? n : stride == 2 ? n >> 1 : n / stride;
}

// Writes the elements at from + i * stride of a row, for i in [0, length). Writes `outside` for missing ones, and from
// `length` to `end`.
template <class Row>
inline void read_phase(const ConvAxis& axis, const Row& row, int64_t from, int64_t length, int64_t end, float outside,
                       float* to) {
  int64_t begin = from >= 0 ? 0 : steps_in(axis.stride - 1 - from, axis.stride);
  int64_t inside = from < axis.size ? steps_in(axis.size - from + axis.stride - 1, axis.stride) : 0;
  if (inside > length) inside = length;
  if (begin > inside) begin = inside;
  for (int64_t i = 0; i < begin; ++i) to[i] = outside;
  copy_stepped(row, from + begin * axis.stride, axis.stride, inside - begin, to + begin);
  for (int64_t i = inside; i < end; ++i) to[i] = outside;
}

// Fills the phases for outputs from `first` on.
template <class Row>
inline void read_phases(const ConvAxis& axis, const Row& row, int64_t first, int64_t columns, float outside,
                        Phases& phases) {
  int64_t length = columns + axis.reach() / axis.stride;
  int64_t end = min(length + kLanes, kDirectWidth + kMaxReach);
  for (int64_t r = 0; r < axis.stride; ++r)
    read_phase(axis, row, first * axis.stride - axis.lo + r, length, end, outside, phases.at[r]);
}
