// SPDX-License-Identifier: Apache-2.0
// Patterns: what a rule looks for, written as algebra over wildcards. Matching tries every order of commutative
// operands and of factors, and every alternative. A wildcard that occurs twice must be bound to one value; equal values
// are one node, so ids are compared. The nodes between the root and the wildcards vanish with the match. If something
// else uses one, the pattern does not match, unless the node is cheap to compute again (Workspace::may_be_repeated) or
// that part of the pattern is `shared`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/grade.h"
#include "base/inlined_vector.h"
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
  // A number in a pattern matches a value of any shape that is known to be this number everywhere (a splat), up to the
  // precision of its dtype: files hold rounded constants. In a rule of grade `exact` it must equal the number.
  Pattern(double number);  // NOLINT

  // The same pattern, but the value must also satisfy `holds`; `why` names the condition in the report of near misses.
  Pattern where(std::string_view why, std::function<bool(const Match&, Expr)> holds) const;
  // The same pattern, but the value may have other uses.
  Pattern shared() const;
  // The same pattern, but the attribute must have this value.
  Pattern with(std::string_view attr, AttrValue value) const;

  const PatternNode* get() const { return node_.get(); }

 private:
  std::shared_ptr<const PatternNode> node_;
};

struct PatternNode {
  enum Kind : uint8_t {
    kAny,      // a wildcard
    kNumber,   // a splat that is near `number`, or equals it if `exact`, or if the rule is
    kSplat,    // a splat: a value of any shape that is known to be one number everywhere
    kOp,       // a node of `op` on `in`; commutative ops in either order
    kProduct,  // nested `mul`s flattened: each of `in` is a factor (or a product of some), what is left is `number`
    kEither,   // the first of `in` that leads to a match
    kViews,    // `in[0]`, or a chain of views of it that `passes` accepts
  } kind;
  Op op = Op::kNone;
  double number = 0;
  bool exact = false;
  bool shared = false;
  std::vector<Pattern> in;
  std::function<bool(const Match&, Expr)> holds = nullptr;
  std::string why;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  ViewTest* passes = nullptr;
};

// Tests of one view, for rules that look through views.
bool any_view(const Match& m, Expr view);
bool any_reshape(const Match& m, Expr view);
bool any_broadcast(const Match& m, Expr view);
bool keeps_rows(const Match& m, Expr view);  // a reshape that leaves the last axis alone

namespace patterns {

Pattern any();  // anything
Pattern exactly(double number);
Pattern resident();  // a constant, a param, or what is computed from these alone
Pattern splat();     // a value of any shape that is known to be one number everywhere: Match::number gives it
Pattern op(Op op, std::vector<Pattern> in);
Pattern either(std::vector<Pattern> alternatives);
// `factors` in any order; all other factors must be splats whose product is near `number`. In a rule of grade `exact`
// one of them is `number`, and all others are 1.
Pattern product(std::vector<Pattern> factors, double number = 1);
Pattern maybe_cast(Pattern x);  // x, or x cast between a half and f32
// x, or a chain of views of x that all pass the test. The matcher steps over every such view. So x is the first value
// below that is not such a view, and there is only one way to match. The views themselves may have other uses.
Pattern through_views(Pattern x, ViewTest passes = any_view);
Pattern mean(Pattern x);  // over any axes, which it keeps
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

class Workspace;

// What a rule looks for in the elements of a constant.
using Look = std::optional<double>(const Tensor&);

// What a rule works with: the anchor, what the pattern's parts are bound to, what is known of values, and what rules
// make. A rule gets a const Match. The members that note something about the attempt (take, require, offer, offer_all,
// miss) are const all the same.
class Match {
 public:
  Match(Workspace& workspace, Expr anchor, Grade grade)
      : workspace_(&workspace), anchor_(anchor), taken_{anchor.value().node}, grade_(grade) {}
  Expr operator[](const Pattern& pattern) const;  // what it is bound to, or an absent Expr
  double number(const Pattern& pattern) const;    // the number of a bound splat
  Expr anchor() const { return anchor_; }
  Builder& builder() const { return anchor_.builder(); }
  const Graph& graph() const { return anchor_.builder().graph(); }
  const Node& node(Expr x) const { return graph().node(x.value()); }
  const Attrs& attrs(const Pattern& pattern) const { return node((*this)[pattern]).attrs; }
  const Attrs& attrs() const { return node(anchor_).attrs; }
  Expr in(size_t i) const;             // input i of the anchor, or an absent Expr
  Expr input(Expr x, size_t i) const;  // input i of any value's node
  bool is(Expr x, Op op) const { return x && x.valid() && node(x).op == op; }
  bool has_shape(Expr x) const { return x.dims() == anchor_.dims(); }  // the anchor's shape
  // The first value below x, x included, that is not a view or does not pass the test.
  Expr under_views(Expr x, ViewTest passes = any_view) const;

