// SPDX-License-Identifier: Apache-2.0
#include "rewrite/pattern.h"

#include <algorithm>
#include <cmath>

#include "rewrite/facts.h"
#include "rewrite/rules.h"

namespace rlx {

static Pattern make(PatternNode node) {
  return Pattern(std::make_shared<const PatternNode>(std::move(node)));
}

Pattern::Pattern(double number) : Pattern(make({.kind = PatternNode::kNumber, .number = number})) {}

Pattern Pattern::where(std::string_view why, std::function<bool(const Match&, Expr)> holds) const {
  PatternNode copy = *node_;
  copy.why = why;
  copy.holds = std::move(holds);
  return make(std::move(copy));
}

Pattern Pattern::with(std::string_view attr, AttrValue value) const {
  PatternNode copy = *node_;
  copy.attrs.emplace_back(attr, std::move(value));
  return make(std::move(copy));
}

namespace patterns {

Pattern any() {
  return make({.kind = PatternNode::kAny});
}
Pattern constant() {
  return any().where("a constant or param", [](const Match& m, Expr x) { return m.rewriter().is_static(x.value()); });
}
Pattern scalar() {
  return any().where("a constant of equal elements",
                     [](const Match& m, Expr x) { return splat_value(m.graph(), x.value()).has_value(); });
}
Pattern op(Op op, std::vector<Pattern> in) {
  return make({.kind = PatternNode::kOp, .op = op, .in = std::move(in)});
}
Pattern either(std::vector<Pattern> alternatives) {
  return make({.kind = PatternNode::kEither, .in = std::move(alternatives)});
}
Pattern product(std::vector<Pattern> factors, double scalar) {
  return make({.kind = PatternNode::kProduct, .number = scalar, .in = std::move(factors)});
}
Pattern product_and_rest(std::vector<Pattern> factors, Pattern rest) {
  return make({.kind = PatternNode::kProduct, .in = std::move(factors), .rest = std::move(rest)});
}
Pattern maybe_cast(Pattern x) {
  return either({x, op(Op::kCast, {x})});
}
Pattern mean(Pattern x) {
  return op(Op::kMean, {x}).with("keep_dims", int64_t{1});
}
Pattern sum(Pattern x) {
  return op(Op::kReduce, {x}).with("fn", std::string("sum")).with("keep_dims", int64_t{1});
}

Pattern operator+(Pattern a, Pattern b) {
  return op(Op::kAdd, {a, b});
}
Pattern operator-(Pattern a, Pattern b) {
  return op(Op::kSub, {a, b});
}
Pattern operator*(Pattern a, Pattern b) {
  return op(Op::kMul, {a, b});
}
Pattern operator/(Pattern a, Pattern b) {
  return op(Op::kDiv, {a, b});
}

}  // namespace patterns

// ---- Match ----

Expr Match::operator[](const Pattern& pattern) const {
  for (const auto& [node, value] : bound_)
    if (node == pattern.get()) return builder().wrap(value);
  return Expr();
}

double Match::number(const Pattern& scalar) const {
  Expr bound = (*this)[scalar];
  return bound ? splat_value(graph(), bound.value()).value_or(NAN) : NAN;
}

Expr Match::in(size_t i) const {
  const Node& it = node(anchor_);
  return i < it.in.size() && present(it.in[i]) ? builder().wrap(it.in[i]) : Expr();
}

// ---- matching ----

// A product that is being taken apart: which factor comes next, and the values that earlier ones took.
struct ProductState {
  const PatternNode* pattern;
  size_t index;
  Value root;
  std::vector<Value> placed;
};

// Goals are a linked list on the stack: to match is to meet the first goal in some way and then all the others.
struct Goal {
  const PatternNode* pattern = nullptr;
  Value value;
  const Goal* next = nullptr;
  const ProductState* product = nullptr;  // instead of pattern and value: go on with this product
};

class Matcher {
 public:
  explicit Matcher(Match& match) : match_(match) {}

  bool solve(const Goal* goals) {
    if (!goals) return true;
    size_t mark = match_.bound_.size();
    bool found =
        goals->product ? place_factor(*goals->product, goals->next) : step(*goals->pattern, goals->value, goals->next);
    if (!found) match_.bound_.resize(mark);
    return found;
  }

 private:
  bool step(const PatternNode& pattern, Value value, const Goal* next) {
    if (const Value* bound = find(&pattern)) return *bound == value && solve(next);
    switch (pattern.kind) {
      case PatternNode::kAny: return bind(pattern, value) && solve(next);
      case PatternNode::kNumber: return is_near(pattern.number, value) && solve(next);
      case PatternNode::kOp: return step_op(pattern, value, next);
      case PatternNode::kProduct: return bind(pattern, value) && place_factor({&pattern, 0, value, {}}, next);
      case PatternNode::kEither: return step_either(pattern, value, next);
    }
    return false;
  }

  bool step_either(const PatternNode& pattern, Value value, const Goal* next) {
    if (!bind(pattern, value)) return false;
    for (const Pattern& alternative : pattern.in) {
      Goal goal{alternative.get(), value, next};
      if (solve(&goal)) return true;
    }
    return false;
  }

