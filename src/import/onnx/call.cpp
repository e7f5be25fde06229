// SPDX-License-Identifier: Apache-2.0
// What a builder asks of its node. Getters convert between the forms that the opsets give an argument.
#include "import/onnx/call.h"

#include "base/lasting.h"
#include "import/onnx/importer.h"
#include "import/onnx/tensor.h"

namespace rlx::onnx {

static constexpr int64_t kMaxNumbers = 65536;  // of a list that decides an op

static Status too_many(const char* what, const Tensor& tensor) {
  return {Code::kUnsupported, format("'{}' has {} numbers, more than {}", what, tensor.count(), kMaxNumbers)};
}

void Call::fail(Code code, std::string message) {
  if (status_.ok()) status_ = Status(code, std::move(message));
}

void Call::fail(const Status& failure) {
  if (status_.ok()) status_ = failure;
}

void Call::fail_of_sizes(std::string message) {
  fail(Status(Code::kUnsupported, std::move(message)).with(kDependsOnSizes, "1"));
}

Status Call::unknown(const OnnxValue& value, const Status& failure) const {
  auto names = importer_.static_inputs(value);
  if (!names) return Status(failure).with(kUnrolledOnly, importer_.is_in_body() ? "1" : "");
  Status status(failure.code(), std::string(failure.message()));
  return names->empty() ? std::move(status).with(kDependsOnSizes, "1")
                        : std::move(status).with(kStaticInputs, lines(*names));
}

Status Call::status() const {
  if (!status_.ok()) return status_;
  if (!builder_.status().ok()) return builder_.status();
  for (size_t i = 0; i < read_.size(); i++)
    if (!read_[i] && node_.attribute[i].name != "consumed_inputs")  // of the first opsets: what memory to use again
      return Status(Code::kUnsupported, "the attribute '" + std::string(node_.attribute[i].name) + "' is not known");
  return {};
}

Call Call::call_on(const NodeProto& node, const std::vector<size_t>& inputs) const {
  std::vector<OnnxValue*> in;
  for (size_t i : inputs) in.push_back(i < in_.size() ? in_[i] : nullptr);
  return {importer_, builder_, kind_, node, opset_, std::move(in)};
}

// ---- inputs ----

Expr Call::in(size_t i) {
  if (has(i)) return importer_.expr(*in_[i], builder_);
  if (i == 0) fail(Code::kData, "its first input is missing");  // that of a kind that takes any is never optional
  return Expr(&builder_, kAbsent);
}

const ValueType& Call::type(size_t i) {
  static const ValueType& kNothing = lasting([] { return ValueType(); });
  if (has(i)) return in_[i]->type;
  fail(Code::kData, format("input {} is missing", i));
  return kNothing;
}

static std::optional<Sizes> sizes_of(const Tensor& tensor, int64_t most) {
  bool counts = is_integer(tensor.dtype()) || tensor.dtype() == DType::kBool;
  if (!counts || tensor.count() > most) return std::nullopt;
  Sizes sizes{tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}, {}};
  for (int64_t i = 0; i < tensor.count(); i++) {
    int64_t item = element_as_i64(tensor, i);
    if (tensor.dtype() == DType::kU64 && item < 0) return std::nullopt;  // above all sizes
    sizes.items.push_back(item);
  }
  return sizes;
}

std::optional<Sizes> sizes_of(const Tensor& tensor) {
  return sizes_of(tensor, static_cast<int64_t>(kMaxSizes));
}

const Sizes* Call::sizes(size_t i) {
  if (!has(i)) return nullptr;
  OnnxValue& value = *in_[i];
  if (!value.sizes && value.tensor) value.sizes = sizes_of(value.tensor);
  return value.sizes ? &*value.sizes : nullptr;
}

std::vector<Dim> Call::dims(size_t i, const char* what) {
  if (!has(i)) {
    fail(Code::kData, std::string("the input '") + what + "' is missing");
    return {};
  }
  if (const Sizes* known = sizes(i)) return known->items;
  if (const Tensor& tensor = in_[i]->tensor) {  // a longer list than sizes are folded for
    if (tensor.count() > kMaxNumbers) return fail(too_many(what, tensor)), std::vector<Dim>();
    if (auto known = sizes_of(tensor, kMaxNumbers)) return std::move(known->items);
  }
  fail_unless_known(i, Status(Code::kUnsupported, std::string("'") + what + "' must be constant or follow from sizes"));
  return {};
}

