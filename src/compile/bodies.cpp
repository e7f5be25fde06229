// SPDX-License-Identifier: Apache-2.0
#include "compile/bodies.h"

#include <algorithm>
#include <unordered_set>

#include "base/free_name.h"
#include "ir/symbols.h"
#include "passes/graph_copy.h"
#include "plan/control.h"

namespace rlx {

// A name means one input or param in the whole program.
static Status add_body_param(Graph& graph, const BodyParam& param) {
  auto known = graph.find_leaf(param.name);
  if (!known) return graph.add_param(param.name, param.type.dtype, param.type.dims).status();
  const ValueType& type = graph.type(*known);
  if (graph.node(*known).op != Op::kParam)
    return Status(Code::kInvalidArgument, "a param of a sub-graph has the name of the input '" + param.name + "'")
        .with("value", param.name);
  if (type == param.type) return {};
  return Status(type.dtype == param.type.dtype ? Code::kShape : Code::kDtype,
                "the param '" + param.name + "' is " + text_of(type) + ", but in a sub-graph " + text_of(param.type))
      .with("value", param.name)
      .with("expected", text_of(type))
      .with("got", text_of(param.type));
}

Result<Graph> with_body_params(const Graph& given) {
  Graph graph = given;
  if (!given.has_bodies()) return graph;
  for (const Node& node : given.nodes())
    for (const BodyParam& param : body_params(node)) RLX_TRY(add_body_param(graph, param));
  return graph;
}

using Names = std::unordered_set<std::string>;

// Params keep their names when passes move them from one graph to another. So no input of a body may have such a name.
static Result<Graph> with_free_names(Graph body, const Names& params) {
  std::span<const uint32_t> inputs = body.inputs();
  auto is_taken = [&](uint32_t input) { return params.contains(body.leaf_name(input)); };
  if (std::none_of(inputs.begin(), inputs.end(), is_taken)) return body;
  Graph made(body.name(), &body.table());
  GraphCopy copy(body, made);
  RLX_TRY(copy.declare());
  for (size_t i = 0; i < inputs.size(); i++) {
    const std::string& given = body.leaf_name(inputs[i]);
    auto is_taken_here = [&](const std::string& name) {
      return params.contains(name) || (name != given && body.find_leaf(name));
    };
    RLX_TRY(copy.add_input(i, free_name(given, is_taken_here)));
  }
  for (uint32_t node = 0; node < body.nodes().size(); node++)
    if (!copy.has({node, 0})) copy.copy_keeping_types(node);
  RLX_TRY(copy.add_outputs());
  return made;
}

// The graph with bodies, at every level, as passes want them.
static Result<Graph> with_ready_bodies(Graph graph, const Names& params) {
  for (uint32_t i = 0; i < graph.nodes().size(); i++)
    for (std::string_view attr : body_attrs(graph.node(i).op)) {
      Graph body = RLX_TRY(with_free_names(RLX_TRY(with_used_symbols(*graph.node(i).attrs.graph(attr))), params));
      body = RLX_TRY(with_ready_bodies(std::move(body), params));
      graph.set_attr(i, attr, std::make_shared<const Graph>(std::move(body)));
    }
  return graph;
}

Result<Graph> ready_for_passes(const Graph& given) {
  Graph graph = RLX_TRY(with_body_params(given));
  if (!graph.has_bodies()) return graph;
  Names params;
  for (uint32_t param : graph.params()) params.insert(graph.leaf_name(param));
  return with_ready_bodies(std::move(graph), params);
}

}  // namespace rlx
