// SPDX-License-Identifier: Apache-2.0
// Dense row-major matrices in f64. The reference factorisations compute on them, whatever the storage dtype.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "ops/eval.h"

namespace rlx {

class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns) : rows_(rows), columns_(columns), data_(static_cast<size_t>(rows * columns)) {}
  static Matrix identity(int64_t n);
  // Reads matrix `index` of a batch, or writes it back. The matrix is the last two axes of the operand; an operand of
  // rank 1 is a vector.
  static Matrix read(const Operand& operand, int64_t index);
  void write(const Operand& operand, int64_t index) const;

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  double& operator()(int64_t i, int64_t j) { return data_[static_cast<size_t>(i * columns_ + j)]; }
  double operator()(int64_t i, int64_t j) const { return data_[static_cast<size_t>(i * columns_ + j)]; }
  std::span<double> row(int64_t i) { return std::span(data_).subspan(static_cast<size_t>(i * columns_), width()); }
  Matrix transposed() const;
  bool finite() const;
  // If squares of the elements may not be numbers of f64, scales by a power of two to about 1. Returns the exponent of
  // the factor that takes `scale` back; 0, and no bit changes, for every other matrix.
  int normalise();
  void scale(int exponent);  // by 2^exponent
  void fill(double value) { std::fill(data_.begin(), data_.end(), value); }

 private:
  size_t width() const { return static_cast<size_t>(columns_); }
  int64_t rows_, columns_;
  std::vector<double> data_;
};

// Householder's reflections H0, H1, ... that turn a matrix A into a triangle R: A = H0 H1 ... R. The product of all is
// orthogonal. It is never made as a whole, as only its first columns may be asked for.
class Reflections {
 public:
  explicit Reflections(Matrix& a);              // `a` becomes R
  Matrix product_columns(int64_t count) const;  // the first columns of H0 H1 ...

 private:
  void reflect(int64_t k, Matrix& x) const;  // x becomes Hk x, where no column before k has an element from row k on

  Matrix v_;                     // row k: Hk is I - 2 v v^T / v^T v
  std::vector<double> squares_;  // v^T v; 0 where Hk is the identity
};

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The number of matrices in a batch.
int64_t matrix_count(const Operand& operand);

// Checks for f32 or f64 and rank 2 or more; the second function also for square matrices.
Status check_matrix(InferArgs& args, size_t input);
Result<Dim> square_size(InferArgs& args, size_t input);
// min(a, b), or the one of the two that the ranges prove to be smaller.
Dim smaller_of(const Graph& graph, const Dim& a, const Dim& b);
// The batch dims of an input, followed by others.
std::vector<Dim> batched(const InferArgs& args, std::initializer_list<Dim> dims);

}  // namespace rlx
