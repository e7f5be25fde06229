// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>

#include "plan/buffers.h"
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
    if (index == kNoSymbol || !symbols[index].is_fresh()) return;
    if (last == PlanSymbol::kGiven || symbols[index].made_by > last) last = symbols[index].made_by;
  });
  return last;
}

static Status set_slots(Plan& plan, SizeTable& sizes) {
  const Graph& graph = plan.graph();
  auto slot = [&](const ValueType& type, const std::string& name) -> Result<PlanSlot> {
    return PlanSlot{sizes.ids(type.dims), sizes.upper(type.dims), RLX_TRY(sizes.upper_bytes(type, name))};
  };
  for (uint32_t node : graph.inputs())
    plan.inputs.push_back(RLX_TRY(slot(graph.node(node).out[0], graph.leaf_name(node))));
  for (const GraphOutput& output : graph.outputs())
    plan.outputs.push_back(RLX_TRY(slot(graph.type(output.value), output.name)));
  return {};
}

Result<std::shared_ptr<const Plan>> make_plan(std::shared_ptr<const Lowered> lowered, const UpperSizes& upper) {
  for (const auto& [name, size] : upper) {
    const auto& symbols = lowered->graph.symbols();
    if (std::none_of(symbols.begin(), symbols.end(), [&name = name](auto& symbol) { return symbol.first == name; }))
      return Status(Code::kOption, "dims." + name + ": the graph has no such size").with("value", name);
  }
  auto plan = std::make_shared<Plan>();
  plan->lowered = lowered;
  SizeTable sizes(*plan);
  RLX_TRY(sizes.set_symbols(upper));
  sizes.id(0);  // the shift of whatever has none
  RLX_TRY(set_slots(*plan, sizes));
  Buffers buffers(*lowered, *plan, sizes);
  RLX_TRY(buffers.add_all());
  Steps steps(*lowered, *plan, sizes, buffers);
  RLX_TRY(steps.add_all());
  steps.place();
  return std::shared_ptr<const Plan>(std::move(plan));
}

}  // namespace rlx
