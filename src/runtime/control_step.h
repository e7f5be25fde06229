// SPDX-License-Identifier: Apache-2.0
// ControlStep: runs one step of control flow: a branch of an `if` once, or the body of a loop trip after trip. A trip
// sets the bases of its body and runs the frame of the body. Only two things are copied: the last value of a carry, if
// it does not lie where the result must be; and an output whose size had to be checked first (`staging_`). Invariant: a
// carry is read where its value lies, whichever trip has written it, and no trip overwrites what it or a later one
// reads.
#pragma once

#include "plan/control.h"
#include "runtime/frame.h"

namespace rlx {

class ControlStep {
 public:
  ControlStep(Frame& around, const Control& control, std::vector<std::unique_ptr<Frame>> bodies);

  Status run(const RunScope& scope);

 private:
  Status begin();                // finds operands and results; bodies take bases and sizes from the frame around them
  Status prepare(size_t index);  // before a body runs: sets the places and sizes of its inputs
  Status place(Frame& body, size_t output, Room* room, const Place& fixed);
  Result<bool> read_flag(const Place& place) const;
  Status run_if(const RunScope& scope);

  int64_t most_trips() const;
  Status prepare_slices(std::optional<int64_t> trips);  // of xs and stacked outputs
  Status run_trips(const RunScope& scope);
  Result<bool> run_condition(const RunScope& scope);
  Status trip(int64_t at, const RunScope& scope);
  Status place_carry(size_t carry);             // where the trip writes its next value
  Status place_row(size_t output, int64_t at);  // where trip `at` writes its row of a stacked output
  Status finish_carries();
  Status finish_carry(size_t carry);  // copies it if it is not where the result must be

  Status set_decided_sizes();
  Status finish_rooms();
  bool is_open(size_t output) const { return !control_.out_bytes[output]; }

  Frame& around_;
  const Control& control_;
  const Step& step_;
  const Node& node_;
  size_t first_in_, carries_, xs_;  // the step's inputs: a predicate (`if`), carries, xs, the rest
  std::vector<std::unique_ptr<Frame>> bodies_;
  std::vector<Place> in_, out_;     // by input and output of the step: its place; for carries and xs, in this trip
  std::vector<Dims> in_dims_;       // of what the body gets: for an x, of one slice
  std::vector<Dims> out_dims_;      // of the results
  std::vector<int64_t> row_bytes_;  // by input and output that is sliced or stacked: the bytes of one slice
  int64_t turn_ = 0;                // of this trip: it chooses among the places of a carry

  // Memory of outputs without a bound.
  std::vector<Room*> rooms_;               // by output: where it is written
  std::vector<std::vector<Room>> spares_;  // by carry
  std::vector<Room> staging_;              // by output: used if the plan around it has no room for it
};

}  // namespace rlx
