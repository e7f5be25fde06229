// SPDX-License-Identifier: Apache-2.0
// Products of integers. A part is a panel of columns times a block of rows. Chunks of the terms of its columns are
// copied to the stack, because either side may have any strides.

inline constexpr int64_t kIntegerRows = 32;   // of a block
inline constexpr int64_t kIntegerTerms = 64;  // of a chunk
inline constexpr int kIntegerVecs = 4;        // of a panel
inline constexpr int kIntegerTileRows = RLX_ISA == 2 ? 4 : 2;

template <class T>
struct IntegerProduct {
  using V [[gnu::vector_size(4 * kLanes)]] = T;
  static constexpr int64_t kEach = 4 * kLanes / sizeof(T), kColumns = kIntegerVecs * kEach;
  using Row = V[kIntegerVecs];

  static int64_t panels(const MatmulSides<T>& p) { return ceil_div(p.n, kColumns); }
  static int64_t blocks(const MatmulSides<T>& p) { return ceil_div(p.m, kIntegerRows); }
  static int64_t parts(const MatmulSides<T>& p) { return panels(p) * blocks(p) * p.batches(); }

  // Columns beyond the last are not written, and nothing stores their sums.
  static void copy_right(const MatmulSides<T>& p, const T* b, int64_t terms, int64_t columns, Row* to) {
    for (int64_t t = 0; t < terms; ++t, b += p.b_row) {
      T* row = reinterpret_cast<T*>(to + t);
      if (p.b_col == 1)
        __builtin_memcpy(row, b, static_cast<size_t>(columns) * sizeof(T));
      else
        for (int64_t c = 0; c < columns; ++c) row[c] = b[c * p.b_col];
    }
  }

  template <int Rows>
  static void add_tile(const MatmulSides<T>& p, const T* a, int64_t terms, const Row* right, Row* sums) {
    V acc[Rows][kIntegerVecs];
    __builtin_memcpy(acc, sums, sizeof acc);
    for (int64_t t = 0; t < terms; ++t, a += p.a_col) {
      RLX_UNROLL for (int r = 0; r < Rows; ++r) {
        const V left = a[r * p.a_row] - V{};
        RLX_UNROLL for (int v = 0; v < kIntegerVecs; ++v) acc[r][v] += left * right[t][v];
      }
    }
    __builtin_memcpy(sums, acc, sizeof acc);
  }

  static void block(const MatmulSides<T>& p, const T* a, const T* b, T* y, int64_t rows, int64_t columns) {
    Row right[kIntegerTerms] = {}, sums[kIntegerRows];
    __builtin_memset(sums, 0, static_cast<size_t>(rows) * sizeof(Row));
    for (int64_t from = 0; from < p.k; from += kIntegerTerms) {
      const int64_t terms = min(p.k - from, kIntegerTerms);
      copy_right(p, b + from * p.b_row, terms, columns, right);
      int64_t r = 0;
      auto left = [&] { return a + r * p.a_row + from * p.a_col; };
      for (; r + kIntegerTileRows <= rows; r += kIntegerTileRows)
        add_tile<kIntegerTileRows>(p, left(), terms, right, sums + r);
      for (; r < rows; ++r) add_tile<1>(p, left(), terms, right, sums + r);
    }
    for (int64_t r = 0; r < rows; ++r)
      __builtin_memcpy(y + r * p.y_row, sums + r, static_cast<size_t>(columns) * sizeof(T));
  }

  static void run(const MatmulSides<T>& p, int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t column = part % panels(p) * kColumns, row = part / panels(p) % blocks(p) * kIntegerRows;
      const BatchOffsets at = batch_offsets(p, part / panels(p) / blocks(p));
      const int64_t rows = min(p.m - row, kIntegerRows);
      const int64_t columns = min(p.n - column, kColumns);
      block(p, p.a + at.a + row * p.a_row, p.b + at.b + column * p.b_col, p.y + at.y + row * p.y_row + column, rows,
            columns);
    }
  }
};

inline constexpr IntegerFns kIntegers = {{IntegerProduct<uint32_t>::parts, IntegerProduct<uint32_t>::run},
                                         {IntegerProduct<uint64_t>::parts, IntegerProduct<uint64_t>::run}};
