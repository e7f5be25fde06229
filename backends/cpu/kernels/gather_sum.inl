// SPDX-License-Identifier: Apache-2.0
// Where elements of an axis are rows, a part is some rows of y, made of whole rows of x. Along the last axis a part is
// some lines of x for all outputs: positions and weights are laid out tap by tap for a vector of outputs at a time.

inline constexpr int64_t kSumLines = 16;   // of a part
inline constexpr int64_t kSumTaps = 16;    // that are laid out at once
inline constexpr int64_t kSumWidth = 256;  // outputs, too

template <class Args>
inline int64_t index_at(const Args& p, int64_t at) {
  int64_t i = p.index_is_i64 ? static_cast<const int64_t*>(p.index)[at] : static_cast<const int32_t*>(p.index)[at];
  return i < 0 ? 0 : i < p.n ? i : p.n - 1;
}

inline int64_t gather_sum_parts(const GatherSumArgs& p) {
  if (p.count == 0 || p.inner == 0) return 0;
  return p.inner == 1 ? (p.outer + kSumLines - 1) / kSumLines : p.outer * p.count;
}

// ---- rows

inline void sum_rows(const GatherSumArgs& p, int64_t part) {
  const float* x = p.x + part / p.count * p.n * p.inner;
  int64_t first = part % p.count * p.taps;
  float* y = p.y + part * p.inner;
  if (p.taps == 0) {
    for (int64_t c = 0; c < p.inner; c += kLanes) store_some(y + c, Vec{}, p.inner - c);
  }
  for (int64_t t = 0; t < p.taps; t += kSumTaps) {
    const float* rows[kSumTaps];
    int64_t taps = min(p.taps - t, kSumTaps);
    for (int64_t i = 0; i < taps; ++i) rows[i] = x + index_at(p, first + t + i) * p.inner;
    const float* weight = p.weight + first + t;
    for (int64_t c = 0; c < p.inner; c += kLanes) {
      Vec sum = t == 0 ? Vec{} : load_some(y + c, p.inner - c);
      for (int64_t i = 0; i < taps; ++i) sum = fma(load_some(rows[i] + c, p.inner - c), weight[i], sum);
      store_some(y + c, sum, p.inner - c);
    }
  }
}

// ---- single elements

inline Vec pick(const float* x, const int32_t* at) {
#if RLX_ISA == 2
  return _mm512_i32gather_ps(_mm512_loadu_si512(at), x, 4);
#elif RLX_ISA == 1
  return _mm256_i32gather_ps(x, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)), 4);
#else
  Vec v{};
  for (int i = 0; i < kLanes; ++i) v[i] = x[at[i]];
  return v;
#endif
}

// The taps [tap, tap + taps) of the outputs [first, first + outputs), and no weight behind the last.
struct SumTaps {
  alignas(64) int32_t at[kSumTaps][kSumWidth];
  alignas(64) float weight[kSumTaps][kSumWidth];
};
inline void lay_out(const GatherSumArgs& p, int64_t first, int64_t outputs, int64_t tap, int64_t taps, SumTaps& to) {
  int64_t whole = (outputs + kLanes - 1) / kLanes * kLanes;
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t o = 0; o < whole; ++o) {
      int64_t at = (first + o) * p.taps + tap + t;
      to.at[t][o] = o < outputs ? static_cast<int32_t>(index_at(p, at)) : 0;
      to.weight[t][o] = o < outputs ? p.weight[at] : 0;
    }
  }
}

// Adds the listed taps to some outputs of a line, or with `is_first` sets these to their sums.
inline void add_taps(const float* x, const SumTaps& list, int64_t taps, bool is_first, float* y, int64_t outputs) {
  for (int64_t o = 0; o < outputs; o += kLanes) {
    Vec sum = is_first ? Vec{} : load_some(y + o, outputs - o);
    for (int64_t t = 0; t < taps; ++t) sum = fma(pick(x, list.at[t] + o), load(list.weight[t] + o), sum);
    store_some(y + o, sum, outputs - o);
  }
}

inline void sum_lines(const GatherSumArgs& p, int64_t part) {
  SumTaps list;
  int64_t begin = part * kSumLines, end = min(begin + kSumLines, p.outer);
  for (int64_t first = 0; first < p.count; first += kSumWidth) {
    int64_t outputs = min(p.count - first, kSumWidth), tap = 0;
    do {
      int64_t taps = min(p.taps - tap, kSumTaps);
      lay_out(p, first, outputs, tap, taps, list);
      for (int64_t line = begin; line < end; ++line)
        add_taps(p.x + line * p.n, list, taps, tap == 0, p.y + line * p.count + first, outputs);
      tap += kSumTaps;
    } while (tap < p.taps);
  }
}

