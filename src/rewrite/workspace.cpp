// SPDX-License-Identifier: Apache-2.0
// The loop over the worklist, and rules as transactions. rewire.cpp changes the graph.
#include "rewrite/workspace.h"

#include <algorithm>

#include "base/contains.h"
#include "ir/outputs.h"
#include "ops/names.h"

namespace rlx {

// The budget of visits per node, on average. A set of rules that needs more would never end. Only the nodes of the
// given graph, of expanded composites and of inlined bodies add to the budget, so rules that make more and more nodes
// come to an end too.
static constexpr uint64_t kVisitsPerNode = 64;

// How many readers rules may follow, for each node and for a graph. A network takes a few for each of its quotients.
static constexpr uint64_t kFollowedPerNode = 64, kFollowed = 1 << 14;

// A node with more readers, which the loop has passed, tells them only when the loop has come to its end: each node
// behind it may have news for it.
static constexpr uint32_t kFewReaders = 16;

Workspace::Workspace(Graph graph, const RuleSet& rules, const RewriteOptions& options)
    : rules_(rules),
      options_(options),
      graph_(std::move(graph)),
      facts_(graph_),
      builder_(graph_),
      known_(graph_, graph_.nodes().size()),
      given_(static_cast<uint32_t>(graph_.nodes().size())),
      visit_budget_(kVisitsPerNode * (given_ + 64)),
      follow_budget_(kFollowed + kFollowedPerNode * given_) {
  builder_.set_add([this](const OpInfo& info, std::span<const Value> in, Attrs attrs,
                          std::string name) -> Result<std::vector<Value>> {
    return outputs_of(graph_, RLX_TRY(add(info, in, std::move(attrs), std::move(name))));
  });
}

Result<Graph> Workspace::run() {
  load();
  while (true) {
    uint32_t node = next();
    if (node == UINT32_MAX) break;
    if (visits_++ > visit_budget_) {
      if (options_.report) options_.report->lines.push_back({std::string(options_.pass), "", "", kOutOfBudget});
      break;
    }
    RLX_TRY(visit(node));
  }
  if (options_.report) options_.report->visits += visits_ + heard_ + followed_;
  return finish();
}

// Equal nodes read the same. So a node that alone reads one of its inputs has no equal, and is not looked up: in a
// large graph each look-up waits for memory.
bool has_equal_nodes(const Graph& graph) {
  std::vector<uint32_t> reads(graph.nodes().size());  // by node: inputs that read it
  for (const Node& node : graph.nodes())
    for (Value in : node.in)
      if (present(in)) reads[in.node]++;
  auto is_read_once = [&](Value in) { return present(in) && reads[in.node] == 1; };
  KnownNodes known(graph, 0);
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    const Node& node = graph.node(i);
    const OpInfo& info = graph.info(node);
    if (std::ranges::any_of(node.in, is_read_once) || !KnownNodes::is_mergeable(info, node.attrs)) continue;
    size_t hash = KnownNodes::hash_of(info, node.in, node.attrs);
    if (known.find(hash, info, node.in, node.attrs) != KnownNodes::kNone) return true;
    known.insert(hash, i);
  }
  return false;
}

bool may_change(const Graph& graph, const RuleSet& rules, const RewriteOptions& options) {
  std::vector<bool> is_there = graph.ops();
  std::span<const OpInfo> rows = graph.table().rows();
  auto is_composite = [&](const OpInfo& row) {
    return !row.primitive() && row.id < is_there.size() && is_there[row.id];
  };
  bool may_expand = options.expands && std::any_of(rows.begin(), rows.end(), is_composite);
  return may_expand || rules.may_fire(is_there, options.math) || (options.merges && has_equal_nodes(graph));
}

Result<Graph> rewrite(Graph graph, const RuleSet& rules, const RewriteOptions& options) {
  if (!may_change(graph, rules, options)) return graph;
  return Workspace(std::move(graph), rules, options).run();
}

