// SPDX-License-Identifier: Apache-2.0
// A part is a tile of adjacent results, or some rows that become one result each.

#if !defined(__clang__)
#pragma GCC optimize("O3")
#endif

inline constexpr int64_t kBlock = 512;  // terms of one accumulator
inline constexpr int64_t kTile = kResultTile;
inline constexpr int64_t kPartTerms = 8192;  // of rows that are a part, about

// Lane by lane if T is a vector. Integers wrap.
struct Sum {
  template <class T>
  static constexpr T kIdentity = 0;
  template <class T>
  static T join(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct SumOfSquares : Sum {};
struct Prod {
  template <class T>
  static constexpr T kIdentity = 1;
  template <class T>
  static T join(T a, T b) {
    if constexpr (std::is_same_v<T, uint16_t>)
      return static_cast<T>(uint32_t{a} * b);  // not in int
    else
      return static_cast<T>(a * b);
  }
};
struct Max {
  template <class T>
  static constexpr T kIdentity = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                             : std::numeric_limits<T>::lowest();
  template <class T>
  static T join(T a, T b) {
    if constexpr (std::is_same_v<T, Vec>)
      return max(a, b);
    else
      return ((a > b) | (a != a)) ? a : b;
  }
};
struct Min {
  template <class T>
  static constexpr T kIdentity = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                                             : std::numeric_limits<T>::max();
  template <class T>
  static T join(T a, T b) {
    if constexpr (std::is_same_v<T, Vec>)
      return min(a, b);
    else
      return ((a < b) | (a != a)) ? a : b;
  }
};

// Reductions of bools. A byte is true unless it is 0 (semantics.md T6); results are 0 or 1.
template <class T>
T truth(T a) {
  if constexpr (std::is_integral_v<T>)
    return a != 0;
  else
    return (T)(a != T{}) & 1;
}
struct Any {
  template <class T>
  static constexpr T kIdentity = 0;
  template <class T>
  static T join(T a, T b) {
    return truth(static_cast<T>(a | b));
  }
};
struct All {
  template <class T>
  static constexpr T kIdentity = 1;
  template <class T>
  static T join(T a, T b) {
    return truth(a) & truth(b);
  }
};

// Joins terms of x, where `join` has results.
template <class Fn, class T>
[[gnu::always_inline]] inline T take(T folded, T terms) {
  if constexpr (std::is_same_v<Fn, SumOfSquares>)
    return Fn::join(folded, terms * terms);
  else
    return Fn::join(folded, terms);
}

// Folds the lanes of a vector: the upper half onto the lower one, until one lane is left.
template <class Fn, class T, int Width, class V, int... I>
T fold_half(V v, std::integer_sequence<int, I...>) {
  if constexpr (Width == 0)
    return v[0];
  else
    return fold_half<Fn, T, Width / 2>(Fn::join(v, __builtin_shufflevector(v, v, (I < Width ? I + Width : I)...)),
                                       std::integer_sequence<int, I...>());
}
template <class Fn, class T, class V>
[[gnu::always_inline]] inline T fold_lanes_of(const V& v) {
  constexpr int kCount = sizeof(V) / sizeof(T);
  if constexpr (sizeof(V) > 16) {
    using Half [[gnu::vector_size(sizeof(V) / 2)]] = T;
    Half halves[2];
    __builtin_memcpy(halves, &v, sizeof v);
    return fold_lanes_of<Fn, T, Half>(Fn::join(halves[0], halves[1]));
  } else {
    return fold_half<Fn, T, kCount / 2>(v, std::make_integer_sequence<int, kCount>());
  }
}

// Read from index `count` on, Width entries are a mask of the last `count` of Width lanes.
template <class M, int64_t Width>
struct LastLanes {
  M values[2 * Width];
};
template <class M, int64_t Width>
constexpr LastLanes<M, Width> last_lanes() {
  LastLanes<M, Width> masks{};
  for (int64_t i = Width; i < 2 * Width; ++i) masks.values[i] = M(-1);
  return masks;
}

template <class T>
using LanesOf [[gnu::vector_size(4 * kLanes)]] = T;

// ---- short rows: each is folded to a vector, and the vectors of kWidth rows are then folded together

template <class T>
inline constexpr int64_t kWidth = sizeof(LanesOf<T>) / sizeof(T);
template <class T>
constexpr bool is_short(int64_t n) {
  constexpr int64_t kMostVectors = 32;
  return sizeof(T) >= sizeof(float) && n <= kMostVectors * kWidth<T>;
}

// The first n <= kWidth elements, and identities behind them.
template <class Fn, class T>
[[gnu::always_inline]] inline LanesOf<T> load_first(const T* x, int64_t n) {
  LanesOf<T> terms, identity = LanesOf<T>{} + Fn::template kIdentity<T>;
#if RLX_ISA == 0
  terms = identity;
  for (int64_t i = 0; i < n; ++i) terms[i] = x[i];
  return terms;
#else
  constexpr int64_t kWords = sizeof(T) / sizeof(float);
  const Vec words = load(reinterpret_cast<const float*>(x), n * kWords);
  __builtin_memcpy(&terms, &words, sizeof terms);
  using Mask = decltype(terms == terms);
  static constexpr auto kMasks = last_lanes<std::remove_cvref_t<decltype(Mask{}[0])>, kWidth<T>>();
  Mask mask;
  __builtin_memcpy(&mask, kMasks.values + kWidth<T> - n, sizeof mask);
  return mask ? identity : terms;
#endif
}
// A row of up to kWidth terms, as lanes_of_row gives it.
template <class Fn, class T>
[[gnu::always_inline]] inline LanesOf<T> lane_row(const T* x, int64_t n) {
  return take<Fn>(LanesOf<T>{} + Fn::template kIdentity<T>, load_first<Fn>(x, n));
}
template <class Fn, class T>
[[gnu::always_inline]] inline LanesOf<T> lanes_of_row(const T* x, int64_t n) {
  constexpr int64_t kStep = 4 * kWidth<T>;
  LanesOf<T> lanes[4], terms;
  RLX_UNROLL for (auto& lane : lanes) lane = LanesOf<T>{} + Fn::template kIdentity<T>;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    RLX_UNROLL for (int k = 0; k < 4; ++k) {
      __builtin_memcpy(&terms, x + i + k * kWidth<T>, sizeof terms);
      lanes[k] = take<Fn>(lanes[k], terms);
    }
  }
  if (i > 0) lanes[0] = Fn::join(Fn::join(lanes[0], lanes[1]), Fn::join(lanes[2], lanes[3]));
  for (; i + kWidth<T> <= n; i += kWidth<T>) {
    __builtin_memcpy(&terms, x + i, sizeof terms);
    lanes[0] = take<Fn>(lanes[0], terms);
  }
  return i < n ? take<Fn>(lanes[0], load_first<Fn>(x + i, n - i)) : lanes[0];
}

// Two vectors of segments of 2 * Half lanes become one: each segment is folded in the middle, and those of a and b take
// turns.
template <class Fn, int Half, class V, int... I>
inline V fold_two(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int kCount = sizeof...(I);
  V lower = __builtin_shufflevector(a, b, (I / Half % 2 * kCount + I / (2 * Half) * (2 * Half) + I % Half)...);
  V upper = __builtin_shufflevector(a, b, (I / Half % 2 * kCount + I / (2 * Half) * (2 * Half) + I % Half + Half)...);
  return Fn::join(lower, upper);
}
// Lane i of the result is what fold_lanes_of gives for rows[i].
template <class Fn, int Half, class V, int Width>
[[gnu::always_inline]] inline V fold_all(V (&rows)[Width]) {
  RLX_UNROLL for (int i = 0; i < Half; ++i) rows[i] =
      fold_two<Fn, Half>(rows[i], rows[i + Half], std::make_integer_sequence<int, Width>());
  if constexpr (Half > 1)
    return fold_all<Fn, Half / 2>(rows);
  else
    return rows[0];
}
// Folds kWidth rows, which are `stride` apart.
template <class Fn, class T>
inline void reduce_short_rows(const T* x, int64_t stride, int64_t n, T* y) {
  LanesOf<T> rows[kWidth<T>];
  if (n <= kWidth<T>)
    RLX_UNROLL for (int64_t i = 0; i < kWidth<T>; ++i) rows[i] = lane_row<Fn>(x + i * stride, n);
  else
    for (int64_t i = 0; i < kWidth<T>; ++i) rows[i] = lanes_of_row<Fn>(x + i * stride, n);
  const LanesOf<T> results = fold_all<Fn, kWidth<T> / 2>(rows);
  __builtin_memcpy(y, &results, sizeof results);
}

// ---- rows

// Folds a row of adjacent terms.
template <class Fn, class T>
T reduce_row(const T* x, int64_t n) {
  if (is_short<T>(n)) return fold_lanes_of<Fn, T>(lanes_of_row<Fn>(x, n));
  using Lanes = LanesOf<T>;
  constexpr int64_t kWidth = sizeof(Lanes) / sizeof(T), kStep = 4 * kWidth;
  T total = Fn::template kIdentity<T>;
  int64_t i = 0;
  while (n - i >= kStep) {
    int64_t end = min(n, i + kBlock * kStep);
    Lanes lanes[4];
    RLX_UNROLL for (Lanes& lane : lanes) lane = Lanes{} + Fn::template kIdentity<T>;
    for (; i + kStep <= end; i += kStep) {
      RLX_UNROLL for (int k = 0; k < 4; ++k) {
        Lanes terms;
        __builtin_memcpy(&terms, x + i + k * kWidth, sizeof terms);
        lanes[k] = take<Fn>(lanes[k], terms);
      }
    }
    lanes[0] = Fn::join(Fn::join(lanes[0], lanes[1]), Fn::join(lanes[2], lanes[3]));
    total = Fn::join(total, fold_lanes_of<Fn, T>(lanes[0]));
  }
  if (n < kWidth) {  // as vectors, whose folds take no branches
    using One [[gnu::vector_size(16)]] = T;
    One few = One{} + Fn::template kIdentity<T>;
    for (; i < n; ++i) few = take<Fn>(few, x[i] - One{});
    return few[0];
  }
  Lanes rest = Lanes{} + Fn::template kIdentity<T>, terms;
  for (; i + kWidth <= n; i += kWidth) {
    __builtin_memcpy(&terms, x + i, sizeof terms);
    rest = take<Fn>(rest, terms);
  }
  if (i < n) {  // the last vector of the row, without what was folded already
    using Mask = decltype(rest == rest);
    static constexpr auto kMasks = last_lanes<std::remove_cvref_t<decltype(Mask{}[0])>, kWidth>();
    Mask mask;
    __builtin_memcpy(&mask, kMasks.values + (n - i), sizeof mask);
    __builtin_memcpy(&terms, x + n - kWidth, sizeof terms);
    rest = take<Fn>(rest, mask ? terms : Lanes{} + Fn::template kIdentity<T>);
  }
  return Fn::join(total, fold_lanes_of<Fn, T>(rest));
}

inline int64_t offset_of(const ReduceAxes& axes, int64_t index) {
  if (axes.rank <= 1) return index * axes.strides[0];  // index < the only dim; divisions are slow
  int64_t offset = 0;
  for (int32_t d = axes.rank - 1; d >= 0; --d) {
    offset += index % axes.dims[d] * axes.strides[d];
    index /= axes.dims[d];
  }
  return offset;
}

// Folds the rows of all folded axes to one result.
template <class Fn, class T>
T reduce_rows(const ReduceArgs& p, const T* x, int64_t folded, int64_t n) {
  if (folded == 1) return reduce_row<Fn>(x, n);
  T total = Fn::template kIdentity<T>;
  for (int64_t block = 0; block < folded; block += kBlock) {
    const int64_t end = folded - block < kBlock ? folded : block + kBlock;
    if (is_short<T>(n)) {  // lane by lane: the lanes of all rows are folded once
      LanesOf<T> lanes = LanesOf<T>{} + Fn::template kIdentity<T>;
      for (int64_t i = block; i < end; ++i) lanes = Fn::join(lanes, lanes_of_row<Fn>(x + offset_of(p.folded, i), n));
      total = Fn::join(total, fold_lanes_of<Fn, T>(lanes));
      continue;
    }
    T sum = Fn::template kIdentity<T>;
    for (int64_t i = block; i < end; ++i) sum = Fn::join(sum, reduce_row<Fn>(x + offset_of(p.folded, i), n));
    total = Fn::join(total, sum);
  }
  return total;
}

// Folds x[i, k] for i in [0, n) into sums[k].
template <class Fn, class T>
void fold_rows(const T* x, int64_t stride, int64_t n, int64_t width, T* sums) {
  using Lanes [[gnu::vector_size(4 * kLanes)]] = T;
  constexpr int64_t kWidth = sizeof(Lanes) / sizeof(T);
  for (int64_t first = 0; first < n; first += 4) {
    int64_t end = min(n, first + 4), k = 0;
    for (; k + kWidth <= width; k += kWidth) {
      Lanes sum, terms;
      __builtin_memcpy(&sum, sums + k, sizeof sum);
      for (int64_t i = first; i < end; ++i) {
        __builtin_memcpy(&terms, x + i * stride + k, sizeof terms);
        sum = take<Fn>(sum, terms);
      }
      __builtin_memcpy(sums + k, &sum, sizeof sum);
    }
    for (; k < width; ++k)
      for (int64_t i = first; i < end; ++i) sums[k] = take<Fn>(sums[k], x[i * stride + k]);
  }
}

// `width` adjacent results.
template <class Fn, class T>
void reduce_columns(const ReduceArgs& p, const T* x, int64_t folded, int64_t n, int64_t width, T* y) {
  T sums[kTile], totals[kTile];
  for (int64_t k = 0; k < width; ++k) sums[k] = totals[k] = Fn::template kIdentity<T>;
  int64_t terms = 0;
  auto flush = [&] {
    for (int64_t k = 0; k < width; ++k) totals[k] = Fn::join(totals[k], sums[k]);
    for (int64_t k = 0; k < width; ++k) sums[k] = Fn::template kIdentity<T>;
    terms = 0;
  };
  for (int64_t f = 0; f < folded; ++f) {
    const T* from = x + offset_of(p.folded, f);
    for (int64_t i = 0; i < n;) {
      int64_t some = min(n - i, kBlock - terms);
      fold_rows<Fn>(from + i * p.inner, p.inner, some, width, sums);
      i += some;
      terms += some;
      if (terms == kBlock) flush();
    }
  }
  flush();
  for (int64_t k = 0; k < width; ++k) y[k] = totals[k];
}

inline int64_t rows_in_part(const ReduceArgs& p) {
  int64_t terms = p.n * p.folded.count();
  return terms > kPartTerms ? 1 : kPartTerms / max(terms, 1);
}
inline int64_t reduce_parts(const ReduceArgs& p) {
  int64_t each = rows_in_part(p);
  return p.inner == 1 ? ceil_div(p.kept.count(), each) : p.kept.count() * result_tiles(p);
}
inline int64_t terms_of(const ReduceArgs& p, int64_t row) {
  if (p.row_terms == 0) return p.n;
  int64_t rest = p.row_terms - row % p.kept.dims[p.kept.rank - 1] * p.n;
  return min(rest, p.n);
}

template <class Fn, class T>
void reduce_parts_of(const ReduceArgs& p, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(p.x);
  T* y = static_cast<T*>(p.y);
  int64_t folded = p.folded.count(), kept = p.kept.count(), each = rows_in_part(p);
  if (p.inner == 1) {
    int64_t row = begin * each, last = min(end * each, kept);
    if constexpr (sizeof(T) >= sizeof(float)) {
      const int64_t stride = p.kept.strides[0];  // the only one: neighbours of one kind are merged
      const bool is_fit = folded == 1 && p.row_terms == 0 && p.kept.rank <= 1 && is_short<T>(p.n);
      for (; is_fit && row + kWidth<T> <= last; row += kWidth<T>)
        reduce_short_rows<Fn>(x + row * stride, stride, p.n, y + row);
    }
    for (; row < last; ++row) y[row] = reduce_rows<Fn>(p, x + offset_of(p.kept, row), folded, terms_of(p, row));
    return;
  }
  for (int64_t part = begin; part < end; ++part) {
    int64_t row = part / result_tiles(p), first = part % result_tiles(p) * kTile;
    int64_t width = min(p.inner - first, kTile);
    reduce_columns<Fn>(p, x + offset_of(p.kept, row) + first, folded, terms_of(p, row), width,
                       y + row * p.inner + first);
  }
}

// Sums and products of integers wrap, so they are computed unsigned.
template <class T>
using Unsigned =
    typename std::conditional_t<std::is_floating_point_v<T>, std::type_identity<T>, std::make_unsigned<T>>::type;

// The roots of the results of these parts.
template <class T>
void take_roots(const ReduceArgs& p, int64_t begin, int64_t end) {
  T* y = static_cast<T*>(p.y);
  auto in_row = [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) y[i] = std::sqrt(y[i]);
  };
  if (p.inner == 1) {
    int64_t each = rows_in_part(p), first = begin * each;
    return in_row(first, min(end * each, p.kept.count()) - first);
  }
  for (int64_t part = begin; part < end; ++part) {
    int64_t row = part / result_tiles(p), first = part % result_tiles(p) * kTile;
    in_row(row * p.inner + first, min(p.inner - first, kTile));
  }
}

