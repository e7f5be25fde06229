// SPDX-License-Identifier: Apache-2.0
// Exec: one execution context of a program: an arena, the bindings of its slots, and the sizes set by set_dim. Used by
// one thread at a time. Invariant: while bindings, sizes and params stay the same, a run allocates nothing, takes no
// lock and looks nothing up. run.h describes the life of a run.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "runtime/program.h"
#include "runtime/run.h"
#include "runtime/used_bytes.h"

namespace rlx {

class Exec {
 public:
  static Result<std::unique_ptr<Exec>> create(std::shared_ptr<Program> program, const NamedAttrs& options = {});

  // Keeps the tensor; its dims determine symbols. A tensor that tests false unbinds: the slot then uses memory of its
  // own.
  Status bind(SlotKind kind, size_t slot, Tensor tensor);
  // All slots, in their order. Only the run looks whether they overlap: for all of them together, in less time.
  Status bind_all(SlotKind kind, std::span<const Tensor> tensors);
  // The caller's memory, until rebound; null unbinds. Its dims come from the other inputs and set_dim.
  Status bind_ptr(SlotKind kind, size_t slot, void* data, size_t bytes);
  // The slot's memory, own or bound, in its present shape. It outlives the exec. Waits if a run in flight decides the
  // shape.
  Result<Tensor> tensor(SlotKind kind, size_t slot);
  Status set_dim(std::string_view symbol, int64_t size);
  Status link(size_t output, size_t input);
  Status want(std::span<const size_t> outputs);  // empty: all
  Status set(const NamedAttrs& options);

  Status run();
  // Begins when the fences are done and the earlier runs have ended. Errors of the arguments are returned here; the
  // fence has the result of the run.
  Result<Fence> submit(std::span<const Fence> wait);
  // Cancels the runs that were submitted or begun before, between two steps. Any thread may call it; async-signal-safe.
  void cancel() { cancellation_->cancel(); }

  Result<std::string> report(std::string_view what);  // "sizes"
  const std::shared_ptr<Program>& program() const { return program_; }

  // A run with bindings for this call only: it takes the inputs. Its results are new host tensors.
  Status run_once(std::span<const size_t> in_slots, std::span<Tensor> in, std::span<const size_t> out_slots,
                  std::span<Tensor> results);

 private:
  friend class Program;
  static constexpr size_t kNoLink = SIZE_MAX;
  // The memory of one input or output slot: what the caller has bound, else memory of its own. The latter keeps its
  // capacity as long as the exec lives, unless the slot is linked.
  struct SlotMemory {
    Tensor bound;                    // by bind
    std::shared_ptr<Storage> lent;   // by bind_ptr: it has no dims
    std::shared_ptr<Storage> claim;  // as a writer to the bytes of `bound` or `lent`; null if runs only read them
    std::shared_ptr<Storage> own;    // made when first needed
    std::shared_ptr<Storage> stage;  // device memory of the slot's dtype and alignment, if the bound memory differs
    size_t capacity = 0;             // of `own` and `stage`
    std::optional<Dims> dims;  // of an input: the dims that determine sizes, from its binding or the linked output
    size_t link = kNoLink;     // of `links_`
    bool is_staged = false;
    bool is_made_for_run = false;  // the bound memory was made for this run, of the run's dims: nobody else has it

    bool is_linked() const { return link != kNoLink; }
    const std::shared_ptr<Storage>& given() const { return bound ? bound.storage() : lent; }  // null: own
    const std::shared_ptr<Storage>& bytes() const { return is_staged ? stage : given() ? given() : own; }
  };

