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
// Inlined, so that what the caller adds up beside the sum stays in registers.
template <class Value>
[[gnu::always_inline]] inline double sum_over(int64_t n, Value&& value) {
  double total = 0;
  for (int64_t block = 0; block < n; block += kSumBlock) {
    int64_t end = min(n, block + kSumBlock), i = block;
    Vec sums[kSums] = {};
    for (; i + kSums * kLanes <= end; i += kSums * kLanes) {
      RLX_UNROLL for (int s = 0; s < kSums; ++s) sums[s] += value(i + s * kLanes, kLanes);
    }
    for (; i < end; i += kLanes) sums[0] += value(i, min(end - i, kLanes));
    total += reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  return total;
}

// All ones in the first n lanes.
inline Int lanes_below(int64_t n) {
  Int lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return lane < splat(static_cast<int32_t>(n));
}
// Sets the lanes from n on to zero.
inline Vec keep_lanes(Vec v, int64_t n) {
  return n >= kLanes ? v : select(lanes_below(n), v, Vec{});
}

// ---- short rows as columns

// kLanes rows are read at once: a lane is a row, and a vector holds their elements at one position. Row by row, what
// is done once for a row would cost more than its elements. read(row, i): the elements of a row from i on.
template <class Read>
[[gnu::always_inline]] inline void read_columns(int64_t n, int64_t count, Vec* columns, Read&& read) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Vec rows[kLanes] = {};
    for (int64_t r = 0; r < count; ++r) rows[r] = read(r, i);
    transpose(rows);
    __builtin_memcpy(columns + i, rows, sizeof rows);
  }
}
inline void write_columns(int64_t n, int64_t count, const Vec* columns, float* y, int64_t y_row) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Vec rows[kLanes];
    __builtin_memcpy(rows, columns + i, sizeof rows);
    transpose(rows);
    for (int64_t r = 0; r < count; ++r) store_some(y + r * y_row + i, rows[r], n - i);
  }
}

// Sums value(i) over [0, n).
template <class Value>
[[gnu::always_inline]] inline Vec sum_of_columns(int64_t n, Value&& value) {
  Vec sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    RLX_UNROLL for (int s = 0; s < kSums; ++s) sums[s] += value(i + s);
  }
  for (; i < n; ++i) sums[0] += value(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// ---- softmax

inline int64_t softmax_parts(const SoftmaxArgs& p) {
  return row_parts(p.rows, p.n);
}

// The largest number: a NaN may be lost, but it is in the sum of the exponentials.
inline Vec larger(Vec a, Vec b) {
  return raw_max(a, b);
}
inline float largest_lane(Vec v) {
  return fold_lanes<kLanes / 2, larger>(v)[0];
}
inline float row_max(const float* x, int64_t n) {
  Vec largest[4];
  for (Vec& each : largest) each = splat(-kInf);
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    RLX_UNROLL for (int k = 0; k < 4; ++k) largest[k] = larger(load(x + i + k * kLanes), largest[k]);
  }
  for (; i + kLanes <= n; i += kLanes) largest[0] = larger(load(x + i), largest[0]);
  if (i < n) largest[1] = larger(select(lanes_below(n - i), load(x + i, n - i), splat(-kInf)), largest[1]);
  return largest_lane(larger(larger(largest[0], largest[1]), larger(largest[2], largest[3])));
}

// The sum of exp(x - largest), which are kept in y unless it is null.
inline double exponentials(const float* x, float* y, int64_t n, float largest) {
  Vec m = splat(largest);
  auto keeping = [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
    Vec e = exp_of_negative(load_some(x + i, lanes) - m);
    store_some(y + i, e, lanes);
    return keep_lanes(e, lanes);
  };
  auto summing = [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
    return keep_lanes(exp_of_negative(load_some(x + i, lanes) - m), lanes);
  };
  return y ? sum_over(n, keeping) : sum_over(n, summing);
}

inline void divide(float* y, int64_t n, double sum) {
  Vec inverse = splat(static_cast<float>(1 / sum));
  for (int64_t i = 0; i < n; i += kLanes) store_some(y + i, load_some(y + i, n - i) * inverse, n - i);
}

inline void subtract_log(const float* x, float* y, int64_t n, float largest, double sum) {
  Vec m = splat(largest), logarithm = splat(static_cast<float>(std::log(sum)));
  for (int64_t i = 0; i < n; i += kLanes) store_some(y + i, load_some(x + i, n - i) - m - logarithm, n - i);
}

