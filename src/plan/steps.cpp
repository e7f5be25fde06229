// SPDX-License-Identifier: Apache-2.0
// Makes a step from each node that is computed, adds copies for outputs that no step can write in place, cuts the
// steps into segments, and places the buffers.
#include "plan/steps.h"

#include <algorithm>

#include "base/round_up.h"
#include "plan/control.h"
#include "plan/offsets.h"

namespace rlx {

Status Steps::add_all() {
  for (Phase phase : {Phase::kSized, Phase::kRun}) {
    if (phase == Phase::kRun) plan_.first_run_step = static_cast<uint32_t>(plan_.steps.size());
    for (uint32_t node = 0; node < graph_.nodes().size(); node++)
      if (lowered_.phases[node] == phase) RLX_TRY(add(node));
  }
  decide_aliases();
  add_output_copies();
  for (const DecidedSize& size : decided_sizes(graph_))
    if (uint32_t symbol = plan_.symbol(size.symbol); symbol != Plan::kNoSymbol && size.is_fresh)
      plan_.symbols[symbol].made_by = step_of_[size.node];
  for (PlanRoom& room : plan_.rooms) room.known = plan_.known_at(room.dims);
  return {};
}

void Steps::note_sizes(const AttrValue& value, std::vector<SizeId>& depends) {
  if (auto* dim = std::get_if<Dim>(&value)) depends.push_back(sizes_.id(*dim));
  if (auto* dims = std::get_if<std::vector<Dim>>(&value))
    for (const Dim& dim : *dims) depends.push_back(sizes_.id(dim));
  if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body)
    for (const Node& inner : (*body)->nodes())
      visit_symbols(inner, [&](const std::string& name) {
        if (plan_.symbol(name) != Plan::kNoSymbol) depends.push_back(sizes_.id(Dim::symbol(name)));
      });
}

void Steps::finish(Step step) {
  auto index = static_cast<uint32_t>(plan_.steps.size());
  for (auto* list : {&step.in, &step.out})
    for (const Access& it : *list) {
      step.depends.insert(step.depends.end(), it.dims.begin(), it.dims.end());
      step.depends.insert(step.depends.end(), it.strides.begin(), it.strides.end());
      step.depends.push_back(it.shift);
      if (it.buffer == Access::kNoBuffer) continue;
      PlanBuffer& buffer = plan_.buffers[it.buffer];
      buffer.first = std::min(buffer.first, index);
      buffer.last = std::max(buffer.last, index);
    }
  std::sort(step.depends.begin(), step.depends.end());
  step.depends.erase(std::unique(step.depends.begin(), step.depends.end()), step.depends.end());
  plan_.steps.push_back(std::move(step));
}

// One for each port of the op, absent ones included, then one for each further variadic input.
static size_t operand_count(const Graph& graph, const Node& node) {
  return std::max(node.in.size(), graph.info(node).signature.in.size());
}

Status Steps::add(uint32_t index) {
  const Node& node = graph_.node(index);
  if (node.op == Op::kInput || !buffers_.layout({index, 0}).is_root({index, 0})) return {};
  Step step;
  step.node = index;
  step_of_[index] = static_cast<uint32_t>(plan_.steps.size());
  if (const auto& view = buffers_.copy_of(index)) {
    step.in.push_back(buffers_.access(node.out[0], *view));
    step.out.push_back(buffers_.access({index, 0}));
    finish(std::move(step));
    return {};
  }
  step.kernel = lowered_.kernels[index];
  step.on_host = lowered_.on_host[index];
  step.in.reserve(operand_count(graph_, node));
  for (size_t i = 0; i < operand_count(graph_, node); i++) step.in.push_back(buffers_.input_access(index, i));
  for (uint32_t i = 0; i < node.out.size(); i++)
    step.out.push_back(buffers_.is_left_out({index, i}) ? Access() : buffers_.access({index, i}));
  if (lowered_.bodies.contains(index)) {
    RLX_TRY(plan_control(lowered_, plan_, sizes_, upper_, step));
    finish(std::move(step));
    return {};
  }
  for (const AttrValue& value : node.attrs.values()) note_sizes(value, step.depends);
  if (step.kernel && step.kernel->scratch) step.scratch_bytes = step.kernel->scratch(node, upper_dims(node));
  finish(std::move(step));
  return {};
}

