// SPDX-License-Identifier: Apache-2.0
// Windows over small planes, with planes along the lanes: rows shorter than a vector would leave most lanes unused. The
// planes of a vector are transposed to places, and what is computed of them back to planes.

inline constexpr int64_t kSmallPlaces = 1024;  // of a plane and what lies around it
inline constexpr int64_t kSmallOuts = 448;
inline constexpr int64_t kSmallTaps = 49;

inline int64_t width_read(const ConvAxis& axis) {
  int64_t read = (axis.out - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
  return max(axis.lo + axis.size, read);
}
// Rows of outputs that fill vectors well, or long strides between places, are better left to other loops.
inline bool is_small_plane(const ConvAxis (&axes)[kConvAxes], int64_t planes) {
  const ConvAxis &y = axes[1], &x = axes[2];
  if (!is_flat(axes[0]) || planes < kLanes) return false;
  if (y.lhs_dilation != 1 || x.lhs_dilation != 1 || y.lo < 0 || x.lo < 0) return false;
  if (y.taps > kSmallTaps || x.taps > kSmallTaps || y.taps * x.taps > kSmallTaps || y.taps * x.taps == 0) return false;
  if (width_read(y) > kSmallPlaces || width_read(x) > kSmallPlaces) return false;
  if (x.size == 0 || y.size == 0 || y.out == 0 || x.out == 0) return false;
  return y.out * x.out <= kSmallOuts && width_read(y) * width_read(x) <= kSmallPlaces;
}

// Planes with one position of all planes in each vector: plane i is lane i.
struct SmallPlanes {
  alignas(64) float places[kSmallPlaces * kLanes];
  int32_t to[kSmallPlaces], from[kSmallOuts],
      taps[kSmallTaps];  // offsets: of elements of x; of the first tap of each output; from there
  int64_t elements, outs, tap_count;

  SmallPlanes(const ConvAxis& y, const ConvAxis& x, float outside)
      : elements(y.size * x.size), outs(y.out * x.out), tap_count(y.taps * x.taps) {
    int64_t width = width_read(x);
    fill(y.size, x.size, (y.lo * width + x.lo) * kLanes, width * kLanes, kLanes, to);
    fill(y.out, x.out, 0, y.stride * width * kLanes, x.stride * kLanes, from);
    fill(y.taps, x.taps, 0, y.dilation * width * kLanes, x.dilation * kLanes, taps);
    clear(y, x, outside);
  }
  void clear(const ConvAxis& y, const ConvAxis& x, float outside) {
    for (int64_t i = 0; i < width_read(y) * width_read(x); ++i) store(places + i * kLanes, splat(outside));
  }
  // row_at(i) reads plane i of `count`; further lanes repeat the last one.
  template <class RowAt>
  void read(int64_t count, RowAt&& row_at) {
    for (int64_t at = 0; at < elements; at += kLanes) {
      int64_t n = min(elements - at, kLanes);
      Vec rows[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) rows[i] = row_at(min(i, count - 1)).load(at, n);
      transpose(rows);
      for (int64_t i = 0; i < n; ++i) store(places + to[at + i], rows[i]);
    }
  }
  // Folds the taps along y, so that those along x remain. A row of results takes the place of the first row that it
  // reads, or of one before, which later rows do not read.
  template <class Fold>
  void fold_rows(const ConvAxis& y, const ConvAxis& x, Fold&& fold) {
    int64_t row = width_read(x) * kLanes;
    for (int64_t r = 0; r < y.out; ++r) {
      const float* first = places + r * y.stride * row;
      for (int64_t c = 0; c < row; c += kLanes) {
        Vec folded = load(first + c);
        for (int64_t tap = 1; tap < y.taps; ++tap) folded = fold(folded, load(first + tap * y.dilation * row + c));
        store(places + r * row + c, folded);
      }
    }
  }
  void list_columns(const ConvAxis& y, const ConvAxis& x) {
    fill(y.out, x.out, 0, width_read(x) * kLanes, x.stride * kLanes, from);
    fill(1, x.taps, 0, 0, x.dilation * kLanes, taps);
    tap_count = x.taps;
  }
  // Folds the taps of each output by `step(acc, x, tap)`, and gives the results to `write(plane, at, v, n)`.
  template <class Step, class Write>
  void fold(int64_t count, Vec start, Step&& step, Write&& write) const {
    constexpr int kAtOnce = min(kLanes, 8);  // hides the latency of a step
    for (int64_t at = 0; at < outs; at += kLanes) {
      int64_t n = min(outs - at, kLanes);
      Vec rows[kLanes] = {};
      for (int64_t i = 0; i < n; i += kAtOnce) {
        const float* first[kAtOnce];
        Vec acc[kAtOnce];
        RLX_UNROLL for (int k = 0; k < kAtOnce; ++k) {
          first[k] = places + from[at + (i + k < n ? i + k : i)];
          acc[k] = start;
        }
        for (int64_t tap = 0; tap < tap_count; ++tap) {
          RLX_UNROLL for (int k = 0; k < kAtOnce; ++k) acc[k] = step(acc[k], load(first[k] + taps[tap]), tap);
        }
        RLX_UNROLL for (int k = 0; k < kAtOnce; ++k) rows[i + k] = acc[k];
      }
      transpose(rows);
      for (int64_t i = 0; i < count; ++i) write(i, at, rows[i], n);
    }
  }

 private:
  static void fill(int64_t rows, int64_t columns, int64_t first, int64_t row, int64_t column, int32_t* list) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) *list++ = static_cast<int32_t>(first + r * row + c * column);
  }
};

// Sums of products for convolutions with one filter for each plane, as rows of kSmallOuts.
struct SmallSums {
  alignas(64) float w[(kSmallTaps + kLanes) * kLanes];  // [tap][plane], in whole blocks of kLanes taps
  alignas(64) float sums[kLanes * kSmallOuts];
  void compute(const SmallPlanes& planes, int64_t count) {
    static_assert(kSmallOuts % kLanes == 0);  // whole vectors are written
    planes.fold(
        count, Vec{}, [&](Vec acc, Vec x, int64_t tap) { return fma(x, load(w + tap * kLanes), acc); },
        [&](int64_t plane, int64_t at, Vec v, int64_t) { store(sums + plane * kSmallOuts + at, v); });
  }
};
