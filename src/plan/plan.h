// SPDX-License-Identifier: Apache-2.0
// Plan: the final graph as an ordered list of steps whose operands have fixed offsets, for all sizes up to the upper
// ones. It is immutable data: it can be printed, compared and executed by any backend. Invariant: two buffers of one
// base that are alive at the same step never overlap, at any sizes up to the upper ones, except where a step writes one
// over the other (PlanBuffer::over).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "base/hash.h"
#include "ir/facts.h"
#include "ir/graph.h"
#include "plan/kernel.h"

namespace rlx {

struct LoweredGraph;

// A value that is computed when params are set, in the form that its readers take.
struct Resident {
  Value value;                          // of the graph of `scope`
  const LoweredGraph* scope = nullptr;  // the program, or the body that reads it
  std::optional<Form> form = {};        // none: dense as it is
  uint32_t reader = 0;                  // the first node that reads a packed one
  bool on_host = false;                 // a step on the host reads it
  // Of a program with bodies.
  uint32_t expression = 0;  // the same in all that compute the same
  uint64_t readers = 0;     // a hash: the same if the same bodies read it

  bool is_set() const;    // a param or constant, not computed
  int64_t bytes() const;  // beyond what is set: packed, or computed. A plan refuses what cannot be counted
};

// A body of a node. It shares residents with the graph around it and with other bodies.
struct LoweredBody {
  std::shared_ptr<const LoweredGraph> lowered;
  std::vector<uint32_t> residents;  // by resident of the body: its index in the list of the graph around it
};

// A graph with a kernel for every node that runs: what the plans of all sizes have in common.
struct LoweredGraph {
  Graph graph;
  KernelOptions options;
  int64_t alignment = 64;                               // of every buffer, in bytes
  std::vector<Phase> phases;                            // by node
  std::vector<const Kernel*> kernels;                   // by node; null for leaves and resident nodes
  std::vector<bool> on_host;                            // by node: its kernel is the host's
  std::vector<Resident> residents;                      // of the graph, then what only its bodies read
  size_t own_residents = 0;                             // how many of them the graph itself reads
  std::map<uint32_t, std::vector<LoweredBody>> bodies;  // by node of control flow, in the order of body_attrs
  bool has_effects = false;                             // a run does more than to compute its outputs

  // Indices in `residents`: of what a node reads, and of a dense value.
  uint32_t resident_of(uint32_t reader, size_t input) const { return of_input[reader][input]; }
  uint32_t dense_resident(Value value) const { return of_value[value.node][value.output]; }
  int64_t prepared_bytes() const;
  KernelQuery query(uint32_t node) const { return {graph, graph.node(node), options, phases}; }

