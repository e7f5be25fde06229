// SPDX-License-Identifier: Apache-2.0
// What an exec does before, between and after runs. Bindings are in exec_slots.cpp, links in exec_links.cpp.
#include "runtime/exec.h"

#include <algorithm>

#include "base/json.h"
#include "base/undo.h"
#include "runtime/convert.h"
#include "runtime/queue.h"

namespace rlx {

static constexpr size_t kSpare = 2;  // ended runs that are kept for later

Result<std::unique_ptr<Exec>> Exec::create(std::shared_ptr<Program> program, const NamedAttrs& options) {
  std::unique_ptr<Exec> exec(new Exec);
  const Plan& plan = program->plan();
  exec->inputs_.resize(plan.inputs.size());
  exec->outputs_.resize(plan.outputs.size());
  for (size_t i = 0; i < plan.inputs.size(); i++) exec->inputs_[i].capacity = static_cast<size_t>(plan.inputs[i].bytes);
  for (size_t i = 0; i < plan.outputs.size(); i++)
    exec->outputs_[i].capacity = static_cast<size_t>(plan.outputs[i].bytes);
  for (auto* rooms : {&exec->rooms_, &exec->staging_rooms_})
    for (const PlanSlot& output : plan.outputs) rooms->push_back(output.is_open ? std::make_shared<Room>() : nullptr);
  exec->input_of_.assign(plan.outputs.size(), kNoInput);
  exec->has_alias_.assign(plan.inputs.size(), false);
  for (const SlotAlias& alias : plan.aliases) {
    exec->input_of_[alias.output] = alias.input;
    exec->has_alias_[alias.input] = true;
  }
  exec->wanted_.assign(plan.outputs.size(), true);
  exec->requested_.assign(plan.symbols.size(), kUnknownSize);
  auto arena_bytes = static_cast<size_t>(plan.arena_bytes);
  exec->arena_ = RLX_TRY(program->device().allocate(arena_bytes, MemoryKind::kArena));
  exec->given_.reserve(plan.inputs.size());
  exec->spare_.reserve(kSpare);
  exec->ranges_.reserve(plan.inputs.size() + plan.outputs.size());
  exec->program_ = std::move(program);
  RLX_TRY(exec->next_run());
  RLX_TRY(exec->set(options));
  return exec;
}

Status Exec::set(const NamedAttrs& options) {
  if (options.empty()) return {};
  return Status(Code::kOption, "unknown run option '" + options[0].first + "': there are none yet")
      .with("value", options[0].first);
}

// ---- which run is next ----

Result<Run*> Exec::next_run() {
  if (last_ && !last_->is_in_flight) return last_.get();
  std::shared_ptr<Run> next;
  if (spare_.empty()) {
    next = RLX_TRY(Run::make(program_->compiled_plan(), arena_, cancellation_));
  } else {
    next = std::move(spare_.back());
    spare_.pop_back();
  }
  last_ = std::move(next);
  return last_.get();
}

// Keeps a few ended runs for later: their steps need not be encoded again. Returns what the run held. The caller
// releases it when the exec is consistent, because the host may then get its memory back, and use the exec.
Exec::Held Exec::retire(InFlight& sent) {
  sent.run->is_in_flight = false;
  Held held = std::exchange(sent.run->held, {});
  if (sent.run != last_ && spare_.size() < kSpare) spare_.push_back(std::move(sent.run));
  return held;
}

// A run that has the present sizes: the last one if nothing has changed, else the next.
Result<Run*> Exec::sized_run() {
  if (last_ && last_->sizes_at == sizes_version_) return last_.get();
  Run* run = RLX_TRY(next_run());
  RLX_TRY(resolve_sizes(*run));
  return run;
}

// Takes in the results of the runs that have ended.
Status Exec::take_in_ended() {
  while (!in_flight_.empty() && in_flight_.front().fence.is_done()) RLX_TRY(finish_first());
  return {};
}

// Waits also for a run that decides the dims of a linked output.
Status Exec::catch_up() {
  while (!in_flight_.empty() && (in_flight_.front().decides_links || in_flight_.front().fence.is_done()))
    RLX_TRY(finish_first());
  return {};
}

Status Exec::await_runs() {
  while (!in_flight_.empty()) RLX_TRY(finish_first());
  return {};
}

// If the run has failed, the runs after it were aborted.
Status Exec::finish_first() {
  InFlight& first = in_flight_.front();
  RLX_TRY(first.fence.wait());
  if (first.fence.result().ok()) {
    if (first.decides_links) note_pending(*first.run);
    Held held = retire(first);
    in_flight_.pop_front();
    return {};
  }
  for (const InFlight& sent : in_flight_) RLX_TRY(sent.fence.wait());
  std::vector<Held> held;
  held.reserve(in_flight_.size());  // from here on nothing fails: the runs are all retired, or none is
  restore_links();
  for (InFlight& sent : in_flight_) held.push_back(retire(sent));
  in_flight_.clear();
  return {};
}

// ---- before a run ----

Status Exec::adopt_params(Run& run) {
  run.params_at = program_->params()->version();
  run.adopt(program_->params()->current());
  return {};
}

Status Exec::resolve_sizes(Run& run) {
  given_.clear();
  for (size_t i = 0; i < inputs_.size(); i++) {
    const SlotMemory& memory = inputs_[i];
    const Slot& slot = slot_of(SlotKind::kInput, i);
    // What a link is about to bring decides sizes as if it were there.
    bool comes_by_link = memory.is_linked() && links_[memory.link].pending;
    if (const std::optional<Dims>& dims = comes_by_link ? links_[memory.link].pending : memory.dims)
      given_.push_back({&slot.type, *dims, slot.name});
  }
  RLX_TRY(run.frame().sizes().resolve(program_->plan(), given_, requested_));
  run.sizes_at = sizes_version_;
  run.places_at = 0;  // the bytes have to be checked against the new sizes
  return {};
}

Status Exec::make_memory(std::shared_ptr<Storage>& storage, size_t capacity) {
  if (storage && storage->bytes() >= capacity) return {};
  if (storage) return grow(storage, capacity);  // it came through a link
  auto buffer = RLX_TRY(program_->device().allocate(capacity, MemoryKind::kTensor));
  RLX_TRY(clear_bytes({*buffer, 0}, capacity));
  storage = std::make_shared<Storage>(std::move(buffer), 0, capacity);
  return {};
}

// Moves the bytes to other memory, of this capacity.
Status Exec::grow(std::shared_ptr<Storage>& storage, size_t capacity) {
  std::shared_ptr<Storage> larger;
  RLX_TRY(make_memory(larger, capacity));
  RLX_TRY(copy_bytes(larger->place(), storage->place(), std::min(storage->bytes(), capacity)));
  storage = std::move(larger);
  return {};
}

// Replaces memory that the run will write if it was handed out and then frozen: it belongs to whoever froze it.
Status Exec::renew_frozen_memory() {
  for (size_t i = 0; i < outputs_.size(); i++) {
    SlotMemory& memory = outputs_[i];
    if (!memory.own || memory.own->is_writable()) continue;
    memory.own = nullptr;
    if (rooms_[i]) rooms_[i] = std::make_shared<Room>();
    places_version_++;
  }
  for (size_t i = 0; i < inputs_.size(); i++)
    if (SlotMemory& memory = inputs_[i]; memory.own && !memory.own->is_writable() && is_written(SlotKind::kInput, i)) {
      RLX_TRY(grow(memory.own, memory.capacity));
      places_version_++;
    }
  return {};
}

static Status too_small(SlotKind kind, const std::string& name, const char* needs, int64_t needed, size_t bound) {
  return Status(Code::kInvalidArgument, format("the {} '{}' {} {} in this run, {} are bound", kind_text(kind), name,
                                               needs, plural(static_cast<size_t>(needed), "byte"), bound))
      .with("value", name)
      .with("expected", format("at least {}", needed))
      .with("got", std::to_string(bound));
}

// If the run decides the size of an output, the output's memory must hold the largest size.
Status Exec::check_upper_memory(SlotKind kind, size_t slot) const {
  const SlotMemory& memory = this->memory(kind, slot);
  const Slot& it = slot_of(kind, slot);
  if (!memory.given() || memory.given()->bytes() >= static_cast<size_t>(it.bytes)) return {};
  return too_small(kind, it.name, "may need", it.bytes, memory.given()->bytes());
}

Status Exec::check_memory(const Run& run, SlotKind kind, size_t slot) const {
  const SlotMemory& memory = this->memory(kind, slot);
  const Slot& it = slot_of(kind, slot);
  bool gives_sizes = kind == SlotKind::kInput && memory.bound;
  if (!memory.given() || gives_sizes) return {};
  if (it.has_fresh_dims) return check_upper_memory(kind, slot);
  Dims dims = run.dims(planned(kind, slot));
  if (memory.bound) {
    if (std::ranges::equal(memory.bound.dims(), dims)) return {};
    std::string wanted = type_text(it.type.dtype, dims), got = type_text(memory.bound.dtype(), memory.bound.dims());
    return Status(Code::kShape, format("the output '{}' is {} in this run, not {}", it.name, wanted, got))
        .with("value", it.name)
        .with("expected", wanted)
        .with("got", got);
  }
  size_t needed = RLX_TRY(Tensor::checked_bytes(it.type.dtype, dims));
  if (memory.lent->bytes() >= needed) return {};
  return too_small(kind, it.name, "needs", static_cast<int64_t>(needed), memory.lent->bytes());
}

Status Exec::place_slot(Run& run, SlotKind kind, size_t slot) {
  SlotMemory& it = memory(kind, slot);
  DType dtype = slot_of(kind, slot).type.dtype;
  if (!it.is_made_for_run) RLX_TRY(check_memory(run, kind, slot));
  if (has_room(kind, slot)) {
    run.rooms[slot] = it.given() ? staging_rooms_[slot] : rooms_[slot];
    run.frame().set_room(slot, run.rooms[slot].get());
    if (it.given() && is_read_back(slot)) run.room_copies.push_back({slot, it.given().get(), nullptr, dtype, dtype});
    bool is_handed_out = it.own && rooms_[slot]->lies_in(it.own->buffer());  // a run in flight may let it grow
    if (it.given() || is_handed_out)
      ranges_.push_back({it.given() ? it.given().get() : it.own.get(), kind, slot, is_written(kind, slot)});
    return {};
  }
  if (!it.given()) RLX_TRY(make_memory(it.own, it.capacity));
  if (it.is_staged) RLX_TRY(make_memory(it.stage, it.capacity));
  if (it.is_staged && kind == SlotKind::kInput)
    run.staged_inputs.push_back({slot, it.given().get(), it.stage.get(), it.bound ? it.bound.dtype() : dtype, dtype});
  if (it.is_staged && kind == SlotKind::kOutput && is_read_back(slot))
    run.staged_outputs.push_back({slot, it.given().get(), it.stage.get(), dtype, dtype});
  run.frame().place(base_of(kind, slot), it.bytes()->place());
  if (!it.is_made_for_run && (kind == SlotKind::kInput || !is_aliased(kind, slot)))
    ranges_.push_back({it.bytes().get(), kind, slot, is_written(kind, slot)});
  return {};
}

// Checks that memory which the run writes overlaps no other slot, however the slots were bound, linked or handed out.
Status Exec::check_overlaps() {
  if (std::ranges::none_of(ranges_, &SlotRange::is_written)) return {};
  auto begin = [](const SlotRange& range) { return begin_of(*range.storage); };
  auto end = [](const SlotRange& range) { return end_of(*range.storage); };
  std::sort(ranges_.begin(), ranges_.end(),
            [&](const SlotRange& a, const SlotRange& b) { return begin(a) < begin(b); });
  const SlotRange *last = nullptr, *last_written = nullptr;  // those with the highest end so far
  for (const SlotRange& range : ranges_) {
    if (range.storage->bytes() == 0) continue;
    const SlotRange* before = range.is_written ? last : last_written;
    if (before && end(*before) > begin(range)) return share_memory(range.kind, range.slot, before->kind, before->slot);
    if (!last || end(range) > end(*last)) last = &range;
    if (range.is_written && (!last_written || end(range) > end(*last_written))) last_written = &range;
  }
  return {};
}

Status Exec::place_slots(Run& run) {
  run.places_at = 0;
  for (auto* list : {&run.staged_inputs, &run.staged_outputs, &run.room_copies}) list->clear();
  ranges_.clear();
  for (size_t i = 0; i < inputs_.size(); i++) RLX_TRY(place_slot(run, SlotKind::kInput, i));
  for (size_t i = 0; i < outputs_.size(); i++) RLX_TRY(place_slot(run, SlotKind::kOutput, i));
  RLX_TRY(check_overlaps());
  run.places_at = places_version_;
  return {};
}

// The links have changed as the run needs them. If it does not begin, they change back.
Result<Run*> Exec::prepare(LinkChange& links) {
  for (Link& link : links_) {
    if (!link.pending) continue;
    links.add(link);
    RLX_TRY(exchange(link));
  }
  Run* run = RLX_TRY(next_run());
  if (run->params_at != program_->params()->version()) RLX_TRY(adopt_params(*run));
  if (const std::string* first_unset = run->params->first_unset)
    return Status(Code::kState, format("the param '{}' is not set: rlx_compiled_set_param or, for a model, "
                                       "rlx_model_set_param sets it, and so do weights that hold it",
                                       *first_unset))
        .with("value", *first_unset);
  RLX_TRY(renew_frozen_memory());
  if (run->sizes_at != sizes_version_) RLX_TRY(resolve_sizes(*run));
  if (run->places_at != places_version_) RLX_TRY(place_slots(*run));
  return run;
}

// ---- outputs without an upper size ----

bool Exec::has_room(SlotKind kind, size_t slot) const {
  return kind == SlotKind::kOutput && planned(kind, slot).is_open;
}

// Makes the room the slot's own memory. If it has to hold more than the last run has written, the rest is cleared.
Status Exec::adopt_room(size_t output, const Dims& dims) {
  Room& room = *rooms_[output];
  auto bytes =
      static_cast<int64_t>(RLX_TRY(Tensor::checked_bytes(slot_of(SlotKind::kOutput, output).type.dtype, dims)));
  int64_t written = room.needed();
  RLX_TRY(room.reserve(program_->device(), std::max<int64_t>(bytes, 1), written));
  if (bytes > written) RLX_TRY(clear_bytes(room.place() + written, static_cast<size_t>(bytes - written)));
  std::shared_ptr<Storage>& own = outputs_[output].own;
  if (!own || &own->buffer() != room.share().get())
    own = std::make_shared<Storage>(room.share(), 0, static_cast<size_t>(room.capacity()));
  return {};
}

// ---- a run ----

Status Exec::run() {
  RLX_TRY(await_runs());
  LinkChange links(*this);
  Run* run = RLX_TRY(prepare(links));
  RLX_TRY(run->execute_on_bound(scope_of(*run)));
  links.commit();
  if (!links_.empty()) note_pending(*run);
  return {};
}

// Makes a submitted run hold the memory that it uses, because the slots may be bound again. What it writes cannot be
// frozen until it has ended. After a failure the caller lets go of it again.
Status Exec::hold(Run& run) const {
  run.drop_memory();
  for (SlotKind kind : {SlotKind::kInput, SlotKind::kOutput}) {
    const std::vector<SlotMemory>& list = kind == SlotKind::kInput ? inputs_ : outputs_;
    for (size_t i = 0; i < list.size(); i++) {
      const SlotMemory& it = list[i];
      const std::shared_ptr<Storage>& memory = it.given() ? it.given() : it.own;
      run.held.push_back(memory);
      if (it.is_staged) run.held.push_back(it.stage);
      if (!memory || !is_written(kind, i)) continue;
      run.written.push_back(it.given() ? it.claim : Storage::written(it.own));
      if (!run.written.back()) return cannot_write(kind, i);  // another thread has frozen it this moment
    }
  }
  return {};
}

Result<Fence> Exec::submit(std::span<const Fence> wait) {
  RLX_TRY(catch_up());
  InFlight sent{nullptr, Fence(), {}, false};
  for (Link& link : links_) {
    sent.links.emplace_back(state_of(link));
    sent.decides_links |= slot_of(SlotKind::kOutput, link.output).has_fresh_dims;
  }
  LinkChange links(*this);
  Run* run = RLX_TRY(prepare(links));
  sent.run = last_;
  std::vector<Fence> before(wait.begin(), wait.end());
  if (!in_flight_.empty()) before.push_back(in_flight_.back().fence);
  run->program = program_;
  bool is_listed = false;
  Undo give_back([&] {
    run->drop_memory();
    if (is_listed) in_flight_.pop_back();
  });
  RLX_TRY(hold(*run));
  in_flight_.push_back(std::move(sent));
  is_listed = true;
  InFlight& last = in_flight_.back();
  last.fence = program_->env()->queue().submit(last.run, scope_of(*run), before);
  run->is_in_flight = true;
  give_back.commit();
  links.commit();
  if (!last.decides_links) note_pending(*run);
  return last.fence;
}

Result<Tensor> Exec::converted_copy(size_t input, const Tensor& tensor) const {
  DType dtype = slot_of(SlotKind::kInput, input).type.dtype;
  Tensor copy = RLX_TRY(program_->env()->make_unfilled(dtype, tensor.dims()));
  RLX_TRY(convert_elements(tensor.dtype(), tensor.storage()->place(), dtype, copy.storage()->place(), tensor.count()));
  return copy;
}

// ---- a call: a run with bindings of its own ----

Status Exec::run_once(std::span<const size_t> in_slots, std::span<Tensor> in, std::span<const size_t> out_slots,
                      std::span<Tensor> results) {
  RLX_TRY(bind_arguments(in_slots, in));
  RLX_TRY(bind_results(out_slots, results));
  LinkChange links(*this);
  Run* run = RLX_TRY(prepare(links));
  links.commit();
  RLX_TRY(run->execute(scope_of(*run)));
  return take_results(out_slots, results);
}

Status Exec::bind_arguments(std::span<const size_t> slots, std::span<Tensor> in) {
  for (size_t i = 0; i < in.size(); i++) {
    if (!in[i]) return Status(Code::kInvalidArgument, format("input {} is not a tensor", i));
    RLX_TRY(check_type(SlotKind::kInput, slots[i], in[i], UsedBytes::kRead));
    if (is_aliased(SlotKind::kInput, slots[i]))  // the run writes its input, but the call must not
      in[i] = RLX_TRY(converted_copy(slots[i], in[i]));
    RLX_TRY(replace(SlotKind::kInput, slots[i], std::move(in[i]), nullptr));
  }
  return {};
}

// Binds new tensors of the dims of this run. An output whose dims only the run finds stays unbound.
Status Exec::bind_results(std::span<const size_t> slots, std::span<Tensor> results) {
  Run& run = *RLX_TRY(sized_run());
  for (size_t i = 0; i < results.size(); i++) {
    size_t slot = slots[i];
    if (is_aliased(SlotKind::kOutput, slot)) {
      results[i] = memory(SlotKind::kOutput, slot).bound;
      continue;
    }
    const Slot& it = slot_of(SlotKind::kOutput, slot);
    if (it.has_fresh_dims) continue;
    Tensor made = RLX_TRY(program_->env()->make_unfilled(it.type.dtype, run.dims(planned(SlotKind::kOutput, slot))));
    put(SlotKind::kOutput, slot, std::move(made), nullptr, nullptr);
    outputs_[slot].is_made_for_run = true;
  }
  return {};
}

// The tensors that bind_results has bound, and copies of the outputs that it has not.
Status Exec::take_results(std::span<const size_t> slots, std::span<Tensor> results) {
  for (size_t i = 0; i < results.size(); i++) {
    if (SlotMemory& it = outputs_[slots[i]]; it.is_made_for_run) results[i] = std::move(it.bound);
    if (results[i]) continue;
    Tensor made = RLX_TRY(tensor(SlotKind::kOutput, slots[i]));
    results[i] = RLX_TRY(program_->env()->make_unfilled(made.dtype(), made.dims()));
    RLX_TRY(copy_bytes(results[i].storage()->place(), made.storage()->place(), made.bytes()));
  }
  return {};
}

Result<std::string> Exec::report(std::string_view what) {
  if (what != "sizes")
    return Status(Code::kNotFound, "an exec has no report '" + std::string(what) + "', only sizes").with("value", what);
  RLX_TRY(await_runs());
  const SizeState& sizes = RLX_TRY(sized_run())->frame().sizes();
  JsonWriter json;
  json.begin_object();
  const Plan& plan = program_->plan();
  for (size_t i = 0; i < plan.symbols.size(); i++) {
    json.key(plan.symbols[i].name).begin_object();
    if (sizes.symbols()[i] >= 0) json.member("size", sizes.symbols()[i]);
    json.member("upper", plan.symbols[i].upper).end_object();
  }
  json.end_object();
  return std::move(json).take();
}

}  // namespace rlx
