// SPDX-License-Identifier: Apache-2.0
// Systems of equations, inverses and determinants, by the factorisations of linalg.cpp.
#include <cmath>

#include "ops/expr.h"

namespace rlx {

// True on the diagonal, bool [N,N].
static Expr on_diagonal(Builder& b, const Dim& n) {
  return equal(iota(b, {n, 1}, 0, DType::kI64), iota(b, {1, n}, 1, DType::kI64));
}

// The x of a x = b, where a is a triangle: only its elements in the triangle are read.
static Expr solved_upper(Expr a, Expr b) {
  return a.builder().op(Op::kTriangularSolve, {a, b}, {{"lower", int64_t{0}}});
}
static Expr solved_unit_lower(Expr a, Expr b) {
  return a.builder().op(Op::kTriangularSolve, {a, b}, {{"lower", int64_t{1}}, {"unit_diagonal", int64_t{1}}});
}

Outputs decompose_solve(const Inputs& in, const Attrs&) {
  Builder& b = in.builder();
  Expr a = in[0], right = in[1];
  Outputs factors = b.ops(Op::kLu, {a});
  if (!b.status().ok()) return {};
  bool is_vector = right.rank() + 1 == a.rank();
  if (is_vector) right = unsqueeze(right, -1);
  if (right.rank() < 2) return refuse(in, Code::kShape, "b needs one axis less than a, or as many");
  Expr picks = equal(unsqueeze(factors[1], -1), iota(b, {1, a.dim(-1)}, 1, DType::kI64));  // rows in their new order
  right = matmul(cast(picks, a.dtype()), right);
  Expr x = solved_upper(factors[0], solved_unit_lower(factors[0], right));
  if (!is_vector || !x.valid()) return {x};
  return {reshape(x, {x.dims().begin(), x.dims().end() - 1})};
}

Outputs decompose_inverse(const Inputs& in, const Attrs&) {
  Builder& b = in.builder();
  Expr a = in[0];
  if (a.rank() < 2) return refuse(in, Code::kShape, format("a has rank {}, it needs 2 or more", a.rank()));
  if (!b.graph().add_guard({Guard::kEqual, a.dim(-2), a.dim(-1), "size"}).ok())
    return refuse(in, Code::kShape,
                  format("the rows and columns of a square matrix: {} is not {}", a.dim(-2), a.dim(-1)));
  return {b.op(Op::kSolve, {a, broadcast_to(cast(on_diagonal(b, a.dim(-1)), a.dtype()), a.dims())})};
}

struct Determined {
  Expr diagonal, sign;  // of U, [..., N]; of the permutation, [...]
};

static std::optional<Determined> determined(Expr a) {
  Builder& b = a.builder();
  Outputs factors = b.ops(Op::kLu, {a});
  if (!b.status().ok()) return std::nullopt;
  Expr kept = where(on_diagonal(b, a.dim(-1)), factors[0], 0);
  return Determined{reduce(kept, "sum", {static_cast<int64_t>(a.rank()) - 1}, KeepDims::kNo), factors[2]};
}

Outputs decompose_det(const Inputs& in, const Attrs&) {
  auto found = determined(in[0]);
  if (!found) return {};
  Axes last{static_cast<int64_t>(in[0].rank()) - 2};
  return {found->sign * reduce(found->diagonal, "prod", last, KeepDims::kNo)};
}

Outputs decompose_slogdet(const Inputs& in, const Attrs&) {
  auto found = determined(in[0]);
  if (!found) return {};
  Axes last{static_cast<int64_t>(in[0].rank()) - 2};
  Expr signs = reduce(unary(Op::kSign, found->diagonal), "prod", last, KeepDims::kNo);
  return {found->sign * signs, reduce(log(abs(found->diagonal)), "sum", last, KeepDims::kNo)};
}

Outputs decompose_lstsq(const Inputs& in, const Attrs&) {
  Builder& b = in.builder();
  Outputs factors = b.ops(Op::kQr, {in[0]});
  if (!b.status().ok()) return {};
  if (!require(in[0], Guard::kLessEqual, in[0].dim(-1), in[0].dim(-2))) return {};
  return {solved_upper(factors[1], matmul(factors[0], in[1], {.a = true}))};
}

Outputs decompose_pinv(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr a = in[0];
  Outputs factors = b.ops(Op::kSvd, {a});
  if (!b.status().ok()) return {};
  double eps = a.dtype() == DType::kF64 ? 0x1p-52 : 0x1p-23;
  Expr rcond =
      attrs.has("rcond") ? scalar_like(a, attrs.f64("rcond")) : b.size(max(a.dim(-1), a.dim(-2)), a.dtype()) * eps;
  Expr s = factors[1];
  Expr kept = less(rcond * reduce(s, "max", {static_cast<int64_t>(s.rank()) - 1}), s);
  Expr inverse = where(kept, 1.0 / where(kept, s, 1), 0);
  return {matmul(factors[2], unsqueeze(inverse, -1) * swap_last_axes(factors[0]), {.a = true})};
}

}  // namespace rlx