template <class T>
void reduce_typed(const ReduceArgs& p, int64_t begin, int64_t end) {
  using Bits = Unsigned<T>;
  if constexpr (std::is_floating_point_v<T>) {
    if (p.squares || p.root) {
      p.squares ? reduce_parts_of<SumOfSquares, T>(p, begin, end) : reduce_parts_of<Sum, T>(p, begin, end);
      return p.root ? take_roots<T>(p, begin, end) : void();
    }
  }
  switch (p.fn) {
    case ReduceFn::kSum: return reduce_parts_of<Sum, Bits>(p, begin, end);
    case ReduceFn::kProd: return reduce_parts_of<Prod, Bits>(p, begin, end);
    case ReduceFn::kMax: return reduce_parts_of<Max, T>(p, begin, end);
    case ReduceFn::kMin: return reduce_parts_of<Min, T>(p, begin, end);
  }
}

inline void reduce_run(const ReduceArgs& p, int64_t begin, int64_t end) {
  if (p.dtype == DType::kBool && p.fn == ReduceFn::kMax) return reduce_parts_of<Any, uint8_t>(p, begin, end);
  if (p.dtype == DType::kBool) return reduce_parts_of<All, uint8_t>(p, begin, end);
  visit<kReduced>(p.dtype, [&]<class T>() { reduce_typed<T>(p, begin, end); });
}

