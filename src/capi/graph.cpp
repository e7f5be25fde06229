// SPDX-License-Identifier: Apache-2.0
// rlx_graph_*: building. Every builder function calls `built` around one call of Graph. The graph keeps its first
// failure.
#include "capi/graph.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "base/nearest.h"
#include "capi/attrs.h"
#include "capi/blob.h"
#include "capi/guard.h"
#include "capi/tensor.h"
#include "capi/text.h"
#include "ir/text.h"
#include "ops/expr.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

// From the highest bits down, a value consists of the tag of its graph, a node and an output.
static constexpr int kOutputBits = 16, kNodeBits = 26, kTagBits = 64 - kNodeBits - kOutputBits;
static constexpr rlx_value_t kFirstValue = 2;  // 0 is an error, 1 is RLX_ABSENT
static constexpr size_t kMaxInputs = 1 << 16;  // of one node

constexpr uint64_t low_bits(int count) {
  return (uint64_t{1} << count) - 1;
}

rlx_value_t to_c(const rlx_graph_t& graph, Value value) {
  if (value.node > low_bits(kNodeBits) || value.output > low_bits(kOutputBits)) return 0;
  uint64_t tag_and_node = (uint64_t{graph.tag} << kNodeBits) | value.node;
  return kFirstValue + ((tag_and_node << kOutputBits) | value.output);
}

Result<Value> from_c(const rlx_graph_t& graph, rlx_value_t value, std::string_view what) {
  if (value == RLX_ABSENT) return kAbsent;
  if (value == 0)
    return Status(Code::kInvalidArgument, format("{} is 0, which a call that failed returns", what)).with("got", "0");
  uint64_t bits = value - kFirstValue, tag = bits >> (kNodeBits + kOutputBits);
  uint64_t node = (bits >> kOutputBits) & low_bits(kNodeBits), output = bits & low_bits(kOutputBits);
  const auto& nodes = graph.graph.nodes();
  if (tag == graph.tag && node < nodes.size() && output < nodes[node].out.size())
    return Value{static_cast<uint32_t>(node), static_cast<uint32_t>(output)};
  return Status(Code::kInvalidArgument,
                format("{} is not a value of this graph{}", value, tag == graph.tag ? "" : "; is it of another graph?"))
      .with("expected", "a value of this graph")
      .with("got", std::to_string(value));
}

Result<Value> present_from_c(const rlx_graph_t& graph, rlx_value_t value) {
  if (value != RLX_ABSENT) return from_c(graph, value);
  return Status(Code::kInvalidArgument,
                "RLX_ABSENT is not a value of this graph: it stands for an input that is left out")
      .with("expected", "a value of this graph")
      .with("got", "RLX_ABSENT");
}

static Result<std::vector<Dim>> from_c(const rlx_graph_t& graph, const int64_t* dims, size_t rank) {
  if (rank <= kMaxRank) return graph.env->dims.dims({dims, rank});
  return rank_above_limit(rank);
}

// An argument of the call that adds an op of this name. No node exists yet that a message could name.
template <class T>
static Result<T> for_op(const char* op, Result<T> argument) {
  if (argument.ok()) return argument;
  return std::move(argument).status().prefixed(format("{}: ", op)).with("op", op);
}

// A constant is a leaf, not an op.
template <class T>
static Result<T> for_constant(Result<T> argument) {
  if (argument.ok()) return argument;
  return std::move(argument).status().prefixed("constant: ");
}

// The checked type of an input or param (`role`). Its dims may be numbers or tokens of the environment.
static Result<ValueType> leaf_type(const rlx_graph_t& graph, const char* role, const char* name, rlx_dtype_t dtype,
                                   const int64_t* dims, size_t rank) {
  auto type = [&]() -> Result<ValueType> {
    DType checked = RLX_TRY(checked_dtype(dtype));
    auto sizes = RLX_TRY(from_c(graph, dims, rank));
    return ValueType{checked, std::move(sizes)};
  }();
  if (type.ok()) return type;
  return std::move(type).status().prefixed(format("{} '{}': ", role, name)).with("value", name);
}

