// SPDX-License-Identifier: Apache-2.0
// Rules and the one loop that applies them. A rule is tried whenever a node of one of its anchor ops is built; it
// answers with an equal value, or declines. The loop rebuilds the graph bottom-up through a hash-consing constructor,
// so each value exists once, and repeats until nothing fires.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/grade.h"
#include "rewrite/pattern.h"

namespace rlx {

inline constexpr Grade exact = Grade::kExact, close = Grade::kClose, fast = Grade::kFast;

struct Rule {
  Grade grade;
  std::string name;
  Pattern pattern;                          // empty: `apply` looks for itself
  std::function<Expr(const Match&)> apply;  // an absent Expr: declined
};

class RuleSet {
 public:
  // The pattern's root says where it is anchored. `replacement` is instantiated on the bindings.
  void add(Grade grade, std::string name, Pattern pattern, Pattern replacement);
  void add(Grade grade, std::string name, Pattern pattern, std::function<Expr(const Match&)> apply);
  // A rule in code, tried at every node of these ops: canonicalisations, which look at a node and its inputs.
  void add(Grade grade, std::string name, const std::vector<Op>& anchors, std::function<Expr(const Match&)> apply);

  std::span<const Rule* const> at(Op op) const;
  std::vector<std::string_view> names() const;

 private:
  std::vector<std::unique_ptr<Rule>> rules_;
  std::map<Op, std::vector<const Rule*>> by_anchor_;
};

// Which rules fired where, and which nearly did.
struct RewriteReport {
  struct Line {
    std::string pass, rule, where, reason;  // reason: of a near miss; empty: it fired
  };
  std::vector<Line> lines;
};

struct RewriteOptions {
  Grade math = Grade::kClose;     // the loosest grade allowed
  std::vector<std::string> skip;  // rules left out by name
  // Whether a composite that a rule formed may stand; why not, if not. Null: any may.
  std::function<std::string(const Graph&, Value)> refuses = nullptr;
  // Whether a composite is to be replaced by its decomposition as it is built. Null: none.
  std::function<bool(const Graph&, Value)> expands = nullptr;
  bool checks_indices = true;  // an index out of range fails the run, so that a guard may fail it instead
  RewriteReport* report = nullptr;
  std::string_view pass;
};

// The graph with every rule applied until none fires; dead nodes are dropped, inputs and outputs keep order and name.
Result<Graph> rewrite(const Graph& graph, const RuleSet& rules, const RewriteOptions& options);

// The constructor behind the loop: hash-consing, rules applied to what it builds, live uses counted.
class Rewriter {
 public:
  Rewriter(const Graph& from, const RuleSet& rules, const RewriteOptions& options);
  Result<Graph> run();
  size_t fired() const { return fired_; }

  Builder& builder() { return builder_; }
  const Graph& graph() const { return to_; }
  const RewriteOptions& options() const { return options_; }
  bool allows(Grade grade) const { return grade <= options_.math; }

  // Facts about values of the new graph.
  bool is_static(Value value) const { return flags_[value.node] & kStatic; }       // from params and constants alone
  bool is_size_only(Value value) const { return flags_[value.node] & kSizeOnly; }  // from constants and sizes alone
  bool is_refused(Value value) const;       // a composite that may not stand, if a rule forms it as it is
  bool used_elsewhere(Value value) const;   // by something outside the match: a live node or a graph output
  bool may_be_repeated(Value value) const;  // cheap or vanishing: constants, size-only values, views, casts
  uint32_t uses(Value value) const { return refs_[value.node][value.output]; }

 private:
  enum Flag : uint8_t { kStatic = 1, kSizeOnly = 2 };
  static Result<std::vector<Value>> add_hook(void* self, const OpInfo& info, std::span<const Value> in, Attrs attrs,
                                             std::string name);
  Result<std::vector<Value>> add(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name);
  Result<Value> append(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name);
  Value apply_rules(Value value);
  Result<std::vector<Value>> expand(Value value);
  Expr try_rule(const Rule& rule, Value value);
  Result<Attrs> rewrite_subgraphs(const Attrs& attrs);
  Status rebuild(uint32_t index);
  void acquire(Value value, uint32_t count = 1);
  void release(Value value, uint32_t count = 1);
  bool is_live(uint32_t node) const;
  void note(const Rule& rule, Value value, std::string_view reason);

  const Graph& from_;
  const RuleSet& rules_;
  const RewriteOptions& options_;
  Graph to_;
  Builder builder_;
  std::vector<std::vector<Value>> map_;              // old node, output -> new value
  std::unordered_multimap<size_t, uint32_t> known_;  // hash -> node, for consing
  std::vector<uint8_t> flags_;
  std::vector<std::vector<uint32_t>> refs_;  // live uses of each new value: edges from live nodes, uses still to come
  size_t fired_ = 0;
  int depth_ = 0;  // of rules applied to what rules build: a bound against rule sets that chase their tail
};

// Drops nodes that no output needs; inputs and params stay.
Result<Graph> drop_dead(const Graph& graph);

}  // namespace rlx
