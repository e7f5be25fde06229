// SPDX-License-Identifier: Apache-2.0
// Attributes of a node. A row of the op table defines them (name, kind, default, legal values). `bind_attrs` turns what
// a user gave into a complete list in the row's order, or into an error that names the attribute.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dim.h"
#include "base/dtype.h"
#include "base/status.h"
#include "base/tensor.h"

namespace rlx {

class Graph;
struct CustomOp;    // ops/custom.h
struct HostAnswer;  // ops/custom.h
struct FreeAttrs;
struct OpInfo;

// A tensor as an attribute, on the heap: all attributes take the room of the largest kind, and few of them are tensors.
class TensorAttr {
 public:
  TensorAttr(Tensor tensor) : tensor_(std::make_shared<const Tensor>(std::move(tensor))) {}  // NOLINT: the same tensor
  const Tensor& operator*() const { return *tensor_; }

 private:
  std::shared_ptr<const Tensor> tensor_;
};

// A bool is an int64_t of 0 or 1, an enum is its string. monostate: an optional attribute that is absent.
using AttrValue = std::variant<std::monostate, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, DType, Dim, std::vector<Dim>, std::shared_ptr<const Graph>,
                               TensorAttr, std::shared_ptr<const FreeAttrs>>;
using NamedAttrs = std::vector<std::pair<std::string, AttrValue>>;

// The attributes that a row does not name: numbers, strings and lists of them, sorted by key. They belong to an op of
// the host. Inference adds the op itself, so that a copy of the node keeps it alive. Comparisons ignore the answer.
struct FreeAttrs {
  NamedAttrs values;
  std::shared_ptr<const CustomOp> op;
  std::shared_ptr<const HostAnswer> answer;  // null until the host has told the types of the outputs
};

enum class AttrKind : uint8_t {
  kI64,
  kI64s,
  kF64,
  kF64s,
  kBool,
  kEnum,
  kStr,
  kStrs,
  kDtype,
  kDim,
  kDims,
  kGraph,
  kTensor,
  kFree  // takes every key that the row does not name; never absent
};
std::string_view name(AttrKind kind);  // "i64s"

// What the numbers of an attribute mean for the inputs of its node. ir/normal.h brings each to its normal form. Below,
// "the input" is input `of` of the node, and r its rank. An axis below 0 counts from the end.
enum class AttrRole : uint8_t {
  kPlain,
  kAxis,            // an axis of the input
  kChannelAxis,     // the axis of the input along which the next input lies; no meaning if that is a scalar
  kShapeAxis,       // an axis of the shape that the attribute `with` gives
  kInsertedAxis,    // the place of a new axis: 0..r
  kCut,             // a place before an axis or after the last one: 0..r
  kAxes,            // a set of axes; absent: all
  kUnitAxes,        // a set of axes; absent: those of literal size 1
  kInsertedAxes,    // a set of axes of the result, which the op adds
  kListedAxes,      // axes with one entry each in the `kBesides` lists; absent: the first ones
  kBesides,         // an entry for each axis that `with` names; absent: `fill`
  kPairedAxes,      // axes whose order matters
  kPerm,            // every axis once
  kPerAxis,         // an entry for each axis; absent: `fill`
  kPerSpatialAxis,  // kPerAxis without the first two axes
  kSizes,           // new sizes of the same elements; -1: computed from the others
  kSameAs,          // absent: as the attribute `with`
  kDtypeOf,         // absent: the dtype of the input
  kCountOf          // absent: the number of elements of the input
};

// Whose names the strings of an attribute are (semantics.md S6).
enum class NamedSymbols : uint8_t {
  kNone,
  kFresh,   // symbols that the contents of a value decide, in the run
  kChosen,  // symbols that this node decides, by other sizes
  kCarried  // symbols of its bodies: the sizes of carries, which every trip sets
};

struct AttrDef {
  std::string_view name;
  AttrKind kind;
  bool required = true;                                  // if false, `fallback` is the default
  AttrValue fallback = {};                               // monostate: absent
  std::string_view choices = {};                         // of an enum: "none|tanh"; of a dtype: a signature set, "FI"
  double lo = -std::numeric_limits<double>::infinity();  // legal range of numbers, alone or in lists
  double hi = std::numeric_limits<double>::infinity();
  AttrRole role = AttrRole::kPlain;
  uint8_t of = 0;              // the input that the role is about
  int64_t fill = 0;            // each entry of the default list
  std::string_view with = {};  // the attribute that the role is about
  NamedSymbols names = NamedSymbols::kNone;
  std::string_view summary = {};  // of an option: what it does