// Body: () -> Result<Value>. Returns 0 if it fails.
template <class Body>
static rlx_value_t built(rlx_graph_t* graph, std::initializer_list<Argument> arguments, Body&& body,
                         const char* function = __builtin_FUNCTION()) {
  if (!graph) return 0;
  Value value = kInvalid;
  bool ok = keep(
      graph->status, arguments,
      [&]() -> Status {
        RLX_TRY(check(function, {handle(graph, "graph")}));
        value = RLX_TRY(body());
        if (to_c(*graph, value) == 0)
          return Status(Code::kRange, format("a graph that is built by calls has at most {} ops", low_bits(kNodeBits)));
        return {};
      },
      function);
  return ok ? to_c(*graph, value) : 0;
}

static Status unknown_op(const OpTable& table, const std::string& name) {
  if (name.empty()) return Status(Code::kNotFound, "the text names no op: it is empty");
  for (std::string_view leaf : {"input", "param", "constant"})
    if (name == leaf)
      return Status(Code::kNotFound, format("'{}' is not an op for rlx_graph_op: rlx_graph_{} makes one", leaf, leaf))
          .with("value", leaf);
  return Status(Code::kNotFound, "no op '" + name + "'" + table.suggestion(name)).with("value", name);
}

static std::string in_scopes(const rlx_graph_t& graph, std::string_view name) {
  std::string path;
  for (const std::string& scope : graph.scopes) path += scope + "/";
  return path + std::string(name);
}

// "layer.3/matmul", then "layer.3/matmul_2": each op in a scope gets a name of its own.
static std::string name_in_scopes(rlx_graph_t& graph, std::string_view op) {
  if (graph.scopes.empty()) return "";
  std::string name = in_scopes(graph, op);
  size_t count = ++graph.named[name];
  return count == 1 ? name : format("{}_{}", name, count);
}

// What a node is made of: its inputs, and its attributes from both sources.
struct Given {
  std::vector<Value> in;
  NamedAttrs attrs;
};

static Result<Given> given_to(const rlx_graph_t& graph, const OpInfo& info, std::span<const rlx_value_t> in,
                              const std::string& attrs_text, const rlx_attrs_t* attrs) {
  if (in.size() > kMaxInputs)
    return Status(Code::kInvalidArgument, format("{} inputs are too many", in.size()))
        .with("expected", std::to_string(kMaxInputs))
        .with("got", std::to_string(in.size()));
  Given given;
  for (rlx_value_t value : in) given.in.push_back(RLX_TRY(from_c(graph, value, "an input")));
  given.attrs = RLX_TRY(parse_attrs(attrs_text));
  for (auto& pair : RLX_TRY(values_of(attrs, *graph.env.get(), info))) given.attrs.push_back(std::move(pair));
  return given;
}

// The first word of "layer_norm eps=1e-5", and where it ends in the text.
static std::pair<std::string, size_t> op_name_in(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
  return {std::string(text.substr(begin, end - begin)), end};
}

// `text` is the op's name, perhaps with attributes.
static Result<Value> add_op(rlx_graph_t& graph, std::string_view text, std::span<const rlx_value_t> in,
                            const rlx_attrs_t* attrs) {
  auto [name, end] = op_name_in(text);
  const OpInfo* info = graph.graph.table().find(name);
  if (!info || !info->is_for_users()) return unknown_op(graph.graph.table(), name);
  std::string own = name_in_scopes(graph, name);
  std::string attrs_text = std::string(end, ' ').append(text.substr(end));  // errors tell columns of the whole text
  auto given = given_to(graph, *info, in, attrs_text, attrs);
  if (!given.ok()) return graph.graph.with_subject(*info, own, std::move(given).status());
  return graph.graph.add(info->op(), given->in, given->attrs, std::move(own));
}

static Result<Value> add_typed(rlx_graph_t& graph, std::string_view op, std::initializer_list<rlx_value_t> in,
                               NamedAttrs attrs) {
  rlx_attrs given(std::move(attrs));
  return add_op(graph, op, std::span(in.begin(), in.size()), &given);
}

// rlx_graph_unary and rlx_graph_binary take only ops with that many inputs, so that a wrong name cannot select another
// op.
static Result<Value> add_elementwise(rlx_graph_t& graph, const char* op, std::initializer_list<rlx_value_t> in) {
  const OpInfo* info = graph.graph.table().find(op_name_in(op).first);
  if (!info || !info->is_for_users() || (info->is(kElementwise) && info->signature.in.size() == in.size()))
    return add_typed(graph, op, in, {});
  size_t takes = info->signature.in.size();
  bool is_elementwise = info->is(kElementwise);
  const char* call = !is_elementwise ? "op" : takes == 1 ? "unary" : takes == 2 ? "binary" : "op";
  std::string what = is_elementwise ? "takes " + plural(takes, "input") : "is not elementwise";
  std::string of_inputs = "an elementwise op of ";
  return Status(Code::kInvalidArgument, format("{} {}, use rlx_graph_{}", info->name, what, call))
      .with("op", info->name)
      .with("expected", of_inputs + plural(in.size(), "input"))
      .with("got", is_elementwise ? of_inputs + plural(takes, "input") : "an op that is not elementwise");
}

