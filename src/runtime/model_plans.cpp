// SPDX-License-Identifier: Apache-2.0
// The plans of a model: the sizes of a call, a plan that fits them, and the upper sizes of a new one.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/nearest.h"
#include "base/size_failure.h"
#include "runtime/match_names.h"
#include "runtime/model.h"
#include "runtime/sizes.h"

namespace rlx {

static Status wrong_input(const std::string& name, const ValueType& type, const Tensor& got) {
  std::string text = type_text(got.dtype(), got.dims());
  return Status(Code::kShape, format("the input '{}' is {}, not {}", name, type, text))
      .with("value", name)
      .with("expected", text_of(type))
      .with("got", text);
}

Result<Model::Sizes> Model::sizes_of(std::span<const std::string_view> names, std::span<const Tensor> in) const {
  std::span<const uint32_t> inputs = graph_.inputs();
  std::unordered_map<uint32_t, int64_t> input_of;  // by node
  for (size_t i = 0; i < inputs.size() && !names.empty(); i++) input_of.emplace(inputs[i], static_cast<int64_t>(i));
  auto find_input = [&](std::string_view name) -> int64_t {
    auto leaf = graph_.find_leaf(name);
    auto found = leaf ? input_of.find(leaf->node) : input_of.end();
    return found == input_of.end() ? -1 : found->second;
  };
  auto name_of = [&](size_t i) -> std::string_view { return graph_.leaf_name(inputs[i]); };
  auto places = RLX_TRY(match_names({"input", inputs.size(), find_input, name_of}, names, in.size(), Required::kAll));
  std::vector<std::string_view> symbols;
  std::vector<Interval> ranges;
  for (const auto& [name, range] : graph_.symbols()) {
    symbols.push_back(name);
    ranges.push_back(range);
  }
  std::vector<GivenDims> given;
  for (size_t i = 0; i < in.size(); i++) {
    uint32_t node = inputs[places[i]];
    const ValueType& type = graph_.type({node, 0});
    if (has_open_rank(graph_.leaf_name(node))) continue;
    if (in[i].rank() != type.rank()) return wrong_input(graph_.leaf_name(node), type, in[i]);
    given.push_back({&type, in[i].dims(), graph_.leaf_name(node)});
  }
  std::vector<std::optional<int64_t>> solved = RLX_TRY(solve_symbols(symbols, given, ranges));
  Sizes sizes;
  for (size_t i = 0; i < symbols.size(); i++)
    if (solved[i]) sizes.emplace_back(symbols[i], *solved[i]);
  return sizes;
}

static const PlanSymbol* find_symbol(const Program& program, std::string_view name) {
  const Plan& plan = program.plan();
  uint32_t index = plan.symbol(name);
  return index == Plan::kNoSymbol ? nullptr : &plan.symbols[index];
}

static int64_t next_power_of_two(int64_t size) {
  return size <= 1 ? size : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size)));
}

// A larger arena is released while all runs are far smaller.
static constexpr int64_t kLargeArena = int64_t{16} << 20;

static bool serves(const Program& program, const PlanSymbol& symbol, int64_t size) {
  return symbol.upper >= size && (program.plan().arena_bytes <= kLargeArena || symbol.upper / 8 <= size);
}

// The end of the bucket that a size falls into; nullopt if its symbol has no buckets.
static std::optional<int64_t> bucket_end(const Policy& policy, std::string_view name, int64_t size) {
  auto found = policy.buckets.find(name);
  if (found == policy.buckets.end()) return std::nullopt;
  const std::vector<int64_t>& ends = found->second;
  auto end = std::lower_bound(ends.begin(), ends.end(), size);
  return ends.empty() ? next_power_of_two(size) : end == ends.end() ? size : *end;
}

static Status above_policy(std::string_view name, int64_t size, int64_t upper) {
  return Status(Code::kRange,
                format("the size '{}' = {} is above {}, which dims.{} of the policy allows", name, size, upper, name))
      .with("value", name)
      .with("expected", format("at most {}", upper))
      .with("got", std::to_string(size))
      .with(kDependsOnSizes, "1");
}

