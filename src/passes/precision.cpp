// SPDX-License-Identifier: Apache-2.0
// Computes floats in the dtype of the option `precision`: f16, bf16 and f32 all become that dtype. It inserts casts at
// inputs and outputs, and around ops that cannot change their dtype. Where such an op, or an output, reads a value that
// has its dtype anyway, there is no cast: the bits of an input stay, and so do statistics that are always f32. Masks in
// constants stay finite.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/visit.h"
#include "ir/facts.h"
#include "ir/outputs.h"
#include "passes/casts.h"
#include "passes/graph_copy.h"
#include "passes/pass.h"
#include "plan/control.h"

namespace rlx {

namespace {

bool is_changeable(DType dtype) {
  return is_half(dtype) || dtype == DType::kF32;
}

// For constants that hold masks, numbers that stand for infinity (semantics.md R2): the constant in a half dtype, in
// which they become its largest numbers. A cast would make them infinite, and 0 times infinity is NaN.
std::optional<Tensor> with_finite_masks(const Tensor& constant, DType half) {
  constexpr double kMask = 1e9;
  double largest = half == DType::kF16 ? 65504 : 0x1.fep127;
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

class Conversion {
 public:
  Conversion(const Graph& given, DType dtype)
      : given_(given), dtype_(dtype), made_(given.name(), &given.table()), copy_(given, made_) {}

  Result<Graph> run() {
    RLX_TRY(copy_.declare());
    for (uint32_t node : given_.inputs()) copy_.copy(node);
    for (uint32_t node : given_.params()) copy_.copy(node);
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
    if (!is_fixed && converted(index).ok()) return {};
    std::vector<Value> in;
    for (Value value : node.in) in.push_back(present(value) ? RLX_TRY(as_given(value)) : value);
    Value made = made_.append_copy(given_, index, in);
    copy_.set_outputs(index, outputs_of(made_, made.node));
    return {};
  }

  Status converted(uint32_t index) {
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
      if (is_changeable(made_.type(value).dtype)) copy_.set(output, RLX_TRY(changed(value)));
    }
    return {};
  }

  Result<Value> changed(Value value) {
    const Tensor* constant = made_.constant(value);
    auto finite = constant && made_.type(value).dtype != dtype_ ? with_finite_masks(*constant, dtype_) : std::nullopt;
    if (!finite) return cast(value, dtype_);
    Value held = RLX_TRY(made_.add_constant(std::move(*finite)));
    made_.set_name(held, std::string(made_.node(value).name));
    return held;
  }

  Result<Value> as_given(Value value) {
    auto found = unchanged_.find(value);
    return found != unchanged_.end() ? found->second : cast(copy_.mapped(value), given_.type(value).dtype);
  }

  Result<Value> cast(Value value, DType dtype) { return casts_.cast(made_, value, dtype); }

  const Graph& given_;
  DType dtype_;
  Graph made_;
  GraphCopy copy_;
  Casts casts_;
  std::map<Value, Value> unchanged_;  // given values to those made, before a cast, that have the same dtype
};

}  // namespace

Result<Graph> assign_precision(Graph graph, PassContext& context) {
  DType dtype = context.precision;
  auto is_other = [&](const ValueType& type) { return is_changeable(type.dtype) && type.dtype != dtype; };
  auto changes = [&](const Node& node) { return std::any_of(node.out.begin(), node.out.end(), is_other); };
  if (dtype == DType::kNone || std::none_of(graph.nodes().begin(), graph.nodes().end(), changes)) return graph;
  return Conversion(graph, context.precision).run();
}

}  // namespace rlx
