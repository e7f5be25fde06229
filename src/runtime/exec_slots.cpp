// SPDX-License-Identifier: Apache-2.0
// The slots of an exec: their bindings, and memory of their own.
#include "runtime/exec.h"

#include <algorithm>

#include "runtime/convert.h"

namespace rlx {

// ---- questions about slots ----

Status Exec::check_slot(SlotKind kind, size_t slot) const {
  if (kind != SlotKind::kInput && kind != SlotKind::kOutput)
    return Status(Code::kInvalidArgument, "only inputs and outputs are bound");
  size_t count = program_->slots(kind).size();
  if (slot < count) return {};
  return Status(Code::kRange, format("there is no {} slot {}; the program has {}", kind_text(kind), slot, count))
      .with("expected", format("below {}", count))
      .with("got", std::to_string(slot));
}

Status Exec::check_type(SlotKind kind, size_t slot, const Tensor& tensor, UsedBytes::Use use) const {
  const Slot& it = slot_of(kind, slot);
  DType wanted = it.type.dtype;
  bool converts = use == UsedBytes::kRead && program_->compiled_graph().options.io_convert;
  if (tensor.dtype() != wanted && !(converts && may_convert(tensor.dtype(), wanted)))
    return Status(Code::kDtype, format("the {} '{}' is {}, not {}{}", kind_text(kind), it.name, wanted, tensor.dtype(),
                                       converts ? ", which io.convert does not convert to it" : ""))
        .with("value", it.name)
        .with("expected", name(wanted))
        .with("got", name(tensor.dtype()));
  if (tensor.rank() != it.type.rank())
    return Status(Code::kShape, format("the {} '{}' is {}, not {}", kind_text(kind), it.name, it.type,
                                       type_text(tensor.dtype(), tensor.dims())))
        .with("value", it.name)
        .with("expected", text_of(it.type))
        .with("got", type_text(tensor.dtype(), tensor.dims()));
  return {};
}

// ---- binding ----

Status Exec::share_memory(SlotKind kind, size_t slot, SlotKind other_kind, size_t other) const {
  return Status(Code::kInvalidArgument,
                format("the {} '{}' and the {} '{}' share memory", kind_text(kind), slot_of(kind, slot).name,
                       kind_text(other_kind), slot_of(other_kind, other).name))
      .with("value", slot_of(kind, slot).name);
}

// False: the memory certainly shares no byte with memory of another slot. Few slots are looked at one by one.
bool Exec::may_overlap(SlotKind kind, size_t slot, const Storage& storage) {
  constexpr size_t kFew = 64;
  if (inputs_.size() + outputs_.size() <= kFew) return true;
  if (!used_) {
    UsedBytes used;
    for (size_t i = 0; i < inputs_.size(); i++)
      if (inputs_[i].given()) used.add(*inputs_[i].given(), use_of(SlotKind::kInput, i));
    for (const SlotMemory& output : outputs_)
      if (output.given()) used.add(*output.given(), UsedBytes::kWritten);
    used_ = std::move(used);
  }
  return !used_->is_free(storage, use_of(kind, slot), memory(kind, slot).given().get());
}

// Memory that runs write must share no byte with other bound memory: kernels read inputs while they write.
Status Exec::check_overlap(SlotKind kind, size_t slot, const Storage& storage) {
  if (!may_overlap(kind, slot, storage)) return {};
  for (SlotKind other : {SlotKind::kInput, SlotKind::kOutput}) {
    const std::vector<SlotMemory>& list = other == SlotKind::kInput ? inputs_ : outputs_;
    for (size_t i = 0; i < list.size(); i++) {
      if (!is_written(kind, slot) && !is_written(other, i)) continue;
      const SlotMemory& it = memory(other, i);
      if (&it == &memory(kind, slot) || !it.given() || !storage.overlaps(*it.given())) continue;
      return share_memory(kind, slot, other, i);
    }
  }
  return {};
}

bool Exec::needs_stage(const Slot& slot, const Tensor& bound, const Storage& given) const {
  if (bound && bound.dtype() != slot.type.dtype) return true;
  if (!program_->device().can_use(given.buffer())) return true;
  return (reinterpret_cast<uintptr_t>(given.host()) & (slot.alignment - 1)) != 0;
}

Status Exec::cannot_write(SlotKind kind, size_t slot) const {
  const std::string& name = slot_of(kind, slot).name;
  return Status(Code::kState, format("the {} '{}' is written by runs: its memory is read-only, or frozen as a param or "
                                     "constant",
                                     kind_text(kind), name))
      .with("value", name);
}

// Replaces the binding of a slot; on failure the old one stays. It does not look for overlaps: a run checks all places
// together, which is faster than one by one.
Status Exec::replace(SlotKind kind, size_t slot, Tensor bound, std::shared_ptr<Storage> lent) {
  const std::shared_ptr<Storage>& given = bound ? bound.storage() : lent;
  std::shared_ptr<Storage> claim;
  if (given && is_written(kind, slot)) {
    claim = Storage::written(given);
    if (!claim) return cannot_write(kind, slot);
  }
  put(kind, slot, std::move(bound), std::move(lent), std::move(claim));
  return {};
}

// The dims of most tensors are fewer than a call of memcmp is worth.
static bool is_equal(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (a[i] != b[i]) return false;
  return true;
}

// Releases what was bound before only at the end, when the exec is consistent: the host may then get its memory back,
// and use the exec.
void Exec::put(SlotKind kind, size_t slot, Tensor bound, std::shared_ptr<Storage> lent,
               std::shared_ptr<Storage> claim) {
  SlotMemory& it = memory(kind, slot);
  const Storage* given = (bound ? bound.storage() : lent).get();
  if (used_ && given) used_->add(*given, use_of(kind, slot));
  if (used_ && it.given()) used_->remove(*it.given(), use_of(kind, slot));
  bool is_input = kind == SlotKind::kInput || is_aliased(kind, slot);
  bool same_dims = !is_input || (bound ? it.dims && is_equal(*it.dims, bound.dims()) : !it.dims);
  if (!same_dims) {
    it.dims = bound ? std::optional(Dims(bound.dims())) : std::nullopt;
    sizes_version_++;
  }
  places_version_++;
  it.is_staged = given && needs_stage(slot_of(kind, slot), bound, *given);
  it.is_made_for_run = false;
  std::swap(it.claim, claim);
  std::swap(it.bound, bound);
  std::swap(it.lent, lent);
}

// Overlaps are looked for once the link is settled, as that moves memory; a copy is made when nothing else can fail.
// Whatever fails, the link stands as before.
Status Exec::rebind(SlotKind kind, size_t slot, Tensor bound, std::shared_ptr<Storage> lent) {
  auto replaced = [&]() -> Status {
    if (const auto& given = bound ? bound.storage() : lent) RLX_TRY(check_overlap(kind, slot, *given));
    return replace(kind, slot, std::move(bound), std::move(lent));
  };
  size_t link = memory(kind, slot).link;
  if (link == kNoLink) return replaced();
  LinkChange change(*this);
  change.add(links_[link]);
  auto state = RLX_TRY(state_to_copy(kind, links_[link]));
  if (!state) RLX_TRY(settle(kind, links_[link]));
  RLX_TRY(replaced());
  if (state) RLX_TRY(copy_state(links_[link], *state));
  for (InFlight& sent : in_flight_) sent.links[link].reset();
  change.commit();
  return {};
}

// Only a linked slot needs to know what the runs in flight leave in it. A copy needs the contents too.
Status Exec::begin_binding(SlotKind kind, size_t slot) {
  size_t link = memory(kind, slot).link;
  if (link == kNoLink) return take_in_ended();
  RLX_TRY(catch_up());
  bool copies = kind == SlotKind::kOutput && links_[link].pending && is_half_bound(links_[link]);
  return copies ? await_runs() : Status();
}

Status Exec::bind(SlotKind kind, size_t slot, Tensor tensor) {
  RLX_TRY(check_slot(kind, slot));
  RLX_TRY(begin_binding(kind, slot));
  if (tensor) RLX_TRY(check_type(kind, slot, tensor, use_of(kind, slot)));
  return rebind(kind, slot, std::move(tensor), nullptr);
}

Status Exec::bind_all(SlotKind kind, std::span<const Tensor> tensors) {
  for (size_t slot = 0; slot < tensors.size(); slot++) {
    RLX_TRY(check_slot(kind, slot));
    RLX_TRY(check_type(kind, slot, tensors[slot], use_of(kind, slot)));
    RLX_TRY(replace(kind, slot, tensors[slot], nullptr));
  }
  return {};
}

Status Exec::bind_ptr(SlotKind kind, size_t slot, void* data, size_t bytes) {
  RLX_TRY(check_slot(kind, slot));
  const Slot& it = slot_of(kind, slot);
  bool exact = all_literal(it.type.dims);
  if (data && exact && bytes != static_cast<size_t>(it.bytes))
    return Status(Code::kInvalidArgument, format("the {} '{}' has {}, not {}", kind_text(kind), it.name,
                                                 plural(static_cast<size_t>(it.bytes), "byte"), bytes))
        .with("value", it.name)
        .with("expected", std::to_string(it.bytes))
        .with("got", std::to_string(bytes));
  RLX_TRY(begin_binding(kind, slot));
  std::shared_ptr<Storage> lent;
  if (data) {
    std::shared_ptr<std::byte> callers(std::shared_ptr<void>(), static_cast<std::byte*>(data));
    lent = std::make_shared<Storage>(host_buffer(std::move(callers), bytes), 0, bytes);
  }
  return rebind(kind, slot, {}, std::move(lent));
}

void Exec::forget_bindings() {
  for (auto* list : {&inputs_, &outputs_})
    for (SlotMemory& memory : *list) {
      memory.bound = {};
      memory.lent = memory.claim = nullptr;
      memory.is_staged = memory.is_made_for_run = false;  // `dims` stays: the next binding may have the same dims
    }
  last_->forget();
  used_.reset();
  places_version_++;
}

// The dims of a slot at the present sizes. An output that is linked holds what the last run wrote.
Result<Dims> Exec::present_dims(SlotKind kind, size_t slot) {
  const SlotMemory& it = memory(kind, slot);
  if (kind == SlotKind::kOutput && it.is_linked() && links_[it.link].pending) return *links_[it.link].pending;
  Run& run = *RLX_TRY(sized_run());
  if (it.lent && !slot_of(kind, slot).has_fresh_dims) RLX_TRY(check_memory(run, kind, slot));
  return run.dims(planned(kind, slot));
}

Result<Tensor> Exec::tensor(SlotKind kind, size_t slot) {
  RLX_TRY(check_slot(kind, slot));
  RLX_TRY(catch_up());
  SlotMemory& it = memory(kind, slot);
  bool has_fresh_dims = slot_of(kind, slot).has_fresh_dims;  // by the run, whatever the dims of the bound tensor are
  if (it.bound && !has_fresh_dims) return it.bound;
  if (has_fresh_dims || has_room(kind, slot)) RLX_TRY(await_runs());  // a run lets its room grow
  Dims dims = RLX_TRY(present_dims(kind, slot));
  if (!it.given()) RLX_TRY(has_room(kind, slot) ? adopt_room(slot, dims) : make_memory(it.own, it.capacity));
  auto made = Tensor::over(slot_of(kind, slot).type.dtype, dims, it.given() ? it.given() : it.own);
  if (made.ok()) return made;
  const std::string& name = slot_of(kind, slot).name;
  return std::move(made).status().prefixed(format("the {} '{}': ", kind_text(kind), name)).with("value", name);
}

Status Exec::set_dim(std::string_view symbol, int64_t size) {
  uint32_t index = RLX_TRY(check_dim(program_->plan(), symbol, size));
  for (const ChosenSize& chosen : program_->plan().chosen)
    if (chosen.symbol == index)
      return Status(Code::kInvalidArgument, format("an 'if' chooses the size '{}': it cannot be set", symbol))
          .with("value", symbol);
  int64_t& requested = requested_[index];
  if (std::exchange(requested, size) != size) sizes_version_++;
  return {};
}

Status Exec::want(std::span<const size_t> outputs) {
  for (size_t slot : outputs) RLX_TRY(check_slot(SlotKind::kOutput, slot));
  std::fill(wanted_.begin(), wanted_.end(), outputs.empty());
  for (size_t slot : outputs) wanted_[slot] = true;
  places_version_++;
  return {};
}

}  // namespace rlx
