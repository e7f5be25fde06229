// SPDX-License-Identifier: Apache-2.0
// rlx_graph_*: reading a graph.
#include <algorithm>
#include <string>

#include "capi/blob.h"
#include "capi/graph.h"
#include "capi/guard.h"
#include "ir/text.h"

using namespace rlx;
using namespace rlx::capi;

static std::span<const uint32_t> leaves(const Graph& graph, int32_t kind) {
  return kind == RLX_INPUT ? graph.inputs() : kind == RLX_PARAM ? graph.params() : std::span<const uint32_t>();
}

static size_t count_of(const Graph& graph, int32_t kind) {
  return kind == RLX_OUTPUT   ? graph.outputs().size()
         : kind == RLX_SYMBOL ? graph.symbols().size()
                              : leaves(graph, kind).size();
}

static const std::string& name_of(const Graph& graph, int32_t kind, size_t index) {
  return kind == RLX_OUTPUT   ? graph.outputs()[index].name
         : kind == RLX_SYMBOL ? graph.symbols()[index].first
                              : graph.leaf_name(leaves(graph, kind)[index]);
}

size_t rlx_graph_count(const rlx_graph_t* graph, int32_t kind) {
  return guard_value(0, {handle(graph, "graph")}, [&] { return count_of(graph->graph, kind); });
}

const char* rlx_graph_name(const rlx_graph_t* graph, int32_t kind, size_t index) {
  return guard_value(nullptr, {handle(graph, "graph")}, [&]() -> const char* {
    return index < count_of(graph->graph, kind) ? name_of(graph->graph, kind, index).c_str() : nullptr;
  });
}

static std::optional<Value> find_value(const Graph& graph, int32_t kind, const char* name) {
  auto index = kind == RLX_OUTPUT  ? graph.index_of_output(name)
               : kind == RLX_INPUT ? graph.index_of_input(name)
               : kind == RLX_PARAM ? graph.index_of_param(name)
                                   : std::nullopt;
  if (!index) return std::nullopt;
  return kind == RLX_OUTPUT ? graph.outputs()[*index].value : Value{leaves(graph, kind)[*index], 0};
}

rlx_value_t rlx_graph_find(const rlx_graph_t* graph, int32_t kind, const char* name) {
  return guard_value(0, {handle(graph, "graph"), {name, "name"}}, [&]() -> rlx_value_t {
    auto value = find_value(graph->graph, kind, name);
    return value ? to_c(*graph, *value) : 0;
  });
}

static Status check_rank(const rlx_graph_t& graph, Value value) {
  for (const std::string& name : graph.open_ranks)
    if (graph.graph.find_leaf(name) == value)
      return Status(Code::kUnsupported, format("the file does not say the rank of the input '{}'", name))
          .with("value", name);
  return {};
}

rlx_status_t* rlx_graph_value_info(const rlx_graph_t* graph, rlx_value_t value, rlx_dtype_t* dtype, int64_t* dims,
                                   size_t capacity, size_t* rank) {
  if (dtype) *dtype = 0;
  if (rank) *rank = 0;
  return guard({handle(graph, "graph"), array(dims, capacity, "dims")}, [&]() -> Status {
    auto known = present_from_c(*graph, value);
    if (!known.ok()) return std::move(known).status().prefixed("rlx_graph_value_info: ");
    RLX_TRY(check_rank(*graph, *known));
    const ValueType& type = graph->graph.type(*known);
    for (size_t i = 0; i < std::min(capacity, type.rank()); i++) dims[i] = graph->env->dims.token(type.dims[i]);
    if (dtype) *dtype = static_cast<rlx_dtype_t>(type.dtype);
    if (rank) *rank = type.rank();
    return {};
  });
}

rlx_status_t* rlx_graph_print(const rlx_graph_t* graph, const char* format, rlx_blob_t** out) {
  return guard({cleared(out, "out"), handle(graph, "graph"), {format, "format"}}, [&]() -> Status {
    if (std::string_view(format) != "rlx")
      return Status(Code::kNotFound, rlx::format("a graph cannot be printed as '{}', only as 'rlx'", format))
          .with("got", format);
    if (!graph->status.ok()) return graph->status;
    *out = new rlx_blob(print(graph->graph));
    return {};
  });
}
