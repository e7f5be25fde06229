// SPDX-License-Identifier: Apache-2.0
// How the graph of a Workspace changes: nodes are built, users are rewired, unused nodes die, equal nodes merge, and
// nodes that may match now are queued.
#include "rewrite/workspace.h"

namespace rlx {

// ---- building ----

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
  states_[node].mergeable = mergeable;
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
  states_[node].in_table = true;
}

void Workspace::forget(uint32_t node) {
  if (states_[node].in_table) known_.erase(states_[node].hash, node);
  states_[node].in_table = false;
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
    graph_.drop_bytes(it);
    const auto& in = graph_.node(it).in;
    for (size_t i = 0; i < in.size(); i++) {
      if (!present(in[i])) continue;
      uint32_t used = in[i].node;
      uses_.unlink(it, i, in[i]);
      if (uses_.count(used) == 0 && states_[used].pins == 0 && states_[used].live) {
        states_[used].live = false;
        dying.push_back(used);
      } else if (uses_.count(used) <= kFewUses) {
        announce(used, {.distance = 0});
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

// Turns every use of `old` into a use of `made`, which equals it. Nodes from `first_new` on keep their inputs.
void Workspace::replace(Value old, Value made, uint32_t first_new) {
  if (old == made || !states_[old.node].live) return;
  std::vector<std::pair<uint32_t, uint32_t>> uses;
  uses_.all_of(old, [&](uint32_t user, uint32_t input) {
    if (user != made.node && user < first_new) uses.emplace_back(user, input);
    return true;
  });
  acquire(made.node);
  const News news{.distance = 0, .is_operand_better = !uses.empty() && is_better(made, old)};
  for (auto [user, input] : uses) {
    set_input(user, input, made);
    to_merge_.push_back(user);
    hear(user, news);
  }
  rewire_outputs(old, made);
  if (uses_.count(old.node) == 0 && states_[old.node].pins == 0 && states_[old.node].live) release(old.node);
}

// Takes constant time, whatever the number of inputs.
void Workspace::set_input(uint32_t node, uint32_t input, Value made) {
  const Node& it = graph_.node(node);
  const Value old = it.in[input];
  forget(node);
  uses_.unlink(node, input, old);
  states_[node].hash = KnownNodes::hash_with(states_[node].hash, graph_.info(it), it.in.size(), {input, old, made});
  graph_.set_input(node, input, made);
  uses_.link(node, input, made);
}

// Facts stay true after a replacement. If more is known of the new value than of the old one, more may be known of its
// users, and then of theirs.
bool Workspace::is_better(Value made, Value old) {
  return facts_.phase(made.node) < facts_.phase(old.node) || (facts_.knows_more(made) && !facts_.knows_more(old));
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

// If a node with changed inputs equals another node now, it becomes that node.
void Workspace::merge_equals() {
  while (!to_merge_.empty()) {
    uint32_t node = to_merge_.back();
    to_merge_.pop_back();
    const Node& it = graph_.node(node);
    const OpInfo& info = graph_.info(it);
    if (!states_[node].live || states_[node].in_table || !states_[node].mergeable) continue;
    uint32_t same = known_.find(states_[node].hash, info, it.in, it.attrs);
    if (same == KnownNodes::kNone) {
      remember(node);
      continue;
    }
    lower_position(same, states_[node].position);
    for (uint32_t i = 0; i < it.out.size(); i++) replace({node, i}, {same, i});
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

// ---- news of changes ----
// A change is heard by each node whose rules may see it: a node below reads another value now, or has lost a use. News
// goes up as far as rules look down, and better facts go on from there. It waits in each node until the loop comes to
// it, or to its end if it has passed the node, so that thousands of changes below one node are told to its users once.

// The node may match now, and has something to tell.
void Workspace::hear(uint32_t node, const News& below) {
  heard_++;
  Op op = graph_.node(node).op;
  if (rules_.depth(op) > below.distance || below.is_operand_better) enqueue(node);
  bool is_free = (graph_.info(op).is(kView) || op == Op::kCast) && below.free < kMaxFree;
  News news = below;
  if (is_free)
    news.free++;
  else
    news.distance++;
  announce(node, news);
}

void Workspace::announce(uint32_t node, const News& news) {
  if (news.distance >= rules_.depth() && !news.is_operand_better) return;
  News& all = states_[node].news;
  if (!all.is_there) news_.push({states_[node].position, node});
  all.is_there = true;
  all.is_operand_better |= news.is_operand_better;
  if (std::pair(news.distance, news.free) < std::pair(all.distance, all.free))
    all.distance = news.distance, all.free = news.free;
}

// A phase can improve only twice, so a node counts as improved at most twice, and the news comes to an end.
void Workspace::tell_users(uint32_t node) {
  State& state = states_[node];
  News news = std::exchange(state.news, {});
  if (!state.live) return;
  if (news.is_operand_better) {
    news.is_operand_better = state.improved < 2 && facts_.find_again(node);
    state.improved += news.is_operand_better;
  }
  if (news.distance >= rules_.depth() && !news.is_operand_better) return;
  uses_.all_of(node, [&](uint32_t user, uint32_t) {
    hear(user, news);
    return true;
  });
}

}  // namespace rlx
