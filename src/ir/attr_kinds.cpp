// SPDX-License-Identifier: Apache-2.0
// The kinds of attributes, and the conversions from what a user writes to the kind that a row asks for.
#include <algorithm>
#include <cmath>

#include "base/choices.h"
#include "base/contains.h"
#include "base/nearest.h"
#include "ir/attr.h"
#include "ir/graph.h"
#include "ir/text/value.h"

namespace rlx {

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

AttrValue not_converted(const AttrValue&) {
  return {};
}

template <auto kConvert>
AttrValue one(const AttrValue& value) {
  return or_nothing(kConvert(value));
}

template <class T, auto kConvert>
AttrValue list_of(const AttrValue& value) {
  return or_nothing(to_list<T>(value, kConvert));
}

template <class T, class... Ts>
constexpr size_t index_in(std::type_identity<std::variant<Ts...>>) {
  size_t index = 0;
  ((!std::is_same_v<T, Ts> && ++index) && ...);
  return index;
}
template <class T>
constexpr size_t kIndexOf = index_in<T>(std::type_identity<AttrValue>());

struct Kind {
  std::string_view name;
  size_t stored;                           // the index in AttrValue of the type that holds it
  AttrValue (*convert)(const AttrValue&);  // from other types; monostate: it cannot
};
constexpr size_t kAlwaysConverted = std::variant_npos;

// By AttrKind.
constexpr Kind kKinds[] = {
    {"i64", kIndexOf<int64_t>, one<to_i64>},
    {"i64s", kIndexOf<std::vector<int64_t>>, list_of<int64_t, to_i64>},
    {"f64", kIndexOf<double>, one<to_f64>},
    {"f64s", kIndexOf<std::vector<double>>, list_of<double, to_f64>},
    {"bool", kAlwaysConverted, to_bool},  // an integer has to be 0 or 1
    {"enum", kIndexOf<std::string>, one<to_str>},
    {"str", kIndexOf<std::string>, one<to_str>},
    {"strs", kIndexOf<std::vector<std::string>>, list_of<std::string, to_str>},
    {"dtype", kIndexOf<DType>, to_dtype},
    {"dim", kIndexOf<Dim>, one<to_dim>},
    {"dims", kIndexOf<std::vector<Dim>>, list_of<Dim, to_dim>},
    {"graph", kIndexOf<std::shared_ptr<const Graph>>, not_converted},
    {"tensor", kIndexOf<TensorAttr>, not_converted},
    {"free", kIndexOf<std::shared_ptr<const FreeAttrs>>, not_converted},
};
static_assert(std::size(kKinds) == static_cast<size_t>(AttrKind::kFree) + 1);

const Kind& row_of(AttrKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

// Whether nothing has to be converted.
bool is_of_kind(AttrKind kind, const AttrValue& value) {
  return value.index() == row_of(kind).stored;
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

// The kind by which to print a value.
AttrKind kind_of(const AttrValue& value) {
  return static_cast<AttrKind>(std::ranges::find(kKinds, value.index(), &Kind::stored) - std::begin(kKinds));
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

std::string_view name(AttrKind kind) {
  return row_of(kind).name;
}

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
    AttrValue converted = row_of(def.kind).convert(value);
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
  static constexpr AttrKind kFreeKinds[] = {AttrKind::kI64,  AttrKind::kF64,  AttrKind::kStr,
                                            AttrKind::kI64s, AttrKind::kF64s, AttrKind::kStrs};
  auto is_it = [&](AttrKind kind) { return is_of_kind(kind, value); };
  if (std::ranges::none_of(kFreeKinds, is_it)) return illegal(def, "a number, a string or a list of them", value);
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
