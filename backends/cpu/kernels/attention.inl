// SPDX-License-Identifier: Apache-2.0
// One block of queries of one head against its keys, kKeyBlock at a time, with a running maximum and sum (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018). Everything is transposed, with one query per lane.
// Then scores = K Q^T and y^T = V^T P^T are register tiles that read K and V in place, and a softmax runs down the rows
// without work across lanes.

#include "backends/cpu/gemm/tile.inl"

inline constexpr int64_t kKeyBlock = 256;
inline constexpr int64_t kMaxDepth = 256;  // elements of a head handled at a time

struct QueryBlock {
  const AttentionArgs& p;
  const float *q, *k, *v;  // of this batch and head, q at the block's first query
  int64_t batch, head;
  int64_t first, count;  // queries
  int64_t keys;          // the number of valid keys
  int64_t offset;        // query i has key position i + offset
  int vecs;              // per row of lanes
  int64_t width() const { return vecs * kLanes; }
};

struct AttentionTiles {
  alignas(64) float q[kMaxDepth * 2 * kLanes];       // [element][query]
  alignas(64) float scores[kKeyBlock * 2 * kLanes];  // [key][query]: scores, then weights
  alignas(64) float y[kMaxDepth * 2 * kLanes];       // [element][query]
  Vec largest[2], sum[2], rescale[2];
};

inline int query_vecs(const AttentionArgs& p) {
  return p.q_len > kLanes ? 2 : 1;
}

inline QueryBlock query_block(const AttentionArgs& p, int64_t part) {
  int vecs = query_vecs(p);
  int64_t width = vecs * kLanes, blocks = ceil_div(p.q_len, width);
  int64_t first = part % blocks * width, head = part / blocks % p.q_heads, batch = part / blocks / p.q_heads;
  int64_t kv_head = head / (p.q_heads / p.kv_heads), keys = p.k_len;
  if (p.kv_len) {
    int64_t given = p.kv_len_is_i64 ? static_cast<const int64_t*>(p.kv_len)[batch]
                                    : int64_t{static_cast<const int32_t*>(p.kv_len)[batch]};
    keys = given < 0 ? 0 : min(given, keys);
  }
  return {p,
          p.q + batch * p.q_strides.batch + head * p.q_strides.head + first * p.q_strides.seq,
          p.k + batch * p.k_strides.batch + kv_head * p.k_strides.head,
          p.v + batch * p.v_strides.batch + kv_head * p.v_strides.head,
          batch,
          head,
          first,
          min(p.q_len - first, width),
          keys,
          p.upper_left ? 0 : keys - p.q_len,
          vecs};
}

// Loads elements [from, from + depth) of the block's queries, transposed; lanes without a query become zero.
inline void load_queries(const QueryBlock& block, int64_t from, int64_t depth, float* to) {
  for (int64_t c = 0; c < depth; c += kLanes) {
    for (int v = 0; v < block.vecs; ++v) {
      Vec rows[kLanes];
      RLX_UNROLL for (int i = 0; i < kLanes; ++i) {
        int64_t query = v * kLanes + i;
        const float* p = block.q + query * block.p.q_strides.seq + from + c;
        rows[i] = query < block.count ? load_some(p, depth - c) : Vec{};
      }
      transpose(rows);
      for (int i = 0; i < kLanes && c + i < depth; ++i) store(to + (c + i) * block.width() + v * kLanes, rows[i]);
    }
  }
}

// ---- a single query, as of a model that writes token by token ----

// Lanes hold elements of a head here: with a query in each, all but one would be idle.

// The products of q with kLanes keys, of which `count` count.
inline Vec multiply_some_keys(const QueryBlock& block, const float* keys, int64_t count) {
  int64_t d = block.p.d, stride = block.p.k_strides.seq;
  Vec sums[kLanes] = {};
  for (int64_t c = 0; c < d; c += kLanes) {
    Vec q = load_some(block.q + c, d - c);
    RLX_UNROLL for (int i = 0; i < kLanes; ++i) sums[i] =
        fma(load_some(keys + (i < count ? i : 0) * stride + c, d - c), q, sums[i]);
  }
  transpose(sums);
  RLX_UNROLL for (int half = kLanes / 2; half > 0; half /= 2) RLX_UNROLL for (int i = 0; i < half; ++i) sums[i] +=
      sums[i + half];
  return sums[0];
}
inline void multiply_keys_by_one(const QueryBlock& block, int64_t begin, int64_t count, AttentionTiles& tiles) {
  for (int64_t j = 0; j < count; j += kLanes) {
    Vec products = multiply_some_keys(block, block.k + (begin + j) * block.p.k_strides.seq, count - j);
    for (int64_t i = 0; i < kLanes && j + i < count; ++i) {
      Vec score{};
      score[0] = products[i];
      store(tiles.scores + (j + i) * kLanes, score);
    }
  }
}

