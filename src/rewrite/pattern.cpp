// SPDX-License-Identifier: Apache-2.0
// Patterns, and the matcher: a search with backtracking. What remains to match is a list of goals. Every choice is
// tried with all goals that follow it, and what was bound on the way is undone if they fail.
#include "rewrite/pattern.h"

#include <algorithm>
#include <cmath>

#include "base/contains.h"
#include "base/visit.h"
#include "rewrite/product_tree.h"
#include "rewrite/workspace.h"

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

Pattern Pattern::shared() const {
  PatternNode copy = *node_;
  copy.shared = true;
  return make(std::move(copy));
}

Pattern Pattern::with(std::string_view attr, AttrValue value) const {
  PatternNode copy = *node_;
  copy.attrs.emplace_back(attr, std::move(value));
  return make(std::move(copy));
}

namespace patterns {

Pattern exactly(double number) {
  return make({.kind = PatternNode::kNumber, .number = number, .exact = true});
}
Pattern any() {
  return make({.kind = PatternNode::kAny});
}
Pattern resident() {
  return any().where("a constant or param", [](const Match& m, Expr x) { return m.is_resident(x); });
}
Pattern splat() {
  return make({.kind = PatternNode::kSplat});
}
Pattern op(Op op, std::vector<Pattern> in) {
  return make({.kind = PatternNode::kOp, .op = op, .in = std::move(in)});
}
Pattern either(std::vector<Pattern> alternatives) {
  return make({.kind = PatternNode::kEither, .in = std::move(alternatives)});
}
Pattern product(std::vector<Pattern> factors, double number) {
  return make({.kind = PatternNode::kProduct, .number = number, .in = std::move(factors)});
}
Pattern maybe_cast(Pattern x) {
  Pattern cast = op(Op::kCast, {x}).shared().where("a cast between a half and f32", [](const Match& m, Expr y) {
    return is_between_half_and_f32(m.input(y, 0).dtype(), y.dtype());
  });
  return either({x, cast});
}
Pattern through_views(Pattern x, ViewTest passes) {
  return make({.kind = PatternNode::kViews, .in = {std::move(x)}, .passes = passes});
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

// ---- matching ----

// Progress in a product: which factor is placed next, and the occurrences that earlier factors have taken.
struct ProductState {
  const PatternNode* pattern;
  size_t index;
  const ProductTree* tree;
  InlinedVector<size_t, 4> placed;
};

// What remains to match, as a linked list on the stack. A match meets the first goal in some way, and then the others.
struct Goal {
  const PatternNode* pattern = nullptr;
  Value value;
  const Goal* next = nullptr;
  const ProductState* product = nullptr;  // instead of pattern and value: place its next factor
};

class Matcher {
 public:
  explicit Matcher(Match& match) : match_(match) {}

  bool solve(const Goal* goals) {
    if (!goals) return take_inner_nodes();
    size_t mark = match_.bound_.size();
    bool found =
        goals->product ? place_factor(*goals->product, goals->next) : step(*goals->pattern, goals->value, goals->next);
    if (!found) match_.bound_.truncate(mark);
    return found;
  }

 private:
  bool step(const PatternNode& pattern, Value value, const Goal* next) {
    if (const Value* bound = find(&pattern)) return *bound == value && solve(next);
    switch (pattern.kind) {
      case PatternNode::kAny: return bind(pattern, value) && solve(next);
      case PatternNode::kNumber: return is_number(pattern, value) && solve(next);
      case PatternNode::kSplat: return is_splat(value) && bind(pattern, value) && solve(next);
      case PatternNode::kOp: return step_op(pattern, value, next);
      case PatternNode::kProduct: return step_product(pattern, value, next);
      case PatternNode::kEither: return step_either(pattern, value, next);
      case PatternNode::kViews: return step_views(pattern, value, next);
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

  bool step_views(const PatternNode& pattern, Value value, const Goal* next) {
    if (!bind(pattern, value)) return false;
    Value under = match_.under_views(match_.builder().wrap(value), pattern.passes).value();
    size_t mark = views_.size();
    for (Value view = value; view != under; view = match_.graph().node(view).in[0]) views_.push_back(view);
    Goal goal{pattern.in[0].get(), under, next};
    if (solve(&goal)) return true;
    views_.resize(mark);
    return false;
  }

  bool step_op(const PatternNode& pattern, Value value, const Goal* next) {
    const Node& node = match_.graph().node(value);
    if (node.op != pattern.op || value.output != 0 || node.in.size() < pattern.in.size()) return false;
    for (const auto& [name, wanted] : pattern.attrs)
      if (!matches(node.attrs.get(name), wanted, match_.anchor().dtype())) return false;
    if (!bind(pattern, value)) return false;
    size_t mark = match_.bound_.size();
    if (solve_inputs(pattern, node, Operands::kInOrder, next)) return true;
    match_.bound_.truncate(mark);
    bool commutes = match_.graph().info(node).is(kCommutative) && pattern.in.size() == 2;
    return commutes && solve_inputs(pattern, node, Operands::kSwapped, next);
  }

  static bool is_constant(const PatternNode& pattern) {
    return pattern.kind == PatternNode::kNumber || pattern.kind == PatternNode::kSplat;
  }

  enum class Operands : uint8_t { kInOrder, kSwapped };

  // Constants come first: if one is not there, the rest is not a near miss.
  bool solve_inputs(const PatternNode& pattern, const Node& node, Operands order, const Goal* next) {
    InlinedVector<Goal, 4> goals;
    size_t count = pattern.in.size();
    goals.reserve(count);  // so that none moves: each goal points to the next
    for (bool constants : {true, false})
      for (size_t i = 0; i < count; i++) {
        if (is_constant(*pattern.in[i].get()) != constants) continue;
        Value in = node.in[order == Operands::kSwapped ? 1 - i : i];
        if (!present(in)) return false;
        goals.push_back({pattern.in[i].get(), in, goals.size() + 1 < count ? goals.data() + goals.size() + 1 : next});
      }
    return solve(goals.empty() ? next : &goals[0]);
  }

  bool step_product(const PatternNode& pattern, Value value, const Goal* next) {
    if (!bind(pattern, value)) return false;
    ProductTree tree = product_tree(match_.graph(), value, [&](Value factor, std::span<const uint32_t> users) {
      return match_.workspace_->is_used_only_by(factor, users);
    });
    size_t mark = products_.size();
    for (const Occurrence& it : tree)
      if (it.is_product()) products_.push_back(it.value.node);
    bool found = place_factor({&pattern, 0, &tree, {}}, next);
    if (!found) products_.resize(mark);
    return found;
  }

  // Places the next factor on each sub-product that is still whole. After the last factor, checks what is left.
  bool place_factor(const ProductState& state, const Goal* next) {
    if (state.index == state.pattern->in.size()) return finish_product(state, next);
    const PatternNode& factor = *state.pattern->in[state.index].get();
    const Value* found = find(&factor);
    std::optional<Value> bound = found ? std::optional(*found) : std::nullopt;
    auto may_be = [&](Value value) {
      if (bound) return *bound == value;
      return factor.kind != PatternNode::kOp || match_.graph().node(value).op == factor.op;
    };
    std::vector<Value> tried;  // equal values match alike
    for (size_t at = 0; at < state.tree->size(); at++) {
      Value value = (*state.tree)[at].value;
      if (!may_be(value)) continue;
      if (is_touched(state, at) || contains(tried, value)) continue;
      tried.push_back(value);
      ProductState then = state;
      then.index++;
      then.placed.push_back(at);
      Goal rest{.next = next, .product = &then};
      Goal goal{&factor, value, &rest};
      if (solve(&goal)) return true;
    }
    return false;
  }

  bool finish_product(const ProductState& state, const Goal* next) {
    std::vector<Value> left;
    collect_rest(state, 0, left);
    const double wanted = state.pattern->number;
    double found = 1;
    for (Value factor : left) {
      auto number = match_.splat(match_.builder().wrap(factor));
      if (!number) return false;
      if (is_exact() && *number != 1 && *number != wanted) return false;  // a product with it may overflow or round
      found *= *number;
    }
    return near(found, wanted, match_.anchor().dtype()) && solve(next);
  }

  // Whether the occurrence has a part in common with a placed factor.
  static bool is_touched(const ProductState& state, size_t at) {
    const Occurrence& it = (*state.tree)[at];
    return std::any_of(state.placed.begin(), state.placed.end(), [&](size_t placed) {
      const Occurrence& other = (*state.tree)[placed];
      return it.holds(other) || other.holds(it);
    });
  }

  // Collects what no factor took, in pieces as large as possible. But a splat that is one factor of a product is a
  // piece of its own.
  void collect_rest(const ProductState& state, size_t at, std::vector<Value>& left) const {
    const Occurrence& it = (*state.tree)[at];
    if (contains(state.placed, at)) return;
    bool splits = it.is_product() && (is_touched(state, at) || (!is_splat(it.value) && has_splat(state, it)));
    if (!splits) {
      left.push_back(it.value);
      return;
    }
    collect_rest(state, it.left, left);
    collect_rest(state, it.right, left);
  }

  bool is_splat(Value value) const { return match_.splat(match_.builder().wrap(value)).has_value(); }
  bool has_splat(const ProductState& state, const Occurrence& product) const {
    return is_splat((*state.tree)[product.left].value) || is_splat((*state.tree)[product.right].value);
  }

  // Files round constants to the dtype or to f32. Allowed errors: half an ulp for halves; relative, 2^-48 for f64 and
  // 2e-6 for all others. 0, and every number in a rule of grade `exact`, must be equal.
  bool near(double got, double wanted, DType dtype) const {
    if (got == wanted || wanted == 0 || is_exact()) return got == wanted;
    int digits = dtype == DType::kBF16 ? 8 : 11;
    double relative = dtype == DType::kF64 ? 0x1p-48 : 2e-6;
    double allowed = is_half(dtype) ? std::ldexp(1.0, std::ilogb(wanted) - digits) : relative * std::fabs(wanted);
    return std::fabs(got - wanted) < allowed;
  }

  bool is_exact() const { return match_.grade_ == Grade::kExact; }

  bool matches(const AttrValue& got, const AttrValue& wanted, DType dtype) const {
    const double *a = std::get_if<double>(&got), *b = std::get_if<double>(&wanted);
    return a && b ? near(*a, *b, dtype) : equal(got, wanted);
  }

  bool is_number(const PatternNode& pattern, Value value) const {
    Expr x = match_.builder().wrap(value);
    auto splat = match_.splat(x);
    if (!splat || (pattern.number == 0 && std::signbit(*splat) != std::signbit(pattern.number))) return false;
    return pattern.exact ? *splat == pattern.number : near(*splat, pattern.number, x.dtype());
  }

  // Takes the nodes between the root and the wildcards: they vanish with the match. A node with another use stays, if
  // it is cheap, and keeps all that it reads. Returns false if one has another use and is not cheap.
  bool take_inner_nodes() {
    InlinedVector<uint32_t, 8> own{match_.anchor().value().node};
    for (uint32_t product : products_) own.push_back(product);
    std::vector<Value> staying = views_;
    for (const auto& [pattern, value] : match_.bound_) {
      if (!is_inner(*pattern) || value == match_.anchor().value()) continue;
      if (pattern->shared)
        own.push_back(value.node);  // it may stay: what only it reads has no other use all the same
      else
        staying.push_back(value);
    }
    auto goes = [&](Value value) {
      if (!match_.workspace_->is_used_only_by(value, own)) return false;
      own.push_back(value.node);
      return true;
    };
    while (std::erase_if(staying, goes) > 0) {}
    for (Value value : staying) {
      if (match_.workspace_->may_be_repeated(value)) continue;
      match_.miss("%" + std::to_string(value.node) + " has another use");
      return false;
    }
    match_.taken_ = std::move(own);
    return true;
  }

  static bool is_inner(const PatternNode& pattern) {
    return pattern.kind == PatternNode::kOp || pattern.kind == PatternNode::kProduct;
  }

  const Value* find(const PatternNode* pattern) const {
    for (const auto& bound : match_.bound_)
      if (bound.first == pattern) return &bound.second;
    return nullptr;
  }

  bool bind(const PatternNode& pattern, Value value) {
    if (pattern.holds && !pattern.holds(match_, match_.builder().wrap(value))) {
      if (match_.reason().empty()) match_.miss("%" + std::to_string(value.node) + " is not " + pattern.why);
      return false;
    }
    match_.bound_.push_back({&pattern, value});
    return true;
  }

  Match& match_;
  std::vector<uint32_t> products_;  // nodes that a kProduct took apart
  std::vector<Value> views_;        // that a kViews stepped over, the uppermost first
};

bool find_match(const Pattern& pattern, Match& match) {
  Goal goal{pattern.get(), match.anchor().value()};
  return Matcher(match).solve(&goal);
}

}  // namespace rlx
