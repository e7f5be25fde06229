// SPDX-License-Identifier: Apache-2.0
#include "plan/views.h"

#include <algorithm>
#include <utility>

namespace rlx {

std::vector<Dim> dense_strides(std::span<const Dim> dims) {
  std::vector<Dim> strides(dims.size());
  Dim stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

static bool is_dense(std::span<const Dim> dims, std::span<const Dim> strides) {
  std::vector<Dim> wanted = dense_strides(dims);
  for (size_t i = 0; i < dims.size(); i++)
    if (!dims[i].is(1) && !(strides[i] == wanted[i])) return false;
  return true;
}

static Layout with_strides(const Layout& input, std::span<const Dim> dims, std::vector<Dim> strides, Dim shift) {
  bool dense = is_dense(dims, strides);
  return {input.root, std::move(shift), std::move(strides), dense};
}

// ---- one function per view op ----

// New dims are matched with old ones from the left: equal ones pass, one old dim may split into several new ones.
static std::optional<Layout> view_reshape(std::span<const Dim> from, std::span<const Dim> to, const Layout& input) {
  if (input.dense) return with_strides(input, to, dense_strides(to), input.shift);
  std::vector<Dim> strides;
  size_t i = 0;
  for (size_t j = 0; j < to.size();) {
    if (to[j].is(1)) {
      strides.push_back(0);
      j++;
      continue;
    }
    while (i < from.size() && from[i].is(1)) i++;
    if (i == from.size()) return std::nullopt;
    size_t end = j;
    Dim product = 1;
    while (end < to.size() && !(product == from[i])) product *= to[end++];
    if (!(product == from[i])) return std::nullopt;
    Dim inner = 1;
    std::vector<Dim> split(end - j);
    for (size_t k = end; k-- > j;) {
      split[k - j] = inner * input.strides[i];
      inner *= to[k];
    }
    strides.insert(strides.end(), split.begin(), split.end());
    j = end;
    i++;
  }
  while (i < from.size() && from[i].is(1)) i++;
  if (i != from.size()) return std::nullopt;
  return with_strides(input, to, std::move(strides), input.shift);
}

static std::optional<Layout> view_transpose(const Node& node, const Layout& input) {
  std::vector<Dim> strides;
  for (int64_t axis : node.attrs.i64s("perm"))
    strides.push_back(input.strides[normal_axis(axis, input.strides.size())]);
  return with_strides(input, node.out[0].dims, std::move(strides), input.shift);
}

static std::optional<Layout> view_broadcast(const Node& node, std::span<const Dim> from, const Layout& input) {
  const std::vector<Dim>& to = node.out[0].dims;
  std::vector<Dim> strides(to.size());
  size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); i++)
    if (!from[i].is(1) || to[lead + i].is(1)) strides[lead + i] = input.strides[i];
  return with_strides(input, to, std::move(strides), input.shift);
}

static std::optional<Layout> view_slice(const Node& node, std::span<const Dim> from, const Layout& input) {
  const auto& starts = node.attrs.dims("starts");
  std::vector<Dim> strides = input.strides;
  Dim shift = input.shift;
  for (size_t i = 0; i < starts.size(); i++) {
    int64_t axis = node.attrs.has("axes") ? node.attrs.i64s("axes")[i] : static_cast<int64_t>(i);
    size_t at = normal_axis(axis, from.size());
    int64_t step = node.attrs.has("steps") ? node.attrs.i64s("steps")[i] : 1;
    if (step < 0) return std::nullopt;
    Dim start = starts[i];
    if (start.is_literal() && start.literal() < 0) start += from[at];
    if (!start.is(0)) start = min(max(start, 0), from[at]);  // semantics.md S8
    shift += start * input.strides[at];
    strides[at] *= step;
  }
  return with_strides(input, node.out[0].dims, std::move(strides), shift);
}

std::optional<Layout> view_of(const Graph& graph, const Node& node, const Layout& input) {
  const std::vector<Dim>& from = graph.type(node.in[0]).dims;
  switch (node.op) {
    case Op::kReshape: return view_reshape(from, node.out[0].dims, input);
    case Op::kTranspose: return view_transpose(node, input);
    case Op::kBroadcastTo: return view_broadcast(node, from, input);
    case Op::kSlice: return view_slice(node, from, input);
    case Op::kStopGradient: return input;
    default: return std::nullopt;
  }
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
        own.push_back({Value{index, i}, 0, dense_strides(node.out[i].dims), true});
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
