// SPDX-License-Identifier: Apache-2.0
#include "ops/interpret.h"

#include <unordered_set>

#include "base/check_size.h"
#include "base/size_failure.h"
#include "ir/body.h"
#include "ir/broken_guard.h"
#include "ops/expr.h"
#include "ops/index.h"
#include "ops/names.h"
#include "ops/trips.h"
#include "ops/work.h"

namespace rlx {

namespace {

DType storage_of(DType declared, EvalMode mode) {
  if (mode == EvalMode::kTyped) return declared;
  if (is_float(declared)) return DType::kF64;
  return is_complex(declared) ? DType::kC128 : declared;
}

SymbolLookup lookup_in(const SymbolSizes& sizes) {
  return [&sizes](std::string_view name) -> std::optional<int64_t> {
    auto found = sizes.find(name);
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  };
}

// One symbol with two sizes.
Status disagree(const std::string& symbol, int64_t a, int64_t b) {
  return Status(Code::kShape, format("the size '{}' is {} and {}", symbol, a, b)).with("value", symbol);
}

// What a graph and all within it share.
struct Setting {
  const ParamTensors& params;
  EvalOptions options;
  double* left = nullptr;  // the work that it may still do (ops/work.h); null: without a limit
};

Result<std::vector<Tensor>> run_inner(const Graph& graph, std::span<const Tensor> inputs, const SymbolLookup& around,
                                      const Setting& setting);

// Runs one graph, node by node.
class Interpreter {
 public:
  Interpreter(const Graph& graph, const Setting& setting, SymbolSizes sizes)
      : graph_(graph),
        setting_(setting),
        params_(setting_.params),
        options_(setting_.options),
        sizes_(std::move(sizes)),
        values_(graph.nodes().size()),
        is_read_(graph.nodes().size()) {
    for (const Node& node : graph.nodes())
      for (Value in : node.in)
        if (present(in) && node.op != Op::kDimSize) is_read_[in.node] = true;
    for (const GraphOutput& output : graph.outputs()) is_read_[output.value.node] = true;
  }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) {
    RLX_TRY(check_guards());
    for (size_t i = 0; i < inputs.size(); i++) RLX_TRY(set_leaf(graph_.inputs()[i], inputs[i]));
    for (uint32_t node = 0; node < graph_.nodes().size(); node++) RLX_TRY(visit_node(node));
    std::vector<Tensor> results;
    for (const GraphOutput& output : graph_.outputs()) results.push_back(value(output.value));
    return results;
  }

  const SymbolSizes& sizes() const { return sizes_; }

 private:
  // Memory for a value of this type, at its present size.
  Result<Tensor> make(const ValueType& type) const {
    DType dtype = storage_of(type.dtype, options_.mode);
    Dims dims;
    for (const Dim& dim : type.dims) dims.push_back(RLX_TRY(evaluate(dim, lookup())));
    return options_.make ? (*options_.make)(dtype, dims) : Tensor::create(dtype, dims);
  }
  const Tensor& value(Value v) const { return values_[v.node][v.output]; }
  SymbolLookup lookup() const { return lookup_in(sizes_); }
  Status set_leaf(uint32_t node, const Tensor& tensor) {
    values_[node] = {RLX_TRY(convert(tensor, storage_of(tensor.dtype(), options_.mode)))};
    return {};
  }

  // Checks the guards (semantics.md G1) whose sizes are known by now.
  Status check_guards() const {
    for (const Guard& guard : graph_.guards()) {
      auto a = evaluate(guard.a, lookup()), b = evaluate(guard.b, lookup());
      if (!a.ok() || !b.ok() || holds(guard.relation, *a, *b)) continue;
      return broken_guard(graph_, guard, lookup()).with(kDependsOnSizes, "1");
    }
    return {};
  }

  Status bind_symbol(const std::string& symbol, int64_t size) {
    auto [known, is_new] = sizes_.emplace(symbol, size);
    if (known->second != size) return disagree(symbol, known->second, size);
    Status fits = is_new ? check_guards() : Status();
    return fits.ok() ? fits : std::move(fits).with(kFoundSizes, "1");
  }

