// SPDX-License-Identifier: Apache-2.0
// Packing, and the products built on the register tile. A part is one panel of columns times one block of rows: its
// tile is summed on the stack and stored through the epilogue.

#include "backends/cpu/gemm/finish.inl"

inline constexpr int kGemvRows = 3;

// Vectors per register tile. The width of a panel is a multiple of the tile's.
constexpr int vecs_for(int64_t width) {
  return width % (kMaxVecs * kLanes) == 0 ? kMaxVecs : 2;
}

// Columns that a tile takes. A panel consists of strips of as many columns, [k, strip] each, so that a tile reads
// memory from front to back.
constexpr int64_t strip_of(int64_t width) {
  return vecs_for(width) * kLanes;
}

struct Blocks {
  int64_t count, size;
};
// A product of few terms waits for memory, and the processor fetches ahead from few pages at a time. So the rows of y
// that a block writes, panel by panel, lie in few pages.
inline constexpr int64_t kFewTerms = 64, kFewPages = 32, kLeastRows = 16;
inline int64_t most_rows(int64_t n, int64_t k) {  // whole tiles, or the last block might be empty
  constexpr int64_t kElements = kFewPages * 4096 / sizeof(float);
  if (k > kFewTerms || n <= kElements / kRowBlock) return kRowBlock;
  return n < kElements / kLeastRows ? kElements / n / 8 * 8 : kLeastRows;
}
// Blocks of at most kRowBlock rows and nearly equal size; all but the last are whole tiles high. A single block needs
// no division, which would take a measurable time in the smallest products.
inline Blocks row_blocks(int64_t m, int64_t n, int64_t k) {
  if (m <= kLeastRows) return {m > 0, (m + 7) / 8 * 8};
  int64_t most = most_rows(n, k);
  if (m <= most) return {1, (m + 7) / 8 * 8};
  int64_t count = ceil_div(m, most);
  return {count, ceil_div(ceil_div(m, count), 8) * 8};
}

// ---- packing

inline int64_t pack_parts(const PackArgs& p) {
  return panel_count(p.n);
}

// A square of a transposed piece: kLanes columns of kLanes adjacent terms each.
inline void pack_square(const PackPiece& piece, int64_t t, int64_t c, float* to, int64_t width) {
  Vec square[kLanes];
  for (int i = 0; i < kLanes; ++i) __builtin_memcpy(&square[i], piece.data + (c + i) * piece.n_stride + t, sizeof(Vec));
  transpose(square);
  for (int i = 0; i < kLanes; ++i) store(to + i * width, square[i]);
}

struct Range {
  int64_t begin, end;
};

// Copies columns of a transposed piece to a strip: of each column a cache line at a time.
inline void pack_transposed(const PackPiece& piece, Range terms, Range columns, float* to, int64_t width) {
  constexpr int64_t kTermsAtOnce = 16;
  auto [begin, end] = columns;
  int64_t squares = begin + (end - begin) / kLanes * kLanes, t = terms.begin;
  for (; t + kTermsAtOnce <= terms.end; t += kTermsAtOnce) {
    for (int64_t c = begin; c < squares; c += kLanes)
      for (int64_t i = t; i < t + kTermsAtOnce; i += kLanes)
        pack_square(piece, i, c, to + i * width + c - begin, width);
    for (int64_t c = squares; c < end; ++c)
      for (int64_t i = t; i < t + kTermsAtOnce; ++i) to[i * width + c - begin] = piece.data[i + c * piece.n_stride];
  }
  for (; t < terms.end; ++t)
    for (int64_t c = begin; c < end; ++c) to[t * width + c - begin] = piece.data[t + c * piece.n_stride];
}

// Copies columns of a piece to a strip, row by row.
inline void pack_rows(const PackPiece& piece, Range terms, Range columns, float* to, int64_t width) {
  for (int64_t t = terms.begin; t < terms.end; ++t) {
    const LooseFloat* row = piece.data + t * piece.k_stride;
    float* to_row = to + t * width - columns.begin;
    int64_t c = columns.begin;
    if (piece.n_stride == 1)
      for (; c + kLanes <= columns.end; c += kLanes) __builtin_memcpy(to_row + c, row + c, sizeof(Vec));
    for (; c < columns.end; ++c) to_row[c] = row[c * piece.n_stride];
  }
}

