// SPDX-License-Identifier: Apache-2.0
// Moves operands of control flow into its bodies if they depend on params and constants alone and are the same at every
// trip. There they stay resident, and their readers find them packed.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/contains.h"
#include "base/free_name.h"
#include "ir/facts.h"
#include "ir/outputs.h"
#include "passes/graph_copy.h"
#include "passes/pass.h"
#include "plan/control.h"

namespace rlx {

namespace {

class Sinking {
 public:
  explicit Sinking(const Graph& graph)
      : graph_(graph), facts_(graph), copies_left_(kMaxCopies * graph.nodes().size()), visits_left_(copies_left_) {}

  uint64_t visits() const { return visits_; }

  // Whether each operand sinks.
  std::vector<bool> chosen(const Node& node) {
    std::vector<bool> sinks(node.in.size(), false);
    for (size_t i = first_invariant(node); i < node.in.size(); i++)
      sinks[i] = present(node.in[i]) && facts_.is_resident(node.in[i]) && has_type_of_inputs(node, i) &&
                 take_copies(node.in[i]);
    return sinks;
  }

  Result<std::shared_ptr<const Graph>> body(const Node& node, std::string_view attr, const std::vector<bool>& sinks) {
    const Graph& given = *node.attrs.graph(attr);
    size_t skipped = operands_before_inputs(node);
    auto made = std::make_shared<Graph>(given.name(), &given.table());
    GraphCopy copy(given, *made), sunk(graph_, *made);
    RLX_TRY(copy.declare());
    for (size_t i = 0; i < given.inputs().size(); i++)
      if (!sinks[i + skipped]) RLX_TRY(copy.add_input(i, free_input_name(given, given.leaf_name(given.inputs()[i]))));
    auto uses = use_counts(given);
    for (size_t i = 0; i < given.inputs().size(); i++) {
      Value input{given.inputs()[i], 0};
      bool is_read = uses[input.node][0] > 0;
      if (sinks[i + skipped] && is_read) copy.set(input, RLX_TRY(sunk.copy_cone(node.in[i + skipped])));
    }
    RLX_TRY(copy.copy_uncopied());
    RLX_TRY(copy.add_outputs());
    return std::shared_ptr<const Graph>(std::move(made));
  }

 private:
  // Whether the value has the type of the input that it would replace, in every body. f32[3] may stand for f32[n], but
  // the types in a body rest on f32[n]: the results of an `if` would change, and a body that is entered at other sizes
  // only would be in error.
  bool has_type_of_inputs(const Node& node, size_t i) const {
    std::span<const std::string_view> attrs = body_attrs(node.op);
    return std::all_of(attrs.begin(), attrs.end(), [&](std::string_view attr) {
      const Graph& body = *node.attrs.graph(attr);
      return body.node(body.inputs()[i - operands_before_inputs(node)]).out[0] == graph_.type(node.in[i]);
    });
  }

  // Takes copies of all that a value depends on, which go into every body that the value sinks into. If many bodies
  // share a large part of the graph, the copies would grow with the product of the two. So there is a limit: a value
  // for which no copies are left stays an operand.
  static constexpr size_t kMaxCopies = 4;  // of each node, on average
  // Walks in vain are limited together, too. What depends on no more nodes than this is always looked at.
  static constexpr size_t kSmall = 64;
  bool take_copies(Value value) {
    // Both limits only fall, so what was refused, and all that depends on it, would be refused again.
    size_t most = std::min(copies_left_, std::max(visits_left_, kSmall));
    std::unordered_set<uint32_t> seen{value.node};
    std::vector<uint32_t> waiting{value.node};
    bool fits = true;
    while (fits && !waiting.empty()) {
      uint32_t node = waiting.back();
      waiting.pop_back();
      visits_++;
      for (Value in : graph_.node(node).in)
        if (present(in) && seen.size() <= most && seen.insert(in.node).second) waiting.push_back(in.node);
      fits = seen.size() <= most && !refused_.contains(node);
    }
    if (fits) {
      copies_left_ -= seen.size();
    } else {
      refused_.insert(value.node);
      visits_left_ -= std::min(visits_left_, seen.size());
    }
    return fits;
  }

  // A name for an input of the body. A param that sinks keeps its name, so the input must not have it.
  std::string free_input_name(const Graph& body, const std::string& wanted) const {
    return free_name(wanted, [&](const std::string& name) {
      return graph_.find_param(name) || (name != wanted && body.find_leaf(name));
    });
  }

  const Graph& graph_;
  Facts facts_;
  size_t copies_left_;  // how many nodes may still be copied
  size_t visits_left_;  // how many nodes may still be seen in vain
  std::unordered_set<uint32_t> refused_;
  uint64_t visits_ = 0;  // of nodes, to find what they depend on
};

}  // namespace

bool may_sink(const Graph& graph, const PassContext&) {
  return has_control_flow(graph);
}

Result<Graph> sink_residents(Graph graph, PassContext& context) {
  if (!has_control_flow(graph)) return graph;
  Sinking sinking(graph);
  std::unordered_map<uint32_t, std::vector<bool>> chosen;  // by node of which an operand sinks
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    if (!is_control(graph.node(i))) continue;
    std::vector<bool> sinks = sinking.chosen(graph.node(i));
    if (contains(sinks, true)) chosen.emplace(i, std::move(sinks));
  }
  if (context.report) context.report->visits += sinking.visits();
  if (chosen.empty()) return graph;
  return with_replaced(graph, [&](GraphCopy& copy, uint32_t index) -> Result<std::vector<Value>> {
    auto found = chosen.find(index);
    if (found == chosen.end()) return std::vector<Value>();
    const Node& node = graph.node(index);
    const std::vector<bool>& sinks = found->second;
    Attrs attrs = node.attrs;
    for (std::string_view attr : body_attrs(node.op))
      attrs = attrs.with(attr, RLX_TRY(sinking.body(node, attr, sinks)));
    std::vector<Value> in;
    for (size_t k = 0; k < node.in.size(); k++)
      if (!sinks[k]) in.push_back(copy.mapped(node.in[k]));
    Value made = RLX_TRY(copy.to().add(graph.info(node), in, std::move(attrs), node.name));
    return outputs_of(copy.to(), made.node);
  });
}

}  // namespace rlx
