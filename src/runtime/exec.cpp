// SPDX-License-Identifier: Apache-2.0
#include "runtime/exec.h"

#include <algorithm>
#include <cstring>

#include "base/json.h"
#include "runtime/convert.h"

namespace rlx {

Result<std::unique_ptr<Exec>> Exec::create(std::shared_ptr<Program> program, const NamedAttrs& options) {
  std::unique_ptr<Exec> exec(new Exec);
  const Plan& plan = program->plan();
  const std::shared_ptr<Host>& host = program->env()->host();
  exec->inputs_.resize(plan.inputs.size());
  exec->outputs_.resize(plan.outputs.size());
  for (size_t i = 0; i < plan.inputs.size(); i++) exec->inputs_[i].capacity = static_cast<size_t>(plan.inputs[i].bytes);
  for (size_t i = 0; i < plan.outputs.size(); i++)
    exec->outputs_[i].capacity = static_cast<size_t>(plan.outputs[i].bytes);
  exec->rooms_.resize(plan.outputs.size());
  exec->wanted_.assign(plan.outputs.size(), true);
  exec->arena_ = RLX_TRY(HostMemory::allocate(host, static_cast<size_t>(plan.arena_bytes), MemoryKind::kArena));
  exec->sized_ = RLX_TRY(HostMemory::allocate(host, static_cast<size_t>(plan.sized_bytes), MemoryKind::kArena));
  exec->given_.reserve(plan.inputs.size());
  exec->places_.reserve(plan.inputs.size() + plan.outputs.size());
  exec->frame_ = RLX_TRY(Frame::make(program->compiled(), host));
  exec->program_ = std::move(program);
  exec->frame_->place(kArenaBase, exec->arena_.data());
  exec->frame_->place(kSizedBase, exec->sized_.data());
  RLX_TRY(exec->set(options));
  return exec;
}

// ---- what is asked of slots ----

static const char* kind_text(SlotKind kind) {
  return kind == SlotKind::kInput ? "input" : "output";
}

Status Exec::check_slot(SlotKind kind, size_t slot) const {
  if (kind != SlotKind::kInput && kind != SlotKind::kOutput)
    return Status(Code::kInvalidArgument, "only inputs and outputs are bound");
  size_t count = program_->slots(kind).size();
  if (slot < count) return {};
  return Status(Code::kRange, format("there is no {} slot {}; the program has {}", kind_text(kind), slot, count));
}

const PlanSlot& Exec::planned(SlotKind kind, size_t slot) const {
  const Plan& plan = program_->plan();
  return kind == SlotKind::kInput ? plan.inputs[slot] : plan.outputs[slot];
}

uint32_t Exec::base_of(SlotKind kind, size_t slot) const {
  const Plan& plan = program_->plan();
  return kind == SlotKind::kInput ? plan.input_base(slot) : plan.output_base(slot);
}

Dims Exec::dims_now(SlotKind kind, size_t slot) const {
  Dims dims;
  for (SizeId id : planned(kind, slot).dims) dims.push_back(sizes().values()[id]);
  return dims;
}

Status Exec::check_type(SlotKind kind, size_t slot, const Tensor& tensor) const {
  const Slot& it = slot_of(kind, slot);
  DType wanted = it.type.dtype;
  bool converts = !is_written(kind, slot) && program_->source().options.io_convert;
  if (tensor.dtype() != wanted && !(converts && may_convert(tensor.dtype(), wanted)))
    return Status(Code::kDtype, format("the {} '{}' is {}, not {}", kind_text(kind), it.name, wanted, tensor.dtype()))
        .with("value", it.name)
        .with("expected", name(wanted))
        .with("got", name(tensor.dtype()));
  if (tensor.rank() != it.type.rank())
    return Status(Code::kShape, format("the {} '{}' is {}, not {}", kind_text(kind), it.name, it.type,
                                       type_text(tensor.dtype(), tensor.dims())))
        .with("value", it.name);
  return {};
}

// ---- binding ----

bool Exec::is_written(SlotKind kind, size_t slot) const {
  return kind == SlotKind::kOutput || inputs_[slot].is_linked;
}

// What runs write shares no byte with anything else that is bound: kernels read inputs while they write.
Status Exec::check_overlap(SlotKind kind, size_t slot, const Storage& storage) const {
  for (SlotKind other : {SlotKind::kInput, SlotKind::kOutput}) {
    const std::vector<Port>& list = other == SlotKind::kInput ? inputs_ : outputs_;
    for (size_t i = 0; i < list.size(); i++) {
      if (!is_written(kind, slot) && !is_written(other, i)) continue;
      if ((kind == other && i == slot) || !list[i].given() || !storage.overlaps(*list[i].given())) continue;
      return Status(Code::kInvalidArgument, format("the {} '{}' and the {} '{}' share memory", kind_text(kind),
                                                   slot_of(kind, slot).name, kind_text(other), slot_of(other, i).name))
          .with("value", slot_of(kind, slot).name);
    }
  }
  return {};
}

// What is bound to a slot becomes what `next` says, or on failure stays.
Status Exec::replace(SlotKind kind, size_t slot, Port next) {
  const Slot& it = slot_of(kind, slot);
  next.use = next.given();
  next.linked.reset();
  next.is_staged = false;
  if (next.given()) {
    if (is_written(kind, slot)) next.use = Storage::written(next.given());
    if (!next.use)
      return Status(Code::kState,
                    format("the {} '{}' is written by runs: its memory is read-only, or frozen as a param "
                           "or constant",
                           kind_text(kind), it.name))
          .with("value", it.name);
    DType dtype = it.type.dtype;
    size_t unit = is_block(dtype) ? 1 : std::min<size_t>(8, static_cast<size_t>(element_bytes(dtype)));
    next.is_staged =
        (next.bound && next.bound.dtype() != dtype) || reinterpret_cast<uintptr_t>(next.given()->host()) % unit != 0;
  }
  Port& port = ports(kind)[slot];
  bool same_dims = kind == SlotKind::kOutput ||
                   (!port.linked && port.bound && next.bound && Dims(port.bound.dims()) == Dims(next.bound.dims()));
  sizes_dirty_ |= !same_dims && (port.bound || next.bound || port.linked);
  places_dirty_ = true;
  port = std::move(next);
  return {};
}

// A linked input that is bound anew starts anew. A linked output that is bound anew hands over first what it holds.
Status Exec::settle_link(SlotKind kind, size_t slot) {
  for (Link& link : links_) {
    if (kind == SlotKind::kInput && link.input == slot) link.made.reset();
    if (kind == SlotKind::kOutput && link.output == slot) RLX_TRY(exchange(link));
  }
  return {};
}

Status Exec::bind(SlotKind kind, size_t slot, Tensor tensor) {
  RLX_TRY(check_slot(kind, slot));
  if (tensor) RLX_TRY(check_type(kind, slot, tensor));
  RLX_TRY(settle_link(kind, slot));
  if (tensor) RLX_TRY(check_overlap(kind, slot, *tensor.storage()));
  return bind_once(kind, slot, std::move(tensor));
}

// Of a tensor that fits. Without the search for what overlaps: a run checks all places together, in less time than one
// by one.
Status Exec::bind_once(SlotKind kind, size_t slot, Tensor tensor) {
  Port next = ports(kind)[slot];
  next.bound = std::move(tensor);
  next.lent = nullptr;
  return replace(kind, slot, std::move(next));
}

Status Exec::bind_ptr(SlotKind kind, size_t slot, void* data, size_t bytes) {
  RLX_TRY(check_slot(kind, slot));
  const Slot& it = slot_of(kind, slot);
  bool exact = all_literal(it.type.dims);
  if (data && exact && bytes != static_cast<size_t>(it.bytes))
    return Status(Code::kInvalidArgument,
                  format("the {} '{}' has {} bytes, not {}", kind_text(kind), it.name, it.bytes, bytes))
        .with("value", it.name)
        .with("expected", std::to_string(it.bytes))
        .with("got", std::to_string(bytes));
  RLX_TRY(settle_link(kind, slot));
  Port next = ports(kind)[slot];
  next.bound = {};
  next.lent = nullptr;
  if (data) {
    std::shared_ptr<std::byte> callers(std::shared_ptr<void>(), static_cast<std::byte*>(data));
    next.lent = std::make_shared<Storage>(host_buffer(std::move(callers), bytes), 0, bytes);
  }
  if (next.lent) RLX_TRY(check_overlap(kind, slot, *next.lent));
  return replace(kind, slot, std::move(next));
}

void Exec::forget_bindings() {
  for (auto* list : {&inputs_, &outputs_})
    for (Port& port : *list) {
      port.bound = {};
      port.lent = port.use = nullptr;
      port.is_staged = false;
    }
  sizes_dirty_ = places_dirty_ = true;
}

Result<Tensor> Exec::tensor(SlotKind kind, size_t slot) {
  RLX_TRY(check_slot(kind, slot));
  Port& port = ports(kind)[slot];
  if (port.bound) return port.bound;
  if (sizes_dirty_) RLX_TRY(resolve_sizes());
  if (!port.lent) RLX_TRY(has_room(kind, slot) ? show_room(slot) : make_memory(port.own, port.capacity));
  return Tensor::over(slot_of(kind, slot).type.dtype, dims_now(kind, slot), port.lent ? port.lent : port.own);
}

Status Exec::set_dim(std::string_view symbol, int64_t size) {
  sizes_dirty_ = true;
  return sizes().set_dim(program_->plan(), symbol, size);
}

Status Exec::link(size_t output, size_t input) {
  RLX_TRY(check_slot(SlotKind::kOutput, output));
  RLX_TRY(check_slot(SlotKind::kInput, input));
  const Slot &from = slot_of(SlotKind::kOutput, output), &to = slot_of(SlotKind::kInput, input);
  if (from.type.dtype != to.type.dtype || from.type.rank() != to.type.rank())
    return Status(from.type.dtype == to.type.dtype ? Code::kShape : Code::kDtype,
                  "the output '" + from.name + "' is " + text_of(from.type) + ", the input '" + to.name + "' " +
                      text_of(to.type) + ": they cannot be linked");
  for (const Link& link : links_)
    if (link.output == output || link.input == input)
      return Status(Code::kExists, "the output '" + from.name + "' or the input '" + to.name + "' is linked already");
  Port &made = outputs_[output], &read = inputs_[input];
  made.is_linked = read.is_linked = true;
  Status status = read.bound ? check_type(SlotKind::kInput, input, read.bound) : Status();
  if (status.ok() && read.given()) status = check_overlap(SlotKind::kInput, input, *read.given());
  if (status.ok()) status = replace(SlotKind::kInput, input, read);  // from now on runs write it
  size_t capacity = std::max(made.capacity, read.capacity);          // so that the two can change places
  for (Port* port : {&made, &read})
    if (status.ok() && port->own) status = grow(port->own, capacity);
  if (!status.ok()) {
    made.is_linked = read.is_linked = false;
    read.use = read.given();
    return status;
  }
  links_.push_back({output, input});
  made.capacity = read.capacity = capacity;
  made.stage = read.stage = nullptr;
  places_dirty_ = true;
  return {};
}

Status Exec::want(std::span<const size_t> outputs) {
  for (size_t slot : outputs) RLX_TRY(check_slot(SlotKind::kOutput, slot));
  std::fill(wanted_.begin(), wanted_.end(), outputs.empty());
  for (size_t slot : outputs) wanted_[slot] = true;
  return {};
}

Status Exec::set(const NamedAttrs& options) {
  if (options.empty()) return {};
  return Status(Code::kOption, "unknown run option '" + options[0].first + "'").with("value", options[0].first);
}

// ---- before a run ----

Status Exec::adopt_params() {
  params_version_ = program_->params()->version();
  std::shared_ptr<const ParamSet> next = program_->params()->current();
  const Plan& plan = program_->plan();
  for (size_t i = 0; i < next->residents.size(); i++) frame_->place(plan.resident_base(i), next->residents[i].data());
  params_ = std::move(next);
  return {};
}

// The output that a run has made becomes the input, whatever is asked or bound meanwhile.
Status Exec::exchange(Link& link) {
  if (!link.made) return {};
  Port &from = outputs_[link.output], &to = inputs_[link.input];
  if (!from.given() != !to.given())
    return Status(Code::kState, "a linked output and input are both bound or both the exec's own, not one of each")
        .with("value", slot_of(SlotKind::kInput, link.input).name);
  if (has_room(SlotKind::kOutput, link.output) && !from.given()) {
    RLX_TRY(show_room(link.output));
    rooms_[link.output] = {};  // the input has it now
  }
  std::swap(from.bound, to.bound);
  std::swap(from.lent, to.lent);
  std::swap(from.use, to.use);
  std::swap(from.own, to.own);
  std::swap(from.stage, to.stage);
  std::swap(from.is_staged, to.is_staged);
  sizes_dirty_ |= !to.linked || !(*to.linked == *link.made);
  to.linked = *link.made;
  link.made.reset();
  places_dirty_ = true;
  return {};
}

Status Exec::exchange_links() {
  for (Link& link : links_) RLX_TRY(exchange(link));
  return {};
}

Status Exec::resolve_sizes() {
  given_.clear();
  for (size_t i = 0; i < inputs_.size(); i++) {
    const Port& port = inputs_[i];
    const Slot& slot = slot_of(SlotKind::kInput, i);
    if (port.linked)
      given_.push_back({&slot.type, *port.linked, slot.name});
    else if (port.bound)
      given_.push_back({&slot.type, port.bound.dims(), slot.name});
  }
  RLX_TRY(sizes().resolve(program_->plan(), given_));
  sizes_dirty_ = false;
  places_dirty_ = true;  // bytes are to be checked against the new sizes
  return {};
}

Status Exec::make_memory(std::shared_ptr<Storage>& storage, size_t capacity) {
  if (storage && storage->bytes() >= capacity) return {};
  if (storage) return grow(storage, capacity);  // it came by a link
  auto bytes = static_cast<int64_t>(capacity);
  storage = RLX_TRY(program_->env()->make_tensor(DType::kU8, {&bytes, 1})).storage();
  return {};
}

// The same bytes in memory of a larger capacity.
Status Exec::grow(std::shared_ptr<Storage>& storage, size_t capacity) {
  std::shared_ptr<Storage> larger;
  RLX_TRY(make_memory(larger, capacity));
  if (storage->bytes()) std::memcpy(larger->host(), storage->host(), std::min(storage->bytes(), capacity));
  storage = std::move(larger);
  return {};
}

// Memory that a run is to write and that was handed out and frozen belongs to whoever froze it.
Status Exec::renew_frozen_memory() {
  for (size_t i = 0; i < outputs_.size(); i++) {
    Port& port = outputs_[i];
    if (!port.own || port.own->is_writable()) continue;
    port.own = nullptr, places_dirty_ = true;
    rooms_[i] = {};
  }
  for (const Link& link : links_)
    if (Port& port = inputs_[link.input]; port.own && !port.own->is_writable()) {
      RLX_TRY(grow(port.own, port.capacity));
      places_dirty_ = true;
    }
  return {};
}

bool Exec::has_fresh_dims(const Slot& slot) const {
  const Plan& plan = program_->plan();
  return std::any_of(slot.type.dims.begin(), slot.type.dims.end(),
                     [&](const Dim& dim) { return plan.known_at(dim) != PlanSymbol::kGiven; });
}

// Where the run decides the size of an output its memory must hold the largest.
Status Exec::check_upper_memory(SlotKind kind, size_t slot) const {
  const Port& port = kind == SlotKind::kInput ? inputs_[slot] : outputs_[slot];
  const Slot& it = slot_of(kind, slot);
  if (!port.given() || port.given()->bytes() >= static_cast<size_t>(it.bytes)) return {};
  return Status(Code::kInvalidArgument, format("the {} '{}' may need {} bytes, {} are bound", kind_text(kind), it.name,
                                               it.bytes, port.given()->bytes()))
      .with("value", it.name);
}

Status Exec::check_memory(SlotKind kind, size_t slot) const {
  const Port& port = kind == SlotKind::kInput ? inputs_[slot] : outputs_[slot];
  const Slot& it = slot_of(kind, slot);
  Dims dims = dims_now(kind, slot);
  if (has_fresh_dims(slot_of(kind, slot))) return check_upper_memory(kind, slot);
  if (port.bound && kind == SlotKind::kOutput && !(Dims(port.bound.dims()) == dims))
    return Status(Code::kShape,
                  format("the output '{}' is {} in this run, not {}", it.name, type_text(it.type.dtype, dims),
                         type_text(port.bound.dtype(), port.bound.dims())))
        .with("value", it.name);
  DType dtype = port.bound ? port.bound.dtype() : it.type.dtype;  // staged memory may be of another
  auto needed = byte_size(dtype, element_count(std::span<const int64_t>(dims)).value_or(0));
  if (port.given() && static_cast<int64_t>(port.given()->bytes()) < needed.value_or(0))
    return Status(Code::kInvalidArgument, format("the {} '{}' needs {} bytes in this run, {} are bound",
                                                 kind_text(kind), it.name, needed.value_or(0), port.given()->bytes()))
        .with("value", it.name);
  return {};
}

Status Exec::place_slot(SlotKind kind, size_t slot) {
  Port& port = ports(kind)[slot];
  RLX_TRY(check_memory(kind, slot));
  if (has_room(kind, slot)) {
    has_rooms_ = true;
    frame_->set_room(slot, &rooms_[slot]);
    return {};
  }
  if (!port.given()) RLX_TRY(make_memory(port.own, port.capacity));
  if (port.is_staged) RLX_TRY(make_memory(port.stage, port.capacity));
  has_staging_ |= port.is_staged;
  places_.push_back(
      {port.bytes()->host(), port.bytes()->host() + port.bytes()->bytes(), kind, slot, is_written(kind, slot)});
  frame_->place(base_of(kind, slot), port.bytes()->host());
  return {};
}

// Whatever was bound, made, linked or handed out in whichever order: what a run writes lies apart from all else.
Status Exec::check_places() {
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  const Place *last = nullptr, *last_written = nullptr;  // that end furthest so far
  for (const Place& place : places_) {
    if (place.begin == place.end) continue;
    const Place* before = place.is_written ? last : last_written;
    if (before && before->end > place.begin)
      return Status(Code::kInvalidArgument, format("the {} '{}' and the {} '{}' share memory", kind_text(place.kind),
                                                   slot_of(place.kind, place.slot).name, kind_text(before->kind),
                                                   slot_of(before->kind, before->slot).name))
          .with("value", slot_of(place.kind, place.slot).name);
    if (!last || place.end > last->end) last = &place;
    if (place.is_written && (!last_written || place.end > last_written->end)) last_written = &place;
  }
  return {};
}

Status Exec::place_slots() {
  has_staging_ = false;
  places_.clear();
  for (size_t i = 0; i < inputs_.size(); i++) RLX_TRY(place_slot(SlotKind::kInput, i));
  for (size_t i = 0; i < outputs_.size(); i++) RLX_TRY(place_slot(SlotKind::kOutput, i));
  RLX_TRY(check_places());
  places_dirty_ = false;
  return {};
}

Status Exec::prepare() {
  if (params_version_ != program_->params()->version()) RLX_TRY(adopt_params());
  if (params_->hole)
    return Status(Code::kState, "the param '" + *params_->hole + "' is not set").with("value", *params_->hole);
  if (!links_.empty()) RLX_TRY(exchange_links());
  RLX_TRY(renew_frozen_memory());
  if (sizes_dirty_) RLX_TRY(resolve_sizes());
  if (places_dirty_) RLX_TRY(place_slots());
  return {};
}

// ---- outputs that may come to any size ----

bool Exec::has_room(SlotKind kind, size_t slot) const {
  return kind == SlotKind::kOutput && planned(kind, slot).is_open;
}

int64_t Exec::bytes_now(size_t output) const {
  Dims dims = dims_now(SlotKind::kOutput, output);
  int64_t count = element_count(std::span<const int64_t>(dims)).value_or(0);
  return byte_size(slot_of(SlotKind::kOutput, output).type.dtype, count).value_or(0);
}

// The room as the slot's own memory.
Status Exec::show_room(size_t output) {
  GrowingMemory& room = rooms_[output];
  RLX_TRY(room.reserve(program_->env()->host(), std::max<int64_t>(bytes_now(output), 1)));
  std::shared_ptr<Storage>& own = outputs_[output].own;
  auto capacity = static_cast<size_t>(room.capacity());
  if (!own || own->host() != room.data())
    own = std::make_shared<Storage>(host_buffer(room.share(), capacity), 0, capacity);
  return {};
}

// They are not made in the caller's memory, as it may turn out to be too small.
Status Exec::empty_rooms() {
  for (size_t i = 0; i < outputs_.size(); i++) {
    const Port& port = outputs_[i];
    if (!has_room(SlotKind::kOutput, i) || !port.given() || !is_read_back(i)) continue;
    auto bytes = static_cast<size_t>(bytes_now(i));
    const std::string& name = slot_of(SlotKind::kOutput, i).name;
    if (bytes > port.given()->bytes())
      return Status(Code::kRange,
                    format("the output '{}' has come to {} bytes, {} are bound", name, bytes, port.given()->bytes()))
          .with("value", name);
    if (bytes) std::memcpy(port.given()->host(), rooms_[i].data(), bytes);
  }
  return {};
}

// ---- a run ----

Status Exec::stage_inputs() {
  for (size_t i = 0; i < inputs_.size(); i++) {
    const Port& port = inputs_[i];
    if (!port.is_staged) continue;
    DType to = slot_of(SlotKind::kInput, i).type.dtype;
    DType from = port.bound ? port.bound.dtype() : to;
    int64_t count = element_count(std::span<const int64_t>(dims_now(SlotKind::kInput, i))).value_or(0);
    convert_elements(from, port.given()->host(), to, port.stage->host(), count);
  }
  return {};
}

bool Exec::is_read_back(size_t output) const {
  return wanted_[output] || outputs_[output].is_linked;
}

Status Exec::stage_outputs() {
  for (size_t i = 0; i < outputs_.size(); i++) {
    const Port& port = outputs_[i];
    if (!port.is_staged || !is_read_back(i) || has_room(SlotKind::kOutput, i)) continue;
    DType dtype = slot_of(SlotKind::kOutput, i).type.dtype;
    int64_t count = element_count(std::span<const int64_t>(dims_now(SlotKind::kOutput, i))).value_or(0);
    convert_elements(dtype, port.stage->host(), dtype, port.given()->host(), count);
  }
  return {};
}

Status Exec::run() {
  cancel_.store(false, std::memory_order_relaxed);
  RLX_TRY(prepare());
  if (has_staging_) RLX_TRY(stage_inputs());
  RLX_TRY(frame_->run({&cancel_, program_->source().options.threads}));
  if (has_staging_) RLX_TRY(stage_outputs());
  if (has_rooms_) RLX_TRY(empty_rooms());
  for (Link& link : links_) link.made = dims_now(SlotKind::kOutput, link.output);
  return {};
}

Result<Fence> Exec::submit(std::span<const Fence> wait) {
  RLX_TRY(Fence::wait(wait, true, Fence::kForever, nullptr));
  for (const Fence& fence : wait)
    if (Status before = fence.result(); !before.ok())
      return Fence::finished(
          Status(Code::kAborted, "work that this run waited for has failed: " + std::string(before.message())));
  return Fence::finished(run());
}

Result<std::vector<Tensor>> Exec::run_once(std::span<const size_t> in_slots, std::span<const Tensor> in,
                                           std::span<const size_t> out_slots) {
  for (size_t i = 0; i < in.size(); i++) {
    if (!in[i]) return Status(Code::kInvalidArgument, format("input {} is no tensor", i));
    RLX_TRY(check_type(SlotKind::kInput, in_slots[i], in[i]));
    RLX_TRY(bind_once(SlotKind::kInput, in_slots[i], in[i]));
  }
  RLX_TRY(resolve_sizes());
  std::vector<Tensor> results;
  for (size_t slot : out_slots) {
    if (has_fresh_dims(slot_of(SlotKind::kOutput, slot))) {
      results.push_back(Tensor());  // the run decides its size
      continue;
    }
    results.push_back(RLX_TRY(program_->env()->make_unfilled(slot_of(SlotKind::kOutput, slot).type.dtype,
                                                             dims_now(SlotKind::kOutput, slot))));
    RLX_TRY(bind_once(SlotKind::kOutput, slot, results.back()));
  }
  RLX_TRY(run());
  for (size_t i = 0; i < results.size(); i++) {
    if (results[i]) continue;
    Tensor made = RLX_TRY(tensor(SlotKind::kOutput, out_slots[i]));
    results[i] = RLX_TRY(program_->env()->make_unfilled(made.dtype(), made.dims()));
    if (made.bytes()) std::memcpy(results[i].data(), made.data(), made.bytes());
  }
  return results;
}

Result<std::string> Exec::report(std::string_view what) const {
  if (what != "sizes") return Status(Code::kNotFound, "an exec has no report '" + std::string(what) + "'");
  JsonWriter json;
  json.begin_object();
  const Plan& plan = program_->plan();
  for (size_t i = 0; i < plan.symbols.size(); i++) {
    json.key(plan.symbols[i].name).begin_object();
    if (sizes().symbols()[i] >= 0) json.member("size", sizes().symbols()[i]);
    json.member("upper", plan.symbols[i].upper).end_object();
  }
  json.end_object();
  return std::move(json).take();
}

}  // namespace rlx