// Copies columns of a piece, whose first column is column `first` of all. A processor prefetches what is read in order,
// so kRowsAtOnce rows are read over all their columns: strip by strip, each row would be read in short pieces. Of a
// transposed piece the columns are contiguous, and it goes strip by strip.
inline void pack_piece(const PackArgs& p, const PackPiece& piece, int64_t first, Range columns, int64_t width) {
  constexpr int64_t kRowsAtOnce = 8;
  bool is_transposed = piece.k_stride == 1;
  int64_t at_once = is_transposed ? p.k : kRowsAtOnce;
  for (int64_t t = 0; t < p.k; t += at_once) {
    Range terms = {t, min(t + at_once, p.k)};
    for (int64_t c = columns.begin, next; c < columns.end; c = next) {
      int64_t strip = (first + c) / width, start = strip * width - first;
      next = min(columns.end, start + width);
      float* to = p.packed + strip * width * p.k + c - start;
      if (is_transposed)
        pack_transposed(piece, terms, {c, next}, to, width);
      else
        pack_rows(piece, terms, {c, next}, to, width);
    }
  }
}

inline void pack_run(const PackArgs& p, int64_t begin, int64_t end) {
  int64_t panel = panel_width(p.n), width = strip_of(panel), lo = begin * panel, hi = end * panel, first = 0;
  for (int64_t c = max(lo, p.n / width * width); c < hi; c += width) {  // strips with columns beyond n
    float* strip = p.packed + c * p.k;
    for (int64_t i = 0; i < width * p.k; ++i) strip[i] = 0;
  }
  for (int i = 0; i < p.piece_count; ++i) {
    const PackPiece& piece = p.pieces[i];
    Range columns = {max(lo - first, 0), min(hi - first, piece.n)};
    if (columns.begin < columns.end) pack_piece(p, piece, first, columns, width);
    first += piece.n;
  }
}

// ---- product with a packed right side

inline int64_t product_parts(const ProductArgs& p) {
  return row_blocks(p.m, p.n, p.k).count * panel_count(p.n);
}

template <int Vecs>
constexpr TileFn gemv_fn(int64_t rows) {
  constexpr int kChainsOfTwo = RLX_ISA == 2 ? 4 : 2;  // as many as registers allow
  constexpr TileFn kFns[] = {tile_product<1, Vecs, 4>, tile_product<2, Vecs, kChainsOfTwo>, tile_product<3, Vecs, 2>};
  return kFns[rows - 1];
}

// ---- rows against vectors with adjacent terms

template <int Rows>
inline void dot_rows(const float* a, int64_t a_row, const float* b, int64_t k, float* sums, int64_t sums_row) {
  double totals[Rows] = {};
  for (int64_t block = 0; block < k; block += kFold * kLanes) {
    int64_t end = min(k, block + kFold * kLanes), t = block;
    Vec acc[2][Rows] = {};
    for (; t + 2 * kLanes <= end; t += 2 * kLanes) {
      RLX_UNROLL for (int chain = 0; chain < 2; ++chain) {
        Vec right = load(b + t + chain * kLanes);
        RLX_UNROLL for (int r = 0; r < Rows; ++r) acc[chain][r] =
            fma(load(a + r * a_row + t + chain * kLanes), right, acc[chain][r]);
      }
    }
    for (; t < end; t += kLanes) {
      Vec right = load_some(b + t, end - t);
      RLX_UNROLL for (int r = 0; r < Rows; ++r) acc[0][r] =
          fma(load_some(a + r * a_row + t, end - t), right, acc[0][r]);
    }
    RLX_UNROLL for (int r = 0; r < Rows; ++r) totals[r] += reduce_add(acc[0][r] + acc[1][r]);
  }
  for (int r = 0; r < Rows; ++r) sums[r * sums_row] = static_cast<float>(totals[r]);
}

// The sum of the lanes of rows[i] in lane i, added in the order of reduce_add.
template <int Width>
inline void add_blocks(Vec (&rows)[kLanes]) {
  RLX_UNROLL for (int r = 0; r < Width; ++r) {
    swap_blocks<Width>(rows[r], rows[r + Width], std::make_integer_sequence<int, kLanes>());
    rows[r] += rows[r + Width];
  }
}
inline Vec add_lanes(Vec (&rows)[kLanes]) {
  if constexpr (kLanes > 8) add_blocks<8>(rows);
  if constexpr (kLanes > 4) add_blocks<4>(rows);
  add_blocks<2>(rows);
  add_blocks<1>(rows);
  return rows[0];
}

