// SPDX-License-Identifier: Apache-2.0
#include "rewrite/known_nodes.h"

#include <algorithm>

namespace rlx {

static bool commutes(const OpInfo& info, std::span<const Value> in) {
  return info.is(kCommutative) && in.size() == 2;
}

size_t KnownNodes::hash_of(const OpInfo& info, std::span<const Value> in, const Attrs& attrs) {
  size_t seed = info.id * size_t{0x9e3779b97f4a7c15u} ^ attrs.hash();
  auto add = [&](Value value) {
    seed = (seed ^ (value.node * size_t{31} + value.output)) * 0x9e3779b97f4a7c15u + (seed >> 32);
  };
  if (commutes(info, in))
    add(std::min(in[0], in[1])), add(std::max(in[0], in[1]));
  else
    std::for_each(in.begin(), in.end(), add);
  return seed ^ (seed >> 29);
}

static bool same_inputs(const OpInfo& info, std::span<const Value> a, std::span<const Value> b) {
  return std::ranges::equal(a, b) || (commutes(info, a) && commutes(info, b) && a[0] == b[1] && a[1] == b[0]);
}

uint32_t KnownNodes::find(size_t hash, const OpInfo& info, std::span<const Value> in, const Attrs& attrs) const {
  size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].node != kEmpty; at = (at + 1) & mask) {
    if (slots_[at].hash != hash || slots_[at].node == kErased) continue;
    const Node& node = graph_.node(slots_[at].node);
    if (node.op == info.op() && same_inputs(info, in, node.in) && node.attrs == attrs) return slots_[at].node;
  }
  return kNone;
}

void KnownNodes::insert(size_t hash, uint32_t node) {
  if (2 * (used_ + 1) > slots_.size()) grow();
  size_t mask = slots_.size() - 1, at = hash & mask;
  while (slots_[at].node != kEmpty) at = (at + 1) & mask;
  slots_[at] = {hash, node};
  used_++;
  alive_++;
}

void KnownNodes::erase(size_t hash, uint32_t node) {
  size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].node != kEmpty; at = (at + 1) & mask) {
    if (slots_[at].node != node) continue;
    slots_[at].node = kErased;
    alive_--;
    return;
  }
}

void KnownNodes::grow() {
  std::vector<Slot> old(4 * (alive_ + 1) > slots_.size() ? 2 * slots_.size() : slots_.size());
  old.swap(slots_);
  used_ = alive_;
  size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.node == kEmpty || slot.node == kErased) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].node != kEmpty) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace rlx
