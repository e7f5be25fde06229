// SPDX-License-Identifier: Apache-2.0
#include "runtime/frame.h"

#include <utility>

#include "runtime/loop.h"

namespace rlx {

Result<std::unique_ptr<const CompiledPlan>> CompiledPlan::make(Device& device, std::shared_ptr<const Plan> plan) {
  auto made = std::make_unique<CompiledPlan>();
  for (const Control& control : plan->controls) {
    made->bodies.emplace_back();
    for (const PlanBody& body : control.bodies) made->bodies.back().push_back(RLX_TRY(make(device, body.plan)));
  }
  made->plan = plan;
  made->executable = RLX_TRY(device.compile(std::move(plan)));
  return std::unique_ptr<const CompiledPlan>(std::move(made));
}

Frame::Frame(const CompiledPlan& compiled, std::shared_ptr<Host> host)
    : compiled_(compiled),
      plan_(*compiled.plan),
      host_(std::move(host)),
      bases_(plan_.base_count()),
      is_changed_(plan_.base_count(), 0),
      sizes_(plan_),
      wanted_(plan_.symbols.size(), SizeState::kUnknown) {
  changed_bases_.reserve(plan_.base_count());
  for (const PlanSlot& output : plan_.outputs) known_.push_back(plan_.known_at(output.dims));
  for (const Room& room : plan_.rooms) {
    bool is_own = room.base >= plan_.room_base(0);
    own_rooms_.push_back(is_own ? std::make_unique<GrowingMemory>() : nullptr);
    rooms_.push_back(own_rooms_.back().get());
  }
  moved_rooms_.reserve(plan_.rooms.size());
}

Frame::~Frame() = default;

Result<std::unique_ptr<Frame>> Frame::make(const CompiledPlan& compiled, const std::shared_ptr<Host>& host) {
  std::unique_ptr<Frame> frame(new Frame(compiled, host));
  for (size_t i = 0; i < frame->rooms_.size(); i++)  // so that every base is an address
    if (GrowingMemory* room = frame->rooms_[i]) {
      RLX_TRY(room->reserve(host, kMemoryAlignment));
      frame->place(compiled.plan->rooms[i].base, room->data());
    }
  frame->state_ = RLX_TRY(compiled.executable->make_state());
  for (size_t i = 0; i < compiled.bodies.size(); i++) {
    std::vector<std::unique_ptr<Frame>> bodies;
    for (const auto& body : compiled.bodies[i]) bodies.push_back(RLX_TRY(make(*body, host)));
    frame->loops_.push_back(std::make_unique<Loop>(*frame, compiled.plan->controls[i], std::move(bodies)));
  }
  return frame;
}

void Frame::place(uint32_t base, std::byte* data) {
  if (bases_[base].host == data) return;
  bases_[base].host = data;
  if (base < kFirstSlotBase || base >= plan_.resident_base(0)) places_version_++;
  if (!std::exchange(is_changed_[base], 1)) changed_bases_.push_back(base);
}

std::byte* Frame::address(const Access& access) const {
  return bases_[access.base].host + access.offset + sizes_.values()[access.shift] * element_bytes(access.dtype);
}

// ---- rooms ----

static int64_t bytes_now(DType dtype, std::span<const SizeId> dims, std::span<const int64_t> sizes) {
  Dims now;
  for (SizeId id : dims) now.push_back(sizes[id]);
  return byte_size(dtype, element_count(std::span<const int64_t>(now)).value_or(0)).value_or(0);
}

GrowingMemory* Frame::room_of(uint32_t base) {
  for (size_t i = 0; i < rooms_.size(); i++)
    if (plan_.rooms[i].base == base) return rooms_[i];
  return nullptr;
}

void Frame::set_room(size_t output, GrowingMemory* memory) {
  for (size_t i = 0; i < rooms_.size(); i++)
    if (plan_.rooms[i].base == plan_.output_base(output)) rooms_[i] = memory;
}

Status Frame::make_rooms(uint32_t known) {
  moved_rooms_.clear();
  for (size_t i = 0; i < rooms_.size(); i++) {
    const Room& room = plan_.rooms[i];
    if (room.known != known || !rooms_[i]) continue;
    RLX_TRY(rooms_[i]->reserve(host_, bytes_now(room.dtype, room.dims, sizes_.values())));
    if (bases_[room.base].host == rooms_[i]->data()) continue;
    place(room.base, rooms_[i]->data());
    moved_rooms_.push_back(room.base);
  }
  return {};
}

Status Frame::learn(uint32_t step) {
  RLX_TRY(check_outputs(step));
  return make_rooms(step);
}

// ---- a run ----

Status Frame::run(const RunScope& scope) {
  auto set_size = [this](uint32_t symbol, int64_t size) -> Result<Changes> {
    sizes_.forget_changes();
    RLX_TRY(sizes_.set_fresh(plan_, symbol, size));
    RLX_TRY(learn(plan_.symbols[symbol].made_by));
    return changes();
  };
  if (!rooms_.empty()) RLX_TRY(make_rooms(PlanSymbol::kGiven));
  auto run_control = [&](const Step& step) { return loops_[step.control]->run(scope); };
  SetSize sink(set_size);
  RunControl control(run_control);
  RunArgs args;
  args.bases = bases_;
  args.sizes = sizes_.values();
  args.symbols = sizes_.symbols();
  args.changed_bases = changed_bases_;
  args.changed_sizes = sizes_.changed();
  args.state = state_.get();
  args.set_size = &sink;
  args.control = &control;
  args.cancel = scope.cancel;
  args.threads = scope.threads;
  Status status = compiled_.executable->run(args);
  for (uint32_t base : changed_bases_) is_changed_[base] = 0;
  changed_bases_.clear();
  sizes_.forget_changes();
  return status;
}

// ---- of a body ----

Status Frame::enter(const Frame& around, const Step& step, const PlanBody& body) {
  if (places_seen_ != around.places_version_) {
    place(kArenaBase, around.bases_[kArenaBase].host + step.scratch_offset);
    place(kSizedBase, around.bases_[kSizedBase].host + body.sized_offset);
    for (size_t i = 0; i < plan_.lowered->residents.size(); i++)
      place(plan_.resident_base(i), around.bases_[around.plan_.resident_base(body.first_resident + i)].host);
    places_seen_ = around.places_version_;
  }
  if (sizes_seen_ == around.sizes_.version()) return {};
  for (size_t i = 0; i < body.symbols.size(); i++)
    if (body.symbols[i] != Plan::kNoSymbol) wanted_[i] = around.sizes_.symbols()[body.symbols[i]];
  sizes_seen_ = around.sizes_.version();
  is_unsettled_ = true;
  return {};
}

Status Frame::carry(const PlanBody& body, std::span<const Dims> dims) {
  for (const CarriedSize& size : body.carried) {
    int64_t now = dims[size.slot][size.axis];
    is_unsettled_ |= wanted_[size.symbol] != now;
    wanted_[size.symbol] = now;
  }
  for (const CarriedSize& size : body.carried)
    if (int64_t now = dims[size.slot][size.axis]; wanted_[size.symbol] != now)
      return Status(Code::kShape,
                    format("the size '{}' is {} and {}", plan_.symbols[size.symbol].name, wanted_[size.symbol], now))
          .with("value", plan_.symbols[size.symbol].name);
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
  Dims dims;
  for (SizeId id : plan_.outputs[output].dims) dims.push_back(sizes_.values()[id]);
  return dims;
}

Status Frame::check_outputs(uint32_t known) const {
  for (size_t i = 0; i < limits_.size(); i++) {
    bool is_small = limits_[i] >= 0 && (plan_.outputs[i].is_open || plan_.outputs[i].bytes > limits_[i]);
    if (known_[i] != known || !is_small) continue;
    DType dtype = plan_.graph().type(plan_.graph().outputs()[i].value).dtype;
    int64_t bytes = bytes_now(dtype, plan_.outputs[i].dims, sizes_.values());
    if (bytes > limits_[i])
      return Status(Code::kRange,
                    format("the output '{}' is {}: it needs {} bytes, there are {}", plan_.graph().outputs()[i].name,
                           type_text(dtype, output_dims(i)), bytes, limits_[i]));
  }
  return {};
}

}  // namespace rlx
