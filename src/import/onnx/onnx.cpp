// SPDX-License-Identifier: Apache-2.0
// The walk over a model: initializers, nodes, outputs; values, which enter our graph only when a node needs them;
// and the message that lists what cannot be imported.
#include "import/onnx/onnx.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/function_ref.h"
#include "import/onnx/importer.h"
#include "import/onnx/order.h"
#include "import/onnx/stretch.h"

namespace rlx {

namespace onnx {

static void visit_tensors(const std::vector<NodeProto>& nodes, FunctionRef<void(const TensorProto&)> visit);

static void visit_tensors(const GraphProto& graph, FunctionRef<void(const TensorProto&)> visit) {
  for (const TensorProto& tensor : graph.initializer) visit(tensor);
  for (const SparseTensorProto& sparse : graph.sparse_initializer) visit(sparse.values), visit(sparse.indices);
  visit_tensors(graph.node, visit);
}

static void visit_tensors(const std::vector<NodeProto>& nodes, FunctionRef<void(const TensorProto&)> visit) {
  for (const NodeProto& node : nodes)
    for (const AttributeProto& attribute : node.attribute) {
      for (const TensorProto& tensor : attribute.tensors) visit(tensor);
      for (const SparseTensorProto& sparse : attribute.sparse_tensors) visit(sparse.values), visit(sparse.indices);
      for (const GraphProto& graph : attribute.graphs) visit_tensors(graph, visit);
    }
}

// Maps all external files at the first import of a model, also those that only another import reads: by then other
// files may have their names. A file that cannot be mapped is a failure where it is read.
static void map_external_files(const Source& source, const ModelProto& model) {
  std::set<std::string_view> tried;
  auto map = [&](const TensorProto& tensor) {
    if (tensor.data_location != 1) return;
    std::string_view location = external_location(tensor);
    if (tried.insert(location).second) static_cast<void>(source.external->open(location));
  };
  visit_tensors(model.graph, map);
  for (const FunctionProto& function : model.functions) visit_tensors(function.node, map);
}

}  // namespace onnx

Result<Imported> import_onnx(const Source& source, const ImportOptions& options) {
  onnx::ModelProto model = RLX_TRY(onnx::parse_model(source.bytes));
  if (source.external) onnx::map_external_files(source, model);
  Imported imported{Graph(std::string(model.graph.name)), {}, {}};
  RLX_TRY(onnx::Importer(source, model, imported, options).run());
  for (const onnx::StringEntry& entry : model.metadata_props) imported.metadata.emplace_back(entry.key, entry.value);
  return imported;
}

// A model begins with its ir_version (field 1, a varint), as every writer of ONNX files does.
bool is_onnx(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{8} && bytes[1] < std::byte{0x80};
}

namespace onnx {

static constexpr int64_t kMinOpset = 1, kMaxOpset = 28;
static constexpr size_t kMaxRefused = 32;  // kinds that one message lists

// Its own, or that of its first output.
static std::string name_of(const NodeProto& node) {
  return std::string(node.name.empty() && !node.output.empty() ? node.output[0] : node.name);
}

// "Reshape of ai.onnx, opset 11"
static std::string kind_text(const NodeProto& node, int64_t opset) {
  return format("{} of {}, opset {}", node.op_type, node.domain.empty() ? "ai.onnx" : node.domain, opset);
}

// "node 'n' (Reshape of ai.onnx, opset 11)"
static std::string describe(const NodeProto& node, int64_t opset) {
  return format("node '{}' ({})", name_of(node), kind_text(node, opset));
}

// An upper bound of the number of named values.
static size_t value_count(const GraphProto& graph) {
  size_t count = graph.initializer.size() + graph.input.size();
  for (const NodeProto& node : graph.node) count += node.output.size();
  return count;
}

static const FunctionProto* find_function(const ModelProto& model, const NodeProto& node) {
  const FunctionProto* found = nullptr;
  for (const FunctionProto& it : model.functions)
    if (it.name == node.op_type && it.domain == node.domain && it.overload == node.overload) found = &it;
  return found;
}

// ---- the model ----

static Status unknown_kind(const NodeProto& node) {
  if (node.domain == "com.microsoft.nchwc")  // in blocks of channels as wide as a register
    return Status(Code::kUnsupported, "a layout for one processor, which ONNX Runtime writes at ORT_ENABLE_ALL");
  return Status(Code::kUnsupported, "no such node kind is known");
}

Status Importer::run() {
  RLX_TRY(check_opsets());
  RLX_TRY(check_given());
  scopes_.emplace_back().reserve(value_count(model_.graph));
  RLX_TRY(add_initializers(model_.graph));
  RLX_TRY(add_inputs());
  if (options_.choices.interface_only) {
    // No node is built without the ranks. But a kind that nobody knows is a failure whatever they are.
    for (const NodeProto& node : model_.graph.node)
      if (!out_.open_ranks.empty() && !find_kind(node.op_type, node.domain) && !find_function(model_, node))
        refuse(node, unknown_kind(node));
    return refusals_.kinds.empty() ? add_params() : refused();
  }
  RLX_TRY(add_nodes(model_.graph));
  if (!refusals_.kinds.empty()) return refused();
  return add_outputs(model_.graph);
}

int64_t Importer::opset_of(std::string_view domain) const {
  bool is_own = !functions_.empty() && !functions_.back()->opset_import.empty();
  for (const OperatorSetProto& opset : is_own ? functions_.back()->opset_import : model_.opset_import)
    if (opset.domain == domain || (opset.domain == "ai.onnx" && domain.empty()) ||
        (opset.domain.empty() && domain == "ai.onnx"))
      return opset.version;
  return 0;
}

Status Importer::check_opsets() {
  int64_t opset = opset_of("");
  if (opset >= kMinOpset && opset <= kMaxOpset) return {};
  auto is_other = [](const NodeProto& node) { return !node.domain.empty() && node.domain != "ai.onnx"; };
  if (opset == 0 && !model_.opset_import.empty() && std::ranges::all_of(model_.graph.node, is_other)) return {};
  return Status(Code::kUnsupported,
                format("ONNX model: opset {} of ai.onnx; {} to {} can be read", opset, kMinOpset, kMaxOpset))
      .with("got", std::to_string(opset));
}

Status Importer::add_initializers(const GraphProto& graph) {
  bool all_are_weights = !options_.with_weights || options_.params_min <= 1;
  auto constants = all_are_weights ? std::unordered_set<std::string_view>() : numbers_per_channel(graph);
  for (const TensorProto& tensor : graph.initializer) {
    bool is_weight = tensor.dims.size() > 1 || !constants.contains(tensor.name);
    if (&graph == &model_.graph && options_.choices.is_given(tensor.name)) continue;
    RLX_TRY(define(tensor.name, {.initializer = &tensor, .is_weight = is_weight}));
  }
  for (const SparseTensorProto& sparse : graph.sparse_initializer) {
    if (&graph == &model_.graph && options_.choices.is_given(sparse.values.name)) continue;
    auto tensor = reader_.read(sparse);
    if (!tensor.ok()) return std::move(tensor).status().prefixed("ONNX model: ");
    OnnxValue value{.is_weight = tensor->rank() > 1, .bits = bits_of(sparse.values.data_type)};
    value.type = {tensor->dtype(), {tensor->dims().begin(), tensor->dims().end()}};
    value.tensor = *std::move(tensor);
    RLX_TRY(define(sparse.values.name, std::move(value)));
  }
  return {};
}

Status Importer::add_outputs(const GraphProto& graph) {
  Builder builder(out_.graph);
  for (const ValueInfoProto& output : graph.output) {
    OnnxValue* value = RLX_TRY(find(output.name));
    auto add = [&](const std::string& name, OnnxValue& it) -> Status {
      Expr result = expr(it, builder);
      RLX_TRY(builder.status());
      return out_.graph.add_output(name, result.value());
    };
    std::string name(output.name);
    if (value->is_stacked)
      return refused("ONNX model: output '" + name + "' is a sequence of unknown length").with("value", name);
    if (!value->is_sequence) RLX_TRY(add(name, *value));
    for (size_t i = 0; i < value->items.size(); i++) RLX_TRY(add(element_name(name, i), value->items[i]));
  }
  return {};
}

// ---- values ----

Status Importer::define(std::string_view name, OnnxValue value) {
  value.name = name;
  value.level = levels_.size();
  for (OnnxValue& item : value.items) item.level = value.level;
  if (name.empty()) return Status(Code::kData, "ONNX model: a value without a name");
  if (!scopes_.back().emplace(name, std::move(value)).second)
    return Status(Code::kData, "ONNX model: the value '" + std::string(name) + "' is defined twice")
        .with("value", name);
  return {};
}

Result<OnnxValue*> Importer::find(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto found = scope->find(name);
    if (found == scope->end()) continue;
    RLX_TRY(resolve(found->second));
    if (!found->second.is_sequence || found->second.level == levels_.size()) return &found->second;
    auto& known = levels_.back().sequences;
    if (!known.contains(&found->second)) known.emplace(&found->second, RLX_TRY(local(found->second)));
    return &known.at(&found->second);
  }
  return Status(Code::kData, "ONNX model: nothing before it defines the value '" + std::string(name) + "'")
      .with("value", name);
}

static bool is_weight_type(DType dtype) {
  return is_float(dtype) || is_block(dtype) || (element_bytes(dtype) == 1 && dtype != DType::kBool);
}

Result<Tensor> Importer::read(const TensorProto& proto) {
  Tensor tensor = RLX_TRY(reader_.read(proto));
  return tensor.aligned();
}
Result<Tensor> Importer::read(const SparseTensorProto& proto) {
  return reader_.read(proto);
}

bool Importer::may_be_param(const OnnxValue& value, const Tensor& tensor) const {
  return options_.with_weights && value.is_weight && tensor.count() >= options_.params_min &&
         is_weight_type(tensor.dtype());
}

// Declares all weights of the file as params, in its order. (An imported graph declares only those that it reads.)
Status Importer::add_params() {
  std::vector<std::string_view> names;
  for (const TensorProto& proto : model_.graph.initializer) names.push_back(proto.name);
  for (const SparseTensorProto& proto : model_.graph.sparse_initializer) names.push_back(proto.values.name);
  for (std::string_view name : names) {
    OnnxValue& value = *RLX_TRY(find(name));
    if (value.tensor && may_be_param(value, value.tensor)) RLX_TRY(add_param(value));
  }
  return {};
}

Status Importer::resolve(OnnxValue& value) {
  if (!value.initializer) return {};
  auto tensor = reader_.read(*value.initializer);
  if (!tensor.ok()) return std::move(tensor).status().prefixed("ONNX model: ");
  value.tensor = may_be_param(value, *tensor) ? std::move(*tensor) : RLX_TRY(tensor->aligned());
  value.bits = bits_of(value.initializer->data_type);
  value.type = {value.tensor.dtype(), {value.tensor.dims().begin(), value.tensor.dims().end()}};
  value.initializer = nullptr;
  return {};
}

// A dim cannot be negative, so a number that may be negative is built as the difference of two.
static Expr expr_of(const Dim& item, DType dtype, Builder& builder) {
  if (item.is_literal() || builder.graph().range(item).lo >= 0) return builder.size(item, dtype);
  return builder.size(max(Dim(0), item), dtype) - builder.size(max(Dim(0), Dim(0) - item), dtype);
}

// Sizes as a tensor: a literal, or a concatenation of elements.
static Expr expr_of(const Sizes& sizes, Builder& builder) {
  std::vector<Dim> shape(sizes.dims.begin(), sizes.dims.end());
  if (sizes.items.empty()) return broadcast_to(builder.scalar(sizes.dtype, 0), shape);
  std::vector<Expr> parts;
  for (const Dim& item : sizes.items) parts.push_back(reshape(expr_of(item, sizes.dtype, builder), {Dim(1)}));
  Expr joined = parts.size() == 1 ? parts[0] : concat(parts, 0);
  return reshape(joined, shape);
}

Result<Value> Importer::add_param(const OnnxValue& value) {
  std::string name(value.name);
  while (true) {  // branches may use one name for two things
    auto [known, is_new] = weights_.emplace(name, value.tensor.data());
    if (is_new) out_.weights.emplace_back(name, value.tensor);
    if (known->second == value.tensor.data()) break;
    name += "'";
  }
  if (auto known = out_.graph.find_leaf(name)) return *known;
  return out_.graph.add_param(name, value.type.dtype, value.type.dims);
}

Expr Importer::expr(OnnxValue& value, Builder& builder) {
  if (value.is_sequence || (value.value == kInvalid && !value.tensor && !value.sizes))
    return builder.fail(Status(Code::kUnsupported, "a sequence where a tensor is needed"));
  auto literal = [&] {
    if (!value.tensor) return expr_of(*value.sizes, builder);
    auto tensor = value.tensor.aligned();
    return tensor.ok() ? builder.constant(*tensor) : builder.fail(std::move(tensor).status());
  };
  if (&builder.graph() != &out_.graph) return literal();
  bool is_here = value.level == levels_.size();
  if (value.value != kInvalid) {
    if (is_here) return builder.wrap(value.value);
    auto input = capture(value);
    return input.ok() ? builder.wrap(*input) : builder.fail(std::move(input).status());
  }
  Value made;
  if (value.tensor && may_be_param(value, value.tensor)) {
    auto param = add_param(value);
    if (!param.ok()) return builder.fail(std::move(param).status());
    made = *param;
  } else {
    made = literal().value();
  }
  if (is_here) value.value = made;  // another graph makes a value of its own
  return builder.wrap(made);
}

// ---- nodes ----

Status Importer::add_nodes(const GraphProto& graph) {
  size_t count = graph.node.size(), every = count / 100 + 1;  // reports progress some hundred times
  std::vector<size_t> sorted = sorted_nodes(graph);
  for (size_t i = 0; i < count; i++) {
    const NodeProto& node = graph.node[sorted.empty() ? i : sorted[i]];
    if (options_.host && &graph == &model_.graph && i % every == 0)
      RLX_TRY(options_.host->progress("import", static_cast<double>(i) / static_cast<double>(count)));
    Status status = add_node(node);
    if (status.ok()) continue;
    if (status.detail(kUnequalRanks)) {
      if (sorted.empty()) {
        sorted.resize(count);
        std::iota(sorted.begin(), sorted.end(), size_t{0});
      }
      status = finish_in_branches(graph, std::span(sorted).subspan(i));
      if (status.ok()) return {};
    }
    if (status.code() == Code::kUnsupported) {
      refuse(node, status);
      continue;
    }
    return failed(node, std::move(status));
  }
  return {};
}

// Names the node, and what a special model would have to know for the node not to fail.
Status Importer::failed(const NodeProto& node, Status status) {
  std::string subject = "ONNX " + describe(node, opset_of(node.domain)) + ": ";
  status = std::move(status).prefixed(subject).with("op", node.op_type).with("value", node.name);
  if (assumes_sizes_) status = std::move(status).with(kDependsOnSizes, "1");
  bool is_of_sizes = status.code() == Code::kShape || status.code() == Code::kRange || status.code() == Code::kOption;
  std::set<std::string> deciding = is_of_sizes ? static_inputs_of_sizes(node) : std::set<std::string>();
  return deciding.empty() ? status : std::move(status).with(kStaticInputs, lines(deciding));
}

void Importer::refuse_outputs(const NodeProto& node) {
  for (std::string_view name : node.output)
    if (!name.empty()) scopes_.back()[name].refused = true;
}

// A node that cannot be imported makes its outputs unusable, so that one import names all such nodes.
void Importer::refuse(const NodeProto& node, const Status& status) {
  refuse_outputs(node);
  if (status.detail(kFollowsRefused)) return;
  if (status.detail(kUnrolledOnly)) refusals_.unrolls = true;
  auto is_chosen = [&](const std::string& size) { return options_.choices.find_dim(size) != nullptr; };
  bool is_of_sizes = status.detail(kDependsOnSizes);
  if (const std::string* wanted = status.detail(kStaticInputs))
    refusals_.wanted.insert(*wanted);
  else if (is_of_sizes && std::ranges::all_of(sizes_, is_chosen))  // else the sizes of the inputs may do
    refusals_.wanted.merge(static_inputs_of_sizes(node));
  else if (!is_of_sizes && !assumes_sizes_)
    refusals_.only_unknown = false;
  std::string kind = format("{}: {}", kind_text(node, opset_of(node.domain)), status.message());
  auto known = std::find_if(refusals_.kinds.begin(), refusals_.kinds.end(),
                            [&](const auto& pair) { return pair.first == kind; });
  if (known != refusals_.kinds.end())
    known->second++;
  else if (refusals_.kinds.size() < kMaxRefused)
    refusals_.kinds.emplace_back(kind, 1);
  if (refusals_.first.empty()) {
    refusals_.first = describe(node, opset_of(node.domain));
    refusals_.first_name = name_of(node);
    refusals_.first_op = node.op_type;
  }
}

// Adds the inputs whose values the refused nodes need, if nothing else is wrong.
Status Importer::refused(std::string message) const {
  Status status(Code::kUnsupported, std::move(message));
  if (!refusals_.only_unknown) return status;
  return std::move(status).with(kStaticInputs, lines(refusals_.wanted)).with(kDependsOnSizes, "1");
}

Status Importer::refused() const {
  std::string message = "ONNX model: " + refusals_.first + " cannot be imported; in all:";
  for (const auto& [kind, count] : refusals_.kinds) message += format(" [{}; {}]", kind, plural(count, "node"));
  return refused(std::move(message)).with("value", refusals_.first_name).with("op", refusals_.first_op);
}

Status Importer::add_node(const NodeProto& node) {
  const NodeKind* kind = find_kind(node.op_type, node.domain);
  const FunctionProto* function = kind ? nullptr : find_function(model_, node);
  if (!kind && !function) return unknown_kind(node);
  if (node.output.empty()) return Status(Code::kData, "it has no outputs");
  std::vector<OnnxValue*> in;
  for (std::string_view name : node.input) {
    in.push_back(name.empty() ? nullptr : RLX_TRY(find(name)));
    if (in.back() && in.back()->absent) in.back() = nullptr;
    if (in.back() && in.back()->refused) return refuse_outputs(node), Status();
  }
  if (!kind) return expand(*function, node, in);
  while (!in.empty() && !in.back()) in.pop_back();
  return build(*kind, node, in);
}

// Whether a number may be wrong because the arithmetic of sizes saturates, which that of ONNX does not. A number alone
// is wrong only at the very end: a larger one has passed unchanged, as "to the end" of a slice does.
static bool may_have_saturated(const Dim& dim) {
  auto is_beyond = [](int64_t number) { return number >= Interval::kUnbounded || number <= -Interval::kUnbounded; };
  auto mentions_beyond = [&](const Dim& part) {
    return part.is_literal() ? is_beyond(part.literal()) : may_have_saturated(part);
  };
  if (dim.is_literal()) return dim.literal() == Interval::kUnbounded || dim.literal() == -Interval::kUnbounded;
  for (const Term& term : dim.polynomial()->terms) {
    if (is_beyond(term.coefficient)) return true;
    for (const AtomPtr& atom : term.atoms)
      if (atom->kind != Atom::kSymbol && (mentions_beyond(atom->a) || mentions_beyond(atom->b))) return true;
  }
  return false;
}

Status Importer::build(const NodeKind& kind, const NodeProto& node, const std::vector<OnnxValue*>& in) {
  Builder builder(out_.graph);
  if (stretches()) stretch_operands(builder);
  Call call(*this, builder, kind, node, opset_of(node.domain), in);
  bool may_fold = std::ranges::none_of(in, [](const OnnxValue* value) { return value && value->bits != 0; });
  if (may_fold && kind.fold && node.output.size() == 1) {
    auto sizes = kind.fold(call);
    if (sizes && sizes->items.size() <= kMaxSizes && std::ranges::none_of(sizes->items, may_have_saturated)) {
      RLX_TRY(call.status());
      RLX_TRY(check_parts(sizes->items));
      OnnxValue result{.type = {sizes->dtype, {sizes->dims.begin(), sizes->dims.end()}}};
      result.sizes = std::move(sizes);
      return define(node.output[0], std::move(result));
    }
  }
  if (may_fold && !kind.control && fold_literals(kind, node, in)) return {};
  if (may_fold && kind.moves && fold_moves(kind, node, in)) return {};
  size_t before = out_.graph.nodes().size();
  kind.build(call);
  RLX_TRY(call.status());
  for (const OnnxValue& result : call.results())
    if (present(result.value) && result.value.node >= before && out_.graph.node(result.value).name.empty())
      out_.graph.set_name(result.value, name_of(node));
  return store(node, std::move(call.results()));
}

Status Importer::store(const NodeProto& node, std::vector<OnnxValue> results) {
  for (size_t i = 0; i < results.size(); i++) {
    if (node.output[i].empty()) continue;
    const OnnxValue& result = results[i];
    bool is_given = result.value != kInvalid || result.tensor || result.sizes || result.initializer;
    if (!is_given && !result.refused && !result.is_sequence)
      return Status(Code::kUnsupported, format("its output {}", i));
    RLX_TRY(check_parts(result.type.dims));
    RLX_TRY(define(node.output[i], std::move(results[i])));
  }
  return {};
}

Result<std::vector<OnnxValue>> Importer::inline_graph(const GraphProto& graph, std::vector<OnnxValue> inputs) {
  constexpr size_t kCopies = 4;  // of a sequence, about, that a trip passes on: each element is as much work as a node
  size_t work = graph.node.size();
  for (const OnnxValue& input : inputs) work += kCopies * input.items.size();
  RLX_TRY(count_expanded(work));
  if (graph.input.size() != inputs.size())
    return Status(Code::kData,
                  format("a sub-graph takes {}, not {}", plural(graph.input.size(), "input"), inputs.size()));
  scopes_.emplace_back();
  std::vector<OnnxValue> outputs;
  auto walk = [&]() -> Status {
    for (size_t i = 0; i < inputs.size(); i++) RLX_TRY(define(graph.input[i].name, std::move(inputs[i])));
    RLX_TRY(add_initializers(graph));
    RLX_TRY(add_nodes(graph));
    for (const ValueInfoProto& output : graph.output) outputs.push_back(RLX_TRY(local(*RLX_TRY(find(output.name)))));
    return {};
  };
  Status status = walk();
  scopes_.pop_back();
  RLX_TRY(status);
  return outputs;
}

}  // namespace onnx
}  // namespace rlx
