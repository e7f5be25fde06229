// SPDX-License-Identifier: Apache-2.0
// What the caller of a model has decided: the options of its compilation, its devices, ranges of sizes, how many plans.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "runtime/env.h"

namespace rlx {

struct Policy {
  NamedAttrs options;                                                // of compilation
  std::vector<std::string> chain, allow, deny;                       // device specs; chain: in order
  std::map<std::string, std::vector<int64_t>, std::less<>> buckets;  // by symbol; an empty list means powers of two
  size_t capacity = 8;                                               // plans per device; the oldest goes first
};
// The options that list devices.
inline constexpr std::pair<std::string_view, std::vector<std::string> Policy::*> kDeviceLists[] = {
    {"chain", &Policy::chain}, {"allow", &Policy::allow}, {"deny", &Policy::deny}};

std::span<const AttrDef> policy_options();  // those that are no options of compilation
// `others` as those of parse_compile_options.
Result<Policy> parse_policy(const NamedAttrs& given, std::span<const std::string_view> others = {});

// Refuses unknown devices and symbols: a typing error would otherwise have no effect. `open_ranks`: inputs of unknown
// rank, which have sizes "<input>.<axis>".
Status check_policy(const Policy& policy, const Env& env, const Graph& graph, std::span<const std::string> open_ranks);

// Drops the options for symbols that this graph does not have, because numbers replace them.
Policy without_absent_sizes(Policy policy, const Graph& graph);

// ---- devices ----

bool lists(const std::vector<std::string>& specs, const Device& device);  // by its name or its kind
bool allows(const Policy& policy, const Device& device);
bool must_be_named(const Device& device);  // it computes slowly, or nothing: a policy uses it only if it names it

// The devices to try if neither the call nor a chain names one: the default device, else the first that the policy
// allows.
std::vector<std::string> allowed(const Policy& policy, const Env& env);
Status none_allowed(const Policy& policy, const Env& env);

}  // namespace rlx