inline void softmax_row(const SoftmaxArgs& p, const float* x, float* y) {
  float largest = row_max(x, p.n);
  double sum = exponentials(x, p.is_log ? nullptr : y, p.n, largest);
  p.is_log ? subtract_log(x, y, p.n, largest, sum) : divide(y, p.n, sum);
}

// The same of rows that fill as many registers: nothing is stored before the result.
template <int Vecs>
[[gnu::noinline]] void softmax_in_registers(const SoftmaxArgs& p, int64_t row, int64_t last) {
  const int64_t rest = p.n - (Vecs - 1) * kLanes;
  const Int inside = lanes_below(rest);
  for (; row < last; ++row) {
    const float* x = p.x + row * p.x_row;
    float* y = p.y + row * p.y_row;
    Vec v[Vecs], largest, sum{};
    RLX_UNROLL for (int i = 0; i + 1 < Vecs; ++i) v[i] = load(x + i * kLanes);
    v[Vecs - 1] = largest = select(inside, load(x + (Vecs - 1) * kLanes, rest), splat(-kInf));
    RLX_UNROLL for (int i = 0; i + 1 < Vecs; ++i) largest = larger(v[i], largest);
    const Vec m = splat(largest_lane(largest));
    RLX_UNROLL for (int i = 0; i < Vecs; ++i) {
      Vec e = exp_of_negative(v[i] - m);
      sum += e;
      v[i] = p.is_log ? v[i] - m : e;
    }
    const double total = reduce_add(sum);
    const Vec logarithm = splat(p.is_log ? static_cast<float>(std::log(total)) : 0.0f);
    const Vec inverse = splat(static_cast<float>(1 / total));
    RLX_UNROLL for (int i = 0; i < Vecs; ++i) {
      Vec result = p.is_log ? v[i] - logarithm : v[i] * inverse;
      i + 1 < Vecs ? store(y + i * kLanes, result) : store(y + i * kLanes, result, rest);
    }
  }
}
inline constexpr int kSoftmaxRegisters = kRegisters / 4;
using SoftmaxFn = void (*)(const SoftmaxArgs&, int64_t row, int64_t last);
template <int... I>
inline SoftmaxFn softmax_of_registers(int64_t vecs, std::integer_sequence<int, I...>) {
  constexpr SoftmaxFn kFns[] = {softmax_in_registers<I + 1>...};
  return kFns[vecs - 1];
}

// The same of rows that are no longer than a vector.
inline void softmax_columns(const SoftmaxArgs& p, const float* x, float* y, int64_t count) {
  Vec columns[kLanes], largest = splat(-kInf);
  read_columns(
      p.n, count,
      columns, [&](int64_t r, int64_t) __attribute__((always_inline)) { return load_some(x + r * p.x_row, p.n); });
  for (int64_t i = 0; i < p.n; ++i) largest = max(largest, columns[i]);
  auto exponential = [&](int64_t i) __attribute__((always_inline)) {
    return exp(columns[i] - largest);
  };
  if (p.is_log) {
    Vec logarithm = log(sum_of_columns(p.n, exponential));
    for (int64_t i = 0; i < p.n; ++i) columns[i] = columns[i] - largest - logarithm;
  } else {
    Vec inverse =
        1.0f / sum_of_columns(
                   p.n, [&](int64_t i) __attribute__((always_inline)) { return columns[i] = exponential(i); });
    for (int64_t i = 0; i < p.n; ++i) columns[i] *= inverse;
  }
  write_columns(p.n, count, columns, y, p.y_row);
}

inline void softmax_run(const SoftmaxArgs& p, int64_t begin, int64_t end) {
  int64_t each = rows_per_part(p.n), last = min(end * each, p.rows), row = begin * each;
  if (p.n <= kLanes)
    for (int64_t some; (some = min(last - row, kLanes)) > kLanes / 2; row += some)
      softmax_columns(p, p.x + row * p.x_row, p.y + row * p.y_row, some);
  if (int64_t vecs = ceil_div(p.n, kLanes); vecs > 0 && vecs <= kSoftmaxRegisters)
    return softmax_of_registers(vecs, std::make_integer_sequence<int, kSoftmaxRegisters>())(p, row, last);
  for (; row < last; ++row) softmax_row(p, p.x + row * p.x_row, p.y + row * p.y_row);
}

// ---- softmax of rows that are cut: a part is a piece

inline int64_t piece_parts(const SoftmaxArgs& p) {
  return p.rows * softmax_pieces(p.rows, p.n).count;
}

