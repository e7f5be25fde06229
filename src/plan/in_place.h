// SPDX-License-Identifier: Apache-2.0
// Decides where a step writes over an operand that is read for the last time, and which slots may share memory.
// Invariant: no step reads a value after another one was written over it.
#pragma once

#include "plan/plan.h"

namespace rlx {

// Whether a step may write an output over one of its operands, if no other operand lies there: both are dense and of
// one type, and the kernel reads each element before it writes it.
bool writes_over(const Plan& plan, const Step& step, size_t output, size_t input);

// Which steps read and write the slots, among the steps that the plan has so far.
class SlotUses {
 public:
  explicit SlotUses(const Plan& plan);
  // Whether an output slot can always share the memory of an input slot. The plan must have all its steps;
  // buffers need no place yet.
  bool may_share(size_t output, size_t input) const;
  // A step that still reads the input after the output was written over it; kNone if there is none.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t late_reader(size_t input, uint32_t step, size_t output) const;

 private:
  struct Writer {
    uint32_t step = kNone;
    size_t output = 0;  // of the step
  };
  const Plan& plan_;
  std::vector<uint32_t> last_;         // by input: the last step that reads it; kNone: nobody does
  std::vector<Writer> first_writers_;  // by output
};

// Puts a buffer in the place of an operand that dies at the step that makes the buffer, also inside the memory of
// output slots, as long as the slots of `aliases` can still share theirs.
void share_buffers(Plan& plan, std::span<const SlotAlias> aliases);

std::vector<uint32_t> first_in_place(const Plan& plan);  // by buffer: the first one at its place

}  // namespace rlx
