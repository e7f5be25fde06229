// SPDX-License-Identifier: Apache-2.0
// Keeps the argument blocks of steps up to date and runs them. When only slots have moved, the pointers in a block
// are replaced; which words are pointers is found by encoding the block twice.
#include "backends/cpu/executable.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/walk.h"
#include "base/round_up.h"

namespace rlx::cpu {

static constexpr size_t kArgsAlignment = 64;

// A pointer in an argument block: a base and an offset.
struct Pointer {
  uint32_t base;
  uint32_t at;  // in the block, in words
  std::ptrdiff_t offset;
};

// What one run keeps for a segment.
class CpuState : public ExecState {
 public:
  HostMemory args;
  std::vector<Launch> launches;      // by step
  std::vector<EncodedPhase> phases;  // of the steps that run next, without those that have no parts; capacity for all
  std::vector<PhaseGroup> groups;    // capacity for all
  enum Stale : uint8_t { kFresh, kStale, kStaleByMove };
  std::vector<Stale> stale;  // by step: whether it must be encoded before it runs
  bool has_stale = true;
  uint64_t sizes_seen = 0, bases_seen = 0;  // the versions that `stale` includes

  // For steps with operands in slots: how a block is updated when a slot moves, and its pointers into slots, with
  // capacity for all words.
  enum Moved : uint8_t {
    kEncode,   // encode again: it holds more than pointers, or was never examined
    kExamine,  // encode again and examine: its slots move from run to run
    kPatch,    // replace its pointers
  };
  std::vector<Moved> on_move;
  std::vector<std::vector<Pointer>> pointers;
  HostMemory probe;            // a block encoded with the slots at other addresses
  std::vector<View> operands;  // of the step at hand; capacity for those of any
};

CpuExecutable::CpuExecutable(std::shared_ptr<const Plan> plan, size_t segment, const Caps& caps,
                             const DeviceContext& context)
    : plan_(std::move(plan)), segment_(plan_->segments[segment]), caps_(caps), context_(context) {
  uses_slots_.resize(count(), 0);
  for (uint32_t i = 0; i < count(); i++) {
    args_at_.push_back(args_bytes_);
    const CpuKernel& row = kernel(i);
    const Node& node = plan_->graph().node(step(i).node);
    compiled_.push_back(row.compile ? row.compile(plan_->graph(), node) : nullptr);
    args_bytes_ += round_up(row.args_bytes(step(i)), kArgsAlignment);
    bool decides = false;  // a size of the run
    if (row.measure && !segment_.is_sized)
      visit_decided_sizes(node, [&](const std::string&, bool is_fresh) { decides |= is_fresh; });
    if (decides) deciding_.push_back(i);
  }
  args_at_.push_back(args_bytes_);
  note_uses();
}

// The steps by what they use, in the order of the ids. A plan may have thousands of segments, so none makes a table of
// all ids of the plan.
std::vector<CpuExecutable::Users> CpuExecutable::grouped(std::vector<Use> uses) {
  std::ranges::sort(uses);
  std::vector<Users> users;
  for (auto [id, step] : uses) {
    if (users.empty() || users.back().id != id) users.push_back({id, {}});
    auto& steps = users.back().steps;
    if (steps.empty() || steps.back() != step) steps.push_back(step);
  }
  return users;
}

void CpuExecutable::note_uses() {
  std::vector<Use> sizes, bases;
  for (uint32_t i = 0; i < count(); i++) {
    for (SizeId id : step(i).depends) sizes.emplace_back(id, i);
    for (auto* list : {&step(i).in, &step(i).out})
      for (const Access& it : *list) {
        if (it.dtype == DType::kNone) continue;
        bases.emplace_back(it.base, i);
        if (plan_->is_slot(it.base)) uses_slots_[i] = 1;
      }
    if (step(i).scratch_bytes) bases.emplace_back(kArenaBase, i);
  }
  by_size_ = grouped(std::move(sizes));
  by_base_ = grouped(std::move(bases));
}

Result<std::unique_ptr<ExecState>> CpuExecutable::make_state() const {
  auto state = std::make_unique<CpuState>();
  state->args = RLX_TRY(HostMemory::allocate(context_.host, args_bytes_, MemoryKind::kScratch));
  std::memset(state->args.data(), 0, args_bytes_);  // find_pointers compares words that no row may have written
  state->launches.resize(count());
  state->phases.reserve(count() * Launch::kMaxPhases);
  state->groups.reserve(count() * Launch::kMaxPhases);
  state->stale.assign(count(), CpuState::kStale);
  state->on_move.resize(count(), CpuState::kExamine);
  state->pointers.resize(count());
  size_t most_bytes = 0, most_operands = 0;
  for (uint32_t i = 0; i < count(); i++) {
    most_operands = std::max(most_operands, step(i).in.size() + step(i).out.size());
    if (!uses_slots_[i]) continue;
    size_t bytes = args_at_[i + 1] - args_at_[i];
    most_bytes = std::max(most_bytes, bytes);
    state->pointers[i].reserve(bytes / sizeof(uintptr_t));
  }
  state->operands.reserve(most_operands);
  state->probe = RLX_TRY(HostMemory::allocate(context_.host, most_bytes, MemoryKind::kScratch));
  return std::unique_ptr<ExecState>(std::move(state));
}

// How far a slot is moved to find the pointers into it. No two distances add up to a third, so the change of a word
// tells which slot it points into. Multiples of 2^16 keep the alignment of memory.
static uintptr_t distance(uint32_t base) {
  return uintptr_t{base} << 36 | uintptr_t{base * 40503u & 0xffff} << 16;
}

// A distant address, from which nothing is read.
static std::byte* moved(const std::byte* place, uintptr_t distance) {
  uintptr_t there = reinterpret_cast<uintptr_t>(place) + distance;
  return reinterpret_cast<std::byte*>(there);  // NOLINT(performance-no-int-to-ptr)
}

// An operand at its present sizes and place, or as if its slot were elsewhere. `view` is empty before.
void CpuExecutable::resolve(const Access& access, const RunArgs& args, Slots slots, View& view) const {
  if (access.dtype == DType::kNone) return;
  view.dtype = access.dtype;
  view.dims = dims_at(access.dims, args.sizes.values);
  view.strides.resize(view.dims.size());
  int64_t stride = 1;
  for (size_t i = view.dims.size(); i-- > 0;) {
    bool is_any = view.dims[i] < 2;  // where no second position is, a step of a slice may be beyond all sizes
    view.strides[i] = access.dense || is_any ? stride : args.sizes.values[access.strides[i]];
    stride *= view.dims[i];
  }
  // Block types have no views: their shift is 0.
  std::byte* base = args.bases.values[access.base].host;
  if (slots == Slots::kElsewhere && plan_->is_slot(access.base)) base = moved(base, distance(access.base));
  view.data = base + access.offset + args.sizes.values[access.shift] * element_bytes(access.dtype);
}

// The result refers to the operands in the state, which the next call replaces.
StepView CpuExecutable::view_of(uint32_t index, const RunArgs& args, Slots slots, CpuState& state) const {
  const Step& own = step(index);
  state.operands.clear();
  for (const auto* list : {&own.in, &own.out})
    for (const Access& it : *list) resolve(it, args, slots, state.operands.emplace_back());
  std::span<const View> all = state.operands;
  return {*plan_,
          own,
          plan_->graph().node(own.node),
          all.first(own.in.size()),
          all.subspan(own.in.size()),
          args.bases.values[kArenaBase].host + own.scratch_offset,
          args.symbols.data(),
          compiled_[index].get()};
}

// Nothing runs where there is nothing to write: loops over rows take time even if the rows are empty.
void CpuExecutable::encode_at(const StepView& view, uint32_t index, std::byte* block, Launch& launch) const {
  const CpuKernel& row = kernel(index);
  auto is_empty = [](const View& it) { return !it || it.count() == 0; };
  if (!row.may_fail && std::ranges::all_of(view.out, is_empty)) return;
  row.encode(view, caps_, block, launch);
}

void CpuExecutable::encode(uint32_t index, const RunArgs& args, CpuState& state) const {
  state.launches[index] = {};
  StepView view = view_of(index, args, Slots::kHere, state);
  encode_at(view, index, state.args.data() + args_at_[index], state.launches[index]);
}

// Lists the phases of steps [first, last) for the walk.
void CpuExecutable::list_phases(uint32_t first, uint32_t last, CpuState& state) const {
  state.phases.clear();
  for (uint32_t i = first; i < last; i++)
    for (const Launch::Phase& phase : state.launches[i].phases)
      if (phase.parts > 0) state.phases.push_back({state.args.data() + args_at_[i], phase, kernel(i).keeps_denormals});
  group_phases(state.phases, state.groups);
}

// Finds the words of a block that are pointers into slots. It encodes the block once more with the slots at other
// addresses: a word that changes by the distance of a slot is a pointer into it. If anything else differs, the block is
// encoded again whenever a slot moves. Blocks of bodies are examined at once, because their slots move at every trip;
// others when a slot moves for the first time.
void CpuExecutable::find_pointers(uint32_t index, const RunArgs& args, CpuState& state) const {
  std::vector<Pointer>& pointers = state.pointers[index];
  pointers.clear();
  size_t bytes = args_at_[index + 1] - args_at_[index];
  std::memcpy(state.probe.data(), state.args.data() + args_at_[index], bytes);
  Launch launch;
  encode_at(view_of(index, args, Slots::kElsewhere, state), index, state.probe.data(), launch);
  auto* here = reinterpret_cast<const uintptr_t*>(state.args.data() + args_at_[index]);
  auto* there = reinterpret_cast<const uintptr_t*>(state.probe.data());
  state.on_move[index] = launch == state.launches[index] ? CpuState::kPatch : CpuState::kEncode;
  for (uint32_t at = 0; at < bytes / sizeof(uintptr_t); at++) {
    uintptr_t change = there[at] - here[at];
    if (!change) continue;
    auto base = static_cast<uint32_t>(change >> 36);
    bool is_pointer = plan_->is_slot(base) && change == distance(base);
    if (is_pointer)
      pointers.push_back(
          {base, at,
           static_cast<std::ptrdiff_t>(here[at] - reinterpret_cast<uintptr_t>(args.bases.values[base].host))});
    else
      state.on_move[index] = CpuState::kEncode;
  }
}

void CpuExecutable::move_slot(const Users& slot, const RunArgs& args, CpuState& state) const {
  for (uint32_t index : slot.steps) {
    if (state.stale[index] != CpuState::kFresh) continue;
    if (state.on_move[index] != CpuState::kPatch) {
      state.stale[index] = state.on_move[index] == CpuState::kExamine ? CpuState::kStaleByMove : CpuState::kStale;
      state.has_stale = true;
      continue;
    }
    auto* words = reinterpret_cast<uintptr_t*>(state.args.data() + args_at_[index]);
    auto place = reinterpret_cast<uintptr_t>(args.bases.values[slot.id].host);
    for (const Pointer& pointer : state.pointers[index])
      if (pointer.base == slot.id) words[pointer.at] = place + static_cast<uintptr_t>(pointer.offset);
  }
}

void CpuExecutable::mark_stale(std::span<const uint32_t> steps, CpuState& state) {
  for (uint32_t step : steps) state.stale[step] = CpuState::kStale;
  state.has_stale = true;
}

void CpuExecutable::note_changes(const RunArgs& args, CpuState& state) const {
  if (state.sizes_seen != *args.sizes.newest) {
    for (const Users& size : by_size_)
      if (args.sizes.changed[size.id] > state.sizes_seen) mark_stale(size.steps, state);
    state.sizes_seen = *args.sizes.newest;
  }
  if (state.bases_seen != *args.bases.newest) {
    for (const Users& base : by_base_)
      if (args.bases.changed[base.id] > state.bases_seen)
        plan_->is_slot(base.id) ? move_slot(base, args, state) : mark_stale(base.steps, state);
    state.bases_seen = *args.bases.newest;
  }
}

void CpuExecutable::encode_stale(uint32_t first, uint32_t last, const RunArgs& args, CpuState& state) const {
  for (uint32_t i = first; i < last; i++) {
    if (state.stale[i] == CpuState::kFresh) continue;
    encode(i, args, state);
    bool has_moved = plan_->is_body || state.stale[i] == CpuState::kStaleByMove;
    if (uses_slots_[i] && has_moved)
      find_pointers(i, args, state);
    else if (state.on_move[i] == CpuState::kPatch)
      state.on_move[i] = CpuState::kExamine;
    state.stale[i] = CpuState::kFresh;
  }
}

// Sets a size that a step has decided. Only what names it is looked at: a run may decide thousands of sizes.
Status CpuExecutable::set_size(uint32_t symbol, int64_t size, const RunArgs& args, CpuState& state) const {
  RLX_TRY((*args.set_size)(symbol, size));
  for (SizeId id : plan_->symbols[symbol].sizes) {
    if (args.sizes.changed[id] <= state.sizes_seen) continue;
    auto found = std::ranges::lower_bound(by_size_, id, {}, &Users::id);
    if (found != by_size_.end() && found->id == id) mark_stale(found->steps, state);
  }
  state.sizes_seen = *args.sizes.newest;
  return {};
}

// The step sets the sizes that it decides. Steps that depend on them are encoded before they run.
Status CpuExecutable::measure(uint32_t index, const RunArgs& args, CpuState& state) const {
  auto set = [&](uint32_t symbol, int64_t size) { return set_size(symbol, size, args, state); };
  RLX_TRY(kernel(index).measure(view_of(index, args, Slots::kHere, state), set));
  note_changes(args, state);
  return {};
}

// Only steps of the range are encoded and listed: a segment may decide thousands of sizes, one after the other.
Status CpuExecutable::walk_range(uint32_t first, uint32_t last, const RunArgs& args, CpuState& state) const {
  if (state.has_stale) encode_stale(first, last, args, state);
  list_phases(first, last, state);
  return walk(state.phases, state.groups, *context_.pool, args.threads, args.cancel);
}

Status CpuExecutable::run(const RunArgs& args, ExecState& own) const {
  auto& state = static_cast<CpuState&>(own);
  note_changes(args, state);
  if (!deciding_.empty()) return run_deciding(args, state);
  if (state.has_stale) {
    encode_stale(0, count(), args, state);
    list_phases(0, count(), state);
    state.has_stale = false;
  }
  if (segment_.is_sized) return walk_alone(state.phases, args.cancel);
  return walk(state.phases, state.groups, *context_.pool, args.threads, args.cancel);
}

Status CpuExecutable::run_deciding(const RunArgs& args, CpuState& state) const {
  uint32_t next = 0;
  for (uint32_t index : deciding_) {
    RLX_TRY(walk_range(next, index, args, state));
    RLX_TRY(measure(index, args, state));
    next = index;
  }
  RLX_TRY(walk_range(next, count(), args, state));
  state.has_stale = false;
  return {};
}

Result<Fence> CpuExecutable::submit(const RunArgs& args, ExecState& state) const {
  return Fence::finished(run(args, state));
}

}  // namespace rlx::cpu
