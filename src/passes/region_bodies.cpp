// SPDX-License-Identifier: Apache-2.0
#include "passes/region_bodies.h"

#include <algorithm>

#include "base/hash.h"
#include "ir/symbols.h"
#include "passes/graph_copy.h"

namespace rlx {

// Where a member reads a value from: an input, another member, or (kOutside) a constant or nothing.
static constexpr uint32_t kOutside = UINT32_MAX;

static uint32_t source_of(const RegionParts& parts, Value value) {
  auto input = std::find(parts.inputs.begin(), parts.inputs.end(), value);
  if (input != parts.inputs.end()) return static_cast<uint32_t>(input - parts.inputs.begin());
  auto member = std::lower_bound(parts.members.begin(), parts.members.end(), value.node);
  if (member == parts.members.end() || *member != value.node) return kOutside;
  return static_cast<uint32_t>(parts.inputs.size() + static_cast<size_t>(member - parts.members.begin()));
}

std::vector<uint32_t> RegionBodies::sources_of(const RegionParts& parts) const {
  std::vector<uint32_t> sources;
  for (uint32_t member : parts.members)
    for (Value value : graph_.node(member).in) sources.push_back(source_of(parts, value));
  return sources;
}

static size_t hash_of(const ValueType& type) {
  size_t seed = static_cast<size_t>(type.dtype);
  for (const Dim& dim : type.dims) seed = hash_mix(seed, dim.hash());
  return seed;
}

size_t RegionBodies::hash_of(const Region& region) const {
  size_t seed = region.parts.members.size();
  for (Value input : region.parts.inputs) seed = hash_mix(seed, rlx::hash_of(graph_.type(input)));
  const uint32_t* source = region.sources.data();
  for (uint32_t member : region.parts.members) {
    const Node& node = graph_.node(member);
    seed = hash_mix(hash_mix(seed, static_cast<size_t>(node.op)), node.attrs.hash());
    for (Value value : node.in) {
      bool is_constant = *source == kOutside && present(value);
      seed = hash_mix(seed, is_constant ? graph_.node(value).attrs.hash() : *source);
      source++;
    }
  }
  return seed;
}

// Of two reads from neither inputs nor members: both of nothing, or of equal constants.
bool RegionBodies::same_outside(Value a, Value b) const {
  if (!present(a) || !present(b)) return present(a) == present(b);
  return graph_.node(a).attrs == graph_.node(b).attrs;
}

bool RegionBodies::same(const Region& a, const Region& b) const {
  const RegionParts &of_a = a.parts, &of_b = b.parts;
  auto same_type = [&](Value x, Value y) { return graph_.type(x) == graph_.type(y); };
  if (of_a.members.size() != of_b.members.size() || a.sources != b.sources) return false;
  if (!std::ranges::equal(of_a.inputs, of_b.inputs, same_type)) return false;
  const uint32_t* source = a.sources.data();
  for (size_t i = 0; i < of_a.members.size(); i++) {
    const Node &x = graph_.node(of_a.members[i]), &y = graph_.node(of_b.members[i]);
    if (x.op != y.op || !(x.attrs == y.attrs) || x.out[0] != y.out[0] || x.in.size() != y.in.size()) return false;
    for (size_t k = 0; k < x.in.size(); k++)
      if (*source++ == kOutside && !same_outside(x.in[k], y.in[k])) return false;
  }
  return true;
}

Status RegionBodies::share_symbols_of(const RegionParts& parts, Graph& body) const {
  if (graph_.symbols().empty() && !graph_.around()) return {};
  for (uint32_t member : parts.members) RLX_TRY(share_symbols(graph_, graph_.node(member), body));
  for (Value value : parts.inputs) RLX_TRY(share_symbols(graph_, graph_.type(value).dims, body));
  return {};
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
  RLX_TRY(share_symbols_of(parts, *body));
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
  std::vector<uint32_t> sources = sources_of(parts);
  Region region{std::move(parts), std::move(sources)};
  size_t hash = hash_of(region);
  auto [first, last] = made_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (same(it->second.region, region)) return it->second.body;
  auto body = RLX_TRY(make(region.parts));
  made_.emplace(hash, Made{std::move(region), body});
  return body;
}

}  // namespace rlx