// ---- running folds: a part is a tile of lines side by side, or some lines of adjacent elements

inline int64_t line_tiles(const CumulativeArgs& p) {
  return ceil_div(p.inner, kTile);
}
inline int64_t cumulate_parts(const CumulativeArgs& p) {
  return p.n ? p.outer * line_tiles(p) : 0;
}

template <class T>
using Running = std::conditional_t<std::is_floating_point_v<T>, double, T>;

// Lines side by side, whose folds stay in registers: kVectors vectors of them.
template <class Fn, class T, int kVectors, int64_t kEach>
void cumulate_lines(const CumulativeArgs& p, const T* x, T* y) {
  using Wide [[gnu::vector_size(kEach * sizeof(Running<T>))]] = Running<T>;
  using Narrow [[gnu::vector_size(kEach * sizeof(T))]] = T;
  const int64_t step = p.reverse ? -p.inner : p.inner, first = p.reverse ? (p.n - 1) * p.inner : 0;
  Wide running[kVectors];
  RLX_UNROLL for (Wide& it : running) it = Wide{} + Fn::template kIdentity<Running<T>>;
  for (int64_t i = 0, at = first; i < p.n; ++i, at += step) {
    RLX_UNROLL for (int v = 0; v < kVectors; ++v) {
      Narrow terms;
      __builtin_memcpy(&terms, x + at + v * kEach, sizeof terms);
      const Wide before = running[v];
      running[v] = Fn::join(before, __builtin_convertvector(terms, Wide));
      terms = __builtin_convertvector(p.exclusive ? before : running[v], Narrow);
      __builtin_memcpy(y + at + v * kEach, &terms, sizeof terms);
    }
  }
}

