// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/blas_matmul.h"

#include <algorithm>
#include <climits>
#include <optional>

#include "backends/cpu/blas.h"
#include "base/visit.h"

namespace rlx::cpu {

namespace {

// Large enough that the time for packing the sides of a tile, which BLAS does in every call, is small.
constexpr int64_t kTileRows = 256, kTileColumns = 512, kTileTerms = 512;

Status gemm(const Gemm& g, const float* a, const float* b, float beta, float* c) {
  return gemm_f32(g, 1, a, b, beta, c);
}
Status gemm(const Gemm& g, const double* a, const double* b, double beta, double* c) {
  return gemm_f64(g, 1, a, b, beta, c);
}
Status gemm(const Gemm& g, const c64* a, const c64* b, c64 beta, c64* c) {
  return gemm_c64(g, 1, a, b, beta, c);
}
Status gemm(const Gemm& g, const c128* a, const c128* b, c128 beta, c128* c) {
  return gemm_c128(g, 1, a, b, beta, c);
}

// A matrix in the terms of BLAS: row-major, or transposed.
struct Side {
  Transpose how;
  int64_t stride;
};
std::optional<Side> side(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  auto steps_over = [](int64_t stride, int64_t count, int64_t length) {
    return count <= 1 || (stride >= length && stride <= INT_MAX);
  };
  auto legal = [](int64_t stride, int64_t count, int64_t length) {
    return std::max<int64_t>({count > 1 ? stride : 1, length, 1});
  };
  if ((column == 1 || columns <= 1) && steps_over(row, rows, columns))
    return Side{Transpose::kNone, legal(row, rows, columns)};
  if ((row == 1 || rows <= 1) && steps_over(column, columns, rows))
    return Side{Transpose::kTranspose, legal(column, columns, rows)};
  return std::nullopt;
}

int64_t tiles(int64_t size, int64_t tile) {
  return (size + tile - 1) / tile;
}

}  // namespace

template <class T>
bool blas_takes(const MatmulSides<T>& p) {
  bool small = std::max({p.m, p.n, p.k, p.y_row}) <= INT_MAX;
  return small && p.y_row >= p.n && side(p.m, p.k, p.a_row, p.a_col) && side(p.k, p.n, p.b_row, p.b_col);
}

template <class T>
int64_t blas_parts(const MatmulSides<T>& p) {
  return tiles(p.m, kTileRows) * tiles(p.n, kTileColumns) * p.batches();
}

template <class T>
Status blas_run(const MatmulSides<T>& p, int64_t begin, int64_t end) {
  Side a = *side(p.m, p.k, p.a_row, p.a_col), b = *side(p.k, p.n, p.b_row, p.b_col);
  int64_t across = tiles(p.n, kTileColumns), down = tiles(p.m, kTileRows);
  for (int64_t part = begin; part < end; part++) {
    BatchOffsets at = batch_offsets(p, part / across / down);
    int64_t row = part / across % down * kTileRows, column = part % across * kTileColumns, k = 0;
    Gemm g{std::min(kTileRows, p.m - row),
           std::min(kTileColumns, p.n - column),
           0,
           a.stride,
           b.stride,
           std::max<int64_t>(p.y_row, 1),
           a.how,
           b.how};
    T* y = p.y + at.y + row * p.y_row + column;
    do {
      g.k = std::min(kTileTerms, p.k - k);
      RLX_TRY(gemm(g, p.a + at.a + row * p.a_row + k * p.a_col, p.b + at.b + k * p.b_row + column * p.b_col,
                   T(k > 0 ? 1 : 0), y));
      k += kTileTerms;
    } while (k < p.k);
  }
  return {};
}

#define RLX_INSTANTIATE(T)                            \
  template bool blas_takes(const MatmulSides<T>&);    \
  template int64_t blas_parts(const MatmulSides<T>&); \
  template Status blas_run(const MatmulSides<T>&, int64_t, int64_t);
RLX_INSTANTIATE(float)
RLX_INSTANTIATE(double)
RLX_INSTANTIATE(c64)
RLX_INSTANTIATE(c128)
#undef RLX_INSTANTIATE

}  // namespace rlx::cpu
