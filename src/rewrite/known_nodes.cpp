// SPDX-License-Identifier: Apache-2.0
#include "rewrite/known_nodes.h"

#include <algorithm>

#include "base/hash.h"

namespace rlx {

static bool commutes(const OpInfo& info, std::span<const Value> in) {
  return info.is(kCommutative) && in.size() == 2;
}

size_t KnownNodes::hash_of(const OpInfo& info, std::span<const Value> in, const Attrs& attrs) {
  size_t seed = hash_mix(info.id, attrs.hash());
  auto add = [&](Value value) { seed = hash_mix(seed, key_of(value)); };
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
    if (slots_[at].hash != hash) continue;
    const Node& node = graph_.node(slots_[at].node);
    if (node.op == info.op() && same_inputs(info, in, node.in) && node.attrs == attrs) return slots_[at].node;
  }
  return kNone;
}

void KnownNodes::fill(const Slot& slot) {
  size_t mask = slots_.size() - 1, at = slot.hash & mask;
  while (slots_[at].node != kEmpty) at = (at + 1) & mask;
  slots_[at] = slot;
}

void KnownNodes::insert(size_t hash, uint32_t node) {
  if (2 * ++used_ > slots_.size()) {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.node != kEmpty) fill(slot);
  }
  fill({hash, node});
}

// Entries after the gap move into it, if they then stand no earlier than where their hash says (Knuth, The Art of
// Computer Programming 6.4, algorithm R).
void KnownNodes::erase(size_t hash, uint32_t node) {
  size_t mask = slots_.size() - 1, gap = hash & mask;
  while (slots_[gap].node != node && slots_[gap].node != kEmpty) gap = (gap + 1) & mask;
  if (slots_[gap].node == kEmpty) return;
  for (size_t at = (gap + 1) & mask; slots_[at].node != kEmpty; at = (at + 1) & mask) {
    size_t home = slots_[at].hash & mask;
    if (((at - home) & mask) < ((at - gap) & mask)) continue;
    slots_[gap] = slots_[at];
    gap = at;
  }
  slots_[gap] = {};
  used_--;
}

}  // namespace rlx
