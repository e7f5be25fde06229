// SPDX-License-Identifier: Apache-2.0
// Spectral factors: eigh and svd by Jacobi rotations, which take little code and are accurate to the last bits. The
// factors leave signs free; we choose them so that the first component near the largest one of each column is positive.
#include <algorithm>
#include <numeric>

#include "ops/linalg.h"

namespace rlx {

// A sweep rotates every pair of columns once. Convergence is quadratic, and random matrices need fewer than ten sweeps.
static constexpr int kMaxSweeps = 60;
static constexpr double kEps = std::numeric_limits<double>::epsilon();

// The rotation that makes two columns orthogonal, or two axes of a quadratic form uncoupled.
struct Rotation {
  double c, s;
  // The rotation for the form [[a, off], [off, b]] (Golub and Van Loan, 8.5.2).
  static Rotation of(double a, double b, double off) {
    double tau = (b - a) / (2 * off);
    double t = (tau < 0 ? -1 : 1) / (std::fabs(tau) + std::hypot(1, tau));
    double c = 1 / std::hypot(1, t);
    return {c, t * c};
  }
  void rotate(double& x, double& y) const {
    double x0 = x;
    x = c * x0 - s * y;
    y = s * x0 + c * y;
  }
};

static void rotate_columns(Matrix& a, int64_t p, int64_t q, Rotation rotation) {
  for (int64_t i = 0; i < a.rows(); i++) rotation.rotate(a(i, p), a(i, q));
}
static void rotate_rows(Matrix& a, int64_t p, int64_t q, Rotation rotation) {
  for (int64_t j = 0; j < a.columns(); j++) rotation.rotate(a(p, j), a(q, j));
}

// -1 if the first component whose magnitude is at least 0.72 of the largest is negative, else 1.
static double column_sign(const Matrix& a, int64_t column) {
  double largest = 0;
  for (int64_t i = 0; i < a.rows(); i++) largest = std::max(largest, std::fabs(a(i, column)));
  for (int64_t i = 0; i < a.rows(); i++)
    if (std::fabs(a(i, column)) >= 0.72 * largest) return a(i, column) < 0 ? -1 : 1;
  return 1;
}

static std::vector<int64_t> ordered(int64_t n, auto less) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

// ---- eigh ----

Status infer_eigh(InferArgs& args) {
  Dim n = RLX_TRY(square_size(args, 0));
  args.out[0].dims = batched(args, {n});
  args.out[1].dims = batched(args, {n, n});
  return {};
}

// Makes `a` diagonal. The columns of the result are its eigenvectors.
static Matrix diagonalise(Matrix& a) {
  int64_t n = a.rows();
  Matrix v = Matrix::identity(n);
  double scale = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) scale = std::hypot(scale, a(i, j));
  for (int sweep = 0; sweep < kMaxSweeps; sweep++) {
    double off = 0;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        off = std::max(off, std::fabs(a(p, q)));
        if (a(p, q) == 0) continue;
        Rotation rotation = Rotation::of(a(p, p), a(q, q), a(p, q));
        rotate_columns(a, p, q, rotation);
        rotate_rows(a, p, q, rotation);
        a(p, q) = a(q, p) = 0;
        rotate_columns(v, p, q, rotation);
      }
    if (off <= kEps * kEps * scale) break;
  }
  return v;
}

// Eigenvalues in ascending order, and their vectors as columns.
static void find_eigenvectors(Matrix a, Matrix& values, Matrix& vectors) {
  int64_t n = a.rows();
  Matrix v = diagonalise(a);
  auto order = ordered(n, [&](int64_t i, int64_t j) { return a(i, i) < a(j, j); });
  for (int64_t k = 0; k < n; k++) {
    int64_t from = order[static_cast<size_t>(k)];
    double sign = column_sign(v, from);
    values(0, k) = a(from, from);
    for (int64_t i = 0; i < n; i++) vectors(i, k) = sign * v(i, from);
  }
}

Status eval_eigh(EvalArgs& args) {
  int64_t count = matrix_count(args.in[0]);
  for (int64_t item = 0; item < count; item++) {
    Matrix a = Matrix::read(args.in[0], item);
    int64_t n = a.rows();
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i + 1; j < n; j++) a(i, j) = a(j, i);
    Matrix values(1, n), vectors(n, n);
    if (a.finite()) {
      int exponent = a.normalise();
      find_eigenvectors(std::move(a), values, vectors);
      values.scale(exponent);
    } else {
      values.fill(kNan);
      vectors.fill(kNan);
    }
    values.write(args.out[0], item);
    vectors.write(args.out[1], item);
  }
  return {};
}

// ---- svd ----

Status infer_svd(InferArgs& args) {
  RLX_TRY(check_matrix(args, 0));
  const Dim &m = args.dims()[args.rank() - 2], &n = args.dims().back();
  Dim k = smaller_of(args.graph, m, n);
  bool full = args.attrs.flag("full");
  args.out[0].dims = batched(args, {m, full ? m : k});
  args.out[1].dims = batched(args, {k});
  args.out[2].dims = batched(args, {full ? n : k, n});
  return {};
}

struct Factors {
  Matrix u;               // M x K
  std::vector<double> s;  // K, descending
  Matrix v;               // N x K
};