  static constexpr uint32_t kNone = UINT32_MAX;
  ByValue<uint32_t> of_value;                        // kNone: no dense resident
  std::vector<InlinedVector<uint32_t, 2>> of_input;  // [node][input]; kNone: not resident
};

using KernelOf = FunctionRef<Found(const Facts&, uint32_t node)>;
struct LowerOptions {
  KernelOptions kernels;
  int64_t alignment = 64;  // the largest that a device asks for, at least 64
  bool whole = false;      // the device takes the graph itself: nothing is prepared, bodies have no plans
};
Result<std::shared_ptr<const LoweredGraph>> lower(Graph graph, const LowerOptions& options, KernelOf kernel_of);

using SizeId = uint32_t;  // into Plan::sizes
using SizeIds = StaticVector<SizeId, kMaxRank>;
Dims dims_at(std::span<const SizeId> ids, std::span<const int64_t> sizes);  // in a run

// Where a run finds bytes: the arena, the values that depend on sizes only, then one base per input slot, output slot,
// resident value and room.
enum BaseIndex : uint32_t { kArenaBase = 0, kSizedBase = 1, kFirstSlotBase = 2 };

// One operand of a step. Its dims are those of the run, as SizeIds. A dense operand is row-major; otherwise `strides`
// count elements.
struct Access {
  DType dtype = DType::kNone;  // kNone: absent
  uint32_t base = 0;
  int64_t offset = 0;  // of the buffer in its base, in bytes; fixed for all sizes
  SizeId shift = 0;    // of the view in the buffer, in elements
  SizeIds dims;
  SizeIds strides;
  bool dense = true;
  static constexpr uint32_t kNoBuffer = UINT32_MAX;
  uint32_t buffer = kNoBuffer;  // into Plan::buffers
};

struct Plan;

struct Step {
  uint32_t node = 0;
  const Kernel* kernel = nullptr;  // null: copies in[0], a view, to out[0], which is dense
  std::vector<Access> in, out;     // in: one per port of the op, then the other variadic inputs
  int64_t scratch_offset = 0;      // in the arena
  size_t scratch_bytes = 0;
  std::vector<SizeId> depends;  // the sizes of the operands and, unless it copies or is control flow, of the attributes
  uint32_t control = kNoControl;  // into Plan::controls
  bool on_host = false;           // runs on the host, not on the device
  static constexpr uint32_t kNoControl = UINT32_MAX;
};

// A room: memory outside the arena, for a buffer or output whose largest size is not known before a run. It grows.
struct PlanRoom {
  uint32_t base = 0;
  DType dtype = DType::kNone;
  SizeIds dims;
  uint32_t known = 0;  // the step that finds the last of its sizes; PlanSymbol::kGiven: none does
};

struct PlanBuffer {
  std::string name;  // of the value, for reports
  uint32_t base = 0;
  int64_t offset = 0;
  int64_t bytes = 0;             // at the upper sizes
  uint32_t first = 0, last = 0;  // steps
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t over = kNone;  // the buffer that this one is written over; its first step reads that one for the last time
};

struct PlanSymbol {
  static constexpr uint32_t kGiven = UINT32_MAX;
  std::string name;
  Interval range;                // declared
  int64_t upper;                 // planned
  bool is_open = false;          // no bound, or none that memory is reserved for: buffers of this size lie in rooms
  uint32_t made_by = kGiven;     // the step that decides the size, known to all later ones; kGiven: before the run
  std::vector<SizeId> sizes;     // entries of the size table that name it
  std::vector<uint32_t> guards;  // those that can be checked once this size is known
  bool is_fresh() const { return made_by != kGiven; }
  // Which of two such steps is the later one; kGiven comes before all.
  static uint32_t later(uint32_t a, uint32_t b) { return a == kGiven || (b != kGiven && b > a) ? b : a; }
};

struct PlanSlot {
  SizeIds dims;
  Dims upper;
  int64_t bytes = 0;             // at the upper sizes
  bool is_open = false;          // no upper size is known: it lies in a room
  bool may_be_unaligned = true;  // of an input: all its readers take unaligned bytes
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t shows = kNone;  // of an output that no step writes: the input whose bytes it has
};

// Symbols with their upper sizes. Interval::kUnbounded: the symbol is open.
using UpperSizes = std::vector<std::pair<std::string, int64_t>>;

// A size that is one of two other sizes, chosen by a condition on sizes.
struct ChosenSize {
  uint32_t symbol;
  Dim when, then, otherwise;
};

// A symbol that gets its size from an axis of an input or output of a control step.
struct AxisSize {
  uint32_t slot, axis, symbol;
};

// Where the trips of a loop write a carry.
struct Carry {
  enum class Way : uint8_t {
    kRotates,  // to the result and to the spare places in turn
    kStays,    // to the result, over the value of the trip before
    kPasses    // nowhere: the next value is that of an input of the body, which stays at its place
  } way;
  uint32_t from = 0;  // of kPasses: this input
  // Of kRotates: offsets in the scratch. A value that other carries pass on for d trips needs d + 1 of them. A carry in
  // rooms has as many spare rooms instead.
  std::vector<int64_t> spares = {};
};

// The plan of a body, beside the plan around it.
struct PlanBody {
  std::shared_ptr<const Plan> plan;
  int64_t sized_offset = 0;         // its sized values, within the sized region of the plan around it
  std::vector<uint32_t> residents;  // by resident of the body: its index in the list of the plan around it
  std::vector<uint32_t> symbols;    // by symbol of the body: the symbol of the plan around it; kNoSymbol: its own
  std::vector<AxisSize> carried;    // its own symbols that its inputs set at every trip
};

// What a step of control flow has besides its operands. Offsets are relative to its scratch, which begins with the
// arena that its bodies share.
struct Control {
  static constexpr SizeId kByData = UINT32_MAX;
  uint32_t step = 0;
  std::vector<PlanBody> bodies;  // in the order of body_attrs
  std::vector<Carry> carries;
  std::vector<std::optional<int64_t>> out_bytes;  // by output, at the upper sizes; none: it lies in a room
  std::vector<AxisSize> decides;                  // symbols of the plan that its outputs may set
  int64_t flag_offset = 0;                        // where the value of the condition lies
  SizeId length = 0;                              // the trips of a scan without xs
  SizeId when = kByData;                          // of an `if` that sizes decide: the entry that is 0 where `else` runs
};

// An output and an input slot of one type that share their memory.
struct SlotAlias {
  size_t output, input;
  std::string why_copied = {};  // not empty: the output is computed elsewhere and copied at the end
};

// Consecutive steps that are executed together: by an executable of the device, by one of the host (for steps without a
// kernel on the device) or, for a single step of control flow, by the runtime itself.
struct Segment {
  uint32_t first, last;  // steps [first, last)
  bool is_sized;         // runs when sizes have changed
  uint32_t control = Step::kNoControl;
  bool on_host = false;
};

struct Plan {
  static constexpr uint32_t kNoSymbol = UINT32_MAX, kNoSlot = UINT32_MAX;

