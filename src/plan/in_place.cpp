// SPDX-License-Identifier: Apache-2.0
#include "plan/in_place.h"

#include "plan/control.h"

namespace rlx {

static Dim count_of(const Plan& plan, std::span<const SizeId> ids) {
  return element_count(plan.dims(ids));
}

// The base of a buffer stands in the plan's list, because sharing may still change it; that of a slot in the access.
static uint32_t base_of(const Plan& plan, const Access& access) {
  return access.buffer == Access::kNoBuffer ? access.base : plan.buffers[access.buffer].base;
}

static bool is_dense(const Plan& plan, const Access& access) {
  return access.dtype != DType::kNone && access.dense && plan.sizes[access.shift].is(0);
}

// The step of a loop writes over the first value of a carry if its trips do, or if the value stays what it is.
static bool allows(const Plan& plan, const Step& step, size_t output, size_t input) {
  if (step.control == Step::kNoControl) return step.kernel && step.kernel->writes_over(output, input);
  const std::vector<Carry>& carries = plan.controls[step.control].carries;
  if (output != input || output >= carries.size()) return false;
  const Carry& carry = carries[output];
  return carry.way == Carry::Way::kStays || (carry.way == Carry::Way::kPasses && carry.from == output);
}

bool writes_over(const Plan& plan, const Step& step, size_t output, size_t input) {
  const Access &out = step.out[output], &in = step.in[input];
  return allows(plan, step, output, input) && is_dense(plan, out) && is_dense(plan, in) && out.dtype == in.dtype &&
         count_of(plan, out.dims) == count_of(plan, in.dims);
}

// ---- slots ----

SlotUses::SlotUses(const Plan& plan)
    : plan_(plan), last_(plan.inputs.size(), kNone), first_writers_(plan.outputs.size()) {
  for (uint32_t i = 0; i < plan.steps.size(); i++) {
    const Step& step = plan.steps[i];
    for (const Access& in : step.in)
      if (uint32_t input = plan.input_slot(in.base); in.dtype != DType::kNone && input != Plan::kNoSlot)
        last_[input] = i;
    for (size_t k = 0; k < step.out.size(); k++) {
      uint32_t output = plan.output_slot(base_of(plan, step.out[k]));
      bool is_slot = step.out[k].dtype != DType::kNone && output != Plan::kNoSlot;
      if (is_slot && first_writers_[output].step == kNone) first_writers_[output] = {i, k};
    }
  }
}

uint32_t SlotUses::late_reader(size_t input, uint32_t step, size_t output) const {
  if (last_[input] == kNone || last_[input] < step) return kNone;
  if (last_[input] > step) return last_[input];
  const Step& writer = plan_.steps[step];
  Dim whole = count_of(plan_, plan_.inputs[input].dims);
  for (size_t i = 0; i < writer.in.size(); i++) {
    bool reads = writer.in[i].dtype != DType::kNone && writer.in[i].base == plan_.input_base(input);
    if (reads && !(writes_over(plan_, writer, output, i) && count_of(plan_, writer.in[i].dims) == whole)) return step;
  }
  return kNone;
}

bool SlotUses::may_share(size_t output, size_t input) const {
  const Writer& first = first_writers_[output];
  return first.step == kNone || late_reader(input, first.step, first.output) == kNone;
}

// ---- buffers ----

namespace {

// Goes from the last step to the first. So the place of an output is final before an operand of its step asks for the
// same place.
class Sharing {
 public:
  Sharing(Plan& plan, std::span<const SlotAlias> aliases)
      : plan_(plan), uses_(plan), is_taken_(plan.buffers.size()), readers_(plan.buffers.size()) {
    input_of_.assign(plan.outputs.size(), kNoInput);
    for (const SlotAlias& alias : aliases)
      if (uses_.may_share(alias.output, alias.input)) input_of_[alias.output] = alias.input;
    makers_.resize(plan.buffers.size());
    for (const Step& step : plan.steps)
      for (size_t i = 0; i < step.out.size(); i++)
        if (uint32_t buffer = step.out[i].buffer; buffer != Access::kNoBuffer) makers_[buffer] = {&step, i};
  }

