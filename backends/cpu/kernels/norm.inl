// SPDX-License-Identifier: Apache-2.0
// Softmax and norms: a part is a few rows, and a row is read two or three times while it is in the first-level cache.
// Sums run in kSums vectors over at most kSumBlock elements, then in f64.

inline constexpr int kSums = 4;
inline constexpr int64_t kSumBlock = 8192;
inline constexpr int64_t kPartElements = 16384;

inline int64_t rows_per_part(int64_t n) {
  return n >= kPartElements || n == 0 ? 1 : kPartElements / n;
}
inline int64_t row_parts(int64_t rows, int64_t n) {
  int64_t each = rows_per_part(n);
  return (rows + each - 1) / each;
}

// Sums value(i, lanes) over [0, n); value gives `lanes` elements from i on, and zero in the other lanes.
template <class Value>
inline double sum_over(int64_t n, Value&& value) {
  double total = 0;
  for (int64_t block = 0; block < n; block += kSumBlock) {
    int64_t end = n - block < kSumBlock ? n : block + kSumBlock, i = block;
    Vec sums[kSums] = {};
    for (; i + kSums * kLanes <= end; i += kSums * kLanes) {
      RLX_UNROLL for (int s = 0; s < kSums; ++s) sums[s] += value(i + s * kLanes, kLanes);
    }
    for (; i < end; i += kLanes) sums[0] += value(i, end - i < kLanes ? end - i : kLanes);
    total += reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  return total;
}

// Sets the lanes from n on to zero.
inline Vec keep_lanes(Vec v, int64_t n) {
  if (n >= kLanes) return v;
  float ones[2 * kLanes] = {};
  for (int i = 0; i < kLanes; ++i) ones[i] = 1;
  return select(load(ones + kLanes - n) != splat(0.0f), v, Vec{});
}

// ---- softmax

inline int64_t softmax_parts(const SoftmaxArgs& p) {
  return row_parts(p.rows, p.n);
}

inline float row_max(const float* x, int64_t n) {
  Vec largest = splat(-kInf);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) largest = max(largest, load(x + i));
  float m = reduce_max(largest);
  for (; i < n; ++i) {
    if (x[i] > m || x[i] != x[i]) m = x[i];
  }
  return m;
}

// y = exp(x - largest); their sum.
inline double exponentials(const float* x, float* y, int64_t n, float largest) {
  Vec m = splat(largest);
  return sum_over(
      n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
        Vec e = exp(load_some(x + i, lanes) - m);
        store_some(y + i, e, lanes);
        return keep_lanes(e, lanes);
      });
}

inline void divide(float* y, int64_t n, double sum) {
  Vec inverse = splat(static_cast<float>(1 / sum));
  for (int64_t i = 0; i < n; i += kLanes) store_some(y + i, load_some(y + i, n - i) * inverse, n - i);
}

inline void softmax_row(const float* x, float* y, int64_t n) {
  divide(y, n, exponentials(x, y, n, row_max(x, n)));
}

inline void softmax_run(const SoftmaxArgs& p, int64_t begin, int64_t end) {
  int64_t each = rows_per_part(p.n), last = end * each < p.rows ? end * each : p.rows;
  for (int64_t row = begin * each; row < last; ++row) softmax_row(p.x + row * p.x_row, p.y + row * p.y_row, p.n);
}

// ---- softmax of rows that are cut: a part is a piece

inline int64_t piece_parts(const SoftmaxArgs& p) {
  return p.rows * softmax_pieces(p.rows, p.n).count;
}

// Calls piece(x, y, n, what is found of it, what is found of its row).
template <class Piece>
inline void for_each_piece(const SoftmaxArgs& p, int64_t begin, int64_t end, Piece&& piece) {
  Pieces pieces = softmax_pieces(p.rows, p.n);
  for (int64_t part = begin; part < end; ++part) {
    int64_t row = part / pieces.count, from = part % pieces.count * pieces.size;
    int64_t n = p.n - from < pieces.size ? p.n - from : pieces.size;
    piece(p.x + row * p.x_row + from, p.y + row * p.y_row + from, n, p.found[part], p.found + row * pieces.count);
  }
}

inline void largest_run(const SoftmaxArgs& p, int64_t begin, int64_t end) {
  for_each_piece(p, begin, end, [](const float* x, float*, int64_t n, SoftmaxPiece& own, const SoftmaxPiece*) {
    own.largest = row_max(x, n);
  });
}

