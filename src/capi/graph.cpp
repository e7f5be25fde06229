// SPDX-License-Identifier: Apache-2.0
// rlx_graph_*: building. Every builder call is a `built` around one call of Graph; its first failure stays in the
// graph.
#include "capi/graph.h"

#include <string>

#include "base/nearest.h"
#include "capi/attrs.h"
#include "capi/blob.h"
#include "capi/guard.h"
#include "capi/schema.h"
#include "capi/tensor.h"
#include "capi/text.h"
#include "ir/text.h"
#include "ops/expr.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

static constexpr int kOutputBits = 16;
static constexpr rlx_value_t kFirstValue = 2;   // 0 is an error, 1 is RLX_ABSENT
static constexpr size_t kMostInputs = 1 << 16;  // of one node

rlx_value_t to_c(Value value) {
  return kFirstValue + ((static_cast<rlx_value_t>(value.node) << kOutputBits) | value.output);
}

Result<Value> from_c(const Graph& graph, rlx_value_t value) {
  if (value == RLX_ABSENT) return kAbsent;
  rlx_value_t bits = value - kFirstValue;
  rlx_value_t node = bits >> kOutputBits, output = bits & ((1 << kOutputBits) - 1);
  if (value >= kFirstValue && node < graph.nodes().size() && output < graph.nodes()[node].out.size())
    return Value{static_cast<uint32_t>(node), static_cast<uint32_t>(output)};
  return Status(Code::kInvalidArgument, value == 0 ? std::string("an input is 0, the value of a call that failed")
                                                   : format("{} is no value of this graph", value))
      .with("got", std::to_string(value));
}

static Result<std::vector<Dim>> from_c(const rlx_graph_t& graph, const int64_t* dims, size_t rank) {
  if (rank <= kMaxRank) return graph.env->dims.dims({dims, rank});
  return Status(Code::kShape, format("rank {} is above the limit of {}", rank, kMaxRank))
      .with("got", std::to_string(rank));
}

// An input or param, `role`, of any dims that the environment knows.
static Result<ValueType> leaf_type(const rlx_graph_t& graph, const char* role, const char* name, rlx_dtype_t dtype,
                                   const int64_t* dims, size_t rank) {
  auto type = [&]() -> Result<ValueType> {
    return ValueType{RLX_TRY(checked_dtype(dtype)), RLX_TRY(from_c(graph, dims, rank))};
  }();
  if (type.ok()) return type;
  return std::move(type).status().prefixed(format("{} '{}': ", role, name)).with("value", name);
}

// Body: () -> Result<Value>. Returns 0 where that fails.
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
        return {};
      },
      function);
  return ok ? to_c(value) : 0;
}

static Status unknown_op(const OpTable& table, const std::string& name) {
  std::vector<std::string_view> known;
  for (const OpInfo& row : table.rows())
    if (is_for_users(row)) known.push_back(row.name);
  return Status(Code::kNotFound, "no op '" + name + "'" + did_you_mean(name, known)).with("op", name);
}

// `text` is the op's name, perhaps with attributes: "layer_norm eps=1e-5".
static Result<Value> add_op(rlx_graph_t& graph, std::string_view text, std::span<const rlx_value_t> in,
                            const rlx_attrs_t* attrs) {
  size_t end = std::min(text.find(' '), text.size());
  std::string name(text.substr(0, end));
  const OpInfo* info = graph.graph.table().find(name);
  if (!info || !is_for_users(*info)) return unknown_op(graph.graph.table(), name);
  if (in.size() > kMostInputs)
    return Status(Code::kInvalidArgument, format("{}: {} inputs are too many", name, in.size()));
  std::vector<Value> values;
  for (rlx_value_t value : in) {
    auto known = from_c(graph.graph, value);
    if (!known.ok()) return std::move(known).status().prefixed(name + ": ").with("op", name);
    values.push_back(*known);
  }
  auto words = parse_attrs(text.substr(end));
  if (!words.ok()) return std::move(words).status().prefixed(name + ": ").with("op", name);
  NamedAttrs all = *std::move(words);
  for (auto& pair : RLX_TRY(values_of(attrs, graph.env->dims))) all.push_back(std::move(pair));
  return graph.graph.add(info->op(), values, all);
}

static Result<Value> add_typed(rlx_graph_t& graph, std::string_view op, std::initializer_list<rlx_value_t> in,
                               NamedAttrs attrs) {
  rlx_attrs given{std::move(attrs), {}};
  return add_op(graph, op, std::span(in.begin(), in.size()), &given);
}

// A typed call takes ops of that many inputs only, so that a wrong name cannot be another op's.
static Result<Value> add_elementwise(rlx_graph_t& graph, const char* op, std::initializer_list<rlx_value_t> in) {
  std::string_view name = op;
  const OpInfo* info = graph.graph.table().find(name.substr(0, name.find(' ')));
  if (info && (!info->is(kElementwise) || info->signature.in.size() != in.size()))
    return Status(Code::kInvalidArgument, format("{} is no elementwise op of {} inputs", op, in.size())).with("op", op);
  return add_typed(graph, name, in, {});
}

static Result<Value> add_scalar(rlx_graph_t& graph, rlx_dtype_t dtype, double value) {
  DType type = RLX_TRY(checked_dtype(dtype));
  Tensor wide = RLX_TRY(scalar_tensor(DType::kF64, value));
  return graph.graph.add_constant(type == DType::kF64 ? wide : RLX_TRY(cast(wide, type)));
}

