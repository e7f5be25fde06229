// SPDX-License-Identifier: Apache-2.0
// Moves values out of a loop that are the same at every trip and cannot fail. They are computed once, before the loop;
// if the loop makes no trip, in vain.
#include <algorithm>
#include <unordered_set>

#include "base/contains.h"
#include "base/free_name.h"
#include "ir/body.h"
#include "ir/facts.h"
#include "ir/normal.h"
#include "ir/outputs.h"
#include "ops/expr.h"
#include "passes/graph_copy.h"
#include "passes/pass.h"
#include "plan/control.h"

namespace rlx {

namespace {

// Whether a node always has a result: a run never fails in it. For a composite, whether that holds for its
// decomposition.
bool is_total(const Graph& graph, const Node& node) {
  const OpInfo& info = graph.info(node);
  if (!is_pure(info, node.attrs)) return false;
  if (info.primitive() || info.is(kElementwise)) return info.cannot_fail();
  Graph aside("", &graph.table(), &graph);
  Builder builder(aside);
  if (!decompose_aside(builder, info, input_types(graph, info, node.in), node.attrs).ok()) return false;
  return std::all_of(aside.nodes().begin(), aside.nodes().end(),
                     [&](const Node& inner) { return aside.info(inner).is(kLeaf) || is_total(aside, inner); });
}

// The values of a body that move out: computed values that are the same at every trip and that remaining nodes read.
// A value moves only if it reads operands whose type outside is exactly that of the body's input. Inside, a dim may be
// the literal 1; outside, a symbol that a guard makes 1, which does not broadcast.
class Invariants {
 public:
  Invariants(const Graph& around, std::span<const Value> in, const Attrs& attrs, const Graph& body,
             size_t first_invariant)
      : body_(body), facts_(body), moves_(body.nodes().size(), false), fixed_(moves_), taken_along_(moves_) {
    if (!body.guards().empty()) return;  // outside they would be checked even if there is no trip
    for (size_t i = first_invariant; i < body.inputs().size(); i++)
      fixed_[body.inputs()[i]] = body.type({body.inputs()[i], 0}) == around.type(in[i]);
    std::vector<std::string> names = own_symbols(attrs, body);
    std::unordered_set<std::string> own(names.begin(), names.end());
    auto is_known = [&](const std::string& name) { return around.has_symbol(name) && !own.contains(name); };
    for (uint32_t i = 0; i < body.nodes().size(); i++) {
      const Node& node = body.node(i);
      taken_along_[i] = may_be_taken_along(i);
      bool is_fixed = facts_.phase(i) != Phase::kResident && !node.in.empty();
      for (Value input : node.in) is_fixed &= !present(input) || fixed_[input.node] || taken_along_[input.node];
      visit_symbols(node, [&](const std::string& name) { is_fixed &= is_known(name); });
      if (is_fixed && is_total(body, node)) fixed_[i] = moves_[i] = true;
    }
    choose();
  }

  const std::vector<Value>& values() const { return values_; }

 private:
  // Whether a resident value goes with a reader that moves. It must not fail either: outside, the failure would be one
  // of every run.
  bool may_be_taken_along(uint32_t index) const {
    const Node& node = body_.node(index);
    if (facts_.phase(index) != Phase::kResident) return false;
    auto is_taken = [&](Value input) { return !present(input) || taken_along_[input.node]; };
    return body_.info(node).is(kLeaf) ||
           (std::all_of(node.in.begin(), node.in.end(), is_taken) && is_total(body_, node));
  }

  // Finds the border between what moves and what stays, from the last node to the first. A view on the border stays: it
  // costs nothing inside.
  void choose() {
    std::vector<std::vector<bool>> is_border;
    for (const Node& node : body_.nodes()) is_border.emplace_back(node.out.size(), false);
    auto note = [&](Value value) {
      if (present(value) && moves_[value.node]) is_border[value.node][value.output] = true;
    };
    for (const GraphOutput& output : body_.outputs()) note(output.value);
    for (uint32_t i = static_cast<uint32_t>(body_.nodes().size()); i-- > 0;) {
      bool on_border = contains(is_border[i], true);
      if (moves_[i] && on_border && body_.info(body_.node(i)).is(kView)) moves_[i] = false;
      if (!moves_[i])
        for (Value input : body_.node(i).in) note(input);
      else
        for (uint32_t k = 0; k < is_border[i].size(); k++)
          if (is_border[i][k]) values_.push_back({i, k});
    }
  }

