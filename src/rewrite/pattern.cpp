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

// Nested `mul`s as a tree of occurrences: in x * x the value x stands twice, and is two factors.
struct Occurrence {
  Value value;
  size_t left = 0, right = 0;  // into the tree; 0: not a product that can be taken apart
  bool is_product() const { return left != 0; }
};
using ProductTree = std::vector<Occurrence>;
static constexpr size_t kLargestProduct = 64;  // beyond it factors stay products

// A product that is being taken apart: which factor comes next, and the occurrences that earlier ones took.
struct ProductState {
  const PatternNode* pattern;
  size_t index;
  const ProductTree* tree;
  std::vector<size_t> placed;
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
      case PatternNode::kProduct: return step_product(pattern, value, next);
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

  bool step_product(const PatternNode& pattern, Value value, const Goal* next) {
    if (!bind(pattern, value)) return false;
    ProductTree tree{{value}};
    for (size_t at = 0; at < tree.size() && tree.size() < kLargestProduct; at++) {
      const Node& node = match_.graph().node(tree[at].value);
      if (node.op != Op::kMul || !is_free(tree[at].value)) continue;
      tree[at].left = tree.size(), tree[at].right = tree.size() + 1;
      tree.push_back({node.in[0]});
      tree.push_back({node.in[1]});
    }
    return place_factor({&pattern, 0, &tree, {}}, next);
  }

  // Places the next factor on any sub-product that is still whole; after the last, sees to what is left.
  bool place_factor(const ProductState& state, const Goal* next) {
    if (state.index == state.pattern->in.size()) return finish_product(state, next);
    std::vector<Value> tried;  // of equal values the first will do
    for (size_t at = 0; at < state.tree->size(); at++) {
      Value value = (*state.tree)[at].value;
      if (is_touched(state, at) || std::find(tried.begin(), tried.end(), value) != tried.end()) continue;
      tried.push_back(value);
      ProductState then = state;
      then.index++;
      then.placed.push_back(at);
      Goal rest{.next = next, .product = &then};
      Goal factor{state.pattern->in[state.index].get(), value, &rest};
      if (solve(&factor)) return true;
    }
    return false;
  }

  bool finish_product(const ProductState& state, const Goal* next) {
    std::vector<Value> left;
    collect_rest(state, 0, left);
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

  static bool holds(const ProductTree& tree, size_t whole, size_t part) {
    if (whole == part) return true;
    return tree[whole].is_product() && (holds(tree, tree[whole].left, part) || holds(tree, tree[whole].right, part));
  }

  // Whether the occurrence has a part in common with a placed factor.
  static bool is_touched(const ProductState& state, size_t at) {
    return std::any_of(state.placed.begin(), state.placed.end(),
                       [&](size_t placed) { return holds(*state.tree, at, placed) || holds(*state.tree, placed, at); });
  }

  // What no factor took, in pieces as large as that allows; a scalar joined to such a piece is a piece of its own.
  void collect_rest(const ProductState& state, size_t at, std::vector<Value>& left) const {
    const Occurrence& it = (*state.tree)[at];
    if (std::find(state.placed.begin(), state.placed.end(), at) != state.placed.end()) return;
    bool splits = it.is_product() && (is_touched(state, at) || (!is_scalar(it.value) && has_scalar(state, it)));
    if (!splits) {
      left.push_back(it.value);
      return;
    }
    collect_rest(state, it.left, left);
    collect_rest(state, it.right, left);
  }

  bool is_scalar(Value value) const { return splat_value(match_.graph(), value).has_value(); }
  bool has_scalar(const ProductState& state, const Occurrence& product) const {
    return is_scalar((*state.tree)[product.left].value) || is_scalar((*state.tree)[product.right].value);
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
