// SPDX-License-Identifier: Apache-2.0
// The float dtype to compute in, where the option says one: f16, bf16 and f32 all become it, with casts where values
// come in, go out, or meet an op whose dtypes are its own.
#include <algorithm>
#include <map>

#include "ir/facts.h"
#include "passes/pass.h"
#include "passes/rebuild.h"
#include "plan/control.h"

namespace rlx {

namespace {

bool is_changeable(DType dtype) {
  return is_half(dtype) || dtype == DType::kF32;
}

class Conversion {
 public:
  Conversion(const Graph& given, DType dtype) : given_(given), dtype_(dtype), rebuild_(given) {}

  Result<Graph> run() {
    RLX_TRY(rebuild_.status());
    for (uint32_t node = 0; node < given_.nodes().size(); node++) {
      if (!given_.info(given_.node(node)).is(kInterface)) RLX_TRY(convert(node));
      RLX_TRY(cast_outputs(node));
    }
    for (const GraphOutput& output : given_.outputs())
      RLX_TRY(rebuild_.graph().add_output(output.name, RLX_TRY(as_given(output.value))));
    return std::move(rebuild_.graph());
  }

 private:
  // A node over other dtypes, where it has such a form; else it stays as it is, between casts.
  Status convert(uint32_t index) {
    const Node& node = given_.node(index);
    const OpInfo& info = given_.info(node);
    bool is_fixed = info.is(kLeaf) || node.op == Op::kBitcast || !body_attrs(node.op).empty();
    if (!is_fixed && converted(index).ok()) return {};
    std::vector<Value> in;
    for (Value value : node.in) in.push_back(present(value) ? RLX_TRY(as_given(value)) : value);
    Value first = rebuild_.graph().append_copy(given_, index, std::move(in));
    return set(index, first.node);
  }

  Status converted(uint32_t index) {
    const Node& node = given_.node(index);
    const OpInfo& info = given_.info(node);
    std::vector<Value> in;
    for (Value value : node.in) in.push_back(rebuild_.mapped(value));
    Attrs attrs = node.attrs;
    for (size_t i = 0; i < info.attrs.size(); i++)
      if (const DType* dtype = std::get_if<DType>(&attrs.values()[i]); dtype && is_changeable(*dtype))
        attrs.set(i, dtype_);
    return set(index, RLX_TRY(rebuild_.graph().add(info, in, attrs, node.name)).node);
  }

  Status set(uint32_t index, uint32_t made) {
    std::vector<Value> values;
    for (uint32_t i = 0; i < given_.node(index).out.size(); i++) values.push_back({made, i});
    rebuild_.set(index, std::move(values));
    return {};
  }

  Status cast_outputs(uint32_t index) {
    std::vector<Value> values;
    for (uint32_t i = 0; i < given_.node(index).out.size(); i++) {
      Value value = rebuild_.mapped({index, i});
      bool is_other = is_changeable(rebuild_.graph().type(value).dtype);
      values.push_back(is_other ? RLX_TRY(cast(value, dtype_)) : value);
    }
    rebuild_.set(index, std::move(values));
    return {};
  }

  Result<Value> as_given(Value value) { return cast(rebuild_.mapped(value), given_.type(value).dtype); }

  // Each cast once.
  Result<Value> cast(Value value, DType dtype) {
    if (rebuild_.graph().type(value).dtype == dtype) return value;
    auto [known, is_new] = casts_.try_emplace({value.node, value.output, dtype});
    if (is_new) known->second = RLX_TRY(rebuild_.graph().add(Op::kCast, std::array{value}, {{"to", dtype}}));
    return known->second;
  }

  const Graph& given_;
  DType dtype_;
  Rebuild rebuild_;
  std::map<std::tuple<uint32_t, uint32_t, DType>, Value> casts_;
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
