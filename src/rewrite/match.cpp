// SPDX-License-Identifier: Apache-2.0
// What a rule may ask of the workspace and do in it (class Match of pattern.h). rewrite/pattern.cpp finds the match.
#include <algorithm>
#include <cmath>

#include "rewrite/pattern.h"
#include "rewrite/workspace.h"

namespace rlx {

// ---- views ----

static constexpr size_t kMaxViews = 8;  // stepped over at most: a chain in normal form is shorter

bool any_view(const Match&, Expr) {
  return true;
}
bool any_reshape(const Match& m, Expr view) {
  return m.is(view, Op::kReshape);
}
bool any_broadcast(const Match& m, Expr view) {
  return m.is(view, Op::kBroadcastTo);
}
bool keeps_rows(const Match& m, Expr view) {
  Expr x = m.input(view, 0);
  return m.is(view, Op::kReshape) && x.rank() && view.rank() && x.dim(-1) == view.dim(-1);
}

// ---- what is bound, and what is known of values ----

Expr Match::operator[](const Pattern& pattern) const {
  for (const auto& [node, value] : bound_)
    if (node == pattern.get()) return builder().wrap(value);
  return Expr();
}

double Match::number(const Pattern& pattern) const {
  Expr bound = (*this)[pattern];
  return bound ? splat(bound).value_or(NAN) : NAN;
}

Expr Match::in(size_t i) const {
  return input(anchor_, i);
}

Expr Match::input(Expr x, size_t i) const {
  const Node& it = node(x);
  return i < it.in.size() && present(it.in[i]) ? builder().wrap(it.in[i]) : Expr();
}

std::optional<double> Match::splat(Expr x) const {
  return workspace_->facts().splat(x.value());
}
const Affine* Match::affine(Expr x) const {
  return workspace_->facts().affine(x.value());
}
std::optional<Interval> Match::range(Expr x) const {
  return workspace_->facts().range(x.value());
}
bool Match::is_resident(Expr x) const {
  return workspace_->facts().is_resident(x.value());
}
bool Match::is_static(Expr x) const {
  return workspace_->facts().is_static(x.value().node);
}
std::optional<double> Match::found_in(Expr x, Look look) const {
  return workspace_->found_in(x.value(), look);
}
bool Match::may_follow(size_t readers) const {
  return workspace_->may_follow(readers);
}
std::vector<uint32_t> Match::users(Expr x, size_t most) const {
  return workspace_->users(x.value(), most);
}
bool Match::is_used(Value value) const {
  return workspace_->is_used(value);
}
bool Match::allows(Grade grade) const {
  return workspace_->allows(grade);
}
bool Match::is_refused(Expr x) const {
  return x.valid() && workspace_->is_refused(x.value());
}
bool Match::checks_indices() const {
  return workspace_->options().checks_indices;
}

bool Match::is_in_body() const {
  return workspace_->options().is_body;
}

bool Match::is_output(Value value) const {
  return workspace_->is_output(value);
}

bool Match::take(Expr x) const {
  bool stays_beside = std::ranges::count(node(anchor_).in, x.value()) > 1;
  if (stays_beside || !workspace_->is_used_only_by(x.value(), taken_)) return false;
  taken_.push_back(x.value().node);
  return true;
}

Expr Match::under_views(Expr x, ViewTest passes) const {
  for (size_t count = 0; count < kMaxViews; count++) {
    const Node& it = node(x);
    bool is_view = it.in.size() == 1 && present(it.in[0]) && graph().info(it).is(kView);
    if (!is_view || !passes(*this, x)) break;
    x = input(x, 0);
  }
  return x;
}

Expr Match::with_views(Expr x, Expr under, Expr base) const {
  std::vector<Expr> views;
  for (; x.value() != under.value(); x = input(x, 0)) views.push_back(x);
  for (; !views.empty(); views.pop_back()) base = rebuilt(views.back(), {{0, base}})[0];
  return base;
}

Outputs Match::rebuilt(Expr x, Changes inputs, Attrs attrs) const {
  std::vector<Expr> in;
  for (size_t i = 0; i < node(x).in.size(); i++) in.push_back(input(x, i));
  for (const auto& [i, changed] : inputs) {
    in.resize(std::max(in.size(), i + 1));
    in[i] = changed;
  }
  return builder().add(graph().info(node(x)), in, std::move(attrs));
}

Expr Match::offer_all(Expr old, const Outputs& made) const {
  for (uint32_t i = 1; i < made.size(); i++) offer({old.value().node, i}, made[i]);
  return made[0];
}

bool Match::require(const Dim& a, Guard::Relation relation, const Dim& b) const {
  Graph& graph = builder().graph();
  size_t before = graph.guards().size();
  if (!graph.add_guard({relation, a, b, graph.describe(anchor_.value().node)}).ok()) return false;
  required_ += graph.guards().size() - before;
  return true;
}

}  // namespace rlx
