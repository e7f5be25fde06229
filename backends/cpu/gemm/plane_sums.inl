// SPDX-License-Identifier: Apache-2.0
// Sums over the taps of some filters at a time, from the copy of a plane.

inline constexpr int64_t kPlaneSums = 8192;  // of all filters at a time, on the stack
inline constexpr int64_t kPlaneFilters = 4;  // at a time, at most

inline int64_t filters_at_once(int64_t left) {
  return min(left, kPlaneFilters);
}
// Of these, for each filter, in whole vectors.
inline int64_t sums_each(int64_t filters) {
  return filters < 2 ? kPlaneSums : kPlaneSums / filters / kLanes * kLanes;
}

struct PlaneSpan {
  const float *x, *w;
  const int32_t* taps;
  int64_t count, w_filter, w_tap;  // the number of taps; strides of weights
  float* sums;
  int64_t sums_filter;
};

// Adds to Vecs vectors of sums of Filters filters, from `at` on.
template <int Filters, int Vecs>
inline void sum_span(const PlaneSpan& s, int64_t at, bool add) {
  Vec acc[Filters][Vecs] = {};
  for (int64_t tap = 0; tap < s.count; ++tap) {
    const float *from = s.x + s.taps[tap] + at, *w = s.w + tap * s.w_tap;
    Vec right[Vecs];
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) right[v] = load(from + v * kLanes);
    RLX_UNROLL for (int f = 0; f < Filters; ++f) {
      Vec weight = splat(w[f * s.w_filter]);
      RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[f][v] = fma(right[v], weight, acc[f][v]);
    }
  }
  RLX_UNROLL for (int f = 0; f < Filters; ++f) {
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
      float* to = s.sums + f * s.sums_filter + at + v * kLanes;
      store(to, add ? load(to) + acc[f][v] : acc[f][v]);
    }
  }
}
template <int Filters>
void sum_length(const PlaneSpan& s, int64_t length, bool add) {
  constexpr int kVecs = Filters == 1 ? 8 : Filters == 2 || RLX_ISA == 2 ? 4 : 2;
  static_assert(kVecs <= kPlaneSlack);
  int64_t at = 0;
  for (; at + (kVecs - 1) * kLanes < length; at += kVecs * kLanes) sum_span<Filters, kVecs>(s, at, add);
  if constexpr (kVecs == 8) {
    for (; at + 3 * kLanes < length; at += 4 * kLanes) sum_span<Filters, 4>(s, at, add);
  }
  for (; at < length; at += kLanes) sum_span<Filters, 1>(s, at, add);
}
inline void sum_planes(int64_t filters, const PlaneSpan& s, int64_t length, bool add) {
  constexpr decltype(&sum_length<1>) kFns[] = {sum_length<1>, sum_length<2>, sum_length<3>, sum_length<4>};
  kFns[filters - 1](s, length, add);
}