// Takes the given nodes in. Equal nodes become one, and unneeded nodes do not become live.
void Workspace::load() {
  std::vector<bool> needed = needed_nodes(graph_);
  std::vector<uint32_t> same(given_);  // by node: the node that stands for it
  const size_t expected = given_ + given_ / 8;
  states_.reserve(expected);
  uses_.reserve(expected);
  for (uint32_t node = 0; node < given_; node++) {
    add_state(node, node);
    same[node] = needed[node] ? load_node(node, same) : node;
    changed_ |= !states_[node].live;
  }
  for (uint32_t i = 0; i < graph_.outputs().size(); i++) {
    Value value = graph_.outputs()[i].value;
    graph_.set_output(i, {same[value.node], value.output});
    outputs_of_.emplace(key_of(graph_.outputs()[i].value), i);
    states_[same[value.node]].pins++;
  }
  // The readers of a node may all have merged into earlier ones.
  for (uint32_t node = given_; node-- > 0;)
    if (states_[node].live && states_[node].pins == 0 && uses_.count(node) == 0) release(node);
}

// Returns the node that stands for this one: an equal earlier one, or itself, which is live from now on.
uint32_t Workspace::load_node(uint32_t node, std::span<const uint32_t> same) {
  const Node& it = graph_.node(node);
  const OpInfo& info = graph_.info(it);
  for (size_t i = 0; i < it.in.size(); i++)
    if (present(it.in[i]) && same[it.in[i].node] != it.in[i].node)
      graph_.set_input(node, i, {same[it.in[i].node], it.in[i].output});
  states_[node].mergeable = KnownNodes::is_mergeable(info, it.attrs);
  if (states_[node].mergeable) {
    states_[node].hash = KnownNodes::hash_of(info, it.in, it.attrs);
    if (uint32_t equal = known_.find(states_[node].hash, info, it.in, it.attrs); equal != KnownNodes::kNone)
      return equal;
    remember(node);
  }
  // A node that decides a size is needed by all that name the size, without an edge to them.
  bool is_pinned = !is_pure(info, it.attrs) || info.is(kInterface) || info.decides_sizes;
  states_[node].pins += is_pinned;
  states_[node].live = true;
  states_[node].queued = !rules_.at(it.op).empty() || (options_.expands && !info.primitive());
  for (size_t i = 0; i < it.in.size(); i++)
    if (present(it.in[i])) uses_.link(node, i, it.in[i]);
  return node;
}

// The queued node with the first position: either the next of the given graph, or one that a replacement has touched.
Workspace::Queued Workspace::first_queued() {
  while (cursor_ < given_ && !states_[cursor_].queued) cursor_++;
  Queued given = cursor_ < given_ ? Queued{cursor_, cursor_} : Queued{UINT32_MAX, UINT32_MAX};
  return !queue_.empty() && given > queue_.top() ? queue_.top() : given;
}

// The first queued node, which has heard the news from all nodes before it.
Workspace::Queued Workspace::first_informed() {
  Queued first = first_queued();
  for (; !news_.empty() && !(news_.top() > first); first = first_queued()) {
    uint32_t node = news_.top().node;
    news_.pop();
    if (states_[node].position < position_ && uses_.count(node) > kFewReaders)
      late_.push_back(node);
    else
      tell_users(node);
  }
  return first;
}

// The node to visit next; UINT32_MAX at the end.
uint32_t Workspace::next() {
  Queued first = first_informed();
  while (first.node == UINT32_MAX && !late_.empty()) {
    for (uint32_t node : std::exchange(late_, {})) tell_users(node);
    first = first_informed();
  }
  if (first.node == UINT32_MAX) return first.node;
  if (!queue_.empty() && queue_.top().node == first.node)
    queue_.pop();
  else
    cursor_++;
  states_[first.node].queued = false;
  return first.node;
}

Status Workspace::visit(uint32_t node) {
  if (!states_[node].live) return {};
  position_ = states_[node].position;
  for (const Rule* rule : rules_for(graph_.node(node).op))
    if (try_rule(*rule, node)) return {};
  bool expands = options_.expands && !graph_.info(graph_.node(node)).primitive() && options_.expands(facts_, {node, 0});
  return expands ? expand(node) : Status();
}