// As many rows as there are lanes against one vector of `last` terms after Vectors - 1 whole vectors.
template <int Vectors>
inline Vec dot_shortest(const float* a, int64_t a_row, const Vec (&b)[Vectors], int64_t last) {
  Vec acc[kLanes];
  RLX_UNROLL for (int i = 0; i < kLanes; ++i) {
    const float* left = a + i * a_row;
    acc[i] = Vec{};
    RLX_UNROLL for (int v = 0; v + 1 < Vectors; ++v) acc[i] = fma(load(left + v * kLanes), b[v], acc[i]);
    acc[i] = fma(load_some(left + (Vectors - 1) * kLanes, last), b[Vectors - 1], acc[i]);
  }
  return add_lanes(acc);
}

// Any rows against one vector that stays in registers: returns how many rows are done.
template <int Vectors>
[[gnu::noinline]] int64_t dot_shortest_rows(const float* a, int64_t a_row, int64_t rows, const float* b, int64_t k,
                                            float* sums, int64_t sums_row) {
  const int64_t last = k - (Vectors - 1) * kLanes;
  Vec right[Vectors];
  RLX_UNROLL for (int v = 0; v < Vectors; ++v) right[v] = load_some(b + v * kLanes, k - v * kLanes);
  int64_t r = 0;
  for (; r + kLanes <= rows; r += kLanes) {
    Vec dots = last == kLanes ? dot_shortest(a + r * a_row, a_row, right, kLanes)
                              : dot_shortest(a + r * a_row, a_row, right, last);
    alignas(64) float some[kLanes];
    if (sums_row == 1) {
      store(sums + r, dots);
      continue;
    }
    store(some, dots);
    for (int i = 0; i < kLanes; ++i) sums[(r + i) * sums_row] = some[i];
  }
  return r;
}

// Any rows against one vector, with the sums of dot_rows. Of short rows most time would go into adding lanes.
inline constexpr int64_t kShortDot = 8 * kLanes;
inline void dot_column(const float* a, int64_t a_row, int64_t rows, const float* b, int64_t k, float* sums,
                       int64_t sums_row) {
  int64_t r = 0;
  if (k > 0 && k <= kLanes) r = dot_shortest_rows<1>(a, a_row, rows, b, k, sums, sums_row);
  if (k > kLanes && k < 2 * kLanes) r = dot_shortest_rows<2>(a, a_row, rows, b, k, sums, sums_row);
  for (; k <= kShortDot && r + kLanes <= rows; r += kLanes) {
    Vec acc[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const float* left = a + (r + i) * a_row;
      Vec chains[2] = {};
      int64_t t = 0;
      for (; t + 2 * kLanes <= k; t += 2 * kLanes) {
        RLX_UNROLL for (int c = 0; c < 2; ++c) chains[c] =
            fma(load(left + t + c * kLanes), load(b + t + c * kLanes), chains[c]);
      }
      for (; t < k; t += kLanes) chains[0] = fma(load_some(left + t, k - t), load_some(b + t, k - t), chains[0]);
      acc[i] = chains[0] + chains[1];
    }
    alignas(64) float some[kLanes];
    store(some, add_lanes(acc));
    for (int i = 0; i < kLanes; ++i) sums[(r + i) * sums_row] = some[i];
  }
  for (; r + 4 <= rows; r += 4) dot_rows<4>(a + r * a_row, a_row, b, k, sums + r * sums_row, sums_row);
  for (; r < rows; ++r) dot_rows<1>(a + r * a_row, a_row, b, k, sums + r * sums_row, sums_row);
}

// ---- a panel

