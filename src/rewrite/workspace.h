// SPDX-License-Identifier: Apache-2.0
// The graph while a set of rules works on it. A replacement rewires the users of a value in place, and builds nothing
// above them again. A rule is a transaction: one that declines leaves nothing.
// Invariants: only live nodes count as users. No two mergeable live nodes are equal. No node has a position before that
// of a node it reads, except inputs and params, which keep their order.
#pragma once

#include <map>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/facts.h"
#include "ops/expr.h"
#include "rewrite/known_nodes.h"
#include "rewrite/rule_set.h"
#include "rewrite/uses.h"

namespace rlx {

class Workspace {
 public:
  Workspace(Graph graph, const RuleSet& rules, const RewriteOptions& options);
  Workspace(const Workspace&) = delete;
  Result<Graph> run();

  // What rules ask, through Match.
  Builder& builder() { return builder_; }
  const Graph& graph() const { return graph_; }
  Facts& facts() { return facts_; }
  const RewriteOptions& options() const { return options_; }
  bool allows(Grade grade) const { return grade <= options_.math; }
  bool is_refused(Value value) const;  // whether it is a composite that a rule must not form
  bool is_used_only_by(Value value, std::span<const uint32_t> users) const;
  // Cheap to compute once more: a leaf, view or cast, or what is resident or follows from sizes.
  bool may_be_repeated(Value value) const;
  bool is_output(Value value) const;  // of the graph
  bool is_used(Value value) const;    // read by a node, or an output of the graph
  std::vector<uint32_t> users(Value value, size_t most = SIZE_MAX) const;
  std::optional<double> found_in(Value constant, Look look);
  bool may_follow(size_t readers) { return (followed_ += readers) <= follow_budget_; }

 private:
  // What a node tells its users once the loop comes to it. `distance`: how many ops below the users the nearest change
  // is; up to kMaxFree casts and views on the path do not count, and `free` says how many these were.
  // `is_operand_better`: an operand of the node has better facts.
  struct News {
    int distance = kFar;
    uint8_t free = 0;
    bool is_operand_better = false, is_there = false;
  };
  static constexpr int kFar = 1 << 20, kMaxFree = 8;
  struct State {  // of a node
    size_t hash = 0;
    News news;
    // In the resulting order, least first: its index in the given graph, or that of the anchor for which it was made.
    // It may be lowered later.
    uint32_t position = 0;
    // Reasons to live without users: it is an input or param, has an effect, may decide a size, is an output of the
    // graph, or a rule is just putting it in place.
    uint32_t pins = 0;
    bool live = false, mergeable = false, in_table = false, queued = false;
    uint8_t improved = 0;  // how often its facts have become better
  };
  struct Choice {  // of the rules for an op
    std::vector<const Rule*> rules;
    bool is_current = false;
  };
  struct Queued {
    uint32_t position, node;
    bool operator>(const Queued& other) const {
      return position != other.position ? position > other.position : node > other.node;
    }
  };
  using Replacement = std::pair<Value, Value>;  // old, new
  using Queue = std::priority_queue<Queued, std::vector<Queued>, std::greater<>>;

  // Building nodes, for the Builder that rules use.
  Result<uint32_t> add(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name);
  void add_state(uint32_t node, uint32_t position);
  void remember(uint32_t node);
  void forget(uint32_t node);

  // The loop.
  void load();
  uint32_t load_node(uint32_t node, std::span<const uint32_t> same);
  uint32_t next();
  Status visit(uint32_t node);
  bool is_allowed(const Rule& rule) const;
  std::span<const Rule* const> rules_for(Op op);
  void note_op(Op op);
  bool try_rule(const Rule& rule, uint32_t node);
  bool is_there_already(const Match& match, Value anchor, Expr replacement) const;
  std::vector<Replacement> replacements_of(const Match& match, Value anchor, Expr replacement) const;
  std::string refusal(const Match& match, const Graph::Mark& mark, Expr replacement) const;
  Status expand(uint32_t index);
  Graph finish();

  // Transactions.
  void commit(const std::vector<Replacement>& replacements, const Graph::Mark& mark);
  void roll_back(const Graph::Mark& mark);
  bool may_unpin(uint32_t node, const Graph::Mark& mark) const;
  bool closes_cycle(const Replacement& replacement) const;

  // Changing the graph.
  void replace(Value old, Value made, uint32_t first_new = UINT32_MAX);
  void rewire_outputs(Value old, Value made);
  void merge_equals();
  void acquire(uint32_t node);
  void release(uint32_t node);
  void lower_position(uint32_t node, uint32_t position);
  void set_input(uint32_t node, uint32_t input, Value made);
  bool is_better(Value made, Value old);

  void enqueue(uint32_t node);
  Queued first_queued();
  Queued first_informed();
  void hear(uint32_t node, const News& below);
  void announce(uint32_t node, const News& news);
  void tell_users(uint32_t node);
  void note(const Rule& rule, uint32_t node, std::string_view reason);

  const RuleSet& rules_;
  const RewriteOptions& options_;
  Graph graph_;
  Facts facts_;
  Builder builder_;
  KnownNodes known_;
  UseLists uses_;
  std::vector<State> states_;                               // by node
  std::unordered_multimap<uint64_t, uint32_t> outputs_of_;  // key of a value -> outputs of the graph
  std::vector<bool> ops_seen_;                              // by op: whether there ever was a node of it
  std::vector<Choice> rules_for_;                           // by op
  std::vector<uint32_t> to_merge_;                          // nodes with changed inputs: each may equal another now

  Queue queue_;                 // new nodes, and nodes to visit again
  Queue news_;                  // nodes that have something to tell
  std::vector<uint32_t> late_;  // those that tell it at the end of the loop
  uint32_t cursor_ = 0;         // the next given node that was not visited yet
  uint32_t given_ = 0;          // the number of nodes in the given graph
  uint32_t position_ = 0;       // of the anchor of this attempt
  uint64_t visits_ = 0, visit_budget_;
  uint64_t heard_ = 0;                     // news
  uint64_t followed_ = 0, follow_budget_;  // readers that rules have looked at on their way to a jump
  // By constant: what rules have found in it. No rule need read it again.
  std::map<uint32_t, std::vector<std::pair<Look*, std::optional<double>>>> found_in_;
  bool changed_ = false;
  std::set<std::pair<const Rule*, uint32_t>> noted_;  // the near misses in the report: rule and node
};

}  // namespace rlx
