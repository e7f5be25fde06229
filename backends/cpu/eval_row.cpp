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
  const Step* step;
  uint32_t inputs, outputs;  // inputs: the node's, then the params that its sub-graphs read
  Operand* operands() { return reinterpret_cast<Operand*>(this + 1); }
  const Operand* operands() const { return reinterpret_cast<const Operand*>(this + 1); }
};

int64_t symbol_index(const Plan& plan, std::string_view name) {
  for (size_t i = 0; i < plan.symbols.size(); i++)
    if (plan.symbols[i].name == name) return static_cast<int64_t>(i);
  return -1;
}

size_t eval_bytes(const Step& step) {
  return sizeof(EvalBlock) + (step.in.size() + step.out.size()) * sizeof(Operand);
}

void encode_eval(const StepView& view, const Caps&, void* args, Launch& launch) {
  auto* block = new (args) EvalBlock{&view.plan,
                                     &view.node,
                                     view.symbols,
                                     &view.step,
                                     static_cast<uint32_t>(view.in.size()),
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

// Operands as tensors that do not own their bytes.
Result<Tensor> borrowed(const Operand& operand) {
  auto bytes = byte_size(operand.dtype, operand.count()).value_or(0);
  std::shared_ptr<std::byte> data(std::shared_ptr<void>(), operand.data);
  return Tensor::adopt(operand.dtype, operand.dims, std::move(data), static_cast<size_t>(bytes));
}

// The current sizes; plan and symbols outlive it.
SymbolLookup lookup_of(const Plan& plan, const int64_t* symbols) {
  return [&plan, symbols](std::string_view name) -> std::optional<int64_t> {
    int64_t i = symbol_index(plan, name);
    return i < 0 ? std::nullopt : std::optional(symbols[i]);
  };
}

Result<ParamTensors> params_over(std::span<const Operand> operands, const std::vector<std::string>& names) {
  ParamTensors params;
  for (size_t i = 0; i < names.size(); i++) params.emplace(names[i], RLX_TRY(borrowed(operands[i])));
  return params;
}

Status run_eval(const void* args, int64_t, int64_t) {
  const auto& block = *static_cast<const EvalBlock*>(args);
  SymbolLookup sizes = lookup_of(*block.plan, block.symbols);
  std::span<const Operand> all(block.operands(), block.inputs + block.outputs);
  EvalOptions options{EvalMode::kTyped, block.plan->lowered->options.bounds};
  size_t own = block.inputs - block.step->body_params.size();
  ParamTensors params = RLX_TRY(params_over(all.subspan(own, block.inputs - own), block.step->body_params));
  return eval_node(block.plan->graph(), *block.node, all.first(own), all.subspan(block.inputs), sizes, options, params);
}

// ---- steps that decide sizes ----

Operand operand_of(const View& view) {
  return {view.dtype, view.dims, view.data};
}

Status measure_dynamic_iota(const StepView& view, FunctionRef<Status(uint32_t, int64_t)> tell) {
  SymbolLookup sizes = lookup_of(view.plan, view.symbols);
  int64_t size = RLX_TRY(dynamic_size(view.node.attrs, index_at(operand_of(view.in[0]), 0), sizes));
  return tell(static_cast<uint32_t>(symbol_index(view.plan, view.node.attrs.str("symbol"))), size);
}

// Runs the branch once to see what sizes it gives; the step then runs it for the values.
Status measure_if(const StepView& view, FunctionRef<Status(uint32_t, int64_t)> tell) {
  size_t own = view.in.size() - view.step.body_params.size();
  std::vector<Tensor> given;
  for (size_t i = 1; i < own; i++) given.push_back(RLX_TRY(borrowed(operand_of(view.in[i]))));
  std::vector<Operand> operands;
  for (const View& param : view.in.subspan(own)) operands.push_back(operand_of(param));
  ParamTensors params = RLX_TRY(params_over(operands, view.step.body_params));
  const Graph& branch = *view.node.attrs.graph(*view.in[0].as<bool8>() ? "then" : "else");
  EvalOptions options{EvalMode::kTyped, view.plan.lowered->options.bounds};
  std::vector<Tensor> results =
      RLX_TRY(run_sub_graph(branch, given, lookup_of(view.plan, view.symbols), params, options));
  for (size_t i = 0; i < results.size(); i++)
    for (size_t axis = 0; axis < results[i].rank(); axis++) {
      const std::string* name = view.node.out[i].dims[axis].symbol_name();
      int64_t symbol = name ? symbol_index(view.plan, *name) : -1;
      if (symbol < 0 || !view.plan.symbols[static_cast<size_t>(symbol)].is_fresh()) continue;
      RLX_TRY(tell(static_cast<uint32_t>(symbol), results[i].dims()[axis]));
    }
  return {};
}

}  // namespace

CpuKernel eval_kernel(const OpInfo& info) {
  CpuKernel row{{.op = info.op(), .name = "reference", .path = Path::kReference}, eval_bytes, encode_eval, run_eval};
  if (info.op() == Op::kDynamicIota) row.measure = measure_dynamic_iota;
  if (info.op() == Op::kIf) row.measure = measure_if;
  return row;
}

}  // namespace rlx::cpu
