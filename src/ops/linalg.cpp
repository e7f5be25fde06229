// SPDX-License-Identifier: Apache-2.0
// Triangular factors: lu, cholesky, qr, and solving with them. Textbook algorithms in f64, matrix by matrix. A matrix
// with inf or NaN gives NaN, and no input is an error.
#include "ops/linalg.h"

#include <algorithm>
#include <numeric>

namespace rlx {

// ---- matrices ----

Matrix Matrix::identity(int64_t n) {
  Matrix result(n, n);
  for (int64_t i = 0; i < n; i++) result(i, i) = 1;
  return result;
}

Matrix Matrix::read(const Operand& operand, int64_t index) {
  Matrix result(operand.dims[operand.rank() - 2], operand.dims[operand.rank() - 1]);
  int64_t size = result.rows_ * result.columns_;
  visit<dtypes::F>(operand.dtype, [&]<class T>() {
    const T* first = operand.as<T>() + index * size;
    for (int64_t i = 0; i < size; i++)
      result.data_[static_cast<size_t>(i)] = static_cast<double>(static_cast<Compute<T>>(first[i]));
  });
  return result;
}

void Matrix::write(const Operand& operand, int64_t index) const {
  int64_t size = rows_ * columns_;
  visit<dtypes::F>(operand.dtype, [&]<class T>() {
    T* first = operand.as<T>() + index * size;
    for (int64_t i = 0; i < size; i++) first[i] = T(data_[static_cast<size_t>(i)]);
  });
}

Matrix Matrix::transposed() const {
  Matrix result(columns_, rows_);
  for (int64_t i = 0; i < rows_; i++)
    for (int64_t j = 0; j < columns_; j++) result(j, i) = (*this)(i, j);
  return result;
}

bool Matrix::finite() const {
  return std::all_of(data_.begin(), data_.end(), [](double x) { return std::isfinite(x); });
}

int Matrix::normalise() {
  constexpr int kLargeExponent = 400;  // then the squares of elements far below the largest are normal numbers too
  double largest = 0;
  for (double x : data_) largest = std::max(largest, std::fabs(x));
  int exponent = largest == 0 ? 0 : std::ilogb(largest);
  if (std::abs(exponent) <= kLargeExponent) return 0;
  scale(-exponent);
  return exponent;
}

void Matrix::scale(int exponent) {
  if (exponent == 0) return;
  for (double& x : data_) x = std::ldexp(x, exponent);
}

int64_t matrix_count(const Operand& operand) {
  return *element_count(std::span<const int64_t>(operand.dims).first(operand.rank() - 2));
}

// ---- inference ----

Status check_matrix(InferArgs& args, size_t input) {
  DType dtype = args.in[input]->dtype;
  const std::string& port = args.info.signature.in[input].name;
  if (is_half(dtype))
    return args.fail(Code::kDtype, port + " must be f32 or f64, not " + std::string(name(dtype)) + " (a cast converts)")
        .with("input", port)
        .with("got", name(dtype));
  return args.rank(input) < 2 ? wrong_rank(port, "2 or more", args.rank(input)) : Status();
}

Result<Dim> square_size(InferArgs& args, size_t input) {
  RLX_TRY(check_matrix(args, input));
  const auto& dims = args.dims(input);
  return args.same(dims[dims.size() - 2], dims.back(), "the rows and columns of a square matrix");
}

std::vector<Dim> batched(const InferArgs& args, std::initializer_list<Dim> dims) {
  std::vector<Dim> result(args.dims().begin(), args.dims().end() - 2);
  result.insert(result.end(), dims);
  return result;
}

// ---- lu ----

Status infer_lu(InferArgs& args) {
  Dim n = RLX_TRY(square_size(args, 0));
  DType index_dtype = args.attrs.dtype("index_dtype");
  if (index_dtype == DType::kI32 && args.graph.range(n).hi > INT32_MAX)
    return args.fail(Code::kOption, "index_dtype i32 cannot hold every row of a matrix of size " + n.text());
  args.out[0].dims = batched(args, {n, n});
  args.out[1] = {index_dtype, batched(args, {n})};
  args.out[2].dims = batched(args, {});
  return {};
}

// Gaussian elimination in place. Returns the sign of the permutation `order`. Of several largest pivots it takes the
// first.
static double eliminate(Matrix& a, std::vector<int64_t>& order) {
  double sign = 1;
  for (int64_t k = 0; k < a.rows(); k++) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < a.rows(); i++)
      if (std::fabs(a(i, k)) > std::fabs(a(pivot, k))) pivot = i;
    if (pivot != k) {
      std::ranges::swap_ranges(a.row(k), a.row(pivot));
      std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(pivot)]);
      sign = -sign;
    }
    if (a(k, k) == 0) continue;  // singular: the column below is zero too
    for (int64_t i = k + 1; i < a.rows(); i++) {
      double factor = a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < a.columns(); j++) a(i, j) -= factor * a(k, j);
    }
  }
  return sign;
}

