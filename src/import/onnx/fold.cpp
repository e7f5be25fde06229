// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/fold.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/visit.h"
#include "import/onnx/tensor.h"

namespace rlx::onnx {

namespace {

using Item = std::optional<Dim>;

// The dims of a broadcast of literal dims; nullopt where they disagree, which inference will report.
std::optional<std::vector<int64_t>> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  auto disagree = [](const Dim&, const Dim&) -> Result<Dim> { return Status(Code::kShape, "sizes that differ"); };
  std::vector<Dim> first(a.begin(), a.end()), second(b.begin(), b.end());
  auto both = rlx::broadcast(first, second, disagree);
  if (!both.ok()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Dim& dim : *both) dims.push_back(dim.literal());
  return dims;
}

// `sizes` stretched to dims that they broadcast to.
Folded stretch(const Sizes& sizes, const std::vector<int64_t>& dims) {
  return move_sizes(sizes, dims, [&](int64_t flat) {
    int64_t at = 0, stride = 1;
    for (size_t i = 0; i < dims.size(); i++) {
      int64_t position = flat % dims[dims.size() - 1 - i];
      flat /= dims[dims.size() - 1 - i];
      if (i >= sizes.dims.size()) continue;
      int64_t own = sizes.dims[sizes.dims.size() - 1 - i];
      at += own == 1 ? 0 : position * stride;
      stride *= own;
    }
    return at;
  });
}

// Whether a number of this dtype can be that one; else it would wrap.
bool holds(DType dtype, const Dim& item) {
  if (!item.is_literal() || !is_integer(dtype)) return true;
  return visit<dtypes::I>(dtype, [&]<class T>() { return std::in_range<T>(item.literal()); });
}

// One answer per element of the broadcast inputs; nullopt if one is missing.
template <class Answer>
Folded fold_pair(const Sizes& first, const Sizes& second, DType dtype, Answer answer) {
  auto dims = broadcast(first.dims, second.dims);
  if (!dims) return std::nullopt;
  Folded a = stretch(first, *dims), b = stretch(second, *dims);
  if (!a || !b) return std::nullopt;
  Sizes result{dtype, *dims, {}};
  // Sizes saturate, but integers do not; the "end of the axis" in a file is such a large number.
  auto is_far = [](const Dim& dim) {
    return dim.is_literal() && (dim.literal() > kLargestSize || dim.literal() < -kLargestSize);
  };
  for (size_t i = 0; i < a->items.size(); i++) {
    if (is_far(a->items[i]) || is_far(b->items[i])) return std::nullopt;
    Item item = answer(a->items[i], b->items[i]);
    if (!item || !holds(dtype, *item)) return std::nullopt;
    result.items.push_back(*item);
  }
  return result;
}

// An operand beside sizes that an exporter has cast to floats: a literal tensor of whole numbers.
Folded whole_numbers(Call& call, size_t i) {
  static constexpr double kMost = 1 << 24;
  const OnnxValue* value = call.value(i);
  const Tensor none;
  const Tensor& tensor = value ? value->tensor : none;
  bool is_wide = tensor && (tensor.dtype() == DType::kF32 || tensor.dtype() == DType::kF64);
  if (!is_wide || tensor.count() > static_cast<int64_t>(kMaxSizes)) return std::nullopt;
  Sizes sizes{tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}, {}};
  for (int64_t at = 0; at < tensor.count(); at++) {
    double number = element_as_f64(tensor, at);
    if (!(std::abs(number) <= kMost) || number != std::floor(number)) return std::nullopt;
    sizes.items.emplace_back(static_cast<int64_t>(number));
  }
  return sizes;
}

// Before opset 7 'broadcast' allows what every node does now, and 'axis' says where the second operand begins.
bool begins_at_axis(Call& call) {
  if (call.opset() >= 7) return false;
  call.ignore("broadcast");
  return call.has_attr("axis");
}