bool Workspace::is_allowed(const Rule& rule) const {
  return allows(rule.grade) && !contains(options_.skip, rule.name);
}

// A rule that needs an op of which there never was a node cannot fire, so it is not tried.
std::span<const Rule* const> Workspace::rules_for(Op op) {
  std::span<const Rule* const> all = rules_.at(op);
  if (all.empty()) return all;
  auto index = static_cast<size_t>(op);
  if (rules_for_.size() <= index) rules_for_.resize(index + 1);
  auto& [rules, is_current] = rules_for_[index];
  if (is_current) return rules;
  rules.clear();
  for (const Rule* rule : all)
    if (is_allowed(*rule) && RuleSet::has_needs(*rule, ops_seen_)) rules.push_back(rule);
  is_current = true;
  return rules;
}

void Workspace::note_op(Op op) {
  auto index = static_cast<size_t>(op);
  if (ops_seen_.size() <= index) ops_seen_.resize(index + 1);
  if (ops_seen_[index]) return;
  ops_seen_[index] = true;
  for (Choice& choice : rules_for_) choice.is_current = false;
}

// ---- transactions ----

// Whether the replacement already is the only reader of the value: nothing would change.
bool Workspace::is_there_already(const Match& match, Value anchor, Expr replacement) const {
  auto replaces = [&](const Replacement& it) { return it.first.node == anchor.node && is_used(it.first); };
  return is_used_only_by(anchor, {{replacement.value().node}}) && std::ranges::none_of(match.offered(), replaces);
}

// Of the anchor, and of those other values that the rule offers to replace and that can be.
std::vector<Workspace::Replacement> Workspace::replacements_of(const Match& match, Value anchor,
                                                               Expr replacement) const {
  std::vector<Replacement> replacements{{anchor, replacement.value()}};
  for (const auto& [old, other] : match.offered())
    if (graph_.is_same_type(graph_.type(old), graph_.type(other)) &&
        (old.node == anchor.node || !closes_cycle({old, other})))
      replacements.emplace_back(old, other);
  return replacements;
}

bool Workspace::try_rule(const Rule& rule, uint32_t node) {
  if (options_.report) options_.report->attempts++;
  Graph::Mark mark = graph_.mark();
  Value value{node, 0};
  Match match(*this, builder_.wrap(value), rule.grade);
  Expr replacement;
  if (!rule.pattern.get() || find_match(rule.pattern, match)) replacement = rule.apply(match);
  Status status = builder_.take_status();
  std::string why = !status.ok() ? std::string(status.message()) : match.reason();
  bool made = status.ok() && replacement && replacement.valid() && replacement.value() != value &&
              !is_there_already(match, value, replacement);
  if (made) {
    why = refusal(match, mark, replacement);
    made = why.empty();
  }
  if (!made) {
    if (!why.empty()) note(rule, node, why);
    roll_back(mark);
    return false;
  }
  note(rule, node, {});
  std::vector<Replacement> replacements = replacements_of(match, value, replacement);
  if (graph_.info(graph_.node(node)).has_bodies)  // the nodes of its bodies were not counted in the given graph
    visit_budget_ += kVisitsPerNode * (graph_.nodes().size() - mark.nodes);
  const std::string& name = graph_.node(node).name;
  name_readers_of_indices(graph_, mark.nodes, name);
  if (!name.empty() && graph_.node(replacement.value()).name.empty()) graph_.set_name(replacement.value(), name);
  commit(replacements, mark);
  return true;
}

// Why the replacement is refused, or an empty text.
std::string Workspace::refusal(const Match& match, const Graph::Mark& mark, Expr replacement) const {
  const ValueType& type = graph_.type(match.anchor().value());
  // A rule must keep the meaning. Of that, only the type can be checked here.
  if (!graph_.is_same_type(replacement.type(), type))
    return "the replacement is " + text_of(replacement.type()) + ", not " + text_of(type);
  if (graph_.guards().size() > mark.sizes.guards + match.required())
    return "it would need " + text_of(graph_.guards().back());
  const OpInfo& info = graph_.info(graph_.node(replacement.value()));
  // A composite of halves is rounded once. The nodes that it replaces may have rounded at every op.
  if (!allows(Grade::kClose) && is_half(type.dtype) && !info.primitive()) return "halves would be rounded less often";
  if (options_.refuses && !info.primitive() && !info.is(kStandIn)) return options_.refuses(facts_, replacement.value());
  return {};
}

