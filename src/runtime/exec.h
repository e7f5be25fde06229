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

#include "backend/device.h"
#include "backend/fence.h"
#include "base/allocator.h"
#include "runtime/compiled.h"
#include "runtime/sizes.h"

namespace rlx {

class Exec {
 public:
  static Result<std::unique_ptr<Exec>> create(std::shared_ptr<Compiled> program, const NamedAttrs& options = {});
  ~Exec();

  // Keeps the tensor; its dims determine symbols. A tensor that tests false unbinds: the slot has memory of its own.
  Status bind(SlotKind kind, size_t slot, Tensor tensor);
  // The caller's memory, until rebound. Its dims come from the other inputs and set_dim.
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
  const Compiled& program() const { return *program_; }

 private:
  friend class Compiled;
  struct Port {                    // the state of one input or output slot
    Tensor bound;                  // what bind gave
    std::byte* pointer = nullptr;  // what bind_ptr gave
    size_t pointer_bytes = 0;
    Tensor own;           // memory of the slot's own, at upper size; made when first needed
    Dims dims;            // now
    bool linked = false;  // an input that takes its dims from `dims` of the last exchange
    bool is_given() const { return bound || pointer; }
    std::byte* data() const { return bound ? bound.data() : pointer ? pointer : own.data(); }
  };

  Exec() = default;
  Status make_bases();
  Status adopt_params();
  Status exchange_links();
  Status resolve_sizes();
  Status bind_memory();
  Status check_bytes(SlotKind kind, size_t slot) const;
  Status own_memory(SlotKind kind, size_t slot);
  Status prepare();
  void mark_base(uint32_t base, std::byte* data);
  std::vector<Port>& ports(SlotKind kind) { return kind == SlotKind::kInput ? inputs_ : outputs_; }
  Result<Port*> port(SlotKind kind, size_t slot);
  uint32_t base_of(SlotKind kind, size_t slot) const;
  Dims dims_now(std::span<const SizeId> ids) const;

  std::shared_ptr<Compiled> program_;
  std::vector<Port> inputs_, outputs_;
  std::vector<std::pair<size_t, size_t>> links_;  // output, input
  std::vector<uint8_t> wanted_;
  HostMemory arena_, sized_;
  SizeState sizes_;
  std::shared_ptr<const ParamSet> params_;
  uint64_t params_version_ = 0;
  bool sizes_dirty_ = true, memory_dirty_ = true, has_run_ = false;

  std::vector<Binding> bases_;
  std::vector<uint32_t> changed_bases_;  // since the last submit; capacity for all
  std::unique_ptr<ProgramState> state_;
  std::atomic<bool> cancel_{false};
};

}  // namespace rlx
