// SPDX-License-Identifier: Apache-2.0
// The graph while a set of rules works on it. A replacement rewires the users of a value in place; what lies above it
// stays. A rule is a transaction: one that declines leaves nothing.
// Invariants: only live nodes count as users; of mergeable live nodes no two are equal; no node has a position before
// that of a node it reads, but inputs and params, which keep their order.
#pragma once

#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/facts.h"
#include "ops/expr.h"
#include "rewrite/known_nodes.h"
#include "rewrite/rules.h"
#include "rewrite/uses.h"

namespace rlx {

class Workspace {
 public:
  Workspace(Graph graph, const RuleSet& rules, const RewriteOptions& options);
  Workspace(const Workspace&) = delete;
  Result<Graph> run();

  // What rules ask, by way of Match.
  Builder& builder() { return builder_; }
  const Graph& graph() const { return graph_; }
  Facts& facts() { return facts_; }
  const RewriteOptions& options() const { return options_; }
  bool allows(Grade grade) const { return grade <= options_.math; }
  bool is_refused(Value value) const;  // a composite that may not stand, if a rule forms it as it is
  bool is_used_only_by(Value value, std::span<const uint32_t> users) const;
  bool may_be_repeated(Value value) const;  // cheap or vanishing: constants, size-only values, views, casts
  uint32_t uses(Value value) const;
  std::vector<uint32_t> users(Value value) const;

 private:
  struct State {  // of a node
    size_t hash = 0;
    uint32_t position = 0;  // where it belongs: that of the anchor whose replacement it came with
    uint32_t pins = 0;      // reasons to live besides being read: leaves, effects, graph outputs
    bool live = false, known = false, queued = false;
    uint8_t improved = 0;  // how often what was known of it was found anew
  };
  struct Place {
    uint32_t position, node;
    bool operator>(const Place& other) const {
      return position != other.position ? position > other.position : node > other.node;
    }
  };
  using Replacement = std::pair<Value, Value>;  // old, new
  using Queue = std::priority_queue<Place, std::vector<Place>, std::greater<>>;

  // Building: what the Builder of rules calls.
  static Result<std::vector<Value>> add_hook(void* self, const OpInfo& info, std::span<const Value> in, Attrs attrs,
                                             std::string name);
  Result<uint32_t> add(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name);
  void add_state(uint32_t node, uint32_t position);
  void know(uint32_t node);
  void unknow(uint32_t node);

  // The loop.
  void load();
  uint32_t load_node(uint32_t node, std::span<const uint32_t> same);
  uint32_t next();
  Status visit(uint32_t node);
  bool is_allowed(const Rule& rule) const;
  bool try_rule(const Rule& rule, uint32_t node);
  std::string refusal(const Match& match, const Graph::Mark& mark, Expr replacement) const;
  Status expand(uint32_t index);
  Graph finish();

  // Transactions.
  void commit(const std::vector<Replacement>& replacements, const Graph::Mark& mark);
  void roll_back(const Graph::Mark& mark);
  bool is_decided_again(uint32_t node, const Graph::Mark& mark) const;
  bool closes_cycle(const Replacement& replacement) const;

  // Changing the graph.
  void replace(Value old, Value made);
  void rewire_outputs(Value old, Value made);
  void merge_equals();
  void acquire(uint32_t node);
  void release(uint32_t node);
  void lower_position(uint32_t node, uint32_t position);
  void improve_users(Value old, Value made);

  void enqueue(uint32_t node);
  void enqueue_above(uint32_t node);
  void note(const Rule& rule, uint32_t node, std::string_view reason);

  const RuleSet& rules_;
  const RewriteOptions& options_;
  Graph graph_;
  Facts facts_;
  Builder builder_;
  KnownNodes known_;
  UseLists uses_;
  std::vector<State> states_;                               // by node
  std::unordered_multimap<uint32_t, uint32_t> outputs_of_;  // node -> outputs of the graph
  std::vector<uint32_t> to_merge_;                          // users whose inputs have changed

  Queue queue_;            // nodes to visit again, and new ones
  uint32_t cursor_ = 0;    // of the first visit of the others
  uint32_t given_ = 0;     // how many nodes there were at first
  uint32_t position_ = 0;  // of the anchor of now
  uint64_t visits_ = 0, most_visits_;
  uint32_t first_new_ = UINT32_MAX;  // nodes of the replacement that is being put in place read what they read
  bool changed_ = false;
  std::vector<uint32_t> stamps_;  // by node: the walk that saw it last
  uint32_t walk_ = 0;
  std::unordered_set<uint64_t> noted_;  // rule and node of each near miss
};

}  // namespace rlx
