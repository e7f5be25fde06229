// SPDX-License-Identifier: Apache-2.0
// Computes floats in the dtype of the option `precision`: f16, bf16 and f32 all become that dtype. It inserts casts at
// inputs and outputs, and around ops that cannot change their dtype. Where such an op, or an output, reads a value that
// has its dtype anyway, there is no cast: the bits of an input stay, and so do statistics that are always f32. Masks in
// constants stay finite, and so do inputs and params that are only added, as masks are; an eps stays above 0.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/visit.h"
#include "ir/facts.h"
#include "ir/outputs.h"
#include "ops/expr.h"
#include "passes/casts.h"
#include "passes/graph_copy.h"
#include "passes/pass.h"
#include "plan/control.h"
#include "rules/numbers.h"

namespace rlx {

namespace {

bool is_changeable(DType dtype) {
  return is_half(dtype) || dtype == DType::kF32;
}

double largest_of(DType half) {
  return half == DType::kF16 ? 65504 : 0x1.fep127;
}

// For constants that hold masks, numbers that stand for infinity (semantics.md R2): the constant in a half dtype, in
// which they become its largest numbers. A cast would make them infinite, and 0 times infinity is NaN.
std::optional<Tensor> with_finite_masks(const Tensor& constant, DType half) {
  constexpr double kMask = 1e9;
  double largest = largest_of(half);
  auto exceeds = [&](double number) { return std::isfinite(number) && std::fabs(number) >= std::max(kMask, largest); };
  bool has_masks = false;
  for (int64_t i = 0; is_half(half) && i < constant.count() && !has_masks; i++)
    has_masks = exceeds(element_as_f64(constant, i));
  auto made = has_masks ? Tensor::create(half, constant.dims()) : Tensor();
  if (!has_masks || !made.ok()) return std::nullopt;
  visit<DTypeSet{DType::kF16, DType::kBF16}>(half, [&]<class T>() {
    for (int64_t i = 0; i < constant.count(); i++) {
      double number = element_as_f64(constant, i);
      made->as<T>()[i] = T(exceeds(number) ? std::copysign(largest, number) : number);
    }
  });
  return *made;
}

// For a number above 0 that a half would make 0: the least that the half holds. As the eps of a norm it keeps a
// quotient from 0 / 0.
std::optional<Tensor> not_zero(const Tensor& constant, DType half) {
  if (!is_half(half) || constant.count() != 1) return std::nullopt;
  double number = element_as_f64(constant, 0), least = half == DType::kF16 ? 0x1p-24 : 0x1p-126;
  if (!(number > 0) || rounded_to(half, number) != 0) return std::nullopt;
  auto made = Tensor::create(half, constant.dims());
  if (!made.ok()) return std::nullopt;
  visit<DTypeSet{DType::kF16, DType::kBF16}>(half, [&]<class T>() { *made->as<T>() = T(least); });
  return *made;
}

// By node: whether sums, maxima and bounds alone read the constant.
std::vector<bool> find_bounds(const Graph& graph) {
  std::vector<bool> is_bound(graph.nodes().size());
  for (uint32_t i = 0; i < graph.nodes().size(); i++) is_bound[i] = graph.node(i).op == Op::kConstant;
  for (const Node& node : graph.nodes()) {
    bool bounds = node.op == Op::kAdd || node.op == Op::kMax || node.op == Op::kClamp;
    for (Value value : node.in)
      if (present(value) && !bounds) is_bound[value.node] = false;
  }
  return is_bound;
}

// By node: whether sums alone read the input or param, perhaps through views. It may be a mask.
std::vector<bool> find_summands(const Graph& graph) {
  std::vector<bool> is_summand(graph.nodes().size(), true);
  for (auto i = static_cast<uint32_t>(graph.nodes().size()); i-- > 0;) {
    const Node& node = graph.node(i);
    bool adds = node.op == Op::kAdd || (graph.info(node).is(kView) && is_summand[i]);
    for (Value value : node.in)
      if (present(value) && !adds) is_summand[value.node] = false;
  }
  for (const GraphOutput& output : graph.outputs()) is_summand[output.value.node] = false;
  for (uint32_t i = 0; i < graph.nodes().size(); i++)
    is_summand[i] = is_summand[i] && graph.info(graph.node(i)).is(kInterface);
  return is_summand;
}

class Conversion {
 public:
  Conversion(const Graph& given, DType dtype)
      : given_(given),
        dtype_(dtype),
        is_bound_(find_bounds(given)),
        is_summand_(find_summands(given)),
        made_(given.name(), &given.table()),
        copy_(given, made_) {}