template <class Fn, class T>
void cumulate_parts_of(const CumulativeArgs& p, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; ++part) {
    int64_t first = part % line_tiles(p) * kTile, at = part / line_tiles(p) * p.n * p.inner + first;
    int64_t width = min(p.inner - first, kTile);
    const T* x = static_cast<const T*>(p.x) + at;
    T* y = static_cast<T*>(p.y) + at;
    constexpr int kVectors = 8;
    constexpr int64_t kEach = sizeof(Vec) / sizeof(Running<T>), kHalf = kEach / 2;
    int64_t line = 0;
    for (; line + kVectors * kEach <= width; line += kVectors * kEach)
      cumulate_lines<Fn, T, kVectors, kEach>(p, x + line, y + line);
    for (; line + kEach <= width; line += kEach) cumulate_lines<Fn, T, 1, kEach>(p, x + line, y + line);
    for (; line + kHalf <= width; line += kHalf) cumulate_lines<Fn, T, 1, kHalf>(p, x + line, y + line);
    for (; line < width; ++line) cumulate_lines<Fn, T, 1, 1>(p, x + line, y + line);
  }
}

// Calls run<Fn, T>().
template <class Run>
void visit_fold(const CumulativeArgs& p, Run&& run) {
  if (p.dtype == DType::kBool && p.fn == ReduceFn::kMax) return run.template operator()<Any, uint8_t>();
  if (p.dtype == DType::kBool) return run.template operator()<All, uint8_t>();
  visit<kReduced>(p.dtype, [&]<class T>() {
    using Bits = Unsigned<T>;
    switch (p.fn) {
      case ReduceFn::kSum: return run.template operator()<Sum, Bits>();
      case ReduceFn::kProd: return run.template operator()<Prod, Bits>();
      case ReduceFn::kMax: return run.template operator()<Max, T>();
      case ReduceFn::kMin: return run.template operator()<Min, T>();
    }
  });
}