template <class Answer>
Folded fold_chain(Call& call, Answer answer) {
  if (begins_at_axis(call)) return std::nullopt;
  Folded result;
  bool any = false;
  for (size_t i = 0; i < call.inputs(); i++) any = any || call.sizes(i);
  for (size_t i = 0; i < call.inputs(); i++) {
    const Sizes* known = call.sizes(i);
    Folded next = known ? Folded(*known) : any ? whole_numbers(call, i) : std::nullopt;
    if (!next) return std::nullopt;
    result = i == 0 ? *next : fold_pair(*result, *next, next->dtype, answer);
    if (!result) return std::nullopt;
  }
  return result;
}

template <class Answer>
Folded fold_compare(Call& call, Answer answer) {
  const Sizes *a = call.sizes(0), *b = call.sizes(1);
  if (!a || !b || begins_at_axis(call)) return std::nullopt;
  return fold_pair(*a, *b, DType::kBool, answer);
}

template <class Answer>
Folded fold_one(Call& call, Answer answer) {
  const Sizes* x = call.sizes(0);
  if (!x) return std::nullopt;
  return fold_pair(*x, *x, x->dtype, [&](const Dim& a, const Dim&) { return answer(a); });
}

// ---- conditions: 0 or 1, for all sizes or depending on the sizes of the run ----

// A literal if the ranges decide it.
Dim settled(Call& call, const Dim& truth) {
  Interval range = call.range(truth);
  return range.lo == range.hi ? Dim(range.lo) : truth;
}

Dim is_zero(Call& call, const Dim& dim) {
  Interval range = call.range(dim);
  if (range.lo > 0 || range.hi < 0) return Dim(0);
  return settled(call, is_equal(dim, Dim(0)));
}

Dim less(Call& call, const Dim& a, const Dim& b) {
  return settled(call, is_less(a, b));
}

// The divisor in a form that is never 0; nullopt if it may be negative. A division by 0 may have any result, but an
// empty axis must not fail a run that never reads this result.
Item divisor(Call& call, const Dim& b) {
  Interval range = call.range(b);
  if (range.lo < 0 || b.is(0)) return std::nullopt;
  return range.lo > 0 ? b : max(Dim(1), b);
}

// Floats have a quotient of sizes only where the division is exact. It counts as defined for a size of 0, too: whether
// a size may be 0 is seldom known, and what depends on the quotient must keep its shape.
// Integers divide toward zero: the positive part and the negated negative part are divided separately, rounding down.
Item divide(Call& call, const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (b.is(-1)) return Dim(0) - a;
  if (is_float(call.type(0).dtype)) return exact_div(a, b);
  if (a.is_literal() && b.is_literal()) return Dim(a.literal() / b.literal());
  if (auto exact = exact_div(a, b)) return *exact;
  Item by = divisor(call, b);
  if (!by) return std::nullopt;
  int64_t least = call.range(a).lo;
  Dim above = least >= 0 ? a : max(Dim(0), a), below = -least < call.range(*by).lo ? 0 : max(Dim(0), Dim(0) - a);
  return floor_div(above, *by) - floor_div(below, *by);
}

}  // namespace

Folded fold_identity(Call& call) {
  return call.sizes(0) ? Folded(*call.sizes(0)) : std::nullopt;
}
Folded fold_neg(Call& call) {
  return fold_one(call, [](const Dim& a) -> Item { return Dim(0) - a; });
}
Folded fold_add(Call& call) {
  return fold_chain(call, [](const Dim& a, const Dim& b) -> Item { return a + b; });
}
Folded fold_sub(Call& call) {
  return fold_chain(call, [](const Dim& a, const Dim& b) -> Item { return a - b; });
}
Folded fold_mul(Call& call) {
  return fold_chain(call, [](const Dim& a, const Dim& b) -> Item { return a * b; });
}
Folded fold_min(Call& call) {
  return fold_chain(call, [](const Dim& a, const Dim& b) -> Item { return min(a, b); });
}
Folded fold_max(Call& call) {
  return fold_chain(call, [](const Dim& a, const Dim& b) -> Item { return max(a, b); });
}
Folded fold_div(Call& call) {
  return fold_chain(call, [&](const Dim& a, const Dim& b) { return divide(call, a, b); });
}