// y += P V, Vecs vectors of elements at a time.
template <int Vecs>
inline void multiply_some_values(const QueryBlock& block, const float* values, int64_t count, int64_t depth,
                                 const float* weights, float* y) {
  Vec sums[Vecs] = {};
  for (int64_t j = 0; j < count; ++j) {
    Vec weight = splat(weights[j * kLanes]);
    const float* row = values + j * block.p.v_strides.seq;
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) sums[v] =
        fma(load_some(row + v * kLanes, depth - v * kLanes), weight, sums[v]);
  }
  for (int64_t e = 0; e < Vecs * kLanes && e < depth; ++e) y[e * kLanes] += sums[e / kLanes][e % kLanes];
}
inline void multiply_values_by_one(const QueryBlock& block, const float* values, int64_t count, int64_t depth,
                                   AttentionTiles& tiles) {
  constexpr int kWide = 4;
  for (int64_t e = 0; e < depth;) {
    bool wide = depth - e > (kWide - 1) * kLanes;
    (wide ? multiply_some_values<kWide> : multiply_some_values<1>)(block, values + e, count, depth - e, tiles.scores,
                                                                   tiles.y + e * kLanes);
    e += wide ? kWide * kLanes : kLanes;
  }
}

// ---- several queries, one in each lane ----

// scores = Q K^T for keys [begin, begin + count)
inline void multiply_keys(const QueryBlock& block, int64_t begin, int64_t count, AttentionTiles& tiles) {
  if (block.p.q_len == 1) return multiply_keys_by_one(block, begin, count, tiles);
  int64_t d = block.p.d, width = block.width(), from = 0, stride = block.p.k_strides.seq;
  do {
    int64_t depth = min(d - from, kMaxDepth);
    load_queries(block, from, depth, tiles.q);
    for_each_tile(count, block.vecs, [&](int64_t row, int64_t, TileFn fn) {
      fn({block.k + (begin + row) * stride + from, stride, 1, tiles.q, width, depth, tiles.scores + row * width, width,
          tiles.q},
         from > 0);
    });
    from += depth;
  } while (from < d);
}

// Lanes [0, n) of an operand with a stride between queries; the other lanes are zero.
template <class T>
inline Vec gather_lanes(const T* p, int64_t stride, int64_t n) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n && i < kLanes; ++i) lanes[i] = static_cast<float>(p[i * stride]);
  return load(lanes);
}

// Which keys the queries of a vector may attend to, by causality and windows.
struct Reach {
  Int lo, hi;  // each query may attend to keys [lo, hi]
};
inline Reach reach(const QueryBlock& block, int v) {
  const AttentionArgs& p = block.p;
  int64_t right = p.causal ? 0 : p.window_right;
  Reach r;
  for (int i = 0; i < kLanes; ++i) {
    int64_t at = block.first + v * kLanes + i + block.offset;
    int64_t lo = p.window_left < 0 ? 0 : at - p.window_left, hi = right < 0 ? block.keys : at + right;
    r.lo[i] = static_cast<int32_t>(lo < 0 ? 0 : min(lo, block.keys));
    r.hi[i] = static_cast<int32_t>(hi < -1 ? -1 : min(hi, block.keys));
  }
  return r;
}

struct Limits {
  Reach reach[2];
  Vec position[2];
  bool reaches;  // some query may not attend to some key
};