inline void gather_sum_run(const GatherSumArgs& p, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; ++part) p.inner == 1 ? sum_lines(p, part) : sum_rows(p, part);
}

// ---- elements of a plane: a part is some lines

inline constexpr int64_t kPlanePart = 16384;  // elements, about

inline int64_t plane_lines(const GatherPlaneArgs& p) {
  return p.columns.count < kPlanePart && p.columns.count > 0 ? kPlanePart / p.columns.count : 1;
}
inline int64_t plane_parts(const GatherPlaneArgs& p) {
  return p.columns.count == 0 ? 0 : (p.outer * p.rows.count + plane_lines(p) - 1) / plane_lines(p);
}

// Where a line's vectors of outputs are read. Enlarging names neighbours in order: then they lie in one vector of x.
struct PlaneColumns {
  alignas(64) int32_t at[kSumWidth];  // from the place where the vector of x begins, or from 0 if one is not enough
  int64_t from[kSumWidth / kLanes];   // -1: one is not enough
};
inline void lay_out(const GatherPlaneArgs::Axis& columns, int64_t first, int64_t outputs, PlaneColumns& to) {
  for (int64_t o = 0; o < outputs; o += kLanes) {
    int64_t lo = columns.n, hi = 0, some = min(outputs - o, kLanes);
    for (int64_t i = 0; i < kLanes; ++i) {
      int64_t at = index_at(columns, first + o + min(i, some - 1));
      to.at[o + i] = static_cast<int32_t>(at);
      lo = min(at, lo);
      hi = max(at, hi);
    }
    to.from[o / kLanes] = hi - lo < kLanes ? lo : -1;
    for (int64_t i = 0; i < kLanes && hi - lo < kLanes; ++i) to.at[o + i] -= static_cast<int32_t>(lo);
  }
}

inline Vec pick_near(Vec v, const int32_t* at) {
#if RLX_ISA == 2
  return _mm512_permutexvar_ps(_mm512_load_si512(at), v);
#elif RLX_ISA == 1
  return _mm256_permutevar8x32_ps(v, _mm256_load_si256(reinterpret_cast<const __m256i*>(at)));
#else
  Vec picked;
  for (int i = 0; i < kLanes; ++i) picked[i] = v[at[i]];
  return picked;
#endif
}

// Writes some outputs of `copies` lines that follow one another.
inline void write_lines(const GatherPlaneArgs& p, const PlaneColumns& list, const float* x, float* y, int64_t outputs,
                        int64_t copies) {
  in_vectors(outputs, [&](int64_t o, int64_t some) {
    int64_t from = list.from[o / kLanes];
    Vec v = from < 0 ? pick(x, list.at + o) : pick_near(load_some(x + from, p.columns.n - from), list.at + o);
    for (int64_t i = 0; i < copies; ++i) store_some(y + i * p.columns.count + o, v, some);
  });
}

inline void plane_run(const GatherPlaneArgs& p, int64_t begin, int64_t end) {
  PlaneColumns list;
  int64_t lines = p.outer * p.rows.count, stop = min(end * plane_lines(p), lines);
  for (int64_t first = 0; first < p.columns.count; first += kSumWidth) {
    int64_t outputs = min(p.columns.count - first, kSumWidth);
    lay_out(p.columns, first, outputs, list);
    int64_t line = begin * plane_lines(p), row = line % p.rows.count;
    const float* x = p.x + line / p.rows.count * p.rows.n * p.columns.n;
    for (int64_t copies; line < stop; line += copies) {
      int64_t at = index_at(p.rows, row), left = min(p.rows.count - row, stop - line);
      for (copies = 1; copies < left && index_at(p.rows, row + copies) == at;) ++copies;
      write_lines(p, list, x + at * p.columns.n, p.y + line * p.columns.count + first, outputs, copies);
      row += copies;
      if (row == p.rows.count) row = 0, x += p.rows.n * p.columns.n;
    }
  }
}

inline constexpr GatherSumFns kGatherSum = {{gather_sum_parts, gather_sum_run}, {plane_parts, plane_run}};
