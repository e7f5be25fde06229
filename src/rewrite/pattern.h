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
using ViewTest = bool(const Match&, Expr view);

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
    kProduct,  // nested `mul`s flattened: each of `in` is a factor (or a product of some), what is left is `number`
    kEither,   // the first of `in` that leads to a match
    kViews,    // `in[0]` under a chain of views that are all `passed`
  } kind;
  Op op = Op::kNone;
  double number = 0;
  bool exact = false;
  bool shared = false;
  std::vector<Pattern> in;
  std::function<bool(const Match&, Expr)> holds = nullptr;
  std::string why;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  ViewTest* passed = nullptr;
};

// Views that a rule looks through. Each is a test of one view.
bool any_view(const Match& m, Expr view);
bool any_reshape(const Match& m, Expr view);
bool any_broadcast(const Match& m, Expr view);
bool keeps_rows(const Match& m, Expr view);  // a reshape that leaves the last axis as it is

namespace patterns {

Pattern any();  // anything
Pattern exactly(double number);
Pattern constant();  // a constant, a param, or what is computed from these alone
Pattern scalar();    // a constant whose elements are all equal: Match::number gives the value
Pattern op(Op op, std::vector<Pattern> in);
Pattern either(std::vector<Pattern> alternatives);
// `factors` in any order; all other factors must be constants whose product is near `scalar`.
Pattern product(std::vector<Pattern> factors, double scalar = 1);
Pattern maybe_cast(Pattern x);  // x, or x cast between a half and f32
// x, or x under any number of views that pass the test. As many are looked through as there are, so x is no such view
// itself, and there is one way to match. Match::has_shape and the test say what the views may do to axes.
Pattern through_views(Pattern x, ViewTest passes = any_view);
Pattern mean(Pattern x);  // `mean` keeping its axes; the axes are asked for afterwards
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
  Match(Workspace& workspace, Expr anchor) : workspace_(&workspace), anchor_(anchor), taken_{anchor.value().node} {}
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
  bool has_shape(Expr x) const { return x.dims() == anchor_.dims(); }  // the anchor's
  // What lies under the views that x is, as far as all of them pass.
  Expr under_views(Expr x, ViewTest passes = any_view) const;

  // What is known of a value.
  std::optional<double> splat(Expr x) const;  // the number that all of its elements equal
  const Affine* affine(Expr x) const;
  std::optional<Interval> range(Expr x) const;
  bool is_static(Expr x) const;  // depends on params and constants alone

  // Whether x may vanish with the match, as nothing else uses it: the anchor alone does, or values that were taken
  // before. If so it is taken from now on.
  bool take(Expr x) const;
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

  // The node of x again with other inputs, by their numbers, and with other attributes where they are given.
  using Changes = std::initializer_list<std::pair<size_t, Expr>>;
  Outputs rebuilt(Expr x, Changes inputs) const { return rebuilt(x, inputs, node(x).attrs); }
  Outputs rebuilt(Expr x, Changes inputs, Attrs attrs) const;
  // `base` under the views that x is of `under`, which has the same shape.
  Expr with_views(Expr x, Expr under, Expr base) const;

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
  mutable std::vector<uint32_t> taken_;  // nodes that vanish with the match
  mutable std::vector<std::pair<Value, Value>> also_;
  mutable size_t required_ = 0;
  mutable std::string reason_;
};

// Whether `pattern` matches at the match's anchor; fills in the bindings.
bool find_match(const Pattern& pattern, Match& match);

}  // namespace rlx