// Which queries of a vector may attend to this key (semantics.md A3).
inline Int allowed(const QueryBlock& block, const Limits& limits, int v, int64_t key) {
  const AttentionArgs& p = block.p;
  Int yes = ~Int{};
  if (p.mask) {
    const ScoreStrides& m = p.mask_strides;
    int64_t query = block.first + v * kLanes, lanes = block.count - v * kLanes;
    const uint8_t* at = p.mask + block.batch * m.batch + block.head * m.head + query * m.query + key * m.key;
    Vec attend = m.query == 0 ? splat(static_cast<float>(*at)) : gather_lanes(at, m.query, lanes);
    yes = attend != splat(0.0f);
  }
  if (limits.reaches) {
    Int j = splat(static_cast<int32_t>(key));
    yes &= (j >= limits.reach[v].lo) & (j <= limits.reach[v].hi);
  }
  return yes;
}

// The score of one vector of queries and one key (semantics.md A1).
inline Vec adjust(const QueryBlock& block, const Limits& limits, int v, int64_t key, Vec s) {
  const AttentionArgs& p = block.p;
  int64_t query = block.first + v * kLanes, lanes = block.count - v * kLanes;
  s *= p.scale;
  if (p.softcap > 0) s = p.softcap * tanh(s / p.softcap);
  if (p.alibi) s -= p.alibi[block.head] * abs(limits.position[v] - static_cast<float>(key));
  if (p.bias) {
    const ScoreStrides& b = p.bias_strides;
    const float* at = p.bias + block.batch * b.batch + block.head * b.head + query * b.query + key * b.key;
    s += b.query == 0 ? splat(*at) : gather_lanes(at, b.query, lanes);
  }
  return p.mask || limits.reaches ? select(allowed(block, limits, v, key), s, splat(-kInf)) : s;
}

// If no term depends on both query and key, a score is scale * (q k) + addend[key]. A masked key with NaN gives NaN
// here, which makes the block run again in the careful form.
inline bool has_addends(const AttentionArgs& p) {
  return p.softcap == 0 && !p.alibi && (!p.bias || p.bias_strides.query == 0) && (!p.mask || p.mask_strides.query == 0);
}
inline void fill_addends(const QueryBlock& block, int64_t begin, int64_t count, float* addends) {
  const AttentionArgs& p = block.p;
  const ScoreStrides &b = p.bias_strides, &m = p.mask_strides;
  for (int64_t j = 0; j < count; ++j) {
    int64_t key = begin + j;
    addends[j] = p.bias ? p.bias[block.batch * b.batch + block.head * b.head + key * b.key] : 0;
    if (p.mask && !p.mask[block.batch * m.batch + block.head * m.head + key * m.key]) addends[j] = -kInf;
  }
}

// Adjusts the scores of keys [begin, begin + count) in place, and updates the running maximum.
inline void adjust_block(const QueryBlock& block, const Limits& limits, int64_t begin, int64_t count,
                         AttentionTiles& tiles) {
  int64_t width = block.width();
  for (int v = 0; v < block.vecs; ++v) {
    float* column = tiles.scores + v * kLanes;
    for (int64_t j = 0; j < count; ++j) {
      Vec s = adjust(block, limits, v, begin + j, load(column + j * width));
      store(column + j * width, s);
      tiles.largest[v] = raw_max(tiles.largest[v], s);  // the maximum may lose a NaN, but its weight is NaN again
    }
  }
}
template <int Vecs>
void adjust_block_by_addends(const QueryBlock& block, int64_t begin, int64_t count, AttentionTiles& tiles) {
  float addends[kKeyBlock];
  fill_addends(block, begin, count, addends);
  Vec scale = splat(block.p.scale), largest[Vecs];
  for (int v = 0; v < Vecs; ++v) largest[v] = tiles.largest[v];
  for (int64_t j = 0; j < count; ++j) {
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
      float* at = tiles.scores + (j * Vecs + v) * kLanes;
      Vec s = fma(load(at), scale, splat(addends[j]));
      store(at, s);
      largest[v] = raw_max(largest[v], s);
    }
  }
  for (int v = 0; v < Vecs; ++v) tiles.largest[v] = largest[v];
}