static Result<Value> add_scalar(rlx_graph_t& graph, rlx_dtype_t dtype, double value) {
  DType type = RLX_TRY(for_constant(checked_dtype(dtype)));
  Tensor wide = RLX_TRY(scalar_tensor(DType::kF64, value));
  return graph.graph.add_constant(type == DType::kF64 ? wide : RLX_TRY(for_constant(cast(wide, type))));
}

// A name of rlx_graph_reduce: an op of its own, or `reduce` with this fn.
struct Reduction {
  std::string_view name, fn;
};
static constexpr Reduction kReductions[] = {{"sum", "sum"}, {"prod", "prod"}, {"max", "max"}, {"min", "min"},
                                            {"mean", ""},   {"any", ""},      {"all", ""}};

static Status unknown_reduction(const OpTable& table, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Reduction& it : kReductions) known.push_back(it.name);
  std::string hint = table.suggestion(name);  // aliases of ops work here too: 'avg' is 'mean'
  auto names_one = [&](std::string_view it) { return hint.find(format("'{}'", it)) != hint.npos; };
  if (std::none_of(known.begin(), known.end(), names_one)) hint = did_you_mean(name, known);
  return Status(Code::kNotFound, format("no reduction '{}'{}: there are {}", name, hint, listed(known)))
      .with("value", name)
      .with("expected", listed(known));
}

static Result<Value> add_reduce(rlx_graph_t& graph, std::string_view name, rlx_value_t x, NamedAttrs attrs) {
  const auto* found = std::find_if(std::begin(kReductions), std::end(kReductions),
                                   [&](const Reduction& it) { return it.name == name; });
  if (found == std::end(kReductions)) return unknown_reduction(graph.graph.table(), name);
  if (found->fn.empty()) return add_typed(graph, name, {x}, std::move(attrs));
  attrs.emplace_back("fn", std::string(found->fn));
  return add_typed(graph, "reduce", {x}, std::move(attrs));
}

static Result<int64_t> declare_dim(rlx_graph_t& graph, const char* text, int64_t min, int64_t max) {
  Dim dim = RLX_TRY(parse_dim(text));
  if (const std::string* symbol = dim.symbol_name()) {
    RLX_TRY(graph.graph.declare_symbol(*symbol, {min, max == 0 ? Interval::kUnbounded : max}));
  } else if (min != 0 || max != 0) {
    return Status(Code::kInvalidArgument,
                  format("the size '{}' is an expression, not a symbol: its range follows from its parts", text))
        .with("value", text);
  } else if (dim.is_literal() && dim.literal() < 0) {
    return Status(Code::kRange, format("the size '{}' is negative", text)).with("value", text);
  }
  return graph.env->dims.token(dim);
}

}  // namespace rlx::capi

uint32_t rlx_graph::next_tag() {
  static constinit std::atomic<uint32_t> made{0};
  return 1 + made.fetch_add(1, std::memory_order_relaxed) % static_cast<uint32_t>(low_bits(kTagBits) - 1);
}

rlx_status_t* rlx_graph_create(rlx_env_t* env, const char* name, rlx_graph_t** out) {
  return guard({cleared(out, "out"), handle(env, "env"), optional_text(name, "name")}, [&]() -> Status {
    *out = new rlx_graph(env, Graph(name ? name : ""));
    return {};
  });
}

rlx_graph_t* rlx_graph_retain(rlx_graph_t* graph) {
  return retain(graph);
}

void rlx_graph_release(rlx_graph_t* graph) {
  release(graph);
}

rlx_status_t* rlx_graph_status(const rlx_graph_t* graph) {
  return guard({handle(graph, "graph")}, [&] { return graph->status; });
}

