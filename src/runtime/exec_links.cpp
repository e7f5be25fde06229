// SPDX-License-Identifier: Apache-2.0
// The links of an exec: an output of one run becomes an input of the next, as the two slots exchange their memory. What
// fails leaves the links as they were.
#include <algorithm>

#include "base/undo.h"
#include "runtime/exec.h"

namespace rlx {

// ---- making a link ----

Status Exec::check_link(size_t output, size_t input) const {
  const Slot &from = slot_of(SlotKind::kOutput, output), &to = slot_of(SlotKind::kInput, input);
  if (from.type.dtype != to.type.dtype || from.type.rank() != to.type.rank())
    return Status(from.type.dtype == to.type.dtype ? Code::kShape : Code::kDtype,
                  "the output '" + from.name + "' is " + text_of(from.type) + ", the input '" + to.name + "' " +
                      text_of(to.type) + ": they cannot be linked")
        .with("value", to.name)
        .with("expected", text_of(from.type))
        .with("got", text_of(to.type));
  auto taken = [](std::string_view kind, const Slot& slot, std::string_view why) {
    return Status(Code::kExists, format("the {} '{}' {}", kind, slot.name, why)).with("value", slot.name);
  };
  if (is_aliased(SlotKind::kOutput, output)) return taken("output", from, "has an alias");
  if (is_aliased(SlotKind::kInput, input)) return taken("input", to, "has an alias");
  if (outputs_[output].is_linked()) return taken("output", from, "is linked already");
  if (inputs_[input].is_linked()) return taken("input", to, "is linked already");
  return {};
}

// Runs write a linked input, and only read another.
void Exec::set_link(size_t output, size_t input, size_t link) {
  SlotMemory& read = inputs_[input];
  UsedBytes::Use before = use_of(SlotKind::kInput, input);
  outputs_[output].link = read.link = link;
  if (used_ && read.given()) used_->change(*read.given(), before, use_of(SlotKind::kInput, input));
}

Status Exec::link(size_t output, size_t input) {
  RLX_TRY(check_slot(SlotKind::kOutput, output));
  RLX_TRY(check_slot(SlotKind::kInput, input));
  RLX_TRY(await_runs());
  RLX_TRY(check_link(output, input));
  SlotMemory &made = outputs_[output], &read = inputs_[input];
  links_.push_back({output, input});
  set_link(output, input, links_.size() - 1);
  Undo unlink([&] {
    set_link(output, input, kNoLink);
    links_.pop_back();
    read.claim = nullptr;
  });
  if (read.bound) RLX_TRY(check_type(SlotKind::kInput, input, read.bound, UsedBytes::kWritten));
  if (read.given()) RLX_TRY(check_overlap(SlotKind::kInput, input, *read.given()));
  RLX_TRY(replace(SlotKind::kInput, input, read.bound, read.lent));  // from now on runs write the input too
  size_t capacity = std::max(made.capacity, read.capacity);          // so that the two can exchange their memory
  for (SlotMemory* memory : {&made, &read})
    if (memory->own && memory->own->bytes() < capacity) RLX_TRY(grow(memory->own, capacity));
  unlink.commit();
  made.capacity = read.capacity = capacity;
  made.stage = read.stage = nullptr;
  places_version_++;
  return {};
}

// ---- from run to run ----

void Exec::note_pending(const Run& run) {
  for (Link& link : links_) link.pending = run.dims(planned(SlotKind::kOutput, link.output));
}

static Status only_one_bound(const Slot& output, const Slot& input, SlotKind bound) {
  return Status(Code::kState, format("the output '{}' and the input '{}' are linked, so they exchange their memory: "
                                     "bind both of them or neither; only the {} is bound",
                                     output.name, input.name, kind_text(bound)))
      .with("value", bound == SlotKind::kInput ? input.name : output.name)
      .with("expected", "both bound, or neither")
      .with("got", format("only the {} bound", kind_text(bound)));
}

// The output of the last run becomes the input, even if slots were bound or asked for since then.
Status Exec::exchange(Link& link) {
  if (!link.pending) return {};
  SlotMemory &from = outputs_[link.output], &to = inputs_[link.input];
  if (is_half_bound(link))
    return only_one_bound(slot_of(SlotKind::kOutput, link.output), slot_of(SlotKind::kInput, link.input),
                          to.given() ? SlotKind::kInput : SlotKind::kOutput);
  if (has_room(SlotKind::kOutput, link.output) && !from.given()) {
    RLX_TRY(await_runs());
    RLX_TRY(adopt_room(link.output, *link.pending));
    rooms_[link.output] = std::make_shared<Room>();  // the input owns the old one now
  }
  Tensor state = from.bound;  // of the dims that it has now
  if (state && !std::ranges::equal(state.dims(), *link.pending))
    state = RLX_TRY(Tensor::over(state.dtype(), *link.pending, state.storage()));
  from.bound = std::exchange(to.bound, std::move(state));
  std::swap(from.lent, to.lent);
  std::swap(from.claim, to.claim);
  std::swap(from.own, to.own);
  std::swap(from.stage, to.stage);
  std::swap(from.is_staged, to.is_staged);
  take_dims(link);
  return {};
}

void Exec::take_dims(Link& link) {
  SlotMemory& to = inputs_[link.input];
  if (to.dims != link.pending) sizes_version_++;
  to.dims = link.pending;
  link.pending.reset();
  places_version_++;
}

bool Exec::is_half_bound(const Link& link) const {
  return !outputs_[link.output].given() != !inputs_[link.input].given();
}

// What the last run has written, if it must be copied once the output is bound again: the two slots cannot exchange
// memory of which only one part is the caller's. Else null.
Result<std::shared_ptr<Storage>> Exec::state_to_copy(SlotKind kind, const Link& link) {
  if (kind == SlotKind::kInput || !link.pending || !is_half_bound(link)) return std::shared_ptr<Storage>();
  SlotMemory& from = outputs_[link.output];
  if (from.given()) return from.given();
  if (has_room(SlotKind::kOutput, link.output)) RLX_TRY(adopt_room(link.output, *link.pending));
  return from.own;
}

Status Exec::copy_state(Link& link, const Storage& state) {
  SlotMemory& to = inputs_[link.input];
  const Slot& slot = slot_of(SlotKind::kInput, link.input);
  size_t bytes = RLX_TRY(Tensor::checked_bytes(slot.type.dtype, *link.pending));
  if (!to.given()) {
    if (to.own && !to.own->is_writable()) to.own = nullptr;  // it was handed out, and then frozen
    RLX_TRY(make_memory(to.own, std::max(to.capacity, bytes)));
  } else if (to.given()->bytes() < bytes) {
    return Status(Code::kInvalidArgument,
                  format("the input '{}' needs {} for what the linked output holds, {} are bound", slot.name,
                         plural(bytes, "byte"), to.given()->bytes()))
        .with("value", slot.name)
        .with("expected", format("at least {}", bytes))
        .with("got", std::to_string(to.given()->bytes()));
  }
  if (to.bound) to.bound = RLX_TRY(Tensor::over(to.bound.dtype(), *link.pending, to.bound.storage()));
  RLX_TRY(copy_bytes((to.given() ? to.given() : to.own)->place(), state.place(), bytes));
  take_dims(link);
  return {};
}

// A linked input that is bound again starts with the new value. An output first hands its value to the input.
Status Exec::settle(SlotKind kind, Link& link) {
  if (kind == SlotKind::kOutput) return exchange(link);
  if (link.pending) sizes_version_++;  // they may have been resolved with the dims of the state that is dropped
  link.pending.reset();
  return {};
}

// ---- back to an earlier state ----

void Exec::LinkChange::add(Link& link) {
  before_.push_back(exec_.state_of(link));
}

Exec::LinkChange::~LinkChange() {
  for (Linked& before : before_) exec_.put_back(before);
  before_.clear();
  exec_.spare_linked_.swap(before_);
}

void Exec::put_back(Linked& before) {
  Link& link = *before.link;
  link.pending = before.pending;
  std::swap(outputs_[link.output], before.from);
  std::swap(inputs_[link.input], before.to);
  std::swap(rooms_[link.output], before.room);
  used_.reset();
  sizes_version_++;
  places_version_++;
}

// Restores every link to its state before the failed run, the first in flight. If a slot of the link was bound since,
// that is the state before the first later run; if there is none, the link keeps what is bound now.
void Exec::restore_links() {
  for (size_t i = 0; i < links_.size(); i++) {
    links_[i].pending.reset();
    auto found = std::ranges::find_if(in_flight_, [i](const InFlight& it) { return it.links[i].has_value(); });
    if (found != in_flight_.end()) put_back(*found->links[i]);
  }
  used_.reset();
  sizes_version_++;
  places_version_++;
}

}  // namespace rlx