  Result<Graph> run() {
    RLX_TRY(copy_.declare());
    for (uint32_t node : given_.inputs()) copy_.copy_keeping_types(node);
    for (uint32_t node : given_.params()) copy_.copy_keeping_types(node);
    for (uint32_t node = 0; node < given_.nodes().size(); node++) {
      if (!given_.info(given_.node(node)).is(kInterface)) RLX_TRY(convert(node));
      RLX_TRY(cast_outputs(node));
    }
    for (const GraphOutput& output : given_.outputs())
      RLX_TRY(made_.add_output(output.name, RLX_TRY(as_given(output.value))));
    return drop_dead(std::move(made_));  // casts that nothing reads
  }

 private:
  // Converts a node if it can compute in the other dtype. If not, it stays as it is, between casts.
  Status convert(uint32_t index) {
    const Node& node = given_.node(index);
    const OpInfo& info = given_.info(node);
    bool is_fixed = info.is(kLeaf) || info.is(kOnHost) || node.op == Op::kBitcast || !body_attrs(node.op).empty();
    if (!is_fixed && compute_in_dtype(index).ok()) return {};
    std::vector<Value> in;
    for (Value value : node.in) in.push_back(present(value) ? RLX_TRY(as_given(value)) : value);
    Value made = made_.append_copy(given_, index, in);
    copy_.set_outputs(index, outputs_of(made_, made.node));
    return {};
  }

  Status compute_in_dtype(uint32_t index) {
    const Node& node = given_.node(index);
    const OpInfo& info = given_.info(node);
    Attrs attrs = node.attrs;
    for (size_t i = 0; i < info.attrs.size(); i++)
      if (const DType* dtype = std::get_if<DType>(&attrs.values()[i]); dtype && is_changeable(*dtype))
        attrs.set(i, dtype_);
    Value made = RLX_TRY(made_.add(info, copy_.mapped(node.in), attrs, node.name));
    copy_.set_outputs(index, outputs_of(made_, made.node));
    return {};
  }

  Status cast_outputs(uint32_t index) {
    for (Value output : outputs_of(given_, index)) {
      Value value = copy_.mapped(output);
      if (made_.type(value).dtype == given_.type(output).dtype) unchanged_.emplace(output, value);
      if (is_changeable(made_.type(value).dtype)) {
        if (is_summand_[index]) value = RLX_TRY(kept_finite(value));
        copy_.set(output, RLX_TRY(in_dtype(value, is_bound_[index])));
      }
    }
    return {};
  }

  Result<Value> in_dtype(Value value, bool is_bound) {
    const Tensor* constant = made_.type(value).dtype != dtype_ ? made_.constant(value) : nullptr;
    auto made = constant ? with_finite_masks(*constant, dtype_) : std::nullopt;
    if (constant && is_bound && !made) made = not_zero(*constant, dtype_);
    if (!made) return cast(value, dtype_);
    Value held = RLX_TRY(made_.add_constant(std::move(*made)));
    made_.set_name(held, std::string(made_.node(value).name));
    return held;
  }

  // As with_finite_masks, for numbers that are not known yet.
  Result<Value> kept_finite(Value value) {
    if (made_.type(value).dtype != DType::kF32 || !is_half(dtype_)) return value;
    Builder builder(made_);
    Expr x = builder.wrap(value), largest = builder.scalar(DType::kF32, largest_of(dtype_));
    Expr bounded = builder.op(Op::kClamp, {x, -largest, largest});
    Expr finite = where(less(abs(x), INFINITY), bounded, x);
    RLX_TRY(builder.status());
    return finite.value();
  }

  Result<Value> as_given(Value value) {
    auto found = unchanged_.find(value);
    return found != unchanged_.end() ? found->second : cast(copy_.mapped(value), given_.type(value).dtype);
  }

  Result<Value> cast(Value value, DType dtype) { return casts_.cast(made_, value, dtype); }

  const Graph& given_;
  DType dtype_;
  std::vector<bool> is_bound_, is_summand_;
  Graph made_;
  GraphCopy copy_;
  Casts casts_;
  std::map<Value, Value> unchanged_;  // given values to those made, before a cast, that have the same dtype
};

}  // namespace

bool has_other_precision(const Graph& graph, const PassContext& context) {
  DType dtype = context.precision;
  auto is_other = [&](const ValueType& type) { return is_changeable(type.dtype) && type.dtype != dtype; };
  auto changes = [&](const Node& node) { return std::any_of(node.out.begin(), node.out.end(), is_other); };
  return dtype != DType::kNone && std::any_of(graph.nodes().begin(), graph.nodes().end(), changes);
}

Result<Graph> assign_precision(Graph graph, PassContext& context) {
  if (!has_other_precision(graph, context)) return graph;
  return Conversion(graph, context.precision).run();
}

}  // namespace rlx
