// SPDX-License-Identifier: Apache-2.0
#include "plan/views.h"

#include <algorithm>
#include <utility>

namespace rlx {

std::optional<Layout> view_of(const Graph& graph, const Node& node, const Layout& input) {
  ViewFn view = graph.info(node).view;
  if (!view) return std::nullopt;
  const std::vector<Dim>& dims = node.out[0].dims;
  std::optional<Strided> strided = view({graph.type(node.in[0]).dims, dims, node.attrs, input});
  if (!strided) return std::nullopt;
  bool dense = is_dense(dims, *strided);
  return Layout{std::move(*strided), input.root, dense};
}

// ---- the choice ----

namespace {

class Chooser {
 public:
  explicit Chooser(const Lowered& lowered) : lowered_(lowered), graph_(lowered.graph) {
    for (const Node& node : graph_.nodes()) needs_dense_.emplace_back(node.out.size(), false);
  }

  Layouts run() {
    do propose();  // again after new demands: what had to become dense is a root now
    while (demand());
    return std::move(layouts_);
  }

 private:
  // Every node that can be a view is one, as far as demands are known.
  void propose() {
    layouts_ = {};
    for (uint32_t index = 0; index < graph_.nodes().size(); index++) {
      const Node& node = graph_.node(index);
      std::vector<Layout> own;
      for (uint32_t i = 0; i < node.out.size(); i++)
        own.push_back({{dense_strides(node.out[i].dims), 0}, Value{index, i}, true});
      std::optional<Layout> view;
      if (lowered_.phases[index] != Phase::kResident && !node.in.empty() && present(node.in[0]))
        view = view_of(graph_, node, layouts_.of[node.in[0].node][node.in[0].output]);
      if (view && (view->dense || !needs_dense_[index][0])) own[0] = *std::exchange(view, std::nullopt);
      layouts_.of.push_back(std::move(own));
      layouts_.copy_of.push_back(std::move(view));
    }
  }

  bool accepts(const Kernel* kernel, size_t input, Value value) const {
    const Layout& layout = layouts_.of[value.node][value.output];
    if (layout.dense) return true;
    if (!kernel || !kernel->takes_strided(input)) return false;
    return !kernel->wants_unit_last(input) || layout.strides.empty() || layout.strides.back().is(1);
  }

  // From the last node to the first: a computed node demands dense inputs unless its kernel takes them as they are.
  // True where there was a demand that nobody had made before.
  bool demand() {
    bool is_new = false;
    auto need = [&](Value value) {
      is_new |= !needs_dense_[value.node][value.output];
      needs_dense_[value.node][value.output] = true;
    };
    for (const GraphOutput& output : graph_.outputs()) need(output.value);
    for (uint32_t index = static_cast<uint32_t>(graph_.nodes().size()); index-- > 0;) {
      if (lowered_.phases[index] == Phase::kResident) continue;
      const Node& node = graph_.node(index);
      bool is_view = layouts_.copy_of[index] || !layouts_.of[index][0].is_root({index, 0});
      for (size_t i = 0; i < node.in.size(); i++)
        if (present(node.in[i]) && !(is_view && i == 0) && !accepts(lowered_.kernels[index], i, node.in[i]))
          need(node.in[i]);
    }
    return is_new;
  }

  const Lowered& lowered_;
  const Graph& graph_;
  std::vector<std::vector<bool>> needs_dense_;
  Layouts layouts_;
};

}  // namespace

Layouts choose_layouts(const Lowered& lowered) {
  return Chooser(lowered).run();
}

}  // namespace rlx