// The upper sizes of a new plan: the end of a bucket; without buckets, the exact size in the first plan, and a power of
// two once all plans are too small.
Result<UpperSizes> Model::upper_sizes(const OnDevice& on, const Sizes& sizes, const Policy& policy) const {
  UpperSizes upper = RLX_TRY(parse_compile_options(policy.options)).dims;
  std::unordered_map<std::string, int64_t> of_policy(upper.begin(), upper.end());
  for (const auto& [name, size] : sizes) {
    if (auto given = of_policy.find(name); given != of_policy.end()) {
      if (size > given->second) return above_policy(name, size, given->second);
      continue;
    }
    int64_t chosen = size;
    if (auto end = bucket_end(policy, name, size)) {
      chosen = *end;
    } else if (!on.programs.empty()) {
      int64_t smallest = INT64_MAX;
      for (const auto& program : on.programs)
        if (const PlanSymbol* known = find_symbol(*program, name); known && serves(*program, *known, size))
          smallest = std::min(smallest, known->upper);
      chosen = smallest != INT64_MAX ? smallest : next_power_of_two(size);
    }
    upper.emplace_back(name, std::max(size, std::min(chosen, graph_.symbol_range(name).hi)));
  }
  return upper;
}

// Whether the program serves these sizes. It also does if its plan is far larger, but the policy gives the upper size:
// another plan would have the same one.
static bool fits(const Program& program, const Model::Sizes& sizes, const Policy& policy) {
  return std::all_of(sizes.begin(), sizes.end(), [&](const auto& pair) {
    const auto& [name, size] = pair;
    const PlanSymbol* symbol = find_symbol(program, name);
    if (!symbol || serves(program, *symbol, size)) return true;
    bool is_given = std::ranges::any_of(program.compiled_graph().options.dims,
                                        [&](const auto& it) { return it.first == pair.first; });
    return symbol->upper >= size && (is_given || bucket_end(policy, name, size) == symbol->upper);
  });
}

void Model::log_hit(const Device& device) const {
  env_->host()->log(LogLevel::kTrace, "plan",
                    [&] { return format("a plan for {} is there and fits", device.info().name); });
}

// Releases the contexts of a program with a large arena, because runs have other sizes now. To make a context again
// takes less time than a run of such a program.
void Model::retire_if_large(Program& program) {
  if (program.plan().arena_bytes > kLargeArena) program.retire();
}

// A new plan needs all open sizes. So leaving one out is an error even where an existing plan would serve.
Status Model::check_all_wanted(std::unordered_set<std::string_view> known, const UpperSizes& of_policy,
                               std::string_view advice) const {
  std::vector<DecidedSize> decided = decided_sizes(graph_);
  for (const DecidedSize& it : decided) known.insert(it.symbol);
  for (const auto& [name, size] : of_policy) known.insert(name);
  std::vector<std::string_view> missing;
  for (const auto& [name, range] : graph_.symbols())
    if (range.hi == Interval::kUnbounded && !known.contains(name)) missing.push_back(name);
  if (missing.empty()) return {};
  return Status(Code::kShape, format("a size is missing for {}: {} dims.{} in the policy, or declare a maximum",
                                     listed(missing), advice, missing[0]))
      .with("value", missing[0])
      .with("expected", listed(missing));
}

Result<std::shared_ptr<Program>> Model::program_for_sizes(Device* device, const Sizes& sizes) {
  std::shared_ptr<OnDevice> on = RLX_TRY(on_device(device));
  Turn turn(turns_, device);
  std::shared_ptr<Program> outgrown;  // released without the lock
  std::unique_lock lock(mutex_);
  do {
    std::shared_ptr<Program> best;
    for (const auto& program : on->programs)
      if (fits(*program, sizes, *policy_) && (!best || program->plan().arena_bytes < best->plan().arena_bytes))
        best = program;
    if (best) {
      lock.unlock();
      log_hit(*device);
      return best;
    }
  } while (!turn.begin(lock));
  std::shared_ptr<const Policy> policy = policy_;
  UpperSizes upper = RLX_TRY(upper_sizes(*on, sizes, *policy));
  lock.unlock();
  auto planned = Program::plan(on->params, upper);
  if (!planned.ok() && planned.status().code() == Code::kRange)  // a plan for exactly these sizes may be within range
    return std::move(planned).status().with(kDependsOnSizes, "1");
  if (!planned.ok() && planned.status().code() == Code::kShape)
    RLX_TRY(check_all_wanted({}, upper, "the inputs do not decide it: give"));
  std::shared_ptr<Program> made = RLX_TRY(std::move(planned));
  std::shared_ptr<const LastCall> last;
  lock.lock();
  last.swap(last_call_);
  if (on->programs.size() >= policy->capacity) {
    outgrown = on->programs.front();
    on->programs.erase(on->programs.begin());
  }
  on->programs.push_back(made);
  lock.unlock();
  if (last) retire_if_large(*last->program);
  return made;
}

}  // namespace rlx
