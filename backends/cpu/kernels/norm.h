// SPDX-License-Identifier: Apache-2.0
// Softmax and norms over the last axis of [rows, n], f32, class NRM. Elements of a row are adjacent; strides count
// elements.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

struct SoftmaxPiece {
  double sum;  // of its exponentials
  float largest;
};
struct SoftmaxArgs {
  const float* x = nullptr;
  float* y = nullptr;  // may be x
  int64_t rows = 0, n = 0, x_row = 0, y_row = 0;
  bool is_log = false;            // y is the logarithm of the softmax
  SoftmaxPiece* found = nullptr;  // of each piece of each row, where rows are cut
};
inline constexpr int64_t kSoftmaxPiece = 8192;  // at least
constexpr Pieces softmax_pieces(int64_t rows, int64_t n) {
  return cut(n, rows, kSoftmaxPiece, 64);
}

struct NormPiece {
  double sum;               // of its elements, or of their squares
  double squares, centred;  // of layer_norm, of its elements less the mean of the row
};

// sum = x (+ residual) (+ bias); y = norm(sum) * gamma + beta. A null pointer means that an operand or output is
// absent. y and sum may be x or residual. With residual or bias, y or sum must be given, because the sum is kept there.
// layer_norm: mean and inv = 1 / std; rms_norm: inv = 1 / rms, and a mean of 0. With `run` a row has n / run channels
// in succession, each of `run` elements with one gamma and beta; after `channels` of them these begin again.
struct NormArgs {
  const float* x = nullptr;
  const float* residual = nullptr;
  const float* bias = nullptr;   // [n]
  const float* gamma = nullptr;  // [n], or [channels]
  const float* beta = nullptr;   // as gamma
  float* y = nullptr;
  float* sum = nullptr;
  float* mean = nullptr;  // [rows]
  float* inv = nullptr;   // [rows]
  int64_t rows = 0, n = 0;
  int64_t x_row = 0, residual_row = 0, y_row = 0, sum_row = 0;
  int64_t run = 0, channels = 1;
  float eps = 1e-5f;
  NormPiece* found = nullptr;  // of each piece of each row, where rows are cut
};
inline constexpr int64_t kNormPiece = 8192;  // at least
constexpr Pieces norm_pieces(int64_t rows, int64_t n) {
  return cut(n, rows, kNormPiece, 64);
}

struct NormFns {
  Loop<SoftmaxArgs> softmax;
  Loop<SoftmaxArgs> softmax_largest, softmax_exp, softmax_scale;  // of rows that are cut, in this order
  Loop<NormArgs> layer_norm, rms_norm;                            // with residual: the residual_ forms
  // The same of rows that are cut, in this order; rms_norm needs no squares.
  Loop<NormArgs> layer_norm_sums, layer_norm_squares, layer_norm_write, rms_norm_sums, rms_norm_write;
};
const NormFns& norm_fns(Isa isa);

}  // namespace rlx::cpu
