// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy.h"

#include <algorithm>
#include <array>

#include "base/check_size.h"
#include "base/contains.h"
#include "base/lasting.h"
#include "base/nearest.h"
#include "compile/aliases.h"
#include "compile/compile.h"
#include "compile/options.h"
#include "ops/attr_defs.h"

namespace rlx {

std::span<const AttrDef> policy_options() {
  using namespace attr_defs;
  static const auto& kOptions = lasting([] {
    return std::to_array<AttrDef>({
        option(strs("chain", {}), "the devices to try in turn"),
        option(strs("allow", {}), "the only devices to use; none: all"),
        option(strs("deny", {}), "the devices not to use"),
        option(within(i64("cache.capacity", static_cast<int64_t>(Policy().capacity)), 1),
               "the most plans that are kept for a device"),
        option(within(opt_i64s("buckets.<symbol>"), 0), "the sizes to plan for: a list, or pow2 for powers of two"),
    });
  });
  return kOptions;
}

// The value as `option` takes it. `key`: the option, or one of its family, as "buckets.n" is.
static Result<AttrValue> checked(std::string_view option, std::string_view key, const AttrValue& value) {
  AttrDef def = *std::ranges::find(policy_options(), option, [](const AttrDef& it) { return stem_of(it.name); });
  def.name = key;
  return coerce(def, value);
}

static constexpr std::string_view kBuckets = "buckets.";

// Empty for pow2.
static Result<std::vector<int64_t>> bucket_ends(std::string_view key, const AttrValue& value) {
  constexpr std::string_view kTakes = "sizes, or pow2";
  auto* text = std::get_if<std::string>(&value);
  if (text && *text == "pow2") return std::vector<int64_t>();
  if (text)
    return Status(Code::kOption, format("'{}' takes {}, not '{}'", key, kTakes, *text))
        .with("value", key)
        .with("expected", kTakes)
        .with("got", *text);
  auto ends = std::get<std::vector<int64_t>>(RLX_TRY(checked(kBuckets, key, value)));
  if (ends.empty())
    return Status(Code::kOption, format("'{}' is an empty list: it takes {}", key, kTakes))
        .with("value", key)
        .with("expected", kTakes)
        .with("got", "[]");
  std::sort(ends.begin(), ends.end());
  return ends;
}

Result<Policy> parse_policy(const NamedAttrs& given, std::span<const std::string_view> others) {
  Policy policy;
  for (const auto& [key, value] : given) {
    auto list = std::ranges::find(kDeviceLists, key, [](const auto& it) { return it.first; });
    if (list != std::end(kDeviceLists)) {
      policy.*list->second = std::get<std::vector<std::string>>(RLX_TRY(checked(key, key, value)));
    } else if (key == "cache.capacity") {
      policy.capacity = static_cast<size_t>(std::get<int64_t>(RLX_TRY(checked(key, key, value))));
    } else if (key.starts_with(kBuckets)) {
      policy.buckets.emplace(key.substr(kBuckets.size()), RLX_TRY(bucket_ends(key, value)));
    } else {
      policy.options.emplace_back(key, value);
    }
  }
  std::vector<std::string_view> beside;
  for (const AttrDef& def : policy_options()) beside.push_back(stem_of(def.name));
  beside.insert(beside.end(), others.begin(), others.end());
  RLX_TRY(parse_compile_options(policy.options, beside));
  return policy;
}

bool lists(const std::vector<std::string>& specs, const Device& device) {
  return std::any_of(specs.begin(), specs.end(),
                     [&](const std::string& spec) { return spec == device.info().name || spec == device.info().kind; });
}

// Whether there is a size of this name, which an option of the family `key` gives.
static Status check_size_name(std::string_view key, const std::string& name, std::span<const std::string_view> known,
                              std::span<const std::string> open_ranks) {
  auto has_size = [&](const std::string& input) { return name.starts_with(input + "."); };
  bool is_known = contains(known, name) || std::ranges::any_of(open_ranks, has_size);
  return is_known ? Status() : no_size(key, name, known);
}

Status check_policy(const Policy& policy, const Env& env, const Graph& graph, std::span<const std::string> open_ranks) {
  auto check_devices = [&](std::string_view key, const std::vector<std::string>& specs) -> Status {
    for (const std::string& spec : specs) {
      bool is_kind = std::any_of(env.devices().begin(), env.devices().end(),
                                 [&](const auto& device) { return lists({spec}, *device); });
      if (!is_kind && (spec.empty() || !env.find_device(spec).ok()))
        return Status(Code::kOption, format("'{}': {}", key, env.no_device(spec).message()))
            .with("value", key)
            .with("device", spec);
    }
    return {};
  };
  for (const auto& [key, specs] : kDeviceLists) RLX_TRY(check_devices(key, policy.*specs));
  CompileOptions options = RLX_TRY(parse_compile_options(policy.options));
  std::vector<std::string_view> of_calls, of_plans = size_names(graph);  // of those, calls give only the graph's own
  for (const auto& [symbol, range] : graph.symbols()) of_calls.push_back(symbol);
  for (const auto& [symbol, ends] : policy.buckets) RLX_TRY(check_size_name(kBuckets, symbol, of_calls, open_ranks));
  for (const auto& [symbol, size] : options.dims) {
    RLX_TRY(check_size_name("dims.", symbol, of_plans, open_ranks));
    RLX_TRY(check_size(symbol, size, graph.symbol_range(symbol)));
  }
  bool has_outputs = !graph.outputs().empty();  // not if only the inputs of a run decide the graph
  if (has_outputs) RLX_TRY(find_aliases(graph, options.alias));
  if (options.drop_weights)
    return Status(Code::kOption,
                  "weights.drop: a model keeps its weights, because it may compile again; rlx_compile can drop them")
        .with("value", "weights.drop");
  return {};
}

Policy without_absent_sizes(Policy policy, const Graph& graph) {
  const std::vector<std::string_view> names = size_names(graph);
  auto is_absent = [&](std::string_view symbol) { return !std::ranges::binary_search(names, symbol); };
  std::erase_if(policy.buckets, [&](const auto& pair) { return is_absent(pair.first); });
  std::erase_if(policy.options, [&](const auto& pair) {
    constexpr std::string_view kDims = "dims.";
    return pair.first.starts_with(kDims) && is_absent(std::string_view(pair.first).substr(kDims.size()));
  });
  return policy;
}

// ---- devices ----

bool allows(const Policy& policy, const Device& device) {
  return !lists(policy.deny, device) && (policy.allow.empty() || lists(policy.allow, device));
}

bool must_be_named(const Device& device) {
  return device.info().kind == "reference" || device.info().kind == "null";
}

std::vector<std::string> allowed(const Policy& policy, const Env& env) {
  auto usual = env.find_device("");
  if (usual.ok() && allows(policy, **usual)) return {(*usual)->info().name};
  for (const std::string& spec : policy.allow)
    for (const auto& device : env.devices())
      if (lists({spec}, *device) && allows(policy, *device)) return {device->info().name};
  for (const auto& device : env.devices())
    if (policy.allow.empty() && allows(policy, *device) && !must_be_named(*device)) return {device->info().name};
  return {};
}

Status none_allowed(const Policy& policy, const Env& env) {
  std::vector<std::string_view> named;
  for (const auto& device : env.devices())
    if (allows(policy, *device) && must_be_named(*device)) named.push_back(device->info().name);
  if (named.empty()) return Status(Code::kUnavailable, "'allow' and 'deny' of the policy leave no device");
  return Status(
      Code::kUnavailable,
      format("the policy leaves no device; {} must be named, by 'allow', 'chain' or the call", listed(named)));
}

}  // namespace rlx