  // What is known of a value.
  std::optional<double> splat(Expr x) const;  // the number that all of its elements equal; nullopt: none is known
  const Affine* affine(Expr x) const;
  std::optional<Interval> range(Expr x) const;
  bool is_resident(Expr x) const;  // depends on params and constants alone
  bool is_static(Expr x) const;    // depends on constants and sizes alone
  // What `look` finds in a constant. It looks once, however many rules ask; nullopt also if x is no constant.
  std::optional<double> found_in(Expr x, Look look) const;

  // Whether only the anchor, and values that were taken before, use x. If so, x is taken too: it vanishes with the
  // match. What the anchor reads twice cannot be taken: it would stay as the other operand.
  bool take(Expr x) const;
  bool is_used(Value value) const;
  // Nodes that read it, no more than `most`: a value may have many, and rules ask at each of them.
  std::vector<uint32_t> users(Expr x, size_t most = SIZE_MAX) const;
  // Counts these readers against the budget that all rules of a pass share for following values; false if it is used
  // up.
  bool may_follow(size_t readers) const;

  // Whether rules of this grade may fire, and whether the device has no kernel for a composite that a rule has made.
  bool allows(Grade grade) const;
  bool is_refused(Expr x) const;
  bool checks_indices() const;        // an index out of range fails the run
  bool is_in_body() const;            // the graph is a body of a node
  bool is_output(Value value) const;  // of the graph

  // Requires a condition on sizes: it is proved, or becomes a guard of the graph. A rule may require it only if the
  // replaced nodes fail in every run that breaks it, even in one that reads no element. So a guard may turn an error
  // into an earlier one, but never a run that works into one that fails.
  bool require(const Dim& a, Guard::Relation relation, const Dim& b) const;
  size_t required() const { return required_; }  // how many became guards

  // A node like that of x, with some inputs changed, by their numbers, and with other attributes if they are given.
  using Changes = std::initializer_list<std::pair<size_t, Expr>>;
  Outputs rebuilt(Expr x, Changes inputs) const { return rebuilt(x, inputs, node(x).attrs); }
  Outputs rebuilt(Expr x, Changes inputs, Attrs attrs) const;
  // x is a chain of views of `under`. This is the same chain over `base`, which has the shape of `under`.
  Expr with_views(Expr x, Expr under, Expr base) const;

  // Offers a replacement for another value than the anchor. If the rule succeeds, users of `old` read `made`, except
  // where the types differ or a cycle would close. So the rule must be right without it.
  void offer(Value old, Expr made) const { offered_.emplace_back(old, made.value()); }
  // Replaces all outputs of a node: returns the first of `made`, and offers the others.
  Expr offer_all(Expr old, const Outputs& made) const;
  const std::vector<std::pair<Value, Value>>& offered() const { return offered_; }

  // Declines with a reason, which the report of near misses shows. Returns an absent Expr, for the rule to return.
  Expr miss(std::string_view why) const {
    if (reason_.empty()) reason_ = why;
    return Expr();
  }
  const std::string& reason() const { return reason_; }

 private:
  friend class Matcher;
  Workspace* workspace_;
  Expr anchor_;
  InlinedVector<std::pair<const PatternNode*, Value>, 8> bound_;
  // Nodes whose uses are no other uses: they vanish with the match, or are `shared`.
  mutable InlinedVector<uint32_t, 8> taken_;
  mutable std::vector<std::pair<Value, Value>> offered_;
  mutable size_t required_ = 0;
  mutable std::string reason_;
  Grade grade_;  // of the rule
};

// Whether `pattern` matches at the match's anchor; fills in the bindings.
bool find_match(const Pattern& pattern, Match& match);

}  // namespace rlx
