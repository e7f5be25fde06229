// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop.h"

#include <cstring>

namespace rlx {

static int64_t bytes_of(DType dtype, std::span<const int64_t> dims) {
  return byte_size(dtype, element_count(dims).value_or(0)).value_or(0);
}

static Status cancelled() {
  return Status(Code::kCancelled, "the run was cancelled");
}

Loop::Loop(Frame& around, const Control& control, std::vector<std::unique_ptr<Frame>> bodies)
    : around_(around),
      control_(control),
      step_(around.plan().steps[control.step]),
      node_(around.plan().graph().node(step_.node)),
      first_in_(node_.op == Op::kIf ? 1 : 0),
      carries_(carry_count(node_)),
      xs_(node_.op == Op::kScan ? static_cast<size_t>(node_.attrs.i64("n_xs")) : 0),
      bodies_(std::move(bodies)),
      in_(node_.in.size()),
      out_(node_.out.size()),
      in_dims_(node_.in.size()),
      dims_(node_.out.size()),
      slice_bytes_(node_.in.size() + node_.out.size()),
      next_(carries_) {
  // The condition of a `while` gives a flag; all other bodies give the outputs.
  for (size_t i = node_.op == Op::kWhile ? 1 : 0; i < bodies_.size(); i++)
    bodies_[i]->limit_outputs(std::span(control_.out_bytes).first(node_.op == Op::kScan ? carries_ : out_.size()));
}

Result<std::span<const SizeId>> Loop::run(const RunScope& scope) {
  RLX_TRY(begin());
  switch (node_.op) {
    case Op::kIf: RLX_TRY(run_if(scope)); break;
    case Op::kWhile: RLX_TRY(run_while(scope)); break;
    default: RLX_TRY(run_scan(scope));
  }
  if (control_.decides.empty()) return std::span<const SizeId>();
  RLX_TRY(tell_sizes());
  return around_.sizes().changed();
}

Status Loop::begin() {
  std::span<const int64_t> sizes = around_.sizes().values();
  auto dims_of = [&](const Access& access, Dims& dims) {
    dims.resize(0);
    for (SizeId id : access.dims) dims.push_back(sizes[id]);
  };
  for (size_t i = 0; i < in_.size(); i++) {
    in_[i] = around_.address(step_.in[i]);
    dims_of(step_.in[i], in_dims_[i]);
  }
  for (size_t i = 0; i < out_.size(); i++) {
    out_[i] = around_.address(step_.out[i]);
    dims_of(step_.out[i], dims_[i]);
  }
  for (size_t i = 0; i < bodies_.size(); i++) RLX_TRY(bodies_[i]->enter(around_, step_, control_.bodies[i]));
  return {};
}

Status Loop::prepare(size_t index) {
  Frame& body = *bodies_[index];
  for (size_t i = first_in_; i < in_.size(); i++) body.place(body.plan().input_base(i - first_in_), in_[i]);
  if (!control_.bodies[index].carried.empty())
    RLX_TRY(body.carry(control_.bodies[index], std::span(in_dims_).subspan(first_in_)));
  return body.settle();
}

Status Loop::run_if(const RunScope& scope) {
  size_t index = *reinterpret_cast<const uint8_t*>(in_[0]) ? 0 : 1;
  Frame& branch = *bodies_[index];
  RLX_TRY(prepare(index));
  for (size_t i = 0; i < out_.size(); i++) branch.place(branch.plan().output_base(i), out_[i]);
  RLX_TRY(branch.run(scope));
  for (size_t i = 0; i < out_.size(); i++) dims_[i] = branch.output_dims(i);
  return {};
}

// ---- loops ----

std::byte* Loop::target(size_t carry, bool odd) const {
  if (!odd || control_.spares[carry] == Control::kStays) return out_[carry];
  return around_.region(kArenaBase) + step_.scratch_offset + control_.spares[carry];
}

// One trip of the body that gives the carries; other outputs are placed by the caller.
Status Loop::trip(size_t index, const RunScope& scope) {
  if (scope.cancel->load(std::memory_order_relaxed)) return cancelled();
  Frame& body = *bodies_[index];
  RLX_TRY(prepare(index));
  for (size_t i = 0; i < carries_; i++) {
    next_[i] = target(i, odd_);
    body.place(body.plan().output_base(i), next_[i]);
  }
  RLX_TRY(body.run(scope));
  bool carries_sizes = !control_.bodies[index].carried.empty();
  for (size_t i = 0; i < carries_; i++) {
    in_[i] = next_[i];
    if (carries_sizes) in_dims_[i] = body.output_dims(i);
  }
  odd_ = !odd_;
  return {};
}

void Loop::finish_carries() {
  for (size_t i = 0; i < carries_; i++) {
    dims_[i] = in_dims_[i];
    if (in_[i] == out_[i]) continue;
    if (int64_t bytes = bytes_of(step_.in[i].dtype, dims_[i])) std::memcpy(out_[i], in_[i], static_cast<size_t>(bytes));
  }
}

Status Loop::run_while(const RunScope& scope) {
  Frame& cond = *bodies_[0];
  std::byte* flag = around_.region(kArenaBase) + step_.scratch_offset + control_.flag_offset;
  cond.place(cond.plan().output_base(0), flag);
  int64_t most = node_.attrs.i64("max_trips");
  odd_ = false;
  for (int64_t trips = 0; most < 0 || trips < most; trips++) {
    if (scope.cancel->load(std::memory_order_relaxed)) return cancelled();
    RLX_TRY(prepare(0));
    RLX_TRY(cond.run(scope));
    if (!*reinterpret_cast<const uint8_t*>(flag)) break;
    RLX_TRY(trip(1, scope));
  }
  finish_carries();
  return {};
}

Status Loop::run_scan(const RunScope& scope) {
  Frame& body = *bodies_[0];
  int64_t length = xs_ ? in_dims_[carries_][0] : around_.sizes().values()[control_.length];
  std::span<int64_t> out_slices = std::span(slice_bytes_).subspan(in_.size());
  for (size_t i = carries_; i < carries_ + xs_; i++)
    slice_bytes_[i] = bytes_of(step_.in[i].dtype, std::span<const int64_t>(in_dims_[i]).subspan(1));
  for (size_t i = carries_; i < out_.size(); i++)
    out_slices[i] = bytes_of(step_.out[i].dtype, std::span<const int64_t>(dims_[i]).subspan(1));
  bool reverse = node_.attrs.flag("reverse");
  int64_t stride = reverse ? -1 : 1, first = reverse ? std::max<int64_t>(length - 1, 0) : 0;
  for (size_t i = carries_; i < carries_ + xs_; i++) in_[i] += first * slice_bytes_[i];
  for (size_t i = carries_; i < out_.size(); i++) out_[i] += first * out_slices[i];
  odd_ = length % 2 == 0;  // so that the last trip writes where the result lies
  for (int64_t step = 0; step < length; step++) {
    for (size_t i = carries_; i < out_.size(); i++) body.place(body.plan().output_base(i), out_[i]);
    RLX_TRY(trip(0, scope));
    for (size_t i = carries_; i < carries_ + xs_; i++) in_[i] += stride * slice_bytes_[i];
    for (size_t i = carries_; i < out_.size(); i++) out_[i] += stride * out_slices[i];
  }
  finish_carries();
  return {};
}

Status Loop::tell_sizes() {
  SizeState& sizes = around_.sizes();
  sizes.forget_changes();
  for (const CarriedSize& size : control_.decides)
    RLX_TRY(sizes.set_fresh(around_.plan(), size.symbol, dims_[size.slot][size.axis]));
  return {};
}

}  // namespace rlx
