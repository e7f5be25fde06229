// SPDX-License-Identifier: Apache-2.0
// Facts of the ops that make positions, masks and constants. FactArgs::set drops a form whose elements might wrap.
#include "ops/facts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/dtype.h"

namespace rlx {

static constexpr int64_t kLargestConstant = int64_t{1} << 40;  // beyond any size: sums of these do not overflow
static constexpr int64_t kMaxElements = int64_t{1} << 16;      // of a constant that is examined
static constexpr int64_t kExactInDouble = int64_t{1} << 53;

static Affine uniform(Dim offset, size_t rank) {
  return {std::move(offset), std::vector<Dim>(rank, Dim(0))};
}

// ---- leaves ----

static std::optional<double> splat_of(const Tensor& tensor) {
  if (tensor.bytes() == 0 || is_block(tensor.dtype()) || is_complex(tensor.dtype())) return std::nullopt;
  auto unit = static_cast<size_t>(element_bytes(tensor.dtype()));
  if (std::memcmp(tensor.data(), tensor.data() + unit, tensor.bytes() - unit) != 0) return std::nullopt;
  if (is_integer(tensor.dtype())) {
    int64_t value = element_as_i64(tensor, 0);
    bool exact = -kExactInDouble <= value && value <= kExactInDouble && (value >= 0 || tensor.dtype() != DType::kU64);
    return exact ? std::optional(static_cast<double>(value)) : std::nullopt;
  }
  return element_as_f64(tensor, 0);
}

// The affine form of a constant whose elements have equal steps along every axis.
static std::optional<Affine> affine_of(const Tensor& tensor) {
  if (tensor.count() == 0 || tensor.count() > kMaxElements) return std::nullopt;
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

static std::optional<Interval> range_of(const Tensor& tensor) {
  if (tensor.count() == 0 || tensor.count() > kMaxElements) return std::nullopt;
  Interval range{Interval::kUnbounded, -Interval::kUnbounded};
  for (int64_t i = 0; i < tensor.count(); i++) {
    int64_t element = element_as_i64(tensor, i);
    if (element < 0 && tensor.dtype() == DType::kU64) return std::nullopt;
    range = {std::min(range.lo, element), std::max(range.hi, element)};
  }
  return range;
}

void facts_constant(FactArgs& args) {
  const Tensor& tensor = args.node.attrs.tensor("value");
  args.out.splat = splat_of(tensor);
  if (!is_integer(tensor.dtype()) && tensor.dtype() != DType::kBool) return;
  if (auto range = range_of(tensor)) args.set(*range);
  if (!dtypes::X.has(tensor.dtype()) && tensor.dtype() != DType::kBool) return;
  if (auto form = affine_of(tensor)) args.set(std::move(*form));
}

void facts_iota(FactArgs& args) {
  Affine form = uniform(0, args.type().rank());
  form.steps[static_cast<size_t>(args.node.attrs.i64("axis"))] = 1;
  args.set(std::move(form));
}

void facts_dim_size(FactArgs& args) {
  args.set(Affine{args.dims(0)[static_cast<size_t>(args.node.attrs.i64("axis"))], {}});
}

// ---- arithmetic ----

void facts_cast(FactArgs& args) {
  const ValueFacts& x = *args.in[0];
  DType from = args.graph.type(args.node.in[0]).dtype, to = args.type().dtype;
  if (x.affine) args.set(*x.affine);
  if (x.range) args.set(*x.range);
  if (!x.splat) return;
  if (to == DType::kBool) args.out.splat = *x.splat != 0 ? 1.0 : 0.0;
  bool one_rounding = to == DType::kF32 || (is_half(to) && (from == DType::kF32 || is_half(from)));
  if (!one_rounding || !std::isfinite(*x.splat)) return;
  if (auto rounded = scalar_tensor(to, *x.splat); rounded.ok() && std::isfinite(element_as_f64(*rounded, 0)))
    args.out.splat = element_as_f64(*rounded, 0);
}

void facts_neg(FactArgs& args) {
  if (args.in[0]->affine) args.set(*args.in[0]->affine * Dim(-1));
}

void facts_add(FactArgs& args) {
  if (args.in[0]->affine && args.in[1]->affine) args.set(*args.in[0]->affine + *args.in[1]->affine);
}

void facts_sub(FactArgs& args) {
  if (args.in[0]->affine && args.in[1]->affine) args.set(*args.in[0]->affine - *args.in[1]->affine);
}

// Known only if one factor is the same everywhere.
void facts_mul(FactArgs& args) {
  for (size_t i = 0; i < 2; i++) {
    const Affine *varying = args.in[i]->affine.get(), *factor = args.in[1 - i]->affine.get();
    if (!varying || !factor || !factor->is_uniform()) continue;
    Affine zero = uniform(0, factor->steps.size());  // widens the sum to the factor's rank
    return args.set(*varying * factor->offset + zero);
  }
}

// ---- truth values: 1 where they hold ----

// Known only if both operands are the same everywhere.
static void set_uniform_truth(FactArgs& args, Dim (*truth)(const Dim& a, const Dim& b)) {
  if (args.type().dtype != DType::kBool || !args.in[0]->affine || !args.in[1]->affine) return;
  const Affine &a = *args.in[0]->affine, &b = *args.in[1]->affine;
  if (a.is_uniform() && b.is_uniform()) args.set(uniform(truth(a.offset, b.offset), args.type().rank()));
}

void facts_eq(FactArgs& args) {
  set_uniform_truth(args, is_equal);
}
void facts_ne(FactArgs& args) {
  set_uniform_truth(args, [](const Dim& a, const Dim& b) { return negated(is_equal(a, b)); });
}
void facts_lt(FactArgs& args) {
  set_uniform_truth(args, is_less);
}
void facts_le(FactArgs& args) {
  set_uniform_truth(args, [](const Dim& a, const Dim& b) { return negated(is_less(b, a)); });
}
void facts_gt(FactArgs& args) {
  set_uniform_truth(args, [](const Dim& a, const Dim& b) { return is_less(b, a); });
}
void facts_ge(FactArgs& args) {
  set_uniform_truth(args, [](const Dim& a, const Dim& b) { return negated(is_less(a, b)); });
}
void facts_and(FactArgs& args) {
  set_uniform_truth(args, [](const Dim& a, const Dim& b) { return min(a, b); });
}
void facts_or(FactArgs& args) {
  set_uniform_truth(args, [](const Dim& a, const Dim& b) { return max(a, b); });
}
void facts_xor(FactArgs& args) {
  set_uniform_truth(args, [](const Dim& a, const Dim& b) { return max(min(a, negated(b)), min(b, negated(a))); });
}
void facts_not(FactArgs& args) {
  if (args.type().dtype == DType::kBool && args.in[0]->affine)
    args.set(uniform(1, args.type().rank()) - *args.in[0]->affine);
}

// ---- views ----

// Every element of the result is an element of the input.
static void selects(FactArgs& args) {
  args.out.splat = args.in[0]->splat;
  if (args.in[0]->range) args.set(*args.in[0]->range);
}

// A reshape that only adds and drops axes of size 1 keeps the steps of the other axes.
static std::optional<Affine> reshaped(const Affine& form, std::span<const Dim> from, std::span<const Dim> to) {
  Affine result = uniform(form.offset, to.size());
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

void facts_reshape(FactArgs& args) {
  selects(args);
  if (!args.in[0]->affine) return;
  if (auto form = reshaped(*args.in[0]->affine, args.dims(0), args.type().dims)) args.set(std::move(*form));
}

void facts_broadcast_to(FactArgs& args) {
  selects(args);
  if (args.in[0]->affine) args.set(*args.in[0]->affine + uniform(0, args.type().rank()));
}

void facts_transpose(FactArgs& args) {
  selects(args);
  if (!args.in[0]->affine) return;
  const Affine& x = *args.in[0]->affine;
  Affine form{x.offset, {}};
  for (int64_t axis : args.node.attrs.i64s("perm")) form.steps.push_back(x.steps[static_cast<size_t>(axis)]);
  args.set(std::move(form));
}

void facts_slice(FactArgs& args) {
  selects(args);
  if (!args.in[0]->affine) return;
  Affine form = *args.in[0]->affine;
  const Attrs& attrs = args.node.attrs;
  const std::vector<Dim>& starts = attrs.dims("starts");
  for (size_t i = 0; i < starts.size(); i++) {
    int64_t step = attrs.i64s("steps")[i];
    auto at = static_cast<size_t>(attrs.i64s("axes")[i]);
    // If the start is beyond the end, the slice is empty, and a fact about its elements claims nothing.
    if (step <= 0 || args.graph.range(starts[i]).lo < 0) return;
    form.offset += form.steps[at] * starts[i];
    form.steps[at] *= step;
  }
  args.set(std::move(form));
}

}  // namespace rlx
