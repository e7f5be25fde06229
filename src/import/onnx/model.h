// SPDX-License-Identifier: Apache-2.0
// An ONNX file as plain structs, named as in onnx.proto (github.com/onnx/onnx, IR version 10). Nothing is interpreted
// here: every string and blob is a view of the file's bytes, which must outlive the structs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/tensor.h"
#include "import/protobuf.h"

namespace rlx::onnx {

struct StringEntry {
  std::string_view key, value;
};

// A tensor's elements stand in raw_data, in the field of their type, or in a file that external_data names.
struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;  // an ElementType
  protobuf::Bytes raw_data;
  std::vector<protobuf::Field> typed_data;  // float_data, int32_data, ...: not decoded
  bool has_strings = false;                 // string_data is there
  std::vector<StringEntry> external_data;   // "location", "offset", "length"
  int32_t data_location = 0;                // 1: external
};

// The elements that are not zero: a row of `indices` for each of the values, or its place in the dense tensor.
struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct GraphProto;

struct AttributeProto {
  enum Type : int32_t {
    kFloat = 1,
    kInt,
    kString,
    kTensor,
    kGraph,
    kFloats,
    kInts,
    kStrings,
    kTensors,
    kGraphs,
    kSparseTensor,
  };
  std::string_view name;
  int32_t type = 0;  // files of IR version 1 leave it out
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<TensorProto> tensors;  // t too
  std::vector<GraphProto> graphs;    // g too
  std::vector<SparseTensorProto> sparse_tensors;
  std::string_view ref_attr_name;  // inside functions
};

struct NodeProto {
  std::vector<std::string_view> input, output;  // "": an absent optional one
  std::string_view name, op_type, domain, overload;
  std::vector<AttributeProto> attribute;
};

// A number or a name. If both are absent, the size is open and has no name.
struct DimensionProto {
  int64_t dim_value = -1;
  std::string_view dim_param;
};

struct ShapeProto {
  std::vector<DimensionProto> dim;
};

struct TensorTypeProto {
  int32_t elem_type = 0;
  std::vector<ShapeProto> shape;  // none: the rank is not known
};

struct TypeProto;

struct ElementTypeProto {
  std::vector<TypeProto> elem_type;
};

// One of the three; none: a map or a sparse tensor.
struct TypeProto {
  std::vector<TensorTypeProto> tensor_type;
  std::vector<ElementTypeProto> sequence_type, optional_type;
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> node;
  std::vector<TensorProto> initializer;
  std::vector<SparseTensorProto> sparse_initializer;
  std::vector<ValueInfoProto> input, output;
};

struct OperatorSetProto {
  std::string_view domain;
  int64_t version = 0;
};

// A node kind that the model spells out itself.
struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> input, output;
  std::vector<NodeProto> node;
  std::vector<OperatorSetProto> opset_import;
  std::vector<AttributeProto> attribute_proto;  // with their defaults
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer_name, producer_version;
  std::vector<OperatorSetProto> opset_import;
  GraphProto graph;
  bool has_graph = false;
  std::vector<FunctionProto> functions;
  std::vector<StringEntry> metadata_props;
};

// RLX_E_DATA names the byte and the message in which it stands: "ONNX model.graph.node[3].attribute[0] at byte 91:
// ...".
Result<ModelProto> parse_model(std::span<const std::byte> bytes);

// Reads a file with one value of this type, like the data of ONNX's own tests. Returns its tensors; nullopt for an
// absent optional.
Result<std::optional<std::vector<TensorProto>>> parse_value(std::span<const std::byte> bytes, const TypeProto& type);

}  // namespace rlx::onnx
