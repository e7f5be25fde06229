// SPDX-License-Identifier: Apache-2.0
// Attributes of a node. A row of the op table defines them (name, kind, default, legal values); `bind_attrs` turns what
// a user gave into a complete list in the row's order, or into an error that names the attribute.
#pragma once

#include <limits>
#include <memory>
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
struct OpInfo;

// A bool is an int64_t of 0 or 1, an enum is its string. monostate: an optional attribute that is not there.
using AttrValue =
    std::variant<std::monostate, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, DType, Dim, std::vector<Dim>, std::shared_ptr<const Graph>, Tensor>;
using NamedAttrs = std::vector<std::pair<std::string, AttrValue>>;

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
  kTensor
};
std::string_view name(AttrKind kind);  // "i64s"

struct AttrDef {
  std::string_view name;
  AttrKind kind;
  bool required = true;                                  // if not, `fallback` stands in for it
  AttrValue fallback = {};                               // monostate: absent
  std::string_view choices = {};                         // of an enum: "none|tanh"; of a dtype: a signature set, "FI"
  double lo = -std::numeric_limits<double>::infinity();  // legal range of numbers, also of those in lists
  double hi = std::numeric_limits<double>::infinity();
};

class Attrs {
 public:
  Attrs() = default;
  Attrs(const OpInfo* info, std::vector<AttrValue> values) : info_(info), values_(std::move(values)) {}

  bool has(std::string_view name) const { return !std::holds_alternative<std::monostate>(get(name)); }
  const AttrValue& get(std::string_view name) const;  // of the row; another name is our bug
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
  const Tensor& tensor(std::string_view name) const { return std::get<Tensor>(get(name)); }

  const OpInfo* info() const { return info_; }
  const std::vector<AttrValue>& values() const { return values_; }  // in the row's order
  NamedAttrs named() const;  // those that differ from the row's default, for printing and for building again
  Attrs with(std::string_view name, AttrValue value) const;  // the same but for one
  bool operator==(const Attrs& other) const;
  size_t hash() const;

 private:
  const OpInfo* info_ = nullptr;
  std::vector<AttrValue> values_;
};

bool equal(const AttrValue& a, const AttrValue& b);  // tensors by contents, graphs by structure

// Coerces (an integer to a number or dim, a string to an enum, dtype, dim or bool, a scalar to a list of one), checks
// legal ranges, fills in defaults. RLX_E_OPTION for an unknown, doubled, missing or illegal one.
Result<Attrs> bind_attrs(const OpInfo& info, const NamedAttrs& given);
// One value to one definition, by the same rules; compile options and policies are checked by it too.
Result<AttrValue> coerce(const AttrDef& def, const AttrValue& value);

}  // namespace rlx
