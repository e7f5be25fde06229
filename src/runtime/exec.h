// SPDX-License-Identifier: Apache-2.0
// Exec: one execution context of a program: an arena, what its slots are bound to, and the sizes of now. One thread at
// a time. Invariant: while bindings, sizes and params stay, a run allocates nothing, takes no lock and looks nothing
// up.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/allocator.h"
#include "device/device.h"
#include "device/fence.h"
#include "runtime/frame.h"
#include "runtime/program.h"

namespace rlx {

class Exec {
 public:
  static Result<std::unique_ptr<Exec>> create(std::shared_ptr<Program> program, const NamedAttrs& options = {});

  // Keeps the tensor; its dims determine symbols. A tensor that tests false unbinds: the slot has memory of its own.
  Status bind(SlotKind kind, size_t slot, Tensor tensor);
  // The caller's memory, until rebound; null unbinds. Its dims come from the other inputs and set_dim.
  Status bind_ptr(SlotKind kind, size_t slot, void* data, size_t bytes);
  // The slot's memory, own or bound, in the shape that it has now. It outlives the exec.
  Result<Tensor> tensor(SlotKind kind, size_t slot);
  Status set_dim(std::string_view symbol, int64_t size);
  Status link(size_t output, size_t input);
  Status want(std::span<const size_t> outputs);  // empty: all
  Status set(const NamedAttrs& options);

  Status run();
  // Waits for the fences, runs, and gives a fence that is done: the CPU works on the caller's thread and the pool.
  Result<Fence> submit(std::span<const Fence> wait);
  void cancel() { cancel_.store(true, std::memory_order_relaxed); }  // async-signal-safe; acts between steps

  Result<std::string> report(std::string_view what) const;  // "sizes"
  const std::shared_ptr<Program>& program() const { return program_; }

  // A whole run with bindings for this call only; results are new host tensors.
  Result<std::vector<Tensor>> run_once(std::span<const size_t> in_slots, std::span<const Tensor> in,
                                       std::span<const size_t> out_slots);

 private:
  friend class Program;
  // Where the bytes of one input or output slot are. At most one of `bound` and `pointer` is set; else `own` is used.
  struct Port {
    Tensor bound;
    std::byte* pointer = nullptr;
    size_t pointer_bytes = 0;
    std::shared_ptr<std::byte> own;  // at upper size; made when first needed
    Dims linked;                     // an input that received an output: its dims
    bool is_linked = false;
    bool is_staged = false;  // the bytes pass through `own`: another dtype, or unaligned memory
    bool is_given() const { return bound || pointer; }
    std::byte* given() const { return bound ? bound.data() : pointer; }
  };

  Exec() = default;
  SizeState& sizes() const { return frame_->sizes(); }
  std::vector<Port>& ports(SlotKind kind) { return kind == SlotKind::kInput ? inputs_ : outputs_; }
  const Slot& slot_of(SlotKind kind, size_t slot) const { return program_->slots(kind)[slot]; }
  const PlanSlot& planned(SlotKind kind, size_t slot) const;
  uint32_t base_of(SlotKind kind, size_t slot) const;
  Dims dims_now(SlotKind kind, size_t slot) const;
  Status check_slot(SlotKind kind, size_t slot) const;
  Status check_dtype(SlotKind kind, size_t slot, const Tensor& tensor) const;
  void set_staged(SlotKind kind, size_t slot);
  void forget_bindings();

  Status adopt_params();
  Status exchange_links();
  Status resolve_sizes();
  Status place_slots();
  Status place_slot(SlotKind kind, size_t slot);
  bool has_fresh_dims(const Slot& slot) const;
  Status check_upper_memory(SlotKind kind, size_t slot) const;
  Status check_memory(SlotKind kind, size_t slot) const;
  Status own_memory(SlotKind kind, size_t slot);
  Status prepare();
  Status stage_inputs();
  Status stage_outputs();

  std::shared_ptr<Program> program_;
  std::vector<Port> inputs_, outputs_;
  struct Link {
    size_t output, input;
    bool is_armed = false;  // a run has made the output since
  };
  std::vector<Link> links_;
  std::vector<bool> wanted_;  // by output
  HostMemory arena_, sized_;
  std::unique_ptr<Frame> frame_;
  std::vector<GivenDims> given_;  // of resolve_sizes; capacity for all inputs
  std::shared_ptr<const ParamSet> params_;
  uint64_t params_version_ = 0;
  bool sizes_dirty_ = true, places_dirty_ = true, has_staging_ = false;

  std::atomic<bool> cancel_{false};
};

}  // namespace rlx
