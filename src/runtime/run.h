// SPDX-License-Identifier: Apache-2.0
// Run: one run of a program, from its start to its end, and all that it reads and writes. The life of a run:
//
//   Exec::run or Exec::submit, on the caller's thread
//     Exec::catch_up     what earlier runs have made known; where one has failed, links stand as it found them
//     Exec::prepare      links exchange, sizes are found and checked, every base is placed: nothing of the caller's
//                        arguments can fail from here on
//   RunQueue             submit only: waits until the fences and the run before are done
//   Run::execute, on any thread
//     inputs are staged  where the device cannot use what is bound as it lies
//     Frame::run         segment by segment: the device's executables, and Loop for control flow
//     outputs are staged
//   Fence::signal        submit only
//
// A run holds its memory, params and program, so the exec may change or go meanwhile. An exec has a few of them and
// uses one again when it is done: then its encoded steps stay right as long as nothing has moved.
#pragma once

#include <memory>
#include <vector>

#include "runtime/frame.h"
#include "runtime/params.h"

namespace rlx {

class Program;

// Bytes that are copied and converted between what is bound to a slot and what the device can use.
struct Staging {
  size_t slot;
  std::shared_ptr<Storage> bound, staged;
  DType bound_dtype, dtype;
};

class Run {
 public:
  // Memory for values that depend on sizes alone is its own; the arena is shared by all runs of an exec.
  static Result<std::shared_ptr<Run>> make(const CompiledPlan& compiled, std::shared_ptr<Buffer> arena,
                                           std::shared_ptr<Cancellation> cancellation);

  // The params that it reads, where all are set.
  void adopt(std::shared_ptr<const ParamSet> next);
  Frame& frame() { return *frame_; }
  Dims dims(const PlanSlot& slot) const;  // at the sizes of now
  int64_t bytes(DType dtype, const PlanSlot& slot) const;

  void forget();  // what it holds of the caller's
  CancelToken next_token() const { return {*cancellation_, cancellation_->next()}; }
  Status execute(const RunScope& scope);

  // What it holds, set by the exec. By slot: inputs, then outputs.
  std::shared_ptr<const Program> program;  // of a run that may outlive its exec
  std::shared_ptr<const ParamSet> params;
  std::vector<std::shared_ptr<Storage>> held;
  std::vector<std::shared_ptr<Room>> rooms;  // by output: where one without an upper size is made
  std::vector<Staging> staged_inputs, staged_outputs;
  std::vector<Staging> emptied;  // outputs that go from their rooms to what is bound

  // The versions of the exec that it was prepared at.
  uint64_t params_at = 0, sizes_at = 0, places_at = 0;
  bool is_in_flight = false;  // as far as the exec has looked

 private:
  Status stage_inputs();
  Status stage_outputs();
  Status empty_rooms();

  const Plan* plan_ = nullptr;
  std::shared_ptr<Cancellation> cancellation_;  // what its tokens ask
  std::shared_ptr<Buffer> arena_, sized_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace rlx
