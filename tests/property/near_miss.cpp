// SPDX-License-Identifier: Apache-2.0
// Near misses: a graph with one change, which a rule may overlook.
#include <algorithm>

#include "draw.h"
#include "edit.h"

namespace rlx::test {

namespace {

// Ops that take what the other takes.
constexpr Op kAlike[][2] = {{Op::kAdd, Op::kSub},    {Op::kMul, Op::kDiv},      {Op::kMax, Op::kMin},
                            {Op::kLt, Op::kLe},      {Op::kSin, Op::kCos},      {Op::kTanh, Op::kErf},
                            {Op::kExp, Op::kExpm1},  {Op::kBitAnd, Op::kBitOr}, {Op::kAdd, Op::kMul},
                            {Op::kSqrt, Op::kRsqrt}, {Op::kEq, Op::kNe}};

AttrValue other_value(Random& random, const AttrDef& def, const AttrValue& value) {
  if (auto* number = std::get_if<int64_t>(&value))
    return def.kind == AttrKind::kBool ? AttrValue(int64_t{!*number})
                                       : AttrValue(*number + (random.chance(50) ? 1 : -1));
  if (std::holds_alternative<double>(value)) {
    static constexpr double kOther[] = {0, 1, -1, 0.5, 2, 1e-5};
    return random.pick(kOther);
  }
  if (auto* list = std::get_if<std::vector<int64_t>>(&value); list && !list->empty()) {
    std::vector<int64_t> other = *list;
    auto at = static_cast<size_t>(random.below(static_cast<int64_t>(other.size())));
    if (random.chance(60))
      std::swap(other[at], other[static_cast<size_t>(random.below(static_cast<int64_t>(other.size())))]);
    else
      other[at] += random.chance(50) ? 1 : -1;
    return other;
  }
  if (auto* list = std::get_if<std::vector<Dim>>(&value); list && !list->empty()) {
    std::vector<Dim> other = *list;
    auto at = static_cast<size_t>(random.below(static_cast<int64_t>(other.size())));
    if (random.chance(50))
      std::swap(other[at], other[static_cast<size_t>(random.below(static_cast<int64_t>(other.size())))]);
    else
      other[at] += random.chance(50) ? 1 : -1;
    return other;
  }
  if (def.kind == AttrKind::kEnum) {
    std::vector<std::string> words(1);
    for (char c : def.choices) {
      if (c == '|')
        words.emplace_back();
      else
        words.back().push_back(c);
    }
    return random.pick(words);
  }
  return value;
}

// The node otherwise; nothing where this one cannot be.
Result<Values> changed(const Graph& from, uint32_t index, const Values& in, Graph& to, Random& random) {
  const Node& node = from.node(index);
  auto added = [&](const OpInfo& info, const Values& inputs, Attrs attrs) -> Result<Values> {
    Value first = RLX_TRY(to.add(info, inputs, std::move(attrs)));
    Values values;
    for (uint32_t i = 0; i < to.node(first).out.size(); i++) values.push_back({first.node, i});
    return values;
  };
  auto refused = Status(Code::kInvalidArgument, "not this node");
  if (node.op == Op::kConstant) {
    const Tensor& value = node.attrs.tensor("value");
    return added(from.info(node), {}, node.attrs.with("value", random_constant(random, value.dtype(), value.dims())));
  }
  if (from.info(node).is(kLeaf) || has_bodies(node)) return refused;
  switch (random.below(5)) {
    case 0: {  // operands exchanged
      Values other = in;
      if (in.size() < 2) return refused;
      auto at = static_cast<size_t>(random.below(static_cast<int64_t>(in.size()) - 1));
      std::swap(other[at], other[at + 1]);
      return added(from.info(node), other, node.attrs);
    }
    case 1: {  // an attribute
      std::vector<const AttrDef*> defs;
      for (const AttrDef& def : from.info(node).attrs)
        if (node.attrs.has(def.name)) defs.push_back(&def);
      if (defs.empty()) return refused;
      const AttrDef& def = *random.pick(defs);
      NamedAttrs attrs = node.attrs.named();
      std::erase_if(attrs, [&](const auto& attr) { return attr.first == def.name; });
      attrs.emplace_back(std::string(def.name), other_value(random, def, node.attrs.get(def.name)));
      return added(from.info(node), in, RLX_TRY(bind_attrs(from.info(node), attrs)));
    }
    case 2:  // a link left out
      for (Value value : in)
        if (present(value) && node.out.size() == 1 && to.type(value) == node.out[0] && random.chance(60))
          return Values{value};
      return refused;
    case 3: {  // an op that is like it
      auto alike = random.pick(kAlike);
      if (node.op != alike[0] && node.op != alike[1]) return refused;
      const OpInfo& other = from.info(node.op == alike[0] ? alike[1] : alike[0]);
      return added(other, in, RLX_TRY(bind_attrs(other, {})));
    }
    default: {  // a link to another value of its type
      Values other = in;
      if (in.empty()) return refused;
      auto at = static_cast<size_t>(random.below(static_cast<int64_t>(in.size())));
      if (!present(in[at])) return refused;
      std::vector<Value> known;
      for (uint32_t i = 0; i < to.nodes().size(); i++)
        for (uint32_t output = 0; output < to.node(i).out.size(); output++)
          if (to.node(i).out[output] == to.type(in[at]) && Value{i, output} != in[at]) known.push_back({i, output});
      if (known.empty()) return refused;
      other[at] = random.pick(known);
      return added(from.info(node), other, node.attrs);
    }
  }
}

}  // namespace

std::optional<Graph> near_miss(const Graph& graph, Random& random) {
  for (int attempts = 20; attempts > 0; attempts--) {
    auto chosen = static_cast<uint32_t>(random.below(static_cast<int64_t>(graph.nodes().size())));
    auto other = edited(graph, [&](Graph& to, uint32_t index, const Values& in) {
      return index == chosen ? changed(graph, index, in, to, random) : copy_node(graph, index, in, to);
    });
    if (other.ok() && !other->outputs().empty()) return std::move(*other);
  }
  return std::nullopt;
}

}  // namespace rlx::test
