// SPDX-License-Identifier: Apache-2.0
// Near misses: a graph with one change, which a rule may overlook.
#include <algorithm>
#include <map>

#include "base/split.h"
#include "draw.h"
#include "edit.h"
#include "ir/outputs.h"

namespace rlx::test {

namespace {

// Ops that take what the other takes.
constexpr Op kAlike[][2] = {{Op::kAdd, Op::kSub},    {Op::kMul, Op::kDiv},      {Op::kMax, Op::kMin},
                            {Op::kLt, Op::kLe},      {Op::kSin, Op::kCos},      {Op::kTanh, Op::kErf},
                            {Op::kExp, Op::kExpm1},  {Op::kBitAnd, Op::kBitOr}, {Op::kAdd, Op::kMul},
                            {Op::kSqrt, Op::kRsqrt}, {Op::kEq, Op::kNe}};

// Two elements exchanged, in so many percent of the draws, or one that is off by 1.
template <class T>
std::vector<T> other_list(Random& random, std::vector<T> list, int swaps) {
  auto any = [&] { return static_cast<size_t>(random.below(static_cast<int64_t>(list.size()))); };
  T& element = list[any()];
  if (random.chance(swaps))
    std::swap(element, list[any()]);
  else
    element += random.chance(50) ? 1 : -1;
  return list;
}

AttrValue other_value(Random& random, const AttrDef& def, const AttrValue& value) {
  if (auto* number = std::get_if<int64_t>(&value)) {
    if (def.kind == AttrKind::kBool) return int64_t{!*number};
    return *number + (random.chance(50) ? 1 : -1);
  }
  if (std::holds_alternative<double>(value)) {
    static constexpr double kOther[] = {0, 1, -1, 0.5, 2, 1e-5};
    return random.pick(kOther);
  }
  if (auto* list = std::get_if<std::vector<int64_t>>(&value); list && !list->empty())
    return other_list(random, *list, 60);
  if (auto* list = std::get_if<std::vector<Dim>>(&value); list && !list->empty()) return other_list(random, *list, 50);
  if (def.kind == AttrKind::kEnum) return std::string(random.pick(split(def.choices, '|')));
  return value;
}

// A node of the graph that is copied, with its operands in the new one.
struct Site {
  const Graph& from;
  const Node& node;
  const Values& in;
  Graph& to;
  Random& random;

  const OpInfo& info() const { return from.info(node); }
  int64_t below(size_t n) { return random.below(static_cast<int64_t>(n)); }
};

// A change fails with this where the node has nothing of its kind.
Status refused() {
  return {Code::kInvalidArgument, "not this node"};
}

Result<Values> added(Graph& to, const OpInfo& info, const Values& in, Attrs attrs) {
  return outputs_of(to, RLX_TRY(to.add(info, in, std::move(attrs))).node);
}

Result<Values> exchange_operands(Site& site) {
  Values other = site.in;
  if (other.size() < 2) return refused();
  auto at = static_cast<size_t>(site.below(other.size() - 1));
  std::swap(other[at], other[at + 1]);
  return added(site.to, site.info(), other, site.node.attrs);
}

Result<Values> change_attribute(Site& site) {
  const OpInfo& info = site.info();
  std::vector<const AttrDef*> defs;
  for (const AttrDef& def : info.attrs)
    if (site.node.attrs.has(def.name)) defs.push_back(&def);
  if (defs.empty()) return refused();
  const AttrDef& def = *site.random.pick(defs);
  NamedAttrs attrs = site.node.attrs.named();
  std::erase_if(attrs, [&](const auto& attr) { return attr.first == def.name; });
  attrs.emplace_back(std::string(def.name), other_value(site.random, def, site.node.attrs.get(def.name)));
  return added(site.to, info, site.in, RLX_TRY(bind_attrs(info, attrs)));
}

// One of the operands stands for the result.
Result<Values> leave_out(Site& site) {
  for (Value value : site.in)
    if (present(value) && site.node.out.size() == 1 && site.to.type(value) == site.node.out[0] &&
        site.random.chance(60))
      return Values{value};
  return refused();
}

Result<Values> take_a_like_op(Site& site) {
  auto alike = site.random.pick(kAlike);
  Op op = site.node.op;
  if (op != alike[0] && op != alike[1]) return refused();
  const OpInfo& other = site.from.info(op == alike[0] ? alike[1] : alike[0]);
  return added(site.to, other, site.in, RLX_TRY(bind_attrs(other, {})));
}

// Another value of the type of one operand.
Result<Values> take_another_value(Site& site) {
  Values other = site.in;
  if (other.empty()) return refused();
  Value& operand = other[static_cast<size_t>(site.below(other.size()))];
  if (!present(operand)) return refused();
  const Graph& to = site.to;
  std::vector<Value> known;
  for (uint32_t i = 0; i < to.nodes().size(); i++)
    for (uint32_t output = 0; output < to.node(i).out.size(); output++)
      if (to.node(i).out[output] == to.type(operand) && Value{i, output} != operand) known.push_back({i, output});
  if (known.empty()) return refused();
  operand = site.random.pick(known);
  return added(site.to, site.info(), other, site.node.attrs);
}

constexpr Result<Values> (*kChanges[])(Site&) = {exchange_operands, change_attribute, leave_out, take_a_like_op,
                                                 take_another_value};

Result<Values> changed(const Graph& from, uint32_t index, const Values& in, Graph& to, Random& random) {
  const Node& node = from.node(index);
  if (node.op == Op::kConstant) {
    const Tensor& value = node.attrs.tensor("value");
    return added(to, from.info(node), {},
                 node.attrs.with("value", random_constant(random, value.dtype(), value.dims())));
  }
  if (from.info(node).is(kLeaf) || has_bodies(node)) return refused();
  Site site{from, node, in, to, random};
  return random.pick(kChanges)(site);
}

// A node that now decides a size may take a fresh name, which a node behind it has already: no device compiles that.
bool decides_each_size_once(const Graph& graph) {
  std::map<std::string, uint32_t> decided;  // the node
  for (const DecidedSize& size : decided_sizes(graph))
    if (decided.emplace(size.symbol, size.node).first->second != size.node) return false;
  return true;
}

}  // namespace

std::optional<Graph> near_miss(const Graph& graph, Random& random) {
  for (int attempts = 20; attempts > 0; attempts--) {
    auto chosen = static_cast<uint32_t>(random.below(static_cast<int64_t>(graph.nodes().size())));
    auto other = edited(graph, [&](Graph& to, uint32_t index, const Values& in) {
      return index == chosen ? changed(graph, index, in, to, random) : copy_node(graph, index, in, to);
    });
    if (other.ok() && !other->outputs().empty() && decides_each_size_once(*other)) return std::move(*other);
  }
  return std::nullopt;
}

}  // namespace rlx::test
