// SPDX-License-Identifier: Apache-2.0
// custom, which stands for the body of a registered op or, without a body, for a call of the host; custom_fn. The pass
// `inline` replaces both before any other pass, so only calls of the host reach a device.
#include "ops/custom.h"

#include <algorithm>
#include <cstring>

#include "base/nearest.h"
#include "base/shortened.h"
#include "ir/infer.h"
#include "ops/control.h"
#include "ops/inline.h"
#include "ops/interpret.h"

namespace rlx {

// The attribute of the op table's row that holds all attributes with other names. No user can set it by this name.
static constexpr const char* kFree = "...";

// ---- the ops of an environment ----

// Each symbol must be an axis of an input by itself: a call takes the symbol's size from there.
static Status check_symbols_given(const Graph& body) {
  for (const auto& [symbol, range] : body.symbols()) {
    bool is_given = false;
    for (uint32_t input : body.inputs())
      for (const Dim& dim : body.node(input).out[0].dims) is_given |= dim.symbol_name() && *dim.symbol_name() == symbol;
    if (!is_given)
      return Status(Code::kShape, "the size '" + symbol + "' is not an axis of an input").with("value", symbol);
  }
  return {};
}

static Status check_body(const Graph& body) {
  if (body.inputs().empty() || body.outputs().empty())
    return Status(Code::kInvalidArgument, "it needs an input and an output");
  RLX_TRY(check_inlinable(body));
  return check_symbols_given(body);
}

Status CustomOps::add(std::shared_ptr<const CustomOp> op) {
  if (Status status = op->body ? check_body(*op->body) : Status(); !status.ok())
    return std::move(status).prefixed("the body of '" + op->name + "': ");
  std::lock_guard lock(mutex_);
  if (!ops_.try_emplace(op->name, op).second)
    return Status(Code::kExists, "there is already a custom op '" + op->name + "'").with("value", op->name);
  return {};
}

Result<std::shared_ptr<const CustomOp>> CustomOps::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  if (auto found = ops_.find(name); found != ops_.end()) return found->second;
  std::vector<std::string_view> known;
  for (const auto& [other, op] : ops_) known.push_back(other);
  return Status(Code::kNotFound, "no custom op '" + name + "' is registered" + did_you_mean(name, known))
      .with("value", name);
}

static void keep(InferArgs& args, FreeAttrs free) {
  args.attrs = args.attrs.with(kFree, std::make_shared<const FreeAttrs>(std::move(free)));
}

// Adds the op to the node's attributes, where they then keep it.
static Status look_up(InferArgs& args) {
  FreeAttrs free = args.attrs.free(kFree);
  if (free.op) return {};
  const std::string& name = args.attrs.str("name");
  auto customs = args.graph.customs();
  if (!customs) return CustomOps().find(name).status();
  free.op = RLX_TRY(customs->find(name));
  keep(args, std::move(free));
  return {};
}

// ---- custom ----

const CustomOp& custom_op(const Attrs& attrs) {
  return *attrs.free(kFree).op;
}

Status infer_custom(InferArgs& args) {
  RLX_TRY(all_given(args, 0));
  RLX_TRY(look_up(args));
  return custom_op(args.attrs).body ? infer_composite(args) : infer_host_call(args);
}

Outputs decompose_custom(const Inputs& in, const Attrs& attrs) {
  const FreeAttrs& free = attrs.free(kFree);
  const CustomOp& op = *free.op;
  bool has_effects = attrs.flag("effects");
  if (!op.body)
    return in.builder().ops(has_effects ? Op::kHostEffect : Op::kHostCall, in.all(),
                            {{"name", op.name}, {kFree, attrs.get(kFree)}});
  if (!free.values.empty())
    return refuse(in, Code::kOption,
                  format("unknown attribute '{}': '{}' has a body, which takes none", free.values[0].first, op.name));
  if (has_effects)
    return refuse(in, Code::kOption, format("'effects' is not for '{}': its body says what has effects", op.name));
  return inlined_at_inputs(in.builder(), *op.body, in.all());
}

// ---- calls of the host ----

