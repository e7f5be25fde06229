// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with windows of 3, 5, 7 or 9 lines at stride 1 or 2, on rows that nearly fill vectors. They
// read x in place. A band of some rows of outputs is computed at once. The weights of one column of the window stay in
// registers while all rows of x under the band pass by, so each vector is loaded once for all lines that multiply it.
// A part is a plane.

inline constexpr int64_t kLeastRow = 12, kMaxRow = 1024;             // elements of a row of x and y
inline constexpr int kMostBand = 14, kMostLines = 9;                 // rows of a band, and of a window
alignas(64) inline constexpr float kZeroRow[kMaxRow + kLanes] = {};  // stands for rows outside of x

inline bool depthwise_fits(const ConvArgs& p) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  for (const ConvAxis* axis : {&y, &x}) {
    bool is_dilated = axis->dilation != 1 || axis->lhs_dilation != 1;
    if (is_dilated || axis->taps > kMostLines || axis->lo < 0 || axis->lo >= axis->taps) return false;
  }
  bool is_common = y.taps >= 3 && y.taps % 2 == 1 && y.stride == x.stride && x.stride <= 2;
  return is_common && p.channels == 1 && p.filters == 1 && is_flat(p.axes[0]) && x.out >= kLeastRow &&
         x.out <= kMaxRow && x.size <= kMaxRow;
}

// What a band reads: rows of x, the element that the first tap reads for the first column, and the weights of a plane,
// `w_tap` apart.
struct BandReads {
  const float* const* rows;
  int64_t size, at;
  const float* w;
  int64_t w_tap, taps;  // taps: of a line of the window
};

// Adds what Taps adjacent taps of each line give for Vecs vectors of columns of a band. With stride 2 a tap and the
// next one read the even and the odd elements of the same two vectors.
template <int Lines, int Stride, int Rows, int Vecs, bool inside, int Taps>
[[gnu::always_inline]] inline void add_taps(const BandReads& b, int64_t tap, Vec (&acc)[Rows][Vecs]) {
  constexpr auto kAll = std::make_integer_sequence<int, kLanes>();
  Vec weights[Lines][Taps];
  Lanes some[Vecs][Stride];
  RLX_UNROLL for (int i = 0; i < Lines * Taps; ++i) weights[i / Taps][i % Taps] =
      splat(b.w[(i / Taps * b.taps + tap + i % Taps) * b.w_tap]);
  RLX_UNROLL for (int v = 0; v < Vecs * Stride && !inside; ++v) some[v / Stride][v % Stride] =
      lanes_inside(b.size, b.at + tap + v * kLanes);
  auto vector = [&](int row, int v, int i) __attribute__((always_inline)) {
    const float* from = b.rows[row] + b.at + tap + (v * Stride + i) * kLanes;
    return inside ? load(from) : load(from, some[v][i]);
  };
  RLX_UNROLL for (int i = 0; i < (Rows - 1) * Stride + Lines; ++i) {
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
      Vec read[2] = {vector(i, v, 0)};
      if constexpr (Stride == 2) {
        Vec low = read[0], high = vector(i, v, 1);
        read[0] = even_lanes(low, high, kAll), read[1] = odd_lanes(low, high, kAll);
      }
      RLX_UNROLL for (int r = 0; r < Rows; ++r) {
        int line = i - r * Stride;
        if (line < 0 || line >= Lines) continue;
        RLX_UNROLL for (int t = 0; t < Taps; ++t) acc[r][v] = fma(read[t], weights[line][t], acc[r][v]);
      }
    }
  }
}
template <int Lines, int Stride, int Rows, int Vecs, bool inside>
[[gnu::always_inline]] inline void band_sums(const BandReads& b, Vec (&acc)[Rows][Vecs]) {
  int64_t tap = 0;
  for (; tap + Stride <= b.taps; tap += Stride) add_taps<Lines, Stride, Rows, Vecs, inside, Stride>(b, tap, acc);
  if constexpr (Stride > 1) {
    if (tap < b.taps) add_taps<Lines, Stride, Rows, Vecs, inside, 1>(b, tap, acc);
  }
}