int64_t rlx_graph_dim(rlx_graph_t* graph, const char* text, int64_t min, int64_t max) {
  if (!graph) return INT64_MIN;
  int64_t token = INT64_MIN;
  keep(graph->status, {handle(graph, "graph"), {text, "text"}}, [&]() -> Status {
    token = RLX_TRY(declare_dim(*graph, text, min, max));
    return {};
  });
  return token;
}

size_t rlx_graph_dim_text(const rlx_graph_t* graph, int64_t dim, char* text, size_t capacity) {
  copy_text("", text, capacity);
  return guard_value(0, {handle(graph, "graph")}, [&]() -> size_t {
    auto known = graph->env->dims.dim(dim);
    if (!known.ok() || (known->is_literal() && known->literal() < 0)) return 0;
    std::string words = known->text();
    copy_text(words, text, capacity);
    return words.size();
  });
}

rlx_value_t rlx_graph_input(rlx_graph_t* graph, const char* name, rlx_dtype_t dtype, const int64_t* dims, size_t rank) {
  return built(graph, {{name, "name"}, array(dims, rank, "dims")}, [&]() -> Result<Value> {
    ValueType type = RLX_TRY(leaf_type(*graph, "input", name, dtype, dims, rank));
    return graph->graph.add_input(name, type.dtype, std::move(type.dims));
  });
}

rlx_value_t rlx_graph_param(rlx_graph_t* graph, const char* name, rlx_dtype_t dtype, const int64_t* dims, size_t rank) {
  return built(graph, {{name, "name"}, array(dims, rank, "dims")}, [&]() -> Result<Value> {
    ValueType type = RLX_TRY(leaf_type(*graph, "param", name, dtype, dims, rank));
    if (!all_literal(type.dims))
      return Status(Code::kShape, format("param '{}': the dims {} must be numbers", name, type.dims))
          .with("value", name);
    return graph->graph.add_param(name, type.dtype, std::move(type.dims));
  });
}

rlx_value_t rlx_graph_constant(rlx_graph_t* graph, rlx_dtype_t dtype, const int64_t* dims, size_t rank,
                               const void* data, size_t bytes) {
  return built(graph, {array(dims, rank, "dims"), array(data, bytes, "data")}, [&]() -> Result<Value> {
    return graph->graph.add_constant(
        RLX_TRY(for_constant(copied_tensor(*graph->env.get(), dtype, dims, rank, data, bytes))));
  });
}

rlx_value_t rlx_graph_tensor(rlx_graph_t* graph, rlx_tensor_t* tensor) {
  return built(graph, {handle(tensor, "tensor")}, [&]() -> Result<Value> {
    return graph->graph.add_constant(RLX_TRY(constant_of(*tensor, graph->env.get())));
  });
}

rlx_value_t rlx_graph_scalar(rlx_graph_t* graph, rlx_dtype_t dtype, double value) {
  return built(graph, {}, [&] { return add_scalar(*graph, dtype, value); });
}

rlx_value_t rlx_graph_op(rlx_graph_t* graph, const char* op, const rlx_value_t* in, size_t n_in,
                         const rlx_attrs_t* attrs) {
  return built(graph, {{op, "op"}, array(in, n_in, "in")},
               [&] { return add_op(*graph, op, std::span(in, n_in), attrs); });
}

rlx_value_t rlx_graph_op_n(rlx_graph_t* graph, const char* op, const rlx_value_t* in, size_t n_in,
                           const rlx_attrs_t* attrs, rlx_value_t* out, size_t n_out) {
  auto arguments = {cleared(out, n_out, "out"), Argument{op, "op"}, array(in, n_in, "in")};
  return built(graph, arguments, [&]() -> Result<Value> {
    Value first = RLX_TRY(add_op(*graph, op, std::span(in, n_in), attrs));
    size_t count = graph->graph.node(first).out.size();
    if (n_out > count)
      return Status(Code::kInvalidArgument,
                    format("{} has {}, not {}", graph->graph.info(graph->graph.node(first)).name,
                           plural(count, "output"), n_out))
          .with("op", graph->graph.info(graph->graph.node(first)).name)
          .with("expected", std::to_string(count))
          .with("got", std::to_string(n_out));
    for (uint32_t i = 0; i < n_out; i++) out[i] = to_c(*graph, Value{first.node, i});
    return first;
  });
}

