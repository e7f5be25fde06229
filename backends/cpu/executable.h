// SPDX-License-Identifier: Apache-2.0
// A segment of a plan on the CPU. Its steps are encoded into argument blocks, which hold the present pointers and
// sizes. A team of threads executes them. Invariant: a step is encoded again exactly when a size or a base that it uses
// has changed; if only slots have moved, only the pointers in its block are replaced.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/caps.h"
#include "backends/cpu/table.h"
#include "base/inlined_vector.h"
#include "device/device.h"

namespace rlx::cpu {

class CpuState;

// Step numbers count from the first step of the segment.
class CpuExecutable : public Executable {
 public:
  CpuExecutable(std::shared_ptr<const Plan> plan, size_t segment, const Caps& caps, const DeviceContext& context);
  Result<std::unique_ptr<ExecState>> make_state() const override;
  Result<Fence> submit(const RunArgs&, ExecState&) const override;
  Status run(const RunArgs&, ExecState&) const override;

 private:
  // The steps that use one size or one base.
  struct Users {
    uint32_t id;
    InlinedVector<uint32_t, 2> steps;
  };
  using Use = std::pair<uint32_t, uint32_t>;  // the id of a size or base, and a step
  static std::vector<Users> grouped(std::vector<Use> uses);
  const Step& step(uint32_t index) const { return plan_->steps[segment_.first + index]; }
  uint32_t count() const { return segment_.last - segment_.first; }
  const CpuKernel& kernel(uint32_t index) const {
    const Kernel* row = step(index).kernel;
    return row ? static_cast<const CpuKernel&>(*row) : kCopyKernel;
  }
  enum class Slots { kHere, kElsewhere };  // where they are, or at other addresses
  void resolve(const Access&, const RunArgs&, Slots, View&) const;
  StepView view_of(uint32_t index, const RunArgs&, Slots, CpuState&) const;
  void note_uses();
  static void mark_stale(std::span<const uint32_t> steps, CpuState&);
  void encode_at(const StepView&, uint32_t index, std::byte* block, Launch&) const;
  void encode(uint32_t index, const RunArgs&, CpuState&) const;
  void list_phases(uint32_t first, uint32_t last, CpuState&) const;
  void encode_stale(uint32_t first, uint32_t last, const RunArgs&, CpuState&) const;
  void find_pointers(uint32_t index, const RunArgs&, CpuState&) const;
  void move_slot(const Users& slot, const RunArgs&, CpuState&) const;
  void note_changes(const RunArgs&, CpuState&) const;
  Status set_size(uint32_t symbol, int64_t size, const RunArgs&, CpuState&) const;
  Status measure(uint32_t index, const RunArgs&, CpuState&) const;
  Status run_deciding(const RunArgs&, CpuState&) const;
  Status walk_range(uint32_t first, uint32_t last, const RunArgs&, CpuState&) const;

  std::shared_ptr<const Plan> plan_;
  Segment segment_;
  const Caps& caps_;
  DeviceContext context_;
  std::vector<std::shared_ptr<const void>> compiled_;  // by step: what the row's `compile` made, or null
  std::vector<size_t> args_at_;                        // by step, offsets of argument blocks
  size_t args_bytes_ = 0;
  std::vector<Users> by_size_, by_base_;
  std::vector<uint32_t> deciding_;   // steps that decide sizes, and set them before they run
  std::vector<uint8_t> uses_slots_;  // by step: whether it has an operand in a slot
};

}  // namespace rlx::cpu
