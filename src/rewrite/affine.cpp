// SPDX-License-Identifier: Apache-2.0
#include "rewrite/affine.h"

#include <algorithm>

#include "base/dtype.h"
#include "ops/expr.h"

namespace rlx {

static constexpr int64_t kLargestConstant = int64_t{1} << 40;  // beyond any size: sums of these do not overflow
static constexpr int64_t kMostElements = int64_t{1} << 16;     // of a constant that is looked at

bool Affine::is_uniform() const {
  return std::all_of(steps.begin(), steps.end(), [](const Dim& step) { return step.is(0); });
}

// a + b * factor, axes aligned right
static Affine combined(const Affine& a, const Affine& b, const Dim& factor) {
  Affine sum{a.offset + b.offset * factor, {}};
  size_t rank = std::max(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < rank; i++) {
    size_t from_end = rank - i;
    Dim step = from_end <= a.steps.size() ? a.steps[a.steps.size() - from_end] : Dim(0);
    if (from_end <= b.steps.size()) step += b.steps[b.steps.size() - from_end] * factor;
    sum.steps.push_back(step);
  }
  return sum;
}

Affine operator-(const Affine& a, const Affine& b) {
  return combined(a, b, -1);
}

// A constant whose elements progress evenly along every axis.
static std::optional<Affine> affine_constant(const Tensor& tensor) {
  if (tensor.count() == 0 || tensor.count() > kMostElements) return std::nullopt;
  for (int64_t i = 0; i < tensor.count(); i++)
    if (int64_t element = element_as_i64(tensor, i); element > kLargestConstant || element < -kLargestConstant)
      return std::nullopt;
  std::span<const int64_t> dims = tensor.dims();
  std::vector<int64_t> strides(dims.size(), 1), steps(dims.size(), 0);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  int64_t first = element_as_i64(tensor, 0);
  for (size_t axis = 0; axis < dims.size(); axis++)
    if (dims[axis] > 1) steps[axis] = element_as_i64(tensor, strides[axis]) - first;
  for (int64_t i = 0; i < tensor.count(); i++) {
    int64_t expected = first;
    for (size_t axis = 0; axis < dims.size(); axis++) expected += i / strides[axis] % dims[axis] * steps[axis];
    if (element_as_i64(tensor, i) != expected) return std::nullopt;
  }
  return Affine{first, {steps.begin(), steps.end()}};
}

// A reshape that only adds and drops 1-dims moves the steps with their axes.
static std::optional<Affine> reshaped(const Affine& form, std::span<const Dim> from, std::span<const Dim> to) {
  Affine result{form.offset, std::vector<Dim>(to.size(), Dim(0))};
  if (form.is_uniform()) return result;
  size_t at = 0;
  for (size_t axis = 0; axis < from.size(); axis++) {
    if (from[axis].is(1)) continue;
    while (at < to.size() && to[at].is(1)) at++;
    if (at == to.size() || !(to[at] == from[axis])) return std::nullopt;
    result.steps[at++] = form.steps[axis];
  }
  return result;
}

static std::optional<Affine> product(const Affine& a, const Affine& b) {
  if (!a.is_uniform() && !b.is_uniform()) return std::nullopt;
  const Affine &varying = a.is_uniform() ? b : a, &factor = a.is_uniform() ? a : b;
  return combined({0, std::vector<Dim>(factor.steps.size(), Dim(0))}, varying, factor.offset);
}

namespace {

// The walk over what a value is made of, which may be asked for again and again by what shares it: hence the budget.
class Analysis {
 public:
  explicit Analysis(const Graph& graph) : graph_(graph) {}

  std::optional<Affine> of(Value value) {
    if (!present(value) || value.output != 0 || !dtypes::X.has(graph_.type(value).dtype) || budget_-- <= 0)
      return std::nullopt;
    const Node& node = graph_.node(value);
    std::optional<Affine> form = node.in.empty() ? leaf(node) : node.in.size() == 1 ? unary(node) : binary(node);
    if (!form) return form;
    for (size_t axis = 0; axis < form->steps.size(); axis++)
      if (node.out[0].dims[axis].is(1)) form->steps[axis] = 0;
    return form;
  }

 private:
  std::optional<Affine> leaf(const Node& node) {
    if (node.op == Op::kConstant) return affine_constant(node.attrs.tensor("value"));
    if (node.op != Op::kIota) return std::nullopt;
    Affine form{0, std::vector<Dim>(node.out[0].rank(), Dim(0))};
    form.steps[normal_axis(node.attrs.i64("axis"), form.steps.size())] = 1;
    return form;
  }

  std::optional<Affine> unary(const Node& node) {
    const std::vector<Dim>&dims = node.out[0].dims, &from = graph_.type(node.in[0]).dims;
    if (node.op == Op::kDimSize) return Affine{from[normal_axis(node.attrs.i64("axis"), from.size())], {}};
    std::optional<Affine> x = of(node.in[0]);
    if (!x) return x;
    switch (node.op) {
      case Op::kCast: return x;
      case Op::kNeg: return combined({}, *x, -1);
      case Op::kReshape: return reshaped(*x, from, dims);
      case Op::kBroadcastTo: return combined({0, std::vector<Dim>(dims.size(), Dim(0))}, *x, 1);
      case Op::kTranspose: return transposed(node, *x);
      case Op::kSlice: return sliced(node, *x);
      default: return std::nullopt;
    }
  }

  std::optional<Affine> binary(const Node& node) {
    if (node.op != Op::kAdd && node.op != Op::kSub && node.op != Op::kMul) return std::nullopt;
    std::optional<Affine> a = of(node.in[0]), b = of(node.in[1]);
    if (!a || !b) return std::nullopt;
    return node.op == Op::kMul ? product(*a, *b) : combined(*a, *b, node.op == Op::kAdd ? 1 : -1);
  }

  static Affine transposed(const Node& node, const Affine& x) {
    Affine form{x.offset, {}};
    for (int64_t axis : node.attrs.i64s("perm")) form.steps.push_back(x.steps[normal_axis(axis, x.steps.size())]);
    return form;
  }

  std::optional<Affine> sliced(const Node& node, Affine form) {
    const Attrs& attrs = node.attrs;
    const std::vector<Dim>& starts = attrs.dims("starts");
    for (size_t i = 0; i < starts.size(); i++) {
      int64_t step = attrs.has("steps") ? attrs.i64s("steps")[i] : 1;
      if (step <= 0 || graph_.range(starts[i]).lo < 0) return std::nullopt;
      int64_t axis = attrs.has("axes") ? attrs.i64s("axes")[i] : static_cast<int64_t>(i);
      Dim& along = form.steps[normal_axis(axis, form.steps.size())];
      form.offset += along * starts[i];
      along *= step;
    }
    return form;
  }

  const Graph& graph_;
  int budget_ = 256;
};

}  // namespace

std::optional<Affine> affine_form(const Graph& graph, Value value) {
  return Analysis(graph).of(value);
}

Interval bounds_of(const Graph& graph, const Affine& form, std::span<const Dim> dims) {
  Dim lowest = form.offset, highest = form.offset;
  for (size_t axis = 0; axis < form.steps.size(); axis++) {
    const Dim& step = form.steps[axis];
    if (step.is(0)) continue;
    Interval sign = graph.range(step);
    Dim reach = step * (dims[axis] - Dim(1));
    if (sign.lo >= 0)
      highest += reach;
    else if (sign.hi <= 0)
      lowest += reach;
    else
      return {-Interval::kUnbounded, Interval::kUnbounded};
  }
  return {graph.range(lowest).lo, graph.range(highest).hi};
}

}  // namespace rlx
