// SPDX-License-Identifier: Apache-2.0
// Attribute values: equality and hashes, and the conversions from what a user writes to the kind that a row asks
// for.
#include "ir/attr.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "base/choices.h"
#include "base/contains.h"
#include "base/hash.h"
#include "base/nearest.h"
#include "ir/graph.h"
#include "ir/text/value.h"

namespace rlx {

std::string_view name(AttrKind kind) {
  static constexpr std::string_view kNames[] = {"i64",  "i64s",  "f64", "f64s", "bool",  "enum",   "str",
                                                "strs", "dtype", "dim", "dims", "graph", "tensor", "free"};
  return kNames[static_cast<size_t>(kind)];
}

Attrs::Shared::Shared(std::span<AttrValue> given) {
  values.reserve(given.size());
  for (AttrValue& value : given) values.push_back(std::move(value));
}

void Attrs::set(size_t index, AttrValue value) {
  if (shared_.use_count() > 1) shared_ = std::make_shared<Shared>(*shared_);
  shared_->values[index] = std::move(value);
  shared_->hash = 0;
}

const AttrValue& Attrs::get(std::string_view name) const {
  std::span<const AttrValue> values = this->values();
  for (size_t i = 0; i < values.size(); i++)
    if (info_->attrs[i].name == name) return values[i];
  assert(!"no such attribute in the row");
  static const AttrValue kNothing;
  return kNothing;
}

Attrs Attrs::with(std::string_view name, AttrValue value) const {
  Attrs changed = *this;
  for (size_t i = 0; i < values().size(); i++) {
    if (info_->attrs[i].name != name) continue;
    changed.set(i, std::move(value));
    break;
  }
  return changed;
}

NamedAttrs Attrs::named() const {
  NamedAttrs list;
  for (size_t i = 0; i < values().size(); i++) {
    const AttrValue& value = values()[i];
    bool absent = std::holds_alternative<std::monostate>(value);
    const AttrDef& def = info_->attrs[i];
    if (!absent && (def.required || !equal(value, def.fallback))) list.emplace_back(def.name, value);
  }
  return list;
}

bool Attrs::operator==(const Attrs& other) const {
  if (info_ != other.info_ || values().size() != other.values().size()) return false;
  auto same = [](const AttrValue& a, const AttrValue& b) { return equal(a, b); };
  return shared_ == other.shared_ || std::equal(values().begin(), values().end(), other.values().begin(), same);
}

// ---- equality and hash of one value ----

bool same_structure(const Graph& a, const Graph& b) {
  if (a.nodes().size() != b.nodes().size() || a.outputs().size() != b.outputs().size()) return false;
  for (size_t i = 0; i < a.nodes().size(); i++) {
    const Node &x = a.nodes()[i], &y = b.nodes()[i];
    bool is_leaf = a.info(x).is(kLeaf);  // the types of other nodes follow
    if (x.op != y.op || x.in != y.in || !(x.attrs == y.attrs) || (is_leaf && x.out != y.out)) return false;
  }
  for (size_t i = 0; i < a.outputs().size(); i++)
    if (a.outputs()[i].name != b.outputs()[i].name || a.outputs()[i].value != b.outputs()[i].value) return false;
  return true;
}

static bool equal(const FreeAttrs& a, const FreeAttrs& b) {
  auto same = [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); };
  return a.op == b.op && std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same);
}

bool equal(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (auto* x = std::get_if<TensorAttr>(&a)) return (**x).same_bytes(*std::get<TensorAttr>(b));
  if (auto* x = std::get_if<double>(&a))
    return std::bit_cast<int64_t>(*x) == std::bit_cast<int64_t>(std::get<double>(b));
  if (auto* x = std::get_if<std::shared_ptr<const Graph>>(&a)) {
    const auto& y = std::get<std::shared_ptr<const Graph>>(b);
    return *x == y || same_structure(**x, *y);
  }
  if (auto* x = std::get_if<std::shared_ptr<const FreeAttrs>>(&a))
    return equal(**x, *std::get<std::shared_ptr<const FreeAttrs>>(b));
  return std::visit(
      [&]<class T>(const T& x) {
        if constexpr (std::is_same_v<T, TensorAttr>)
          return false;
        else
          return x == std::get<T>(b);
      },
      a);
}