// Calls piece(x, y, n, its SoftmaxPiece, the SoftmaxPieces of its row).
template <class Piece>
inline void for_each_piece(const SoftmaxArgs& p, int64_t begin, int64_t end, Piece&& piece) {
  Pieces pieces = softmax_pieces(p.rows, p.n);
  for (int64_t part = begin; part < end; ++part) {
    int64_t row = part / pieces.count, from = part % pieces.count * pieces.size;
    int64_t n = min(p.n - from, pieces.size);
    piece(p.x + row * p.x_row + from, p.y + row * p.y_row + from, n, p.found[part], p.found + row * pieces.count);
  }
}

inline void largest_run(const SoftmaxArgs& p, int64_t begin, int64_t end) {
  for_each_piece(p, begin, end, [](const float* x, float*, int64_t n, SoftmaxPiece& own, const SoftmaxPiece*) {
    own.largest = row_max(x, n);
  });
}

inline float largest_of(const SoftmaxPiece* row, int64_t count) {
  float largest = row[0].largest;
  for (int64_t i = 1; i < count; ++i)
    if (row[i].largest > largest || row[i].largest != row[i].largest) largest = row[i].largest;
  return largest;
}

inline void exp_run(const SoftmaxArgs& p, int64_t begin, int64_t end) {
  int64_t count = softmax_pieces(p.rows, p.n).count;
  for_each_piece(p, begin, end, [&](const float* x, float* y, int64_t n, SoftmaxPiece& own, const SoftmaxPiece* row) {
    own.sum = exponentials(x, p.is_log ? nullptr : y, n, largest_of(row, count));
  });
}

inline void scale_run(const SoftmaxArgs& p, int64_t begin, int64_t end) {
  int64_t count = softmax_pieces(p.rows, p.n).count;
  for_each_piece(p, begin, end, [&](const float* x, float* y, int64_t n, SoftmaxPiece&, const SoftmaxPiece* row) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += row[i].sum;
    p.is_log ? subtract_log(x, y, n, largest_of(row, count), sum) : divide(y, n, sum);
  });
}

// ---- norms

inline constexpr int64_t kShortRow = 128;  // elements of rows that lie side by side in lanes

// Short rows of a part fill whole vectors, so that it does not matter which parts run together.
inline int64_t norm_rows_per_part(int64_t n) {
  static_assert(kPartElements / kShortRow >= kLanes);
  int64_t each = rows_per_part(n);
  return n > 0 && n <= kShortRow ? each / kLanes * kLanes : each;
}
inline int64_t norm_parts(const NormArgs& p) {
  int64_t each = norm_rows_per_part(p.n);
  return (p.rows + each - 1) / each;
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

inline double sum_of(NormRow row, int64_t n) {
  return sum_over(
      n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return first_walk(row, i, lanes); });
}
inline double squares_of(NormRow row, int64_t n) {
  return sum_over(
      n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
        Vec v = first_walk(row, i, lanes);
        return v * v;
      });
}

// The sum of the squares of elements minus a mean, and the sum of these elements, which is not 0 because f32 cannot
// hold the mean.
struct Centred {
  double squares, sum;
};
inline Centred centred_of(const float* from, int64_t n, float mean) {
  Vec centred{};
  double squares = sum_over(
      n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
        Vec c = keep_lanes(load_some(from + i, lanes) - mean, lanes);
        centred += c;
        return c * c;
      });
  return {squares, reduce_add(centred)};
}

// The mean rounded to f32, the rest of the mean, and the variance after subtracting both.
struct Moments {
  float mean, rest;
  double variance;
};
inline Moments moments_of(float mean, const Centred& means) {
  double rest = std::isfinite(mean) ? means.sum : 0, variance = means.squares - rest * rest;
  return {mean, static_cast<float>(rest), variance < 0 ? 0 : variance};
}

// The row, or the piece of it that begins at element `from`.
inline NormRow row_of(const NormArgs& p, int64_t r, int64_t from) {
  NormRow row{p.x + r * p.x_row + from, nullptr, nullptr, nullptr};
  if (p.residual) row.residual = p.residual + r * p.residual_row + from;
  if (p.bias) row.bias = p.bias + from;
  if (p.sum) row.kept = p.sum + r * p.sum_row + from;
  if (!p.sum && (p.residual || p.bias)) row.kept = p.y + r * p.y_row + from;
  return row;
}

