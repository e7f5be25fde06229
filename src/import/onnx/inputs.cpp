// SPDX-License-Identifier: Apache-2.0
// The inputs of a model, as the import options say: what rank, how many elements, which sizes and values. An option
// about an input or a size that the file does not have is an error.
#include <algorithm>

#include "base/nearest.h"
#include "import/onnx/importer.h"

namespace rlx::onnx {

// A size is a number, the model's own name or expression, or "<input>.<axis>". A number as a name, such as the "-1" of
// some exporters, says that the size is not known.
Dim Importer::dim_of(const DimensionProto& dim, std::string_view input, size_t axis) const {
  static constexpr size_t kLongest = 64;  // characters; a product of sums grows exponentially with its text
  if (dim.dim_value >= 0) return dim.dim_value;
  Dim unnamed = Dim::symbol(std::string(input) + "." + std::to_string(axis));
  if (dim.dim_param.empty() || options_.choices.separate_sizes) return unnamed;
  if (dim.dim_param.size() <= kLongest)
    if (auto parsed = parse_dim(dim.dim_param); parsed.ok()) return parsed->is_literal() ? unnamed : *parsed;
  return Dim::symbol(dim.dim_param);
}

// The type of a tensor, or of an optional one; null: neither.
static const TensorTypeProto* tensor_type_of(const TypeProto& type) {
  const TypeProto* inner = &type;
  if (!type.optional_type.empty() && !type.optional_type[0].elem_type.empty())
    inner = type.optional_type[0].elem_type.data();
  return inner->tensor_type.empty() ? nullptr : inner->tensor_type.data();
}

// A size that stands alone says what its name means, and so does an expression of names of which all others are known.
void Importer::find_determined(std::span<const ValueInfoProto* const> inputs) {
  std::vector<Dim> open;
  for (const ValueInfoProto* input : inputs)
    if (const TensorTypeProto* type = tensor_type_of(input->type); type && !type->shape.empty())
      for (size_t i = 0; i < type->shape[0].dim.size(); i++)
        open.push_back(dim_of(type->shape[0].dim[i], input->name, i));
  for (const auto& [name, size] : options_.choices.dims) determined_.emplace(name);
  while (true) {
    size_t before = determined_.size();
    for (const Dim& dim : open) {
      std::set<std::string> unknown;
      visit_symbols(dim, [&](const std::string& name) {
        if (!determined_.contains(name)) unknown.insert(name);
      });
      if (unknown.size() == 1) determined_.insert(*unknown.begin());
    }
    if (determined_.size() == before) return;
  }
}

// An expression of names that nothing determines is a name itself.
Dim Importer::input_dim(const DimensionProto& proto, std::string_view input, size_t axis) const {
  Dim dim = dim_of(proto, input, axis);
  bool is_determined = true;
  visit_symbols(dim, [&](const std::string& name) { is_determined &= determined_.contains(name); });
  return is_determined || dim.symbol_name() ? dim : Dim::symbol(std::string(proto.dim_param));
}

std::string element_name(const std::string& sequence, size_t i) {
  return sequence + "." + std::to_string(i);
}

static Status bad_input(const std::string& name, std::string_view why) {
  return Status(Code::kUnsupported, format("ONNX model: input '{}' {}", name, why)).with("value", name);
}

// An optional input is present unless an option says otherwise.
Status Importer::add_input(const ValueInfoProto& info) {
  std::string name(info.name);
  const TypeProto* type = &info.type;
  if (!type->optional_type.empty()) {
    if (options_.choices.is_absent(name)) return define(info.name, {.absent = true, .is_sequence = true});
    if (!type->optional_type[0].elem_type.empty()) type = type->optional_type[0].elem_type.data();
  }
  if (!type->sequence_type.empty()) return define(info.name, RLX_TRY(sequence_input(name, type->sequence_type[0])));
  if (type->tensor_type.empty()) return bad_input(name, "is neither a tensor nor a sequence");
  return define(info.name, RLX_TRY(tensor_input(name, type->tensor_type[0])));
}

// Each element is an input of its own, with sizes of its own.
Result<OnnxValue> Importer::sequence_input(const std::string& name, const ElementTypeProto& type) {
  const int64_t* length = options_.choices.find_length(name);
  const int64_t* rank = options_.choices.find_rank(name);
  if (!length)
    return bad_input(name, format("is a sequence: the import option sequence.{} says how many elements it has", name));
  if (type.elem_type.empty() || type.elem_type[0].tensor_type.empty())
    return bad_input(name, "is a sequence whose elements are not tensors");
  TensorTypeProto element = type.elem_type[0].tensor_type[0];
  if (element.shape.empty() && rank) element.shape.push_back({std::vector<DimensionProto>(static_cast<size_t>(*rank))});
  for (ShapeProto& shape : element.shape)
    for (DimensionProto& dim : shape.dim) dim.dim_param = {};
  OnnxValue sequence{.is_sequence = true};
  for (size_t i = 0; i < static_cast<size_t>(*length); i++)
    sequence.items.push_back(RLX_TRY(tensor_input(element_name(name, i), element)));
  return sequence;
}

// The value of the option value.<input>, or of an input that decides the structure. Its sizes may be any where those of
// the input are open.
static Status check_fits(const Tensor& value, const std::string& name, const ValueType& input) {
  auto fits = [](int64_t size, const Dim& dim) { return !dim.is_literal() || dim.is(size); };
  bool is_of_dtype = value.dtype() == input.dtype;
  if (is_of_dtype && std::ranges::equal(value.dims(), input.dims, fits)) return {};
  std::string got = type_text(value.dtype(), value.dims());
  return Status(is_of_dtype ? Code::kShape : Code::kDtype,
                format("ONNX model: the input '{}' is {}, the value given for it is {}", name, input, got))
      .with("value", name)
      .with("expected", text_of(input))
      .with("got", got);
}

Result<OnnxValue> Importer::tensor_input(const std::string& name, TensorTypeProto type) {
  if (type.shape.empty()) {
    const int64_t* rank = options_.choices.find_rank(name);
    const Tensor* value = options_.choices.find_value(name);
    if (!rank && !value) out_.open_ranks.push_back(name);
    size_t axes = rank ? static_cast<size_t>(*rank) : value ? value->rank() : 0;
    type.shape.push_back({std::vector<DimensionProto>(axes)});
  }
  auto dtype = dtype_of(type.elem_type);
  if (!dtype.ok()) return std::move(dtype).status().prefixed("ONNX model: input '" + name + "': ").with("value", name);
  std::vector<Dim> dims;
  auto chosen = [&](std::string_view symbol) -> std::optional<Dim> {
    sizes_.emplace(symbol);
    const int64_t* size = options_.choices.find_dim(symbol);
    return size ? std::optional<Dim>(*size) : std::nullopt;
  };
  for (const DimensionProto& dim : type.shape[0].dim)
    dims.push_back(substitute(input_dim(dim, name, dims.size()), chosen));
  auto value = out_.graph.add_input(name, *dtype, dims);
  if (!value.ok()) return std::move(value).status().prefixed("ONNX model: ");
  if (const Tensor* constant = options_.choices.find_value(name)) {
    RLX_TRY(check_fits(*constant, name, {*dtype, dims}));
    Tensor aligned = RLX_TRY(constant->aligned());
    return OnnxValue{.type = {*dtype, {constant->dims().begin(), constant->dims().end()}},
                     .tensor = std::move(aligned),
                     .bits = bits_of(type.elem_type)};
  }
  return OnnxValue{.type = out_.graph.type(*value), .value = *value, .bits = bits_of(type.elem_type)};
}

// ---- the names in options ----

static Status check_name(std::string_view option, std::string_view what, const std::string& name,
                         std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::string hint = did_you_mean(name, known);
  if (hint.empty()) hint = only(known);
  return Status(Code::kOption, format("'{}.{}': there is no {} '{}'{}", option, name, what, name, hint))
      .with("value", name)
      .with("expected", listed(known));
}

// An initializer that is an input too is the default of that input. It is used unless an option says that runs give the
// input: a graph with constants is faster, and old files list all initializers as inputs.
Status Importer::check_given() const {
  std::unordered_set<std::string_view> inputs;
  for (const ValueInfoProto& input : model_.graph.input) inputs.insert(input.name);
  std::vector<std::string_view> known;
  for (const TensorProto& tensor : model_.graph.initializer)
    if (inputs.contains(tensor.name)) known.push_back(tensor.name);
  for (const SparseTensorProto& sparse : model_.graph.sparse_initializer)
    if (inputs.contains(sparse.values.name)) known.push_back(sparse.values.name);
  for (const std::string& name : options_.choices.given)
    RLX_TRY(check_name("input", "input with a default", name, known));
  return {};
}

// Only the file says whether an input is an optional or a sequence, and of what rank: a choice that it leaves no room
// for is ignored.
Status Importer::check_input_names(std::span<const ValueInfoProto* const> inputs) const {
  const ImportChoices& choices = options_.choices;
  std::deque<std::string> elements;
  std::vector<std::string_view> known;
  for (const ValueInfoProto* input : inputs) known.push_back(input->name);
  for (const auto& [sequence, length] : choices.sequences) {
    RLX_TRY(check_name("sequence", "input", sequence, known));
    for (int64_t i = 0; i < length; i++) elements.push_back(element_name(sequence, static_cast<size_t>(i)));
  }
  for (const std::string& name : choices.absent) RLX_TRY(check_name("absent", "input", name, known));
  known.insert(known.end(), elements.begin(), elements.end());
  for (const auto& [name, rank] : choices.ranks) RLX_TRY(check_name("rank", "input", name, known));
  for (const auto& [name, value] : choices.values) RLX_TRY(check_name("value", "input", name, known));
  return {};
}

static Status without_rank(std::span<const std::string> names) {
  std::vector<std::string_view> inputs(names.begin(), names.end());
  std::vector<std::string> options;
  for (const std::string& name : names) options.push_back("rank." + name);
  std::vector<std::string_view> keys(options.begin(), options.end());
  bool is_one = names.size() == 1;
  return Status(Code::kUnsupported,
                format("ONNX model: the {} {} {} no rank in the file: the import {} {} {} it",
                       is_one ? "input" : "inputs", is_one ? "'" + names[0] + "'" : listed(inputs),
                       is_one ? "has" : "have", is_one ? "option" : "options", listed(keys), is_one ? "says" : "say"))
      .with("value", names[0]);
}

// Whether this is a size "<input>.<axis>" of an input of unknown rank.
bool Importer::is_of_open_rank(std::string_view size) const {
  return std::ranges::any_of(out_.open_ranks, [&](const std::string& name) { return size.starts_with(name + "."); });
}

Status Importer::add_inputs() {
  std::vector<const ValueInfoProto*> inputs;
  for (const ValueInfoProto& input : model_.graph.input)
    if (!scopes_.back().contains(input.name)) inputs.push_back(&input);  // else it has a default
  RLX_TRY(check_input_names(inputs));
  find_determined(inputs);
  for (const ValueInfoProto* input : inputs) RLX_TRY(add_input(*input));
  if (!out_.open_ranks.empty() && !options_.choices.interface_only) return without_rank(out_.open_ranks);
  std::vector<std::string_view> known(sizes_.begin(), sizes_.end());
  for (const auto& [symbol, size] : options_.choices.dims)
    if (!is_of_open_rank(symbol)) RLX_TRY(check_name("dims", "size", symbol, known));
  return {};
}

}  // namespace rlx::onnx