  Status visit_node(uint32_t index) {
    if (options_.poll) RLX_TRY((*options_.poll)());
    const Node& node = graph_.node(index);
    if (graph_.info(node).is(kLeaf)) return visit_leaf(index);
    if (node.op == Op::kDimSize) return read_size(index, node);
    if (node.op == Op::kBroadcastTo && !is_read_[index]) return {};  // it carries a size, perhaps a large one
    return graph_.info(node).primitive() ? run_primitive(index, node) : run_composite(index, node);
  }

  Status visit_leaf(uint32_t index) {
    if (!values_[index].empty()) return {};  // an input
    if (const Tensor* constant = graph_.constant({index, 0})) return set_leaf(index, *constant);
    auto found = params_.find(graph_.leaf_name(index));
    if (found == params_.end() && !is_read_[index]) return {};
    if (found == params_.end()) return Status(Code::kState, "the param '" + graph_.leaf_name(index) + "' is not set");
    RLX_TRY(check_param(index, found->second));
    return set_leaf(index, found->second);
  }

  Status check_param(uint32_t index, const Tensor& tensor) {
    const ValueType& type = graph_.node(index).out[0];
    bool fits = tensor.dtype() == type.dtype && tensor.rank() == type.rank();
    for (size_t i = 0; fits && i < type.rank(); i++) {
      auto size = evaluate(type.dims[i], lookup());
      fits = !size.ok() || *size == tensor.dims()[i];
    }
    if (fits) return {};
    return Status(Code::kShape, format("the param '{}' is {}, not {}", graph_.leaf_name(index), type,
                                       type_text(tensor.dtype(), tensor.dims())));
  }

  Status read_size(uint32_t index, const Node& node) {
    const Dim& dim = graph_.type(node.in[0]).dims[static_cast<size_t>(node.attrs.i64("axis"))];
    values_[index] = {RLX_TRY(make(node.out[0]))};
    *values_[index][0].as<int64_t>() = RLX_TRY(evaluate(dim, lookup()));
    return {};
  }

  // The branch decides the sizes of its results, so they are not compared with the node's types.
  Status run_if(uint32_t index, const Node& node) {
    bool takes = RLX_TRY(takes_then(node.attrs, Operand::of(value(node.in[0])), lookup()));
    const Graph& branch = *node.attrs.graph(takes ? "then" : "else");
    std::vector<Tensor> given;
    for (size_t i = 1; i < node.in.size(); i++) given.push_back(value(node.in[i]));
    values_[index] = RLX_TRY(run_inner(branch, given, lookup(), setting_));
    return bind_results(index, node);
  }

  // Does not compare the results with the node's types: the sizes of carries may change, and the number of trips is
  // known only afterwards.
  Status run_loop(uint32_t index, const Node& node) {
    std::vector<Tensor> given;
    for (Value in : node.in) given.push_back(value(in));
    SymbolLookup known = lookup(), inside = without_carried(node.attrs, known);
    RunBody run = [&](const Graph& body, std::span<const Tensor> inputs) {
      return run_inner(body, inputs, inside, setting_);
    };
    int64_t most =
        node.op == Op::kWhile ? node.attrs.i64("max_trips") : RLX_TRY(scan_trips(node.attrs, given, lookup()));
    LoopRun done = RLX_TRY(rlx::run_loop(node.attrs, std::move(given), most, run));
    values_[index] = done.carries;
    RLX_TRY(bind_results(index, node));
    for (size_t i = done.carries.size(); i < node.out.size(); i++) {
      const ValueType& type = node.out[i];
      if (auto* trips = type.dims[0].symbol_name()) RLX_TRY(bind_symbol(*trips, done.trips()));
      values_[index].push_back(RLX_TRY(make(type)));
      done.stack(node.attrs, i - done.carries.size(), values_[index].back().data());
    }
    return {};
  }

  Status bind_results(uint32_t index, const Node& node) {
    for (size_t i = 0; i < values_[index].size(); i++)
      for (size_t axis = 0; axis < node.out[i].rank(); axis++)
        if (const std::string* symbol = node.out[i].dims[axis].symbol_name())
          RLX_TRY(bind_symbol(*symbol, values_[index][i].dims()[axis]));
    return {};
  }

