// SPDX-License-Identifier: Apache-2.0
// Computes ops on halves in f32, between casts, if the device has a kernel for f32 and none for halves. The meaning
// stays: a primitive on halves computes in f32 and rounds once (semantics.md N6), and so does a wide composite (N7).
#include <algorithm>

#include "passes/casts.h"
#include "passes/graph_copy.h"
#include "passes/pass.h"
#include "passes/widen.h"
#include "plan/control.h"

namespace rlx {

namespace {

Attrs widened(const Attrs& attrs) {
  Attrs wide = attrs;
  for (size_t i = 0; i < attrs.values().size(); i++)
    if (const DType* dtype = std::get_if<DType>(&attrs.values()[i])) wide.set(i, compute_dtype(*dtype));
  return wide;
}

// Whether the node means the same as the op in f32, rounded once.
bool means_the_same_in_f32(const Graph& graph, const Node& node) {
  const OpInfo& info = graph.info(node);
  if (info.is(kLeaf) || info.is(kView) || !body_attrs(node.op).empty()) return false;
  if (node.op == Op::kCast || node.op == Op::kBitcast) return false;
  if (!info.primitive() && !info.is(kWide)) return false;
  auto has_half = [](const ValueType& type) { return is_half(type.dtype); };
  return std::any_of(node.out.begin(), node.out.end(), has_half);
}

// The node on leaves in f32, to ask the device about it.
Result<Value> wide_node(const Facts& facts, const Node& node, Graph& probe) {
  const Graph& graph = facts.graph();
  std::vector<Value> in;
  for (Value value : node.in) {
    if (!present(value)) {
      in.push_back(value);
      continue;
    }
    const ValueType& type = graph.type(value);
    std::string name = "x" + std::to_string(in.size());
    in.push_back(RLX_TRY(facts.is_resident(value) ? probe.add_param(name, compute_dtype(type.dtype), type.dims)
                                                  : probe.add_input(name, compute_dtype(type.dtype), type.dims)));
  }
  return probe.add(graph.info(node), in, widened(node.attrs), "");
}

Result<std::vector<Value>> widen(const Node& node, GraphCopy& copy, Casts& casts) {
  Graph& to = copy.to();
  std::vector<Value> in = copy.mapped(node.in), outputs;
  for (Value& value : in)
    if (present(value)) value = RLX_TRY(casts.cast(to, value, compute_dtype(to.type(value).dtype)));
  Value made = RLX_TRY(to.add(to.info(node), in, widened(node.attrs), node.name));
  for (uint32_t i = 0; i < node.out.size(); i++)
    outputs.push_back(RLX_TRY(casts.cast(to, {made.node, i}, node.out[i].dtype)));
  return outputs;
}

}  // namespace

bool has_kernel_in_f32(const Facts& facts, uint32_t node, FunctionRef<bool(const Facts&, Value)> is_native) {
  const Graph& graph = facts.graph();
  if (!means_the_same_in_f32(graph, graph.node(node))) return false;
  Graph probe("", &graph.table(), &graph);
  auto wide = wide_node(facts, graph.node(node), probe);
  if (!wide.ok()) return false;
  Facts asked(probe);
  return is_native(asked, *wide);
}

bool may_widen(const Graph& graph, const PassContext& context) {
  auto gives_half = [](const Node& node) { return !node.out.empty() && is_half(node.out[0].dtype); };
  return context.is_native && std::any_of(graph.nodes().begin(), graph.nodes().end(), gives_half);
}

Result<Graph> widen_halves(Graph graph, PassContext& context) {
  if (!may_widen(graph, context)) return graph;
  Facts facts(graph);
  Casts casts;
  return with_replaced(graph, [&](GraphCopy& copy, uint32_t node) -> Result<std::vector<Value>> {
    bool is_asked = !facts.is_resident({node, 0}) && means_the_same_in_f32(graph, graph.node(node));
    if (!is_asked || context.is_native(facts, {node, 0}) || !has_kernel_in_f32(facts, node, context.is_native))
      return std::vector<Value>();
    return widen(graph.node(node), copy, casts);
  });
}

}  // namespace rlx
