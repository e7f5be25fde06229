// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rewrite/facts.h"
#include "rewrite/rules.h"

namespace rlx {

static constexpr int kMaxDepth = 64;   // of rules that fire inside the replacement of a rule
static constexpr int kMaxSweeps = 16;  // over the whole graph

Rewriter::Rewriter(const Graph& from, const RuleSet& rules, const RewriteOptions& options)
    : from_(from),
      rules_(rules),
      options_(options),
      to_(from.name(), &from.table()),
      builder_(to_),
      map_(from.nodes().size()) {
  builder_.set_add(add_hook, this);
}

Result<std::vector<Value>> Rewriter::add_hook(void* self, const OpInfo& info, std::span<const Value> in, Attrs attrs,
                                              std::string name) {
  return static_cast<Rewriter*>(self)->add(info, in, std::move(attrs), std::move(name));
}

// ---- live uses ----
// A node is live while something live, or something still to be rebuilt, uses one of its outputs; only a live node
// counts as a user of its inputs. So what a rule leaves behind does not count, and comes back to life when it is asked
// for again.

bool Rewriter::is_live(uint32_t node) const {
  return std::any_of(refs_[node].begin(), refs_[node].end(), [](uint32_t count) { return count > 0; });
}

void Rewriter::acquire(Value value, uint32_t count) {
  if (!count) return;
  bool was_live = is_live(value.node);
  refs_[value.node][value.output] += count;
  if (was_live) return;
  for (Value in : to_.node(value).in)
    if (present(in)) acquire(in);
}

void Rewriter::release(Value value, uint32_t count) {
  if (!count) return;
  refs_[value.node][value.output] -= count;
  if (is_live(value.node)) return;
  for (Value in : to_.node(value).in)
    if (present(in)) release(in);
}

bool Rewriter::used_elsewhere(Value value) const {
  return refs_[value.node][value.output] > 0;
}

bool Rewriter::is_refused(Value value) const {
  const OpInfo& info = to_.info(to_.node(value));
  return options_.refuses && !info.primitive() && !options_.refuses(to_, value).empty();
}

bool Rewriter::may_be_repeated(Value value) const {
  const Node& node = to_.node(value);
  const OpInfo& info = to_.info(node);
  return info.is(kLeaf) || info.is(kView) || node.op == Op::kCast || is_size_only(value) || is_static(value);
}

// ---- construction ----

static bool commutes(const OpInfo& info, std::span<const Value> in) {
  return info.is(kCommutative) && in.size() == 2;
}

static size_t hash_of(const OpInfo& info, std::span<const Value> in, const Attrs& attrs) {
  size_t seed = info.id * size_t{0x9e3779b97f4a7c15u} ^ attrs.hash();
  auto add = [&](Value value) {
    seed = (seed ^ (value.node * size_t{31} + value.output)) * 0x100000001b3u + (seed >> 32);
  };
  if (commutes(info, in))
    add(std::min(in[0], in[1])), add(std::max(in[0], in[1]));
  else
    std::for_each(in.begin(), in.end(), add);
  return seed;
}

static bool same_inputs(const OpInfo& info, std::span<const Value> a, std::span<const Value> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end()) ||
         (commutes(info, a) && commutes(info, b) && a[0] == b[1] && a[1] == b[0]);
}

Result<Value> Rewriter::append(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name) {
  while (!in.empty() && in.back() == kAbsent) in = in.first(in.size() - 1);
  size_t hash = hash_of(info, in, attrs);
  bool mergeable = info.is(kPure) && info.op() != Op::kInput && info.op() != Op::kParam;
  if (mergeable) {
    auto [first, last] = known_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      const Node& node = to_.node(at->second);
      if (node.op == info.op() && same_inputs(info, in, node.in) && node.attrs == attrs) return Value{at->second, 0};
    }
  }
  Value value = RLX_TRY(to_.add(info, in, std::move(attrs), std::move(name)));
  if (mergeable) known_.emplace(hash, value.node);
  uint8_t flags = info.op() == Op::kInput || !info.is(kPure) ? 0 : kStatic | kSizeOnly;
  if (info.op() == Op::kParam) flags = kStatic;
  for (Value input : in)
    if (present(input)) flags &= flags_[input.node];
  const auto& out = to_.node(value).out;
  bool sized = std::any_of(out.begin(), out.end(), [](const ValueType& type) { return !all_literal(type.dims); });
  if (info.op() == Op::kDimSize)
    flags = all_literal(to_.type(to_.node(value).in[0]).dims) ? flags : uint8_t{kSizeOnly};
  else if (sized)
    flags &= ~kStatic;
  flags_.push_back(flags);
  refs_.emplace_back(out.size(), 0);
  return value;
}

