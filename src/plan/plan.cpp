// SPDX-License-Identifier: Apache-2.0
// The order in which a plan is made: slots, buffers, steps, shared buffers, offsets, guards.
#include "plan/plan.h"

#include <algorithm>

#include "ir/symbols.h"
#include "plan/buffers.h"
#include "plan/early_guards.h"
#include "plan/in_place.h"
#include "plan/size_table.h"
#include "plan/steps.h"

namespace rlx {

uint32_t Plan::symbol(std::string_view name) const {
  auto found = symbol_ids.find(name);
  return found == symbol_ids.end() ? kNoSymbol : found->second;
}

uint32_t Plan::known_at(const Dim& dim) const {
  uint32_t last = PlanSymbol::kGiven;
  visit_symbols(dim, [&](const std::string& name) {
    uint32_t index = symbol(name);
    if (index != kNoSymbol) last = PlanSymbol::later(last, symbols[index].made_by);
  });
  return last;
}

Dims dims_at(std::span<const SizeId> ids, std::span<const int64_t> sizes) {
  Dims dims;
  for (SizeId id : ids) dims.push_back(sizes[id]);
  return dims;
}

std::vector<Dim> Plan::dims(std::span<const SizeId> ids) const {
  std::vector<Dim> dims;
  for (SizeId id : ids) dims.push_back(sizes[id]);
  return dims;
}

uint32_t Plan::known_at(std::span<const SizeId> dims) const {
  uint32_t last = PlanSymbol::kGiven;
  for (SizeId id : dims) last = PlanSymbol::later(last, known_at(sizes[id]));
  return last;
}

// Only an output, or an input of a body, grows during a run. An input that the caller gives needs an upper size.
static Status set_slots(Plan& plan, SizeTable& sizes) {
  const Graph& graph = plan.graph();
  auto slot = [&](const ValueType& type, const std::string& name, bool may_be_open) -> Result<PlanSlot> {
    bool is_open = may_be_open && sizes.is_open(type.dims);
    int64_t bytes = is_open ? 0 : RLX_TRY(sizes.upper_bytes(type, name));
    return PlanSlot{sizes.ids(type.dims), sizes.upper(type.dims), bytes, is_open};
  };
  for (uint32_t node : graph.inputs())
    plan.inputs.push_back(RLX_TRY(slot(graph.node(node).out[0], graph.leaf_name(node), plan.is_body)));
  for (const GraphOutput& output : graph.outputs())
    plan.outputs.push_back(RLX_TRY(slot(graph.type(output.value), output.name, true)));
  for (size_t i = 0; i < plan.outputs.size(); i++)
    if (plan.outputs[i].is_open) sizes.add_room(plan.output_base(i), graph.type(graph.outputs()[i].value));
  return {};
}

// What is computed before the run needs memory as well.
static Status check_residents(const LoweredGraph& lowered, const SizeTable& sizes) {
  for (size_t i = 0; i < lowered.own_residents; i++) {
    Value value = lowered.residents[i].value;
    if (!lowered.residents[i].is_set())
      RLX_TRY(sizes.upper_bytes(lowered.graph.type(value), lowered.graph.describe(value.node)));
  }
  return {};
}

static void find_alignments(Plan& plan) {
  for (const Step& step : plan.steps)
    for (size_t i = 0; i < step.in.size(); i++) {
      uint32_t input = step.in[i].dtype == DType::kNone ? Plan::kNoSlot : plan.input_slot(step.in[i].base);
      bool takes_unaligned = step.kernel && step.kernel->takes_unaligned(i);
      if (input != Plan::kNoSlot && !takes_unaligned) plan.inputs[input].may_be_unaligned = false;
    }
}

// A guard is checked where the last of its sizes is found; a step may find several, one after the other.
static void note_readers_of_symbols(Plan& plan) {
  auto visit_planned = [&](const auto& dim_or_guard, auto&& visit) {
    visit_symbols(dim_or_guard, [&](const std::string& name) {
      if (uint32_t symbol = plan.symbol(name); symbol != Plan::kNoSymbol) visit(plan.symbols[symbol]);
    });
  };
  auto add_once = [](std::vector<uint32_t>& list, uint32_t it) {
    if (list.empty() || list.back() != it) list.push_back(it);
  };
  for (SizeId id = 0; id < plan.sizes.size(); id++)
    visit_planned(plan.sizes[id], [&](PlanSymbol& symbol) { add_once(symbol.sizes, id); });
  for (uint32_t i = 0; i < plan.guard_count(); i++) {
    const Guard& guard = plan.guard(i);
    uint32_t known = PlanSymbol::later(plan.known_at(guard.a), plan.known_at(guard.b));
    if (known == PlanSymbol::kGiven) plan.given_guards.push_back(i);
    visit_planned(guard, [&](PlanSymbol& symbol) {
      if (symbol.made_by == known) add_once(symbol.guards, i);
    });
  }
}

// The upper sizes of symbols that only bodies have. A symbol of the plan is left out: a body that shares it gets its
// size from the plan, and a symbol of the body's own with that name must not get it.
static UpperSizes upper_in_bodies(const Plan& plan, UpperSizes upper) {
  std::erase_if(upper, [&](const auto& entry) { return plan.symbol(entry.first) != Plan::kNoSymbol; });
  return upper;
}

// `requested`: outputs that should share the memory of inputs if they can. The aliases of `plan` must.
static Result<std::shared_ptr<const Plan>> make(std::shared_ptr<Plan> plan, const UpperSizes& upper,
                                                std::span<const SlotAlias> requested) {
  const LoweredGraph& lowered = *plan->lowered;
  SizeTable sizes(*plan);
  RLX_TRY(sizes.set_symbols(upper));
  sizes.id(0);  // id 0 is the size 0: the shift of accesses without one
  RLX_TRY(set_slots(*plan, sizes));
  RLX_TRY(check_residents(lowered, sizes));
  for (const SlotAlias& alias : plan->aliases)
    if (plan->outputs[alias.output].is_open || plan->inputs[alias.input].is_open)
      return Status(Code::kShape, "io.alias: the output '" + plan->graph().outputs()[alias.output].name +
                                      "' has no largest size, so it has no input's memory");
  Buffers buffers(lowered, *plan, sizes);
  RLX_TRY(buffers.add_all());
  UpperSizes in_bodies = upper_in_bodies(*plan, upper);
  Steps steps(lowered, *plan, sizes, buffers, in_bodies);
  RLX_TRY(steps.add_all());
  steps.cut_segments();
  find_alignments(*plan);
  share_buffers(*plan, requested);
  steps.place();
  plan->early_guards = early_guards(*plan);
  note_readers_of_symbols(*plan);
  return std::shared_ptr<const Plan>(std::move(plan));
}

Result<std::shared_ptr<const Plan>> make_body_plan(std::shared_ptr<const LoweredGraph> lowered, const UpperSizes& upper,
                                                   size_t carries) {
  auto plan = std::make_shared<Plan>();
  plan->lowered = std::move(lowered);
  plan->is_body = true;
  plan->carries = carries;
  std::vector<SlotAlias> requested;
  for (size_t i = 0; i < carries; i++) requested.push_back({i, i});
  return make(std::move(plan), upper, requested);
}

Result<std::shared_ptr<const Plan>> make_plan(std::shared_ptr<const LoweredGraph> lowered, const UpperSizes& upper,
                                              std::span<const SlotAlias> aliases) {
  auto plan = std::make_shared<Plan>();
  plan->lowered = std::move(lowered);
  plan->aliases.assign(aliases.begin(), aliases.end());
  return make(plan, upper, plan->aliases);
}

}  // namespace rlx
