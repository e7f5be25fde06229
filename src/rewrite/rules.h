// SPDX-License-Identifier: Apache-2.0
// Rules, sets of them, and what a pass says when it applies a set to a graph.
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

// A rule is tried at nodes of its anchor ops. It answers with a value that equals the anchor, or declines; then nothing
// of the attempt stays. During an attempt nodes are only built: no other rule sees them before it has succeeded.
struct Rule {
  Grade grade;
  std::string name;
  Pattern pattern;                          // empty: `apply` looks for itself
  std::function<Expr(const Match&)> apply;  // an absent Expr: declined
  std::vector<Op> anchors = {};
  std::vector<std::vector<Op>> needs = {};  // of each of these lists a graph has an op where the rule fires
  bool starts = true;                       // false: it only puts in order what others leave
};

class RuleSet {
 public:
  using Family = void (*)(RuleSet&);
  RuleSet() = default;
  // `after`: rules that put in order what the others leave, on a graph that was in that order before. Where none of the
  // others can fire there is nothing to do.
  RuleSet(std::initializer_list<Family> families, std::initializer_list<Family> after = {});  // NOLINT: a list of them

  // The pattern's root says where it is anchored. `replacement` is instantiated on the bindings.
  void add(Grade grade, std::string name, Pattern pattern, Pattern replacement);
  void add(Grade grade, std::string name, Pattern pattern, std::function<Expr(const Match&)> apply);
  // A rule in code, which looks at most `depth` nodes below its anchor, and finds one of `needs` there, if that says
  // any.
  void add(Grade grade, std::string name, const std::vector<Op>& anchors, std::function<Expr(const Match&)> apply,
           int depth = 3, const std::vector<Op>& needs = {});

  std::span<const Rule* const> at(Op op) const;
  // In a graph of these ops, where no looser rules are allowed.
  bool may_fire(const std::vector<bool>& is_there, Grade loosest) const;
  int depth(Op op) const;  // how far below a node of this op its rules look; casts and views count nothing
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
    std::string pass, rule, where, reason;  // reason: of a near miss; empty: it fired
  };
  std::vector<Line> lines;
  struct PassTime {
    std::string pass;
    double ms;
    size_t nodes;  // of the graph that it made; of `prologue`, pieces
  };
  std::vector<PassTime> passes;
  uint64_t visits = 0;    // of nodes by sets of rules
  uint64_t attempts = 0;  // of rules
};

struct RewriteOptions {
  Grade math = Grade::kClose;     // the loosest grade allowed
  std::vector<std::string> skip;  // rules left out by name
  // Whether a composite that a rule formed may stand; why not, if not. Null: any may.
  std::function<std::string(const Facts&, Value)> refuses = nullptr;
  // Whether a composite that no rule replaces is to become its decomposition. Null: none.
  std::function<bool(const Facts&, Value)> expands = nullptr;
  bool checks_indices = true;  // an index out of range fails the run, so that a guard may fail it instead
  RewriteReport* report = nullptr;
  std::string_view pass;
};

// The reason of the one line that says that a set of rules did not come to rest: our bug.
inline constexpr const char* kOutOfBudget = "the rules did not come to rest";

// The graph with every rule applied until none fires; dead nodes are dropped, inputs and outputs keep order and
// name. Where no rule can fire it stays as it is.
Result<Graph> rewrite(Graph graph, const RuleSet& rules, const RewriteOptions& options);

}  // namespace rlx