void Workspace::roll_back(const Graph::Mark& mark) {
  if (graph_.mark() == mark) return;
  for (size_t node = graph_.nodes().size(); node-- > mark.nodes;) forget(static_cast<uint32_t>(node));
  graph_.roll_back(mark);
  facts_.shorten(mark.nodes);
  found_in_.erase(found_in_.lower_bound(static_cast<uint32_t>(mark.nodes)), found_in_.end());
  uses_.shorten(mark.nodes);
  states_.resize(mark.nodes);
}

// Of a node whose op may decide sizes, which load() has pinned: whether the pin may go. It may if the node decides no
// size, or if a node that was made since the mark decides the same.
bool Workspace::may_unpin(uint32_t node, const Graph::Mark& mark) const {
  auto symbols_of = [&](uint32_t index) {
    std::vector<std::string> symbols;
    visit_decided_sizes(graph_.node(index), [&](const std::string& symbol, bool) { symbols.push_back(symbol); });
    return symbols;
  };
  if (!graph_.info(graph_.node(node)).decides_sizes) return false;
  const std::vector<std::string> own = symbols_of(node);
  if (own.empty()) return true;
  for (auto made = static_cast<uint32_t>(mark.nodes); made < graph_.nodes().size(); made++)
    if (symbols_of(made) == own) return true;
  return false;
}

void Workspace::commit(const std::vector<Replacement>& replacements, const Graph::Mark& mark) {
  changed_ = true;
  for (const auto& [old, made] : replacements) {
    lower_position(made.node, states_[old.node].position);
    states_[made.node].pins++;  // until all replacements are in place
    acquire(made.node);
  }
  for (auto node = static_cast<uint32_t>(mark.nodes); node < graph_.nodes().size(); node++) {
    if (!graph_.info(graph_.node(node)).decides_sizes) continue;
    states_[node].pins++;  // it may decide a size in the place of an old node, even if nothing reads it
    acquire(node);
  }
  for (const auto& [old, made] : replacements)
    if (old.output == 0 && may_unpin(old.node, mark)) states_[old.node].pins--;
  for (const auto& [old, made] : replacements) replace(old, made, static_cast<uint32_t>(mark.nodes));
  for (const auto& [old, made] : replacements) {
    states_[made.node].pins--;
    if (states_[made.node].pins == 0 && uses_.count(made.node) == 0) release(made.node);
  }
  merge_equals();
  for (auto node = static_cast<uint32_t>(mark.nodes); node < graph_.nodes().size(); node++)
    if (states_[node].live)
      enqueue(node);
    else
      forget(node);
}

// Whether `made` may depend on `old`, a value that is replaced besides the anchor: then a cycle would close. The walk
// down from `made` leaves out nodes with an earlier position than `old`, which cannot depend on it, and resident ones,
// which depend on it only if it is resident itself. A long walk is given up: then the answer is yes.
bool Workspace::closes_cycle(const Replacement& replacement) const {
  constexpr size_t kMaxSeen = 256;
  auto [old, made] = replacement;
  if (facts_.is_resident(old)) return true;  // the walk would not find out
  std::vector<uint32_t> seen{made.node};
  for (size_t at = 0; at < seen.size(); at++) {
    if (seen[at] == old.node || seen.size() > kMaxSeen) return true;
    for (Value in : graph_.node(seen[at]).in) {
      if (!present(in) || states_[in.node].position < states_[old.node].position || facts_.is_resident(in)) continue;
      if (!contains(seen, in.node)) seen.push_back(in.node);
    }
  }
  return false;
}