// The upper dims of the operands of a step, as Kernel::scratch takes them: of Step::in, then of the outputs.
std::vector<Dims> Steps::upper_dims(const Node& node) const {
  std::vector<Dims> upper;
  for (Value value : node.in) upper.push_back(present(value) ? sizes_.upper(graph_.type(value).dims) : Dims());
  upper.resize(operand_count(graph_, node));
  for (const ValueType& type : node.out) upper.push_back(sizes_.upper(type.dims));
  return upper;
}

// ---- outputs ----

// Why an output cannot be written over its input, or "".
std::string Steps::why_copied(const SlotAlias& alias, const SlotUses& uses) const {
  if (unchanged_input(alias.output) >= 0) return {};
  Value value = graph_.outputs()[alias.output].value;
  if (int64_t input = buffers_.input_behind(alias.output); input >= 0)
    return "it is the input '" + graph_.leaf_name(graph_.inputs()[static_cast<size_t>(input)]) + "'";
  if (!buffers_.is_direct(alias.output)) return "no step makes it alone: " + graph_.describe(value.node);
  for (size_t i = 0; i < graph_.outputs().size(); i++)
    if (buffers_.input_behind(i) == static_cast<int64_t>(alias.input))
      return "the output '" + graph_.outputs()[i].name + "' is the old value";
  Value root = buffers_.layout(value).root;
  uint32_t late = uses.late_reader(alias.input, step_of_[root.node], root.output);
  if (late == SlotUses::kNone) return {};
  return graph_.describe(plan_.steps[late].node) + " reads the old value until it is written or later";
}

void Steps::decide_aliases() {
  if (plan_.aliases.empty()) return;
  SlotUses uses(plan_);
  for (SlotAlias& alias : plan_.aliases) {
    alias.why_copied = why_copied(alias, uses);
    if (!alias.why_copied.empty() && buffers_.is_direct(alias.output)) buffers_.release_output(alias.output);
  }
}

// The input that the output is, unchanged, so that no step writes it; -1 if there is none. Outside loops the two share
// their memory. A carry may be any input: the next trip reads it where it lies.
int64_t Steps::unchanged_input(size_t output) const {
  int64_t input = buffers_.input_behind(output);
  bool is_whole = input >= 0 && buffers_.is_whole(graph_.outputs()[output].value);
  bool is_in_place = output < plan_.carries || input == buffers_.alias_of(output);
  return is_whole && is_in_place ? input : -1;
}

void Steps::add_copy(size_t output, const Access& from, uint32_t base, uint32_t buffer) {
  Step step;
  step.node = graph_.outputs()[output].value.node;
  Access out = from;  // dense: outputs must be
  out.base = base;
  out.shift = sizes_.id(0);
  out.buffer = buffer;
  step.in.push_back(from);
  step.out.push_back(out);
  finish(std::move(step));
}

// An output whose value is an input is copied before another output is written over that input. If it will itself be
// written over an input, it is copied to the arena first, and to its place once all have been read.
void Steps::add_output_copies() {
  std::vector<bool> is_overwritten(graph_.inputs().size());
  for (const SlotAlias& it : plan_.aliases) is_overwritten[it.input] = true;
  std::vector<std::pair<size_t, Access>> later;
  for (size_t i = 0; i < graph_.outputs().size(); i++) {
    if (buffers_.is_direct(i)) continue;
    if (int64_t input = unchanged_input(i); input >= 0) {
      plan_.outputs[i].shows = static_cast<uint32_t>(input);
      continue;
    }
    int64_t input = buffers_.input_behind(i);
    Access from = buffers_.access(graph_.outputs()[i].value);
    bool shows_overwritten = input >= 0 && is_overwritten[static_cast<size_t>(input)];
    if (!shows_overwritten) {
      later.emplace_back(i, from);
    } else if (buffers_.alias_of(i) < 0) {
      add_copy(i, from, plan_.output_base(i), Access::kNoBuffer);
    } else {
      add_copy(i, from, kArenaBase, buffers_.add_copy(i));
      later.emplace_back(i, plan_.steps.back().out[0]);
    }
  }
  for (auto& [output, from] : later) add_copy(output, from, plan_.output_base(output), Access::kNoBuffer);
}