// So few columns that most lanes of a tile would be empty: rows against each of them.
inline constexpr int64_t kThinColumns = 4, kThinTerms = 1024, kThinRatio = 8;
inline bool is_thin(const ProductArgs& p) {
  return p.m > kGemvRows && p.n <= kThinColumns && p.k >= kThinRatio * p.n && p.k >= kLanes && p.k <= kThinTerms;
}
// Not inlined: every small product would pay for its frame.
[[gnu::noinline]] inline void thin_block(const ProductArgs& p, int64_t row, int64_t rows, const float* b) {
  alignas(64) float column[kThinTerms], sums[kRowBlock * kTileStride];
  bool to_y = is_plain(p.epilogue);
  float* out = to_y ? p.y + row * p.y_row : sums;
  int64_t strip = strip_of(panel_width(p.n)), out_row = to_y ? p.y_row : kTileStride;
  for (int64_t c = 0; c < p.n; ++c) {
    for (int64_t t = 0; t < p.k; ++t) column[t] = b[t * strip + c];
    dot_column(p.a + row * p.a_row, p.a_row, rows, column, p.k, out + c, out_row);
  }
  if (!to_y) finish(p.epilogue, sums, rows, p.n, corner(p.epilogue, row, 0, p.y, p.y_row));
}

// One panel times rows [row, row + rows) of A. `next` is the next panel, to prefetch, or null. The panel may have more
// terms than the product: those before it and after it lie in other pieces of a sum.
struct Panel {
  const float* data;
  int64_t terms;
  const float* next;
};
inline void product_panel(const ProductArgs& p, int64_t row, int64_t rows, int64_t column, const Panel& panel) {
  if (is_thin(p)) return thin_block(p, row, rows, panel.data);
  alignas(64) float out[kMaxRows * kTileStride];
  int64_t width = panel_width(p.n), strip = strip_of(width);
  int vecs = vecs_for(width);
  for (int64_t c = 0; c < width && column + c < p.n; c += strip) {
    int64_t columns = min(p.n - column - c, strip);
    const float* b = panel.data + c * panel.terms;
    auto product = [&](int64_t r, int64_t count, TileFn fn, float* sums, int64_t sums_row) {
      const float* ahead = panel.next ? panel.next + r * (p.k * width / rows) : panel.data;
      // The tiles of a block share the next panel. A single tile reads its panel from memory itself.
      int64_t step = count == rows ? 16 : min(max(4 * width * count / rows, 16), 64);
      fn({p.a + (row + r) * p.a_row, p.a_row, 1, b, strip, p.k, sums, sums_row, ahead, nullptr, step}, false);
    };
    auto to_y = [&](int64_t r, int64_t count, TileFn fn) {
      product(r, count, fn, p.y + (row + r) * p.y_row + column + c, p.y_row);
    };
    auto to_tile = [&](int64_t r, int64_t count, TileFn fn) {
      product(r, count, fn, out, kTileStride);
      finish(p.epilogue, out, count, columns, corner(p.epilogue, row + r, column + c, p.y, p.y_row));
    };
    auto run = [&](auto&& tile) {
      if (p.m <= kGemvRows) return tile(0, rows, vecs == 2 ? gemv_fn<2>(rows) : gemv_fn<kMaxVecs>(rows));
      int64_t used = ceil_div(columns, kLanes);  // the last strip may have fewer columns
      for_each_tile(rows, static_cast<int>(min(used, vecs)), tile);
    };
    bool is_whole = columns == strip || (p.m > kGemvRows && columns % kLanes == 0);
    if (is_whole && is_plain(p.epilogue))
      run(to_y);
    else
      run(to_tile);
  }
}

// A product of a single tile has no blocks and no panels: finding that out would take longer than the tile.
inline bool is_one_tile(const ProductArgs& p) {
  return p.m > kGemvRows && p.m <= tile_rows(1) && p.n <= kLanes && !is_thin(p);
}
inline void one_tile(const ProductArgs& p) {
  alignas(64) float out[kMaxRows * kTileStride];
  kTiles.fns[1][p.m]({p.a, p.a_row, 1, p.packed, strip_of(panel_width(p.n)), p.k, out, kTileStride, p.packed}, false);
  finish(p.epilogue, out, p.m, p.n, corner(p.epilogue, 0, 0, p.y, p.y_row));
}

inline void product_run(const ProductArgs& p, int64_t begin, int64_t end) {
  if (begin < end && is_one_tile(p)) return one_tile(p);
  int64_t width = panel_width(p.n), panels = panel_count(p.n);
  Blocks blocks = row_blocks(p.m, p.n, p.k);
  int64_t block = begin > 0 ? begin / panels : 0, panel = begin - block * panels;
  for (int64_t part = begin; part < end; ++part, ++panel) {
    if (panel == panels) block++, panel = 0;
    int64_t row = block * blocks.size;
    int64_t rows = min(p.m - row, blocks.size);
    const float* here = p.packed + panel * width * p.k;
    bool more = panel + 1 < panels;  // the next chunk is most often of this thread, too
    product_panel(p, row, rows, panel * width, {here, p.k, more ? here + width * p.k : nullptr});
  }
}