void rlx_graph_output(rlx_graph_t* graph, const char* name, rlx_value_t value) {
  if (!graph) return;
  keep(graph->status, {handle(graph, "graph"), {name, "name"}}, [&]() -> Status {
    auto known = present_from_c(*graph, value);
    if (!known.ok()) return std::move(known).status().prefixed(format("output '{}': ", name)).with("value", name);
    return graph->graph.add_output(name, *known);
  });
}

void rlx_graph_set_name(rlx_graph_t* graph, rlx_value_t value, const char* name) {
  if (!graph) return;
  keep(graph->status, {handle(graph, "graph"), {name, "name"}}, [&]() -> Status {
    auto known = from_c(*graph, value);
    if (!known.ok()) return std::move(known).status().prefixed("rlx_graph_set_name: ");
    if (present(*known)) graph->graph.set_name(*known, in_scopes(*graph, name));
    return {};
  });
}

void rlx_graph_push_name(rlx_graph_t* graph, const char* name) {
  if (!graph) return;
  keep(graph->status, {handle(graph, "graph"), {name, "name"}}, [&]() -> Status {
    if (!*name) return Status(Code::kInvalidArgument, "rlx_graph_push_name: the name is empty").with("input", "name");
    graph->scopes.emplace_back(name);
    return {};
  });
}

void rlx_graph_pop_name(rlx_graph_t* graph) {
  if (!graph) return;
  keep(graph->status, {handle(graph, "graph")}, [&]() -> Status {
    if (graph->scopes.empty()) return Status(Code::kState, "rlx_graph_pop_name: there is no name to pop");
    graph->scopes.pop_back();
    return {};
  });
}

rlx_value_t rlx_graph_unary(rlx_graph_t* graph, const char* op, rlx_value_t x) {
  return built(graph, {{op, "op"}}, [&] { return add_elementwise(*graph, op, {x}); });
}

rlx_value_t rlx_graph_binary(rlx_graph_t* graph, const char* op, rlx_value_t a, rlx_value_t b) {
  return built(graph, {{op, "op"}}, [&] { return add_elementwise(*graph, op, {a, b}); });
}

rlx_value_t rlx_graph_matmul(rlx_graph_t* graph, rlx_value_t a, rlx_value_t b) {
  return built(graph, {}, [&] { return add_typed(*graph, "matmul", {a, b}, {}); });
}

rlx_value_t rlx_graph_cast(rlx_graph_t* graph, rlx_value_t x, rlx_dtype_t dtype) {
  return built(graph, {}, [&]() -> Result<Value> {
    DType to = RLX_TRY(for_op("cast", checked_dtype(dtype)));
    return add_typed(*graph, "cast", {x}, {{"to", to}});
  });
}

rlx_value_t rlx_graph_reshape(rlx_graph_t* graph, rlx_value_t x, const int64_t* dims, size_t rank) {
  return built(graph, {array(dims, rank, "dims")}, [&]() -> Result<Value> {
    auto shape = RLX_TRY(for_op("reshape", from_c(*graph, dims, rank)));
    return add_typed(*graph, "reshape", {x}, {{"shape", std::move(shape)}});
  });
}

rlx_value_t rlx_graph_transpose(rlx_graph_t* graph, rlx_value_t x, const int64_t* perm, size_t rank) {
  return built(graph, {array(perm, rank, "perm")}, [&]() -> Result<Value> {
    if (rank > kMaxRank) return rank_above_limit(rank).prefixed("transpose: ").with("op", "transpose");
    return add_typed(*graph, "transpose", {x}, {{"perm", std::vector<int64_t>(perm, perm + rank)}});
  });
}

rlx_value_t rlx_graph_reduce(rlx_graph_t* graph, const char* op, rlx_value_t x, const int64_t* axes, size_t n,
                             int32_t keep_dims) {
  return built(graph, {{op, "op"}, array(axes, n, "axes")}, [&]() -> Result<Value> {
    if (n > kMaxRank) return rank_above_limit(n).prefixed(format("{}: ", op)).with("op", "reduce");
    NamedAttrs attrs{{"keep_dims", int64_t{keep_dims}}};
    if (n > 0) attrs.emplace_back("axes", std::vector<int64_t>(axes, axes + n));
    return add_reduce(*graph, op, x, std::move(attrs));
  });
}

rlx_value_t rlx_graph_softmax(rlx_graph_t* graph, rlx_value_t x, int64_t axis) {
  return built(graph, {}, [&] { return add_typed(*graph, "softmax", {x}, {{"axis", axis}}); });
}
