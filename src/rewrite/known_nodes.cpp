// SPDX-License-Identifier: Apache-2.0
#include "rewrite/known_nodes.h"

#include <algorithm>

#include "base/hash.h"

namespace rlx {

static bool commutes(const OpInfo& info, size_t inputs) {
  return info.is(kCommutative) && inputs == 2;
}

// Every bit of the result depends on all bits of the value: for sums of hashes, and for tables that look at the low
// bits of a hash. The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
// 2014).
static size_t hash_spread(size_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// What an input adds to the sum that is the hash of a node. In a sum, one input can be changed without a look at the
// others.
static size_t hash_of_input(const OpInfo& info, size_t inputs, size_t input, Value value) {
  return hash_spread(hash_mix(hash_mix(key_of(value), 0), commutes(info, inputs) ? 0 : input));
}

size_t KnownNodes::hash_of(const OpInfo& info, std::span<const Value> in, const Attrs& attrs) {
  size_t sum = hash_mix(info.id, attrs.hash());
  for (size_t i = 0; i < in.size(); i++) sum += hash_of_input(info, in.size(), i, in[i]);
  return sum;
}

size_t KnownNodes::hash_with(size_t hash, const OpInfo& info, size_t inputs, const Change& change) {
  auto [input, old, made] = change;
  return hash - hash_of_input(info, inputs, input, old) + hash_of_input(info, inputs, input, made);
}

static bool same_inputs(const OpInfo& info, std::span<const Value> a, std::span<const Value> b) {
  return std::ranges::equal(a, b) || (commutes(info, a.size()) && b.size() == 2 && a[0] == b[1] && a[1] == b[0]);
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
