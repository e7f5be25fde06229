// SPDX-License-Identifier: Apache-2.0
// Expr: a value under construction, with operators. Decompositions, importers and rewrite rules are written with it.
// Errors are sticky: a failed op gives an invalid Expr, everything built on it is invalid too, and the Builder keeps
// the first cause.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/infer.h"

namespace rlx {

class Builder;
using Axes = std::vector<int64_t>;
using Outputs = std::vector<Expr>;

class Expr {
 public:
  Expr() = default;  // absent
  Expr(Builder* builder, Value value) : builder_(builder), value_(value) {}
  explicit operator bool() const { return value_ != kAbsent; }  // false: an optional input that is absent
  bool valid() const { return present(value_); }

  Builder& builder() const { return *builder_; }
  Value value() const { return value_; }
  const ValueType& type() const;
  DType dtype() const { return type().dtype; }
  size_t rank() const { return type().rank(); }
  const std::vector<Dim>& dims() const { return type().dims; }
  const Dim& dim(int64_t axis) const;  // negative: from the end

 private:
  Builder* builder_ = nullptr;
  Value value_ = kAbsent;
};

// The inputs of a decomposition: one Expr per port (absent ones test false), then the other variadic inputs.
class Inputs {
 public:
  Inputs(Builder& builder, std::span<const Expr> items) : builder_(&builder), items_(items) {}
  Expr operator[](size_t i) const { return items_[i]; }
  size_t size() const { return items_.size(); }
  std::span<const Expr> all() const { return items_; }
  Builder& builder() const { return *builder_; }

 private:
  Builder* builder_;
  std::span<const Expr> items_;
};

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(&graph) {}

  // Adds a node to the graph and returns its outputs. The default is Graph::add; the rewriter passes a function that
  // returns an equal node where there is one.
  using AddFn = std::function<Result<std::vector<Value>>(const OpInfo& info, std::span<const Value> in, Attrs attrs,
                                                         std::string name)>;
  void set_add(AddFn add) { add_ = std::move(add); }

  Expr op(Op op, std::initializer_list<Expr> in, const NamedAttrs& attrs = {});
  Outputs ops(Op op, std::span<const Expr> in, const NamedAttrs& attrs = {}, std::string name = {});
  Outputs ops(Op op, std::initializer_list<Expr> in, const NamedAttrs& attrs = {}) {
    return ops(op, std::span<const Expr>(in.begin(), in.size()), attrs);
  }
  Outputs add(const OpInfo& info, std::span<const Expr> in, Attrs attrs, std::string name = {});
  Expr constant(Tensor value);
  Expr scalar(DType dtype, double value);  // rank 0; an integer dtype must hold the value exactly
  Expr size(const Dim& dim, DType dtype);  // a size as a value of rank 0: a constant, or computed in the run
  Expr wrap(Value value) { return Expr(this, value); }

  Expr fail(Status status);  // keeps the first; returns an invalid Expr
  const Status& status() const { return status_; }
  Status take_status() { return std::exchange(status_, Status()); }  // and forgets it
  Graph& graph() { return *graph_; }

 private:
  Graph* graph_;
  AddFn add_ = nullptr;
  Status status_;
};

// What a decomposition returns if it refuses its inputs: the builder fails.
inline Outputs refuse(Builder& builder, Code code, std::string message) {
  builder.fail(Status(code, std::move(message)));
  return {};
}
inline Outputs refuse(Expr x, Code code, std::string message) {
  return refuse(x.builder(), code, std::move(message));
}
inline Outputs refuse(const Inputs& in, Code code, std::string message) {
  return refuse(in.builder(), code, std::move(message));
}

// Builds the composite's decomposition in `builder`'s graph, with the casts of the wide rule (semantics.md N7) around
// it.
Outputs decompose(Builder& builder, const OpInfo& info, std::span<const Expr> in, const Attrs& attrs);

// Builds the decomposition too, but on new inputs of these types (null: absent). `builder` is one for a graph without
// inputs, which is made for this and thrown away. The error of the builder is returned.
Result<Outputs> decompose_aside(Builder& builder, const OpInfo& info, std::span<const ValueType* const> types,
                                const Attrs& attrs);

// Inference of every composite: the types that decompose_aside gives, with its symbols and guards.
Status infer_composite(InferArgs& args);
Status infer_elementwise_region(InferArgs& args);

// ---- arithmetic; a number is a constant of the other operand's dtype ----
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr x);
Expr operator+(Expr a, double b);
Expr operator-(Expr a, double b);
Expr operator*(Expr a, double b);
Expr operator/(Expr a, double b);
Expr operator+(double a, Expr b);
Expr operator-(double a, Expr b);
Expr operator*(double a, Expr b);
Expr operator/(double a, Expr b);