// The channel of element i of row r, where gamma and beta have one number for each.
inline int64_t channel_of(const NormArgs& p, int64_t r, int64_t i) {
  return (r * (p.n / p.run) + i / p.run) % p.channels;
}
inline void write_channels(const NormArgs& p, int64_t r, int64_t from, int64_t end, const float* x, float* y,
                           const Moments& m, float inv) {
  for (int64_t i = from, stop; i < end; i = stop) {
    int64_t channel = channel_of(p, r, i);
    stop = min((i / p.run + 1) * p.run, end);
    const Vec scale = splat(p.gamma ? inv * p.gamma[channel] : inv), shift = splat(p.beta ? p.beta[channel] : 0.0f);
    in_vectors(stop - i, [&](int64_t k, int64_t lanes) {
      Vec v = (load_some(x + i + k, lanes) - m.mean - m.rest) * scale + shift;
      store_some(y + i + k, v, lanes);
    });
  }
}

// Writes elements [from, end) of the row; with the first of them, also its mean and inverse deviation.
inline void write_norm(const NormArgs& p, int64_t r, int64_t from, int64_t end, Moments m) {
  float inv = static_cast<float>(1 / std::sqrt(m.variance + p.eps));
  if (p.mean && from == 0) p.mean[r] = m.mean + m.rest;
  if (p.inv && from == 0) p.inv[r] = inv;
  if (!p.y) return;
  NormRow row = row_of(p, r, 0);
  const float *x = row.kept ? row.kept : row.x, *gamma = p.gamma, *beta = p.beta;
  float* y = p.y + r * p.y_row;
  if (p.run > 0) return write_channels(p, r, from, end, x, y, m, inv);
  for (int64_t i = from; i < end; i += kLanes) {
    int64_t lanes = end - i;
    Vec v = (load_some(x + i, lanes) - m.mean - m.rest) * inv;
    if (gamma) v *= load_some(gamma + i, lanes);
    if (beta) v += load_some(beta + i, lanes);
    store_some(y + i, v, lanes);
  }
}

// The numbers of the channels to which element i of the kLanes rows from `first` on belongs.
inline Vec of_channels(const NormArgs& p, const float* numbers, int64_t first, int64_t i) {
  Vec v;
  for (int r = 0; r < kLanes; ++r) v[r] = numbers[channel_of(p, first + r, i)];
  return v;
}
inline void scale_columns(const NormArgs& p, int64_t first, Vec* columns) {
  for (int64_t from = 0; from < p.n; from += p.run) {
    Vec gamma = p.gamma ? of_channels(p, p.gamma, first, from) : splat(1.0f);
    Vec beta = p.beta ? of_channels(p, p.beta, first, from) : Vec{};
    for (int64_t i = from; i < from + p.run; ++i) columns[i] = columns[i] * gamma + beta;
  }
}

template <bool Centre>
void short_rows(const NormArgs& p, int64_t first, int64_t count) {
  Vec columns[kShortRow], mean{}, rest{};
  const Vec n = splat(static_cast<float>(p.n));
  read_columns(
      p.n, count, columns, [&](int64_t r, int64_t i) __attribute__((always_inline)) {
        return first_walk(row_of(p, first + r, 0), i, p.n - i);
      });
  if constexpr (Centre) {
    mean = sum_of_columns(
               p.n, [&](int64_t i) __attribute__((always_inline)) { return columns[i]; }) /
           n;
    rest = sum_of_columns(
               p.n, [&](int64_t i) __attribute__((always_inline)) { return columns[i] = columns[i] - mean; }) /
           n;
    rest = select(mean - mean == Vec{}, rest, Vec{});  // beside a mean that is not finite there is none
  }
  Vec squares = sum_of_columns(
      p.n, [&](int64_t i) __attribute__((always_inline)) { return columns[i] * columns[i]; });
  Vec variance = squares / n - rest * rest;
  Vec inv = 1.0f / sqrt(select(variance < Vec{}, Vec{}, variance) + p.eps);
  if (p.mean) store_some(p.mean + first, mean + rest, count);
  if (p.inv) store_some(p.inv + first, inv, count);
  if (!p.y) return;
  for (int64_t i = 0; i < p.n; ++i) {
    Vec v = (columns[i] - rest) * inv;
    if (p.gamma && p.run == 0) v *= p.gamma[i];
    if (p.beta && p.run == 0) v += p.beta[i];
    columns[i] = v;
  }
  if (p.run > 0) scale_columns(p, first, columns);
  write_columns(p.n, count, columns, p.y + first * p.y_row, p.y_row);
}