  Status run_primitive(uint32_t index, const Node& node) {
    if (node.op == Op::kIf) return run_if(index, node);
    if (node.op == Op::kWhile || node.op == Op::kScan) return run_loop(index, node);
    std::vector<Operand> in(std::max(node.in.size(), graph_.info(node).signature.in.size()));
    for (size_t i = 0; i < node.in.size(); i++)
      if (present(node.in[i])) in[i] = Operand::of(value(node.in[i]));
    if (node.op == Op::kDynamicIota)
      RLX_TRY(bind_symbol(node.attrs.str("symbol"), RLX_TRY(dynamic_size(node.attrs, index_at(in[0], 0), lookup()))));
    std::vector<Operand> out;
    for (const ValueType& type : node.out) {
      values_[index].push_back(RLX_TRY(make(type)));
      out.push_back(Operand::of(values_[index].back()));
    }
    if (setting_.left && (*setting_.left -= work_of(node, in, out)) < 0)
      return Status(Code::kUnsupported, "this takes too many steps");
    return eval_node(graph_, node, in, out, lookup(), options_);
  }

  // A composite runs as the graph of its decomposition.
  Status run_composite(uint32_t index, const Node& node) {
    Graph body("", &graph_.table());
    Builder builder(body);
    std::vector<Expr> in;
    std::vector<Tensor> given;
    for (const auto& [symbol, range] : graph_.symbols()) RLX_TRY(body.declare_symbol(symbol, range));
    for (size_t i = 0; i < node.in.size(); i++) {
      if (!present(node.in[i])) {
        in.push_back(Expr());
        continue;
      }
      const ValueType& type = graph_.type(node.in[i]);
      if (is_block(type.dtype)) {  // no input may have such a type
        in.push_back(builder.constant(value(node.in[i])));
        continue;
      }
      in.push_back(builder.wrap(RLX_TRY(body.add_input("in" + std::to_string(i), type.dtype, type.dims))));
      given.push_back(value(node.in[i]));
    }
    Outputs outputs = decompose(builder, graph_.info(node), in, node.attrs);
    RLX_TRY(builder.status());
    name_readers_of_indices(body, 0, node.name);
    for (size_t i = 0; i < outputs.size(); i++) RLX_TRY(body.add_output("out" + std::to_string(i), outputs[i].value()));
    Interpreter interpreter(body, setting_, sizes_);
    values_[index] = RLX_TRY(interpreter.run(given));
    for (const auto& [symbol, size] : interpreter.sizes()) RLX_TRY(bind_symbol(symbol, size));
    return {};
  }

  const Graph& graph_;
  const Setting setting_;
  const ParamTensors& params_;
  const EvalOptions& options_;
  SymbolSizes sizes_;
  std::vector<std::vector<Tensor>> values_;  // by node: its outputs
  std::vector<bool> is_read_;                // by node: whether more than its sizes is read
};

Result<std::vector<Tensor>> run_inner(const Graph& graph, std::span<const Tensor> inputs, const SymbolLookup& around,
                                      const Setting& setting) {
  SymbolSizes sizes;
  std::vector<std::string> decided = decided_symbols(graph);
  std::unordered_set<std::string> own(decided.begin(), decided.end());
  for (const auto& [symbol, range] : graph.symbols())
    if (!own.contains(symbol))
      if (auto size = around(symbol)) sizes.emplace(symbol, *size);
  // Symbols that are not known around the body come from its carries.
  for (size_t i = 0; i < inputs.size(); i++)
    for (size_t axis = 0; axis < inputs[i].rank(); axis++) {
      const std::string* name = graph.node(graph.inputs()[i]).out[0].dims[axis].symbol_name();
      if (!name || own.contains(*name)) continue;
      int64_t now = inputs[i].dims()[axis];
      auto [known, is_new] = sizes.emplace(*name, now);
      if (known->second != now) return disagree(*name, known->second, now);
      if (is_new) RLX_TRY(check_size(*name, now, graph.symbol_range(*name)));
    }
  return Interpreter(graph, setting, std::move(sizes)).run(inputs);
}

}  // namespace

