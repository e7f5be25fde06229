// SPDX-License-Identifier: Apache-2.0
// Rows for elementwise ops over f32, halves and bools: each op is a region of one op, run by the region interpreter.
// The program of a step does not depend on sizes and is made once; encoding fills in dims, strides and pointers.
#include <algorithm>

#include "backends/cpu/rows/native.h"
#include "backends/cpu/rows/region_program.h"

namespace rlx::cpu {

namespace {

std::shared_ptr<const void> compile_region(const Graph& graph, const Node& node) {
  auto program = std::make_shared<RegionProgram>();
  [[maybe_unused]] std::string_view why = build_region(graph, node, *program);
  return program;  // `refuse` has built it before, so this succeeds
}

// Whether denormals make more than a small difference: a comparison gives what the same one gives in another kernel,
// even if two regions compute it; a divisor that a comparison with 0 let pass stays one.
bool needs_denormals(const RegionOp& op) {
  using enum RegionCode;
  return op.code == kEq || op.code == kNe || op.code == kLt || op.code == kLe || op.code == kDiv;
}

// Only a region needs registers to be assigned: one op never runs out of them. A compile asks this of every elementwise
// node.
std::string_view why_no_program(const KernelQuery& query, RegionProgram& program) {
  bool is_region = query.node.op == Op::kElementwiseRegion;
  return (is_region ? build_region : emit_region)(query.graph, query.node, program);
}

std::string_view refuse_region(const KernelQuery& query) {
  RegionProgram program;
  return why_no_program(query, program);
}

std::string_view refuse_flushed_region(const KernelQuery& query) {
  RegionProgram program;
  std::string_view why = why_no_program(query, program);
  bool is_needed = std::any_of(program.ops.begin(), program.ops.end(), needs_denormals);
  return why.empty() && is_needed ? "comparisons and divisions keep denormals" : why;
}

View view_of(const RegionSource& source, View view) {
  if (source.half == RegionSource::kWhole) return view;
  auto axis = static_cast<size_t>(source.axis);
  view.dims[axis] /= 2;
  view.data += source.half * view.dims[axis] * view.strides[axis] * element_bytes(view.dtype);
  return view;
}

void encode_region(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const auto& program = *static_cast<const RegionProgram*>(view.compiled);
  RegionArgs args = program.args;
  args.ops = program.ops.data();
  const Dims& dims = view.out[0].dims;
  args.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), args.dims);
  for (int32_t i = 0; i < args.input_count; i++) {
    const RegionSource& source = program.sources[static_cast<size_t>(i)];
    View from = view_of(source, view.in[source.port]);
    args.inputs[i].data = from.data;
    set_strides(from, dims, args.inputs[i].strides);
  }
  for (int32_t i = 0; i < args.output_count; i++) args.outputs[i].data = view.out[static_cast<size_t>(i)].data;
  collapse_dims(args);
  double elements = static_cast<double>(view.out[0].count());
  load(block, caps.fns.region.region, args, 60 + elements * (0.15 + 0.12 * args.op_count), launch);
}

}  // namespace

void add_region_rows(RowsByOp& by_op) {
  for (Op op : region_ops()) {
    Row row = loops<RegionArgs>(op, "region", refuse_region, encode_region)
                  .path(op == Op::kElementwiseRegion ? Path::kRegion : Path::kNative)
                  .strided(~0U)
                  .in_place(~0U)  // a tile of every input is loaded before that of the output is stored
                  .compile(compile_region);
    add(by_op, Row(row).refuse(refuse_flushed_region).flushes_denormals());
    add(by_op, row);
  }
}

}  // namespace rlx::cpu
