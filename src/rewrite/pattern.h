// SPDX-License-Identifier: Apache-2.0
// Patterns: what a rule looks for, written as algebra over wildcards. Matching is exhaustive: commutative operands, the
// factors of a product and alternatives are tried in every way, and a wildcard that occurs twice must be the same value
// (an id comparison, because equal values are one node). What lies between the root and the wildcards vanishes with the
// match, so nothing else may use it, but for what is marked `shared`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/grade.h"
#include "ir/facts.h"
#include "ops/expr.h"

namespace rlx {

class Match;
struct PatternNode;

class Pattern {
 public:
  Pattern() = default;
  explicit Pattern(std::shared_ptr<const PatternNode> node) : node_(std::move(node)) {}
  // In a pattern a number stands for a constant of any shape that is close to it, as near as the dtype tells numbers
  // apart: files hold roundings of the formula's constants.
  Pattern(double number);  // NOLINT

  // The same pattern, but the value must also satisfy `holds`; `why` names the condition in the report of near misses.
  Pattern where(std::string_view why, std::function<bool(const Match&, Expr)> holds) const;
  // It may have other uses.
  Pattern shared() const;
  // Only where the attribute has this value.
  Pattern with(std::string_view attr, AttrValue value) const;

  const PatternNode* get() const { return node_.get(); }
  const std::shared_ptr<const PatternNode>& share() const { return node_; }

 private:
  std::shared_ptr<const PatternNode> node_;
};

struct PatternNode {
  enum Kind : uint8_t {
    kAny,      // a wildcard
    kNumber,   // a constant whose elements are all near `number`, or equal it if `exact`
    kOp,       // a node of `op` on `in`; commutative ops in either order
    kProduct,  // nested `mul`s flattened: each of `in` is a factor (or a product of some), what is left binds `rest`
    kEither,   // the first of `in` that leads to a match
  } kind;
  Op op = Op::kNone;
  double number = 0;
  bool exact = false;
  bool shared = false;
  std::vector<Pattern> in;
  Pattern rest;  // of a product: bound to what is left; absent: nothing may be left but `scalar`
  std::function<bool(const Match&, Expr)> holds = nullptr;
  std::string why;
  std::vector<std::pair<std::string, AttrValue>> attrs;
};

namespace patterns {

Pattern any();  // anything
Pattern exactly(double number);
Pattern constant();  // a constant, a param, or what is computed from these alone
Pattern scalar();    // a constant whose elements are all equal: Match::number gives the value
Pattern op(Op op, std::vector<Pattern> in);
Pattern either(std::vector<Pattern> alternatives);
// `factors` in any order; all other factors must be one scalar constant near `scalar`, or go to `rest` if that is
// given.
Pattern product(std::vector<Pattern> factors, double scalar = 1);
Pattern product_and_rest(std::vector<Pattern> factors, Pattern rest);
Pattern maybe_cast(Pattern x);  // x, or x cast between a half and f32
Pattern mean(Pattern x);        // `mean` keeping its axes; the axes are asked for afterwards
Pattern sum(Pattern x);

Pattern operator+(Pattern a, Pattern b);
Pattern operator-(Pattern a, Pattern b);
Pattern operator*(Pattern a, Pattern b);
Pattern operator/(Pattern a, Pattern b);
inline Pattern exp(Pattern x) {
  return op(Op::kExp, {x});
}
inline Pattern sqrt(Pattern x) {
  return op(Op::kSqrt, {x});
}
inline Pattern tanh(Pattern x) {
  return op(Op::kTanh, {x});
}
inline Pattern erf(Pattern x) {
  return op(Op::kErf, {x});
}
inline Pattern neg(Pattern x) {
  return op(Op::kNeg, {x});
}

}  // namespace patterns

// The outcome of a match: what every pattern node is bound to.
class Workspace;
class Match {
 public:
  Match(Workspace& workspace, Expr anchor) : workspace_(&workspace), anchor_(anchor), inner_{anchor.value().node} {}
  Expr operator[](const Pattern& pattern) const;  // what it is bound to; an absent Expr if nothing
  double number(const Pattern& scalar) const;     // the value of a bound scalar constant
  Expr anchor() const { return anchor_; }
  Builder& builder() const { return anchor_.builder(); }
  const Graph& graph() const { return anchor_.builder().graph(); }
  const Node& node(Expr x) const { return graph().node(x.value()); }
  const Attrs& attrs(const Pattern& pattern) const { return node((*this)[pattern]).attrs; }
  const Attrs& attrs() const { return node(anchor_).attrs; }
  Expr in(size_t i) const;             // input i of the anchor; absent if it is not there
  Expr input(Expr x, size_t i) const;  // the same of any value
  bool is(Expr x, Op op) const { return x && x.valid() && node(x).op == op; }

  // What is known of a value.
  std::optional<double> splat(Expr x) const;  // the number that all of its elements equal
  const Affine* affine(Expr x) const;
  std::optional<Interval> range(Expr x) const;
  bool is_static(Expr x) const;  // depends on params and constants alone

  // What is used by the match alone: by the anchor, or by values of which this was asked before. It may then vanish.
  bool is_inner(Expr x) const;
  bool may_be_repeated(Expr x) const;  // cheap to compute once more
  uint32_t uses(Value value) const;
  std::vector<uint32_t> users(Expr x) const;  // nodes that read it

  // What rules may make: of this grade; composites that the device has no kernel for are refused.
  bool allows(Grade grade) const;
  bool is_refused(Expr x) const;
  bool checks_indices() const;  // an index out of range fails the run

  // A condition on sizes under which the replacement is right: proved, or made a guard of the graph. Only where what is
  // replaced would have failed in the run without it, also where it reads nothing: a guard may turn an error into an
  // earlier one, never a run that works into one that fails.
  bool require(const Dim& a, Guard::Relation relation, const Dim& b) const;
  size_t required() const { return required_; }  // how many became guards

  // If the rule succeeds, users of `old`, another value than the anchor, read `made` as well; they keep `old` where the
  // types differ or a cycle would close. So a rule may offer this, and may not need it.
  void also(Value old, Expr made) const { also_.emplace_back(old, made.value()); }
  // The first of the outputs of a node; its others replace those of the node that `old` is of.
  Expr with_all_of(Expr old, const Outputs& made) const;
  const std::vector<std::pair<Value, Value>>& replaced() const { return also_; }

  // "No" with a reason, for the report of near misses. Returns an absent Expr, which a rule returns when it declines.
  Expr miss(std::string_view why) const {
    if (reason_.empty()) reason_ = why;
    return Expr();
  }
  const std::string& reason() const { return reason_; }

 private:
  friend class Matcher;
  Workspace* workspace_;
  Expr anchor_;
  std::vector<std::pair<const PatternNode*, Value>> bound_;
  mutable std::vector<uint32_t> inner_;  // nodes that vanish with the match
  mutable std::vector<std::pair<Value, Value>> also_;
  mutable size_t required_ = 0;
  mutable std::string reason_;
};

// Whether `pattern` matches at the match's anchor; fills in the bindings.
bool find_match(const Pattern& pattern, Match& match);

}  // namespace rlx