// Turns scores into weights, and updates the running sum; earlier sums must be scaled to the new maximum. In the
// careful form a weight of -0 marks a key that the query may not attend to.
template <int Vecs, bool Careful>
void weigh(const QueryBlock& block, const Limits& limits, int64_t begin, int64_t count, const Vec* before,
           AttentionTiles& tiles) {
  Vec base[Vecs], sum[Vecs] = {};
  for (int v = 0; v < Vecs; ++v) base[v] = select(tiles.largest[v] == splat(-kInf), splat(0.0f), tiles.largest[v]);
  for (int64_t j = 0; j < count; ++j) {
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
      float* at = tiles.scores + (j * Vecs + v) * kLanes;
      Vec s = load(at), weight = exp2_near(raw_max(splat(-160.0f), (s - base[v]) * kLog2E));
      if (Careful) weight = select(allowed(block, limits, v, begin + j), weight, splat(-0.0f));
      store(at, weight);
      sum[v] += weight;
    }
  }
  for (int v = 0; v < Vecs; ++v) {
    tiles.rescale[v] = exp(before[v] - base[v]);
    tiles.sum[v] = fma(tiles.sum[v], tiles.rescale[v], sum[v]);
  }
}

template <bool Careful>
inline void softmax_block(const QueryBlock& block, const Limits& limits, int64_t begin, int64_t count,
                          AttentionTiles& tiles) {
  Vec before[2] = {tiles.largest[0], tiles.largest[1]};
  bool one = block.vecs == 1;
  if (Careful || limits.reaches || !has_addends(block.p)) {
    adjust_block(block, limits, begin, count, tiles);
  } else {
    (one ? adjust_block_by_addends<1> : adjust_block_by_addends<2>)(block, begin, count, tiles);
  }
  (one ? weigh<1, Careful> : weigh<2, Careful>)(block, limits, begin, count, before, tiles);
}

inline void rescale(const QueryBlock& block, int64_t depth, AttentionTiles& tiles) {
  for (int64_t e = 0; e < depth; ++e) {
    for (int v = 0; v < block.vecs; ++v) {
      float* y = tiles.y + e * block.width() + v * kLanes;
      store(y, load(y) * tiles.rescale[v]);
    }
  }
}

// y += P V. The careful form leaves out keys that the query may not attend to, because 0 * NaN must not count.
template <bool Careful>
inline void multiply_values(const QueryBlock& block, int64_t begin, int64_t count, int64_t from, int64_t depth,
                            AttentionTiles& tiles) {
  int64_t width = block.width(), stride = block.p.v_strides.seq;
  const float* values = block.v + begin * stride + from;
  if constexpr (!Careful) {
    if (block.p.q_len == 1) return multiply_values_by_one(block, values, count, depth, tiles);
    for_each_tile(depth, block.vecs, [&](int64_t row, int64_t, TileFn fn) {
      fn({values + row, 1, stride, tiles.scores, width, count, tiles.y + row * width, width, tiles.scores}, true);
    });
    return;
  }
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t i = 0; i < width; ++i) {
      float weight = tiles.scores[j * width + i];
      if (weight == 0 && std::signbit(weight)) continue;
      for (int64_t e = 0; e < depth; ++e) tiles.y[e * width + i] += weight * values[j * stride + e];
    }
  }
}

// The result of a query without any key.
inline float empty_value(const QueryBlock& block, int64_t element) {
  const AttentionArgs& p = block.p;
  if (p.empty_row == EmptyRow::kZero || p.sinks || p.k_len == 0) return 0;
  if (p.empty_row == EmptyRow::kNan) return kNan;
  float sum = 0;
  for (int64_t j = 0; j < block.keys; ++j) sum += block.v[j * p.v_strides.seq + element];
  return block.keys == 0 ? 0 : sum / static_cast<float>(block.keys);
}

inline void store_result(const QueryBlock& block, int64_t from, int64_t depth, AttentionTiles& tiles) {
  const AttentionArgs& p = block.p;
  float* y = p.y + block.batch * p.y_strides.batch + block.head * p.y_strides.head;
  for (int v = 0; v < block.vecs; ++v) {
    Int none = (tiles.sum[v] == splat(0.0f)) & (tiles.largest[v] == splat(-kInf));
    Vec inverse = 1.0f / select(tiles.sum[v] == splat(0.0f), splat(1.0f), tiles.sum[v]);
    for (int64_t c = 0; c < depth; c += kLanes) {
      Vec rows[kLanes];
      RLX_UNROLL for (int e = 0; e < kLanes; ++e) {
        rows[e] = c + e < depth ? load(tiles.y + (c + e) * block.width() + v * kLanes) * inverse : Vec{};
      }
      transpose(rows);
      for (int64_t i = 0; i < kLanes && v * kLanes + i < block.count; ++i) {
        float* to = y + (block.first + v * kLanes + i) * p.y_strides.seq + from + c;
        store_some(to, rows[i], depth - c);
        if (!none[i]) continue;
        for (int64_t e = 0; e < kLanes && c + e < depth; ++e) to[e] = empty_value(block, from + c + e);
      }
    }
  }
}

