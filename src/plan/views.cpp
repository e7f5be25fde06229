// SPDX-License-Identifier: Apache-2.0
// Which nodes are views: the layouts that are possible, and the choice among them by what readers accept.
#include "plan/views.h"

#include <functional>
#include <queue>
#include <utility>

namespace rlx {

// A chain of slices of open sizes adds a term to the shift at each of them. A copy now and then costs less.
static constexpr int64_t kMaxParts = 64;

std::optional<Layout> view_of(const Graph& graph, const Node& node, const Layout& input) {
  ViewFn view = graph.info(node).view;
  if (!view) return std::nullopt;
  const std::vector<Dim>& dims = node.out[0].dims;
  std::optional<Strided> strided = view({graph.type(node.in[0]).dims, dims, node.attrs, input});
  if (!strided || strided->shift.parts() > kMaxParts) return std::nullopt;
  bool dense = is_dense(dims, *strided);
  return Layout{std::move(*strided), input.root, dense};
}

// ---- the choice ----

namespace {

// Makes a view of every node that can be one, as far as demands for dense values are known. A new demand makes its
// value a root; only nodes that depend on it are then visited again.
class Chooser {
 public:
  explicit Chooser(const LoweredGraph& lowered) : lowered_(lowered), graph_(lowered.graph) {
    size_t count = graph_.nodes().size();
    users_.resize(count);
    is_stale_.resize(count, false);
    layouts_.of.resize(count);
    layouts_.copy_of.resize(count);
    needs_dense_.resize(count);
    for (uint32_t index = 0; index < count; index++) {
      needs_dense_[index].resize(graph_.node(index).out.size(), false);
      for (Value value : graph_.node(index).in)
        if (present(value) &&
            lowered_.phases[value.node] != Phase::kResident &&  // the layout of a resident value never changes
            (users_[value.node].empty() || users_[value.node].back() != index))
          users_[value.node].push_back(index);
    }
    for (uint32_t index = 0; index < count; index++) {
      layouts_.of[index] = dense(index);
      if (lowered_.phases[index] != Phase::kResident) note_stale(index);
    }
    for (const GraphOutput& output : graph_.outputs()) needs_dense_[output.value.node][output.value.output] = true;
  }

  Layouts run() {
    while (!stale_.empty()) {
      std::vector<uint32_t> seen;  // in order, so each comes after its inputs
      while (!stale_.empty()) {
        uint32_t index = stale_.top();
        stale_.pop();
        is_stale_[index] = false;
        seen.push_back(index);
        if (propose(index))
          for (uint32_t user : users_[index]) note_stale(user);
      }
      for (uint32_t index : seen) demand(index);
    }
    return std::move(layouts_);
  }

 private:
  void note_stale(uint32_t index) {
    if (is_stale_[index]) return;
    is_stale_[index] = true;
    stale_.push(index);
  }

  InlinedVector<Layout, 1> dense(uint32_t index) const {
    const OutputTypes& out = graph_.node(index).out;
    InlinedVector<Layout, 1> layouts;
    layouts.reserve(out.size());
    for (uint32_t i = 0; i < out.size(); i++)
      layouts.push_back({{dense_strides(out[i].dims), 0}, Value{index, i}, true});
    return layouts;
  }

  // Returns true if the layout has changed.
  bool propose(uint32_t index) {
    const Node& node = graph_.node(index);
    InlinedVector<Layout, 1> own = dense(index);
    std::optional<Layout> view;
    if (!node.in.empty() && present(node.in[0]))
      view = view_of(graph_, node, layouts_.of[node.in[0].node][node.in[0].output]);
    bool is_view = view && (view->dense || !needs_dense_[index][0]);
    if (is_view) own[0] = *view;
    layouts_.copy_of[index] = is_view ? std::nullopt : std::move(view);  // a view that must be dense is copied
    bool moved = !(layouts_.of[index] == own);
    layouts_.of[index] = std::move(own);
    return moved;
  }

  bool accepts(const Kernel* kernel, size_t input, Value value) const {
    const Layout& layout = layouts_.of[value.node][value.output];
    if (layout.dense) return true;
    if (!kernel || !kernel->takes_strided(input)) return false;
    return !kernel->wants_unit_last(input) || layout.strides.empty() || layout.strides.back().is(1);
  }

  // A computed node demands dense inputs unless its kernel accepts their layout.
  void demand(uint32_t index) {
    const Node& node = graph_.node(index);
    bool is_view = layouts_.copy_of[index] || !layouts_.of[index][0].is_root({index, 0});
    for (size_t i = 0; i < node.in.size(); i++) {
      Value value = node.in[i];
      if (!present(value) || (is_view && i == 0) || accepts(lowered_.kernels[index], i, value)) continue;
      if (needs_dense_[value.node][value.output]) continue;
      needs_dense_[value.node][value.output] = true;
      note_stale(value.node);
    }
  }

  const LoweredGraph& lowered_;
  const Graph& graph_;
  std::vector<std::vector<uint32_t>> users_;  // by node
  ByValue<bool> needs_dense_;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> stale_;  // nodes to visit, in order
  std::vector<bool> is_stale_;
  Layouts layouts_;
};

}  // namespace

Layouts choose_views(const LoweredGraph& lowered) {
  return Chooser(lowered).run();
}

}  // namespace rlx