static size_t hash_of(const AttrValue& value) {
  return std::visit(
      []<class T>(const T& x) -> size_t {
        if constexpr (std::is_same_v<T, std::monostate>)
          return 0;
        else if constexpr (std::is_same_v<T, Dim>)
          return x.hash();
        else if constexpr (std::is_same_v<T, DType>)
          return static_cast<size_t>(x);
        else if constexpr (std::is_same_v<T, std::shared_ptr<const Graph>>)
          return x->nodes().size();
        else if constexpr (std::is_same_v<T, std::shared_ptr<const FreeAttrs>>)
          return hash_mix(x->values.size(), std::hash<const CustomOp*>()(x->op.get()));
        else if constexpr (std::is_same_v<T, TensorAttr>) {
          // A prefix is enough for a hash: == tells large constants apart that agree in it.
          const Tensor& tensor = *x;
          std::string_view bytes(reinterpret_cast<const char*>(tensor.data()), std::min<size_t>(tensor.bytes(), 1024));
          return hash_mix(tensor.bytes(), std::hash<std::string_view>()(bytes));
        } else if constexpr (requires { x.begin(); } && !std::is_same_v<T, std::string>) {
          size_t seed = x.size();
          for (const auto& item : x) seed = hash_mix(seed, hash_of(AttrValue(item)));
          return seed;
        } else {
          return std::hash<T>()(x);
        }
      },
      value);
}

size_t Attrs::hash() const {
  if (!shared_) return 0;
  if (size_t known = shared_->hash.load(std::memory_order_relaxed)) return known;
  size_t seed = values().size();
  for (const AttrValue& value : values()) seed = hash_mix(seed, hash_of(value));
  shared_->hash.store(seed, std::memory_order_relaxed);
  return seed;
}

size_t structure_hash(const Graph& graph) {
  size_t seed = graph.nodes().size();
  for (const Node& node : graph.nodes())
    seed = hash_mix(hash_mix(seed, static_cast<size_t>(node.op)), node.attrs.hash());
  return seed;
}

// ---- coercion ----