Status eval_lu(EvalArgs& args) {
  int64_t count = matrix_count(args.in[0]);
  for (int64_t item = 0; item < count; item++) {
    Matrix a = Matrix::read(args.in[0], item), sign(1, 1);
    std::vector<int64_t> order(static_cast<size_t>(a.rows()));
    std::iota(order.begin(), order.end(), 0);
    if (a.finite()) {
      sign(0, 0) = eliminate(a, order);
    } else {
      a.fill(kNan);
      sign.fill(kNan);
    }
    a.write(args.out[0], item);
    visit<dtypes::X>(args.out[1].dtype,
                     [&]<class T>() { std::copy(order.begin(), order.end(), args.out[1].as<T>() + item * a.rows()); });
    sign.write(args.out[2], item);
  }
  return {};
}

// ---- cholesky ----

Status infer_cholesky(InferArgs& args) {
  Dim n = RLX_TRY(square_size(args, 0));
  args.out[0].dims = batched(args, {n, n});
  return {};
}

// Goes row by row. Returns false if the square of a diagonal element of L is not positive and finite.
static bool factor_positive(const Matrix& a, Matrix& l) {
  for (int64_t i = 0; i < a.rows(); i++)
    for (int64_t j = 0; j <= i; j++) {
      double rest = a(i, j);
      for (int64_t k = 0; k < j; k++) rest -= l(i, k) * l(j, k);
      if (i == j && !(rest > 0)) return false;
      l(i, j) = i == j ? std::sqrt(rest) : rest / l(j, j);
    }
  return l.finite();
}

Status eval_cholesky(EvalArgs& args) {
  int64_t count = matrix_count(args.in[0]);
  for (int64_t item = 0; item < count; item++) {
    Matrix a = Matrix::read(args.in[0], item), l(a.rows(), a.rows());
    if (!factor_positive(a, l)) l.fill(kNan);
    l.write(args.out[0], item);
  }
  return {};
}

// ---- triangular_solve ----

Status infer_triangular_solve(InferArgs& args) {
  Dim n = RLX_TRY(square_size(args, 0));
  RLX_TRY(check_matrix(args, 1));
  std::span<const Dim> a = args.dims(0), b = args.dims(1);
  RLX_TRY(args.same(n, b[b.size() - 2], "the size of a and the rows of b"));
  args.out[0].dims = RLX_TRY(args.broadcast(a.first(a.size() - 2), b.first(b.size() - 2)));
  args.out[0].dims.push_back(n);
  args.out[0].dims.push_back(b.back());
  return {};
}

// The triangle that is read, as a matrix with zeros elsewhere and a unit diagonal filled in.
static Matrix triangle(const Matrix& a, bool lower, bool unit_diagonal) {
  Matrix result(a.rows(), a.rows());
  for (int64_t i = 0; i < a.rows(); i++) {
    for (int64_t j = lower ? 0 : i; j < (lower ? i + 1 : a.rows()); j++) result(i, j) = a(i, j);
    if (unit_diagonal) result(i, i) = 1;
  }
  return result;
}

// Solves a y = x; y replaces x.
static void substitute(const Matrix& a, bool lower, Matrix& x) {
  int64_t n = a.rows();
  for (int64_t step = 0; step < n; step++) {
    int64_t i = lower ? step : n - 1 - step;
    for (int64_t c = 0; c < x.columns(); c++) {
      for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); j++) x(i, c) -= a(i, j) * x(j, c);
      x(i, c) /= a(i, i);
    }
  }
}

