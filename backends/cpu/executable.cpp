// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/executable.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/walk.h"

namespace rlx::cpu {

static constexpr size_t kArgsAlignment = 64;

// A pointer in an argument block: so far into a base.
struct Pointer {
  uint32_t base;
  uint32_t at;  // in the block, in words
  std::ptrdiff_t offset;
};

// What one exec keeps of a program.
class CpuState : public ExecState {
 public:
  HostMemory args;
  std::vector<EncodedStep> steps;
  std::vector<StepGroup> groups;  // of the run steps; capacity for all
  std::vector<uint8_t> dirty;
  bool is_new = true;
  bool is_unsized = true;  // values that depend on sizes alone are to be computed

  // Of a body: the pointers into slots by step, with capacity for all words; whether there is more than pointers.
  std::vector<std::vector<Pointer>> pointers;
  std::vector<uint8_t> is_fixed;
  bool has_fixed = false;
  HostMemory probe;  // a block that is encoded with the slots elsewhere
  std::vector<Binding> probe_bases;
};

CpuExecutable::CpuExecutable(std::shared_ptr<const Plan> plan, const Caps& caps, const DeviceContext& context)
    : plan_(std::move(plan)), caps_(caps), context_(context) {
  by_size_.resize(plan_->sizes.size());
  by_base_.resize(plan_->base_count());
  moves_.resize(plan_->steps.size(), 0);
  for (uint32_t i = 0; i < plan_->steps.size(); i++) {
    const Step& step = plan_->steps[i];
    args_at_.push_back(args_bytes_);
    compiled_.push_back(nullptr);
    if (step.control != Step::kNoControl) {
      stops_.push_back({i, true});
      continue;
    }
    const CpuKernel& row = kernel(i);
    if (row.compile) compiled_[i] = row.compile(plan_->graph(), plan_->graph().node(step.node));
    args_bytes_ += (row.args_bytes(step) + kArgsAlignment - 1) / kArgsAlignment * kArgsAlignment;
    if (row.measure && i >= plan_->first_run_step && decides_sizes(i)) stops_.push_back({i, false});
    note_uses(i);
  }
  args_at_.push_back(args_bytes_);
}

void CpuExecutable::note_uses(uint32_t index) {
  const Step& step = plan_->steps[index];
  for (SizeId id : step.depends) by_size_[id].push_back(index);
  for (auto* list : {&step.in, &step.out})
    for (const Access& it : *list) {
      if (it.dtype == DType::kNone) continue;
      if (by_base_[it.base].empty() || by_base_[it.base].back() != index) by_base_[it.base].push_back(index);
      if (plan_->is_body && is_slot(it.base)) moves_[index] = 1;
    }
}

bool CpuExecutable::decides_sizes(uint32_t step) const {
  return std::any_of(plan_->symbols.begin(), plan_->symbols.end(),
                     [step](const PlanSymbol& symbol) { return symbol.made_by == step; });
}

Result<std::unique_ptr<ExecState>> CpuExecutable::make_state() const {
  auto state = std::make_unique<CpuState>();
  state->args = RLX_TRY(HostMemory::allocate(context_.host, args_bytes_, MemoryKind::kScratch));
  state->steps.resize(plan_->steps.size());
  state->groups.reserve(plan_->steps.size());
  state->dirty.assign(plan_->steps.size(), 1);
  for (const Stop& stop : stops_)
    if (stop.is_control) state->dirty[stop.step] = 0;
  if (!plan_->is_body) return std::unique_ptr<ExecState>(std::move(state));
  state->pointers.resize(plan_->steps.size());
  state->is_fixed.resize(plan_->steps.size(), 0);
  size_t most = 0;
  for (uint32_t i = 0; i < plan_->steps.size(); i++) {
    size_t bytes = args_at_[i + 1] - args_at_[i];
    most = std::max(most, bytes);
    if (moves_[i]) state->pointers[i].reserve(bytes / sizeof(uintptr_t));
  }
  state->probe = RLX_TRY(HostMemory::allocate(context_.host, most, MemoryKind::kScratch));
  state->probe_bases.resize(plan_->base_count());
  return std::unique_ptr<ExecState>(std::move(state));
}

static View resolve(const Access& access, const RunArgs& args) {
  View view;
  if (access.dtype == DType::kNone) return view;
  view.dtype = access.dtype;
  for (SizeId id : access.dims) view.dims.push_back(args.sizes[id]);
  view.strides.resize(view.dims.size());
  int64_t stride = 1;
  for (size_t i = view.dims.size(); i-- > 0;) {
    view.strides[i] = access.dense ? stride : args.sizes[access.strides[i]];
    stride *= view.dims[i];
  }
  // Block types have no views: their shift is 0.
  view.data = args.bases[access.base].host + access.offset + args.sizes[access.shift] * element_bytes(access.dtype);
  return view;
}

// The operands of a step at their current places and sizes.
class CpuExecutable::Operands {
 public:
  Operands(const Step& step, const RunArgs& args) : inputs_(step.in.size()), count_(inputs_ + step.out.size()) {
    if (count_ > kFew) many_.resize(count_);
    View* views = count_ > kFew ? many_.data() : few_;
    for (size_t i = 0; i < count_; i++) views[i] = resolve(i < inputs_ ? step.in[i] : step.out[i - inputs_], args);
    views_ = {views, count_};
  }
  std::span<const View> in() const { return views_.first(inputs_); }
  std::span<const View> out() const { return views_.subspan(inputs_); }

