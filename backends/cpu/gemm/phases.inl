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

// For outputs from `first` on.
inline void read_phases(const ConvAxis& axis, const float* row, int64_t first, int64_t columns, float outside,
                        Phases& phases) {
  int64_t reach = (axis.taps - 1) * axis.dilation / axis.stride, length = columns + reach;
  for (int64_t r = 0; r < axis.stride; ++r) {
    float* to = phases.at[r];
    int64_t from = first * axis.stride - axis.lo + r;
    for (int64_t i = 0; i < length; ++i, from += axis.stride)
      to[i] = from >= 0 && from < axis.size ? row[from] : outside;
    for (int64_t i = length; i < columns + reach + kLanes && i < kDirectWidth + kMostReach; ++i) to[i] = outside;
  }
}