// Where a band goes: to y if all that follows is a sum and two bounds, else to `sums`, as rows of whole vectors.
struct BandWrites {
  float *y, *sums;
  int64_t row, pitch, rows, columns;
  float bias, lo, hi;
};
template <int Lines, int Stride, int Rows, int Vecs>
inline void band_columns(BandReads b, const BandWrites& to, int64_t column, int64_t lo) {
  constexpr int64_t kSpan = Stride * Vecs * kLanes;
  b.at = column * Stride - lo;
  Vec acc[Rows][Vecs] = {};
  if (b.at >= 0 && b.at + kSpan + b.taps - 1 <= b.size)
    band_sums<Lines, Stride, Rows, Vecs, true>(b, acc);
  else
    band_sums<Lines, Stride, Rows, Vecs, false>(b, acc);
  RLX_UNROLL for (int r = 0; r < Rows; ++r) {
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
      int64_t at = column + v * kLanes;
      if (to.sums)
        store(to.sums + r * to.pitch + at, acc[r][v]);
      else if (r < to.rows)
        store_some(to.y + r * to.row + at, clamp(acc[r][v] + splat(to.bias), to.lo, to.hi), to.columns - at);
    }
  }
}

template <int Lines, int Stride, int Rows, int Vecs>
void depthwise_plane(const ConvArgs& p, int64_t plane) {
  constexpr int kRead = (Rows - 1) * Stride + Lines;
  static_assert(Rows <= kMostBand);
  alignas(64) float sums[kMostBand * kMaxRow];
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  const Epilogue& e = p.epilogue;
  int64_t group = plane % p.groups, pitch = ceil_div(x.out, kLanes) * kLanes, w_tap = p.is_packed ? kFilterPanel : 1;
  const float* from = p.x + plane * p.plane();
  bool is_bounded = ends_in_tile(e);
  TileEnd end = tile_end(e, nullptr);
  float bias = e.row_bias ? e.row_bias[group] : 0;
  for (int64_t first = 0; first < y.out; first += Rows) {
    const float* rows[kRead];
    for (int64_t i = 0; i < kRead; ++i) {
      int64_t at = first * Stride + i - y.lo;
      rows[i] = at >= 0 && at < y.size ? from + at * x.size : kZeroRow;
    }
    int64_t to = plane * p.places() + first * x.out, left = min(y.out - first, Rows), c = 0;
    BandReads reads{rows, x.size, 0, p.w + group * p.taps() * w_tap, w_tap, x.taps};
    BandWrites writes{p.y + to, is_bounded ? nullptr : sums, x.out, pitch, left, x.out, bias, end.lo, end.hi};
    for (; c + (Vecs - 1) * kLanes < x.out; c += Vecs * kLanes)
      band_columns<Lines, Stride, Rows, Vecs>(reads, writes, c, x.lo);
    if (c < x.out) band_columns<Lines, Stride, Rows, 1>(reads, writes, c, x.lo);
    if (!is_bounded)
      finish_plane({sums, e.residual ? e.residual + to : nullptr, bias, p.y + to, left, x.out, pitch, x.out, 1}, e);
  }
}

inline int64_t depthwise_parts(const ConvArgs& p) {
  return p.places() > 0 ? p.items * p.groups : 0;
}

using DepthwisePlane = void (*)(const ConvArgs&, int64_t);
// Bands of rows that leave few unused: common planes have a multiple of 7 or of 8 rows, or very few. As many sums at
// once as registers hold.
template <int Lines, int Stride>
DepthwisePlane choose_bands(const ConvArgs& p) {
  constexpr int kVecs = RLX_ISA == 2 && Stride == 1 ? 2 : 1;
  int64_t rows = p.axes[1].out;
  if constexpr (RLX_ISA == 2 && Stride == 1) {
    if (p.axes[2].out <= kLanes && rows > 8 && rows <= kMostBand) return depthwise_plane<Lines, Stride, kMostBand, 1>;
  }
  if (rows <= 4) return depthwise_plane<Lines, Stride, 4, kVecs>;
  bool is_by_8 = ceil_div(rows, 8) * 8 <= ceil_div(rows, 7) * 7;
  return is_by_8 ? depthwise_plane<Lines, Stride, 8, kVecs> : depthwise_plane<Lines, Stride, 7, kVecs>;
}
inline void depthwise_run(const ConvArgs& p, int64_t begin, int64_t end) {
  using Choose = DepthwisePlane (*)(const ConvArgs&);
  constexpr Choose kChoices[4][2] = {{choose_bands<3, 1>, choose_bands<3, 2>},
                                     {choose_bands<5, 1>, choose_bands<5, 2>},
                                     {choose_bands<7, 1>, choose_bands<7, 2>},
                                     {choose_bands<9, 1>, choose_bands<9, 2>}};
  DepthwisePlane run = kChoices[p.axes[1].taps / 2 - 1][p.axes[2].stride == 2](p);
  for (int64_t plane = begin; plane < end; ++plane) run(p, plane);
}
