// SPDX-License-Identifier: Apache-2.0
// How the graph of a Workspace changes: nodes are built, users are rewired, unused nodes die, equal nodes merge, and
// nodes that may match now are queued.
#include <deque>

#include "ir/outputs.h"
#include "rewrite/workspace.h"

namespace rlx {

// ---- building ----

Result<std::vector<Value>> Workspace::add_hook(void* self, const OpInfo& info, std::span<const Value> in, Attrs attrs,
                                               std::string name) {
  auto* workspace = static_cast<Workspace*>(self);
  return outputs_of(workspace->graph_, RLX_TRY(workspace->add(info, in, std::move(attrs), std::move(name))));
}

Result<uint32_t> Workspace::add(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name) {
  while (!in.empty() && in.back() == kAbsent) in = in.first(in.size() - 1);
  bool mergeable = KnownNodes::is_mergeable(info, attrs);
  if (mergeable)
    if (uint32_t node = known_.find(KnownNodes::hash_of(info, in, attrs), info, in, attrs); node != KnownNodes::kNone)
      return node;
  Graph::Mark mark = graph_.mark();
  uint32_t node = RLX_TRY(graph_.add(info, in, std::move(attrs), std::move(name))).node;
  const Attrs& normal = graph_.node(node).attrs;
  size_t hash = KnownNodes::hash_of(info, in, normal);
  if (mergeable)
    if (uint32_t same = known_.find(hash, info, in, normal); same != KnownNodes::kNone) {
      graph_.roll_back(mark);
      return same;
    }
  add_state(node, position_);
  facts_.extend();
  states_[node].hash = hash;
  if (mergeable) remember(node);
  return node;
}

void Workspace::add_state(uint32_t node, uint32_t position) {
  states_.push_back({.position = position});
  note_op(graph_.node(node).op);
  uses_.add_node(node, graph_.node(node).in.size(), graph_.node(node).out.size());
}

void Workspace::remember(uint32_t node) {
  known_.insert(states_[node].hash, node);
  states_[node].known = true;
}

void Workspace::forget(uint32_t node) {
  if (states_[node].known) known_.erase(states_[node].hash, node);
  states_[node].known = false;
}

// ---- liveness ----

// Makes the node live, with all that it reads: they count as users from now on.
void Workspace::acquire(uint32_t node) {
  std::vector<uint32_t> pending;
  auto make_live = [&](uint32_t it) {
    if (states_[it].live) return;
    states_[it].live = true;
    pending.push_back(it);
  };
  make_live(node);
  while (!pending.empty()) {
    uint32_t it = pending.back();
    pending.pop_back();
    const auto& in = graph_.node(it).in;
    for (size_t i = 0; i < in.size(); i++) {
      if (!present(in[i])) continue;
      uses_.link(it, i, in[i]);
      lower_position(in[i].node, states_[it].position);
      make_live(in[i].node);
    }
  }
}

// Removes the node, and what only it has read.
void Workspace::release(uint32_t node) {
  constexpr uint32_t kFewUses = 4;  // a value with more uses is inside no match
  std::vector<uint32_t> dying{node};
  states_[node].live = false;
  while (!dying.empty()) {
    uint32_t it = dying.back();
    dying.pop_back();
    forget(it);
    const auto& in = graph_.node(it).in;
    for (size_t i = 0; i < in.size(); i++) {
      if (!present(in[i])) continue;
      uint32_t used = in[i].node;
      uses_.unlink(it, i, in[i]);
      if (uses_.count(used) == 0 && states_[used].pins == 0 && states_[used].live) {
        states_[used].live = false;
        dying.push_back(used);
      } else if (uses_.count(used) <= kFewUses) {
        freed_.push_back(used);
      }
    }
  }
}

void Workspace::lower_position(uint32_t node, uint32_t position) {
  std::vector<uint32_t> waiting{node};
  while (!waiting.empty()) {
    uint32_t it = waiting.back();
    waiting.pop_back();
    bool stays = graph_.info(graph_.node(it)).is(kInterface);  // inputs and params keep their order
    if (stays || states_[it].position <= position) continue;
    states_[it].position = position;
    for (Value in : graph_.node(it).in)
      if (present(in)) waiting.push_back(in.node);
  }
}

// ---- rewiring ----

// Turns every use of `old` into a use of `made`, which equals it.
void Workspace::replace(Value old, Value made) {
  if (old == made || !states_[old.node].live) return;
  std::vector<std::pair<uint32_t, uint32_t>> uses;
  uses_.all_of(old, [&](uint32_t user, uint32_t input) {
    if (user != made.node && user < first_new_) uses.emplace_back(user, input);
    return true;
  });
  acquire(made.node);
  for (auto [user, input] : uses) {
    forget(user);
    uses_.unlink(user, input, old);
    graph_.set_input(user, input, made);
    uses_.link(user, input, made);
    to_merge_.push_back(user);
    rewired_.push_back(user);
  }
  rewire_outputs(old, made);
  improve_users(old, made);
  if (uses_.count(old.node) == 0 && states_[old.node].pins == 0 && states_[old.node].live) release(old.node);
}

void Workspace::rewire_outputs(Value old, Value made) {
  std::vector<uint32_t> moved;
  auto [first, last] = outputs_of_.equal_range(key_of(old));
  for (auto at = first; at != last; ++at) moved.push_back(at->second);
  outputs_of_.erase(first, last);
  for (uint32_t output : moved) {
    graph_.set_output(output, made);
    outputs_of_.emplace(key_of(made), output);
    states_[made.node].pins++;
    states_[old.node].pins--;
  }
}

// A node with changed inputs gets another hash. If it equals another node now, it becomes that node.
void Workspace::merge_equals() {
  while (!to_merge_.empty()) {
    uint32_t node = to_merge_.back();
    to_merge_.pop_back();
    const Node& it = graph_.node(node);
    const OpInfo& info = graph_.info(it);
    if (!states_[node].live || states_[node].known || !KnownNodes::is_mergeable(info, it.attrs)) continue;
    states_[node].hash = KnownNodes::hash_of(info, it.in, it.attrs);
    uint32_t same = known_.find(states_[node].hash, info, it.in, it.attrs);
    if (same == KnownNodes::kNone) {
      remember(node);
      continue;
    }
    lower_position(same, states_[node].position);
    for (uint32_t i = 0; i < it.out.size(); i++) replace({node, i}, {same, i});
  }
}

// Facts stay true after a replacement. If more is known of the new value than of the old one, the facts of its users
// are computed again, and then those of their users. A phase can improve only twice, so a node counts as improved at
// most twice, and the walk ends.
void Workspace::improve_users(Value old, Value made) {
  bool is_better =
      facts_.phase(made.node) < facts_.phase(old.node) || (facts_.knows_more(made) && !facts_.knows_more(old));
  if (!is_better) return;
  std::vector<uint32_t> improved{made.node};
  while (!improved.empty()) {
    uint32_t node = improved.back();
    improved.pop_back();
    uses_.all_of(node, [&](uint32_t user, uint32_t) {
      if (states_[user].improved < 2 && facts_.find_again(user)) {
        states_[user].improved++;
        improved.push_back(user);
        enqueue(user);
      }
      return true;
    });
  }
}

// ---- the worklist ----

void Workspace::enqueue(uint32_t node) {
  if (states_[node].queued || !states_[node].live) return;
  const Node& it = graph_.node(node);
  if (rules_.at(it.op).empty() && !(options_.expands && !graph_.info(it).primitive())) return;
  states_[node].queued = true;
  queue_.push({states_[node].position, node});
}

// Queues every node whose rules may see a change: a node below that reads another value now, or one that has lost a
// use. The walk goes up from the changes, as far as rules look down. Casts and views do not count as distance, up to
// kMaxFree of them on a path. One walk serves all changes, because thousands of them may lie below one node.
void Workspace::enqueue_above_changes() {
  constexpr size_t kMaxFree = 8;
  struct Seen {
    uint32_t node;
    int distance;
    size_t free;
  };
  stamps_.resize(graph_.nodes().size(), 0);
  walk_++;
  std::deque<Seen> seen;  // by distance
  auto see_above = [&](uint32_t user, const Seen& below) {
    Op op = graph_.node(user).op;
    if (rules_.depth(op) > below.distance) enqueue(user);
    bool is_free = (graph_.info(op).is(kView) || op == Op::kCast) && below.free < kMaxFree;
    if (stamps_[user] == walk_) return;
    if (is_free)
      seen.push_front({user, below.distance, below.free + 1});
    else if (below.distance + 1 < rules_.depth())
      seen.push_back({user, below.distance + 1, below.free});
  };
  for (uint32_t node : freed_) seen.push_front({node, 0, 0});
  for (uint32_t node : rewired_) see_above(node, {.node = node, .distance = 0, .free = 0});
  freed_.clear();
  rewired_.clear();
  while (!seen.empty()) {
    const Seen below = seen.front();
    seen.pop_front();
    if (stamps_[below.node] == walk_) continue;
    stamps_[below.node] = walk_;
    uses_.all_of(below.node, [&](uint32_t user, uint32_t) {
      see_above(user, below);
      return true;
    });
  }
}

}  // namespace rlx