inline int64_t product_pieces_parts(const CutProduct<ProductArgs>& p) {
  return p.pieces.count * product_parts(p.whole);
}

inline void product_pieces_run(const CutProduct<ProductArgs>& p, int64_t begin, int64_t end) {
  int64_t width = panel_width(p.whole.n), each = product_parts(p.whole);
  Blocks blocks = row_blocks(p.whole.m, p.whole.n, p.whole.k);
  for (int64_t part = begin; part < end; ++part) {
    int64_t piece = part / each, panel = part % each / blocks.count, row = part % blocks.count * blocks.size;
    int64_t from = piece * p.pieces.size;
    ProductArgs here = p.whole;
    here.a += from;
    here.k = min(here.k - from, p.pieces.size);
    here.y = p.partial + piece * here.m * here.n;
    here.y_row = here.n;
    here.epilogue = {};
    int64_t rows = min(here.m - row, blocks.size);
    const float* data = p.whole.packed + panel * p.whole.k * width + from * strip_of(width);
    product_panel(here, row, rows, panel * width, {data, p.whole.k, nullptr});
  }
}

// ---- the sum of the pieces: a part is some rows of some columns

inline constexpr int64_t kJoinRows = 8;

template <class Args>
inline int64_t join_parts(const CutProduct<Args>& p) {
  return ceil_div(p.whole.m, kJoinRows) * ceil_div(p.whole.n, kTileStride);
}

// Adds up the pieces of a tile, whose corner in each piece is `from` + i * piece.
inline void sum_pieces(const float* from, int64_t row, int64_t piece, int64_t pieces, int64_t rows, int64_t columns,
                       float* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; c += kLanes) {
      Vec sum{};
      for (int64_t i = 0; i < pieces; ++i) sum += load_some(from + r * row + i * piece + c, columns - c);
      store(sums + r * kTileStride + c, sum);
    }
  }
}

template <class Args>
inline void join_run(const CutProduct<Args>& p, int64_t begin, int64_t end) {
  alignas(64) float sums[kJoinRows * kTileStride];
  int64_t m = p.whole.m, n = p.whole.n, across = ceil_div(n, kTileStride);
  for (int64_t part = begin; part < end; ++part) {
    int64_t row = part / across * kJoinRows, column = part % across * kTileStride;
    int64_t rows = min(m - row, kJoinRows), columns = min(n - column, kTileStride);
    sum_pieces(p.partial + row * n + column, n, m * n, p.pieces.count, rows, columns, sums);
    finish(p.whole.epilogue, sums, rows, columns, corner(p.whole.epilogue, row, column, p.whole.y, p.whole.y_row));
  }
}

// ---- product of two run-time operands

inline constexpr int64_t kMatmulWidth = 32;
inline constexpr int64_t kMatmulTerms = 256;  // of the stack's copy of B
inline constexpr int64_t kInPlaceRows = 16;   // too few rows to repay a copy

inline constexpr int kRowVectors = kRegisters / 2;  // of B at once, where A is one row

// One row against a matrix whose rows are adjacent elements. So little is done with each element of B that B has to be
// read in long stretches.
inline bool is_one_row(const MatmulArgs& p) {
  return p.m == 1 && p.b_col == 1 && p.n > 1;
}
// The columns of a part.
inline int64_t matmul_width(const MatmulArgs& p) {
  return is_one_row(p) ? kRowVectors * kLanes : kMatmulWidth;
}

// Copying a panel whose columns are not adjacent takes as long as summing a few more terms.
inline Blocks matmul_blocks(const MatmulArgs& p) {
  return row_blocks(p.m, p.n, p.b_col == 1 ? p.k : 4 * p.k);
}
inline int64_t matmul_parts(const MatmulArgs& p) {
  int64_t width = matmul_width(p);
  return matmul_blocks(p).count * ceil_div(p.n, width) * p.batches();
}