// Whether the next step may run in the segment of this one. A segment of the host copies by sizes that must be known
// when it begins.
bool Steps::joins_next(uint32_t step) const {
  const Step &here = plan_.steps[step], &next = plan_.steps[step + 1];
  if (here.control != Step::kNoControl || next.control != Step::kNoControl || here.on_host != next.on_host)
    return false;
  return !here.on_host || std::none_of(plan_.symbols.begin(), plan_.symbols.end(),
                                       [&](const PlanSymbol& symbol) { return symbol.made_by == step; });
}

void Steps::cut_segments() {
  auto end = static_cast<uint32_t>(plan_.steps.size());
  for (uint32_t first = 0; first < end;) {
    bool is_sized = first < plan_.first_run_step;
    uint32_t last = first + 1;
    while (last < (is_sized ? plan_.first_run_step : end) && joins_next(last - 1)) last++;
    plan_.segments.push_back({first, last, is_sized, plan_.steps[first].control, plan_.steps[first].on_host});
    first = last;
  }
  if (plan_.first_run_step == end) plan_.segments.push_back({.first = end, .last = end, .is_sized = false});
}

void Steps::place() {
  place_arena();
  place_sized();
  for (Step& step : plan_.steps)
    for (auto* list : {&step.in, &step.out})
      for (Access& it : *list)
        if (it.buffer != Access::kNoBuffer) {
          it.base = plan_.buffers[it.buffer].base;
          it.offset = plan_.buffers[it.buffer].offset;
        }
}

// Buffers that are written over one another are one lifetime; the scratch of a step lives during this step.
void Steps::place_arena() {
  std::vector<Lifetime> arena;
  std::vector<uint32_t> first = first_in_place(plan_);
  std::vector<size_t> lifetime(plan_.buffers.size());  // by buffer, in `arena`
  for (uint32_t i = 0; i < plan_.buffers.size(); i++) {
    const PlanBuffer& buffer = plan_.buffers[i];
    lifetime[i] = first[i] == i ? arena.size() : lifetime[first[i]];
    if (buffer.base != kArenaBase) continue;
    if (first[i] == i) arena.push_back({0, buffer.first, buffer.last});
    Lifetime& it = arena[lifetime[i]];
    it.bytes = std::max(it.bytes, round_up(buffer.bytes, lowered_.alignment));
    it.last = std::max(it.last, buffer.last);
  }
  size_t next = arena.size();
  for (uint32_t i = 0; i < plan_.steps.size(); i++)
    if (plan_.steps[i].scratch_bytes)
      arena.push_back({round_up(static_cast<int64_t>(plan_.steps[i].scratch_bytes), lowered_.alignment), i, i});
  plan_.arena_bytes = assign_offsets(arena);
  for (size_t i = 0; i < plan_.buffers.size(); i++)
    if (plan_.buffers[i].base == kArenaBase) plan_.buffers[i].offset = arena[lifetime[i]].offset;
  for (Step& step : plan_.steps)
    if (step.scratch_bytes) step.scratch_offset = arena[next++].offset;
}

// Sized values live from run to run, so they share no memory.
void Steps::place_sized() {
  auto append = [&](int64_t bytes) {
    int64_t offset = plan_.sized_bytes;
    plan_.sized_bytes += round_up(bytes, lowered_.alignment);
    return offset;
  };
  for (PlanBuffer& buffer : plan_.buffers)
    if (buffer.base == kSizedBase) buffer.offset = append(buffer.bytes);
  for (Control& control : plan_.controls)
    for (PlanBody& body : control.bodies) body.sized_offset = append(body.plan->sized_bytes);
}

}  // namespace rlx