Result<Tensor> convert(const Tensor& tensor, DType to) {
  if (tensor.dtype() == to) return tensor;
  Tensor result = RLX_TRY(Tensor::create(to, tensor.dims()));
  int64_t count = tensor.count();
  visit<dtypes::F | dtypes::Z>(tensor.dtype(), [&]<class From>() {
    visit<dtypes::F | dtypes::Z>(to, [&]<class To>() {
      if constexpr (is_complex_type<From> == is_complex_type<To>)
        for (int64_t i = 0; i < count; i++) result.as<To>()[i] = To(static_cast<Compute<From>>(tensor.as<From>()[i]));
    });
  });
  return result;
}

// A loop over empty rows takes time too. It is left out only if the op cannot fail.
static bool has_nothing_to_do(const OpInfo& info, std::span<const Operand> out) {
  return info.cannot_fail() && std::ranges::all_of(out, [](const Operand& it) { return !it || it.count() == 0; });
}

Status eval_node(const Graph& graph, const Node& node, std::span<const Operand> in, std::span<const Operand> out,
                 const SymbolLookup& sizes, EvalOptions options) {
  if (has_nothing_to_do(graph.info(node), out)) return {};
  StaticVector<DType, kMaxDeclared> declared_in, declared_out;
  for (size_t i = 0; i < std::min(in.size(), kMaxDeclared); i++)
    declared_in.push_back(i < node.in.size() && present(node.in[i]) ? graph.type(node.in[i]).dtype : DType::kNone);
  for (size_t i = 0; i < std::min(node.out.size(), kMaxDeclared); i++) declared_out.push_back(node.out[i].dtype);
  EvalArgs args{graph.info(node), node.attrs, in, out, declared_in, declared_out, sizes, options.bounds, node.name};
  return args.info.eval(args);
}

// The dtype and the rank of an input; its dims are checked once all symbols have their sizes.
static Status check_input(const ValueType& type, const std::string& name, const Tensor& given) {
  if (given.dtype() != type.dtype)
    return Status(Code::kDtype, format("input '{}' is {}, not {}", name, type.dtype, given.dtype()))
        .with("value", name);
  if (given.rank() != type.rank()) return wrong_rank(name, std::to_string(type.rank()), given.rank());
  return {};
}

static Status check_dims(const ValueType& type, const std::string& name, const Tensor& given,
                         const SymbolLookup& lookup) {
  for (size_t axis = 0; axis < given.rank(); axis++)
    if (int64_t expected = RLX_TRY(evaluate(type.dims[axis], lookup)); expected != given.dims()[axis])
      return Status(Code::kShape, format("input '{}', axis {}: {} is {}, not {}", name, axis, type.dims[axis], expected,
                                         given.dims()[axis]));
  return {};
}

Result<SymbolSizes> bind_sizes(const Graph& graph, std::span<const Tensor> inputs, SymbolSizes known) {
  std::span<const uint32_t> nodes = graph.inputs();
  if (inputs.size() != nodes.size())
    return Status(Code::kInvalidArgument,
                  format("the graph takes {}, not {}", plural(nodes.size(), "input"), inputs.size()));
  SymbolSizes sizes = std::move(known);
  for (size_t i = 0; i < inputs.size(); i++) {
    const ValueType& type = graph.node(nodes[i]).out[0];
    RLX_TRY(check_input(type, graph.leaf_name(nodes[i]), inputs[i]));
    for (size_t axis = 0; axis < inputs[i].rank(); axis++)
      if (auto* symbol = type.dims[axis].symbol_name()) sizes.emplace(*symbol, inputs[i].dims()[axis]);
  }
  for (size_t i = 0; i < inputs.size(); i++)
    RLX_TRY(check_dims(graph.node(nodes[i]).out[0], graph.leaf_name(nodes[i]), inputs[i], lookup_in(sizes)));
  return sizes;
}

Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const Tensor> inputs, const ParamTensors& params,
                                      EvalOptions options, SymbolSizes* sizes) {
  SymbolSizes bound = RLX_TRY(bind_sizes(graph, inputs, sizes ? *sizes : SymbolSizes()));
  Interpreter interpreter(graph, {params, options}, std::move(bound));
  std::vector<Tensor> results = RLX_TRY(interpreter.run(inputs));
  if (sizes) *sizes = interpreter.sizes();
  return results;
}

Result<std::vector<Tensor>> interpret_within(const Graph& graph, double work, const MakeTensor& make) {
  const ParamTensors none;
  return Interpreter(graph, {none, {.make = &make}, &work}, {}).run({});
}

}  // namespace rlx
