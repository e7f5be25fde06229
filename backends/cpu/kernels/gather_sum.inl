// SPDX-License-Identifier: Apache-2.0
// Where elements of an axis are rows, a part is some rows of y, made of whole rows of x. Along the last axis a part is
// some lines of x for all outputs: positions and weights are laid out tap by tap for a vector of outputs at a time.

inline constexpr int64_t kSumLines = 16;   // of a part
inline constexpr int64_t kSumTaps = 16;    // that are laid out at once
inline constexpr int64_t kSumWidth = 256;  // outputs, too

inline int64_t index_at(const GatherSumArgs& p, int64_t at) {
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
    int64_t taps = p.taps - t < kSumTaps ? p.taps - t : kSumTaps;
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
  int64_t begin = part * kSumLines, end = begin + kSumLines < p.outer ? begin + kSumLines : p.outer;
  for (int64_t first = 0; first < p.count; first += kSumWidth) {
    int64_t outputs = p.count - first < kSumWidth ? p.count - first : kSumWidth, tap = 0;
    do {
      int64_t taps = p.taps - tap < kSumTaps ? p.taps - tap : kSumTaps;
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

inline constexpr GatherSumFns kGatherSum = {{gather_sum_parts, gather_sum_run}};
