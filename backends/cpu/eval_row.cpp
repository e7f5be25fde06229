// SPDX-License-Identifier: Apache-2.0
// The last row of every primitive: its typed `eval` from the op table, on the bytes of the plan.
#include <new>

#include "backends/cpu/table.h"
#include "ops/index.h"
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

void encode_eval(const StepView& view, const Caps&, void* args, Launch& launch) {
  fill_eval(view, args);
  double elements = 0;
  for (auto list : {view.in, view.out})
    for (const View& it : list)
      if (it) elements += static_cast<double>(it.count());
  launch.then(run_eval, 1, 100 + 5 * elements);
}

// ---- steps that decide sizes ----

Operand operand_of(const View& view) {
  return {view.dtype, view.dims, view.data};
}

Status measure_dynamic_iota(const StepView& view, FunctionRef<Status(uint32_t, int64_t)> tell) {
  SymbolLookup sizes = lookup_of(view.plan, view.symbols);
  int64_t size = RLX_TRY(dynamic_size(view.node.attrs, index_at(operand_of(view.in[0]), 0), sizes));
  return tell(view.plan.symbol(view.node.attrs.str("symbol")), size);
}

}  // namespace

SymbolLookup lookup_of(const Plan& plan, const int64_t* symbols) {
  return [&plan, symbols](std::string_view name) -> std::optional<int64_t> {
    uint32_t i = plan.symbol(name);
    return i == Plan::kNoSymbol ? std::nullopt : std::optional(symbols[i]);
  };
}

size_t eval_bytes(const Step& step) {
  return sizeof(EvalBlock) + (step.in.size() + step.out.size()) * sizeof(Operand);
}

void fill_eval(const StepView& view, void* args) {
  auto* block = new (args) EvalBlock{&view.plan, &view.node, view.symbols, static_cast<uint32_t>(view.in.size()),
                                     static_cast<uint32_t>(view.out.size())};
  Operand* next = block->operands();
  for (auto list : {view.in, view.out})
    for (const View& it : list) new (next++) Operand{it.dtype, it.dims, it.data};
}

Status run_eval(const void* args, int64_t, int64_t) {
  const auto& block = *static_cast<const EvalBlock*>(args);
  SymbolLookup sizes = lookup_of(*block.plan, block.symbols);
  std::span<const Operand> all(block.operands(), block.inputs + block.outputs);
  EvalOptions options{EvalMode::kTyped, block.plan->lowered->options.bounds};
  return eval_node(block.plan->graph(), *block.node, all.first(block.inputs), all.subspan(block.inputs), sizes,
                   options);
}

CpuKernel eval_kernel(const OpInfo& info) {
  CpuKernel row{{.op = info.op(), .name = "reference", .path = Path::kReference}, eval_bytes, encode_eval};
  row.may_fail = true;  // where it cannot, eval_node looks for elements
  if (info.op() == Op::kDynamicIota) row.measure = measure_dynamic_iota;
  if (info.is(kOfSizes)) row.strided = ~0U;  // it reads no contents, so no view is copied for it
  return row;
}

}  // namespace rlx::cpu