inline void cumulate_run(const CumulativeArgs& p, int64_t begin, int64_t end) {
  visit_fold(p, [&]<class Fn, class T>() { cumulate_parts_of<Fn, T>(p, begin, end); });
}

// ---- running folds of adjacent elements: a chain is a piece of a line, and a part some chains, which run in turns, as
// each step of one waits for the step before

inline constexpr int64_t kChains = 4;

template <class Fn, class T>
struct Chain {
  using Wide = Running<T>;
  const T* x;
  T* y;
  int64_t n;
  Wide running = Fn::template kIdentity<Wide>;

  Chain() = default;
  Chain(const CumulativeArgs& p, int64_t index) {
    Pieces pieces = line_pieces(p.outer, p.n);
    int64_t from = index % pieces.count * pieces.size, line = index / pieces.count * p.n;
    n = min(p.n - from, pieces.size);
    int64_t first = line + (p.reverse ? p.n - 1 - from : from);
    x = static_cast<const T*>(p.x) + first;
    y = static_cast<T*>(p.y) + first;
  }
};

inline int64_t chain_count(const CumulativeArgs& p) {
  return p.n ? p.outer * line_pieces(p.outer, p.n).count : 0;
}
inline int64_t chains_in_part(const CumulativeArgs& p) {
  int64_t n = line_pieces(p.outer, p.n).size;
  return n < kLinePiece / 2 ? kLinePiece / 2 / n * kChains : kChains;
}
inline int64_t lines_parts(const CumulativeArgs& p) {
  int64_t chains = chain_count(p);
  return chains ? ceil_div(chains, chains_in_part(p)) : 0;
}