// Copies terms [0, terms) of a panel whose columns have adjacent terms, in squares of kLanes columns by kLanes terms.
inline void transpose_panel(const float* b, int64_t b_col, int64_t terms, int64_t columns, float* to) {
  for (int64_t c = 0; c < columns; c += kLanes) {
    int64_t wide = min(columns - c, kLanes);
    for (int64_t t = 0; t < terms; t += kLanes) {
      int64_t high = min(terms - t, kLanes);
      Vec square[kLanes] = {};
      for (int64_t i = 0; i < wide; ++i) square[i] = load_some(b + (c + i) * b_col + t, high);
      transpose(square);
      for (int64_t i = 0; i < high; ++i) store(to + (t + i) * kMatmulWidth + c, square[i]);
    }
  }
}
// Copies terms [0, terms) of a panel to rows of kMatmulWidth, with zeros up to a whole vector after its columns.
inline void copy_panel(const float* b, int64_t b_row, int64_t b_col, int64_t terms, int64_t columns, float* to) {
  if (b_row == 1 && b_col != 1) return transpose_panel(b, b_col, terms, columns, to);
  int64_t end = ceil_div(columns, kLanes) * kLanes;
  for (int64_t t = 0; t < terms; ++t, b += b_row, to += kMatmulWidth) {
    if (b_col == 1) {
      for (int64_t c = 0; c < columns; c += kLanes) store(to + c, load_some(b + c, columns - c));
      continue;
    }
    for (int64_t c = 0; c < columns; ++c) to[c] = b[c * b_col];
    for (int64_t c = columns; c < end; ++c) to[c] = 0;
  }
}

struct MatmulBlock {
  const float *a, *b;
  Corner to;
  int64_t rows, columns;
};

// Rows against one vector, both sides with adjacent terms.
inline bool is_by_vector(const MatmulArgs& p) {
  return p.n == 1 && p.a_col == 1 && p.b_row == 1;
}

inline void dot_block(const MatmulArgs& p, const MatmulBlock& block) {
  alignas(64) float sums[kRowBlock * kTileStride];
  bool to_y = is_plain(p.epilogue);
  float* out = to_y ? block.to.y : sums;
  dot_column(block.a, p.a_row, block.rows, block.b, p.k, out, to_y ? block.to.y_row : kTileStride);
  if (!to_y) finish(p.epilogue, sums, block.rows, 1, block.to);
}

// A few rows against columns, both sides with adjacent terms: transposing a panel would take longer than its sums.
inline constexpr int64_t kDotRows = 4, kDotTerms = 64;
inline bool is_by_dots(const MatmulArgs& p) {
  return p.m <= kDotRows && p.k >= kDotTerms && p.a_col == 1 && p.b_row == 1 && p.b_col != 1;
}
inline void dots_block(const MatmulArgs& p, const MatmulBlock& block) {
  alignas(64) float sums[kDotRows * kTileStride];
  constexpr decltype(&dot_rows<1>) kFns[kDotRows] = {dot_rows<1>, dot_rows<2>, dot_rows<3>, dot_rows<4>};
  for (int64_t c = 0; c < block.columns; ++c)
    kFns[block.rows - 1](block.a, p.a_row, block.b + c * p.b_col, p.k, sums + c, kTileStride);
  finish(p.epilogue, sums, block.rows, block.columns, block.to);
}

// One row times Vecs vectors of columns, or times the first `columns` of a single one. Writes whole vectors.
template <int Vecs>
inline void row_columns(const MatmulArgs& p, const float* a, const float* b, int64_t columns, float* sums) {
  Vec totals[Vecs] = {};
  for (int64_t k = 0; k < p.k; k += kFold) {
    int64_t end = min(p.k, k + kFold);
    Vec acc[Vecs] = {};
    for (int64_t t = k; t < end; ++t) {
      Vec left = splat(a[t * p.a_col]);
      const float* right = b + t * p.b_row;
      RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[v] =
          fma(Vecs > 1 ? load(right + v * kLanes) : load_some(right, columns), left, acc[v]);
    }
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) totals[v] += acc[v];
  }
  RLX_UNROLL for (int v = 0; v < Vecs; ++v) store(sums + v * kLanes, totals[v]);
}

inline void row_block(const MatmulArgs& p, const MatmulBlock& block) {
  alignas(64) float sums[kRowVectors * kLanes];
  int64_t c = 0, columns = block.columns;
  for (; c + kRowVectors * kLanes <= columns; c += kRowVectors * kLanes)
    row_columns<kRowVectors>(p, block.a, block.b + c, 0, sums + c);
  for (; c + 4 * kLanes <= columns; c += 4 * kLanes) row_columns<4>(p, block.a, block.b + c, 0, sums + c);
  for (; c < columns; c += kLanes) row_columns<1>(p, block.a, block.b + c, columns - c, sums + c);
  finish(p.epilogue, sums, 1, columns, block.to);
}

