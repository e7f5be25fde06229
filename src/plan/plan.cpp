// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>
#include <map>

#include "plan/packing.h"
#include "plan/views.h"

namespace rlx {

namespace {

struct DimLess {
  bool operator()(const Dim& a, const Dim& b) const { return Dim::compare(a, b) < 0; }
};

class Planner {
 public:
  explicit Planner(std::shared_ptr<const Lowered> lowered)
      : lowered_(*lowered), graph_(lowered->graph), plan_(std::make_shared<Plan>()) {
    plan_->lowered = std::move(lowered);
  }

  Result<std::shared_ptr<const Plan>> run(const UpperSizes& upper) {
    RLX_TRY(set_symbols(upper));
    size_id(0);  // the shift of whatever has none
    layouts_ = choose_layouts(lowered_);
    RLX_TRY(set_slots());
    RLX_TRY(add_buffers());
    step_of_.resize(graph_.nodes().size(), PlanSymbol::kGiven);
    for (Phase phase : {Phase::kSized, Phase::kRun}) {
      if (phase == Phase::kRun) plan_->first_run_step = static_cast<uint32_t>(plan_->steps.size());
      for (uint32_t node = 0; node < graph_.nodes().size(); node++)
        if (lowered_.phases[node] == phase) RLX_TRY(add_step(node));
    }
    add_output_copies();
    for (const auto& [name, node] : decided_sizes(graph_))
      for (PlanSymbol& symbol : plan_->symbols)
        if (symbol.name == name) symbol.made_by = step_of_[node];
    place_buffers();
    return std::shared_ptr<const Plan>(std::move(plan_));
  }

 private:
  // ---- sizes ----

  Status set_symbols(const UpperSizes& upper) {
    std::string open;
    std::vector<DecidedSize> fresh = decided_sizes(graph_);
    RLX_TRY(check_sources(fresh));
    for (const auto& [name, range] : graph_.symbols()) {
      int64_t size = range.hi;
      for (const auto& [symbol, node] : fresh)
        if (symbol == name) size = most_of(graph_.node(node), size);
      for (const auto& [wanted, value] : upper)
        if (wanted == name) size = value;
      if (size >= Interval::kUnbounded) open += (open.empty() ? "'" : ", '") + name + "'";
      if (size < range.lo || size > range.hi)
        return Status(Code::kRange,
                      format("the size '{}' = {} is outside its range [{}, {}]", name, size, range.lo, range.hi))
            .with("value", name);
      plan_->symbols.push_back({name, range, size});
    }
    if (!open.empty())
      return Status(Code::kShape, "no upper size for " + open + ": set dims.<symbol>, or declare a maximum");
    return {};
  }

  // A size that the run finds comes from one node, and from no input: kernels read an input at the size it has.
  Status check_sources(const std::vector<DecidedSize>& fresh) const {
    auto refuse = [&](const std::string& symbol, uint32_t node, const std::string& other) {
      return Status(Code::kShape, "the size '" + symbol + "', which " + graph_.describe(node) +
                                      " finds in its data, is also that of " + other)
          .with("value", symbol);
    };
    for (const auto& [symbol, node] : fresh) {
      for (const auto& [other, other_node] : fresh)
        if (other == symbol && other_node > node) return refuse(symbol, node, graph_.describe(other_node));
      for (uint32_t input : graph_.inputs())
        for (const Dim& dim : graph_.node(input).out[0].dims) {
          bool mentions = false;
          visit_symbols(dim, [&, &symbol = symbol](const std::string& name) { mentions |= name == symbol; });
          if (mentions) return refuse(symbol, node, "the input '" + graph_.leaf_name(input) + "'");
        }
    }
    return {};
  }

  // What a fresh symbol is planned at: its node's `max` at the upper sizes, where that says more than its range.
  int64_t most_of(const Node& node, int64_t declared) const {
    if (node.op != Op::kDynamicIota || !node.attrs.has("max")) return declared;
    return std::min(declared, range(node.attrs.dim("max")).hi);
  }

  Interval range(const Dim& dim) const {
    return range_of(dim, [this](std::string_view name) -> Interval {
      for (const PlanSymbol& symbol : plan_->symbols)
        if (symbol.name == name) return {symbol.range.lo, symbol.upper};
      return {};
    });
  }

