// SPDX-License-Identifier: Apache-2.0
// Exec: one execution context of a program: an arena, what its slots are bound to, and the sizes that are wished. One
// thread at a time. Invariant: while bindings, sizes and params stay, a run allocates nothing, takes no lock and looks
// nothing up. run.h tells the life of a run.
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

namespace rlx {

std::string_view kind_text(SlotKind kind);  // "input", "output", "param"

class Exec {
 public:
  static Result<std::unique_ptr<Exec>> create(std::shared_ptr<Program> program, const NamedAttrs& options = {});

  // Keeps the tensor; its dims determine symbols. A tensor that tests false unbinds: the slot has memory of its own.
  Status bind(SlotKind kind, size_t slot, Tensor tensor);
  // The caller's memory, until rebound; null unbinds. Its dims come from the other inputs and set_dim.
  Status bind_ptr(SlotKind kind, size_t slot, void* data, size_t bytes);
  // The slot's memory, own or bound, in the shape that it has now. It outlives the exec. Waits where a run in flight
  // decides the shape.
  Result<Tensor> tensor(SlotKind kind, size_t slot);
  Status set_dim(std::string_view symbol, int64_t size);
  Status link(size_t output, size_t input);
  Status want(std::span<const size_t> outputs);  // empty: all
  Status set(const NamedAttrs& options);

  Status run();
  // Begins when the fences are done and the runs before it have ended. What can be wrong with the arguments is said
  // here, and the fence says what becomes of the run.
  Result<Fence> submit(std::span<const Fence> wait);
  // The runs that were submitted or begun before. From any thread, async-signal-safe; acts between steps.
  void cancel() { cancellation_->cancel(); }

  Result<std::string> report(std::string_view what);  // "sizes"
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
    std::shared_ptr<Storage> stage;  // of the device, the slot's dtype and alignment, where what is bound is not
    size_t capacity = 0;             // of `own` and `stage`
    std::optional<Dims> gives;       // of an input, to the sizes: of what is bound, or of the output that it was
    bool is_staged = false;
    bool is_linked = false;

    const std::shared_ptr<Storage>& given() const { return bound ? bound.storage() : lent; }  // null: own
    const std::shared_ptr<Storage>& bytes() const { return is_staged ? stage : given() ? given() : own; }
  };

  struct Link {
    size_t output, input;
    std::optional<Dims> made;  // of the output that a run has made and no later run has taken over yet
  };
  // A run that was submitted and may not have ended, and how its links stood.
  struct Flight {
    std::shared_ptr<Run> run;
    Fence fence;
    std::vector<std::pair<Port, Port>> ports;  // by link: of its output, of its input
    bool decides_links;                        // what its linked outputs have come to is known when it has ended
  };
  // Where one slot lies in a run, to find what overlaps.
  struct Spot {
    const Storage* storage;
    SlotKind kind;
    size_t slot;
    bool is_written;
  };

  Exec() = default;
  Port& port(SlotKind kind, size_t slot);
  const Port& port(SlotKind kind, size_t slot) const { return const_cast<Exec*>(this)->port(kind, slot); }
  bool is_aliased(SlotKind kind, size_t slot) const;
  const Slot& slot_of(SlotKind kind, size_t slot) const { return program_->slots(kind)[slot]; }
  const PlanSlot& planned(SlotKind kind, size_t slot) const;
  uint32_t base_of(SlotKind kind, size_t slot) const;
  Status check_slot(SlotKind kind, size_t slot) const;
  Status check_type(SlotKind kind, size_t slot, const Tensor& tensor, bool is_written) const;
  bool is_written(SlotKind kind, size_t slot) const;
  bool needs_stage(const Slot& slot, const Tensor& bound, const Storage& given) const;
  Status replace(SlotKind kind, size_t slot, Tensor bound, std::shared_ptr<Storage> lent);
  void put(SlotKind kind, size_t slot, Tensor bound, std::shared_ptr<Storage> lent, std::shared_ptr<Storage> use);
  Status settle_link(SlotKind kind, size_t slot);
  Status check_overlap(SlotKind kind, size_t slot, const Storage& storage) const;
  Status share_memory(SlotKind kind, size_t slot, SlotKind other_kind, size_t other) const;
  Status check_spots();
  bool is_read_back(size_t output) const {
    return wanted_[output] || outputs_[output].is_linked || is_aliased(SlotKind::kOutput, output);
  }
  Result<Tensor> converted_copy(size_t input, const Tensor& tensor) const;
  void forget_bindings();

  // Which run is next; what earlier ones have left.
  Status catch_up(bool waits);
  void note_made(const Run& run);
  void restore_links(const Flight& failed);
  void land(Flight& flight);
  Result<Run*> next_run();
  Result<Run*> sized_run(bool waits);

  Result<Run*> prepare();
  Status adopt_params(Run& run);
  Status exchange(Link& link);
  Status resolve_sizes(Run& run);
  Status place_slots(Run& run);
  Status place_slot(Run& run, SlotKind kind, size_t slot);
  bool has_fresh_dims(const Slot& slot) const;
  Status check_upper_memory(SlotKind kind, size_t slot) const;
  Status check_memory(const Run& run, SlotKind kind, size_t slot) const;
  Status make_memory(std::shared_ptr<Storage>& storage, size_t capacity);
  Status grow(std::shared_ptr<Storage>& storage, size_t capacity);
  Status renew_frozen_memory();
  bool has_room(SlotKind kind, size_t slot) const;
  Status show_room(const Run& run, size_t output);

  std::shared_ptr<Program> program_;
  std::vector<Port> inputs_, outputs_;
  static constexpr size_t kNoInput = SIZE_MAX;
  std::vector<size_t> input_of_;  // by output: the input whose alias it is
  std::vector<bool> has_alias_;   // by input
  std::vector<Link> links_;
  std::vector<bool> wanted_;                  // by output
  std::vector<int64_t> wished_;               // by symbol: by set_dim
  std::vector<std::shared_ptr<Room>> rooms_;  // by output: where one without an upper size is made
  std::shared_ptr<Buffer> arena_;
  std::shared_ptr<Run> last_;                // the latest that was begun or sized
  std::vector<std::shared_ptr<Run>> spare_;  // others that have landed
  std::deque<Flight> flights_;               // in the order of their submission
  std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  std::vector<GivenDims> given_;  // of resolve_sizes; capacity for all inputs
  std::vector<Spot> spots_;       // of check_spots; capacity for all slots
  // Move with every change of what decides sizes, and of what lies where. A run has those that it was prepared at.
  uint64_t sizes_version_ = 1, places_version_ = 1;
};

}  // namespace rlx
