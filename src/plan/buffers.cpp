// SPDX-License-Identifier: Apache-2.0
// Decides which base each computed value lies in: the slot of an output, the sized region, a room or the arena.
#include "plan/buffers.h"

namespace rlx {

Buffers::Buffers(const LoweredGraph& lowered, Plan& plan, SizeTable& sizes)
    : lowered_(lowered),
      graph_(lowered.graph),
      plan_(plan),
      sizes_(sizes),
      layouts_(choose_views(lowered)),
      uses_(use_counts(graph_)),
      slot_of_(graph_.nodes().size(), 0),
      alias_of_(graph_.outputs().size(), -1) {
  for (const SlotAlias& alias : plan.aliases) alias_of_[alias.output] = static_cast<int64_t>(alias.input);
  for (size_t i = 0; i < graph_.inputs().size(); i++) slot_of_[graph_.inputs()[i]] = static_cast<uint32_t>(i);
}

bool Buffers::is_whole(Value value) const {
  const Layout& own = layout(value);
  return own.dense && own.shift.is(0) &&
         element_count(std::span<const Dim>(graph_.type(own.root).dims)) ==
             element_count(std::span<const Dim>(graph_.type(value).dims));
}

// An output is written directly if a run step computes all of its bytes. One value may be several outputs. Then an
// output that shares its memory with an input (io.alias) takes the buffer, else the first output does.
void Buffers::claim_outputs() {
  output_of_.resize(graph_.nodes().size());
  for (uint32_t i = 0; i < graph_.nodes().size(); i++) output_of_[i].resize(graph_.node(i).out.size(), -1);
  direct_.resize(graph_.outputs().size(), false);
  for (const SlotAlias& alias : plan_.aliases) claim_output(alias.output);
  for (size_t i = 0; i < graph_.outputs().size(); i++) claim_output(i);
}

void Buffers::claim_output(size_t output) {
  Value value = graph_.outputs()[output].value, root = layout(value).root;
  bool is_made = lowered_.phases[root.node] == Phase::kRun && graph_.node(root).op != Op::kInput;
  int64_t& slot = output_of_[root.node][root.output];
  if (!is_made || slot >= 0 || !is_whole(value)) return;
  slot = static_cast<int64_t>(output);
  direct_[output] = true;
}

void Buffers::release_output(size_t output) {
  Value root = layout(graph_.outputs()[output].value).root;
  int64_t& slot = output_of_[root.node][root.output];
  slot = -1;
  direct_[output] = false;
  for (size_t i = 0; i < graph_.outputs().size() && slot < 0; i++)
    if (layout(graph_.outputs()[i].value).root == root && alias_of(i) < 0) claim_output(i);
  plan_.buffers[buffer_of_[root.node][root.output]].base =
      slot < 0 ? uint32_t{kArenaBase} : plan_.output_base(static_cast<size_t>(slot));
}

int64_t Buffers::input_behind(size_t output) const {
  Value root = layout(graph_.outputs()[output].value).root;
  return graph_.node(root).op == Op::kInput ? static_cast<int64_t>(slot_of_[root.node]) : -1;
}

// A buffer that no step touches yet: its lifetime is empty.
static PlanBuffer untouched(std::string name, uint32_t base, int64_t bytes) {
  return {.name = std::move(name), .base = base, .bytes = bytes, .first = UINT32_MAX, .last = 0};
}

uint32_t Buffers::add_copy(size_t output) {
  plan_.buffers.push_back(untouched(graph_.outputs()[output].name, kArenaBase, plan_.outputs[output].bytes));
  return static_cast<uint32_t>(plan_.buffers.size() - 1);
}

Status Buffers::add_all() {
  claim_outputs();
  buffer_of_.resize(graph_.nodes().size());
  for (uint32_t node = 0; node < graph_.nodes().size(); node++) {
    buffer_of_[node].resize(graph_.node(node).out.size(), Access::kNoBuffer);
    if (lowered_.phases[node] == Phase::kResident || graph_.node(node).op == Op::kInput) continue;
    for (uint32_t i = 0; i < graph_.node(node).out.size(); i++) {
      Value value{node, i};
      if (!layout(value).is_root(value) || is_left_out(value)) continue;
      buffer_of_[node][i] = static_cast<uint32_t>(plan_.buffers.size());
      uint32_t base = lowered_.phases[node] == Phase::kSized ? uint32_t{kSizedBase} : uint32_t{kArenaBase};
      if (int64_t output = output_of_[node][i]; output >= 0) base = plan_.output_base(static_cast<size_t>(output));
      std::string name = graph_.describe(node) + (i ? "." + std::to_string(i) : "");
      bool is_open = sizes_.is_open(graph_.type(value).dims);
      int64_t bytes = is_open ? 0 : RLX_TRY(sizes_.upper_bytes(graph_.type(value), name));
      if (is_open && output_of_[node][i] < 0) {
        base = plan_.room_base(plan_.rooms.size());
        sizes_.add_room(base, graph_.type(value));
      }
      plan_.buffers.push_back(untouched(std::move(name), base, bytes));
    }
  }
  return {};
}

bool Buffers::is_left_out(Value value) const {
  const Kernel* kernel = lowered_.kernels[value.node];
  return uses_[value.node][value.output] == 0 && kernel && kernel->may_omit(value.output);
}

Access Buffers::access(const ValueType& type, const Layout& layout) {
  Access access{type.dtype};
  access.dims = sizes_.ids(type.dims);
  access.dense = layout.dense;
  access.shift = sizes_.id(layout.shift);
  if (!layout.dense) access.strides = sizes_.ids(layout.strides);
  if (graph_.node(layout.root).op == Op::kInput) {
    access.base = plan_.input_base(slot_of_[layout.root.node]);
  } else if (lowered_.phases[layout.root.node] == Phase::kResident) {
    access.base = plan_.resident_base(lowered_.dense_resident(layout.root));
  } else {
    access.buffer = buffer_of_[layout.root.node][layout.root.output];
    access.base = plan_.buffers[access.buffer].base;
  }
  return access;
}

Access Buffers::input_access(uint32_t reader, size_t input) {
  const Node& node = graph_.node(reader);
  if (input >= node.in.size() || !present(node.in[input])) return {};
  if (lowered_.phases[node.in[input].node] != Phase::kResident) return access(node.in[input]);
  Access it{graph_.type(node.in[input]).dtype};
  it.dims = sizes_.ids(graph_.type(node.in[input]).dims);
  it.base = plan_.resident_base(lowered_.resident_of(reader, input));
  return it;
}

}  // namespace rlx
