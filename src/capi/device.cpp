// SPDX-License-Identifier: Apache-2.0
// rlx_device_*: what a device is, and what it supports.
#include <charconv>
#include <string>

#include "base/nearest.h"
#include "capi/attrs.h"
#include "capi/blob.h"
#include "capi/env.h"
#include "capi/graph.h"
#include "capi/guard.h"
#include "compile/compile.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

Result<std::string_view> device_spec(const rlx_env& env, const char* spec) {
  if (spec && !*spec) return env.env->no_device("").suffixed("; NULL is the default one");
  return std::string_view(spec ? spec : "");
}

Result<Device*> device_of(const rlx_env& env, const rlx_device_t* device) {
  if (!device) return env.env->find_device("");
  RLX_TRY(same_env(&env, device->env, "device"));
  return device->device;
}

// "name", "kind", "description", or a capability.
static Result<const std::string*> property(const DeviceInfo& info, std::string_view key) {
  if (key == "name") return &info.name;
  if (key == "kind") return &info.kind;
  if (key == "description") return &info.description;
  std::vector<std::string_view> known{"name", "kind", "description"};
  for (const auto& [name, value] : info.capabilities) {
    if (name == key) return &value;
    known.push_back(name);
  }
  return Status(Code::kNotFound, format("the device '{}' has no '{}'{}", info.name, key, only(known)))
      .with("device", info.name)
      .with("value", key)
      .with("expected", listed(known));
}

}  // namespace rlx::capi

size_t rlx_env_device_count(const rlx_env_t* env) {
  return guard_value(0, {handle(env, "env")}, [&] { return env->devices.size(); });
}

const rlx_device_t* rlx_env_device(const rlx_env_t* env, size_t index) {
  return guard_value(nullptr, {handle(env, "env")}, [&]() -> const rlx_device_t* {
    return index < env->devices.size() ? &env->devices[index] : nullptr;
  });
}

rlx_status_t* rlx_env_find_device(const rlx_env_t* env, const char* spec, const rlx_device_t** out) {
  return guard({cleared(out, "out"), handle(env, "env")}, [&]() -> Status {
    *out = env->handle_of(RLX_TRY(env->env->find_device(RLX_TRY(device_spec(*env, spec)))));
    return {};
  });
}

const char* rlx_device_name(const rlx_device_t* device) {
  return guard_value(nullptr, {handle(device, "device")}, [&] { return device->device->info().name.c_str(); });
}

rlx_status_t* rlx_device_get_i64(const rlx_device_t* device, const char* key, int64_t* out) {
  return guard({cleared(out, "out"), handle(device, "device"), {key, "key"}}, [&]() -> Status {
    const std::string& text = *RLX_TRY(property(device->device->info(), key));
    int64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      return Status(Code::kNotFound, format("'{}' is '{}', not a number", key, text))
          .with("value", key)
          .with("expected", "a number")
          .with("got", text);
    *out = number;
    return {};
  });
}

rlx_status_t* rlx_device_get_str(const rlx_device_t* device, const char* key, const char** out) {
  return guard({cleared(out, "out"), handle(device, "device"), {key, "key"}}, [&]() -> Status {
    *out = RLX_TRY(property(device->device->info(), key))->c_str();
    return {};
  });
}

rlx_status_t* rlx_device_supports(const rlx_device_t* device, const rlx_graph_t* graph, const rlx_attrs_t* options,
                                  rlx_blob_t** json) {
  return guard({cleared(json, "json"), handle(device, "device"), handle(graph, "graph")}, [&]() -> Status {
    if (!graph->status.ok()) return graph->status;
    RLX_TRY(same_env(device->env, graph->env.get(), "graph"));
    auto chosen = RLX_TRY(parse_compile_options(RLX_TRY(values_of(options, device->env))));
    RLX_TRY(check_options(graph->graph, chosen));
    Device* fallback = device->env->env->fallback_of(*device->device);
    *json = new rlx_blob(dispatch_report(graph->graph, *device->device, chosen, fallback));
    return {};
  });
}
