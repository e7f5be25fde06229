// SPDX-License-Identifier: Apache-2.0
#include "passes/region_bodies.h"

#include <algorithm>

#include "base/hash.h"
#include "passes/graph_copy.h"

namespace rlx {

// Where a member reads a value from: an input, another member, or (kOutside) a constant or nothing.
static constexpr uint32_t kOutside = UINT32_MAX;

uint32_t RegionBodies::source_of(const RegionParts& parts, Value value) const {
  auto input = std::find(parts.inputs.begin(), parts.inputs.end(), value);
  if (input != parts.inputs.end()) return static_cast<uint32_t>(input - parts.inputs.begin());
  auto member = std::lower_bound(parts.members.begin(), parts.members.end(), value.node);
  if (member == parts.members.end() || *member != value.node) return kOutside;
  return static_cast<uint32_t>(parts.inputs.size() + static_cast<size_t>(member - parts.members.begin()));
}

static size_t hash_of(const ValueType& type) {
  size_t seed = static_cast<size_t>(type.dtype);
  for (const Dim& dim : type.dims) seed = hash_mix(seed, dim.hash());
  return seed;
}

size_t RegionBodies::hash_of(const RegionParts& parts) const {
  size_t seed = parts.members.size();
  for (Value input : parts.inputs) seed = hash_mix(seed, rlx::hash_of(graph_.type(input)));
  for (uint32_t member : parts.members) {
    const Node& node = graph_.node(member);
    seed = hash_mix(hash_mix(seed, static_cast<size_t>(node.op)), node.attrs.hash());
    for (Value value : node.in) {
      uint32_t source = source_of(parts, value);
      bool is_constant = source == kOutside && present(value);
      seed = hash_mix(seed, is_constant ? graph_.node(value).attrs.hash() : source);
    }
  }
  return seed;
}

bool RegionBodies::same_reads(const RegionParts& a, const RegionParts& b, size_t member) const {
  const auto &of_a = graph_.node(a.members[member]).in, &of_b = graph_.node(b.members[member]).in;
  auto same_read = [&](Value x, Value y) {
    uint32_t source = source_of(a, x);
    if (source != source_of(b, y) || present(x) != present(y)) return false;
    if (source != kOutside || !present(x)) return true;
    return graph_.node(x).attrs == graph_.node(y).attrs;  // of constants
  };
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), same_read);
}

bool RegionBodies::same(const RegionParts& a, const RegionParts& b) const {
  auto same_type = [&](Value x, Value y) { return graph_.type(x) == graph_.type(y); };
  if (!std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same_type)) return false;
  if (a.members.size() != b.members.size()) return false;
  for (size_t i = 0; i < a.members.size(); i++) {
    const Node &x = graph_.node(a.members[i]), &y = graph_.node(b.members[i]);
    if (x.op != y.op || !(x.attrs == y.attrs) || x.out[0] != y.out[0] || !same_reads(a, b, i)) return false;
  }
  return true;
}

// Declares the symbols that the region names, with their ranges.
Status RegionBodies::declare_symbols(const RegionParts& parts, Graph& body) const {
  Status status;
  if (graph_.symbols().empty() && !graph_.around()) return status;
  auto declare = [&](const std::string& symbol) {
    if (status.ok()) status = body.declare_symbol(symbol, graph_.symbol_range(symbol));
  };
  for (uint32_t member : parts.members) visit_symbols(graph_.node(member), declare);
  for (Value value : parts.inputs)
    for (const Dim& dim : graph_.type(value).dims) visit_symbols(dim, declare);
  return status;
}

// The dims that follow from the guards: the body has no guards of its own.
std::vector<Dim> RegionBodies::resolved_dims(Value value) const {
  std::vector<Dim> dims = graph_.type(value).dims;
  for (Dim& dim : dims) dim = graph_.resolved(dim);
  return dims;
}

// Constants are copied with the members that read them. Types are inferred again only if guards have a say in them.
Result<std::shared_ptr<const Graph>> RegionBodies::make(const RegionParts& parts) const {
  auto body = std::make_shared<Graph>("", &graph_.table());
  GraphCopy copy(graph_, *body);
  RLX_TRY(declare_symbols(parts, *body));
  for (size_t i = 0; i < parts.inputs.size(); i++) {
    Value value = parts.inputs[i];
    copy.set(value, RLX_TRY(body->add_input("x" + std::to_string(i), graph_.type(value).dtype, resolved_dims(value))));
  }
  bool types_are_known = graph_.guards().empty() && !graph_.around();
  for (uint32_t member : parts.members) {
    for (Value value : graph_.node(member).in) RLX_TRY(copy.copy_cone(value));
    if (types_are_known)
      copy.copy_keeping_types(member);
    else
      RLX_TRY(copy.copy_inferring_types(member));
  }
  RLX_TRY(body->add_output("y", copy.mapped({parts.members.back(), 0})));
  return std::shared_ptr<const Graph>(std::move(body));
}

Result<std::shared_ptr<const Graph>> RegionBodies::body_of(RegionParts parts) {
  size_t hash = hash_of(parts);
  auto [first, last] = made_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (same(it->second.parts, parts)) return it->second.body;
  auto body = RLX_TRY(make(parts));
  made_.emplace(hash, Made{std::move(parts), body});
  return body;
}

}  // namespace rlx