// Checks what the host said of an output: it may be anything.
static Status check_answer(InferArgs& args, size_t output, const ValueType& type) {
  if (!dtypes::A.has(type.dtype)) return args.fail(Code::kDtype, format("output {} may not be {}", output, type.dtype));
  for (const Dim& dim : type.dims) {
    bool is_known = args.graph.range(dim).hi >= 0;
    visit_symbols(dim, [&](const std::string& symbol) { is_known &= args.graph.has_symbol(symbol); });
    if (!is_known) return args.fail(Code::kShape, format("output {}: {} is not a size of this graph", output, dim));
  }
  return {};
}

static std::string listed_types(std::span<const ValueType> types) {
  std::string text;
  for (const ValueType& type : types) text += (text.empty() ? "" : ", ") + shortened(text_of(type));
  return types.empty() ? "no outputs" : text;
}

// What the host told of the same inputs before; null if it was not asked.
static const HostAnswer* answer_before(const FreeAttrs& free, std::span<const ValueType> in) {
  return free.answer && std::ranges::equal(free.answer->in, in) ? free.answer.get() : nullptr;
}

// Asks the host. The same question gets the same answer: if it does not, the host is at fault, not a pass that asks
// again.
static Result<std::vector<ValueType>> ask(const InferArgs& args, const FreeAttrs& free, const HostAnswer* before) {
  auto types = free.op->infer(args.in, free.values);
  if (!before || (types.ok() && *types == before->out)) return types;
  std::string first = listed_types(before->out);
  if (!types.ok()) return std::move(types).status().suffixed("; for the same inputs it gave " + first + " before");
  std::string then = listed_types(*types);
  return Status(Code::kCallback, format("infer gave {} first and then, for the same inputs, {}", first, then))
      .with("expected", first)
      .with("got", then);
}

Status infer_host_call(InferArgs& args) {
  std::vector<ValueType> in = RLX_TRY(all_given(args, 0));
  RLX_TRY(look_up(args));
  FreeAttrs free = args.attrs.free(kFree);
  auto named = [&](Status status) { return std::move(status).prefixed("'" + free.op->name + "': "); };
  if (args.in.size() > kMaxDeclared)
    return named(args.fail(Code::kUnsupported, format("{} inputs are above {}", args.in.size(), kMaxDeclared)));
  if (!free.op->infer) return named(args.fail(Code::kState, "it has a body, so the host does not run it"));
  const HostAnswer* before = answer_before(free, in);
  auto types = ask(args, free, before);
  if (!types.ok()) return named(std::move(types).status());
  if (types->empty() || types->size() > kMaxDeclared)
    return named(args.fail(Code::kCallback, format("it has {} outputs, not 1 to {}", types->size(), kMaxDeclared)));
  args.out.clear();
  for (size_t i = 0; i < types->size(); i++) {
    if (Status status = check_answer(args, i, (*types)[i]); !status.ok()) return named(std::move(status));
    args.out.push_back((*types)[i]);
  }
  if (Status status = check_results(args); !status.ok()) return named(std::move(status));
  if (!before) {
    free.answer = std::make_shared<const HostAnswer>(HostAnswer{std::move(in), *std::move(types)});
    keep(args, std::move(free));
  }
  return {};
}

// An operand in its declared dtype. The oracle stores floats wider: then this is a copy of an input, or memory for an
// output that `write_back` converts.
class Declared {
 public:
  static Result<Declared> input(const Operand& stored, DType dtype) {
    if (stored.dtype == dtype) return Declared(stored);
    Tensor wide = RLX_TRY(Tensor::create(stored.dtype, stored.dims));
    if (wide.bytes()) std::memcpy(wide.data(), stored.data, wide.bytes());
    return Declared(RLX_TRY(convert(wide, dtype)));
  }
  static Result<Declared> output(const Operand& stored, DType dtype) {
    if (stored.dtype == dtype) return Declared(stored);
    return Declared(RLX_TRY(Tensor::create(dtype, stored.dims)));
  }
  const Operand& operand() const { return operand_; }
  Status write_back(const Operand& stored) const {
    if (!copy_) return {};
    Tensor wide = RLX_TRY(convert(copy_, stored.dtype));
    if (wide.bytes()) std::memcpy(stored.data, wide.data(), wide.bytes());
    return {};
  }

