// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with the common windows, 3x3, 5x5 and 7x7 at stride 1 or 2, on rows that nearly fill
// vectors. They read x in place. A band of some rows of outputs is computed at once, so each vector of x is loaded once
// for all of them. A part is a plane.

inline constexpr int64_t kBandRows = 7;                              // divides 14, 28, 56 and 112
inline constexpr int64_t kLeastRow = 12, kMaxRow = 1024;             // elements of a row of x and y
alignas(64) inline constexpr float kZeroRow[kMaxRow + kLanes] = {};  // stands for rows outside of x

inline bool depthwise_fits(const ConvArgs& p) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  for (const ConvAxis* axis : {&y, &x}) {
    bool is_common =
        (axis->taps == 3 || axis->taps == 5 || axis->taps == 7) && (axis->stride == 1 || axis->stride == 2);
    bool is_dilated = axis->dilation != 1 || axis->lhs_dilation != 1;
    if (!is_common || is_dilated || axis->lo < 0 || axis->lo >= axis->taps) return false;
  }
  return p.channels == 1 && p.filters == 1 && is_flat(p.axes[0]) && y.taps == x.taps && y.stride == x.stride &&
         x.out >= kLeastRow && x.out <= kMaxRow && x.size <= kMaxRow;
}

// Rows of x under a band, and the element that the first tap reads for the first of kLanes columns.
struct BandRows {
  const float* const* rows;
  int64_t size, at;
};

// The sums of kLanes columns of a band; taps of w are `w_tap` apart. With stride 2 a tap and the next one read the even
// and the odd elements of the same two vectors.
template <int Taps, int Stride, bool inside>
inline void band_sums(const BandRows& x, const float* w, int64_t w_tap, float* sums, int64_t pitch) {
  Lanes some[Taps][Stride];
  for (int tap = 0; tap < Taps && !inside; ++tap)
    for (int i = 0; i < Stride; ++i) some[tap][i] = lanes_inside(x.size, x.at + tap + i * kLanes);
  auto vector = [&](int row, int tap, int i) __attribute__((always_inline)) {
    const float* from = x.rows[row] + x.at + tap + i * kLanes;
    return inside ? load(from) : load(from, some[tap][i]);
  };
  Vec acc[kBandRows] = {}, next{};
  auto read_tap = [&](int row, int tap) __attribute__((always_inline)) {
    if constexpr (Stride == 1) return vector(row, tap, 0);
    if (tap % 2 == 1) return next;
    Vec low = vector(row, tap, 0), high = vector(row, tap, Stride - 1);
    next = odd_lanes(low, high, std::make_integer_sequence<int, kLanes>());
    return even_lanes(low, high, std::make_integer_sequence<int, kLanes>());
  };
  RLX_UNROLL for (int i = 0; i < (kBandRows - 1) * Stride + Taps; ++i) {
    RLX_UNROLL for (int tap = 0; tap < Taps; ++tap) {
      Vec read = read_tap(i, tap);
      RLX_UNROLL for (int r = 0; r < kBandRows; ++r) {
        int line = i - r * Stride;
        if (line >= 0 && line < Taps) acc[r] = fma(read, splat(w[(line * Taps + tap) * w_tap]), acc[r]);
      }
    }
  }
  RLX_UNROLL for (int r = 0; r < kBandRows; ++r) store(sums + r * pitch, acc[r]);
}

template <int Taps, int Stride>
void depthwise_plane(const ConvArgs& p, int64_t plane) {
  constexpr int kRead = (kBandRows - 1) * Stride + Taps, kSpan = Stride * kLanes + Taps - 1;
  alignas(64) float sums[kBandRows * kMaxRow];
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  int64_t group = plane % p.groups, w_tap = p.is_packed ? kFilterPanel : 1, pitch = ceil_div(x.out, kLanes) * kLanes;
  const float *w = p.w + group * p.taps() * w_tap, *from = p.x + plane * p.plane();
  const Epilogue& e = p.epilogue;
  for (int64_t first = 0; first < y.out; first += kBandRows) {
    const float* rows[kRead];
    for (int64_t i = 0; i < kRead; ++i) {
      int64_t at = first * Stride + i - y.lo;
      rows[i] = at >= 0 && at < y.size ? from + at * x.size : kZeroRow;
    }
    for (int64_t c = 0; c < x.out; c += kLanes) {
      BandRows read{rows, x.size, c * Stride - x.lo};
      bool is_inside = read.at >= 0 && read.at + kSpan <= x.size;
      is_inside ? band_sums<Taps, Stride, true>(read, w, w_tap, sums + c, pitch)
                : band_sums<Taps, Stride, false>(read, w, w_tap, sums + c, pitch);
    }
    int64_t to = plane * p.places() + first * x.out, left = y.out - first;
    finish_plane({sums, e.residual ? e.residual + to : nullptr, e.row_bias ? e.row_bias[group] : 0, p.y + to,
                  left < kBandRows ? left : kBandRows, x.out, pitch, x.out, 1},
                 e);
  }
}

inline int64_t depthwise_parts(const ConvArgs& p) {
  return p.places() > 0 ? p.items * p.groups : 0;
}
inline void depthwise_run(const ConvArgs& p, int64_t begin, int64_t end) {
  using Plane = void (*)(const ConvArgs&, int64_t);
  constexpr Plane kPlanes[3][2] = {{depthwise_plane<3, 1>, depthwise_plane<3, 2>},
                                   {depthwise_plane<5, 1>, depthwise_plane<5, 2>},
                                   {depthwise_plane<7, 1>, depthwise_plane<7, 2>}};
  Plane run = kPlanes[p.axes[2].taps / 2 - 1][p.axes[2].stride == 2];
  for (int64_t plane = begin; plane < end; ++plane) run(p, plane);
}