  bool step_op(const PatternNode& pattern, Value value, const Goal* next) {
    const Node& node = match_.graph().node(value);
    if (node.op != pattern.op || value.output != 0 || node.in.size() < pattern.in.size()) return false;
    for (const auto& [name, wanted] : pattern.attrs)
      if (!equal(node.attrs.get(name), wanted)) return false;
    if (!is_free(value) || !bind(pattern, value)) return false;
    size_t mark = match_.bound_.size();
    if (solve_inputs(pattern, node, false, next)) return true;
    match_.bound_.resize(mark);
    bool commutes = match_.graph().info(node).is(kCommutative) && pattern.in.size() == 2;
    return commutes && solve_inputs(pattern, node, true, next);
  }

  bool solve_inputs(const PatternNode& pattern, const Node& node, bool swapped, const Goal* next) {
    std::vector<Goal> goals(pattern.in.size());
    for (size_t i = 0; i < goals.size(); i++) {
      Value in = node.in[swapped ? 1 - i : i];
      if (!present(in)) return false;
      goals[i] = {pattern.in[i].get(), in, i + 1 < goals.size() ? &goals[i + 1] : next};
    }
    return solve(goals.empty() ? next : &goals[0]);
  }

  // Places the next factor on any sub-product that is still whole; after the last, sees to what is left.
  bool place_factor(const ProductState& state, const Goal* next) {
    if (state.index == state.pattern->in.size()) return finish_product(state, next);
    std::vector<Value> candidates;
    collect_products(state.root, state.placed, candidates);
    for (Value candidate : candidates) {
      ProductState then = state;
      then.index++;
      then.placed.push_back(candidate);
      Goal rest{.next = next, .product = &then};
      Goal factor{state.pattern->in[state.index].get(), candidate, &rest};
      if (solve(&factor)) return true;
    }
    return false;
  }

  bool finish_product(const ProductState& state, const Goal* next) {
    std::vector<Value> placed = state.placed, left;
    take_apart(state.root, placed, left);
    if (!placed.empty()) return false;  // one factor lies inside another
    if (state.pattern->rest.get()) {
      if (left.size() != 1) return false;
      Goal goal{state.pattern->rest.get(), left[0], next};
      return solve(&goal);
    }
    double scalar = 1;
    for (Value factor : left) {
      auto number = splat_value(match_.graph(), factor);
      if (!number) return false;
      scalar *= *number;
    }
    return near(scalar, state.pattern->number) && solve(next);
  }

  bool is_inner_product(Value value) const { return match_.graph().node(value).op == Op::kMul && is_free(value); }

  // Every sub-product of the tree under `root` that holds no placed factor as a whole of its own.
  void collect_products(Value root, const std::vector<Value>& placed, std::vector<Value>& out) const {
    if (std::find(placed.begin(), placed.end(), root) != placed.end()) return;
    if (std::find(out.begin(), out.end(), root) == out.end()) out.push_back(root);
    if (is_inner_product(root))
      for (Value in : match_.graph().node(root).in) collect_products(in, placed, out);
  }

  bool holds_any(Value root, const std::vector<Value>& wanted) const {
    if (std::find(wanted.begin(), wanted.end(), root) != wanted.end()) return true;
    if (!is_inner_product(root)) return false;
    const Node& node = match_.graph().node(root);
    return holds_any(node.in[0], wanted) || holds_any(node.in[1], wanted);
  }

  // Splits `root` as far as needed to find the placed factors (and takes them off the list); the others go to `left`.
  void take_apart(Value root, std::vector<Value>& placed, std::vector<Value>& left) const {
    auto found = std::find(placed.begin(), placed.end(), root);
    if (found != placed.end()) {
      placed.erase(found);
    } else if (is_inner_product(root) && holds_any(root, placed)) {
      const Node& node = match_.graph().node(root);
      take_apart(node.in[0], placed, left);
      take_apart(node.in[1], placed, left);
    } else if (is_inner_product(root) && !splat_value(match_.graph(), root) && has_scalar(root)) {
      const Node& node = match_.graph().node(root);  // a scalar joined to a factor: they are judged apart
      take_apart(node.in[0], placed, left);
      take_apart(node.in[1], placed, left);
    } else {
      left.push_back(root);
    }
  }

  bool has_scalar(Value product) const {
    const Node& node = match_.graph().node(product);
    return splat_value(match_.graph(), node.in[0]) || splat_value(match_.graph(), node.in[1]);
  }

  // Constants in files are f32 or f16 roundings of the formula's.
  static bool near(double got, double wanted) {
    return got == wanted || std::fabs(got - wanted) <= 2e-6 * std::fabs(wanted);
  }

  bool is_near(double number, Value value) const {
    auto splat = splat_value(match_.graph(), value);
    return splat && near(*splat, number);
  }

  // Whether a matched inner value vanishes with the match. The anchor itself is what gets replaced.
  bool is_free(Value value) const {
    if (value == match_.anchor().value() || !match_.rewriter().used_elsewhere(value)) return true;
    if (match_.rewriter().may_be_repeated(value)) return true;
    match_.miss("%" + std::to_string(value.node) + " has another use");
    return false;
  }

  const Value* find(const PatternNode* pattern) const {
    for (const auto& bound : match_.bound_)
      if (bound.first == pattern) return &bound.second;
    return nullptr;
  }

  bool bind(const PatternNode& pattern, Value value) {
    if (pattern.holds && !pattern.holds(match_, match_.builder().wrap(value))) {
      match_.miss("%" + std::to_string(value.node) + " is not " + pattern.why);
      return false;
    }
    match_.bound_.emplace_back(&pattern, value);
    return true;
  }

  Match& match_;
};

bool find_match(const Pattern& pattern, Match& match) {
  Goal goal{pattern.get(), match.anchor().value()};
  return Matcher(match).solve(&goal);
}

}  // namespace rlx
