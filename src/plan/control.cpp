// SPDX-License-Identifier: Apache-2.0
#include "plan/control.h"

#include <algorithm>
#include <unordered_set>

#include "base/round_up.h"
#include "ir/body.h"
#include "plan/in_place.h"

namespace rlx {

const Kernel kControlKernel{.op = Op::kNone, .name = "control"};

std::span<const std::string_view> body_attrs(Op op) {
  static constexpr std::string_view kIf[] = {"then", "else"}, kWhile[] = {"cond", "body"}, kScan[] = {"body"};
  switch (op) {
    case Op::kIf: return kIf;
    case Op::kWhile: return kWhile;
    case Op::kScan: return kScan;
    default: return {};
  }
}

namespace {

// The symbols of a body are those of the plan around it, except those that its own values or its carries decide.
struct BodySizes {
  std::vector<uint32_t> symbols;  // by symbol of the body, in the plan around it, or kNoSymbol
  UpperSizes upper;
};

BodySizes sizes_of(const Attrs& attrs, const Graph& body, const Plan& around, const UpperSizes& upper) {
  std::unordered_set<std::string> own;
  for (std::string& symbol : own_symbols(attrs, body)) own.insert(std::move(symbol));
  BodySizes sizes{{}, upper};
  for (const auto& [name, range] : body.symbols()) {
    uint32_t symbol = own.contains(name) ? Plan::kNoSymbol : around.symbol(name);
    sizes.symbols.push_back(symbol);
    if (symbol == Plan::kNoSymbol) continue;
    const PlanSymbol& it = around.symbols[symbol];
    int64_t most = it.is_open ? Interval::kUnbounded : it.upper;
    sizes.upper.emplace_back(name, std::max(range.lo, std::min(range.hi, most)));
  }
  return sizes;
}

std::vector<AxisSize> carried_sizes(const Plan& body, const std::vector<uint32_t>& symbols) {
  std::vector<AxisSize> carried;
  const Graph& graph = body.graph();
  for (uint32_t i = 0; i < graph.inputs().size(); i++) {
    const std::vector<Dim>& dims = graph.node(graph.inputs()[i]).out[0].dims;
    for (uint32_t axis = 0; axis < dims.size(); axis++) {
      const std::string* name = dims[axis].symbol_name();
      uint32_t symbol = name ? body.symbol(*name) : Plan::kNoSymbol;
      if (symbol != Plan::kNoSymbol && symbols[symbol] == Plan::kNoSymbol) carried.push_back({i, axis, symbol});
    }
  }
  return carried;
}

Result<PlanBody> plan_body(const Attrs& attrs, const LoweredBody& body, const Plan& around, const UpperSizes& upper,
                           size_t carries) {
  PlanBody planned;
  BodySizes sizes = sizes_of(attrs, body.lowered->graph, around, upper);
  planned.plan = RLX_TRY(make_body_plan(body.lowered, sizes.upper, carries));
  planned.symbols = std::move(sizes.symbols);
  planned.carried = carried_sizes(*planned.plan, planned.symbols);
  planned.residents = body.residents;
  return planned;
}

Result<std::vector<std::optional<int64_t>>> output_bytes(const Node& node, const SizeTable& sizes,
                                                         const std::string& name) {
  std::vector<std::optional<int64_t>> bytes(node.out.size());
  for (size_t i = 0; i < bytes.size(); i++)
    if (!sizes.is_open(node.out[i].dims)) bytes[i] = RLX_TRY(sizes.upper_bytes(node.out[i], name));
  return bytes;
}

// By carry that a step writes: for how many trips other carries pass its value on. A value that goes round in a circle,
// or that is a scanned input or an invariant operand, needs no place, because no trip writes it.
std::vector<size_t> delays_of(const Plan& body, size_t carries) {
  std::vector<std::vector<size_t>> passed_to(carries);
  for (size_t i = 0; i < carries; i++)
    if (uint32_t from = body.outputs[i].shows; from < carries) passed_to[from].push_back(i);
  std::vector<size_t> delays(carries, 0);
  for (size_t i = 0; i < carries; i++) {
    if (body.outputs[i].shows != PlanSlot::kNone) continue;
    for (std::vector<size_t> now = passed_to[i]; !now.empty(); delays[i]++) {
      std::vector<size_t> next;
      for (size_t carry : now) next.insert(next.end(), passed_to[carry].begin(), passed_to[carry].end());
      now = std::move(next);
    }
  }
  return delays;
}

// A carry that a step writes needs no spare place if each trip may write over the last value. Else it needs one, and
// one more for each trip for which other carries pass its value on. The spares of a carry without an upper size lie in
// rooms of the loop, not here.
void add_carries(Control& control, size_t carries, int64_t alignment, int64_t& bytes) {
  const Plan& body = *control.bodies.back().plan;
  SlotUses uses(body);
  std::vector<size_t> delays = delays_of(body, carries);
  for (size_t i = 0; i < carries; i++) {
    if (body.outputs[i].shows != PlanSlot::kNone) {
      control.carries.push_back({Carry::Way::kPasses, body.outputs[i].shows});
      continue;
    }
    bool stays = control.out_bytes[i] && delays[i] == 0 && uses.may_share(i, i);
    Carry carry{stays ? Carry::Way::kStays : Carry::Way::kRotates};
    for (size_t spares = stays ? 0 : delays[i] + 1; spares > 0; spares--) {
      carry.spares.push_back(bytes);
      bytes += round_up(control.out_bytes[i].value_or(0), alignment);
    }
    control.carries.push_back(std::move(carry));
  }
}

}  // namespace

std::vector<JoinedSize> joined_sizes(const Node& node) {
  std::vector<JoinedSize> found;
  if (node.op != Op::kIf) return found;
  const Graph &then = *node.attrs.graph("then"), &otherwise = *node.attrs.graph("else");
  visit_decided_axes(node, [&](uint32_t output, uint32_t axis, const std::string& symbol, bool is_fresh) {
    found.push_back({symbol, then.type(then.outputs()[output].value).dims[axis],
                     otherwise.type(otherwise.outputs()[output].value).dims[axis], !is_fresh});
  });
  return found;
}

Status plan_control(const LoweredGraph& lowered, Plan& plan, SizeTable& sizes, const UpperSizes& upper, Step& step) {
  const Node& node = lowered.graph.node(step.node);
  Control control;
  control.step = static_cast<uint32_t>(plan.steps.size());
  int64_t bytes = 0;
  size_t carries = std::min(carry_count(node), node.out.size());
  const std::vector<LoweredBody>& bodies = lowered.bodies.at(step.node);
  for (const LoweredBody& body : bodies) {
    bool is_cond = node.op == Op::kWhile && &body == &bodies.front();
    control.bodies.push_back(RLX_TRY(plan_body(node.attrs, body, plan, upper, is_cond ? 0 : carries)));
    bytes = std::max(bytes, round_up(control.bodies.back().plan->arena_bytes, lowered.alignment));
  }
  control.flag_offset = bytes;
  bytes += lowered.alignment;
  control.out_bytes = RLX_TRY(output_bytes(node, sizes, lowered.graph.describe(step.node)));
  add_carries(control, carries, lowered.alignment, bytes);
  visit_decided_axes(node, [&](uint32_t output, uint32_t axis, const std::string& symbol, bool is_fresh) {
    if (is_fresh) control.decides.push_back({output, axis, plan.symbol(symbol)});
  });
  if (node.op == Op::kScan && node.attrs.has("length")) control.length = sizes.id(node.attrs.dim("length"));
  if (node.op == Op::kIf && node.attrs.has("when")) control.when = sizes.id(node.attrs.dim("when"));
  step.scratch_bytes = static_cast<size_t>(bytes);
  step.control = static_cast<uint32_t>(plan.controls.size());
  plan.controls.push_back(std::move(control));
  return {};
}

}  // namespace rlx