 private:
  static constexpr size_t kFew = 16;  // without allocation
  size_t inputs_, count_;
  View few_[kFew];
  std::vector<View> many_;
  std::span<const View> views_;
};

StepView CpuExecutable::view_of(uint32_t index, const Operands& operands, const RunArgs& args) const {
  const Step& step = plan_->steps[index];
  return {*plan_,
          step,
          plan_->graph().node(step.node),
          operands.in(),
          operands.out(),
          args.bases[kArenaBase].host + step.scratch_offset,
          args.symbols.data(),
          compiled_[index].get()};
}

void CpuExecutable::encode(uint32_t index, const RunArgs& args, CpuState& state) const {
  Operands operands(plan_->steps[index], args);
  EncodedStep& encoded = state.steps[index];
  const CpuKernel& row = kernel(index);
  encoded.args = state.args.data() + args_at_[index];
  encoded.run = row.run;
  encoded.keeps_denormals = row.keeps_denormals;
  row.encode(view_of(index, operands, args), caps_, state.args.data() + args_at_[index], encoded.launch);
}

// An address far away, of which nothing is read.
static std::byte* moved(const std::byte* place, uintptr_t distance) {
  uintptr_t there = reinterpret_cast<uintptr_t>(place) + distance;
  return reinterpret_cast<std::byte*>(there);  // NOLINT(performance-no-int-to-ptr)
}

// Which words of a block are pointers into slots is found by encoding it once more with the slots elsewhere: a word
// that moves as far as a slot does is one. A block where anything else differs is encoded again whenever a slot moves.
void CpuExecutable::find_pointers(uint32_t index, const RunArgs& args, CpuState& state) const {
  // Far apart, so that no difference of two is that of a third; aligned as memory is.
  auto distance = [](uint32_t base) { return uintptr_t{base} << 36 | uintptr_t{base * 40503u & 0xffff} << 16; };
  const Step& step = plan_->steps[index];
  std::vector<Pointer>& pointers = state.pointers[index];
  pointers.clear();
  std::copy(args.bases.begin(), args.bases.end(), state.probe_bases.begin());
  for (auto* list : {&step.in, &step.out})
    for (const Access& it : *list)
      if (it.dtype != DType::kNone && is_slot(it.base))
        state.probe_bases[it.base].host = moved(args.bases[it.base].host, distance(it.base));
  RunArgs elsewhere = args;
  elsewhere.bases = state.probe_bases;
  size_t bytes = args_at_[index + 1] - args_at_[index];
  std::memcpy(state.probe.data(), state.args.data() + args_at_[index], bytes);
  Launch launch;
  {
    Operands operands(step, elsewhere);
    kernel(index).encode(view_of(index, operands, elsewhere), caps_, state.probe.data(), launch);
  }
  auto* here = reinterpret_cast<const uintptr_t*>(state.args.data() + args_at_[index]);
  auto* there = reinterpret_cast<const uintptr_t*>(state.probe.data());
  state.is_fixed[index] = launch.parts != state.steps[index].launch.parts;
  for (uint32_t at = 0; at < bytes / sizeof(uintptr_t); at++) {
    uintptr_t moved = there[at] - here[at];
    if (!moved) continue;
    auto base = static_cast<uint32_t>(moved >> 36);
    bool is_pointer = is_slot(base) && moved == distance(base);
    if (is_pointer)
      pointers.push_back(
          {base, at, static_cast<std::ptrdiff_t>(here[at] - reinterpret_cast<uintptr_t>(args.bases[base].host))});
    else
      state.is_fixed[index] = 1;
  }
  state.has_fixed |= state.is_fixed[index] != 0;
}

void CpuExecutable::move_slot(uint32_t base, const RunArgs& args, CpuState& state) const {
  for (uint32_t index : by_base_[base]) {
    if (state.dirty[index]) continue;
    if (state.is_fixed[index]) {
      state.dirty[index] = 1;
      continue;
    }
    auto* words = reinterpret_cast<uintptr_t*>(state.args.data() + args_at_[index]);
    for (const Pointer& pointer : state.pointers[index])
      if (pointer.base == base)
        words[pointer.at] = reinterpret_cast<uintptr_t>(args.bases[base].host) + static_cast<uintptr_t>(pointer.offset);
  }
}

void CpuExecutable::encode_dirty(const RunArgs& args, CpuState& state) const {
  bool any = false;
  for (uint32_t i = 0; i < state.dirty.size(); i++) {
    if (!state.dirty[i]) continue;
    any = true;
    encode(i, args, state);
    if (moves_[i]) find_pointers(i, args, state);
    state.dirty[i] = 0;
  }
  if (any && stops_.empty())
    group_steps(std::span<const EncodedStep>(state.steps).subspan(plan_->first_run_step), state.groups);
}

// What sizes or places have changed is encoded again, and values that depend on sizes alone are computed again.
Status CpuExecutable::follow_changes(const RunArgs& args, CpuState& state) const {
  for (SizeId id : args.changed_sizes) mark(by_size_[id], state);
  bool only_slots = plan_->is_body && args.changed_sizes.empty() && !state.is_new;
  for (uint32_t base : args.changed_bases) {
    if (plan_->is_body && is_slot(base)) continue;
    only_slots = false;
    mark(by_base_[base], state);
  }
  if (plan_->is_body)
    for (uint32_t base : args.changed_bases)
      if (is_slot(base)) move_slot(base, args, state);
  if (only_slots && !state.has_fixed && !state.is_unsized) return {};
  auto sized_end = state.dirty.begin() + plan_->first_run_step;
  bool sized = state.is_unsized || std::find(state.dirty.begin(), sized_end, 1) != sized_end;
  // A loop over sizes is no step that is encoded, so no size marks it.
  if (!args.changed_sizes.empty())
    sized |= std::any_of(stops_.begin(), stops_.end(),
                         [&](Stop stop) { return stop.is_control && stop.step < plan_->first_run_step; });
  encode_dirty(args, state);
  if (sized) {
    state.is_unsized = true;  // until they are computed, in this run or the next
    RLX_TRY(walk_steps(0, plan_->first_run_step, args, state));
    state.is_unsized = false;
  }
  state.is_new = false;
  return {};
}

void CpuExecutable::mark(std::span<const uint32_t> steps, CpuState& state) {
  for (uint32_t step : steps) state.dirty[step] = 1;
}

void CpuExecutable::follow(const Changes& changes, const RunArgs& args, CpuState& state) const {
  for (SizeId id : changes.sizes) mark(by_size_[id], state);
  for (uint32_t base : changes.bases)
    plan_->is_body&& is_slot(base) ? move_slot(base, args, state) : mark(by_base_[base], state);
}

// What depends on sizes that a step has decided is encoded before the walk goes on.
Status CpuExecutable::stop_at(Stop stop, const RunArgs& args, CpuState& state) const {
  const Step& step = plan_->steps[stop.step];
  if (stop.is_control) {
    follow(RLX_TRY((*args.control)(step)), args, state);
  } else {
    Operands operands(step, args);
    auto tell = [&](uint32_t symbol, int64_t size) -> Status {
      follow(RLX_TRY((*args.set_size)(symbol, size)), args, state);
      return {};
    };
    RLX_TRY(kernel(stop.step).measure(view_of(stop.step, operands, args), tell));
  }
  encode_dirty(args, state);
  return {};
}

Status CpuExecutable::walk_range(uint32_t first, uint32_t last, const RunArgs& args, CpuState& state) const {
  std::span<const EncodedStep> steps = std::span<const EncodedStep>(state.steps).subspan(first, last - first);
  if (last <= plan_->first_run_step) return walk_alone(steps, args.cancel);
  group_steps(steps, state.groups);
  return walk(steps, state.groups, *context_.pool, args.threads, args.cancel);
}

// From stop to stop.
Status CpuExecutable::walk_steps(uint32_t first, uint32_t last, const RunArgs& args, CpuState& state) const {
  uint32_t next = first;
  for (Stop stop : stops_) {
    if (stop.step < first || stop.step >= last) continue;
    RLX_TRY(walk_range(next, stop.step, args, state));
    RLX_TRY(stop_at(stop, args, state));
    next = stop.step + stop.is_control;
  }
  return walk_range(next, last, args, state);
}

Status CpuExecutable::run(const RunArgs& args) const {
  auto& state = static_cast<CpuState&>(*args.state);
  if (state.is_new || state.is_unsized || !args.changed_sizes.empty() || !args.changed_bases.empty())
    RLX_TRY(follow_changes(args, state));
  if (!stops_.empty()) return walk_steps(plan_->first_run_step, static_cast<uint32_t>(state.steps.size()), args, state);
  return walk(std::span<const EncodedStep>(state.steps).subspan(plan_->first_run_step), state.groups, *context_.pool,
              args.threads, args.cancel);
}

Result<Fence> CpuExecutable::submit(const RunArgs& args) const {
  return Fence::finished(run(args));
}

}  // namespace rlx::cpu
