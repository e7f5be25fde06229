// SPDX-License-Identifier: Apache-2.0
// Exec: one execution context of a program: an arena, what its slots are bound to, and the sizes of now. One thread at
// a time. Invariant: while bindings, sizes and params stay, a run allocates nothing, takes no lock and looks nothing
// up.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
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
  // Where the bytes of one input or output slot are: what the caller has bound, else memory of the slot's own, which
  // has one capacity as long as the exec lives, but for a link.
  struct Port {
    Tensor bound;                    // by bind
    std::shared_ptr<Storage> lent;   // by bind_ptr: it has no dims
    std::shared_ptr<Storage> use;    // of either, as a writer where runs write it
    std::shared_ptr<Storage> own;    // made when first needed
    std::shared_ptr<Storage> stage;  // the slot's dtype and alignment, where what is bound has not
    size_t capacity = 0;             // of `own` and `stage`
    std::optional<Dims> linked;      // of an input that was an output: its dims
    bool is_staged = false;
    bool is_linked = false;

    const std::shared_ptr<Storage>& given() const { return bound ? bound.storage() : lent; }  // null: own
    const std::shared_ptr<Storage>& bytes() const { return is_staged ? stage : given() ? given() : own; }
  };

  struct Link {
    size_t output, input;
    std::optional<Dims> made;  // of the output that a run has made and no later run has taken over yet
  };
  // Where one slot lies in a run, to find what overlaps.
  struct Place {
    const std::byte *begin, *end;
    SlotKind kind;
    size_t slot;
    bool is_written;
  };

  Exec() = default;
  SizeState& sizes() const { return frame_->sizes(); }
  std::vector<Port>& ports(SlotKind kind) { return kind == SlotKind::kInput ? inputs_ : outputs_; }
  const Slot& slot_of(SlotKind kind, size_t slot) const { return program_->slots(kind)[slot]; }
  const PlanSlot& planned(SlotKind kind, size_t slot) const;
  uint32_t base_of(SlotKind kind, size_t slot) const;
  Dims dims_now(SlotKind kind, size_t slot) const;
  Status check_slot(SlotKind kind, size_t slot) const;
  Status check_type(SlotKind kind, size_t slot, const Tensor& tensor) const;
  bool is_written(SlotKind kind, size_t slot) const;
  Status replace(SlotKind kind, size_t slot, Port next);
  Status settle_link(SlotKind kind, size_t slot);
  Status check_overlap(SlotKind kind, size_t slot, const Storage& storage) const;
  Status bind_once(SlotKind kind, size_t slot, Tensor tensor);
  Status check_places();
  bool is_read_back(size_t output) const;
  void forget_bindings();

  Status adopt_params();
  Status exchange(Link& link);
  Status exchange_links();
  Status resolve_sizes();
  Status place_slots();
  Status place_slot(SlotKind kind, size_t slot);
  bool has_fresh_dims(const Slot& slot) const;
  Status check_upper_memory(SlotKind kind, size_t slot) const;
  Status check_memory(SlotKind kind, size_t slot) const;
  Status make_memory(std::shared_ptr<Storage>& storage, size_t capacity);
  Status grow(std::shared_ptr<Storage>& storage, size_t capacity);
  Status renew_frozen_memory();
  bool has_room(SlotKind kind, size_t slot) const;
  int64_t bytes_now(size_t output) const;
  Status show_room(size_t output);
  Status empty_rooms();
  Status prepare();
  Status stage_inputs();
  Status stage_outputs();

  std::shared_ptr<Program> program_;
  std::vector<Port> inputs_, outputs_;
  std::vector<Link> links_;
  std::vector<bool> wanted_;          // by output
  std::vector<GrowingMemory> rooms_;  // by output: where one without an upper size is made
  HostMemory arena_, sized_;
  std::unique_ptr<Frame> frame_;
  std::vector<GivenDims> given_;  // of resolve_sizes; capacity for all inputs
  std::vector<Place> places_;     // of check_places; capacity for all slots
  std::shared_ptr<const ParamSet> params_;
  uint64_t params_version_ = 0;
  bool sizes_dirty_ = true, places_dirty_ = true, has_staging_ = false, has_rooms_ = false;

  std::atomic<bool> cancel_{false};
};

}  // namespace rlx