  // Whether it holds names of symbols whose sizes the node decides.
  bool names_decided() const { return names == NamedSymbols::kFresh || names == NamedSymbols::kChosen; }
};

// Copies share their values until one of them is changed.
class Attrs {
 public:
  Attrs() = default;
  Attrs(const OpInfo* info, std::vector<AttrValue> values);

  bool has(std::string_view name) const { return !std::holds_alternative<std::monostate>(get(name)); }
  const AttrValue& get(std::string_view name) const;  // a name that is not in the row is our bug
  int64_t i64(std::string_view name) const { return std::get<int64_t>(get(name)); }
  bool flag(std::string_view name) const { return i64(name) != 0; }
  double f64(std::string_view name) const { return std::get<double>(get(name)); }
  double f64_or(std::string_view name, double absent) const { return has(name) ? f64(name) : absent; }
  int64_t i64_or(std::string_view name, int64_t absent) const { return has(name) ? i64(name) : absent; }
  const std::string& str(std::string_view name) const { return std::get<std::string>(get(name)); }
  bool is(std::string_view name, std::string_view text) const { return str(name) == text; }
  DType dtype(std::string_view name) const { return std::get<DType>(get(name)); }
  const Dim& dim(std::string_view name) const { return std::get<Dim>(get(name)); }
  const std::vector<Dim>& dims(std::string_view name) const { return std::get<std::vector<Dim>>(get(name)); }
  const std::vector<int64_t>& i64s(std::string_view name) const { return std::get<std::vector<int64_t>>(get(name)); }
  const std::vector<double>& f64s(std::string_view name) const { return std::get<std::vector<double>>(get(name)); }
  const std::shared_ptr<const Graph>& graph(std::string_view name) const {
    return std::get<std::shared_ptr<const Graph>>(get(name));
  }
  const std::vector<std::string>& strs(std::string_view name) const {
    return std::get<std::vector<std::string>>(get(name));
  }
  const Tensor& tensor(std::string_view name) const { return *std::get<TensorAttr>(get(name)); }
  const FreeAttrs& free(std::string_view name) const { return *std::get<std::shared_ptr<const FreeAttrs>>(get(name)); }

  const OpInfo* info() const { return info_; }
  std::span<const AttrValue> values() const;  // in the row's order
  NamedAttrs named() const;                   // those that differ from the row's defaults, to build the node again
  Attrs with(std::string_view name, AttrValue value) const;  // a copy with one changed
  void set(size_t index, AttrValue value);
  bool operator==(const Attrs& other) const;
  size_t hash() const;

 private:
  struct Shared;  // in attr.cpp: a list of variants takes long to compile, and most sources include this header

  const OpInfo* info_ = nullptr;
  std::shared_ptr<Shared> shared_;  // null: there are none
};

bool equal(const AttrValue& a, const AttrValue& b);  // tensors by contents, graphs by structure

// Converts each value to the kind of its attribute (an integer to a number or dim, a string to an enum, dtype, dim or
// bool, a scalar to a list of one). Checks legal ranges. Fills in the defaults that do not depend on the inputs.
// RLX_E_OPTION for an unknown, repeated, missing or illegal attribute.
Result<Attrs> bind_attrs(const OpInfo& info, const NamedAttrs& given);
// The given options, checked against their definitions and in the order of `defs`; absent ones have their default.
// RLX_E_OPTION for an unknown option.
Result<std::vector<AttrValue>> bind_options(std::span<const AttrDef> defs, const NamedAttrs& given);
// Checks that `coerce` would return the value unchanged.
Status check_coerced(const AttrDef& def, const AttrValue& value);
// Coerces one value by the rules of bind_attrs. Compile options and policies use it too.
Result<AttrValue> coerce(const AttrDef& def, AttrValue value);

}  // namespace rlx
