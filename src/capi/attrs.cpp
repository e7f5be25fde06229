// SPDX-License-Identifier: Apache-2.0
// rlx_attrs_*: named values; a custom op reads its own back.
#include "capi/attrs.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "capi/graph.h"
#include "capi/guard.h"
#include "capi/tensor.h"
#include "ir/body.h"
#include "ir/text.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

static Result<AttrValue> resolved(const AttrValue& value, const DimTokens& tokens) {
  auto is_token = [](int64_t number) { return DimTokens::is_token(number); };
  if (auto* number = std::get_if<int64_t>(&value); number && is_token(*number))
    return AttrValue(RLX_TRY(tokens.dim(*number)));
  if (auto* list = std::get_if<std::vector<int64_t>>(&value); list && std::any_of(list->begin(), list->end(), is_token))
    return AttrValue(RLX_TRY(tokens.dims(*list)));
  return value;
}

Result<NamedAttrs> values_of(const rlx_attrs_t* attrs, const rlx_env* env) {
  if (!attrs) return NamedAttrs();
  if (!attrs->failure.ok()) return attrs->failure;
  for (const auto& [key, owner] : attrs->owners)
    if (env) RLX_TRY(same_env(env, owner.get(), key.c_str()));
  return NamedAttrs(attrs->values.begin(), attrs->values.end());
}

Result<NamedAttrs> values_of(const rlx_attrs_t* attrs, const rlx_env& env, const OpInfo& op) {
  NamedAttrs values = RLX_TRY(values_of(attrs, &env));
  for (auto& [key, value] : values) {
    auto is_it = [&, &key = key](const AttrDef& def) { return def.name == key; };
    auto def = std::find_if(op.attrs.begin(), op.attrs.end(), is_it);
    bool is_dim = def != op.attrs.end() && (def->kind == AttrKind::kDim || def->kind == AttrKind::kDims);
    if (is_dim) value = RLX_TRY(resolved(value, env.dims));
  }
  return values;
}

// The body of all setters; `make` gives the value. Without attrs there is nowhere to keep a failure. `owner`: the
// environment of a value that is a handle.
template <class Make>
static void set(rlx_attrs_t* attrs, const char* key, std::initializer_list<Argument> arguments, Make&& make,
                rlx_env* owner = nullptr, const char* function = __builtin_FUNCTION()) {
  if (!attrs) return;
  auto body = [&]() -> Status {
    if (Status wrong = check(function, arguments); !wrong.ok())
      return std::move(wrong).prefixed(format("'{}': ", key)).with("value", key);
    AttrValue value = RLX_TRY(make());
    attrs->set(key, std::move(value), owner);
    return {};
  };
  keep(attrs->failure, {{key, "key"}}, body, function);
}

// Text gives a bool as the word true or false, because it does not know the kind of the attribute.
static AttrValue with_bool_as_number(const AttrValue& value) {
  if (!std::holds_alternative<std::string>(value)) return value;
  auto flag = coerce({.kind = AttrKind::kBool}, value);
  return flag.ok() ? *std::move(flag) : value;
}

// The body of all list getters: the value as a list of T, its length, and as much of it as fits.
template <class T>
static rlx_status_t* get_list(const rlx_attrs_t* attrs, const char* key, AttrKind kind, T* values, size_t capacity,
                              size_t* n, const char* function = __builtin_FUNCTION()) {
  return guard(
      {{attrs, "attrs"}, {key, "key"}, cleared(n, "n"), array(values, capacity, "values")},
      [&]() -> Status {
        if (!attrs->failure.ok()) return attrs->failure;
        const AttrValue* value = attrs->find(key);
        if (!value) return Status(Code::kNotFound, format("no attribute '{}'", key)).with("value", key);
        AttrValue converted = RLX_TRY(coerce({.name = key, .kind = kind}, with_bool_as_number(*value)));
        const auto& list = std::get<std::vector<T>>(converted);
        std::copy_n(list.begin(), std::min(capacity, list.size()), values);
        *n = list.size();
        return {};
      },
      function);
}

}  // namespace rlx::capi

rlx_attrs::rlx_attrs(NamedAttrs given)
    : values(std::make_move_iterator(given.begin()), std::make_move_iterator(given.end())) {
  note_places();
}

void rlx_attrs::note_places() {
  for (size_t i = places.size(); values.size() > kFew && i < values.size(); i++) places.emplace(values[i].first, i);
}

AttrValue* rlx_attrs::find(std::string_view key) {
  if (values.size() > kFew) {
    auto found = places.find(key);
    return found == places.end() ? nullptr : &values[found->second].second;
  }
  auto found = std::ranges::find(values, key, [](const auto& pair) -> std::string_view { return pair.first; });
  return found == values.end() ? nullptr : &found->second;
}