template <class Fn, class T>
void find_totals(const CumulativeArgs& p, int64_t begin, int64_t end) {
  using Wide = typename Chain<Fn, T>::Wide;
  for (int64_t index = begin; index < end; ++index) {
    Chain<Fn, T> chain(p, index);
    const T* x = p.reverse ? chain.x - chain.n + 1 : chain.x;
    Wide sums[8];
    for (Wide& sum : sums) sum = Fn::template kIdentity<Wide>;
    int64_t i = 0;
    for (; i + 8 <= chain.n; i += 8)
      for (int64_t k = 0; k < 8; ++k) sums[k] = Fn::join(sums[k], static_cast<Wide>(x[i + k]));
    for (; i < chain.n; ++i) sums[0] = Fn::join(sums[0], static_cast<Wide>(x[i]));
    for (int64_t k = 1; k < 8; ++k) sums[0] = Fn::join(sums[0], sums[k]);
    static_cast<Wide*>(p.totals)[index] = sums[0];
  }
}
inline void totals_run(const CumulativeArgs& p, int64_t begin, int64_t end) {
  visit_fold(p, [&]<class Fn, class T>() { find_totals<Fn, T>(p, begin, end); });
}

template <class Fn, class T, int kCount>
void run_chains(const CumulativeArgs& p, Chain<Fn, T>* chains, int64_t begin, int64_t end) {
  using Wide = typename Chain<Fn, T>::Wide;
  int64_t step = p.reverse ? -1 : 1;
  for (int64_t i = begin; i < end; ++i) {
    RLX_UNROLL for (int c = 0; c < kCount; ++c) {
      Chain<Fn, T>& chain = chains[c];
      Wide before = chain.running;
      chain.running = Fn::join(before, static_cast<Wide>(chain.x[i * step]));
      chain.y[i * step] = static_cast<T>(p.exclusive ? before : chain.running);
    }
  }
}

