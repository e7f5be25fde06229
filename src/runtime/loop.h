// SPDX-License-Identifier: Apache-2.0
// Loop: runs one step of control flow: a branch once, or a body trip after trip. A trip moves the bases of its body and
// calls its executable; nothing is copied but a last value that does not lie where it should. Invariant: every trip
// reads what the trip before it wrote, and no trip writes what it still reads.
#pragma once

#include "plan/control.h"
#include "runtime/frame.h"

namespace rlx {

class Loop {
 public:
  Loop(Frame& around, const Control& control, std::vector<std::unique_ptr<Frame>> bodies);

  // Gives the entries of the size table around it that moved.
  Result<std::span<const SizeId>> run(const RunScope& scope);

 private:
  Status run_if(const RunScope& scope);
  Status run_while(const RunScope& scope);
  Status run_scan(const RunScope& scope);

  Status begin();                // operands and results as they lie now; the bodies take over what is around them
  Status prepare(size_t index);  // before a trip: the places and sizes of its inputs
  Status trip(size_t index, const RunScope& scope);
  std::byte* target(size_t carry, bool odd) const;
  void finish_carries();  // copies what does not lie where the result does
  Status tell_sizes();

  Frame& around_;
  const Control& control_;
  const Step& step_;
  const Node& node_;
  size_t first_in_, carries_, xs_;  // the step's inputs: a predicate (`if`), carries, xs, the rest
  std::vector<std::unique_ptr<Frame>> bodies_;
  std::vector<std::byte*> in_, out_;  // by input and output of the step: where it lies; a carry: in this trip
  std::vector<Dims> in_dims_, dims_;  // of the inputs; of the results
  std::vector<int64_t> slice_bytes_;  // by input and output: of one step of a scan
  std::vector<std::byte*> next_;      // by carry: where this trip writes
  bool odd_ = false;                  // whether this trip writes to the spare places
};

}  // namespace rlx
