// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/executable.h"

#include <algorithm>

#include "backends/cpu/walk.h"

namespace rlx::cpu {

static constexpr size_t kArgsAlignment = 64;

// What one exec keeps of a program.
class CpuState : public ExecState {
 public:
  HostMemory args;
  std::vector<EncodedStep> steps;
  std::vector<StepGroup> groups;  // of the run steps; capacity for all
  std::vector<uint8_t> dirty;
  bool is_new = true;
};

CpuExecutable::CpuExecutable(std::shared_ptr<const Plan> plan, const Caps& caps, const DeviceContext& context)
    : plan_(std::move(plan)), caps_(caps), context_(context) {
  by_size_.resize(plan_->sizes.size());
  by_base_.resize(plan_->base_count());
  for (uint32_t i = 0; i < plan_->steps.size(); i++) {
    const Step& step = plan_->steps[i];
    const CpuKernel& row = kernel(i);
    compiled_.push_back(row.compile ? row.compile(plan_->graph(), plan_->graph().node(step.node)) : nullptr);
    args_at_.push_back(args_bytes_);
    args_bytes_ += (row.args_bytes(step) + kArgsAlignment - 1) / kArgsAlignment * kArgsAlignment;
    if (row.measure && i >= plan_->first_run_step && decides_sizes(i)) makers_.push_back(i);
    for (SizeId id : step.depends) by_size_[id].push_back(i);
    for (auto* list : {&step.in, &step.out})
      for (const Access& it : *list)
        if (it.dtype != DType::kNone && (by_base_[it.base].empty() || by_base_[it.base].back() != i))
          by_base_[it.base].push_back(i);
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

void CpuExecutable::encode_dirty(const RunArgs& args, CpuState& state) const {
  for (uint32_t i = 0; i < state.dirty.size(); i++) {
    if (!state.dirty[i]) continue;
    encode(i, args, state);
    state.dirty[i] = 0;
  }
  if (makers_.empty())
    group_steps(std::span<const EncodedStep>(state.steps).subspan(plan_->first_run_step), state.groups);
}

// What sizes or places have changed is encoded again, and values that depend on sizes alone are computed again.
Status CpuExecutable::follow_changes(const RunArgs& args, CpuState& state) const {
  for (SizeId id : args.changed_sizes) mark(by_size_[id], state);
  for (uint32_t base : args.changed_bases) mark(by_base_[base], state);
  auto sized_end = state.dirty.begin() + plan_->first_run_step;
  bool sized = std::find(state.dirty.begin(), sized_end, 1) != sized_end;
  encode_dirty(args, state);
  if (sized) {
    Status status = walk_alone(std::span<const EncodedStep>(state.steps).first(plan_->first_run_step), nullptr);
    if (!status.ok()) {
      std::fill(state.dirty.begin(), sized_end, 1);  // not computed: the next run does
      return status;
    }
  }
  state.is_new = false;
  return {};
}

void CpuExecutable::mark(std::span<const uint32_t> steps, CpuState& state) {
  for (uint32_t step : steps) state.dirty[step] = 1;
}

// A step that decides sizes tells them; what depends on them is encoded before the walk goes on.
Status CpuExecutable::measure(uint32_t index, const RunArgs& args, CpuState& state) const {
  {
    Operands operands(plan_->steps[index], args);
    auto tell = [&](uint32_t symbol, int64_t size) -> Status {
      for (SizeId id : RLX_TRY((*args.set_size)(symbol, size))) mark(by_size_[id], state);
      return {};
    };
    RLX_TRY(kernel(index).measure(view_of(index, operands, args), tell));
  }
  encode_dirty(args, state);
  return {};
}

Status CpuExecutable::walk_range(uint32_t first, uint32_t last, const RunArgs& args, CpuState& state) const {
  std::span<const EncodedStep> steps = std::span<const EncodedStep>(state.steps).subspan(first, last - first);
  group_steps(steps, state.groups);
  return walk(steps, state.groups, *context_.pool, args.threads, args.cancel);
}

Status CpuExecutable::run(const RunArgs& args) const {
  auto& state = static_cast<CpuState&>(*args.state);
  if (state.is_new || !args.changed_sizes.empty() || !args.changed_bases.empty()) RLX_TRY(follow_changes(args, state));
  uint32_t next = plan_->first_run_step;
  if (makers_.empty())
    return walk(std::span<const EncodedStep>(state.steps).subspan(next), state.groups, *context_.pool, args.threads,
                args.cancel);
  for (uint32_t maker : makers_) {
    RLX_TRY(walk_range(next, maker, args, state));
    RLX_TRY(measure(maker, args, state));
    next = maker;
  }
  return walk_range(next, static_cast<uint32_t>(state.steps.size()), args, state);
}

Result<Fence> CpuExecutable::submit(const RunArgs& args) const {
  return Fence::finished(run(args));
}

}  // namespace rlx::cpu