inline void exp_run(const SoftmaxArgs& p, int64_t begin, int64_t end) {
  int64_t count = softmax_pieces(p.rows, p.n).count;
  for_each_piece(p, begin, end, [&](const float* x, float* y, int64_t n, SoftmaxPiece& own, const SoftmaxPiece* row) {
    float largest = row[0].largest;
    for (int64_t i = 1; i < count; ++i)
      if (row[i].largest > largest || row[i].largest != row[i].largest) largest = row[i].largest;
    own.sum = exponentials(x, y, n, largest);
  });
}

inline void scale_run(const SoftmaxArgs& p, int64_t begin, int64_t end) {
  int64_t count = softmax_pieces(p.rows, p.n).count;
  for_each_piece(p, begin, end, [&](const float*, float* y, int64_t n, SoftmaxPiece&, const SoftmaxPiece* row) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += row[i].sum;
    divide(y, n, sum);
  });
}

// ---- norms

inline int64_t norm_parts(const NormArgs& p) {
  return row_parts(p.rows, p.n);
}

// A row of a norm: the sources of its terms, and where their sum is kept for the next pass over the row.
struct NormRow {
  const float *x, *residual, *bias;
  float* kept;  // null: x itself is the sum
};

// Elements [i, i + lanes) of the sum to normalise. The first pass computes and keeps it; later passes read it back.
inline Vec first_walk(const NormRow& row, int64_t i, int64_t lanes) {
  Vec v = load_some(row.x + i, lanes);
  if (row.residual) v += load_some(row.residual + i, lanes);
  if (row.bias) v += load_some(row.bias + i, lanes);
  if (row.kept) store_some(row.kept + i, v, lanes);
  return v;
}

// The mean rounded to f32, the rest of the mean, and the variance after subtracting both.
struct Moments {
  float mean, rest;
  double variance;
};
inline Moments moments(const NormRow& row, int64_t n) {
  double count = static_cast<double>(n);
  double mean =
      sum_over(
          n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return first_walk(row, i, lanes); }) /
      count;
  const float* from = row.kept ? row.kept : row.x;
  float near = static_cast<float>(mean);
  Vec centred{};
  double squares = sum_over(
      n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
        Vec c = keep_lanes(load_some(from + i, lanes) - near, lanes);
        centred += c;
        return c * c;
      });
  double rest = std::isfinite(near) ? reduce_add(centred) / count : 0;
  double variance = squares / count - rest * rest;
  return {near, static_cast<float>(rest), variance < 0 ? 0 : variance};
}

inline Moments mean_square(const NormRow& row, int64_t n) {
  double squares = sum_over(
      n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
        Vec v = first_walk(row, i, lanes);
        return v * v;
      });
  return {0, 0, squares / static_cast<double>(n)};
}

inline void write_norm(const NormArgs& p, const float* from, float* y, const Moments& m, float inv) {
  for (int64_t i = 0; i < p.n; i += kLanes) {
    int64_t lanes = p.n - i;
    Vec v = (load_some(from + i, lanes) - m.mean - m.rest) * inv;
    if (p.gamma) v *= load_some(p.gamma + i, lanes);
    if (p.beta) v += load_some(p.beta + i, lanes);
    store_some(y + i, v, lanes);
  }
}

template <bool Centre>
void norm_run(const NormArgs& p, int64_t begin, int64_t end) {
  int64_t each = rows_per_part(p.n), last = end * each < p.rows ? end * each : p.rows;
  for (int64_t r = begin * each; r < last; ++r) {
    float* y = p.y ? p.y + r * p.y_row : nullptr;
    float* sum = p.sum ? p.sum + r * p.sum_row : nullptr;
    NormRow row{p.x + r * p.x_row, p.residual ? p.residual + r * p.residual_row : nullptr, p.bias, nullptr};
    if (sum || row.residual || row.bias) row.kept = sum ? sum : y;
    Moments m = Centre ? moments(row, p.n) : mean_square(row, p.n);
    float inv = static_cast<float>(1 / std::sqrt(m.variance + p.eps));
    if (y) write_norm(p, row.kept ? row.kept : row.x, y, m, inv);
    if (p.mean) p.mean[r] = m.mean + m.rest;
    if (p.inv) p.inv[r] = inv;
  }
}

inline constexpr RowFns kRows = {{softmax_parts, softmax_run}, {piece_parts, largest_run},
                                 {piece_parts, exp_run},       {piece_parts, scale_run},
                                 {norm_parts, norm_run<true>}, {norm_parts, norm_run<false>}};