  SizeId size_id(const Dim& dim) {
    auto [found, is_new] = size_ids_.emplace(dim, static_cast<SizeId>(plan_->sizes.size()));
    if (is_new) plan_->sizes.push_back(dim);
    return found->second;
  }

  SmallVector<SizeId, kMaxRank> size_ids(std::span<const Dim> dims) {
    SmallVector<SizeId, kMaxRank> ids;
    for (const Dim& dim : dims) ids.push_back(size_id(dim));
    return ids;
  }

  Dims upper_dims(std::span<const Dim> dims) const {
    Dims upper;
    for (const Dim& dim : dims) upper.push_back(std::max<int64_t>(range(dim).hi, 0));
    return upper;
  }

  // The bound of the product is often tighter than the product of the bounds, and the other way round.
  Result<int64_t> upper_bytes(const ValueType& type, std::string_view name) const {
    auto product = element_count(std::span<const int64_t>(upper_dims(type.dims)));
    int64_t whole = range(element_count(std::span<const Dim>(type.dims))).hi;
    int64_t count = std::min(product.value_or(Interval::kUnbounded), std::max<int64_t>(whole, 0));
    auto bytes = is_block(type.dtype) ? byte_size(type.dtype, count) : std::optional(count * element_bytes(type.dtype));
    if (count >= Interval::kUnbounded / 64 || !bytes)
      return Status(Code::kRange, "'" + std::string(name) + "' has too many elements: " + text_of(type));
    return *bytes;
  }

  Status set_slots() {
    auto slot = [&](const ValueType& type, const std::string& name) -> Result<PlanSlot> {
      return PlanSlot{size_ids(type.dims), upper_dims(type.dims), RLX_TRY(upper_bytes(type, name))};
    };
    for (uint32_t node : graph_.inputs())
      plan_->inputs.push_back(RLX_TRY(slot(graph_.node(node).out[0], graph_.leaf_name(node))));
    for (const GraphOutput& output : graph_.outputs())
      plan_->outputs.push_back(RLX_TRY(slot(graph_.type(output.value), output.name)));
    return {};
  }

  // ---- buffers ----

  std::string name_of(Value value) const {
    return graph_.describe(value.node) + (value.output ? "." + std::to_string(value.output) : "");
  }

  // An output whose bytes a run step makes whole is written in place; the first of several takes the buffer.
  void claim_outputs() {
    output_of_.resize(graph_.nodes().size());
    for (uint32_t i = 0; i < graph_.nodes().size(); i++) output_of_[i].resize(graph_.node(i).out.size(), -1);
    in_place_.resize(graph_.outputs().size(), false);
    for (size_t i = 0; i < graph_.outputs().size(); i++) {
      Value value = graph_.outputs()[i].value;
      const Layout& layout = layouts_.of[value.node][value.output];
      Value root = layout.root;
      bool whole = layout.dense && layout.shift.is(0) && lowered_.phases[root.node] == Phase::kRun &&
                   graph_.node(root).op != Op::kInput &&
                   element_count(std::span<const Dim>(graph_.type(root).dims)) ==
                       element_count(std::span<const Dim>(graph_.type(value).dims));
      if (!whole || output_of_[root.node][root.output] >= 0) continue;
      output_of_[root.node][root.output] = static_cast<int64_t>(i);
      in_place_[i] = true;
    }
  }

  Status add_buffers() {
    claim_outputs();
    uses_ = use_counts(graph_);
    buffer_of_.resize(graph_.nodes().size());
    for (uint32_t node = 0; node < graph_.nodes().size(); node++) {
      buffer_of_[node].resize(graph_.node(node).out.size(), UINT32_MAX);
      if (lowered_.phases[node] == Phase::kResident || graph_.node(node).op == Op::kInput) continue;
      for (uint32_t i = 0; i < graph_.node(node).out.size(); i++) {
        Value value{node, i};
        if (!layouts_.of[node][i].is_root(value) || is_left_out(value)) continue;
        buffer_of_[node][i] = static_cast<uint32_t>(plan_->buffers.size());
        uint32_t base = lowered_.phases[node] == Phase::kSized ? uint32_t{kSizedBase} : uint32_t{kArenaBase};
        if (int64_t output = output_of_[node][i]; output >= 0) base = plan_->output_base(static_cast<size_t>(output));
        std::string name = name_of(value);
        int64_t bytes = RLX_TRY(upper_bytes(graph_.type(value), name));
        plan_->buffers.push_back({std::move(name), base, 0, bytes, UINT32_MAX, 0});
      }
    }
    return {};
  }