Expr unary(Op op, Expr x);
Expr binary(Op op, Expr a, Expr b);
inline Expr exp(Expr x) {
  return unary(Op::kExp, x);
}
inline Expr sqrt(Expr x) {
  return unary(Op::kSqrt, x);
}
inline Expr tanh(Expr x) {
  return unary(Op::kTanh, x);
}
inline Expr erf(Expr x) {
  return unary(Op::kErf, x);
}
inline Expr abs(Expr x) {
  return unary(Op::kAbs, x);
}
inline Expr floor(Expr x) {
  return unary(Op::kFloor, x);
}
inline Expr log(Expr x) {
  return unary(Op::kLog, x);
}
inline Expr log1p(Expr x) {
  return unary(Op::kLog1p, x);
}
inline Expr expm1(Expr x) {
  return unary(Op::kExpm1, x);
}
inline Expr atan2(Expr y, Expr x) {
  return binary(Op::kAtan2, y, x);
}
inline Expr maximum(Expr a, Expr b) {
  return binary(Op::kMax, a, b);
}
inline Expr minimum(Expr a, Expr b) {
  return binary(Op::kMin, a, b);
}
inline Expr equal(Expr a, Expr b) {
  return binary(Op::kEq, a, b);
}
inline Expr less(Expr a, Expr b) {
  return binary(Op::kLt, a, b);
}
inline Expr less_equal(Expr a, Expr b) {
  return binary(Op::kLe, a, b);
}
inline Expr not_equal(Expr a, Expr b) {
  return binary(Op::kNe, a, b);
}
inline Expr logical_and(Expr a, Expr b) {
  return binary(Op::kBitAnd, a, b);
}
inline Expr logical_or(Expr a, Expr b) {
  return binary(Op::kBitOr, a, b);
}
Expr logical_not(Expr x);
inline Expr exclusive_or(Expr a, Expr b) {
  return binary(Op::kBitXor, a, b);
}
Expr where(Expr condition, Expr a, Expr b);
Expr scalar_like(Expr x, double value);  // rank 0, x's dtype
inline Expr where(Expr condition, Expr a, double b) {
  return where(condition, a, scalar_like(a, b));
}
inline Expr where(Expr condition, double a, Expr b) {
  return where(condition, scalar_like(b, a), b);
}
inline Expr maximum(Expr a, double b) {
  return maximum(a, scalar_like(a, b));
}
inline Expr minimum(Expr a, double b) {
  return minimum(a, scalar_like(a, b));
}
inline Expr equal(Expr a, double b) {
  return equal(a, scalar_like(a, b));
}
inline Expr not_equal(Expr a, double b) {
  return not_equal(a, scalar_like(a, b));
}
inline Expr less(Expr a, double b) {
  return less(a, scalar_like(a, b));
}
inline Expr greater(Expr a, double b) {
  return less(scalar_like(a, b), a);
}

// ---- shapes and reductions ----
inline bool is_one_number(Expr x) {  // of any rank
  return element_count(x.dims()).is(1);
}
Expr cast(Expr x, DType to);  // x itself if it has that dtype
Expr reshape(Expr x, std::vector<Dim> dims);
Expr transpose(Expr x, Axes perm);
Expr broadcast_to(Expr x, std::vector<Dim> dims);
Expr concat(std::span<const Expr> parts, int64_t axis);
Expr slice(Expr x, int64_t axis, Dim start, Dim end, int64_t step = 1);
Expr unsqueeze(Expr x, int64_t axis);  // axis of the result
Expr gather(Expr x, Expr indices, int64_t axis);
Expr iota(Builder& builder, std::vector<Dim> dims, int64_t axis, DType dtype);
enum class KeepDims : bool { kNo, kYes };  // whether a reduced axis stays, as 1
Expr reduce(Expr x, const char* fn, Axes axes, KeepDims keep_dims = KeepDims::kYes);
inline Expr sum(Expr x, Axes axes) {
  return reduce(x, "sum", std::move(axes));
}
Expr mean(Expr x, Axes axes);                                  // keeps the axes as 1
Expr cumulative(Expr x, const char* fn, int64_t axis);         // of each element and those before it
Expr cumulative_before(Expr x, const char* fn, int64_t axis);  // of those before it only
Expr as_index(Expr position, Expr n);                          // held within [0, n), as i64
struct Transposed {
  bool a = false, b = false;
};
Expr matmul(Expr a, Expr b, Transposed transposed = {});
Expr swap_last_axes(Expr x);
Expr stop_gradient(Expr x);
Axes trailing_axes(int64_t first, size_t rank);  // first..rank-1

// ---- sizes, checked (semantics.md S2); nullopt or false: the builder has failed, so return {} ----
std::optional<Dim> divided(Expr x, const Dim& a, const Dim& b);              // a / b exactly, or with a guard
bool require(Expr x, Guard::Relation relation, const Dim& a, const Dim& b);  // or a guard
// Requires that x has these sizes, or that it stretches to them (aligned right, a literal 1 fits any). `what` names x.
bool require_shape(Expr x, std::string_view what, std::span<const Dim> dims);
inline bool require_shape(Expr x, std::string_view what, std::initializer_list<Dim> dims) {
  return require_shape(x, what, std::span(dims.begin(), dims.size()));
}
bool require_stretch(Expr x, std::string_view what, std::span<const Dim> dims);

}  // namespace rlx