Status eval_triangular_solve(EvalArgs& args) {
  const Operand &a = args.in[0], &b = args.in[1], &out = args.out[0];
  std::span<const int64_t> batch = std::span<const int64_t>(out.dims).first(out.rank() - 2);
  auto batch_of = [&](const Operand& operand) {
    return broadcast_strides(std::span<const int64_t>(operand.dims).first(operand.rank() - 2), batch);
  };
  bool lower = args.attrs.flag("lower"), transpose = args.attrs.flag("transpose");
  Odometer<2> at(batch, {batch_of(a), batch_of(b)});
  int64_t count = matrix_count(out);
  for (int64_t item = 0; item < count; item++, at.next()) {
    Matrix factor = triangle(Matrix::read(a, at.offset(0)), lower, args.attrs.flag("unit_diagonal"));
    Matrix x = Matrix::read(b, at.offset(1));
    if (factor.finite())
      substitute(transpose ? factor.transposed() : factor, lower != transpose, x);
    else
      x.fill(kNan);
    x.write(out, item);
  }
  return {};
}

// ---- qr ----

Dim smaller_of(const Graph& graph, const Dim& a, const Dim& b) {
  return graph.range(b - a).lo >= 0 ? a : graph.range(a - b).lo >= 0 ? b : min(a, b);
}

Status infer_qr(InferArgs& args) {
  RLX_TRY(check_matrix(args, 0));
  const Dim &m = args.dims()[args.rank() - 2], &n = args.dims().back();
  Dim inner = args.attrs.flag("full") ? m : smaller_of(args.graph, m, n);
  args.out[0].dims = batched(args, {m, inner});
  args.out[1].dims = batched(args, {inner, n});
  return {};
}

Reflections::Reflections(Matrix& a) : v_(std::min(a.rows(), a.columns()), a.rows()) {
  int64_t m = a.rows();
  for (int64_t k = 0; k < v_.rows(); k++) {
    double norm = 0;
    for (int64_t i = k; i < m; i++) norm = std::hypot(norm, v_(k, i) = a(i, k));
    double& head = v_(k, k);
    head += head < 0 ? -norm : norm;
    double square = 0;
    for (int64_t i = k; i < m; i++) square += v_(k, i) * v_(k, i);
    squares_.push_back(square);
    reflect(k, a);
    for (int64_t i = k + 1; i < m; i++) a(i, k) = 0;
  }
}

void Reflections::reflect(int64_t k, Matrix& x) const {
  double square = squares_[static_cast<size_t>(k)];
  if (square == 0) return;
  std::vector<double> along(static_cast<size_t>(x.columns()));
  auto at = [&](int64_t j) -> double& { return along[static_cast<size_t>(j)]; };
  for (int64_t i = k; i < x.rows(); i++)
    for (int64_t j = k; j < x.columns(); j++) at(j) += v_(k, i) * x(i, j);
  for (int64_t j = k; j < x.columns(); j++) at(j) = 2 * at(j) / square;
  for (int64_t i = k; i < x.rows(); i++)
    for (int64_t j = k; j < x.columns(); j++) x(i, j) -= at(j) * v_(k, i);
}

Matrix Reflections::product_columns(int64_t count) const {
  Matrix result(v_.columns(), count);
  for (int64_t i = 0; i < std::min(result.rows(), count); i++) result(i, i) = 1;
  for (int64_t k = v_.rows(); k-- > 0;) reflect(k, result);
  return result;
}

// a = q r, with a diagonal of r that is not negative. q has as many columns as r has rows.
static void factor_qr(Matrix a, Matrix& q, Matrix& r) {
  q = Reflections(a).product_columns(q.columns());
  for (int64_t k = 0; k < r.rows(); k++) {
    double sign = k < a.columns() && a(k, k) < 0 ? -1 : 1;
    for (int64_t i = 0; i < a.rows(); i++) q(i, k) *= sign;
    for (int64_t j = k; j < a.columns(); j++) r(k, j) = sign * a(k, j);
  }
}

Status eval_qr(EvalArgs& args) {
  int64_t count = matrix_count(args.in[0]), inner = args.out[0].dims.back();
  for (int64_t item = 0; item < count; item++) {
    Matrix a = Matrix::read(args.in[0], item);
    Matrix q(a.rows(), inner), r(inner, a.columns());
    if (a.finite()) {
      int exponent = a.normalise();
      factor_qr(std::move(a), q, r);
      r.scale(exponent);
    } else {
      q.fill(kNan);
      r.fill(kNan);
    }
    q.write(args.out[0], item);
    r.write(args.out[1], item);
  }
  return {};
}

}  // namespace rlx