  const Graph& body_;
  Facts facts_;
  // By node: it moves; it is the same at every trip; it is resident, and a copy of it may be made outside.
  std::vector<bool> moves_, fixed_, taken_along_;
  std::vector<Value> values_;
};

// One loop: values move out of its bodies, and each body gets an input for each of them.
class Hoisting {
 public:
  Hoisting(const Node& node, GraphCopy& copy)
      : node_(node), graph_(copy.to()), attrs_(node.attrs), in_(copy.mapped(node.in)) {}

  Result<Value> run(size_t first_invariant) {
    for (std::string_view attr : body_attrs(node_.op)) RLX_TRY(move_out(attr, first_invariant));
    return graph_.add(graph_.info(node_), in_, attrs_, node_.name);
  }

 private:
  Status move_out(std::string_view attr, size_t first_invariant) {
    std::shared_ptr<const Graph> body = attrs_.graph(attr);
    Invariants invariants(graph_, in_, attrs_, *body, first_invariant);
    const std::vector<Value>& moved = invariants.values();
    if (moved.empty()) return {};
    GraphCopy outside(*body, graph_);
    for (size_t i = first_invariant; i < body->inputs().size(); i++) outside.set({body->inputs()[i], 0}, in_[i]);
    size_t first = in_.size();
    std::vector<ValueType> types;
    for (Value value : moved) {
      in_.push_back(RLX_TRY(outside.copy_cone(value)));
      types.push_back(body->type(value));
    }
    for (std::string_view other : body_attrs(node_.op)) {
      Graph wider =
          RLX_TRY(with_inputs(*attrs_.graph(other), first, types, other == attr ? moved : std::vector<Value>()));
      attrs_ = attrs_.with(other, std::make_shared<const Graph>(std::move(wider)));
    }
    return {};
  }

  // The body with an input for each operand from `first` on, of the types that the values had inside. The inputs stand
  // for the values `moved`, if there are any: all bodies of a loop have the same inputs, and the values come from one
  // of them.
  Result<Graph> with_inputs(const Graph& body, size_t first, const std::vector<ValueType>& types,
                            const std::vector<Value>& moved) {
    Graph wider(body.name(), &body.table());
    GraphCopy copy(body, wider);
    RLX_TRY(copy.declare());
    for (size_t i = 0; i < body.inputs().size(); i++) RLX_TRY(copy.add_input(i, body.leaf_name(body.inputs()[i])));
    for (size_t i = first; i < in_.size(); i++) {
      auto is_taken = [&](const std::string& name) { return body.find_leaf(name) || wider.find_leaf(name); };
      const ValueType& type = types[i - first];
      std::string name = free_name("hoisted." + std::to_string(i), is_taken);
      Value input = RLX_TRY(wider.add_input(name, type.dtype, type.dims));
      if (!moved.empty()) copy.set(moved[i - first], input);
    }
    RLX_TRY(copy.copy_uncopied());
    RLX_TRY(copy.add_outputs());
    return drop_dead(std::move(wider));
  }

  const Node& node_;
  Graph& graph_;  // around the loop
  Attrs attrs_;
  std::vector<Value> in_;
};

}  // namespace

static bool is_loop(const Node& node) {
  return node.op == Op::kWhile || node.op == Op::kScan;
}

bool has_loop(const Graph& graph, const PassContext&) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_loop);
}

Result<Graph> hoist_invariants(Graph graph, PassContext& context) {
  if (!has_loop(graph, context)) return graph;
  return with_replaced(graph, [&](GraphCopy& copy, uint32_t index) -> Result<std::vector<Value>> {
    const Node& node = graph.node(index);
    if (!is_loop(node)) return std::vector<Value>();
    Value made = RLX_TRY(Hoisting(node, copy).run(first_invariant(node)));
    return outputs_of(copy.to(), made.node);
  });
}

}  // namespace rlx
