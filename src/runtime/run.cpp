// SPDX-License-Identifier: Apache-2.0
#include "runtime/run.h"

#include "base/size_failure.h"
#include "runtime/convert.h"

namespace rlx {

Result<std::shared_ptr<Run>> Run::make(const CompiledPlan& compiled, std::shared_ptr<Buffer> arena,
                                       std::shared_ptr<Cancellation> cancellation) {
  auto run = std::make_shared<Run>();
  const Plan& plan = *compiled.plan;
  run->plan_ = &plan;
  run->arena_ = std::move(arena);
  run->cancellation_ = std::move(cancellation);
  run->sized_ = RLX_TRY(compiled.device->allocate(static_cast<size_t>(plan.sized_bytes), MemoryKind::kArena));
  run->held.reserve(plan.inputs.size() + plan.outputs.size());
  run->rooms.resize(plan.outputs.size());
  run->frame_ = RLX_TRY(Frame::make(compiled));
  run->frame_->place(kArenaBase, {*run->arena_, 0});
  run->frame_->place(kSizedBase, {*run->sized_, 0});
  return run;
}

void Run::adopt(std::shared_ptr<const ParamSet> next) {
  for (size_t i = 0; i < next->residents.size(); i++) {
    const auto& storage = next->residents[i].storage();
    bool is_new = !params || params->residents[i].storage() != storage;
    if (storage && is_new) frame_->renew(plan_->resident_base(i), storage->place());
  }
  frame_->set_failures(next->failures ? std::span<const Status>(*next->failures) : std::span<const Status>());
  params = std::move(next);
}

void Run::forget() {
  for (auto* list : {&staged_inputs, &staged_outputs, &room_copies}) list->clear();
}

Dims Run::dims(const PlanSlot& slot) const {
  return dims_at(slot.dims, frame_->sizes().values());
}

int64_t Run::bytes(DType dtype, const PlanSlot& slot) const {
  return byte_size(dtype, element_count(dims(slot)).value_or(0)).value_or(0);
}

Status Run::execute(const RunScope& scope) {
  if (scope.cancel.is_set()) return cancelled();
  if (!staged_inputs.empty()) RLX_TRY(stage_inputs());
  if (Status status = frame_->run(scope); !status.ok())
    return std::move(status).with(kMayHaveEffects, plan_->lowered->has_effects ? "1" : "");
  if (!staged_outputs.empty()) RLX_TRY(stage_outputs());
  return room_copies.empty() ? Status() : copy_rooms();
}

Status Run::execute_on_bound(const RunScope& scope) {
  Status status = execute(scope);
  return status.ok() || plan_->aliases.empty() ? std::move(status)
                                               : std::move(status).prefixed("inputs with an alias are lost: ");
}

// ---- staging ----

Status Run::stage_inputs() {
  for (const Staging& it : staged_inputs) {
    int64_t count = element_count(dims(plan_->inputs[it.slot])).value_or(0);
    RLX_TRY(convert_elements(it.bound_dtype, it.bound->place(), it.dtype, it.staged->place(), count));
  }
  return {};
}

Status Run::stage_outputs() {
  for (const Staging& it : staged_outputs) {
    auto bytes = static_cast<size_t>(this->bytes(it.dtype, plan_->outputs[it.slot]));
    RLX_TRY(copy_bytes(it.bound->place(), it.staged->place(), bytes));
  }
  return {};
}

// Copies outputs from their rooms to bound memory. They are not computed there because that memory may be too small.
Status Run::copy_rooms() {
  for (const Staging& it : room_copies) {
    auto bytes = static_cast<size_t>(this->bytes(it.dtype, plan_->outputs[it.slot]));
    const std::string& name = plan_->graph().outputs()[it.slot].name;
    if (bytes > it.bound->bytes())
      return Status(Code::kRange, format("the output '{}' has grown to {}, {} are bound", name, plural(bytes, "byte"),
                                         it.bound->bytes()))
          .with("value", name)
          .with("expected", format("at least {}", bytes))
          .with("got", std::to_string(it.bound->bytes()));
    RLX_TRY(copy_bytes(it.bound->place(), rooms[it.slot]->place(), bytes));
  }
  return {};
}

}  // namespace rlx
