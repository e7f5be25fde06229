// SPDX-License-Identifier: Apache-2.0
// Plan: the final graph as an ordered list of steps whose operands have fixed places, for all sizes up to upper ones.
// Immutable and pure data: it can be printed, compared and executed by any backend. Invariant: two buffers of one
// region that are alive at the same step never overlap, at any sizes up to the upper ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/facts.h"
#include "ir/graph.h"
#include "plan/kernel.h"

namespace rlx {

// A value that is computed when params are set, in the form that its readers want.
struct Resident {
  Value value;
  const Kernel* kernel = nullptr;  // whose form it is, for node `reader`; null: dense as it is
  uint32_t reader = 0;
  std::string packing;
  size_t bytes = 0;
};

// A graph with a kernel chosen for every node that runs: what plans of all sizes have in common.
struct Lowered {
  Graph graph;
  KernelOptions options;
  std::vector<Phase> phases;           // by node
  std::vector<const Kernel*> kernels;  // by node; null for leaves and resident nodes
  std::vector<Resident> residents;
  uint32_t resident_of(uint32_t reader, size_t input) const;  // index into residents
  uint32_t dense_resident(Value value) const;
  KernelQuery query(uint32_t node) const { return {graph, graph.node(node), options, phases}; }
};
Lowered lower(Graph graph, KernelOptions options, std::vector<const Kernel*> kernels, bool with_prologue);

using SizeId = uint32_t;  // into Plan::sizes

// Where a run finds bytes: the arena, the region of values that depend on sizes only, then one base per input slot,
// output slot and resident value.
enum BaseIndex : uint32_t { kArenaBase = 0, kSizedBase = 1, kFirstSlotBase = 2 };

// One operand of a step. Dims are of now: SizeIds. A dense one is row-major; else `strides` count elements.
struct Access {
  DType dtype = DType::kNone;  // kNone: absent
  uint32_t base = 0;
  int64_t offset = 0;  // of the buffer in its base, in bytes: fixed
  SizeId shift = 0;    // of the view in the buffer, in elements
  SmallVector<SizeId, kMaxRank> dims;
  SmallVector<SizeId, kMaxRank> strides;
  bool dense = true;
  uint32_t buffer = UINT32_MAX;  // into Plan::buffers
};

struct Step {
  uint32_t node = 0;
  const Kernel* kernel = nullptr;        // null: copies in[0], a view, to out[0], which is dense
  std::vector<Access> in, out;           // in: one per port of the op, then further variadic ones, then body_params
  std::vector<std::string> body_params;  // params that sub-graphs of the node read
  int64_t scratch_offset = 0;            // in the arena
  size_t scratch_bytes = 0;
  std::vector<SizeId> depends;  // all sizes that its operands and attributes use
};

struct PlanBuffer {
  std::string name;  // of the value, for reports
  uint32_t base = 0;
  int64_t offset = 0;
  int64_t bytes = 0;             // at the upper sizes
  uint32_t first = 0, last = 0;  // steps
};

struct PlanSymbol {
  static constexpr uint32_t kGiven = UINT32_MAX;
  std::string name;
  Interval range;             // declared
  int64_t upper;              // planned
  uint32_t made_by = kGiven;  // the step before which the run learns it; kGiven: known before the run
  bool is_fresh() const { return made_by != kGiven; }
};

struct PlanSlot {
  SmallVector<SizeId, kMaxRank> dims;
  Dims upper;
  int64_t bytes = 0;  // at the upper sizes
};

using UpperSizes = std::vector<std::pair<std::string, int64_t>>;

struct Plan {
  std::shared_ptr<const Lowered> lowered;
  std::vector<PlanSymbol> symbols;
  std::vector<Dim> sizes;   // the size table: every distinct dim of the plan
  std::vector<Step> steps;  // those before `first_run_step` run when sizes have changed
  uint32_t first_run_step = 0;
  std::vector<PlanBuffer> buffers;
  std::vector<PlanSlot> inputs, outputs;
  int64_t arena_bytes = 0, sized_bytes = 0;

  // The last step before which a symbol of this dim becomes known in the run; kGiven where all are known before it.
  uint32_t known_at(const Dim& dim) const;
  const Graph& graph() const { return lowered->graph; }
  uint32_t input_base(size_t slot) const { return kFirstSlotBase + static_cast<uint32_t>(slot); }
  uint32_t output_base(size_t slot) const { return input_base(inputs.size() + slot); }
  uint32_t resident_base(size_t index) const { return output_base(outputs.size() + index); }
  size_t base_count() const { return resident_base(lowered->residents.size()); }
};

// RLX_E_SHAPE naming every symbol that has neither an upper size nor a declared maximum.
Result<std::shared_ptr<const Plan>> make_plan(std::shared_ptr<const Lowered> lowered, const UpperSizes& upper);

std::string plan_text(const Plan& plan);    // for people: comments of the text form
std::string memory_json(const Plan& plan);  // the memory report

}  // namespace rlx
