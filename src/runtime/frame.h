// SPDX-License-Identifier: Apache-2.0
// Frame: the state of one plan in a run: the places of its bases, its sizes, the states of its executables, and a frame
// for each body of its control steps. Invariant: once it is made, a run allocates nothing, however many trips its loops
// make, except for rooms that grow.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "device/device.h"
#include "runtime/room.h"
#include "runtime/sizes.h"

namespace rlx {

// A plan and the plans of its bodies, compiled for one device. Immutable.
struct CompiledPlan {
  static Result<std::unique_ptr<const CompiledPlan>> make(Device& device, Device* fallback,
                                                          const std::shared_ptr<const Plan>& plan);

  Device* device;
  Device* fallback;  // runs the segments on the host; null if there are none
  std::shared_ptr<const Plan> plan;
  std::vector<std::unique_ptr<Executable>> executables;                  // by segment; null for control flow
  std::vector<std::vector<std::unique_ptr<const CompiledPlan>>> bodies;  // as Plan::controls
};

// What all frames of a run share.
struct RunScope {
  CancelToken cancel;
  int threads = INT32_MAX;
};

class HostSide;
class ControlStep;

class Frame {
 public:
  static Result<std::unique_ptr<Frame>> make(const CompiledPlan& compiled);
  ~Frame();

  const Plan& plan() const { return plan_; }
  Device& device() const { return *compiled_.device; }
  SizeState& sizes() { return sizes_; }
  const SizeState& sizes() const { return sizes_; }
  void place(uint32_t base, const Place& place);
  void renew(uint32_t base, const Place& place);  // new bytes, even if they lie at the same place
  const Place& base_place(uint32_t base) const { return bases_[base]; }
  Place address(const Access& access) const;  // at the present sizes
  // By resident: why it could not be computed. The span must outlive the frame. A body that needs such a resident
  // fails.
  void set_failures(std::span<const Status> failures);
  Status run(const RunScope& scope);

  // ---- rooms ----

  Room* room_of(uint32_t base);  // null: the base has no room, or other memory at present
  // Sets the room of an output; null: it lies in memory of fixed size, placed as any other.
  void set_room(size_t output, Room* room);
  // Handles the sizes that are known from this step on: checks outputs in memory of fixed size, and makes rooms.
  Status on_sizes_known(uint32_t step);

  // ---- of a body ----

  // Takes the memory, residents and sizes from the frame around it that have changed.
  Status enter(const Frame& around, const Step& step, const PlanBody& body);
  // Sets the sizes that inputs carry. `dims`: of the inputs, in order; inputs that carry no size are not read.
  Status set_carried_sizes(const PlanBody& body, std::span<const Dims> dims);
  Status check_residents() const { return failure_ ? *failure_ : Status(); }
  Status settle();  // evaluates what `enter` and `set_carried_sizes` have changed
  // The bytes of the memory behind each output, where it may be smaller than the plan's; checked before it is written.
  // None: it grows.
  void limit_outputs(std::span<const std::optional<int64_t>> bytes) { limits_ = bytes; }
  Dims output_dims(size_t output) const;

 private:
  explicit Frame(const CompiledPlan& compiled);
  void note_failures(bool are_any, FunctionRef<const Status*(size_t resident)> of);
  Status compute_sized(const RunArgs& args, const RunScope& scope);
  Status run_segment(size_t segment, const RunArgs& args, const RunScope& scope);
  Status check_outputs(uint32_t known) const;
  Status trim_rooms();
  Status make_rooms(uint32_t known);

  // The rooms, or outputs, whose dims are known from one step on, or before all steps.
  class ByStep {
   public:
    using Entry = std::pair<uint32_t, uint32_t>;  // step, index
    void add(uint32_t known, uint32_t index) { entries_.emplace_back(known, index); }
    void sort() { std::ranges::sort(entries_); }
    std::span<const Entry> at(uint32_t known) const {
      auto first = std::lower_bound(entries_.begin(), entries_.end(), Entry(known, 0));
      return {first, std::upper_bound(first, entries_.end(), Entry(known, UINT32_MAX))};
    }

   private:
    std::vector<Entry> entries_;
  };

  const CompiledPlan& compiled_;
  const Plan& plan_;
  std::vector<Place> bases_;
  std::vector<uint64_t> changed_;  // by base: the version of its last change
  uint64_t bases_version_ = 0;
  uint64_t non_slot_version_ = 0;  // of the last change of a base other than slots
  SizeState sizes_;
  std::vector<std::unique_ptr<ExecState>> states_;      // by segment
  std::unique_ptr<HostSide> host_side_;                 // null: no segment runs on the host
  std::vector<std::unique_ptr<ControlStep>> controls_;  // as Plan::controls
  // The versions for which the sized values were computed.
  uint64_t sized_for_sizes_ = 0, sized_for_bases_ = UINT64_MAX;

  std::vector<std::unique_ptr<Room>> own_rooms_;  // by room of the plan; empty for rooms of outputs
  std::vector<Room*> rooms_;                      // by room of the plan
  std::vector<uint32_t> room_at_;                 // by base: its room, or kNoRoom
  static constexpr uint32_t kNoRoom = UINT32_MAX;
  ByStep rooms_by_step_, outputs_by_step_;

  std::vector<int64_t> wanted_;          // sizes of the symbols that a body shares with the graph around it
  std::vector<const Status*> failures_;  // by resident: why it could not be computed, or null
  bool has_failures_ = false;
  const Status* failure_ = nullptr;  // the first failure among its own residents
  uint64_t non_slot_seen_ = 0, sizes_seen_ = 0;
  bool is_unsettled_ = true;
  std::span<const std::optional<int64_t>> limits_;
};

}  // namespace rlx