template <bool Centre>
void norm_run(const NormArgs& p, int64_t begin, int64_t end) {
  int64_t each = norm_rows_per_part(p.n), last = min(end * each, p.rows);
  auto count = static_cast<double>(p.n);
  int64_t r = begin * each;
  if (p.n > 0 && p.n <= kShortRow)
    for (int64_t some; (some = min(last - r, kLanes)) > kLanes / 2; r += some) short_rows<Centre>(p, r, some);
  for (; r < last; ++r) {
    NormRow row = row_of(p, r, 0);
    Moments m{};
    if constexpr (Centre) {
      auto mean = static_cast<float>(sum_of(row, p.n) / count);
      Centred centred = centred_of(row.kept ? row.kept : row.x, p.n, mean);
      m = moments_of(mean, {centred.squares / count, centred.sum / count});
    } else {
      m.variance = squares_of(row, p.n) / count;
    }
    write_norm(p, r, 0, p.n, m);
  }
}

// ---- norms of rows that are cut: a part is a piece

inline int64_t norm_piece_parts(const NormArgs& p) {
  return p.rows * norm_pieces(p.rows, p.n).count;
}

// Calls piece(row, from, end, its NormPiece, the NormPieces of its row).
template <class Piece>
inline void for_piece(const NormArgs& p, const Pieces& pieces, int64_t at, Piece&& piece) {
  int64_t row = at / pieces.count, from = at % pieces.count * pieces.size;
  int64_t to = min(p.n, from + pieces.size);
  piece(row, from, to, p.found[at], p.found + row * pieces.count);
}
template <class Piece>
inline void for_each_piece(const NormArgs& p, int64_t begin, int64_t end, Piece&& piece) {
  Pieces pieces = norm_pieces(p.rows, p.n);
  for (int64_t part = begin; part < end; ++part) for_piece(p, pieces, part, piece);
}
// Goes from the last piece to the first: what the previous phase has read last may still be in a cache.
template <class Piece>
inline void for_each_piece_back(const NormArgs& p, int64_t begin, int64_t end, Piece&& piece) {
  Pieces pieces = norm_pieces(p.rows, p.n);
  int64_t last = p.rows * pieces.count - 1;
  for (int64_t part = begin; part < end; ++part) for_piece(p, pieces, last - part, piece);
}

// The mean over the row.
inline double mean_of(const NormArgs& p, const NormPiece* row, double NormPiece::*of) {
  double total = 0;
  for (int64_t i = 0, count = norm_pieces(p.rows, p.n).count; i < count; ++i) total += row[i].*of;
  return total / static_cast<double>(p.n);
}

template <bool Centre>
void norm_sums_run(const NormArgs& p, int64_t begin, int64_t end) {
  for_each_piece(p, begin, end, [&](int64_t r, int64_t from, int64_t to, NormPiece& own, const NormPiece*) {
    NormRow row = row_of(p, r, from);
    own.sum = Centre ? sum_of(row, to - from) : squares_of(row, to - from);
  });
}

inline void norm_squares_run(const NormArgs& p, int64_t begin, int64_t end) {
  for_each_piece_back(p, begin, end, [&](int64_t r, int64_t from, int64_t to, NormPiece& own, const NormPiece* found) {
    NormRow row = row_of(p, r, from);
    auto mean = static_cast<float>(mean_of(p, found, &NormPiece::sum));
    Centred centred = centred_of(row.kept ? row.kept : row.x, to - from, mean);
    own.squares = centred.squares, own.centred = centred.sum;
  });
}

template <bool Centre>
void norm_write_run(const NormArgs& p, int64_t begin, int64_t end) {
  for_each_piece(p, begin, end, [&](int64_t r, int64_t from, int64_t to, NormPiece&, const NormPiece* found) {
    double mean = mean_of(p, found, &NormPiece::sum);
    Moments m{0, 0, mean};
    if constexpr (Centre) {
      Centred centred{mean_of(p, found, &NormPiece::squares), mean_of(p, found, &NormPiece::centred)};
      m = moments_of(static_cast<float>(mean), centred);
    }
    write_norm(p, r, from, to, m);
  });
}

inline constexpr NormFns kNorms = {{softmax_parts, softmax_run},
                                   {piece_parts, largest_run},
                                   {piece_parts, exp_run},
                                   {piece_parts, scale_run},
                                   {norm_parts, norm_run<true>},
                                   {norm_parts, norm_run<false>},
                                   {norm_piece_parts, norm_sums_run<true>},
                                   {norm_piece_parts, norm_squares_run},
                                   {norm_piece_parts, norm_write_run<true>},
                                   {norm_piece_parts, norm_sums_run<false>},
                                   {norm_piece_parts, norm_write_run<false>}};