  struct Link {
    size_t output, input;
    std::optional<Dims> pending;  // the dims of an output that no later run has exchanged yet
  };
  // The state of a link and of its slots.
  struct Linked {
    Link* link;
    std::optional<Dims> pending;
    SlotMemory from, to;
    std::shared_ptr<Room> room;
  };
  // Links that change get their old state back unless the change is committed. What the change has replaced goes when
  // the exec is consistent, because the host may then get its memory back, and use the exec: another change may begin.
  class LinkChange {
   public:
    explicit LinkChange(Exec& exec) : exec_(exec), before_(std::move(exec.spare_linked_)) {}
    LinkChange(const LinkChange&) = delete;
    LinkChange& operator=(const LinkChange&) = delete;
    ~LinkChange();
    void add(Link& link);
    void commit() { before_.clear(); }

   private:
    Exec& exec_;
    std::vector<Linked> before_;
  };
  // A submitted run that may not have ended, and the state of the links before it.
  struct InFlight {
    std::shared_ptr<Run> run;
    Fence fence;
    // By link. None if one of its slots was bound since: the caller may have taken back what was bound then.
    std::vector<std::optional<Linked>> links;
    bool decides_links;  // the dims of its linked outputs are known only when it has ended
  };
  // The bytes of one slot in a run, to find overlaps.
  struct SlotRange {
    const Storage* storage;
    SlotKind kind;
    size_t slot;
    bool is_written;
  };

  Exec() = default;
  // The two slots of an alias share their memory.
  SlotMemory& memory(SlotKind kind, size_t slot) {
    if (kind == SlotKind::kInput) return inputs_[slot];
    return input_of_[slot] == kNoInput ? outputs_[slot] : inputs_[input_of_[slot]];
  }
  const SlotMemory& memory(SlotKind kind, size_t slot) const { return const_cast<Exec*>(this)->memory(kind, slot); }
  bool is_aliased(SlotKind kind, size_t slot) const {
    return kind == SlotKind::kInput ? has_alias_[slot] : input_of_[slot] != kNoInput;
  }
  bool is_written(SlotKind kind, size_t slot) const {
    return kind == SlotKind::kOutput || inputs_[slot].is_linked() || has_alias_[slot];
  }
  const Slot& slot_of(SlotKind kind, size_t slot) const { return program_->slots(kind)[slot]; }
  const PlanSlot& planned(SlotKind kind, size_t slot) const {
    return kind == SlotKind::kInput ? program_->plan().inputs[slot] : program_->plan().outputs[slot];
  }
  uint32_t base_of(SlotKind kind, size_t slot) const {
    return kind == SlotKind::kInput ? program_->plan().input_base(slot) : program_->plan().output_base(slot);
  }
  UsedBytes::Use use_of(SlotKind kind, size_t slot) const {
    return is_written(kind, slot) ? UsedBytes::kWritten : UsedBytes::kRead;
  }
  bool is_read_back(size_t output) const {
    return wanted_[output] || outputs_[output].is_linked() || is_aliased(SlotKind::kOutput, output);
  }

  // ---- exec_slots.cpp: questions about slots, and bindings ----
  Status check_slot(SlotKind kind, size_t slot) const;
  Status check_type(SlotKind kind, size_t slot, const Tensor& tensor, UsedBytes::Use use) const;
  bool needs_stage(const Slot& slot, const Tensor& bound, const Storage& given) const;
  Status cannot_write(SlotKind kind, size_t slot) const;
  Status replace(SlotKind kind, size_t slot, Tensor bound, std::shared_ptr<Storage> lent);
  void put(SlotKind kind, size_t slot, Tensor bound, std::shared_ptr<Storage> lent, std::shared_ptr<Storage> claim);
  Status begin_binding(SlotKind kind, size_t slot);
  Status rebind(SlotKind kind, size_t slot, Tensor bound, std::shared_ptr<Storage> lent);
  bool may_overlap(SlotKind kind, size_t slot, const Storage& storage);
  Status check_overlap(SlotKind kind, size_t slot, const Storage& storage);
  Status share_memory(SlotKind kind, size_t slot, SlotKind other_kind, size_t other) const;
  void forget_bindings();
  Result<Dims> present_dims(SlotKind kind, size_t slot);

