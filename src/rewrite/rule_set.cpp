// SPDX-License-Identifier: Apache-2.0
// What a set knows of its rules, so that few are tried in vain: at which ops they start, how deep they look, and
// which ops a graph must have.
#include "rewrite/rule_set.h"

#include <algorithm>

namespace rlx {

// Builds a replacement pattern: its ops become nodes, its wildcards are what they are bound to.
static Expr instantiate(const Pattern& pattern, const Match& match, DType dtype) {
  const PatternNode& node = *pattern.get();
  if (Expr bound = match[pattern]) return bound;
  if (node.kind == PatternNode::kNumber) return match.builder().scalar(dtype, node.number);
  std::vector<Expr> in;
  for (const Pattern& input : node.in) in.push_back(instantiate(input, match, dtype));
  NamedAttrs attrs(node.attrs.begin(), node.attrs.end());
  return match.builder().ops(node.op, in, attrs)[0];
}

static std::vector<Op> anchors_of(const Pattern& pattern) {
  const PatternNode& node = *pattern.get();
  if (node.kind == PatternNode::kOp) return {node.op};
  if (node.kind == PatternNode::kProduct) return {Op::kMul};
  std::vector<Op> anchors;
  for (const Pattern& alternative : node.in)
    for (Op op : anchors_of(alternative)) anchors.push_back(op);
  return anchors;
}

// The longest path of ops down a pattern, the root counted; casts and views that are looked through count nothing.
static int depth_of(const Pattern& pattern) {
  if (!pattern.get()) return 0;
  const PatternNode& node = *pattern.get();
  int deepest = 0;
  for (const Pattern& input : node.in) deepest = std::max(deepest, depth_of(input));
  bool is_product = node.kind == PatternNode::kProduct;
  bool counts = node.kind == PatternNode::kOp && node.op != Op::kCast;
  return deepest + (is_product ? 2 : counts);  // factors may stand in a tree
}

// Lists of ops: every match of the pattern contains an op of each.
static void collect_needs(const Pattern& pattern, std::vector<std::vector<Op>>& needs) {
  const PatternNode* node = pattern.get();
  if (!node) return;
  if (node->kind == PatternNode::kEither) {
    bool all_are_ops = std::none_of(node->in.begin(), node->in.end(),
                                    [](const Pattern& alternative) { return anchors_of(alternative).empty(); });
    if (all_are_ops) needs.push_back(anchors_of(pattern));
    return;
  }
  if (node->kind == PatternNode::kOp) needs.push_back({node->op});
  for (const Pattern& input : node->in) collect_needs(input, needs);
}

RuleSet::RuleSet(std::initializer_list<Family> families, std::initializer_list<Family> after) {
  for (Family add : families) add(*this);
  is_after_ = true;
  for (Family add : after) add(*this);
}

void RuleSet::add(Rule rule, int depth) {
  rule.only_tidies = is_after_;
  rules_.push_back(std::make_unique<Rule>(std::move(rule)));
  for (Op op : rules_.back()->anchors) {
    auto index = static_cast<size_t>(op);
    if (anchors_.size() <= index) anchors_.resize(index + 1);
    anchors_[index].rules.push_back(rules_.back().get());
    anchors_[index].depth = std::max(anchors_[index].depth, depth);
  }
  deepest_ = std::max(deepest_, depth);
}

void RuleSet::add(Grade grade, std::string name, Pattern pattern, std::function<Expr(const Match&)> apply) {
  Rule rule{grade, std::move(name), pattern, std::move(apply), anchors_of(pattern)};
  collect_needs(pattern, rule.needs);
  add(std::move(rule), depth_of(pattern));
}

void RuleSet::add(Grade grade, std::string name, Pattern pattern, Pattern replacement) {
  add(grade, std::move(name), pattern,
      [replacement](const Match& match) { return instantiate(replacement, match, match.anchor().dtype()); });
}

void RuleSet::add(Grade grade, std::string name, const std::vector<Op>& anchors,
                  std::function<Expr(const Match&)> apply, Reach reach) {
  Rule rule{grade, std::move(name), {}, std::move(apply), anchors};
  if (!reach.needs.empty()) rule.needs.push_back(std::move(reach.needs));
  add(std::move(rule), reach.depth);
}

std::span<const Rule* const> RuleSet::at(Op op) const {
  auto index = static_cast<size_t>(op);
  return index < anchors_.size() ? std::span<const Rule* const>(anchors_[index].rules) : std::span<const Rule* const>();
}

static bool has_one(const std::vector<Op>& ops, const std::vector<bool>& is_there) {
  return std::any_of(ops.begin(), ops.end(), [&](Op op) {
    auto index = static_cast<size_t>(op);
    return index < is_there.size() && is_there[index];
  });
}

bool RuleSet::has_needs(const Rule& rule, const std::vector<bool>& is_there) {
  return std::all_of(rule.needs.begin(), rule.needs.end(), [&](const auto& ops) { return has_one(ops, is_there); });
}

// If no rule can fire in the given graph, none can make what another one needs.
bool RuleSet::may_fire(const std::vector<bool>& is_there, Grade loosest) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const auto& rule) {
    return !rule->only_tidies && rule->grade <= loosest && has_one(rule->anchors, is_there) &&
           has_needs(*rule, is_there);
  });
}

int RuleSet::depth(Op op) const {
  auto index = static_cast<size_t>(op);
  return index < anchors_.size() ? anchors_[index].depth : 0;
}

std::vector<std::string_view> RuleSet::names() const {
  std::vector<std::string_view> names;
  for (const auto& rule : rules_) names.push_back(rule->name);
  return names;
}

}  // namespace rlx