  bool is_left_out(Value value) const {
    const Kernel* kernel = lowered_.kernels[value.node];
    return uses_[value.node][value.output] == 0 && kernel && (kernel->optional_outputs >> value.output & 1);
  }

  Access access(Value value) { return access(graph_.type(value), layouts_.of[value.node][value.output]); }

  Access access(const ValueType& type, const Layout& layout) {
    Access access{type.dtype};
    access.dims = size_ids(type.dims);
    access.dense = layout.dense;
    access.shift = size_id(layout.shift);
    if (!layout.dense) access.strides = size_ids(layout.strides);
    const Node& root = graph_.node(layout.root);
    if (root.op == Op::kInput) {
      auto slot = std::find(graph_.inputs().begin(), graph_.inputs().end(), layout.root.node);
      access.base = plan_->input_base(static_cast<size_t>(slot - graph_.inputs().begin()));
    } else if (lowered_.phases[layout.root.node] == Phase::kResident) {
      access.base = plan_->resident_base(lowered_.dense_resident(layout.root));
    } else {
      access.buffer = buffer_of_[layout.root.node][layout.root.output];
      access.base = plan_->buffers[access.buffer].base;
    }
    return access;
  }

  Access input_access(uint32_t reader, size_t i) {
    const Node& node = graph_.node(reader);
    if (i >= node.in.size() || !present(node.in[i])) return {};
    if (lowered_.phases[node.in[i].node] != Phase::kResident) return access(node.in[i]);
    Access it{graph_.type(node.in[i]).dtype};
    it.dims = size_ids(graph_.type(node.in[i]).dims);
    it.base = plan_->resident_base(lowered_.resident_of(reader, i));
    return it;
  }

  // ---- steps ----

  void note_sizes(const AttrValue& value, std::vector<SizeId>& depends) {
    if (auto* dim = std::get_if<Dim>(&value)) depends.push_back(size_id(*dim));
    if (auto* dims = std::get_if<std::vector<Dim>>(&value))
      for (const Dim& dim : *dims) depends.push_back(size_id(dim));
    if (std::holds_alternative<std::shared_ptr<const Graph>>(value))
      for (const PlanSymbol& symbol : plan_->symbols) depends.push_back(size_id(Dim::symbol(symbol.name)));
  }

  void finish(Step step) {
    auto index = static_cast<uint32_t>(plan_->steps.size());
    for (auto* list : {&step.in, &step.out})
      for (const Access& it : *list) {
        step.depends.insert(step.depends.end(), it.dims.begin(), it.dims.end());
        step.depends.insert(step.depends.end(), it.strides.begin(), it.strides.end());
        step.depends.push_back(it.shift);
        if (it.buffer == UINT32_MAX) continue;
        PlanBuffer& buffer = plan_->buffers[it.buffer];
        buffer.first = std::min(buffer.first, index);
        buffer.last = std::max(buffer.last, index);
      }
    std::sort(step.depends.begin(), step.depends.end());
    step.depends.erase(std::unique(step.depends.begin(), step.depends.end()), step.depends.end());
    std::erase_if(step.depends, [&](SizeId id) { return plan_->sizes[id].is_literal(); });
    plan_->steps.push_back(std::move(step));
  }