Status Workspace::expand(uint32_t index) {
  Graph::Mark mark = graph_.mark();
  const Node& node = graph_.node(index);
  std::vector<Expr> in;
  for (Value input : node.in) in.push_back(present(input) ? builder_.wrap(input) : Expr());
  Outputs outputs = decompose(builder_, graph_.info(node), in, node.attrs);
  RLX_TRY(builder_.take_status());
  name_readers_of_indices(graph_, mark.nodes, node.name);
  if (graph_.node(outputs[0].value()).name.empty()) graph_.set_name(outputs[0].value(), node.name);
  if (options_.report)
    options_.report->lines.push_back({std::string(options_.pass), "decompose", graph_.describe(index), {}});
  visit_budget_ += kVisitsPerNode * (graph_.nodes().size() - mark.nodes);
  std::vector<Replacement> replacements;
  for (uint32_t i = 0; i < outputs.size(); i++) replacements.emplace_back(Value{index, i}, outputs[i].value());
  commit(replacements, mark);
  return {};
}

void Workspace::note(const Rule& rule, uint32_t node, std::string_view reason) {
  if (!options_.report) return;
  if (!reason.empty() && !noted_.emplace(&rule, node).second) return;
  const std::string& name = graph_.node(node).name;
  options_.report->lines.push_back(
      {std::string(options_.pass), rule.name, name.empty() ? graph_.describe(node) : name, std::string(reason)});
}

// ---- what rules ask ----

bool Workspace::is_refused(Value value) const {
  return options_.refuses && !graph_.info(graph_.node(value)).primitive() && !options_.refuses(facts_, value).empty();
}

bool Workspace::is_used_only_by(Value value, std::span<const uint32_t> users) const {
  return !is_output(value) && uses_.all_of(value, [&](uint32_t user, uint32_t) { return contains(users, user); });
}

bool Workspace::is_output(Value value) const {
  return outputs_of_.contains(key_of(value));
}

bool Workspace::is_used(Value value) const {
  return uses_.any_of(value) || is_output(value);
}

std::vector<uint32_t> Workspace::users(Value value, size_t most) const {
  std::vector<uint32_t> users;
  uses_.all_of(value, [&](uint32_t user, uint32_t) {
    if (users.empty() || users.back() != user) users.push_back(user);
    return users.size() < most;
  });
  return users;
}

std::optional<double> Workspace::found_in(Value constant, Look look) {
  const Tensor* tensor = graph_.constant(constant);
  if (!tensor) return std::nullopt;
  auto& found = found_in_[constant.node];
  auto at = std::find_if(found.begin(), found.end(), [&](const auto& it) { return it.first == look; });
  if (at != found.end()) return at->second;
  return found.emplace_back(look, look(*tensor)).second;
}

bool Workspace::may_be_repeated(Value value) const {
  const Node& node = graph_.node(value);
  const OpInfo& info = graph_.info(node);
  return info.is(kLeaf) || info.is(kView) || node.op == Op::kCast || facts_.is_static(value.node) ||
         facts_.is_resident(value);
}

// ---- the resulting graph ----

// Puts live nodes in topological order. Of the nodes that are ready, the one with the least position comes first; each
// node with an effect waits for the one before it.
Graph Workspace::finish() {
  if (!changed_) return std::move(graph_);
  size_t count = graph_.nodes().size();
  std::vector<uint32_t> waiting(count, 0), order, effects;
  Queue ready;
  for (uint32_t node = 0; node < count; node++) {
    if (!states_[node].live) continue;
    for (Value in : graph_.node(node).in) waiting[node] += present(in);
    if (!is_pure(graph_.info(graph_.node(node)), graph_.node(node).attrs)) {
      waiting[node] += !effects.empty();
      effects.push_back(node);
    }
    if (waiting[node] == 0) ready.push({states_[node].position, node});
  }
  auto input_done = [&](uint32_t node) {
    if (--waiting[node] == 0) ready.push({states_[node].position, node});
    return true;
  };
  for (size_t next_effect = 1; !ready.empty();) {
    uint32_t node = ready.top().node;
    ready.pop();
    order.push_back(node);
    uses_.all_of(node, [&](uint32_t user, uint32_t) { return input_done(user); });
    if (next_effect < effects.size() && effects[next_effect - 1] == node) input_done(effects[next_effect++]);
  }
  return drop_dead(std::move(graph_).reordered(order));
}

}  // namespace rlx