 private:
  explicit Declared(const Operand& stored) : operand_(stored) {}
  explicit Declared(Tensor copy) : operand_(Operand::of(copy)), copy_(std::move(copy)) {}

  Operand operand_;
  Tensor copy_;
};

Status eval_host_call(EvalArgs& args) {
  const FreeAttrs& free = args.attrs.free(kFree);
  std::vector<Declared> given, made;
  std::vector<Operand> in, out;
  for (size_t i = 0; i < args.in.size(); i++) {
    given.push_back(RLX_TRY(Declared::input(args.in[i], args.declared_in[i])));
    in.push_back(given.back().operand());
  }
  for (size_t i = 0; i < args.out.size(); i++) {
    made.push_back(RLX_TRY(Declared::output(args.out[i], args.declared_out[i])));
    out.push_back(made.back().operand());
  }
  Status status = free.op->run(in, out, free.values);
  if (!status.ok()) {
    std::string node = args.where.empty() ? "" : format("custom '{}': ", args.where);
    return std::move(status)
        .prefixed(format("{}'{}': ", node, free.op->name))
        .with("op", "custom")
        .with("value", args.where.empty() ? free.op->name : args.where);
  }
  for (size_t i = 0; i < made.size(); i++) RLX_TRY(made[i].write_back(args.out[i]));
  return {};
}

Status eval_host_effect(EvalArgs& args) {
  return eval_host_call(args);
}

// ---- custom_fn ----

static std::vector<ValueType> output_types(const Graph& graph) {
  std::vector<ValueType> types;
  for (const GraphOutput& output : graph.outputs()) types.push_back(graph.type(output.value));
  return types;
}

static bool has_derivative(const ValueType& type) {
  return (dtypes::F | dtypes::Z).has(type.dtype);
}

static std::vector<ValueType> differentiable(std::span<const ValueType> types) {
  std::vector<ValueType> found;
  std::copy_if(types.begin(), types.end(), std::back_inserter(found), has_derivative);
  return found;
}

// A derivative takes the inputs, the outputs and `seeds`, and gives a value of each of these types.
static Status check_derivative(InferArgs& args, const char* attr, std::vector<ValueType> given,
                               std::span<const ValueType> seeds, std::span<const ValueType> expected) {
  if (!args.attrs.has(attr)) return {};
  given.insert(given.end(), seeds.begin(), seeds.end());
  RLX_TRY(check_inputs(args, attr, given));
  RLX_TRY(check_output_count(args, attr, expected.size()));
  const Graph& graph = *args.attrs.graph(attr);
  for (size_t i = 0; i < expected.size(); i++)
    RLX_TRY(check_type(args, format("'{}', output '{}'", attr, graph.outputs()[i].name), expected[i],
                       graph.type(graph.outputs()[i].value)));
  return {};
}

Status infer_custom_fn(InferArgs& args) {
  std::vector<ValueType> inputs = RLX_TRY(all_given(args, 0));
  RLX_TRY(check_inputs(args, "fwd", inputs));
  const Graph& fwd = *args.attrs.graph("fwd");
  if (fwd.outputs().empty()) return args.fail(Code::kInvalidArgument, "'fwd' has no output");
  if (Status status = check_inlinable(fwd); !status.ok()) return std::move(status).prefixed("'fwd': ");
  std::vector<ValueType> outputs = output_types(fwd), known = inputs;
  known.insert(known.end(), outputs.begin(), outputs.end());
  std::vector<ValueType> from = differentiable(inputs), to = differentiable(outputs);
  RLX_TRY(check_derivative(args, "vjp", known, to, from));
  RLX_TRY(check_derivative(args, "jvp", known, from, to));
  for (const Guard& guard : fwd.guards()) RLX_TRY(args.require(guard.relation, guard.a, guard.b));
  args.out = outputs;  // not inferred again: functions nested n deep would take 2^n times as long
  return {};
}

Outputs decompose_custom_fn(const Inputs& in, const Attrs& attrs) {
  return inlined(in.builder(), *attrs.graph("fwd"), in.all());
}

}  // namespace rlx