  Status add_step(uint32_t index) {
    const Node& node = graph_.node(index);
    if (node.op == Op::kInput || !layouts_.of[index][0].is_root({index, 0})) return {};
    Step step;
    step.node = index;
    step_of_[index] = static_cast<uint32_t>(plan_->steps.size());
    if (const auto& view = layouts_.copy_of[index]) {
      step.in.push_back(access(node.out[0], *view));
      step.out.push_back(access({index, 0}));
      finish(std::move(step));
      return {};
    }
    step.kernel = lowered_.kernels[index];
    size_t ports = graph_.info(node).signature.in.size();
    for (size_t i = 0; i < std::max(node.in.size(), ports); i++) step.in.push_back(input_access(index, i));
    for (const BodyParam& param : body_params(node)) {
      auto leaf = graph_.find_leaf(param.name);
      if (!leaf) return Status(Code::kNotFound, "the param '" + param.name + "' of a sub-graph is none of the program");
      step.body_params.push_back(param.name);
      step.in.push_back(access(*leaf));
    }
    for (uint32_t i = 0; i < node.out.size(); i++)
      step.out.push_back(is_left_out({index, i}) ? Access() : access({index, i}));
    for (const AttrValue& value : node.attrs.values()) note_sizes(value, step.depends);
    if (step.kernel && step.kernel->scratch) {
      std::vector<Dims> upper;
      for (Value value : node.in) upper.push_back(present(value) ? upper_dims(graph_.type(value).dims) : Dims());
      upper.resize(step.in.size());
      for (const ValueType& type : node.out) upper.push_back(upper_dims(type.dims));
      step.scratch_bytes = step.kernel->scratch(node, upper);
    }
    finish(std::move(step));
    return {};
  }

  void add_output_copies() {
    for (size_t i = 0; i < graph_.outputs().size(); i++) {
      if (in_place_[i]) continue;
      Value value = graph_.outputs()[i].value;
      Step step;
      step.node = value.node;
      step.in.push_back(access(value));
      Access out = step.in[0];  // dense: outputs demand it
      out.base = plan_->output_base(i);
      out.shift = size_id(0);
      out.buffer = UINT32_MAX;
      step.out.push_back(out);
      finish(std::move(step));
    }
  }

  // ---- places ----

  void place_buffers() {
    std::vector<Lifetime> arena;
    for (const PlanBuffer& buffer : plan_->buffers)
      if (buffer.base == kArenaBase) arena.push_back({buffer.bytes, buffer.first, buffer.last});
    for (uint32_t i = 0; i < plan_->steps.size(); i++)
      if (plan_->steps[i].scratch_bytes) arena.push_back({static_cast<int64_t>(plan_->steps[i].scratch_bytes), i, i});
    plan_->arena_bytes = pack(arena);
    size_t next = 0;
    for (PlanBuffer& buffer : plan_->buffers) {
      if (buffer.base == kArenaBase) buffer.offset = arena[next++].offset;
      if (buffer.base != kSizedBase) continue;
      buffer.offset = plan_->sized_bytes;  // kept from run to run: never shared
      plan_->sized_bytes += (buffer.bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
    }
    for (Step& step : plan_->steps) {
      if (step.scratch_bytes) step.scratch_offset = arena[next++].offset;
      for (auto* list : {&step.in, &step.out})
        for (Access& it : *list)
          if (it.buffer != UINT32_MAX) it.offset = plan_->buffers[it.buffer].offset;
    }
  }

  const Lowered& lowered_;
  const Graph& graph_;
  std::shared_ptr<Plan> plan_;
  std::map<Dim, SizeId, DimLess> size_ids_;
  Layouts layouts_;
  std::vector<std::vector<uint32_t>> uses_;
  std::vector<std::vector<uint32_t>> buffer_of_;  // [node][output]
  std::vector<std::vector<int64_t>> output_of_;   // [node][output]: the output slot it is written to, or -1
  std::vector<bool> in_place_;                    // by output slot
  std::vector<uint32_t> step_of_;                 // by node
};

}  // namespace

uint32_t Plan::known_at(const Dim& dim) const {
  uint32_t last = PlanSymbol::kGiven;
  visit_symbols(dim, [&](const std::string& name) {
    for (const PlanSymbol& symbol : symbols)
      if (symbol.is_fresh() && symbol.name == name && (last == PlanSymbol::kGiven || symbol.made_by > last))
        last = symbol.made_by;
  });
  return last;
}

Result<std::shared_ptr<const Plan>> make_plan(std::shared_ptr<const Lowered> lowered, const UpperSizes& upper) {
  for (const auto& [name, size] : upper) {
    const auto& symbols = lowered->graph.symbols();
    if (std::none_of(symbols.begin(), symbols.end(), [&name = name](auto& symbol) { return symbol.first == name; }))
      return Status(Code::kOption, "dims." + name + ": the graph has no such size").with("value", name);
  }
  return Planner(std::move(lowered)).run(upper);
}

}  // namespace rlx
