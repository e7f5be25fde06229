// SPDX-License-Identifier: Apache-2.0
// The fields of onnx.proto that we read, one table a message. A field that is in no table is skipped.
#include "import/onnx/model.h"

namespace rlx::onnx {

using namespace protobuf;  // NOLINT: the tables below are its language

static std::span<const Row<StringEntry>> rows_of(StringEntry&) {
  static constexpr Row<StringEntry> kRows[] = {{1, "key", text<&StringEntry::key>},
                                               {2, "value", text<&StringEntry::value>}};
  return kRows;
}

static Status note_strings(TensorProto& tensor, const Field&, std::string_view, int) {
  tensor.has_strings = true;
  return {};
}

static std::span<const Row<TensorProto>> rows_of(TensorProto&) {
  using T = TensorProto;
  static constexpr Row<T> kRows[] = {{1, "dims", numbers<&T::dims>},
                                     {2, "data_type", number<&T::data_type>},
                                     {4, "float_data", later<&T::typed_data>},
                                     {5, "int32_data", later<&T::typed_data>},
                                     {6, "string_data", note_strings},
                                     {7, "int64_data", later<&T::typed_data>},
                                     {8, "name", text<&T::name>},
                                     {9, "raw_data", blob<&T::raw_data>},
                                     {10, "double_data", later<&T::typed_data>},
                                     {11, "uint64_data", later<&T::typed_data>},
                                     {13, "external_data", messages<&T::external_data>},
                                     {14, "data_location", number<&T::data_location>}};
  return kRows;
}

static std::span<const Row<SparseTensorProto>> rows_of(SparseTensorProto&) {
  using T = SparseTensorProto;
  static constexpr Row<T> kRows[] = {
      {1, "values", message<&T::values>}, {2, "indices", message<&T::indices>}, {3, "dims", numbers<&T::dims>}};
  return kRows;
}

// A single tensor or graph of an attribute is a list of one.
static std::span<const Row<AttributeProto>> rows_of(AttributeProto&) {
  using T = AttributeProto;
  static constexpr Row<T> kRows[] = {{1, "name", text<&T::name>},
                                     {2, "f", number<&T::f>},
                                     {3, "i", number<&T::i>},
                                     {4, "s", text<&T::s>},
                                     {5, "t", messages<&T::tensors>},
                                     {6, "g", messages<&T::graphs>},
                                     {7, "floats", numbers<&T::floats>},
                                     {8, "ints", numbers<&T::ints>},
                                     {9, "strings", texts<&T::strings>},
                                     {10, "tensors", messages<&T::tensors>},
                                     {11, "graphs", messages<&T::graphs>},
                                     {20, "type", number<&T::type>},
                                     {21, "ref_attr_name", text<&T::ref_attr_name>},
                                     {22, "sparse_tensor", messages<&T::sparse_tensors>}};
  return kRows;
}

static std::span<const Row<NodeProto>> rows_of(NodeProto&) {
  using T = NodeProto;
  static constexpr Row<T> kRows[] = {
      {1, "input", texts<&T::input>},     {2, "output", texts<&T::output>},          {3, "name", text<&T::name>},
      {4, "op_type", text<&T::op_type>},  {5, "attribute", messages<&T::attribute>}, {7, "domain", text<&T::domain>},
      {8, "overload", text<&T::overload>}};
  return kRows;
}

static std::span<const Row<DimensionProto>> rows_of(DimensionProto&) {
  static constexpr Row<DimensionProto> kRows[] = {{1, "dim_value", number<&DimensionProto::dim_value>},
                                                  {2, "dim_param", text<&DimensionProto::dim_param>}};
  return kRows;
}

static std::span<const Row<ShapeProto>> rows_of(ShapeProto&) {
  static constexpr Row<ShapeProto> kRows[] = {{1, "dim", messages<&ShapeProto::dim>}};
  return kRows;
}

static std::span<const Row<TensorTypeProto>> rows_of(TensorTypeProto&) {
  static constexpr Row<TensorTypeProto> kRows[] = {{1, "elem_type", number<&TensorTypeProto::elem_type>},
                                                   {2, "shape", messages<&TensorTypeProto::shape>}};
  return kRows;
}

static std::span<const Row<ElementTypeProto>> rows_of(ElementTypeProto&) {
  static constexpr Row<ElementTypeProto> kRows[] = {{1, "elem_type", messages<&ElementTypeProto::elem_type>}};
  return kRows;
}

static std::span<const Row<TypeProto>> rows_of(TypeProto&) {
  static constexpr Row<TypeProto> kRows[] = {{1, "tensor_type", messages<&TypeProto::tensor_type>},
                                             {4, "sequence_type", messages<&TypeProto::sequence_type>},
                                             {9, "optional_type", messages<&TypeProto::optional_type>}};
  return kRows;
}

static std::span<const Row<ValueInfoProto>> rows_of(ValueInfoProto&) {
  static constexpr Row<ValueInfoProto> kRows[] = {{1, "name", text<&ValueInfoProto::name>},
                                                  {2, "type", message<&ValueInfoProto::type>}};
  return kRows;
}

static std::span<const Row<GraphProto>> rows_of(GraphProto&) {
  using T = GraphProto;
  static constexpr Row<T> kRows[] = {{1, "node", messages<&T::node>},
                                     {2, "name", text<&T::name>},
                                     {5, "initializer", messages<&T::initializer>},
                                     {11, "input", messages<&T::input>},
                                     {12, "output", messages<&T::output>},
                                     {15, "sparse_initializer", messages<&T::sparse_initializer>}};
  return kRows;
}

static std::span<const Row<OperatorSetProto>> rows_of(OperatorSetProto&) {
  static constexpr Row<OperatorSetProto> kRows[] = {{1, "domain", text<&OperatorSetProto::domain>},
                                                    {2, "version", number<&OperatorSetProto::version>}};
  return kRows;
}

static std::span<const Row<FunctionProto>> rows_of(FunctionProto&) {
  static constexpr Row<FunctionProto> kRows[] = {{1, "name", text<&FunctionProto::name>},
                                                 {4, "input", texts<&FunctionProto::input>},
                                                 {5, "output", texts<&FunctionProto::output>},
                                                 {7, "node", messages<&FunctionProto::node>},
                                                 {9, "opset_import", messages<&FunctionProto::opset_import>},
                                                 {10, "domain", text<&FunctionProto::domain>},
                                                 {11, "attribute_proto", messages<&FunctionProto::attribute_proto>},
                                                 {13, "overload", text<&FunctionProto::overload>}};
  return kRows;
}

static Status read_graph(ModelProto& model, const Field& field, std::string_view name, int depth) {
  model.has_graph = true;
  return message<&ModelProto::graph>(model, field, name, depth);
}

static std::span<const Row<ModelProto>> rows_of(ModelProto&) {
  using T = ModelProto;
  static constexpr Row<T> kRows[] = {
      {1, "ir_version", number<&T::ir_version>},           {2, "producer_name", text<&T::producer_name>},
      {3, "producer_version", text<&T::producer_version>}, {7, "graph", read_graph},
      {8, "opset_import", messages<&T::opset_import>},     {14, "metadata_props", messages<&T::metadata_props>},
      {25, "functions", messages<&T::functions>}};
  return kRows;
}

Result<ModelProto> parse_model(std::span<const std::byte> bytes) {
  ModelProto model;
  Status status = parse(model, bytes, 0);
  if (!status.ok()) return std::move(status).prefixed("ONNX model");
  if (!model.has_graph) return Status(Code::kData, "ONNX model: no graph: these bytes are not an ONNX model");
  if (!model.opset_import.empty()) return model;
  constexpr int64_t kFirstWithOpsets = 3;  // before, the version of the file stood for the opset too
  if (model.ir_version < 1 || model.ir_version >= kFirstWithOpsets)
    return Status(Code::kData, "ONNX model: no opset_import: these bytes are not an ONNX model");
  model.opset_import.push_back({"", 1});
  return model;
}

// ---- data of tests ----

namespace {

struct SequenceProto {
  std::vector<TensorProto> tensor_values;
};

struct OptionalProto {
  std::vector<TensorProto> tensor_value;
  std::vector<SequenceProto> sequence_value;
};

std::span<const Row<SequenceProto>> rows_of(SequenceProto&) {
  static constexpr Row<SequenceProto> kRows[] = {{3, "tensor_values", messages<&SequenceProto::tensor_values>}};
  return kRows;
}

std::span<const Row<OptionalProto>> rows_of(OptionalProto&) {
  static constexpr Row<OptionalProto> kRows[] = {{3, "tensor_value", messages<&OptionalProto::tensor_value>},
                                                 {5, "sequence_value", messages<&OptionalProto::sequence_value>}};
  return kRows;
}

template <class M>
Result<M> parse_one(std::span<const std::byte> bytes, const char* what) {
  M read;
  Status status = parse(read, bytes, 0);
  return status.ok() ? Result<M>(std::move(read)) : std::move(status).prefixed(what);
}

}  // namespace

Result<std::optional<std::vector<TensorProto>>> parse_value(std::span<const std::byte> bytes, const TypeProto& type) {
  using Tensors = std::optional<std::vector<TensorProto>>;
  if (!type.sequence_type.empty())
    return Tensors(RLX_TRY(parse_one<SequenceProto>(bytes, "ONNX sequence")).tensor_values);
  if (type.optional_type.empty()) return Tensors({RLX_TRY(parse_one<TensorProto>(bytes, "ONNX tensor"))});
  auto read = RLX_TRY(parse_one<OptionalProto>(bytes, "ONNX optional"));
  if (!read.tensor_value.empty()) return Tensors(std::move(read.tensor_value));
  return read.sequence_value.empty() ? Tensors() : Tensors(std::move(read.sequence_value[0].tensor_values));
}

}  // namespace rlx::onnx
