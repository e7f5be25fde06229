// SPDX-License-Identifier: Apache-2.0
#include "plan/phase.h"

#include <algorithm>

#include "plan/kernel.h"

namespace rlx {

static bool is_literal(const AttrValue& value) {
  if (auto* dim = std::get_if<Dim>(&value)) return dim->is_literal();
  if (auto* dims = std::get_if<std::vector<Dim>>(&value)) return all_literal(*dims);
  if (auto* graph = std::get_if<std::shared_ptr<const Graph>>(&value))
    return std::all_of((*graph)->nodes().begin(), (*graph)->nodes().end(), is_size_free);
  return true;
}

bool is_size_free(const Node& node) {
  if (node.op == Op::kDimSize) return false;  // its input may be one of the run
  return std::all_of(node.out.begin(), node.out.end(), [](const ValueType& type) { return all_literal(type.dims); }) &&
         std::all_of(node.attrs.values().begin(), node.attrs.values().end(), is_literal);
}

std::vector<BodyParam> body_params(const Node& node) {
  std::vector<BodyParam> found;
  for (const AttrValue& value : node.attrs.values()) {
    auto* body = std::get_if<std::shared_ptr<const Graph>>(&value);
    if (!body || !*body) continue;
    for (uint32_t leaf : (*body)->params()) found.push_back({(*body)->leaf_name(leaf), (*body)->node(leaf).out[0]});
    for (const Node& inner : (*body)->nodes())
      for (BodyParam& param : body_params(inner)) found.push_back(std::move(param));
  }
  std::sort(found.begin(), found.end(), [](const BodyParam& a, const BodyParam& b) { return a.name < b.name; });
  found.erase(std::unique(found.begin(), found.end(), [](auto& a, auto& b) { return a.name == b.name; }), found.end());
  return found;
}

// A size does not depend on the contents of what it measures; nothing that has effects is computed ahead of a run.
static Phase own_phase(const Graph& graph, const Node& node) {
  if (node.op == Op::kInput || node.op == Op::kDynamicIota || node.op == Op::kIf) return Phase::kRun;
  if (node.op == Op::kParam || node.op == Op::kConstant) return Phase::kResident;
  if (!graph.info(node).is(kPure) || !body_params(node).empty()) return Phase::kRun;
  return is_size_free(node) ? Phase::kResident : Phase::kSized;
}

// Whether a size that is known only in the run decides what a node computes.
static bool names(const Node& node, const std::vector<DecidedSize>& decided) {
  bool found = false;
  visit_symbols(node, [&](const std::string& name) {
    found |= std::any_of(decided.begin(), decided.end(), [&](const DecidedSize& size) { return size.symbol == name; });
  });
  return found;
}

std::vector<Phase> phases_of(const Graph& graph) {
  std::vector<DecidedSize> decided = decided_sizes(graph);
  std::vector<Phase> phases;
  for (const Node& node : graph.nodes()) {
    Phase phase = own_phase(graph, node);
    if (!decided.empty() && phase == Phase::kSized &&
        (names(node, decided) || (node.op == Op::kDimSize && names(graph.node(node.in[0]), decided))))
      phase = Phase::kRun;
    if (node.op != Op::kDimSize)
      for (Value value : node.in)
        if (present(value)) phase = std::max(phase, phases[value.node]);
    phases.push_back(phase);
  }
  return phases;
}

bool is_resident(const Graph& graph, Value value) {
  if (!present(value)) return false;
  const Node& node = graph.node(value);
  if (own_phase(graph, node) != Phase::kResident) return false;
  return std::all_of(node.in.begin(), node.in.end(),
                     [&](Value input) { return !present(input) || is_resident(graph, input); });
}

bool KernelQuery::resident(size_t input) const {
  return has(input) && is_resident(graph, node.in[input]);
}

}  // namespace rlx
