// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/program.h"

#include <algorithm>

#include "backends/cpu/walk.h"

namespace rlx::cpu {

static constexpr size_t kArgsAlignment = 64;

// What one exec keeps of a program.
class CpuState : public ProgramState {
 public:
  HostMemory args;
  std::vector<EncodedStep> steps;
  std::vector<StepGroup> groups;  // of the run steps; capacity for all
  std::vector<uint8_t> dirty;
  bool is_new = true;
};

CpuProgram::CpuProgram(std::shared_ptr<const Plan> plan, const Caps& caps, const DeviceContext& context)
    : plan_(std::move(plan)), caps_(caps), context_(context) {
  by_size_.resize(plan_->sizes.size());
  by_base_.resize(plan_->base_count());
  for (uint32_t i = 0; i < plan_->steps.size(); i++) {
    const Step& step = plan_->steps[i];
    const CpuKernel& row = kernel(i);
    compiled_.push_back(row.compile ? row.compile(plan_->graph(), plan_->graph().node(step.node)) : nullptr);
    args_at_.push_back(args_bytes_);
    args_bytes_ += (row.args_bytes(step) + kArgsAlignment - 1) / kArgsAlignment * kArgsAlignment;
    for (SizeId id : step.depends) by_size_[id].push_back(i);
    for (auto* list : {&step.in, &step.out})
      for (const Access& it : *list)
        if (it.dtype != DType::kNone && (by_base_[it.base].empty() || by_base_[it.base].back() != i))
          by_base_[it.base].push_back(i);
  }
}

Result<std::unique_ptr<ProgramState>> CpuProgram::make_state() const {
  auto state = std::make_unique<CpuState>();
  state->args = RLX_TRY(HostMemory::allocate(context_.host, args_bytes_, MemoryKind::kScratch));
  state->steps.resize(plan_->steps.size());
  state->groups.reserve(plan_->steps.size());
  state->dirty.assign(plan_->steps.size(), 1);
  return std::unique_ptr<ProgramState>(std::move(state));
}

void CpuProgram::mark_changes(const RunArgs& args, CpuState& state) const {
  for (SizeId id : args.changed_sizes)
    for (uint32_t step : by_size_[id]) state.dirty[step] = 1;
  for (uint32_t base : args.changed_bases)
    for (uint32_t step : by_base_[base]) state.dirty[step] = 1;
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

void CpuProgram::encode(uint32_t index, const RunArgs& args, CpuState& state) const {
  constexpr size_t kMany = 64;
  const Step& step = plan_->steps[index];
  SmallVector<View, kMany> few;
  std::vector<View> many;
  size_t count = step.in.size() + step.out.size();
  std::span<View> views;
  if (count <= kMany) {
    few.resize(count);
    views = {few.data(), count};
  } else {
    many.resize(count);
    views = many;
  }
  for (size_t i = 0; i < count; i++)
    views[i] = resolve(i < step.in.size() ? step.in[i] : step.out[i - step.in.size()], args);
  StepView view{*plan_,
                step,
                plan_->graph().node(step.node),
                views.first(step.in.size()),
                views.subspan(step.in.size()),
                args.bases[kArenaBase].host + step.scratch_offset,
                args.symbols.data(),
                compiled_[index].get()};
  EncodedStep& encoded = state.steps[index];
  const CpuKernel& row = kernel(index);
  encoded.args = state.args.data() + args_at_[index];
  encoded.run = row.run;
  encoded.keeps_denormals = row.keeps_denormals;
  row.encode(view, caps_, state.args.data() + args_at_[index], encoded.launch);
}

void CpuProgram::encode_dirty(const RunArgs& args, CpuState& state) const {
  for (uint32_t i = 0; i < state.dirty.size(); i++) {
    if (!state.dirty[i]) continue;
    encode(i, args, state);
    state.dirty[i] = 0;
  }
  group_steps(std::span<const EncodedStep>(state.steps).subspan(plan_->first_run_step), state.groups);
}

Status CpuProgram::run(const RunArgs& args) const {
  auto& state = static_cast<CpuState&>(*args.state);
  std::span<const EncodedStep> steps(state.steps);
  if (state.is_new || !args.changed_sizes.empty() || !args.changed_bases.empty()) {
    mark_changes(args, state);
    bool sized = std::find(state.dirty.begin(), state.dirty.begin() + plan_->first_run_step, 1) !=
                 state.dirty.begin() + plan_->first_run_step;
    encode_dirty(args, state);
    if (sized) {
      Status status = walk_alone(steps.first(plan_->first_run_step), nullptr);
      if (!status.ok()) {
        std::fill_n(state.dirty.begin(), plan_->first_run_step, 1);  // not computed: the next run does
        return status;
      }
    }
    state.is_new = false;
  }
  return walk(steps.subspan(plan_->first_run_step), state.groups, *context_.pool, args.threads, args.cancel);
}

Result<Fence> CpuProgram::submit(const RunArgs& args) const {
  return Fence::finished(run(args));
}

}  // namespace rlx::cpu