static double dot(const Matrix& a, int64_t p, const Matrix& b, int64_t q) {
  double sum = 0;
  for (int64_t i = 0; i < a.rows(); i++) sum += a(i, p) * b(i, q);
  return sum;
}

// Replaces the columns from k on by unit vectors orthogonal to all earlier ones: reflections that turn the columns
// before k into axes turn the other axes into such vectors.
static void complete_basis(Matrix& q, int64_t k) {
  if (k == q.columns()) return;
  Matrix known(q.rows(), k);
  for (int64_t i = 0; i < q.rows(); i++)
    std::ranges::copy(q.row(i).first(static_cast<size_t>(k)), known.row(i).begin());
  Matrix completed = Reflections(known).product_columns(q.columns());
  for (; k < q.columns(); k++) {
    double sign = column_sign(completed, k);
    for (int64_t i = 0; i < q.rows(); i++) q(i, k) = sign * completed(i, k);
  }
}

// One-sided Jacobi (Hestenes, 1958) of M >= N: rotations from the right make the columns of A V orthogonal; their
// lengths are the singular values, their directions U.
static Matrix orthogonalise(Matrix& a) {
  Matrix v = Matrix::identity(a.columns());
  for (int sweep = 0; sweep < kMaxSweeps; sweep++) {
    bool has_rotated = false;
    for (int64_t p = 0; p < a.columns(); p++)
      for (int64_t q = p + 1; q < a.columns(); q++) {
        double pp = dot(a, p, a, p), qq = dot(a, q, a, q), pq = dot(a, p, a, q);
        if (std::fabs(pq) <= kEps * std::sqrt(pp) * std::sqrt(qq)) continue;
        has_rotated = true;
        Rotation rotation = Rotation::of(pp, qq, pq);
        rotate_columns(a, p, q, rotation);
        rotate_columns(v, p, q, rotation);
      }
    if (!has_rotated) break;
  }
  return v;
}

static Factors factor_tall(Matrix a) {
  int64_t m = a.rows(), n = a.columns();
  Matrix v = orthogonalise(a);
  std::vector<double> lengths;
  for (int64_t k = 0; k < n; k++) {
    double length = 0;
    for (int64_t i = 0; i < m; i++) length = std::hypot(length, a(i, k));
    lengths.push_back(length);
  }
  auto length_of = [&](int64_t k) { return lengths[static_cast<size_t>(k)]; };
  auto order = ordered(n, [&](int64_t i, int64_t j) { return length_of(i) > length_of(j); });
  Factors result{Matrix(m, n), {}, Matrix(n, n)};
  int64_t rank = 0;
  for (int64_t k = 0; k < n; k++) {
    int64_t from = order[static_cast<size_t>(k)];
    double length = length_of(from);
    result.s.push_back(length);
    // A column whose length is only rounding error has no direction.
    if (length > kEps * static_cast<double>(m) * result.s[0]) rank = k + 1;
    for (int64_t i = 0; i < m && length > 0; i++) result.u(i, k) = a(i, from) / length;
    for (int64_t i = 0; i < n; i++) result.v(i, k) = v(i, from);
  }
  complete_basis(result.u, rank);
  return result;
}

// Completes the columns to a square matrix with orthogonal ones.
static Matrix squared(const Matrix& q) {
  Matrix result(q.rows(), q.rows());
  for (int64_t i = 0; i < q.rows(); i++)
    for (int64_t j = 0; j < q.columns(); j++) result(i, j) = q(i, j);
  complete_basis(result, q.columns());
  return result;
}

static Factors singular_factors(const Matrix& a, bool full) {
  bool wide = a.columns() > a.rows();
  Factors result = factor_tall(wide ? a.transposed() : a);
  if (wide) std::swap(result.u, result.v);
  for (int64_t k = 0; k < result.u.columns(); k++) {
    if (column_sign(result.u, k) > 0) continue;
    for (int64_t i = 0; i < result.u.rows(); i++) result.u(i, k) = -result.u(i, k);
    for (int64_t i = 0; i < result.v.rows(); i++) result.v(i, k) = -result.v(i, k);
  }
  if (full) result = {squared(result.u), result.s, squared(result.v)};
  return result;
}

Status eval_svd(EvalArgs& args) {
  int64_t count = matrix_count(args.in[0]), k = args.out[1].dims.back();
  for (int64_t item = 0; item < count; item++) {
    Matrix a = Matrix::read(args.in[0], item), s(1, k);
    if (a.finite()) {
      int exponent = a.normalise();
      Factors factors = singular_factors(a, args.attrs.flag("full"));
      for (int64_t i = 0; i < k; i++) s(0, i) = factors.s[static_cast<size_t>(i)];
      s.scale(exponent);
      factors.u.write(args.out[0], item);
      factors.v.transposed().write(args.out[2], item);
    } else {
      for (size_t output : {size_t{0}, size_t{2}}) {
        Matrix nothing = Matrix::read(args.out[output], item);
        nothing.fill(kNan);
        nothing.write(args.out[output], item);
      }
      s.fill(kNan);
    }
    s.write(args.out[1], item);
  }
  return {};
}

}  // namespace rlx