inline void matmul_block(const MatmulArgs& p, const MatmulBlock& block) {
  if (is_by_vector(p)) return dot_block(p, block);
  if (is_one_row(p)) return row_block(p, block);
  if (is_by_dots(p)) return dots_block(p, block);
  alignas(64) float panel[kMatmulTerms * kMatmulWidth];
  alignas(64) float sums[kRowBlock * kTileStride];
  bool in_place = p.b_col == 1 && block.columns == kMatmulWidth && block.rows <= kInPlaceRows;
  bool to_y = is_plain(p.epilogue) && block.columns % kLanes == 0;
  float* out = to_y ? block.to.y : sums;
  int64_t k = 0, out_row = to_y ? block.to.y_row : kTileStride;
  do {
    int64_t terms = min(p.k - k, kMatmulTerms);
    const float* b = block.b + k * p.b_row;
    if (!in_place) copy_panel(b, p.b_row, p.b_col, terms, block.columns, panel);
    int64_t b_row = in_place ? p.b_row : kMatmulWidth;
    for (int64_t c = 0; c < block.columns; c += 2 * kLanes) {
      for_each_tile(block.rows, block.columns - c > kLanes ? 2 : 1, [&](int64_t r, int64_t, TileFn fn) {
        fn({block.a + r * p.a_row + k * p.a_col, p.a_row, p.a_col, (in_place ? b : panel) + c, b_row, terms,
            out + r * out_row + c, out_row, b},
           k > 0);
      });
    }
    k += kMatmulTerms;
  } while (k < p.k);
  if (!to_y) finish(p.epilogue, sums, block.rows, block.columns, block.to);
}

inline void matmul_run(const MatmulArgs& p, int64_t begin, int64_t end) {
  int64_t width = matmul_width(p), panels = ceil_div(p.n, width);
  Blocks blocks = matmul_blocks(p);
  for (int64_t part = begin; part < end; ++part) {
    int64_t column = part % panels * width, row = part / panels % blocks.count * blocks.size;
    BatchOffsets at = batch_offsets(p, part / panels / blocks.count);
    Epilogue e = p.epilogue;
    if (e.residual) e.residual += at.y;
    int64_t rows = min(p.m - row, blocks.size);
    int64_t columns = min(p.n - column, width);
    matmul_block(p, {p.a + at.a + row * p.a_row, p.b + at.b + column * p.b_col,
                     corner(e, row, column, p.y + at.y, p.y_row), rows, columns});
  }
}

inline int64_t matmul_pieces_parts(const CutProduct<MatmulArgs>& p) {
  return p.pieces.count * matmul_parts(p.whole);
}

inline void matmul_pieces_run(const CutProduct<MatmulArgs>& p, int64_t begin, int64_t end) {
  int64_t each = matmul_parts(p.whole), width = matmul_width(p.whole);
  Blocks blocks = matmul_blocks(p.whole);
  for (int64_t part = begin; part < end; ++part) {
    int64_t piece = part / each, column = part % each / blocks.count * width, row = part % blocks.count * blocks.size;
    int64_t from = piece * p.pieces.size;
    MatmulArgs here = p.whole;
    here.k = min(here.k - from, p.pieces.size);
    here.epilogue = {};
    int64_t rows = min(here.m - row, blocks.size);
    int64_t columns = min(here.n - column, width);
    matmul_block(here,
                 {here.a + row * here.a_row + from * here.a_col, here.b + column * here.b_col + from * here.b_row,
                  corner(here.epilogue, row, column, p.partial + piece * here.m * here.n, here.n), rows, columns});
  }
}

inline constexpr GemmFns kGemm = {{pack_parts, pack_run},
                                  {{product_parts, product_run},
                                   {product_pieces_parts, product_pieces_run},
                                   {join_parts<ProductArgs>, join_run<ProductArgs>}},
                                  {{matmul_parts, matmul_run},
                                   {matmul_pieces_parts, matmul_pieces_run},
                                   {join_parts<MatmulArgs>, join_run<MatmulArgs>}}};
