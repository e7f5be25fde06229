// SPDX-License-Identifier: Apache-2.0
// Frame: what a run has of one plan: where its bases lie, its sizes, what its executables keep, and a frame for each
// body of its steps of control flow. Invariant: once made, a run allocates nothing, however many trips its loops make,
// but for rooms that grow.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "runtime/room.h"
#include "runtime/sizes.h"

namespace rlx {

// A plan and the plans of its bodies, compiled for one device. Immutable.
struct CompiledPlan {
  static Result<std::unique_ptr<const CompiledPlan>> make(Device& device, Device* fallback,
                                                          const std::shared_ptr<const Plan>& plan);

  Device* device;
  Device* fallback;  // of the segments on the host; null where there are none
  std::shared_ptr<const Plan> plan;
  std::vector<std::unique_ptr<Executable>> executables;                  // by segment; null: control flow
  std::vector<std::vector<std::unique_ptr<const CompiledPlan>>> bodies;  // as Plan::controls
};

// What all frames of a run share.
struct RunScope {
  CancelToken cancel;
  int threads = INT32_MAX;
};

Status cancelled();

class HostSide;
class Loop;

class Frame {
 public:
  static Result<std::unique_ptr<Frame>> make(const CompiledPlan& compiled);
  ~Frame();

  const Plan& plan() const { return plan_; }
  Device& device() const { return *compiled_.device; }
  SizeState& sizes() { return sizes_; }
  const SizeState& sizes() const { return sizes_; }
  void place(uint32_t base, const Place& place);
  void renew(uint32_t base, const Place& place);  // other bytes, also where they lie at the same place
  const Place& region(uint32_t base) const { return bases_[base]; }
  Place address(const Access& access) const;  // now
  // By resident, why it is not there; outlives what reads it. A body that needs one does not run.
  void set_failures(std::span<const Status> failures);
  Status run(const RunScope& scope);

  // ---- rooms ----

  Room* room_of(uint32_t base);  // null: the base has none, or has other memory now
  // Where an output lies that has a room; null: in memory of fixed size, which is placed as any other.
  void set_room(size_t output, Room* room);
  // What becomes known before this step: outputs in memory of fixed size are checked, rooms are made.
  Status learn(uint32_t step);

  // ---- of a body ----

  // Takes over regions, residents and sizes from the frame around it, as far as they have changed.
  Status enter(const Frame& around, const Step& step, const PlanBody& body);
  // The sizes that inputs carry. `dims`: of the inputs, in order; those that carry none are not asked.
  Status carry(const PlanBody& body, std::span<const Dims> dims);
  Status check_residents() const { return failure_ ? *failure_ : Status(); }
  Status settle();  // evaluates what `enter` and `carry` have changed
  // Where the memory behind an output is smaller than the plan's: its bytes are checked before they are written; -1: it
  // is as large as need be.
  void limit_outputs(std::span<const int64_t> bytes) { limits_ = bytes; }
  Dims output_dims(size_t output) const;

 private:
  explicit Frame(const CompiledPlan& compiled);
  Status run_segment(size_t segment, const RunArgs& args, const RunScope& scope);
  Status check_outputs(uint32_t known) const;
  Status make_rooms(uint32_t known);

  const CompiledPlan& compiled_;
  const Plan& plan_;
  std::vector<Place> bases_;
  std::vector<uint64_t> changed_;  // by base: the version of its last change
  uint64_t bases_version_ = 0;
  uint64_t regions_version_ = 0;  // of the last change of a base that is no slot
  SizeState sizes_;
  std::vector<std::unique_ptr<ExecState>> states_;  // by segment
  std::unique_ptr<HostSide> host_side_;             // null: no segment runs on the host
  std::vector<std::unique_ptr<Loop>> loops_;        // as Plan::controls
  // The versions at which values that depend on sizes alone were computed.
  uint64_t sized_at_ = 0, sized_in_ = UINT64_MAX;

  std::vector<std::unique_ptr<Room>> own_rooms_;  // by room of the plan, where it is no output's
  std::vector<Room*> rooms_;                      // by room of the plan

  std::vector<int64_t> wanted_;       // sizes of a body's symbols that come from outside
  std::vector<uint32_t> known_;       // by output: the step before which its dims are known
  std::span<const Status> failures_;  // by resident, or empty
  const Status* failure_ = nullptr;   // the first of its own residents
  uint64_t regions_seen_ = 0, sizes_seen_ = 0;
  bool is_unsettled_ = true;
  std::span<const int64_t> limits_;
};

}  // namespace rlx
