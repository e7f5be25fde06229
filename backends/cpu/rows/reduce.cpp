// SPDX-License-Identifier: Apache-2.0
// The row for reduce over f32 where the reduced axes are neighbours.
#include "backends/cpu/kernels/reduce.h"

#include <algorithm>

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

// The reduced axes as [first, last); false where others stand between them.
bool reduced_range(const Node& node, size_t rank, size_t& first, size_t& last) {
  first = last = rank;
  const std::vector<int64_t>& axes = node.attrs.i64s("axes");
  if (axes.empty()) return true;
  if (axes.back() - axes.front() + 1 != std::ssize(axes)) return false;
  first = static_cast<size_t>(axes.front());
  last = static_cast<size_t>(axes.back()) + 1;
  return true;
}

std::string_view refuse_reduce(const KernelQuery& query) {
  size_t first, last;
  if (!all_f32(query)) return "takes f32 only";
  return reduced_range(query.node, query.type(0).rank(), first, last) ? "" : "the reduced axes are no neighbours";
}

struct Extent {
  size_t first, last;
};

std::shared_ptr<const void> compile_reduce(const Graph& graph, const Node& node) {
  Extent extent{};
  reduced_range(node, graph.type(node.in[0]).rank(), extent.first, extent.last);
  return std::make_shared<const Extent>(extent);
}

void encode_reduce(const StepView& view, const Caps&, void* block, Launch& launch) {
  const auto& extent = *static_cast<const Extent*>(view.compiled);
  const View& x = view.in[0];
  ReduceArgs args;
  args.x = x.as<float>();
  args.y = view.out[0].as<float>();
  for (size_t i = 0; i < x.dims.size(); i++)
    (i < extent.first ? args.outer : i < extent.last ? args.n : args.inner) *= x.dims[i];
  static constexpr std::string_view kNames[] = {"sum", "prod", "max", "min"};
  args.fn = static_cast<ReduceFn>(std::find(std::begin(kNames), std::end(kNames), view.node.attrs.str("fn")) - kNames);
  load(block, reduce_loop(), args, 50 + 0.3 * static_cast<double>(x.count()), launch);
}

}  // namespace

void add_reduce_rows(RowsByOp& by_op) {
  add(by_op, native<ReduceArgs>(Op::kReduce, "reduce_f32", refuse_reduce, encode_reduce).compile(compile_reduce));
}

}  // namespace rlx::cpu