void rlx_attrs::set(const std::string& key, AttrValue value, rlx_env* owner) {
  if (owner)
    owners.insert_or_assign(key, Ref<rlx_env>(owner));
  else
    owners.erase(key);
  if (AttrValue* known = find(key)) {
    *known = std::move(value);
    return;
  }
  values.emplace_back(key, std::move(value));
  note_places();
}

rlx_status_t* rlx_attrs_create(const char* text, rlx_attrs_t** out) {
  return guard({cleared(out, "out"), optional_text(text, "text")}, [&]() -> Status {
    auto attrs = RLX_TRY(parse_attrs(text ? text : ""));
    *out = new rlx_attrs(std::move(attrs));
    return {};
  });
}

// Does nothing in a forked child to attrs that hold a graph or tensor of the parent, as releasing those handles does
// nothing.
void rlx_attrs_release(rlx_attrs_t* attrs) {
  if (!attrs) return;
  if (std::ranges::any_of(attrs->owners, [](const auto& pair) { return is_of_parent(*pair.second.get()); })) return;
  delete attrs;
}

void rlx_attrs_set_i64(rlx_attrs_t* attrs, const char* key, int64_t value) {
  set(attrs, key, {}, [&]() -> Result<AttrValue> { return AttrValue(value); });
}

void rlx_attrs_set_f64(rlx_attrs_t* attrs, const char* key, double value) {
  set(attrs, key, {}, [&]() -> Result<AttrValue> { return AttrValue(value); });
}

void rlx_attrs_set_str(rlx_attrs_t* attrs, const char* key, const char* value) {
  set(attrs, key, {{value, "value"}}, [&]() -> Result<AttrValue> { return AttrValue(std::string(value)); });
}

void rlx_attrs_set_i64s(rlx_attrs_t* attrs, const char* key, const int64_t* values, size_t n) {
  set(attrs, key, {array(values, n, "values")},
      [&]() -> Result<AttrValue> { return AttrValue(std::vector<int64_t>(values, values + n)); });
}

void rlx_attrs_set_f64s(rlx_attrs_t* attrs, const char* key, const double* values, size_t n) {
  set(attrs, key, {array(values, n, "values")},
      [&]() -> Result<AttrValue> { return AttrValue(std::vector<double>(values, values + n)); });
}

void rlx_attrs_set_strs(rlx_attrs_t* attrs, const char* key, const char* const* values, size_t n) {
  set(attrs, key, {array(values, n, "values")}, [&]() -> Result<AttrValue> {
    std::vector<std::string> list;
    for (size_t i = 0; i < n; i++) {
      if (!values[i]) return null_element("values", i).prefixed(format("'{}': ", key));
      RLX_TRY(check_text(format("'{}'", key), format("values[{}]", i), values[i]));
      list.emplace_back(values[i]);
    }
    return AttrValue(std::move(list));
  });
}

void rlx_attrs_set_graph(rlx_attrs_t* attrs, const char* key, const rlx_graph_t* graph) {
  auto copied = [&]() -> Result<AttrValue> {
    if (!graph->status.ok()) return graph->status;
    if (Status status = check_nesting(graph->graph); !status.ok())
      return std::move(status).prefixed(format("'{}': ", key)).with("value", key);
    return AttrValue(std::make_shared<const Graph>(graph->graph));
  };
  set(attrs, key, {handle(graph, "graph")}, copied, graph ? graph->env.get() : nullptr);
}

void rlx_attrs_set_tensor(rlx_attrs_t* attrs, const char* key, rlx_tensor_t* tensor) {
  auto frozen = [&]() -> Result<AttrValue> { return AttrValue(RLX_TRY(constant_of(*tensor, tensor->env))); };
  set(attrs, key, {handle(tensor, "tensor")}, frozen, tensor ? tensor->env : nullptr);
}

rlx_status_t* rlx_attrs_get_i64s(const rlx_attrs_t* attrs, const char* key, int64_t* values, size_t capacity,
                                 size_t* n) {
  return get_list(attrs, key, AttrKind::kI64s, values, capacity, n);
}

rlx_status_t* rlx_attrs_get_f64s(const rlx_attrs_t* attrs, const char* key, double* values, size_t capacity,
                                 size_t* n) {
  return get_list(attrs, key, AttrKind::kF64s, values, capacity, n);
}

rlx_status_t* rlx_attrs_get_str(const rlx_attrs_t* attrs, const char* key, const char** value) {
  return guard({{attrs, "attrs"}, {key, "key"}, cleared(value, "value")}, [&]() -> Status {
    if (!attrs->failure.ok()) return attrs->failure;
    const AttrValue* found = attrs->find(key);
    if (!found) return Status(Code::kNotFound, format("no attribute '{}'", key)).with("value", key);
    auto* text = std::get_if<std::string>(found);
    if (!text) return Status(Code::kOption, format("'{}' is not a string", key)).with("value", key);
    *value = text->c_str();
    return {};
  });
}
