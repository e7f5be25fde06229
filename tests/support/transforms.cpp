// SPDX-License-Identifier: Apache-2.0
#include "tests/support/transforms.h"

#include "ir/text.h"
#include "ops/expr.h"

namespace rlx::test {

namespace {

Result<Value> copy_leaf(const Graph& from, uint32_t index, Graph& to) {
  const Node& node = from.node(index);
  if (node.op == Op::kConstant) return to.add_constant(node.attrs.tensor("value"));
  const ValueType& type = node.out[0];
  return node.op == Op::kInput ? to.add_input(from.leaf_name(index), type.dtype, type.dims)
                               : to.add_param(from.leaf_name(index), type.dtype, type.dims);
}

// Replaces every composite, once, by its decomposition.
Result<Graph> decompose_composites(Graph graph, PassContext&) {
  Graph result(graph.name(), &graph.table());
  for (const auto& [symbol, range] : graph.symbols()) RLX_TRY(result.declare_symbol(symbol, range));
  for (const Guard& guard : graph.guards()) RLX_TRY(result.add_guard(guard));
  Builder builder(result);
  std::vector<Outputs> values;
  for (uint32_t index = 0; index < graph.nodes().size(); index++) {
    const Node& node = graph.node(index);
    const OpInfo& info = graph.info(node);
    std::vector<Expr> in;
    for (Value value : node.in) in.push_back(present(value) ? values[value.node][value.output] : Expr());
    if (info.is(kLeaf)) {
      Value leaf = RLX_TRY(copy_leaf(graph, index, result));
      values.push_back({builder.wrap(leaf)});
    } else {
      values.push_back(info.primitive() ? builder.add(info, in, node.attrs) : decompose(builder, info, in, node.attrs));
    }
    RLX_TRY(builder.status());
    if (!node.name.empty()) result.set_name(values.back()[0].value(), node.name);
  }
  for (const GraphOutput& output : graph.outputs())
    RLX_TRY(result.add_output(output.name, values[output.value.node][output.value.output].value()));
  return result;
}

Result<Graph> in_f32(Graph graph, PassContext& context) {
  context.precision = DType::kF32;
  return assign_precision(std::move(graph), context);
}

// For a device that has kernels for everything in f32 and for elementwise ops in halves.
Result<Graph> widen_where_f32_has_kernels(Graph graph, PassContext& context) {
  context.is_native = [](const Facts& facts, Value value) {
    const Graph& asked = facts.graph();
    return asked.type(value).dtype == DType::kF32 || asked.info(asked.node(value)).is(kElementwise);
  };
  return widen_halves(std::move(graph), context);
}

// As in the compiler's list of passes: fuse runs on the normal form.
Result<Graph> fuse_normal_form(Graph graph, PassContext& context) {
  Graph normal = RLX_TRY(canonicalize(std::move(graph), context));
  Graph folded = RLX_TRY(fold_constants(normal, context));
  return fuse_composites(folded, context);
}

using enum Composites;
constexpr Transform kTransforms[] = {
    {"decompose", decompose_composites, nullptr, Grade::kExact, kRefused},
    {"inline", inline_customs, has_customs, Grade::kExact, kRefused},
    {"canonicalize", canonicalize, may_canonicalize, Grade::kClose, kTaken},
    {"canonicalize.strict", canonicalize, may_canonicalize, Grade::kExact, kTaken},
    {"canonicalize.fast", canonicalize, may_canonicalize, Grade::kFast, kTaken},
    {"fold", fold_constants, has_foldable, Grade::kClose, kTaken},
    {"fold.strict", fold_constants, has_foldable, Grade::kExact, kTaken},
    {"branches", inline_branches, has_known_branch, Grade::kExact, kRefused},
    {"sink", sink_residents, may_sink, Grade::kExact, kRefused},
    {"precision", in_f32, nullptr, Grade::kClose, kRefused},
    {"hoist", hoist_invariants, has_loop, Grade::kExact, kRefused},
    {"fuse", fuse_normal_form, nullptr, Grade::kClose, kTaken},
    {"fuse.strict", fuse_normal_form, nullptr, Grade::kExact, kTaken},
    {"layout", choose_layouts, may_choose_layouts, Grade::kExact, kTaken},
    {"merge-siblings", merge_siblings, may_merge_siblings, Grade::kClose, kTaken},
    {"merge-siblings.strict", merge_siblings, may_merge_siblings, Grade::kExact, kTaken},
    {"expand", expand_composites, has_composite, Grade::kExact, kRefused},
    {"widen", widen_where_f32_has_kernels, nullptr, Grade::kClose, kTaken},
    {"simplify", simplify, may_simplify, Grade::kClose, kRefused},
    {"simplify.strict", simplify, may_simplify, Grade::kExact, kRefused},
    {"regions", group_elementwise, may_group, Grade::kExact, kTaken},
    {"dce", drop_dead_nodes, has_dead_node, Grade::kExact, kTaken},
    {"check-supported", check_supported, has_unsupported, Grade::kExact, kTaken},
};

}  // namespace

Result<Graph> Transform::run(const Graph& graph, Bounds bounds, RewriteReport* report) const {
  PassContext context;
  context.report = report;
  context.checks_indices = bounds == Bounds::kError;
  context.math = math;
  if (composites == kTaken) context.refuses = [](const Facts&, Value) { return std::string(); };
  bool is_idle = has_work && !has_work(graph, context);
  Result<Graph> made = pass(graph, context);
  if (is_idle && (!made.ok() || print(*made) != print(graph)))
    return Status(Code::kInternal, "the pass does something, though it said that there is nothing to do");
  return made;
}

Result<Graph> composed(const Graph& graph, RewriteReport* report) {
  PassContext context;
  context.refuses = [](const Facts&, Value) { return std::string(); };
  context.report = report;
  Graph current = graph;
  for (PassFn pass : {canonicalize, fold_constants, fuse_composites, choose_layouts, merge_siblings})
    current = RLX_TRY(pass(std::move(current), context));
  return current;
}

std::span<const Transform> transforms() {
  return kTransforms;
}

const Transform* find_transform(std::string_view name) {
  for (const Transform& transform : kTransforms)
    if (transform.name == name) return &transform;
  return nullptr;
}

bool has_op(const Graph& graph, Op op) {
  std::vector<bool> ops = graph.ops();
  auto index = static_cast<size_t>(op);
  return index < ops.size() && ops[index];
}

}  // namespace rlx::test