// The remainder of a division that rounds down or, with fmod, toward zero.
Folded fold_mod(Call& call) {
  bool toward_zero = call.i64("fmod", 0) != 0;
  return fold_chain(call, [&](const Dim& a, const Dim& b) -> Item {
    Item by = divisor(call, b);
    Item quotient = !by ? std::nullopt : toward_zero ? divide(call, a, *by) : Item(floor_div(a, *by));
    return quotient ? Item(a - *quotient * *by) : std::nullopt;
  });
}

Folded fold_and(Call& call) {
  return fold_chain(call, [](const Dim& a, const Dim& b) -> Item { return min(a, b); });
}
Folded fold_or(Call& call) {
  return fold_chain(call, [](const Dim& a, const Dim& b) -> Item { return max(a, b); });
}
Folded fold_not(Call& call) {
  return fold_one(call, [](const Dim& a) -> Item { return negated(a); });
}
Folded fold_equal(Call& call) {
  return fold_compare(call, [&](const Dim& a, const Dim& b) { return Item(is_zero(call, a - b)); });
}
Folded fold_less(Call& call) {
  return fold_compare(call, [&](const Dim& a, const Dim& b) { return Item(less(call, a, b)); });
}
Folded fold_greater(Call& call) {
  return fold_compare(call, [&](const Dim& a, const Dim& b) { return Item(less(call, b, a)); });
}
Folded fold_less_equal(Call& call) {
  return fold_compare(call, [&](const Dim& a, const Dim& b) { return Item(negated(less(call, b, a))); });
}
Folded fold_greater_equal(Call& call) {
  return fold_compare(call, [&](const Dim& a, const Dim& b) { return Item(negated(less(call, a, b))); });
}

Folded fold_where(Call& call) {
  const Sizes *condition = call.sizes(0), *a = call.sizes(1), *b = call.sizes(2);
  if (!condition || !a || !b) return std::nullopt;
  auto dims = broadcast(a->dims, b->dims);
  if (dims) dims = broadcast(*dims, condition->dims);
  if (!dims) return std::nullopt;
  Folded which = stretch(*condition, *dims), yes = stretch(*a, *dims), no = stretch(*b, *dims);
  if (!which || !yes || !no) return std::nullopt;
  for (size_t i = 0; i < which->items.size(); i++) {
    if (!which->items[i].is_literal()) return std::nullopt;
    if (which->items[i].is(0)) yes->items[i] = no->items[i];
  }
  return yes;
}

// Casts among integers and bool. Exporters also cast sizes to floats, which hold them up to 2^24 or 2^53. A narrower
// integer is assumed to hold the size: sizes of tensors rarely exceed 2^31.
static Folded fold_cast_to(Call& call, const Result<DType>& to) {
  const Sizes* x = call.sizes(0);
  for (const char* unused : {"saturate", "round_mode"}) call.ignore(unused);
  if (!x || !to.ok()) return std::nullopt;
  bool is_wide = *to == DType::kF32 || *to == DType::kF64;
  if (is_wide && std::all_of(x->items.begin(), x->items.end(), [](const Dim& item) { return item.is_literal(); }))
    return std::nullopt;
  if (*to != DType::kI64 && *to != DType::kI32 && *to != DType::kBool && !is_wide) return std::nullopt;
  Sizes result{*to, x->dims, {}};
  for (const Dim& item : x->items) {
    if (*to != DType::kBool && !holds(*to, item)) return std::nullopt;
    result.items.push_back(*to == DType::kBool ? negated(is_zero(call, item)) : item);
  }
  return result;
}

Folded fold_cast(Call& call) {
  return fold_cast_to(call, dtype_of(call.element_type("to")));
}
Folded fold_cast_like(Call& call) {
  return call.has(1) ? fold_cast_to(call, call.type(1).dtype) : std::nullopt;
}

}  // namespace rlx::onnx