  std::shared_ptr<const LoweredGraph> lowered;
  std::vector<PlanSymbol> symbols;
  ByName<uint32_t> symbol_ids;
  std::vector<Dim> sizes;   // the size table: every distinct dim of the plan
  std::vector<Step> steps;  // those before `first_run_step` run when sizes have changed
  uint32_t first_run_step = 0;
  std::vector<Segment> segments;  // in the order of their steps, each step once; at least one runs in every run
  std::vector<PlanBuffer> buffers;
  std::vector<PlanRoom> rooms;
  std::vector<ChosenSize> chosen;  // each after those on which it depends
  std::vector<PlanSlot> inputs, outputs;
  std::vector<SlotAlias> aliases;      // at most one per slot
  std::vector<Control> controls;       // in the order of their steps
  bool is_body = false;                // its slots move from trip to trip
  size_t carries = 0;                  // of the body of a loop: its first outputs become its first inputs
  std::vector<Guard> early_guards;     // beside those of the graph (plan/early_guards.h)
  std::vector<uint32_t> given_guards;  // those that can be checked before the run
  int64_t arena_bytes = 0, sized_bytes = 0;

  uint32_t symbol(std::string_view name) const;  // or kNoSymbol
  // The step that finds the last symbol of this dim; kGiven if all are known before the run.
  uint32_t known_at(const Dim& dim) const;
  uint32_t known_at(std::span<const SizeId> dims) const;
  std::vector<Dim> dims(std::span<const SizeId> ids) const;
  const Graph& graph() const { return lowered->graph; }
  size_t guard_count() const { return graph().guards().size() + early_guards.size(); }
  const Guard& guard(size_t index) const {
    size_t of_graph = graph().guards().size();
    return index < of_graph ? graph().guards()[index] : early_guards[index - of_graph];
  }
  uint32_t input_base(size_t slot) const { return kFirstSlotBase + static_cast<uint32_t>(slot); }
  uint32_t output_base(size_t slot) const { return input_base(inputs.size() + slot); }
  uint32_t resident_base(size_t index) const { return output_base(outputs.size() + index); }
  uint32_t room_base(size_t index) const { return resident_base(lowered->residents.size()) + uint32_t(index); }
  size_t base_count() const { return room_base(rooms.size()); }
  // Whose base it is, or kNoSlot.
  uint32_t input_slot(uint32_t base) const {
    return is_slot(base) && base < output_base(0) ? base - input_base(0) : kNoSlot;
  }
  uint32_t output_slot(uint32_t base) const {
    return is_slot(base) && base >= output_base(0) ? base - output_base(0) : kNoSlot;
  }
  bool is_slot(uint32_t base) const { return base >= kFirstSlotBase && base < resident_base(0); }
};

// RLX_E_SHAPE naming every symbol that has neither an upper size nor a declared maximum.
Result<std::shared_ptr<const Plan>> make_plan(std::shared_ptr<const LoweredGraph> lowered, const UpperSizes& upper,
                                              std::span<const SlotAlias> aliases = {});

// The plan of a body. `upper` may name symbols that the body does not have. The first `carries` inputs and outputs
// should share their memory where they can.
Result<std::shared_ptr<const Plan>> make_body_plan(std::shared_ptr<const LoweredGraph> lowered, const UpperSizes& upper,
                                                   size_t carries = 0);

std::string plan_text(const Plan& plan);    // for people: comments of the text form
std::string memory_json(const Plan& plan);  // the memory report

// What takes memory beside the slots: buffers, the scratch of kernels, places of carries; those of bodies too.
struct MemoryPart {
  std::string name;    // of a value, for a buffer
  std::string body;    // "scan 'y' (%3) body", which holds it; empty: the plan itself does
  std::string region;  // "arena", "sized" or a room of the plan or body
  int64_t offset = 0;  // in this region of the whole plan
  int64_t bytes = 0;
  uint32_t first = 0, last = 0;  // steps of the plan or body
  std::string over = {};         // the buffer that it is written over

  std::string text() const { return body.empty() ? name : body + ": " + name; }
};
std::vector<MemoryPart> memory_parts(const Plan& plan);

}  // namespace rlx