std::vector<int64_t> Call::numbers(size_t i, const char* what) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : dims(i, what)) {
    if (!dim.is_literal())
      fail_unless_known(i,
                        Status(Code::kUnsupported, std::string("'") + what + "' must be constant, not " + dim.text()));
    numbers.push_back(dim.is_literal() ? dim.literal() : 0);
  }
  return numbers;
}

std::vector<double> Call::reals(size_t i, const char* what) {
  std::vector<double> numbers;
  if (!has(i)) {
    fail(Code::kData, std::string("the input '") + what + "' is missing");
  } else if (const Tensor& tensor = in_[i]->tensor; tensor && tensor.count() > kMaxNumbers) {
    fail(too_many(what, tensor));
  } else if (tensor && !is_complex(tensor.dtype())) {
    auto aligned = tensor.aligned();  // what may become a param is as it lies in the file
    if (!aligned.ok()) return fail(aligned.status()), numbers;
    for (int64_t k = 0; k < tensor.count(); k++) numbers.push_back(element_as_f64(*aligned, k));
  } else if (sizes(i)) {
    for (int64_t number : this->numbers(i, what)) numbers.push_back(static_cast<double>(number));
  } else {
    fail_unless_known(i, Status(Code::kUnsupported, std::string("'") + what + "' must be constant"));
  }
  return numbers;
}

Dim Call::run_dim(Expr count) {
  Expr places = op("dynamic_iota", {reshape(cast(count, DType::kI64), {})});
  return places.valid() ? places.dim(0) : Dim(0);
}

std::vector<Dim> Call::run_dims(size_t i, const char* what) {
  if (!has(i) || sizes(i)) return dims(i, what);
  Expr list = in(i);
  bool counts = list.valid() && is_integer(list.dtype()) && list.rank() <= 1;
  Dim length = !counts || list.rank() == 0 ? Dim(1) : list.dim(0);
  if (!counts || !length.is_literal() || length.literal() > static_cast<int64_t>(kMaxRank) * 2) return dims(i, what);
  if (list.rank() == 0) return {run_dim(list)};
  std::vector<Dim> result;
  for (int64_t at = 0; at < length.literal(); at++) result.push_back(run_dim(slice(list, 0, at, at + 1)));
  return result;
}

// ---- attributes ----

bool Call::has_attr(std::string_view name) const {
  for (const AttributeProto& attribute : node_.attribute)
    if (attribute.name == name) return true;
  return false;
}

void Call::ignore(std::string_view name) {
  for (size_t i = 0; i < read_.size(); i++)
    if (node_.attribute[i].name == name) read_[i] = true;
}

const AttributeProto* Call::attribute(std::string_view name, int32_t type, const char* expected) {
  for (size_t i = 0; i < read_.size(); i++) {
    const AttributeProto& attribute = node_.attribute[i];
    if (attribute.name != name) continue;
    read_[i] = true;
    if (attribute.type == type || attribute.type == 0) return &attribute;
    fail(Code::kData, "the attribute '" + std::string(name) + "' is not " + expected);
    return nullptr;
  }
  return nullptr;
}

int64_t Call::i64(std::string_view name, int64_t fallback) {
  const auto* found = attribute(name, AttributeProto::kInt, "an integer");
  return found ? found->i : fallback;
}

double Call::f64(std::string_view name, double fallback) {
  const auto* found = attribute(name, AttributeProto::kFloat, "a number");
  return found ? static_cast<double>(found->f) : fallback;
}

std::string_view Call::text(std::string_view name, std::string_view fallback) {
  const auto* found = attribute(name, AttributeProto::kString, "a string");
  return found ? found->s : fallback;
}

std::vector<int64_t> Call::i64s(std::string_view name, const std::vector<int64_t>& fallback) {
  const auto* found = attribute(name, AttributeProto::kInts, "a list of integers");
  return found ? found->ints : fallback;
}

std::vector<double> Call::f64s(std::string_view name) {
  const auto* found = attribute(name, AttributeProto::kFloats, "a list of numbers");
  return found ? std::vector<double>(found->floats.begin(), found->floats.end()) : std::vector<double>();
}

