// SPDX-License-Identifier: Apache-2.0
// A plan on the CPU: its steps are encoded into argument blocks, which hold current pointers and sizes, and walked by a
// team of threads. Invariant: a step is encoded again exactly when a size or a base that it uses has changed.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/caps.h"
#include "backends/cpu/table.h"
#include "device/device.h"

namespace rlx::cpu {

class CpuState;

class CpuExecutable : public Executable {
 public:
  CpuExecutable(std::shared_ptr<const Plan> plan, const Caps& caps, const DeviceContext& context);
  Result<std::unique_ptr<ExecState>> make_state() const override;
  Result<Fence> submit(const RunArgs&) const override;
  Status run(const RunArgs&) const override;

 private:
  friend class CpuState;
  const CpuKernel& kernel(uint32_t step) const {
    const Kernel* row = plan_->steps[step].kernel;
    return row ? static_cast<const CpuKernel&>(*row) : kCopyKernel;
  }
  class Operands;
  StepView view_of(uint32_t index, const Operands& operands, const RunArgs&) const;
  bool decides_sizes(uint32_t step) const;
  static void mark(std::span<const uint32_t> steps, CpuState&);
  void encode(uint32_t index, const RunArgs&, CpuState&) const;
  void encode_dirty(const RunArgs&, CpuState&) const;
  Status follow_changes(const RunArgs&, CpuState&) const;
  Status measure(uint32_t index, const RunArgs&, CpuState&) const;
  Status walk_range(uint32_t first, uint32_t last, const RunArgs&, CpuState&) const;

  std::shared_ptr<const Plan> plan_;
  const Caps& caps_;
  DeviceContext context_;
  std::vector<std::shared_ptr<const void>> compiled_;  // by step, where its row wants something made once
  std::vector<size_t> args_at_;                        // by step, offsets of argument blocks
  size_t args_bytes_ = 0;
  std::vector<std::vector<uint32_t>> by_size_, by_base_;  // the steps that use a size, a base
  std::vector<uint32_t> makers_;                          // the run steps that decide sizes
};

}  // namespace rlx::cpu
