// SPDX-License-Identifier: Apache-2.0
// The branches of `if`, and the trips of `while` and `scan`. A trip moves the slots of its body: to where carries
// lie by now, and to the next slices and rows.
#include "runtime/control_step.h"

namespace rlx {

static Result<int64_t> bytes_of(DType dtype, std::span<const int64_t> dims) {
  return static_cast<int64_t>(RLX_TRY(Tensor::checked_bytes(dtype, dims)));
}

ControlStep::ControlStep(Frame& around, const Control& control, std::vector<std::unique_ptr<Frame>> bodies)
    : around_(around),
      control_(control),
      step_(around.plan().steps[control.step]),
      node_(around.plan().graph().node(step_.node)),
      first_in_(operands_before_inputs(node_)),
      carries_(carry_count(node_)),
      xs_(node_.op == Op::kScan ? static_cast<size_t>(node_.attrs.i64("n_xs")) : 0),
      bodies_(std::move(bodies)),
      in_(node_.in.size()),
      out_(node_.out.size()),
      in_dims_(node_.in.size()),
      out_dims_(node_.out.size()),
      row_bytes_(node_.in.size() + node_.out.size()),
      rooms_(node_.out.size()),
      staging_(node_.out.size()) {
  for (const Carry& carry : control_.carries) spares_.emplace_back(carry.spares.size());
  // The condition of a `while` gives a flag; the outputs of other bodies are results, or rows of results.
  size_t results = node_.op == Op::kIf ? out_.size() : carries_;
  for (size_t i = node_.op == Op::kWhile ? 1 : 0; i < bodies_.size(); i++)
    bodies_[i]->limit_outputs(std::span(control_.out_bytes).first(results));
}

Status ControlStep::run(const RunScope& scope) {
  RLX_TRY(begin());
  RLX_TRY(node_.op == Op::kIf ? run_if(scope) : run_trips(scope));
  if (!control_.decides.empty()) RLX_TRY(set_decided_sizes());
  return finish_rooms();
}

Status ControlStep::begin() {
  std::span<const int64_t> sizes = around_.sizes().values();
  for (size_t i = 0; i < in_.size(); i++) {
    in_[i] = around_.address(step_.in[i]);
    in_dims_[i] = dims_at(step_.in[i].dims, sizes);
  }
  for (size_t i = 0; i < out_.size(); i++) {
    out_[i] = around_.address(step_.out[i]);
    out_dims_[i] = dims_at(step_.out[i].dims, sizes);
    rooms_[i] = nullptr;
    if (!is_open(i)) continue;
    rooms_[i] = around_.room_of(step_.out[i].base);
    if (rooms_[i]) continue;
    rooms_[i] = &staging_[i];  // bounded memory: check the size before copying it there
    RLX_TRY(staging_[i].trim(around_.device()));
  }
  for (size_t i = 0; i < bodies_.size(); i++) RLX_TRY(bodies_[i]->enter(around_, step_, control_.bodies[i]));
  return {};
}

Status ControlStep::prepare(size_t index) {
  Frame& body = *bodies_[index];
  RLX_TRY(body.check_residents());
  for (size_t i = first_in_; i < in_.size(); i++) body.place(body.plan().input_base(i - first_in_), in_[i]);
  if (!control_.bodies[index].carried.empty())
    RLX_TRY(body.set_carried_sizes(control_.bodies[index], std::span(in_dims_).subspan(first_in_)));
  return body.settle();
}

// Sets the place of a body's output: a room, which grows, or memory of fixed size.
Status ControlStep::place(Frame& body, size_t output, Room* room, const Place& fixed) {
  body.set_room(output, room);
  if (room && body.plan().outputs[output].is_open)
    return {};  // the body's frame places the output once it knows the size
  if (room) RLX_TRY(room->reserve(around_.device(), body.plan().outputs[output].bytes));
  body.place(body.plan().output_base(output), room ? room->place() : fixed);
  return {};
}

Result<bool> ControlStep::read_flag(const Place& place) const {
  if (place.host) return *place.host != std::byte{0};
  std::byte read{};
  auto here = host_buffer({std::shared_ptr<void>(), &read}, 1);
  RLX_TRY(copy_bytes({*here, 0}, place, 1));
  return read != std::byte{0};
}

Status ControlStep::run_if(const RunScope& scope) {
  bool is_decided = control_.when != Control::kByData;
  bool takes = is_decided ? around_.sizes().values()[control_.when] != 0 : RLX_TRY(read_flag(in_[0]));
  size_t index = takes ? 0 : 1;
  Frame& branch = *bodies_[index];
  RLX_TRY(prepare(index));
  for (size_t i = 0; i < out_.size(); i++) RLX_TRY(place(branch, i, rooms_[i], out_[i]));
  RLX_TRY(branch.run(scope));
  for (size_t i = 0; i < out_.size(); i++) out_dims_[i] = branch.output_dims(i);
  return {};
}

// ---- loops ----

// A carry is written to the result and to its spare places in turn. A value that the body passes on stays where it is.
Status ControlStep::place_carry(size_t carry) {
  const auto& [way, from, spares] = control_.carries[carry];
  Frame& body = *bodies_.back();
  if (way == Carry::Way::kPasses) return place(body, carry, nullptr, in_[from]);
  size_t turn = static_cast<size_t>(turn_) % (spares.size() + 1);
  if (is_open(carry)) return place(body, carry, turn == 0 ? rooms_[carry] : &spares_[carry][turn - 1], {});
  if (turn == 0) return place(body, carry, nullptr, out_[carry]);
  return place(body, carry, nullptr, around_.base_place(kArenaBase) + step_.scratch_offset + spares[turn - 1]);
}

// Row `at` of a stacked output. The number of trips may not be known yet.
Status ControlStep::place_row(size_t output, int64_t at) {
  int64_t row = row_bytes_[in_.size() + output];
  if (is_open(output)) {
    if (node_.op == Op::kWhile) RLX_TRY(rooms_[output]->reserve(around_.device(), (at + 1) * row, at * row));
    return place(*bodies_.back(), output, nullptr, rooms_[output]->place() + at * row);
  }
  if ((at + 1) * row > *control_.out_bytes[output])
    return Status(Code::kRange, format("trip {} of {}: its rows have {} bytes, {} are planned for all", at + 1,
                                       around_.plan().graph().describe(step_.node), row, *control_.out_bytes[output]));
  return place(*bodies_.back(), output, nullptr, out_[output] + at * row);
}

Status ControlStep::trip(int64_t at, const RunScope& scope) {
  if (scope.cancel.is_set()) return cancelled();
  size_t index = bodies_.size() - 1;
  Frame& body = *bodies_[index];
  for (size_t i = carries_; i < carries_ + xs_; i++) in_[i] = around_.address(step_.in[i]) + at * row_bytes_[i];
  RLX_TRY(prepare(index));
  for (size_t i = 0; i < carries_; i++) RLX_TRY(place_carry(i));
  for (size_t i = carries_; i < out_.size(); i++) RLX_TRY(place_row(i, at));
  RLX_TRY(body.run(scope));
  bool carries_sizes = !control_.bodies[index].carried.empty();
  for (size_t i = 0; i < carries_; i++) {
    in_[i] = body.base_place(body.plan().output_base(i));
    if (carries_sizes) in_dims_[i] = body.output_dims(i);
  }
  return {};
}

Result<bool> ControlStep::run_condition(const RunScope& scope) {
  if (scope.cancel.is_set()) return cancelled();
  Frame& cond = *bodies_[0];
  Place place = around_.base_place(kArenaBase) + step_.scratch_offset + control_.flag_offset;
  RLX_TRY(prepare(0));
  cond.place(cond.plan().output_base(0), place);
  RLX_TRY(cond.run(scope));
  return read_flag(place);
}

// -1: a `while` without max_trips.
int64_t ControlStep::most_trips() const {
  if (node_.op == Op::kWhile) return node_.attrs.i64("max_trips");
  return xs_ ? in_dims_[carries_][0] : around_.sizes().values()[control_.length];
}

static Result<int64_t> bytes_of_slice(DType dtype, std::span<const int64_t> dims) {
  return bytes_of(dtype, dims.subspan(1));
}

// A `while` does not know its trips: the rooms of what it stacks grow.
Status ControlStep::prepare_slices(std::optional<int64_t> trips) {
  for (size_t i = carries_; i < carries_ + xs_; i++) {
    const Dims whole = in_dims_[i];
    row_bytes_[i] = RLX_TRY(bytes_of_slice(step_.in[i].dtype, whole));
    in_dims_[i] = Dims(std::span<const int64_t>(whole).subspan(1));
  }
  for (size_t i = carries_; i < out_.size(); i++) {
    int64_t row = row_bytes_[in_.size() + i] = RLX_TRY(bytes_of_slice(step_.out[i].dtype, out_dims_[i]));
    if (!is_open(i)) continue;
    int64_t whole = trips ? RLX_TRY(bytes_of(DType::kU8, std::array{*trips, row})) : row;
    RLX_TRY(rooms_[i]->reserve(around_.device(), whole));
  }
  return {};
}

Status ControlStep::run_trips(const RunScope& scope) {
  bool is_while = node_.op == Op::kWhile, reverse = !is_while && node_.attrs.flag("reverse");
  int64_t most = most_trips(), trips = 0;
  RLX_TRY(prepare_slices(is_while ? std::nullopt : std::optional(most)));
  for (; most < 0 || trips < most; trips++) {
    if (is_while && !RLX_TRY(run_condition(scope))) break;
    turn_ = is_while ? trips : most - 1 - trips;  // the last trip of a scan writes to the result
    RLX_TRY(trip(reverse ? most - 1 - trips : trips, scope));
  }
  for (size_t i = carries_; i < out_.size(); i++) out_dims_[i][0] = trips;
  return finish_carries();
}

// Without a trip the first values are the results, and nothing has compared their sizes with the plan so far.
Status ControlStep::finish_carries() {
  for (size_t i = 0; i < carries_; i++) out_dims_[i] = in_dims_[i];
  for (const AxisSize& size : control_.decides)
    RLX_TRY(check_range(around_.plan().symbols[size.symbol], out_dims_[size.slot][size.axis]));
  // First those that no trip writes: their values may lie in the result of one that trips write.
  for (bool is_passed_on : {true, false})
    for (size_t i = 0; i < carries_; i++)
      if (is_passed_on == (control_.carries[i].way == Carry::Way::kPasses)) RLX_TRY(finish_carry(i));
  return {};
}

Status ControlStep::finish_carry(size_t carry) {
  int64_t bytes = RLX_TRY(bytes_of(step_.in[carry].dtype, out_dims_[carry]));
  if (is_open(carry)) RLX_TRY(rooms_[carry]->reserve(around_.device(), bytes));
  Place result = is_open(carry) ? rooms_[carry]->place() : out_[carry];
  if (in_[carry] == result) return {};
  return copy_bytes(result, in_[carry], static_cast<size_t>(bytes));
}

// ---- after the last trip ----

Status ControlStep::set_decided_sizes() {
  SizeState& sizes = around_.sizes();
  for (const AxisSize& size : control_.decides)
    RLX_TRY(sizes.set_fresh(around_.plan(), size.symbol, out_dims_[size.slot][size.axis]));
  return around_.on_sizes_known(control_.step);
}

// A body may have given a room other memory.
Status ControlStep::finish_rooms() {
  for (size_t i = 0; i < out_.size(); i++) {
    if (rooms_[i] && rooms_[i] != &staging_[i]) around_.place(step_.out[i].base, rooms_[i]->place());
    if (rooms_[i] != &staging_[i]) continue;
    int64_t bytes = RLX_TRY(bytes_of(step_.out[i].dtype, out_dims_[i]));
    RLX_TRY(copy_bytes(around_.address(step_.out[i]), staging_[i].place(), static_cast<size_t>(bytes)));
  }
  return {};
}

}  // namespace rlx