int32_t Call::element_type(std::string_view name) {
  if (opset_ >= 6) return static_cast<int32_t>(i64(name, 0));
  static constexpr std::string_view kNames[] = {"UNDEFINED", "FLOAT",  "UINT8",     "INT8",      "UINT16",  "INT16",
                                                "INT32",     "INT64",  "STRING",    "BOOL",      "FLOAT16", "DOUBLE",
                                                "UINT32",    "UINT64", "COMPLEX64", "COMPLEX128"};
  const auto* found = std::ranges::find(kNames, text(name, "UNDEFINED"));
  if (found == std::end(kNames)) fail(Code::kData, format("'{}' is no element type: {}", name, text(name, "")));
  return found == std::end(kNames) ? 0 : static_cast<int32_t>(found - std::begin(kNames));
}

DType Call::dtype(std::string_view name, DType fallback) {
  if (!has_attr(name)) return fallback;
  auto named = dtype_of(static_cast<int32_t>(i64(name, 0)));
  if (!named.ok()) fail(named.status().code(), std::string(named.status().message()));
  return named.ok() ? *named : fallback;
}

std::vector<std::string_view> Call::texts(std::string_view name) {
  const auto* found = attribute(name, AttributeProto::kStrings, "a list of strings");
  return found ? found->strings : std::vector<std::string_view>();
}

const TensorProto* Call::tensor(std::string_view name) {
  const auto* found = attribute(name, AttributeProto::kTensor, "a tensor");
  return found && !found->tensors.empty() ? &found->tensors[0] : nullptr;
}

const SparseTensorProto* Call::sparse_tensor(std::string_view name) {
  const auto* found = attribute(name, AttributeProto::kSparseTensor, "a sparse tensor");
  return found && !found->sparse_tensors.empty() ? &found->sparse_tensors[0] : nullptr;
}

const GraphProto* Call::graph(std::string_view name) {
  const auto* found = attribute(name, AttributeProto::kGraph, "a graph");
  if (found && !found->graphs.empty()) return &found->graphs[0];
  fail(Code::kData, "the graph '" + std::string(name) + "' is missing");
  return nullptr;
}

// ---- results ----

Outputs Call::ops(std::string_view name, std::span<const Expr> in, const NamedAttrs& attrs) {
  const OpInfo* info = op_table().find(name);
  if (info) return builder_.ops(info->op(), in, attrs);
  fail(Code::kUnsupported, "there is no op '" + std::string(name) + "' for it yet");
  return Outputs(outputs() + 1, Expr(&builder_, kInvalid));
}

Axes Call::axes(const std::vector<int64_t>& axes, size_t rank) {
  Axes normal;
  if (axes.size() > kMaxRank) return fail(Code::kShape, format("{} axes", axes.size())), normal;
  for (int64_t axis : axes) {
    auto checked = checked_axis(axis, rank);
    if (!checked.ok()) return fail(Code::kRange, format("axis {} of a value of rank {}", axis, rank)), Axes();
    normal.push_back(*checked);
  }
  return normal;
}

void Call::out(size_t i, Expr expr) {
  if (!wants(i) || !expr.valid()) return;
  out_[i].value = expr.value();
  out_[i].type = expr.type();
  out_[i].bits = 0;
  if (!has_bits_) return;
  for (const OnnxValue* in : in_)  // ONNX has numbers of few bits only where a node moves them
    if (in && in->bits != 0 && in->type.dtype == out_[i].type.dtype) out_[i].bits = in->bits;
}

void Call::out(size_t i, Tensor tensor) {
  if (!wants(i)) return;
  out_[i].type = {tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}};
  out_[i].tensor = std::move(tensor);
}

void Call::out(size_t i, const OnnxValue& value) {
  if (wants(i)) out_[i] = value;
}

OnnxValue Call::local(size_t input) {
  if (!has(input)) return {.absent = true, .is_sequence = true};
  auto copy = importer_.local(*in_[input]);
  if (copy.ok()) return std::move(*copy);
  fail(copy.status());
  return {};
}

void Call::out_value(size_t i, size_t input) {
  out(i, local(input));
}

}  // namespace rlx::onnx