  // ---- exec_links.cpp ----
  Status check_link(size_t output, size_t input) const;
  void set_link(size_t output, size_t input, size_t link);
  void note_pending(const Run& run);
  Status exchange(Link& link);
  void take_dims(Link& link);
  bool is_half_bound(const Link& link) const;
  Result<std::shared_ptr<Storage>> state_to_copy(SlotKind kind, const Link& link);
  Status copy_state(Link& link, const Storage& state);
  Status settle(SlotKind kind, Link& link);
  Linked state_of(Link& link) {
    return {&link, link.pending, outputs_[link.output], inputs_[link.input], rooms_[link.output]};
  }
  void put_back(Linked& before);
  void restore_links();

  // ---- exec.cpp: the results of earlier runs, and which run is next ----
  Status take_in_ended();
  Status catch_up();
  Status await_runs();
  Status finish_first();
  RunScope scope_of(const Run& run) const { return {run.next_token(), program_->compiled_graph().options.threads}; }
  Status hold(Run& run) const;
  using Held = std::vector<std::shared_ptr<Storage>>;
  Held retire(InFlight& sent);
  Result<Run*> next_run();
  Result<Run*> sized_run();

  // ---- exec.cpp: before a run ----
  Result<Run*> prepare(LinkChange& links);
  Status adopt_params(Run& run);
  Status resolve_sizes(Run& run);
  Status place_slots(Run& run);
  Status place_slot(Run& run, SlotKind kind, size_t slot);
  Status check_overlaps();
  Status check_upper_memory(SlotKind kind, size_t slot) const;
  Status check_memory(const Run& run, SlotKind kind, size_t slot) const;
  Status make_memory(std::shared_ptr<Storage>& storage, size_t capacity);
  Status grow(std::shared_ptr<Storage>& storage, size_t capacity);
  Status renew_frozen_memory();
  bool has_room(SlotKind kind, size_t slot) const;
  Status adopt_room(size_t output, const Dims& dims);

  // ---- exec.cpp: a call ----
  Status bind_arguments(std::span<const size_t> slots, std::span<Tensor> in);
  Status bind_results(std::span<const size_t> slots, std::span<Tensor> results);
  Status take_results(std::span<const size_t> slots, std::span<Tensor> results);
  Result<Tensor> converted_copy(size_t input, const Tensor& tensor) const;

  std::shared_ptr<Program> program_;
  std::vector<SlotMemory> inputs_, outputs_;
  static constexpr size_t kNoInput = SIZE_MAX;
  std::vector<size_t> input_of_;  // by output: the input that it aliases
  std::vector<bool> has_alias_;   // by input
  std::vector<Link> links_;
  std::vector<Linked> spare_linked_;          // empty; its memory is for the next LinkChange: runs allocate nothing
  std::vector<bool> wanted_;                  // by output
  std::vector<int64_t> requested_;            // by symbol: set by set_dim
  std::vector<std::shared_ptr<Room>> rooms_;  // by output: the memory of one without an upper size
  // Used instead while the output is bound: the bound memory may be too small for what the run finds, and the slot's
  // own memory must keep its contents.
  std::vector<std::shared_ptr<Room>> staging_rooms_;
  std::shared_ptr<Buffer> arena_;
  std::shared_ptr<Run> last_;                // the run that was begun or sized last
  std::vector<std::shared_ptr<Run>> spare_;  // other runs that have ended
  std::deque<InFlight> in_flight_;           // in the order of their submission
  std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  std::vector<GivenDims> given_;   // scratch of resolve_sizes, with capacity for all inputs
  std::optional<UsedBytes> used_;  // by what is bound; none: to be made when it is asked for
  std::vector<SlotRange> ranges_;  // scratch of check_overlaps, with capacity for all slots
  // Versions: they grow with every change of what decides sizes, and of the places of slots. A run keeps those for
  // which it was prepared.
  uint64_t sizes_version_ = 1, places_version_ = 1;
};

}  // namespace rlx
