// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_side.h"

#include <algorithm>

namespace rlx {

HostSide::HostSide(Device& device, Device& host, const Plan& plan)
    : device_(device),
      host_(host),
      plan_(plan),
      rooms_(plan.base_count()),
      bases_(plan.base_count()),
      changed_(plan.base_count(), 0),
      seen_(plan.base_count(), UINT64_MAX) {}

Status HostSide::run(size_t segment, const Executable& executable, const RunArgs& args, ExecState& state) {
  const Segment& own = plan_.segments[segment];
  RLX_TRY(place(own, args));
  RLX_TRY(copy(in_, args, Direction::kToHost));
  // A size that a step has found may move rooms and enlarge outputs.
  auto set = [&](uint32_t symbol, int64_t size) -> Status {
    RLX_TRY((*args.set_size)(symbol, size));
    return place(own, args);
  };
  SetSize set_size(set);
  RunArgs here = args;
  here.bases = {bases_, changed_, &version_};
  here.set_size = &set_size;
  RLX_TRY(executable.run(here, state));
  return copy(out_, args, Direction::kToDevice);
}

// The bytes from the first to the last one of the operand, gaps of a view included.
HostSide::Extent HostSide::extent_of(const Access& access, const RunArgs& args) {
  auto size = [&](SizeId id) { return args.sizes.values[id]; };
  int64_t unit = element_bytes(access.dtype), first = 0, last = 0, count = 1;
  for (size_t i = 0; i < access.dims.size(); i++) {
    count *= size(access.dims[i]);
    if (access.dense) continue;
    int64_t reach = (size(access.dims[i]) - 1) * size(access.strides[i]);
    (reach < 0 ? first : last) += reach;
  }
  int64_t at = access.offset + size(access.shift) * unit;
  if (count == 0) return {access.base, at, at};
  if (access.dense) return {access.base, at, at + byte_size(access.dtype, count).value_or(0)};
  return {access.base, at + first * unit, at + (last + 1) * unit};
}

void HostSide::find_extents(const Segment& segment, const RunArgs& args) {
  in_.clear();
  out_.clear();
  auto is_on_device = [&](const Access& it) { return it.dtype != DType::kNone && !args.bases.values[it.base].host; };
  auto buffer_of = [&](const Access& it) {
    return it.base == kArenaBase && it.buffer != Access::kNoBuffer ? &plan_.buffers[it.buffer] : nullptr;
  };
  auto is_made_here = [&](const Access& it) { return buffer_of(it) && buffer_of(it)->first >= segment.first; };
  auto dies_here = [&](const Access& it) { return buffer_of(it) && buffer_of(it)->last < segment.last; };
  for (uint32_t i = segment.first; i < segment.last; i++) {
    const Step& step = plan_.steps[i];
    for (const Access& it : step.in)
      if (is_on_device(it) && !is_made_here(it)) in_.push_back(extent_of(it, args));
    for (const Access& it : step.out) {
      if (!is_on_device(it)) continue;
      if (!dies_here(it)) out_.push_back(extent_of(it, args));
      if (!it.dense) in_.push_back(extent_of(it, args));  // its extent contains bytes of others
    }
  }
  for (auto* list : {&in_, &out_}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}

Status HostSide::place(const Segment& segment, const RunArgs& args) {
  find_extents(segment, args);
  for (uint32_t base = 0; base < bases_.size(); base++) {
    if (!args.bases.values[base].host) continue;
    bool is_new = seen_[base] != args.bases.changed[base];
    seen_[base] = args.bases.changed[base];
    if (is_new || !(bases_[base] == args.bases.values[base])) move(base, args.bases.values[base]);
  }
  if (!args.bases.values[kArenaBase].host) RLX_TRY(hold(kArenaBase, plan_.arena_bytes));
  if (!args.bases.values[kSizedBase].host) RLX_TRY(hold(kSizedBase, plan_.sized_bytes));
  for (auto* list : {&in_, &out_})
    for (const Extent& it : *list)
      if (it.base >= kFirstSlotBase) RLX_TRY(hold(it.base, it.last));
  return {};
}

Status HostSide::hold(uint32_t base, int64_t bytes) {
  Room& room = rooms_[base];
  RLX_TRY(room.reserve(host_, std::max<int64_t>(bytes, 1), room.capacity()));
  if (!(bases_[base] == room.place())) move(base, room.place());
  return {};
}

void HostSide::move(uint32_t base, const Place& place) {
  bases_[base] = place;
  changed_[base] = ++version_;
}

Status HostSide::copy(std::span<const Extent> extents, const RunArgs& args, Direction direction) {
  copies_.clear();
  for (const Extent& it : extents) {
    const Place& far = args.bases.values[it.base];
    int64_t last = std::min(it.last, static_cast<int64_t>(far.buffer->size() - far.offset));
    if (it.first >= last) continue;
    Place there = far + it.first, here = bases_[it.base] + it.first;
    Place to = direction == Direction::kToDevice ? there : here,
          from = direction == Direction::kToDevice ? here : there;
    copies_.push_back({to, from, static_cast<size_t>(last - it.first)});
  }
  if (copies_.empty()) return {};
  Fence fence = RLX_TRY(device_.transfer(copies_, {}));
  RLX_TRY(fence.wait());
  return fence.result();
}

}  // namespace rlx