// Rules replace the first output; the others stay with the node as it was built.
Result<std::vector<Value>> Rewriter::add(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name) {
  Value built = RLX_TRY(append(info, in, std::move(attrs), std::move(name)));
  Value value = apply_rules(built);
  if (value == built && !info.primitive() && options_.expands && options_.expands(to_, built)) return expand(built);
  std::vector<Value> outputs{value};
  for (uint32_t i = 1; i < to_.node(built).out.size(); i++) outputs.push_back({built.node, i});
  return outputs;
}

Result<std::vector<Value>> Rewriter::expand(Value value) {
  Node node = to_.node(value);  // a copy: the graph grows
  std::vector<Expr> in;
  for (Value input : node.in) in.push_back(present(input) ? builder_.wrap(input) : Expr());
  Outputs outputs = decompose(builder_, to_.info(node), in, node.attrs);
  RLX_TRY(builder_.take_status());
  std::vector<Value> values;
  for (size_t i = 0; i < outputs.size(); i++) {
    values.push_back(outputs[i].value());
    if (i == 0 && to_.node(values[0]).name.empty()) to_.set_name(values[0], node.name);
  }
  return values;
}

Expr Rewriter::try_rule(const Rule& rule, Value value) {
  Match match(*this, builder_.wrap(value));
  if (rule.pattern.get() && !find_match(rule.pattern, match)) {
    if (!match.reason().empty()) note(rule, value, match.reason());
    return Expr();
  }
  Expr replacement = rule.apply(match);
  if (Status status = builder_.take_status(); !status.ok()) return note(rule, value, status.message()), Expr();
  if (!replacement && !match.reason().empty()) note(rule, value, match.reason());
  return replacement;
}

Value Rewriter::apply_rules(Value value) {
  if (depth_ >= kMaxDepth) return value;
  depth_++;
  for (const Rule* rule : rules_.at(to_.node(value).op)) {
    if (!allows(rule->grade)) continue;
    if (std::find(options_.skip.begin(), options_.skip.end(), rule->name) != options_.skip.end()) continue;
    Expr replacement = try_rule(*rule, value);
    if (!replacement || !replacement.valid() || replacement.value() == value) continue;
    // A rule must keep the meaning: the type is the part of it that can be checked here.
    if (!(replacement.type() == to_.type(value))) {
      note(*rule, value, "the replacement is " + text_of(replacement.type()) + ", not " + text_of(to_.type(value)));
      continue;
    }
    const Node& formed = to_.node(replacement.value());
    // A composite of halves is computed wide and rounded once; what it stands for may have been rounded at every op.
    if (!allows(Grade::kClose) && is_half(to_.type(value).dtype) && !to_.info(formed).primitive()) continue;
    if (options_.refuses && !to_.info(formed).primitive() && !to_.info(formed).is(kInternal)) {
      if (std::string why = options_.refuses(to_, replacement.value()); !why.empty()) {
        note(*rule, value, why);
        continue;
      }
    }
    if (to_.node(replacement.value()).name.empty() && !to_.node(value).name.empty())
      to_.set_name(replacement.value(), to_.node(value).name);
    note(*rule, value, {});
    fired_++;
    depth_--;
    return replacement.value();
  }
  depth_--;
  return value;
}

void Rewriter::note(const Rule& rule, Value value, std::string_view reason) {
  if (!options_.report) return;
  const std::string& name = to_.node(value).name;
  options_.report->lines.push_back(
      {std::string(options_.pass), rule.name, name.empty() ? to_.describe(value.node) : name, std::string(reason)});
}

// ---- the loop ----

Result<Attrs> Rewriter::rewrite_subgraphs(const Attrs& attrs) {
  Attrs result = attrs;
  for (const AttrDef& def : attrs.info()->attrs) {
    if (def.kind != AttrKind::kGraph || !attrs.has(def.name)) continue;
    Graph body = RLX_TRY(rewrite(*attrs.graph(def.name), rules_, options_));
    result = result.with(def.name, std::make_shared<const Graph>(std::move(body)));
  }
  return result;
}

