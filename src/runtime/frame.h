// SPDX-License-Identifier: Apache-2.0
// Frame: what a run has of one plan: where its bases lie, its sizes, what its executable keeps, and a frame for each
// body of its steps of control flow. Invariant: once made, a run allocates nothing, however many trips its loops make,
// but for rooms that grow.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "device/device.h"
#include "runtime/growing.h"
#include "runtime/sizes.h"

namespace rlx {

// A plan and the plans of its bodies, compiled for one device. Immutable.
struct CompiledPlan {
  static Result<std::unique_ptr<const CompiledPlan>> make(Device& device, std::shared_ptr<const Plan> plan);

  std::shared_ptr<const Plan> plan;
  std::unique_ptr<Executable> executable;
  std::vector<std::vector<std::unique_ptr<const CompiledPlan>>> bodies;  // as Plan::controls
};

// What all frames of a run share.
struct RunScope {
  const std::atomic<bool>* cancel = nullptr;
  int threads = INT32_MAX;
};

class Loop;

class Frame {
 public:
  static Result<std::unique_ptr<Frame>> make(const CompiledPlan& compiled, const std::shared_ptr<Host>& host);
  ~Frame();

  const Plan& plan() const { return plan_; }
  SizeState& sizes() { return sizes_; }
  const SizeState& sizes() const { return sizes_; }
  void place(uint32_t base, std::byte* data);
  std::byte* region(uint32_t base) const { return bases_[base].host; }
  std::byte* address(const Access& access) const;  // now
  Status run(const RunScope& scope);

  // ---- rooms ----

  const std::shared_ptr<Host>& host() const { return host_; }
  GrowingMemory* room_of(uint32_t base);  // null: the base has none, or has other memory now
  // Where an output lies that has a room; null: in memory of fixed size, which is placed as any other.
  void set_room(size_t output, GrowingMemory* memory);
  // What becomes known before this step: outputs in memory of fixed size are checked, rooms are made.
  Status learn(uint32_t step);
  Changes changes() const { return {sizes_.changed(), moved_rooms_}; }

  // ---- of a body ----

  // Takes over regions, residents and sizes from the frame around it, as far as they have changed.
  Status enter(const Frame& around, const Step& step, const PlanBody& body);
  // The sizes that inputs carry. `dims`: of the inputs, in order; those that carry none are not asked.
  Status carry(const PlanBody& body, std::span<const Dims> dims);
  Status settle();  // evaluates what `enter` and `carry` have changed
  // Where the memory behind an output is smaller than the plan's: its bytes are checked before they are written; -1: it
  // is as large as need be.
  void limit_outputs(std::span<const int64_t> bytes) { limits_ = bytes; }
  Dims output_dims(size_t output) const;

 private:
  Frame(const CompiledPlan& compiled, std::shared_ptr<Host> host);
  Status check_outputs(uint32_t known) const;
  Status make_rooms(uint32_t known);

  const CompiledPlan& compiled_;
  const Plan& plan_;
  std::shared_ptr<Host> host_;
  std::vector<Binding> bases_;
  std::vector<uint32_t> changed_bases_;  // since the last run; capacity for all
  std::vector<uint8_t> is_changed_;      // by base: it stands in changed_bases_
  uint64_t places_version_ = 1;          // moves with every base that is no slot
  SizeState sizes_;
  std::unique_ptr<ExecState> state_;
  std::vector<std::unique_ptr<Loop>> loops_;  // as Plan::controls

  std::vector<std::unique_ptr<GrowingMemory>> own_rooms_;  // by room of the plan, where it is no output's
  std::vector<GrowingMemory*> rooms_;                      // by room of the plan
  std::vector<uint32_t> moved_rooms_;                      // bases, by the last make_rooms; capacity for all

  std::vector<int64_t> wanted_;  // sizes of a body's symbols that come from outside
  std::vector<uint32_t> known_;  // by output: the step before which its dims are known
  uint64_t places_seen_ = 0, sizes_seen_ = 0;
  bool is_unsettled_ = true;
  std::span<const int64_t> limits_;
};

}  // namespace rlx
