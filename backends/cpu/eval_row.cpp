// SPDX-License-Identifier: Apache-2.0
// The last row of every primitive: its typed `eval` from the op table, on the bytes of the plan.
#include <new>

#include "backends/cpu/table.h"
#include "ops/interpret.h"

namespace rlx::cpu {

namespace {

// Operands follow the struct: inputs, then outputs.
struct EvalBlock {
  const Plan* plan;
  const Node* node;
  const int64_t* symbols;
  uint32_t inputs, outputs;
  Operand* operands() { return reinterpret_cast<Operand*>(this + 1); }
  const Operand* operands() const { return reinterpret_cast<const Operand*>(this + 1); }
};

size_t eval_bytes(const Step& step) {
  return sizeof(EvalBlock) + (step.in.size() + step.out.size()) * sizeof(Operand);
}

void encode_eval(const StepView& view, const Caps&, void* args, Launch& launch) {
  auto* block = new (args) EvalBlock{&view.plan, &view.node, view.symbols, static_cast<uint32_t>(view.in.size()),
                                     static_cast<uint32_t>(view.out.size())};
  Operand* next = block->operands();
  double elements = 0;
  for (auto list : {view.in, view.out})
    for (const View& it : list) {
      new (next++) Operand{it.dtype, it.dims, it.data};
      if (it) elements += static_cast<double>(it.count());
    }
  launch = {1, 100 + 5 * elements};
}

Status run_eval(const void* args, int64_t, int64_t) {
  const auto& block = *static_cast<const EvalBlock*>(args);
  SymbolLookup sizes = [&block](std::string_view name) -> std::optional<int64_t> {
    const std::vector<PlanSymbol>& symbols = block.plan->symbols;
    for (size_t i = 0; i < symbols.size(); i++)
      if (symbols[i].name == name) return block.symbols[i];
    return std::nullopt;
  };
  std::span<const Operand> all(block.operands(), block.inputs + block.outputs);
  EvalOptions options{EvalMode::kTyped, block.plan->lowered->options.bounds};
  return eval_node(block.plan->graph(), *block.node, all.first(block.inputs), all.subspan(block.inputs), sizes,
                   options);
}

}  // namespace

CpuKernel eval_kernel(const OpInfo& info) {
  return {{.op = info.op(), .name = "reference", .path = Path::kReference}, eval_bytes, encode_eval, run_eval};
}

}  // namespace rlx::cpu