Status Rewriter::rebuild(uint32_t index) {
  const Node& old = from_.node(index);
  std::vector<Value> in;
  for (Value value : old.in) in.push_back(present(value) ? map_[value.node][value.output] : value);
  // The old node's uses end here; those of the new one begin when it is known.
  for (Value value : in)
    if (present(value)) release(value);
  if (old.op == Op::kInput) {
    map_[index] = {RLX_TRY(to_.add_input(from_.leaf_name(index), old.out[0].dtype, old.out[0].dims))};
  } else if (old.op == Op::kParam) {
    map_[index] = {RLX_TRY(to_.add_param(from_.leaf_name(index), old.out[0].dtype, old.out[0].dims))};
  } else {
    Attrs attrs = RLX_TRY(rewrite_subgraphs(old.attrs));
    map_[index] = RLX_TRY(add(from_.info(old), in, std::move(attrs), old.name));
  }
  while (flags_.size() < to_.nodes().size()) {  // a leaf, which bypasses append
    flags_.push_back(old.op == Op::kParam ? kStatic : 0);
    refs_.emplace_back(1, 0);
  }
  return {};
}

Result<Graph> Rewriter::run() {
  for (const auto& [name, range] : from_.symbols()) RLX_TRY(to_.declare_symbol(name, range));
  for (const Guard& guard : from_.guards()) RLX_TRY(to_.add_guard(guard));
  auto uses = use_counts(from_);
  for (uint32_t index = 0; index < from_.nodes().size(); index++) {
    RLX_TRY(rebuild(index));
    for (uint32_t output = 0; output < uses[index].size(); output++) acquire(map_[index][output], uses[index][output]);
  }
  for (const GraphOutput& output : from_.outputs())
    RLX_TRY(to_.add_output(output.name, map_[output.value.node][output.value.output]));
  return drop_dead(to_);
}

Result<Graph> rewrite(const Graph& graph, const RuleSet& rules, const RewriteOptions& options) {
  Result<Graph> current = graph;
  for (int sweep = 0; sweep < kMaxSweeps; sweep++) {
    Rewriter rewriter(*current, rules, options);
    Graph next = RLX_TRY(rewriter.run());
    bool done = rewriter.fired() == 0;
    current = std::move(next);
    if (done) break;
  }
  return current;
}

// What the interface, an effect, a guard or an output needs, by node: its inputs, and who decides the sizes it names.
// Where a node and its decomposition both do, that is the later.
static std::vector<bool> needed_nodes(const Graph& graph) {
  std::vector<bool> needed(graph.nodes().size(), false);
  std::vector<DecidedSize> decided = decided_sizes(graph);
  auto need_decider = [&](const std::string& symbol) {
    auto last = std::find_if(decided.rbegin(), decided.rend(), [&](const auto& size) { return size.symbol == symbol; });
    if (last != decided.rend()) needed[last->node] = true;
  };
  for (const GraphOutput& output : graph.outputs()) needed[output.value.node] = true;
  for (uint32_t leaf : graph.inputs()) needed[leaf] = true;
  for (uint32_t leaf : graph.params()) needed[leaf] = true;
  for (const Guard& guard : graph.guards())
    for (const Dim* dim : {&guard.a, &guard.b}) visit_symbols(*dim, need_decider);
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    if (!needed[i] && graph.info(node).is(kPure)) continue;
    needed[i] = true;
    for (Value in : node.in)
      if (present(in)) needed[in.node] = true;
    if (!decided.empty()) visit_symbols(node, need_decider);
  }
  return needed;
}

Result<Graph> drop_dead(const Graph& graph) {
  std::vector<bool> needed = needed_nodes(graph);
  Graph result(graph.name(), &graph.table());
  for (const auto& [name, range] : graph.symbols()) RLX_TRY(result.declare_symbol(name, range));
  for (const Guard& guard : graph.guards()) RLX_TRY(result.add_guard(guard));
  std::vector<uint32_t> map(graph.nodes().size(), UINT32_MAX);
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    if (!needed[i]) continue;
    const Node& node = graph.node(i);
    std::vector<Value> in = node.in;
    for (Value& value : in)
      if (present(value)) value.node = map[value.node];
    Value value;
    if (node.op == Op::kInput)
      value = RLX_TRY(result.add_input(graph.leaf_name(i), node.out[0].dtype, node.out[0].dims));
    else if (node.op == Op::kParam)
      value = RLX_TRY(result.add_param(graph.leaf_name(i), node.out[0].dtype, node.out[0].dims));
    else
      value = RLX_TRY(result.add(graph.info(node), in, node.attrs, node.name));
    map[i] = value.node;
  }
  for (const GraphOutput& output : graph.outputs())
    RLX_TRY(result.add_output(output.name, {map[output.value.node], output.value.output}));
  return result;
}

}  // namespace rlx
