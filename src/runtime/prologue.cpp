// SPDX-License-Identifier: Apache-2.0
#include "runtime/prologue.h"

#include "runtime/exec.h"

namespace rlx {

// Compiles without the lock. If two threads compile the same graph, the second drops its result.
Result<std::shared_ptr<Program>> Prologue::program_of(const std::shared_ptr<const Graph>& graph, Device& device) {
  std::pair key(graph.get(), &device);
  {
    std::lock_guard lock(mutex_);
    if (auto found = programs_.find(key); found != programs_.end()) return found->second;
  }
  CompileOptions options;
  options.kernels = compiled_graph_->options.kernels;
  options.dispatch_of = compiled_graph_->options.dispatch_of;
  options.threads = compiled_graph_->options.threads;
  std::shared_ptr<Program> made = RLX_TRY(Program::compile_prologue(env_, *graph, device, std::move(options)));
  std::lock_guard lock(mutex_);
  return programs_.emplace(key, std::move(made)).first->second;
}

Result<std::vector<Tensor>> Prologue::run(const std::shared_ptr<const Graph>& graph, Device& device,
                                          std::span<const Tensor> in) {
  std::shared_ptr<Program> program = RLX_TRY(program_of(graph, device));
  std::unique_ptr<Exec> exec = RLX_TRY(Exec::create(program));
  RLX_TRY(exec->bind_all(SlotKind::kInput, in));
  std::vector<Tensor> made;
  for (const Slot& output : program->slots(SlotKind::kOutput)) {
    auto bytes = static_cast<size_t>(output.bytes);
    auto memory = std::make_shared<Storage>(RLX_TRY(device.allocate(bytes, MemoryKind::kPrepared)), 0, bytes);
    made.push_back(RLX_TRY(Tensor::over(output.type.dtype, output.upper, std::move(memory))));
  }
  RLX_TRY(exec->bind_all(SlotKind::kOutput, made));
  RLX_TRY(exec->run());
  return made;
}

}  // namespace rlx
