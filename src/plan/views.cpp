// SPDX-License-Identifier: Apache-2.0
#include "plan/views.h"

#include <algorithm>
#include <functional>
#include <queue>
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

// Every node that can be a view is one, as far as demands for dense values are known; a new demand makes its value a
// root, and only what follows from that is looked at again.
class Chooser {
 public:
  explicit Chooser(const Lowered& lowered) : lowered_(lowered), graph_(lowered.graph) {
    size_t count = graph_.nodes().size();
    users_.resize(count);
    is_stale_.assign(count, true);
    layouts_.of.resize(count);
    layouts_.copy_of.resize(count);
    for (uint32_t index = 0; index < count; index++) {
      needs_dense_.emplace_back(graph_.node(index).out.size(), false);
      for (Value value : graph_.node(index).in)
        if (present(value) && (users_[value.node].empty() || users_[value.node].back() != index))
          users_[value.node].push_back(index);
    }
    for (uint32_t index = 0; index < count; index++) stale_.push(index);
    for (const GraphOutput& output : graph_.outputs()) needs_dense_[output.value.node][output.value.output] = true;
  }

  Layouts run() {
    while (!stale_.empty()) {
      std::vector<uint32_t> seen;  // in order, so each after what it reads
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

  // True where a layout is not what it was.
  bool propose(uint32_t index) {
    const Node& node = graph_.node(index);
    std::vector<Layout> own;
    for (uint32_t i = 0; i < node.out.size(); i++)
      own.push_back({Value{index, i}, 0, dense_strides(node.out[i].dims), true});
    std::optional<Layout> view;
    if (lowered_.phases[index] != Phase::kResident && !node.in.empty() && present(node.in[0]))
      view = view_of(graph_, node, layouts_.of[node.in[0].node][node.in[0].output]);
    if (view && (view->dense || !needs_dense_[index][0])) own[0] = *std::exchange(view, std::nullopt);
    layouts_.copy_of[index] = std::move(view);
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

  // A computed node demands dense inputs unless its kernel takes them as they are.
  void demand(uint32_t index) {
    if (lowered_.phases[index] == Phase::kResident) return;
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

  const Lowered& lowered_;
  const Graph& graph_;
  std::vector<std::vector<uint32_t>> users_;  // by node
  std::vector<std::vector<bool>> needs_dense_;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> stale_;  // nodes to look at, the first first
  std::vector<bool> is_stale_;
  Layouts layouts_;
};

}  // namespace

Layouts choose_layouts(const Lowered& lowered) {
  return Chooser(lowered).run();
}

}  // namespace rlx
