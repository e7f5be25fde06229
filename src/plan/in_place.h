// SPDX-License-Identifier: Apache-2.0
// Where a step writes over an operand that it reads for the last time, and which slots may share their memory.
// Invariant: no step reads a place after another value was written there.
#pragma once

#include "plan/plan.h"

namespace rlx {

// Whether a step may write an output where one of its operands lies, if nothing else of it lies there: both are dense
// and of one type, and the kernel reads each element before it writes it.
bool writes_over(const Plan& plan, const Step& step, size_t output, size_t input);

// Who reads each input slot last, as far as the plan has steps.
class SlotReads {
 public:
  explicit SlotReads(const Plan& plan);
  // The step that still reads an input when an output of a step has been written over it; kNone: no step does.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t late_reader(size_t input, uint32_t step, size_t output) const;

 private:
  const Plan& plan_;
  std::vector<uint32_t> last_;  // by input; kNone: nobody reads it
};

// Whether an output can always lie where an input lies. Of a plan that is complete.
bool may_share(const Plan& plan, const SlotReads& reads, size_t output, size_t input);

// Gives buffers the places of those that die where they are made, also within the memory of an output slot, as long as
// the slots of `aliases` can share theirs.
void share_buffers(Plan& plan, std::span<const SlotAlias> aliases);

std::vector<uint32_t> first_in_place(const Plan& plan);  // by buffer: the first one at its place

}  // namespace rlx