inline Limits limits_of(const QueryBlock& block) {
  const AttentionArgs& p = block.p;
  Limits limits;
  limits.reaches = p.causal || p.window_left >= 0 || p.window_right >= 0;
  for (int v = 0; v < block.vecs; ++v) {
    limits.reach[v] = reach(block, v);
    for (int i = 0; i < kLanes; ++i) {
      limits.position[v][i] = static_cast<float>(block.first + v * kLanes + i + block.offset);
    }
  }
  return limits;
}

// The keys that some query of the block may attend to.
struct KeyRange {
  int64_t begin, end;
};
inline KeyRange key_range(const QueryBlock& block, const Limits& limits) {
  if (!limits.reaches) return {0, block.keys};
  int64_t last = block.count - 1, begin = limits.reach[0].lo[0];
  int64_t end = int64_t{limits.reach[last / kLanes].hi[last % kLanes]} + 1;
  return {begin, min(end, block.keys)};
}

// Computes elements [from, from + depth) of y. Returns false if y has a NaN that may come from a key to which the query
// may not attend.
template <bool Careful>
inline bool attend(const QueryBlock& block, const Limits& limits, int64_t from, int64_t depth, AttentionTiles& tiles) {
  const AttentionArgs& p = block.p;
  int64_t width = block.width();
  for (int v = 0; v < 2; ++v) {
    tiles.largest[v] = splat(p.sinks ? p.sinks[block.head] : -kInf);
    tiles.sum[v] = select(tiles.largest[v] == splat(-kInf), splat(0.0f), splat(1.0f));
  }
  for (int64_t i = 0; i < depth * width; i += kLanes) store(tiles.y + i, Vec{});
  KeyRange keys = key_range(block, limits);
  for (int64_t begin = keys.begin; begin < keys.end; begin += kKeyBlock) {
    int64_t count = min(keys.end - begin, kKeyBlock);
    multiply_keys(block, begin, count, tiles);
    softmax_block<Careful>(block, limits, begin, count, tiles);
    if (begin > keys.begin) rescale(block, depth, tiles);
    multiply_values<Careful>(block, begin, count, from, depth, tiles);
  }
  Int ordered = ~Int{};
  for (int64_t i = 0; i < depth * width; i += kLanes) {
    Vec v = load(tiles.y + i);
    ordered &= v == v;
  }
  return reduce_add(from_bits(~ordered & bits(splat(1.0f)))) == 0;
}

inline void store_lse(const QueryBlock& block, const AttentionTiles& tiles) {
  const AttentionArgs& p = block.p;
  float* lse = p.lse + (block.batch * p.q_heads + block.head) * p.q_len + block.first;
  for (int v = 0; v * kLanes < block.count; ++v) {
    store_some(lse + v * kLanes, tiles.largest[v] + log(tiles.sum[v]), block.count - v * kLanes);
  }
}

inline int64_t attention_parts(const AttentionArgs& p) {
  int64_t width = query_vecs(p) * kLanes;
  return p.batch * p.q_heads * ceil_div(p.q_len, width);
}

inline void attention_run(const AttentionArgs& p, int64_t begin, int64_t end) {
  AttentionTiles tiles;
  for (int64_t part = begin; part < end; ++part) {
    QueryBlock block = query_block(p, part);
    Limits limits = limits_of(block);
    bool hides = limits.reaches || p.mask;
    int64_t from = 0;
    do {
      int64_t depth = min(p.dv - from, kMaxDepth);
      if (!attend<false>(block, limits, from, depth, tiles) && hides) {
        attend<true>(block, limits, from, depth, tiles);
      }
      store_result(block, from, depth, tiles);
      from += depth;
    } while (from < p.dv);
    if (p.lse) store_lse(block, tiles);
  }
}

inline constexpr AttentionFns kAttention = {{attention_parts, attention_run}};
