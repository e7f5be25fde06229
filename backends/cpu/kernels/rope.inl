// SPDX-License-Identifier: Apache-2.0
// Rope: a part is a few positions, each with all its heads, because the heads share a row of the tables.

inline constexpr int64_t kPartElements = 16384;

inline int64_t positions_per_part(const RopeArgs& p) {
  int64_t elements = p.heads * p.d;
  return elements >= kPartElements || elements == 0 ? 1 : kPartElements / elements;
}
inline int64_t rope_parts(const RopeArgs& p) {
  int64_t each = positions_per_part(p);
  return ceil_div(p.batch * p.seq, each);
}

// Pairs (a, b) become (a cos - b sin, b cos + a sin); `sign` is that of sin.
inline void rotate_halves(const float* x, float* y, const float* cos, const float* sin, int64_t pairs, float sign) {
  for (int64_t i = 0; i < pairs; i += kLanes) {
    int64_t lanes = pairs - i;
    Vec a = load_some(x + i, lanes), b = load_some(x + pairs + i, lanes);
    Vec c = load_some(cos + i, lanes), s = load_some(sin + i, lanes) * sign;
    store_some(y + i, a * c - b * s, lanes);
    store_some(y + pairs + i, b * c + a * s, lanes);
  }
}
// Each of the lanes of the lower or upper half twice, one behind the other.
template <int First, int... I>
inline Vec twice(Vec v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (First + I / 2)...);
}
template <int... I>
inline Vec swap_neighbours(Vec v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ 1)...);
}
// Rotates kLanes pairs, which are neighbours.
inline void rotate_two_vectors(const float* x, float* y, Vec cos, Vec sin) {
  constexpr auto kEach = std::make_integer_sequence<int, kLanes>();
  constexpr int kUpper = kLanes / 2;
  Vec first = load(x), second = load(x + kLanes);
  Vec low = first * twice<0>(cos, kEach), high = second * twice<kUpper>(cos, kEach);
  Int even = splat(INT32_MIN);  // flips the sign of sin for the first of each pair
  RLX_UNROLL for (int i = 1; i < kLanes; i += 2) even[i] = 0;
  Vec low_sin = from_bits(bits(twice<0>(sin, kEach)) ^ even),
      high_sin = from_bits(bits(twice<kUpper>(sin, kEach)) ^ even);
  store(y, low + swap_neighbours(first, kEach) * low_sin);
  store(y + kLanes, high + swap_neighbours(second, kEach) * high_sin);
}
inline void rotate_neighbours(const float* x, float* y, const float* cos, const float* sin, int64_t pairs, float sign) {
  int64_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes)
    rotate_two_vectors(x + 2 * i, y + 2 * i, load(cos + i), load(sin + i) * sign);
  for (; i < pairs; ++i) {
    float a = x[2 * i], b = x[2 * i + 1], c = cos[i], s = sin[i] * sign;
    y[2 * i] = a * c - b * s;
    y[2 * i + 1] = b * c + a * s;
  }
}

inline void rope_run(const RopeArgs& p, int64_t begin, int64_t end) {
  int64_t each = positions_per_part(p), positions = p.batch * p.seq;
  int64_t last = min(end * each, positions), rotated = 2 * p.pairs;
  auto rotate = p.interleaved ? rotate_neighbours : rotate_halves;
  for (int64_t at = begin * each; at < last; ++at) {
    int64_t b = at / p.seq, s = at % p.seq;
    const float* cos = p.cos.data + b * p.cos.batch_stride + s * p.cos.seq_stride;
    const float* sin = p.sin.data + b * p.sin.batch_stride + s * p.sin.seq_stride;
    for (int64_t h = 0; h < p.heads; ++h) {
      const float* x = p.x + b * p.x_strides.batch + s * p.x_strides.seq + h * p.x_strides.head;
      float* y = p.y + b * p.y_strides.batch + s * p.y_strides.seq + h * p.y_strides.head;
      rotate(x, y, cos, sin, p.pairs, p.inverse ? -1.0f : 1.0f);
      if (p.d > rotated) __builtin_memcpy(y + rotated, x + rotated, (p.d - rotated) * sizeof(float));
    }
  }
}

inline constexpr RopeFns kRope = {{rope_parts, rope_run}};
