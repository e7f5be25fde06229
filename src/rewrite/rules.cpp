// SPDX-License-Identifier: Apache-2.0
#include "rewrite/rules.h"

namespace rlx {

// A replacement pattern on the bindings of a match: its ops are built, its wildcards looked up.
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

void RuleSet::add(Grade grade, std::string name, Pattern pattern, std::function<Expr(const Match&)> apply) {
  rules_.push_back(std::make_unique<Rule>(Rule{grade, std::move(name), pattern, std::move(apply)}));
  for (Op op : anchors_of(pattern)) by_anchor_[op].push_back(rules_.back().get());
}

void RuleSet::add(Grade grade, std::string name, Pattern pattern, Pattern replacement) {
  add(grade, std::move(name), pattern,
      [replacement](const Match& match) { return instantiate(replacement, match, match.anchor().dtype()); });
}

void RuleSet::add(Grade grade, std::string name, const std::vector<Op>& anchors,
                  std::function<Expr(const Match&)> apply) {
  rules_.push_back(std::make_unique<Rule>(Rule{grade, std::move(name), {}, std::move(apply)}));
  for (Op op : anchors) by_anchor_[op].push_back(rules_.back().get());
}

std::span<const Rule* const> RuleSet::at(Op op) const {
  auto found = by_anchor_.find(op);
  if (found == by_anchor_.end()) return {};
  return found->second;
}

std::vector<std::string_view> RuleSet::names() const {
  std::vector<std::string_view> names;
  for (const auto& rule : rules_) names.push_back(rule->name);
  return names;
}

}  // namespace rlx
