// SPDX-License-Identifier: Apache-2.0
// Products of f32 matrices: with a resident right side that is packed into panels, and of two variable operands.
// Strides count elements. Sums are of class SUM: at most 512 terms run in one accumulator.
#pragma once

#include <cstddef>
#include <limits>

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

enum class Activation : int32_t {
  kNone,
  kRelu,
  kGelu,
  kGeluTanh,
  kSilu,
  kSigmoid,
  kTanh,
  kHardSigmoid,
  kHardSwish,
  kLeakyRelu
};

// What an element becomes last: act(v), at least lo and at most hi.
struct Ending {
  Activation act = Activation::kNone;
  float slope = 0;  // of kLeakyRelu
  float lo = -std::numeric_limits<float>::infinity(), hi = std::numeric_limits<float>::infinity();
};

// What happens to an element on its way to memory:
// y = end(alpha * sum + bias[column] + row_bias[row] + residual[row, column]).
struct Epilogue : Ending {
  float alpha = 1;
  const float* bias = nullptr;      // [n], or null
  const float* row_bias = nullptr;  // [m], or null
  const float* residual = nullptr;  // [m, n], or null; may be y itself, but must not overlap it otherwise
  int64_t residual_row = 0;
};

// The packed form of a [k, n] matrix: panels of panel_width(n) columns, one after another; the columns beyond n are
// zero. A panel consists of strips, each row-major [k, strip], whose width is that of the Isa's tiles: each Isa has its
// form.
constexpr int64_t panel_width(int64_t n) {
  return n % 48 == 0 ? 48 : 32;
}
// Divisors are constants: to divide by another number would take a measurable time in the smallest products.
constexpr int64_t panel_count(int64_t n) {
  return panel_width(n) == 48 ? n / 48 : (n + 31) / 32;
}
constexpr int64_t packed_size(int64_t k, int64_t n) {  // in elements; alignment 64
  return panel_count(n) * panel_width(n) * k;
}

// A float that need not be aligned: weights are packed directly from a mapped file.
using LooseFloat [[gnu::aligned(1)]] = float;

// Packs matrices with the same k side by side: merged siblings form one packed matrix. One part is one panel.
inline constexpr int kMaxPieces = 8;
struct PackPiece {
  const LooseFloat* data = nullptr;
  int64_t n = 0;                       // columns of this piece
  int64_t k_stride = 0, n_stride = 0;  // [k, n] row-major: n, 1; transposed [n, k]: 1, k
};
struct PackArgs {
  PackPiece pieces[kMaxPieces];
  int32_t piece_count = 0;
  int64_t k = 0, n = 0;  // n: the sum over the pieces
  float* packed = nullptr;
};

// y[m, n] = epilogue(a[m, k] * packed). k = 0 gives sums of zero.
struct ProductArgs {
  const float* a = nullptr;
  int64_t a_row = 0;
  const float* packed = nullptr;
  float* y = nullptr;
  int64_t y_row = 0;
  int64_t m = 0, n = 0, k = 0;
  Epilogue epilogue;
};

// The two sides a[..., m, k] and b[..., k, n] of a product y[..., m, n], with any strides; 0 where an operand is
// broadcast. For a transposed operand the last two strides are swapped.
inline constexpr int kMaxBatchRank = 6;
template <class T>
struct MatmulSides {
  const T* a = nullptr;
  const T* b = nullptr;
  T* y = nullptr;
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_col = 1, b_row = 0, b_col = 1, y_row = 0;
  int32_t batch_rank = 0;
  int64_t batch[kMaxBatchRank] = {};
  int64_t a_batch[kMaxBatchRank] = {}, b_batch[kMaxBatchRank] = {}, y_batch[kMaxBatchRank] = {};

  int64_t batches() const {
    int64_t count = 1;
    for (int i = 0; i < batch_rank; ++i) count *= batch[i];
    return count;
  }
};

// The offsets of the matrices of one batch index.
struct BatchOffsets {
  int64_t a = 0, b = 0, y = 0;
};
template <class T>
BatchOffsets batch_offsets(const MatmulSides<T>& p, int64_t index) {
  BatchOffsets at;
  for (int i = p.batch_rank - 1; i >= 0; --i) {
    int64_t here = index % p.batch[i];
    index /= p.batch[i];
    at.a += here * p.a_batch[i];
    at.b += here * p.b_batch[i];
    at.y += here * p.y_batch[i];
  }
  return at;
}

// y = epilogue(a * b). The residual has the batch strides of y.
struct MatmulArgs : MatmulSides<float> {
  Epilogue epilogue;
};

// A product of few results and many terms (and of one batch), cut over k (split-K): piece i of the terms gives
// partial[i, m, n]; then the pieces are added up and leave through the epilogue.
template <class Args>
struct CutProduct {
  Args whole;
  Pieces pieces;
  float* partial;
};
inline constexpr int64_t kRowBlock = 128;    // of the largest part, rows
inline constexpr int64_t kLeastTerms = 512;  // of a piece
Pieces pieces_of_product(int64_t m, int64_t n, int64_t k, int64_t parts);
// Bytes of `partial` for up to so many terms and results.
size_t cut_product_bytes(double k, double results);

template <class Args>
struct ProductLoops {
  Loop<Args> whole;
  Loop<CutProduct<Args>> pieces, join;
};
struct GemmFns {
  Loop<PackArgs> pack;
  ProductLoops<ProductArgs> product;
  ProductLoops<MatmulArgs> matmul;
};
const GemmFns& gemm_fns(Isa isa);

}  // namespace rlx::cpu
