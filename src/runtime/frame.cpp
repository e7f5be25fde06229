// SPDX-License-Identifier: Apache-2.0
// The places of a plan's bases and the rooms that grow during a run; the walk over its segments; and how the frame
// of a body takes over what has changed in the frame around it.
#include "runtime/frame.h"

#include <algorithm>

#include "runtime/control_step.h"
#include "runtime/host_side.h"

namespace rlx {

Result<std::unique_ptr<const CompiledPlan>> CompiledPlan::make(Device& device, Device* fallback,
                                                               const std::shared_ptr<const Plan>& plan) {
  auto made = std::make_unique<CompiledPlan>();
  made->device = &device;
  made->fallback = fallback;
  made->plan = plan;
  for (const Control& control : plan->controls) {
    made->bodies.emplace_back();
    for (const PlanBody& body : control.bodies)
      made->bodies.back().push_back(RLX_TRY(make(device, fallback, body.plan)));
  }
  for (size_t i = 0; i < plan->segments.size(); i++) {
    bool is_control = plan->segments[i].control != Step::kNoControl;
    Device& runs_it = plan->segments[i].on_host ? *fallback : device;
    made->executables.push_back(is_control ? nullptr : RLX_TRY(runs_it.compile(plan, i)));
  }
  return std::unique_ptr<const CompiledPlan>(std::move(made));
}

Frame::Frame(const CompiledPlan& compiled)
    : compiled_(compiled),
      plan_(*compiled.plan),
      bases_(plan_.base_count()),
      changed_(plan_.base_count(), 0),
      sizes_(plan_),
      room_at_(plan_.base_count(), kNoRoom),
      wanted_(plan_.symbols.size(), kUnknownSize),
      failures_(plan_.lowered->residents.size(), nullptr) {
  for (uint32_t i = 0; i < plan_.outputs.size(); i++) outputs_by_step_.add(plan_.known_at(plan_.outputs[i].dims), i);
  for (uint32_t i = 0; i < plan_.rooms.size(); i++) {
    const PlanRoom& room = plan_.rooms[i];
    bool is_own = room.base >= plan_.room_base(0);
    own_rooms_.push_back(is_own ? std::make_unique<Room>() : nullptr);
    rooms_.push_back(own_rooms_.back().get());
    room_at_[room.base] = i;
    rooms_by_step_.add(room.known, i);
  }
  outputs_by_step_.sort();
  rooms_by_step_.sort();
}

Frame::~Frame() = default;

Result<std::unique_ptr<Frame>> Frame::make(const CompiledPlan& compiled) {
  std::unique_ptr<Frame> frame(new Frame(compiled));
  for (size_t i = 0; i < frame->rooms_.size(); i++)  // every base needs a place
    if (Room* room = frame->rooms_[i]) {
      RLX_TRY(room->reserve(*compiled.device, kMemoryAlignment));
      frame->place(compiled.plan->rooms[i].base, room->place());
    }
  for (const auto& executable : compiled.executables)
    frame->states_.push_back(executable ? RLX_TRY(executable->make_state()) : nullptr);
  if (std::ranges::any_of(compiled.plan->segments, [](const Segment& it) { return it.on_host; }))
    frame->host_side_ = std::make_unique<HostSide>(*compiled.device, *compiled.fallback, *compiled.plan);
  for (size_t i = 0; i < compiled.bodies.size(); i++) {
    std::vector<std::unique_ptr<Frame>> bodies;
    for (const auto& body : compiled.bodies[i]) bodies.push_back(RLX_TRY(make(*body)));
    frame->controls_.push_back(std::make_unique<ControlStep>(*frame, compiled.plan->controls[i], std::move(bodies)));
  }
  return frame;
}

// In memory that the host cannot address, a place is known by its buffer only, and a new buffer may have the address of
// one that is gone.
void Frame::place(uint32_t base, const Place& place) {
  if (place.host && bases_[base] == place)
    bases_[base] = place;  // equal bytes, though perhaps of another buffer
  else
    renew(base, place);
}

void Frame::renew(uint32_t base, const Place& place) {
  bases_[base] = place;
  changed_[base] = ++bases_version_;
  if (!plan_.is_slot(base)) non_slot_version_ = bases_version_;
}

void Frame::set_failures(std::span<const Status> failures) {
  note_failures(!failures.empty(), [&](size_t i) { return failures[i].ok() ? nullptr : &failures[i]; });
}

void Frame::note_failures(bool are_any, FunctionRef<const Status*(size_t resident)> of) {
  if (!are_any && !has_failures_) return;
  has_failures_ = are_any;
  failure_ = nullptr;
  non_slot_version_ = ++bases_version_;
  for (size_t i = 0; i < failures_.size(); i++) {
    failures_[i] = are_any ? of(i) : nullptr;
    if (!failure_ && i < plan_.lowered->own_residents) failure_ = failures_[i];
  }
}

Place Frame::address(const Access& access) const {
  return bases_[access.base] + (access.offset + sizes_.values()[access.shift] * element_bytes(access.dtype));
}

// ---- rooms ----

static Result<int64_t> bytes_now(DType dtype, std::span<const SizeId> dims, std::span<const int64_t> sizes) {
  return static_cast<int64_t>(RLX_TRY(Tensor::checked_bytes(dtype, dims_at(dims, sizes))));
}

Room* Frame::room_of(uint32_t base) {
  return room_at_[base] == kNoRoom ? nullptr : rooms_[room_at_[base]];
}

void Frame::set_room(size_t output, Room* room) {
  uint32_t index = room_at_[plan_.output_base(output)];
  if (index != kNoRoom) rooms_[index] = room;
}

Status Frame::trim_rooms() {
  for (size_t i = 0; i < rooms_.size(); i++) {
    if (!rooms_[i]) continue;
    RLX_TRY(rooms_[i]->trim(device()));
    place(plan_.rooms[i].base, rooms_[i]->place());
  }
  return {};
}

Status Frame::make_rooms(uint32_t known) {
  for (auto [step, i] : rooms_by_step_.at(known)) {
    const PlanRoom& room = plan_.rooms[i];
    if (!rooms_[i]) continue;
    int64_t bytes = RLX_TRY(bytes_now(room.dtype, room.dims, sizes_.values()));
    RLX_TRY(rooms_[i]->reserve(device(), bytes));
    place(room.base, rooms_[i]->place());
  }
  return {};
}

Status Frame::on_sizes_known(uint32_t step) {
  RLX_TRY(check_outputs(step));
  return make_rooms(step);
}

// ---- a run ----

Status Frame::run_segment(size_t segment, const RunArgs& args, const RunScope& scope) {
  uint32_t control = plan_.segments[segment].control;
  if (control != Step::kNoControl) return controls_[control]->run(scope);
  const Executable& executable = *compiled_.executables[segment];
  if (plan_.segments[segment].on_host) return host_side_->run(segment, executable, args, *states_[segment]);
  return executable.run(args, *states_[segment]);
}

Status Frame::run(const RunScope& scope) {
  auto set = [this](uint32_t symbol, int64_t size) -> Status {
    RLX_TRY(sizes_.set_fresh(plan_, symbol, size));
    return on_sizes_known(plan_.symbols[symbol].made_by);
  };
  SetSize set_size(set);
  sizes_.begin_run();
  if (!rooms_.empty()) {
    RLX_TRY(trim_rooms());
    RLX_TRY(make_rooms(PlanSymbol::kGiven));
  }
  RunArgs args{
      {bases_, changed_, &bases_version_}, sizes_.table(), sizes_.symbols(), &set_size, scope.cancel, scope.threads};
  bool has_sized = sized_for_sizes_ == sizes_.version() && sized_for_bases_ == non_slot_version_;
  if (!has_sized) RLX_TRY(compute_sized(args, scope));
  for (size_t i = 0; i < plan_.segments.size(); i++)
    if (!plan_.segments[i].is_sized) RLX_TRY(run_segment(i, args, scope));
  sized_for_sizes_ = sizes_.version();  // sizes found during the run do not affect sized values
  return {};
}

Status Frame::compute_sized(const RunArgs& args, const RunScope& scope) {
  uint64_t sizes_now = sizes_.version(), non_slot_now = non_slot_version_;
  sized_for_bases_ = UINT64_MAX;  // until all are computed, in this run or a later one
  for (size_t i = 0; i < plan_.segments.size(); i++)
    if (plan_.segments[i].is_sized) RLX_TRY(run_segment(i, args, scope));
  sized_for_sizes_ = sizes_now;
  sized_for_bases_ = non_slot_now;
  return {};
}

// ---- frames of bodies ----

Status Frame::enter(const Frame& around, const Step& step, const PlanBody& body) {
  if (non_slot_seen_ != around.non_slot_version_) {
    place(kArenaBase, around.bases_[kArenaBase] + step.scratch_offset);
    place(kSizedBase, around.bases_[kSizedBase] + body.sized_offset);
    for (size_t i = 0; i < body.residents.size(); i++) {
      uint32_t there = around.plan_.resident_base(body.residents[i]);
      bool is_new = around.changed_[there] > non_slot_seen_;
      if (is_new) renew(plan_.resident_base(i), around.bases_[there]);
    }
    note_failures(around.has_failures_, [&](size_t i) { return around.failures_[body.residents[i]]; });
    non_slot_seen_ = around.non_slot_version_;
  }
  if (sizes_seen_ == around.sizes_.version()) return {};
  for (size_t i = 0; i < body.symbols.size(); i++)
    if (body.symbols[i] != Plan::kNoSymbol) wanted_[i] = around.sizes_.symbols()[body.symbols[i]];
  sizes_seen_ = around.sizes_.version();
  is_unsettled_ = true;
  return {};
}

Status Frame::set_carried_sizes(const PlanBody& body, std::span<const Dims> dims) {
  for (const AxisSize& size : body.carried) {
    int64_t now = dims[size.slot][size.axis];
    is_unsettled_ |= wanted_[size.symbol] != now;
    wanted_[size.symbol] = now;
  }
  for (const AxisSize& size : body.carried)
    if (int64_t now = dims[size.slot][size.axis]; wanted_[size.symbol] != now)
      return Status(Code::kShape,
                    format("the size '{}' is {} and {}", plan_.symbols[size.symbol].name, wanted_[size.symbol], now))
          .with("value", plan_.symbols[size.symbol].name)
          .with("expected", std::to_string(wanted_[size.symbol]))
          .with("got", std::to_string(now));
  return {};
}

Status Frame::settle() {
  if (!is_unsettled_) return {};
  RLX_TRY(sizes_.assign(plan_, wanted_));
  RLX_TRY(check_outputs(PlanSymbol::kGiven));
  is_unsettled_ = false;
  return {};
}

Dims Frame::output_dims(size_t output) const {
  return dims_at(plan_.outputs[output].dims, sizes_.values());
}

Status Frame::check_outputs(uint32_t known) const {
  for (auto [step, i] : outputs_by_step_.at(known)) {
    if (i >= limits_.size() || !limits_[i]) continue;
    if (!plan_.outputs[i].is_open && plan_.outputs[i].bytes <= *limits_[i]) continue;
    DType dtype = plan_.graph().type(plan_.graph().outputs()[i].value).dtype;
    int64_t bytes = RLX_TRY(bytes_now(dtype, plan_.outputs[i].dims, sizes_.values()));
    const std::string& name = plan_.graph().outputs()[i].name;
    if (bytes > *limits_[i])
      return Status(Code::kRange,
                    format("the output '{}' is {}: it needs {}, there are {}", name, type_text(dtype, output_dims(i)),
                           plural(static_cast<size_t>(bytes), "byte"), *limits_[i]))
          .with("value", name)
          .with("expected", format("at least {}", bytes))
          .with("got", std::to_string(*limits_[i]));
  }
  return {};
}

}  // namespace rlx