  void run() {
    for (size_t i = plan_.steps.size(); i-- > plan_.first_run_step;) {
      const Step& step = plan_.steps[i];
      count_readers(step, 1);
      for (size_t out = 0; out < step.out.size(); out++) {
        if (step.out[out].buffer == Access::kNoBuffer) continue;
        auto [first, end] = inputs_to_ask(step, out);
        for (size_t in = first; in < end; in++)
          if (fits(static_cast<uint32_t>(i), out, in)) {
            take(step.out[out].buffer, step.in[in].buffer);
            break;
          }
      }
      count_readers(step, -1);
    }
  }

 private:
  static constexpr size_t kNoInput = SIZE_MAX;
  struct Maker {
    const Step* step = nullptr;
    size_t output = 0;
  };

  // The inputs [first, end) that the step may write over by this output. A loop may have thousands of carries, and
  // writes each over itself only.
  static std::pair<size_t, size_t> inputs_to_ask(const Step& step, size_t output) {
    if (step.control == Step::kNoControl) return {0, step.in.size()};
    return {output, std::min(output + 1, step.in.size())};
  }

  void count_readers(const Step& step, int32_t by) {
    for (const Access& in : step.in)
      if (in.buffer != Access::kNoBuffer) readers_[in.buffer] += by;
  }

  bool fits(uint32_t index, size_t output, size_t input) const {
    const Step& step = plan_.steps[index];
    uint32_t own = step.out[output].buffer, other = step.in[input].buffer;
    if (other == Access::kNoBuffer || is_taken_[other] || !makers_[other].step) return false;
    const PlanBuffer& dying = plan_.buffers[other];
    if (dying.base != kArenaBase || dying.last != index || !writes_over(plan_, step, output, input)) return false;
    const Access& made = makers_[other].step->out[makers_[other].output];
    if (!(count_of(plan_, made.dims) == count_of(plan_, step.in[input].dims))) return false;
    for (size_t i = 0; readers_[other] > 1 && i < step.in.size(); i++)
      if (step.in[i].buffer == other && !writes_over(plan_, step, output, i)) return false;
    return may_lie_at(plan_.buffers[own].base, other);
  }

  // Whether the buffer may lie at this base: in the arena always, in an output slot unless that overwrites an input
  // that is still read.
  bool may_lie_at(uint32_t base, uint32_t buffer) const {
    if (base == kArenaBase) return true;
    uint32_t output = plan_.output_slot(base);
    if (output == Plan::kNoSlot || plan_.outputs[output].is_open) return false;
    if (input_of_[output] == kNoInput) return true;
    const Maker& maker = makers_[buffer];
    auto step = static_cast<uint32_t>(maker.step - plan_.steps.data());
    return uses_.late_reader(input_of_[output], step, maker.output) == SlotUses::kNone;
  }

  void take(uint32_t buffer, uint32_t place) {
    plan_.buffers[buffer].over = place;
    plan_.buffers[place].base = plan_.buffers[buffer].base;
    is_taken_[place] = true;
  }

  Plan& plan_;
  SlotUses uses_;
  std::vector<bool> is_taken_;    // by buffer
  std::vector<int32_t> readers_;  // by buffer: how many inputs of the current step read it
  std::vector<size_t> input_of_;  // by output that can share an input's memory: that input
  std::vector<Maker> makers_;     // by buffer
};

}  // namespace

void share_buffers(Plan& plan, std::span<const SlotAlias> aliases) {
  Sharing(plan, aliases).run();
}

std::vector<uint32_t> first_in_place(const Plan& plan) {
  std::vector<uint32_t> first(plan.buffers.size());
  for (uint32_t i = 0; i < first.size(); i++) {  // each comes after the buffer whose place it takes
    uint32_t over = plan.buffers[i].over;
    first[i] = over == PlanBuffer::kNone ? i : first[over];
  }
  return first;
}

}  // namespace rlx
