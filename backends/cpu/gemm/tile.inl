// SPDX-License-Identifier: Apache-2.0
// The register tile under every product: Rows x Vecs accumulators, one broadcast of A against Vecs vectors of B for
// each term. Invariant: a sum is folded into the tile after at most kFold terms.

inline constexpr int64_t kFold = 512;

// What an ending tile makes of its sums: clamp(sum + row_bias[row], lo, hi).
struct TileEnd {
  const float* row_bias;  // or null
  float lo, hi;
};

struct Tile {
  const float* a;  // element (row, term) at a[row * a_row + term * a_col]
  int64_t a_row, a_col;
  const float* b;  // vectors of term t begin at b[t * b_row]
  int64_t b_row;
  int64_t k;
  float* out;  // rows of Vecs vectors, out_row apart
  int64_t out_row;
  const float* next;             // memory to prefetch meanwhile
  const TileEnd* end = nullptr;  // of an ending tile
  int64_t next_step = 16;        // bytes of it for every term, at most 64
};

// Adds terms [0, k) to sums. If there are too few rows to hide the latency of an addition, several chains of
// accumulators take turns.
template <int Rows, int Vecs, int Chains>
[[gnu::always_inline]] inline void sum_terms(const Tile& t, const float* a, const float* b, int64_t k, const char* next,
                                             Vec (&sums)[Rows][Vecs]) {
  // With few rows B streams from memory; with many rows it comes from the second-level cache. Rows far apart are those
  // of an image, read strip by strip: the next strip begins where this one ends.
  constexpr int64_t kStrip = Vecs * kLanes, kFar = 1024;
  const int64_t ahead = t.b_row > kFar ? kStrip : Rows <= 3 ? 4096 / 4 : 16 * kStrip;
  Vec acc[Chains][Rows][Vecs] = {};
  int64_t term = 0;
  auto add_term = [&](int chain) __attribute__((always_inline)) {
    Vec right[Vecs];
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
      right[v] = load(b + v * kLanes);
      __builtin_prefetch(b + v * kLanes + ahead);
    }
    RLX_UNROLL for (int r = 0; r < Rows; ++r) {
      Vec left = splat(a[r * t.a_row]);
      RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[chain][r][v] = fma(left, right[v], acc[chain][r][v]);
    }
    a += t.a_col;
    b += t.b_row;
  };
  for (; term + Chains <= k; term += Chains) {
    __builtin_prefetch(next, 0, 2);
    next += t.next_step * Chains;
    RLX_UNROLL for (int i = 0; i < Chains; ++i) add_term(i);
  }
  for (; term < k; ++term) add_term(0);
  RLX_UNROLL for (int r = 0; r < Rows; ++r) {
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
      sums[r][v] = acc[0][r][v];
      RLX_UNROLL for (int chain = 1; chain < Chains; ++chain) sums[r][v] += acc[chain][r][v];
    }
  }
}

// out = (add ? out : 0) + the products of this tile; with `ends`, what t.end makes of this
template <int Rows, int Vecs, int Chains, bool ends = false>
void tile_product(const Tile& t, bool add) {
  int64_t begin = 0;
  do {
    int64_t count = min(t.k - begin, kFold);
    Vec sums[Rows][Vecs];
    const char* next = reinterpret_cast<const char*>(t.next) + t.next_step * begin;
    sum_terms<Rows, Vecs, Chains>(t, t.a + begin * t.a_col, t.b + begin * t.b_row, count, next, sums);
    const bool is_last = ends && begin + count >= t.k;
    RLX_UNROLL for (int r = 0; r < Rows; ++r) {
      Vec bias = splat(is_last && t.end->row_bias ? t.end->row_bias[r] : -0.0f);
      RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
        float* p = t.out + r * t.out_row + v * kLanes;
        Vec sum = add ? load(p) + sums[r][v] : sums[r][v];
        store(p, is_last ? clamp(sum + bias, t.end->lo, t.end->hi) : sum);
      }
    }
    add = true;
    begin += count;
  } while (begin < t.k);
}

using TileFn = void (*)(const Tile&, bool add);

#if RLX_ISA == 2
inline constexpr int kMaxVecs = 3, kMaxRows = 14;
constexpr int tile_rows(int vecs) {
  return vecs == 3 ? 8 : 14;
}
#else
inline constexpr int kMaxVecs = 2, kMaxRows = 6;
constexpr int tile_rows(int) {
  return 6;
}
#endif

struct TileTable {
  TileFn fns[kMaxVecs + 1][kMaxRows + 1];
};
template <bool ends, int Vecs, int Rows>
constexpr void fill_tiles(TileTable& table) {
  if constexpr (Rows > 0) {
    table.fns[Vecs][Rows] = tile_product<Rows, Vecs, 1, ends>;
    fill_tiles<ends, Vecs, Rows - 1>(table);
  }
}
template <bool ends>
constexpr TileTable make_tiles() {
  TileTable table{};
  fill_tiles<ends, 1, tile_rows(1)>(table);
  fill_tiles<ends, 2, tile_rows(2)>(table);
#if RLX_ISA == 2
  fill_tiles<ends, 3, tile_rows(3)>(table);
#endif
  return table;
}
inline constexpr TileTable kTiles = make_tiles<false>(), kEndingTiles = make_tiles<true>();

// Divides rows [0, rows) of a block into tiles of nearly equal height: calls each(first row, number of rows, tile
// function).
template <class Each>
inline void for_each_tile(int64_t rows, int vecs, Each&& each, const TileTable& tiles = kTiles) {
  int64_t most = tile_rows(vecs), count = rows <= most ? rows > 0 : ceil_div(rows, most);
  for (int64_t i = 0, begin = 0, end; i < count; ++i, begin = end) {
    end = i + 1 == count ? rows : rows * (i + 1) / count;
    each(begin, end - begin, tiles.fns[vecs][end - begin]);
  }
}
