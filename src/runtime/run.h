// SPDX-License-Identifier: Apache-2.0
// Run: one run of a program, from its start to its end, and all memory that it reads and writes. The life of a run:
//
//   Exec::run, Exec::submit, or Exec::run_once (of Program::run), on the caller's thread
//     earlier runs       run waits for all; submit takes in those that have ended (catch_up); run_once has none. If one
//                        has failed, links are restored as it found them
//     Exec::prepare      links exchange, sizes are found and checked, every base gets its place. What fails after this
//                        is due to contents: an index out of range, or a size that the run finds
//   RunQueue             submit only: waits until the fences and the run before are done
//   Run::execute, on any thread
//     inputs are staged  where the device cannot use what is bound as it lies
//     Frame::run         segment by segment: the device's executables, and ControlStep for control flow
//     outputs are staged
//   Fence::signal        submit only
//
// A run holds its memory, params and program, so the exec may be changed or released meanwhile. An exec has a few runs
// and uses one again when it has ended: its encoded steps stay valid as long as nothing has moved.
#pragma once

#include <memory>
#include <vector>

#include "runtime/frame.h"
#include "runtime/params.h"

namespace rlx {

class Program;

// A copy or conversion between the memory bound to a slot and memory that the device can use. The slot owns both, and
// so does Run::held for a submitted run.
struct Staging {
  size_t slot;
  Storage *bound, *staged;
  DType bound_dtype, dtype;
};

class Run {
 public:
  // A run owns the memory of its sized values; all runs of an exec share the arena.
  static Result<std::shared_ptr<Run>> make(const CompiledPlan& compiled, std::shared_ptr<Buffer> arena,
                                           std::shared_ptr<Cancellation> cancellation);

  // Makes the run read this set of params.
  void adopt(std::shared_ptr<const ParamSet> next);
  Frame& frame() { return *frame_; }
  Dims dims(const PlanSlot& slot) const;  // at the present sizes
  int64_t bytes(DType dtype, const PlanSlot& slot) const;

  void forget();  // drops references to the caller's objects
  void drop_memory() {
    held.clear();
    written.clear();
  }
  CancelToken next_token() const { return {*cancellation_, cancellation_->next()}; }
  Status execute(const RunScope& scope);
  Status execute_on_bound(const RunScope& scope);  // the same for memory of the caller: a failure says what it has lost

  // What the run holds; the exec sets it.
  std::shared_ptr<const Program> program;  // this and `held` only of a run that was submitted: it may outlive the exec
  std::shared_ptr<const ParamSet> params;
  std::vector<std::shared_ptr<Storage>> held;     // the memory of its slots
  std::vector<std::shared_ptr<Storage>> written;  // as a writer, until a run that was submitted has ended
  std::vector<std::shared_ptr<Room>> rooms;       // by output: the memory of one without an upper size
  std::vector<Staging> staged_inputs, staged_outputs;
  std::vector<Staging> room_copies;  // outputs that are copied from their rooms to bound memory

  // The versions of the exec for which the run was prepared.
  uint64_t params_at = 0, sizes_at = 0, places_at = 0;
  bool is_in_flight = false;  // when the exec looked last

 private:
  Status stage_inputs();
  Status stage_outputs();
  Status copy_rooms();

  const Plan* plan_ = nullptr;
  std::shared_ptr<Cancellation> cancellation_;  // read by its cancel token
  std::shared_ptr<Buffer> arena_, sized_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace rlx