namespace {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

// The conversions to one element type that text and C setters need. nullopt if the value is of another kind.
std::optional<int64_t> to_i64(const AttrValue& value) {
  if (auto* number = std::get_if<int64_t>(&value)) return *number;
  if (auto* dim = std::get_if<Dim>(&value); dim && dim->is_literal()) return dim->literal();
  if (auto* number = std::get_if<double>(&value);
      number && *number == std::floor(*number) && std::abs(*number) < 0x1p62)
    return static_cast<int64_t>(*number);
  return std::nullopt;
}

std::optional<double> to_f64(const AttrValue& value) {
  if (auto* number = std::get_if<double>(&value)) return *number;
  if (auto* number = std::get_if<int64_t>(&value)) return static_cast<double>(*number);
  if (auto* word = std::get_if<std::string>(&value)) return text::special_number(*word);
  return std::nullopt;
}

std::optional<Dim> to_dim(const AttrValue& value) {
  if (auto* dim = std::get_if<Dim>(&value)) return *dim;
  if (auto* number = std::get_if<int64_t>(&value)) return Dim(*number);
  if (auto* text = std::get_if<std::string>(&value))
    if (auto dim = parse_dim(*text); dim.ok()) return *dim;
  return std::nullopt;
}

std::optional<std::string> to_str(const AttrValue& value) {
  if (auto* text = std::get_if<std::string>(&value)) return *text;
  return std::nullopt;
}

// A list of T from a list of values that convert to T, or from one such value.
template <class T, class Convert>
std::optional<std::vector<T>> to_list(const AttrValue& value, Convert convert) {
  std::vector<T> list;
  auto add = [&](const auto& item) {
    auto converted = convert(AttrValue(item));
    if (converted) list.push_back(*converted);
    return converted.has_value();
  };
  bool fits = std::visit(
      [&]<class V>(const V& x) {
        if constexpr (IsVector<V>::value)
          return std::all_of(x.begin(), x.end(), add);
        else
          return !std::is_same_v<V, std::monostate> && add(x);
      },
      value);
  if (!fits) return std::nullopt;
  return list;
}

template <class T>
AttrValue or_nothing(std::optional<T> value) {
  return value ? AttrValue(std::move(*value)) : AttrValue();
}

AttrValue to_bool(const AttrValue& value) {
  if (auto* word = std::get_if<std::string>(&value))
    return *word == "true" ? AttrValue(int64_t{1}) : *word == "false" ? AttrValue(int64_t{0}) : AttrValue();
  auto number = to_i64(value);
  return number && (*number == 0 || *number == 1) ? AttrValue(*number) : AttrValue();
}

AttrValue to_dtype(const AttrValue& value) {
  auto* word = std::get_if<std::string>(&value);
  return or_nothing(word ? find_dtype(*word) : std::nullopt);
}

AttrValue convert(const AttrDef& def, const AttrValue& value) {
  switch (def.kind) {
    case AttrKind::kI64: return or_nothing(to_i64(value));
    case AttrKind::kI64s: return or_nothing(to_list<int64_t>(value, to_i64));
    case AttrKind::kF64: return or_nothing(to_f64(value));
    case AttrKind::kF64s: return or_nothing(to_list<double>(value, to_f64));
    case AttrKind::kBool: return to_bool(value);
    case AttrKind::kEnum:
    case AttrKind::kStr: return or_nothing(to_str(value));
    case AttrKind::kStrs: return or_nothing(to_list<std::string>(value, to_str));
    case AttrKind::kDtype: return to_dtype(value);
    case AttrKind::kDim: return or_nothing(to_dim(value));
    case AttrKind::kDims: return or_nothing(to_list<Dim>(value, to_dim));
    case AttrKind::kGraph:
    case AttrKind::kTensor:
    case AttrKind::kFree: return {};
  }
  return {};
}

// Whether nothing has to be converted.
bool is_of_kind(AttrKind kind, const AttrValue& value) {
  switch (kind) {
    case AttrKind::kI64: return std::holds_alternative<int64_t>(value);
    case AttrKind::kI64s: return std::holds_alternative<std::vector<int64_t>>(value);
    case AttrKind::kF64: return std::holds_alternative<double>(value);
    case AttrKind::kF64s: return std::holds_alternative<std::vector<double>>(value);
    case AttrKind::kBool: return false;  // an integer has to be 0 or 1
    case AttrKind::kEnum:
    case AttrKind::kStr: return std::holds_alternative<std::string>(value);
    case AttrKind::kStrs: return std::holds_alternative<std::vector<std::string>>(value);
    case AttrKind::kDtype: return std::holds_alternative<DType>(value);
    case AttrKind::kDim: return std::holds_alternative<Dim>(value);
    case AttrKind::kDims: return std::holds_alternative<std::vector<Dim>>(value);
    case AttrKind::kGraph: return std::holds_alternative<std::shared_ptr<const Graph>>(value);
    case AttrKind::kTensor: return std::holds_alternative<TensorAttr>(value);
    case AttrKind::kFree: return std::holds_alternative<std::shared_ptr<const FreeAttrs>>(value);
  }
  return false;
}

bool in_range(const AttrDef& def, const AttrValue& value) {
  bool is_bounded = std::isfinite(def.lo) || std::isfinite(def.hi);  // then NaN is not legal
  auto legal = [&](double number) { return !is_bounded || (number >= def.lo && number <= def.hi); };
  if (auto* number = std::get_if<int64_t>(&value)) return legal(static_cast<double>(*number));
  if (auto* number = std::get_if<double>(&value)) return legal(*number);
  if (auto* list = std::get_if<std::vector<int64_t>>(&value))
    return std::all_of(list->begin(), list->end(), [&](int64_t item) { return legal(static_cast<double>(item)); });
  if (auto* dim = std::get_if<Dim>(&value)) return !dim->is_literal() || legal(static_cast<double>(dim->literal()));
  if (auto* list = std::get_if<std::vector<Dim>>(&value))
    return std::all_of(list->begin(), list->end(),
                       [&](const Dim& dim) { return !dim.is_literal() || legal(static_cast<double>(dim.literal())); });
  return true;
}

// The kind by which to print what the variant holds.
AttrKind kind_of(const AttrValue& value) {
  if (std::holds_alternative<int64_t>(value)) return AttrKind::kI64;
  if (std::holds_alternative<double>(value)) return AttrKind::kF64;
  if (std::holds_alternative<DType>(value)) return AttrKind::kDtype;
  if (std::holds_alternative<Dim>(value)) return AttrKind::kDim;
  if (std::holds_alternative<std::vector<int64_t>>(value)) return AttrKind::kI64s;
  if (std::holds_alternative<std::vector<double>>(value)) return AttrKind::kF64s;
  if (std::holds_alternative<std::vector<Dim>>(value)) return AttrKind::kDims;
  return AttrKind::kStrs;
}

// The given value, for messages.
std::string shown(const AttrValue& value) {
  constexpr size_t kMost = 60;
  if (std::holds_alternative<std::monostate>(value)) return "nothing";
  if (std::holds_alternative<std::shared_ptr<const Graph>>(value)) return "a graph";
  if (std::holds_alternative<std::shared_ptr<const FreeAttrs>>(value)) return "attributes";
  if (auto* tensor = std::get_if<TensorAttr>(&value))
    return "the tensor " + type_text((**tensor).dtype(), (**tensor).dims());
  if (auto* word = std::get_if<std::string>(&value)) return "'" + *word + "'";
  std::string text = text::value_text(kind_of(value), value);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

Status illegal(const AttrDef& def, const std::string& expected, const AttrValue& given) {
  std::string got = shown(given);
  return Status(Code::kOption, format("'{}' must be {}, not {}", def.name, expected, got))
      .with("value", def.name)
      .with("expected", expected)
      .with("got", got);
}

std::string range_text(const AttrDef& def) {
  auto limit = [](double number) { return format("{}", number); };
  if (def.hi == std::numeric_limits<double>::infinity()) return "at least " + limit(def.lo);
  return "from " + limit(def.lo) + " to " + limit(def.hi);
}

Status unknown_attr(const OpInfo& info, const std::string& key) {
  std::vector<std::string_view> known;
  for (const AttrDef& def : info.attrs) known.push_back(def.name);
  return Status(Code::kOption, "unknown attribute '" + key + "'" + did_you_mean_or_known(key, known))
      .with("value", key);
}

}  // namespace

static Status given_twice(const std::string& key) {
  return Status(Code::kOption, "attribute '" + key + "' is given twice").with("value", key);
}

static Status check_legal(const AttrDef& def, const AttrValue& value) {
  if (def.kind == AttrKind::kEnum && !find_word(def.choices, std::get<std::string>(value)))
    return illegal(def, "one of " + std::string(def.choices), value);
  if (!in_range(def, value)) return illegal(def, range_text(def), value);
  if (def.kind == AttrKind::kDtype && !def.choices.empty() &&
      !parse_dtypes(def.choices).value_or(DTypeSet()).has(std::get<DType>(value)))
    return Status(Code::kDtype, format("'{}' may not be {} (takes {})", def.name, std::get<DType>(value),
                                       parse_dtypes(def.choices).value_or(DTypeSet())))
        .with("value", def.name)
        .with("expected", text_of(parse_dtypes(def.choices).value_or(DTypeSet())))
        .with("got", name(std::get<DType>(value)));
  return {};
}

Result<AttrValue> coerce(const AttrDef& def, AttrValue value) {
  if (!is_of_kind(def.kind, value)) {
    AttrValue converted = convert(def, value);
    if (std::holds_alternative<std::monostate>(converted))
      return illegal(
          def,
          def.kind == AttrKind::kEnum ? "one of " + std::string(def.choices) : "of kind " + std::string(name(def.kind)),
          value);
    value = std::move(converted);
  }
  RLX_TRY(check_legal(def, value));
  return value;
}

Status check_coerced(const AttrDef& def, const AttrValue& value) {
  if (is_of_kind(def.kind, value)) return check_legal(def, value);
  AttrValue coerced = RLX_TRY(coerce(def, value));
  return equal(coerced, value) ? Status() : Status(Code::kOption, "an attribute is not of its kind");
}

// A free attribute in the form that its text reads back as: `inf` and `nan` are numbers, an empty list has no kind.
static Result<AttrValue> free_value(const AttrDef& def, const AttrValue& value) {
  if (std::holds_alternative<std::string>(value))
    if (auto special = to_f64(value)) return AttrValue(*special);
  static constexpr AttrKind kKinds[] = {AttrKind::kI64,  AttrKind::kF64,  AttrKind::kStr,
                                        AttrKind::kI64s, AttrKind::kF64s, AttrKind::kStrs};
  auto is_it = [&](AttrKind kind) { return is_of_kind(kind, value); };
  if (std::none_of(std::begin(kKinds), std::end(kKinds), is_it))
    return illegal(def, "a number, a string or a list of them", value);
  auto is_empty = []<class T>(const T& it) {
    if constexpr (IsVector<T>::value) return it.empty();
    return false;
  };
  return std::visit(is_empty, value) ? AttrValue(std::vector<int64_t>()) : value;
}

// The attributes that the row does not name.
static Result<AttrValue> free_attrs(const NamedAttrs& given) {
  FreeAttrs free;
  for (const auto& [key, value] : given) {
    if (!text::is_word(key))
      return Status(Code::kOption, "'" + key + "' is not the name of an attribute").with("value", key);
    free.values.emplace_back(key, RLX_TRY(free_value({.name = key, .kind = AttrKind::kFree}, value)));
  }
  auto by_key = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::sort(free.values.begin(), free.values.end(), by_key);
  auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
  auto twice = std::adjacent_find(free.values.begin(), free.values.end(), same_key);
  if (twice != free.values.end()) return given_twice(twice->first);
  return AttrValue(std::make_shared<const FreeAttrs>(std::move(free)));
}

Result<Attrs> bind_attrs(const OpInfo& info, const NamedAttrs& given) {
  std::vector<AttrValue> values(info.attrs.size());
  std::vector<bool> seen(info.attrs.size(), false);
  NamedAttrs unnamed;
  for (const auto& [key, value] : given) {
    size_t i = 0;
    while (i < info.attrs.size() && info.attrs[i].name != key) i++;
    if (i == info.attrs.size() && info.has_free_attrs) {
      unnamed.emplace_back(key, value);
      continue;
    }
    if (i == info.attrs.size()) return unknown_attr(info, key);
    if (seen[i]) return given_twice(key);
    seen[i] = true;
    values[i] = RLX_TRY(coerce(info.attrs[i], value));
  }
  for (size_t i = 0; i < info.attrs.size(); i++) {
    const AttrDef& def = info.attrs[i];
    if (seen[i]) continue;
    if (def.kind == AttrKind::kFree) {
      values[i] = RLX_TRY(free_attrs(unnamed));
      continue;
    }
    if (def.required)
      return Status(Code::kOption, format("attribute '{}' ({}) is missing", def.name, def.kind))
          .with("value", def.name);
    values[i] = def.fallback;
  }
  return Attrs(&info, std::move(values));
}

Result<std::vector<AttrValue>> bind_options(std::span<const AttrDef> defs, const NamedAttrs& given) {
  std::vector<std::string_view> known;
  for (const AttrDef& def : defs) known.push_back(def.name);
  for (const auto& [key, value] : given)
    if (!contains(known, key))
      return Status(Code::kOption, format("unknown option '{}'{}", key, did_you_mean_or_known(key, known)))
          .with("value", key);
  OpInfo row{.attrs = {defs.begin(), defs.end()}};
  Attrs bound = RLX_TRY(bind_attrs(row, given));
  return std::vector<AttrValue>(bound.values().begin(), bound.values().end());
}

}  // namespace rlx