template <class Fn, class T>
void cumulate_chains(const CumulativeArgs& p, int64_t begin, int64_t end) {
  using Wide = typename Chain<Fn, T>::Wide;
  int64_t pieces = line_pieces(p.outer, p.n).count;
  for (int64_t first = begin; first < end; first += kChains) {
    Chain<Fn, T> chains[kChains];
    int64_t count = min(end - first, kChains), common = count == kChains ? p.n : 0;
    for (int64_t c = 0; c < count; ++c) {
      int64_t index = first + c;
      chains[c] = Chain<Fn, T>(p, index);
      for (int64_t before = index - index % pieces; before < index; ++before)
        chains[c].running = Fn::join(chains[c].running, static_cast<const Wide*>(p.totals)[before]);
      if (chains[c].n < common) common = chains[c].n;
    }
    run_chains<Fn, T, kChains>(p, chains, 0, common);
    for (int64_t c = 0; c < count; ++c) run_chains<Fn, T, 1>(p, chains + c, common, chains[c].n);
  }
}
inline void lines_run(const CumulativeArgs& p, int64_t begin, int64_t end) {
  int64_t each = chains_in_part(p), chains = chain_count(p), last = min(end * each, chains);
  visit_fold(p, [&]<class Fn, class T>() { cumulate_chains<Fn, T>(p, begin * each, last); });
}

inline constexpr ReduceFns kReduce = {
    {cumulate_parts, cumulate_run}, {chain_count, totals_run}, {lines_parts, lines_run}, {reduce_parts, reduce_run}};