// "any" and "all" are the largest and smallest of bools, "mean" is an op of its own; the others are `reduce`.
static Result<Value> add_reduce(rlx_graph_t& graph, std::string_view fn, rlx_value_t x, NamedAttrs attrs) {
  if (fn == "mean") return add_typed(graph, "mean", {x}, std::move(attrs));
  bool on_bools = fn == "any" || fn == "all";
  Value value = RLX_TRY(from_c(graph.graph, x));
  if (on_bools && present(value) && graph.graph.type(value).dtype != DType::kBool)
    return Status(Code::kDtype, format("{}: takes bool, not {}", fn, graph.graph.type(value).dtype))
        .with("op", fn)
        .with("expected", "bool");
  if (fn != "sum" && fn != "prod" && fn != "max" && fn != "min" && !on_bools)
    return Status(Code::kNotFound, "no reduction '" + std::string(fn) + "'").with("op", fn);
  attrs.emplace_back("fn", std::string(fn == "any" ? "max" : fn == "all" ? "min" : fn));
  return add_typed(graph, "reduce", {x}, std::move(attrs));
}

static Result<int64_t> declare_dim(rlx_graph_t& graph, const char* text, int64_t min, int64_t max) {
  Dim dim = RLX_TRY(parse_dim(text));
  if (const std::string* symbol = dim.symbol_name()) {
    RLX_TRY(graph.graph.declare_symbol(*symbol, {min, max == 0 ? Interval::kUnbounded : max}));
  } else if (min != 0 || max != 0) {
    return Status(Code::kInvalidArgument, format("the size '{}' is no symbol: its range follows from its parts", text))
        .with("value", text);
  } else if (dim.is_literal() && dim.literal() < 0) {
    return Status(Code::kRange, format("the size '{}' is negative", text)).with("value", text);
  }
  return graph.env->dims.token(dim);
}

}  // namespace rlx::capi

rlx_status_t* rlx_graph_create(rlx_env_t* env, const char* name, rlx_graph_t** out) {
  return guard({cleared(out, "out"), handle(env, "env")}, [&]() -> Status {
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
  return value_or(0, {handle(graph, "graph")}, [&]() -> size_t {
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
    return graph->graph.add_constant(RLX_TRY(copied_tensor(*graph->env.get(), dtype, dims, rank, data, bytes)));
  });
}

rlx_value_t rlx_graph_tensor(rlx_graph_t* graph, rlx_tensor_t* tensor) {
  return built(graph, {handle(tensor, "tensor")}, [&]() -> Result<Value> {
    RLX_TRY(same_env(graph->env.get(), tensor->env.get(), "tensor"));
    return graph->graph.add_constant(RLX_TRY(tensor->tensor.frozen()));
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
      return Status(Code::kInvalidArgument, format("{} has {} outputs, not {}", op, count, n_out))
          .with("op", op)
          .with("expected", std::to_string(count))
          .with("got", std::to_string(n_out));
    for (uint32_t i = 0; i < n_out; i++) out[i] = to_c(Value{first.node, i});
    return first;
  });
}

void rlx_graph_output(rlx_graph_t* graph, const char* name, rlx_value_t value) {
  if (!graph) return;
  keep(graph->status, {handle(graph, "graph"), {name, "name"}}, [&]() -> Status {
    auto known = from_c(graph->graph, value);
    if (!known.ok()) return std::move(known).status().prefixed(format("output '{}': ", name)).with("value", name);
    return graph->graph.add_output(name, *known);
  });
}

void rlx_graph_set_name(rlx_graph_t* graph, rlx_value_t value, const char* name) {
  if (!graph) return;
  keep(graph->status, {handle(graph, "graph"), {name, "name"}}, [&]() -> Status {
    Value known = RLX_TRY(from_c(graph->graph, value));
    if (present(known)) graph->graph.set_name(known, name);
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
    return add_typed(*graph, "cast", {x}, {{"to", RLX_TRY(checked_dtype(dtype))}});
  });
}

rlx_value_t rlx_graph_reshape(rlx_graph_t* graph, rlx_value_t x, const int64_t* dims, size_t rank) {
  return built(graph, {array(dims, rank, "dims")}, [&]() -> Result<Value> {
    return add_typed(*graph, "reshape", {x}, {{"shape", RLX_TRY(from_c(*graph, dims, rank))}});
  });
}

rlx_value_t rlx_graph_transpose(rlx_graph_t* graph, rlx_value_t x, const int64_t* perm, size_t rank) {
  return built(graph, {array(perm, rank, "perm")}, [&]() -> Result<Value> {
    if (rank > kMaxRank) return Status(Code::kShape, format("transpose: rank {} is above the limit", rank));
    return add_typed(*graph, "transpose", {x}, {{"perm", std::vector<int64_t>(perm, perm + rank)}});
  });
}

rlx_value_t rlx_graph_reduce(rlx_graph_t* graph, const char* op, rlx_value_t x, const int64_t* axes, size_t n,
                             int32_t keep_dims) {
  return built(graph, {{op, "op"}, array(axes, n, "axes")}, [&]() -> Result<Value> {
    if (n > kMaxRank) return Status(Code::kShape, format("{}: {} axes are above the limit", op, n)).with("op", op);
    NamedAttrs attrs{{"keep_dims", int64_t{keep_dims}}};
    if (n > 0) attrs.emplace_back("axes", std::vector<int64_t>(axes, axes + n));
    return add_reduce(*graph, op, x, std::move(attrs));
  });
}

rlx_value_t rlx_graph_softmax(rlx_graph_t* graph, rlx_value_t x, int64_t axis) {
  return built(graph, {}, [&] { return add_typed(*graph, "softmax", {x}, {{"axis", axis}}); });
}
