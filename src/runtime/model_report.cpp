// SPDX-License-Identifier: Apache-2.0
// Reports of a model: its devices, plans and bindings, and the benchmark of its devices.
#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "ir/text.h"
#include "runtime/special.h"

namespace rlx {

// The time of each run after the first, sorted.
Result<std::vector<double>> Model::times_on(std::string_view device, std::span<const std::string_view> in_names,
                                            std::span<const Tensor> in, int runs) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = -1; i < runs; i++) {
    if (i >= 0) RLX_TRY(env_->host()->progress("benchmark", static_cast<double>(i) / runs));
    auto start = Clock::now();
    RLX_TRY(run(device, in_names, in, {}, graph_.outputs().size()));
    if (i >= 0) times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times;
}

Result<std::string> Model::benchmark(std::span<const std::string_view> in_names, std::span<const Tensor> in, int runs) {
  if (runs < 1)
    return Status(Code::kInvalidArgument, format("a benchmark needs at least one run, not {}", runs))
        .with("expected", "at least 1")
        .with("got", std::to_string(runs));
  if (!not_general_.ok())
    return RLX_TRY(special_->find(*this, in_names, in, Serves::kAllSizes))->benchmark(in_names, in, runs);
  JsonWriter json;
  json.begin_array();
  for (Device* device : viable()) {
    const std::string& name = device->info().name;
    json.begin_object().member("device", std::string_view(name));
    auto times = times_on(name, in_names, in, runs);
    bool is_hosts =
        !times.ok() && (times.status().code() == Code::kCancelled || times.status().code() == Code::kCallback);
    if (is_hosts) return std::move(times).status();  // says nothing of the device
    if (times.ok())
      json.member("median_seconds", (*times)[times->size() / 2]).member("best_seconds", times->front()).end_object();
    else
      json.member("failed", times.status().message()).end_object();
  }
  json.end_array();
  return std::move(json).take();
}

static void write_leaves(JsonWriter& json, const char* key, const Model& model, std::span<const uint32_t> leaves) {
  const Graph& graph = model.graph();
  json.key(key).begin_array();
  for (uint32_t leaf : leaves) {
    const ValueType& type = graph.node(leaf).out[0];
    std::string text = text_of(type);
    if (model.has_open_rank(graph.leaf_name(leaf))) text.insert(text.find(']'), "...");
    json.begin_object()
        .member("name", std::string_view(graph.leaf_name(leaf)))
        .member("type", std::string_view(text))
        .end_object();
  }
  json.end_array();
}

std::string Model::bindings_json() const {
  JsonWriter json;
  json.begin_object();
  write_leaves(json, "inputs", *this, graph_.inputs());
  write_leaves(json, "params", *this, graph_.params());
  json.key("outputs").begin_array();
  for (const GraphOutput& output : graph_.outputs())
    json.begin_object()
        .member("name", std::string_view(output.name))
        .member("type", std::string_view(text_of(graph_.type(output.value))))
        .end_object();
  json.end_array().end_object();
  return std::move(json).take();
}

static Result<std::string> devices_json(const Env& env, const Graph& graph) {
  JsonWriter json;
  json.begin_array();
  for (const auto& device : env.devices()) {
    auto source = compile(graph, *device, {});
    if (source.status().code() == Code::kNoMemory) return source.status();
    json.begin_object()
        .member("name", std::string_view(device->info().name))
        .member("description", std::string_view(device->info().description))
        .member("supports", source.ok());
    if (!source.ok()) json.member("blocker", source.status().message());
    json.end_object();
  }
  json.end_array();
  return std::move(json).take();
}

static void write_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& list) {
  json.key(key).begin_array();
  for (const std::string& item : list) json.value(std::string_view(item));
  json.end_array();
}

std::string Model::special_json() const {
  JsonWriter json;
  json.begin_object();
  if (!not_general_.ok()) json.member("why", not_general_.message());
  write_strings(json, "static", special_ ? special_->static_inputs() : std::vector<std::string>());
  if (!open_ranks_.empty()) write_strings(json, "ranks", open_ranks_);
  json.member("models", uint64_t{special_ ? special_->count() : 0}).end_object();
  return std::move(json).take();
}

static void write_policy(JsonWriter& json, const Policy& policy) {
  json.begin_object();
  for (const auto& [key, specs] : kDeviceLists) write_strings(json, key, policy.*specs);
  json.member("cache.capacity", uint64_t{policy.capacity});
  for (const auto& [symbol, ends] : policy.buckets)
    ends.empty() ? json.member("buckets." + symbol, "pow2")
                 : json.member("buckets." + symbol, std::span<const int64_t>(ends));
  json.end_object();
}

static void write_plan(JsonWriter& json, std::string_view device, const Plan& plan) {
  json.begin_object().member("device", device);
  json.member("arena", plan.arena_bytes).key("sizes").begin_object();
  for (const PlanSymbol& symbol : plan.symbols) json.member(symbol.name, symbol.upper);
  json.end_object().end_object();
}

Result<std::string> Model::report(std::string_view what) const {
  if (what == "bindings") return bindings_json();
  if (what == "devices") {
    RLX_TRY(check_general());
    return devices_json(*env_, graph_);
  }
  if (what == "special") return special_json();
  if (what == "text" && !open_ranks_.empty()) return Status(not_general_);
  if (what == "text") return print(graph_);
  std::lock_guard lock(mutex_);
  JsonWriter json;
  if (what == "policy") {
    write_policy(json, *policy_);
  } else if (what == "cache") {
    json.begin_array();
    for (const auto& on : devices_)
      for (const auto& program : on->programs) write_plan(json, on->device->info().name, program->plan());
    json.end_array();
  } else {
    return Status(Code::kNotFound, "a model has no report '" + std::string(what) +
                                       "', only policy, cache, bindings, devices, special, text")
        .with("value", what);
  }
  return std::move(json).take();
}

}  // namespace rlx
