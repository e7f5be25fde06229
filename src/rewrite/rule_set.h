// SPDX-License-Identifier: Apache-2.0
// Rules, sets of rules, and the report of a pass that applies a set to a graph.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/grade.h"
#include "ir/facts.h"
#include "rewrite/pattern.h"

namespace rlx {

inline constexpr Grade exact = Grade::kExact, close = Grade::kClose, fast = Grade::kFast;

// A rule is tried at the nodes of its anchor ops. It returns a value that equals the anchor, or declines. A rule that
// declines leaves nothing. No other rule sees the nodes that an attempt builds before the attempt has succeeded.
struct Rule {
  Grade grade;
  std::string name;
  Pattern pattern;                          // empty: `apply` looks at the graph itself
  std::function<Expr(const Match&)> apply;  // an absent Expr: declined
  std::vector<Op> anchors = {};
  std::vector<std::vector<Op>> needs = {};  // the graph must have an op of each of these lists
  bool only_tidies = false;                 // it only tidies what other rules leave
};

// How much of a graph a rule in code looks at.
struct Reach {
  int depth = 3;               // at most so many nodes below its anchor; casts and views do not count
  std::vector<Op> needs = {};  // it fires only in graphs that have one of these; empty: in all
};

class RuleSet {
 public:
  using Family = void (*)(RuleSet&);
  RuleSet() = default;
  // `after`: rules that tidy what the others leave. The graph was tidy before, so if none of the others can fire, these
  // have nothing to do.
  RuleSet(std::initializer_list<Family> families, std::initializer_list<Family> after = {});  // NOLINT: a list of them

  // The anchor is the op at the pattern's root. The replacement is the second pattern, built from what is bound.
  void add(Grade grade, std::string name, Pattern pattern, Pattern replacement);
  void add(Grade grade, std::string name, Pattern pattern, std::function<Expr(const Match&)> apply);
  // A rule in code.
  void add(Grade grade, std::string name, const std::vector<Op>& anchors, std::function<Expr(const Match&)> apply,
           Reach reach = {});

  std::span<const Rule* const> at(Op op) const;
  // Whether a graph that has these ops, by number, has all that the rule needs.
  static bool has_needs(const Rule& rule, const std::vector<bool>& is_there);
  // Whether a rule of at most this grade can fire in a graph that has these ops.
  bool may_fire(const std::vector<bool>& is_there, Grade loosest) const;
  int depth(Op op) const;  // how many nodes below one of this op its rules look; casts and views do not count
  int depth() const { return deepest_; }
  std::vector<std::string_view> names() const;

 private:
  struct Anchor {
    std::vector<const Rule*> rules;
    int depth = 0;
  };
  void add(Rule rule, int depth);

  std::vector<std::unique_ptr<Rule>> rules_;
  std::vector<Anchor> anchors_;  // by op
  int deepest_ = 0;
  bool is_after_ = false;  // while `after` is added
};

// Which rules fired where, and which nearly did.
struct RewriteReport {
  struct Line {
    std::string pass, rule, where, reason;  // reason: why it declined; empty if it fired
  };
  std::vector<Line> lines;
  struct PassTime {
    std::string pass;
    double ms;
    size_t nodes;  // of the resulting graph; for `prologue`, pieces
  };
  std::vector<PassTime> passes;
  uint64_t visits = 0;    // of nodes, by all sets of rules, by rules that follow a value, and by `sink`
  uint64_t attempts = 0;  // of rules
};

struct RewriteOptions {
  Grade math = Grade::kClose;     // the loosest grade allowed
  std::vector<std::string> skip;  // names of rules to leave out
  // Why a composite that a rule has formed is refused, or an empty text. Null: none is.
  std::function<std::string(const Facts&, Value)> refuses = nullptr;
  // Whether to decompose a composite that no rule replaces. Null: never.
  std::function<bool(const Facts&, Value)> expands = nullptr;
  bool merges = false;         // equal nodes become one even if there is nothing else to do
  bool checks_indices = true;  // an index out of range fails the run, so that a guard may fail it instead
  bool is_body = false;  // the graph is a body of a node: its inputs and outputs are values of the graph around it
  RewriteReport* report = nullptr;
  std::string_view pass;
};

// The reason in the report if a set of rules goes on for ever, which is our bug.
inline constexpr const char* kOutOfBudget = "the rules did not come to rest";

bool has_equal_nodes(const Graph& graph);  // two that compute the same

// Whether `rewrite` may change the graph: a rule may fire, a composite may be expanded, or equal nodes may be merged.
bool may_change(const Graph& graph, const RuleSet& rules, const RewriteOptions& options);

// Applies rules until none fires, merges equal nodes, and drops dead ones, if it may change the graph. Inputs and
// outputs keep their order and names.
Result<Graph> rewrite(Graph graph, const RuleSet& rules, const RewriteOptions& options);

}  // namespace rlx
