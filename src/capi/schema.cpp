// SPDX-License-Identifier: Apache-2.0
// rlx_schema: the tables of ops and options as JSON; of an op also the kernels of each device.
#include "capi/schema.h"

#include "base/json.h"
#include "capi/blob.h"
#include "capi/env.h"
#include "capi/guard.h"
#include "compile/options.h"
#include "import/format.h"
#include "runtime/policy.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

// A default value as JSON; as text, if JSON has no form for it.
static void write_value(JsonWriter& json, const AttrValue& value) {
  if (auto* number = std::get_if<int64_t>(&value))
    json.value(*number);
  else if (auto* real = std::get_if<double>(&value))
    json.value(*real);
  else if (auto* text = std::get_if<std::string>(&value))
    json.value(*text);
  else if (auto* list = std::get_if<std::vector<int64_t>>(&value))
    json.value(std::span<const int64_t>(*list));
  else if (auto* dtype = std::get_if<DType>(&value))
    json.value(name(*dtype));
  else if (auto* dim = std::get_if<Dim>(&value))
    json.value(dim->text());
  else
    json.null();
}

static void write_attr(JsonWriter& json, const AttrDef& def) {
  json.begin_object().member("name", def.name).member("kind", name(def.kind)).member("required", def.required);
  if (!def.required) write_value(json.key("default"), def.fallback);
  if (!def.choices.empty()) json.member("choices", def.choices);
  if (def.lo != -std::numeric_limits<double>::infinity()) json.member("min", def.lo);
  if (def.hi != std::numeric_limits<double>::infinity()) json.member("max", def.hi);
  if (!def.summary.empty()) json.member("summary", def.summary);
  json.end_object();
}

static void write_attrs(JsonWriter& json, std::string_view key, std::span<const AttrDef> defs) {
  json.key(key).begin_array();
  for (const AttrDef& def : defs) write_attr(json, def);
  json.end_array();
}

static constexpr DType kDTypes[] = {
#define RLX_DTYPE(id, Enum, name, block, bytes) DType::k##Enum,
#include "base/dtype.def"
#undef RLX_DTYPE
};

static void write_ports(JsonWriter& json, std::string_view key, std::span<const Port> ports) {
  json.key(key).begin_array();
  for (const Port& port : ports) {
    json.begin_object().member("name", port.name).member("dtypes", port.letter).key("types").begin_array();
    for (DType dtype : kDTypes)
      if (port.set.has(dtype)) json.value(name(dtype));
    json.end_array();
    json.member("optional", port.optional).member("variadic", port.variadic).end_object();
  }
  json.end_array();
}

const OpInfo* find_public_op(std::string_view name) {
  const OpInfo* info = op_table().find(name);
  return info && info->is_for_users() ? info : nullptr;
}

static void write_op(JsonWriter& json, const OpInfo& info, Devices devices) {
  json.begin_object().member("name", info.name).member("id", int{info.id}).member("summary", info.summary);
  json.member("composite", !info.primitive());
  if (!info.aliases.empty()) json.member("aliases", info.aliases);
  write_ports(json, "inputs", info.signature.in);
  write_ports(json, "outputs", info.signature.out);
  write_attrs(json, "attributes", info.attrs);
  json.key("kernels").begin_object();
  for (const auto& device : devices) {
    json.key(device->info().name).begin_array();
    for (std::string_view kernel : device->kernels(info.op())) json.value(kernel);
    json.end_array();
  }
  json.end_object().end_object();
}

std::string schema_of_ops(const OpTable& table, Devices devices) {
  JsonWriter json;
  json.begin_object().key("ops").begin_array();
  for (const OpInfo& info : table.rows())
    if (info.is_for_users()) write_op(json, info, devices);
  json.end_array().end_object();
  return std::move(json).take();
}

std::string schema_of_op(const OpInfo& info, Devices devices) {
  JsonWriter json;
  write_op(json, info, devices);
  return std::move(json).take();
}

std::string schema_of_options(std::span<const AttrDef> options) {
  JsonWriter json;
  json.begin_object();
  write_attrs(json, "options", options);
  json.end_object();
  return std::move(json).take();
}

struct Options {
  std::string_view name;
  std::string (*write)();
};
static constexpr Options kOptions[] = {
    {"options.env", [] { return schema_of_options(env_options()); }},
    {"options.compile", [] { return schema_of_options(compile_options()); }},
    {"options.import", [] { return schema_of_options(import_options()); }},
    {"options.model", [] { return schema_of_options(policy_options()); }},
};

static constexpr std::string_view kSchemas =
    "ops, op.<name>, options.env, options.compile, options.import, options.model";

static Result<std::string> schema(std::string_view what, Devices devices) {
  if (what == "ops") return schema_of_ops(op_table(), devices);
  if (what.starts_with("op."))
    if (const OpInfo* info = find_public_op(what.substr(3))) return schema_of_op(*info, devices);
  for (const Options& options : kOptions)
    if (options.name == what) return options.write();
  std::string hint = what.starts_with("op.") ? op_table().suggestion(std::string(what.substr(3))) : "";
  return Status(Code::kNotFound, format("no schema '{}'{}", what, hint.empty() ? format(", only {}", kSchemas) : hint))
      .with("value", what)
      .with("expected", kSchemas);
}

}  // namespace rlx::capi

rlx_status_t* rlx_schema(const rlx_env_t* env, const char* what, rlx_blob_t** json) {
  return guard({cleared(json, "json"), handle(env, "env"), {what, "what"}}, [&]() -> Status {
    std::string text = RLX_TRY(schema(what, env->env->devices()));
    *json = new rlx_blob(std::move(text));
    return {};
  });
}
