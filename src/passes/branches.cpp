// SPDX-License-Identifier: Apache-2.0
// Replaces an `if` with a known condition by the nodes of the branch that it takes. This leaves fewer uses of what the
// branch read, and gives the nodes of the branch new operands. So both are canonicalized and folded again, which may
// decide the condition of another `if`: it is replaced by a rule among the others, in the same walk over the graph.
#include <algorithm>
#include <optional>

#include "base/lasting.h"
#include "ir/body.h"
#include "ops/inline.h"
#include "passes/fold.h"
#include "passes/graph_copy.h"
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

// Whether the condition holds; nullopt if that is not known now.
static std::optional<bool> known_condition(const Graph& graph, const Node& node) {
  if (node.attrs.has("when")) {
    Interval when = graph.range(graph.resolved(node.attrs.dim("when")));
    return when.lo == when.hi ? std::optional(when.lo != 0) : std::nullopt;
  }
  const Tensor* condition = graph.constant(node.in[0]);
  return condition ? std::optional(condition->as<uint8_t>()[0] != 0) : std::nullopt;
}

// The branch that the node takes, if it is known and can be inlined. A branch that decides sizes, or an `if` that names
// sizes, is not inlined: these sizes would need other names.
static const Graph* known_branch(const Graph& graph, const Node& node) {
  if (node.op != Op::kIf || node.attrs.has("symbols") || node.attrs.has("chosen")) return nullptr;
  std::optional<bool> condition = known_condition(graph, node);
  if (!condition) return nullptr;
  const Graph& branch = *node.attrs.graph(*condition ? "then" : "else");
  return decided_sizes(branch).empty() ? &branch : nullptr;
}

bool has_known_branch(const Graph& graph, const PassContext&) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& node) { return known_branch(graph, node) != nullptr; });
}

namespace {

// Copies a graph with the nodes of known branches in the place of their `if`. What follows from constants is folded on
// the way, so that a condition is known if it follows from an `if` before it.
class Inlining {
 public:
  explicit Inlining(Grade math) : math_(math) {}

  // The values that stand for the outputs of a node, whose inputs have copies; none if it stays.
  Result<std::vector<Value>> replaced(GraphCopy& copy, uint32_t index) {
    Node node = copy.mapped_node(index);
    if (const Graph* branch = known_branch(copy.to(), node)) return nodes_if_possible(*branch, copy.to(), node);
    return fold_node(copy.to(), node, math_);
  }
  bool has_replaced() const { return has_replaced_; }

 private:
  // None if no sizes meet the guards of the branch together with those around it. The graph around may be a branch
  // itself, which no run takes at such sizes: so this is no error, and the `if` stays.
  Result<std::vector<Value>> nodes_if_possible(const Graph& branch, Graph& to, const Node& node) {
    Graph::Mark before = to.mark();
    bool had_replaced = has_replaced_;
    Result<std::vector<Value>> made = nodes_of(branch, to, node);
    has_replaced_ = had_replaced || made.ok();  // one inside of it is rolled back with it
    if (made.status().code() != Code::kShape) return made;
    to.roll_back(before);
    return std::vector<Value>();
  }

  Result<std::vector<Value>> nodes_of(const Graph& branch, Graph& to, const Node& node) {
    GraphCopy inlined(branch, to);
    RLX_TRY(inlined.declare_used());  // symbols that a body declares and never uses stay out
    Builder around(to);
    for (size_t i = 0; i < branch.inputs().size(); i++) {
      Expr operand = as_body_input(branch, i, around.wrap(node.in[i + 1]));
      RLX_TRY(around.status());
      inlined.set({branch.inputs()[i], 0}, operand.value());
    }
    for (uint32_t i = 0; i < branch.nodes().size(); i++) {
      if (inlined.has({i, 0})) continue;
      bool is_leaf = branch.info(branch.node(i)).is(kLeaf);
      std::vector<Value> outputs = is_leaf ? std::vector<Value>() : RLX_TRY(replaced(inlined, i));
      inlined.set_outputs(i, outputs);
      if (outputs.empty()) RLX_TRY(inlined.copy_inferring_types(i));
    }
    std::vector<Value> outputs;
    for (const GraphOutput& output : branch.outputs()) outputs.push_back(inlined.mapped(output.value));
    return outputs;
  }

  Grade math_;
  bool has_replaced_ = false;  // an `if` by its branch
};

}  // namespace

static bool has_params_of(const Graph& graph, const Graph& branch) {
  return std::ranges::all_of(branch.params(),
                             [&](uint32_t param) { return graph.find_param(branch.leaf_name(param)).has_value(); });
}

// A branch with effects, or with params that the graph around it lacks, is left to `Inlining`: both have an order, and
// new nodes come last here. So is one with guards that the graph around it lacks (the rewriter takes no guard from a
// rule that did not ask for it).
static Expr inline_branch(const Match& m) {
  const Node& node = m.node(m.anchor());
  const Graph* branch = known_branch(m.graph(), node);
  if (!branch || !has_params_of(m.graph(), *branch) || !is_pure(m.graph().info(node), node.attrs)) return {};
  std::vector<Expr> in;
  for (size_t i = 1; i < node.in.size(); i++) in.push_back(m.in(i));
  Outputs made = inlined(m.builder(), *branch, in);
  for (size_t i = 0; i < made.size(); i++)
    if (!m.graph().is_same_type(made[i].type(), node.out[i])) return m.miss("an output has another type");
  return made.empty() ? Expr() : m.offer_all(m.anchor(), made);
}

static Expr fold(const Match& m) {
  Outputs made;
  Grade math = m.allows(Grade::kClose) ? Grade::kClose : Grade::kExact;
  for (Tensor& tensor : folded(m.graph(), m.node(m.anchor()), math))
    made.push_back(m.builder().constant(std::move(tensor)));
  return made.empty() ? Expr() : m.offer_all(m.anchor(), made);
}

static void add_branch_rules(RuleSet& rules) {
  rules.add(exact, "known_branch", {Op::kIf}, inline_branch, {.depth = 1});
  std::vector<Op> computed;
  for (const OpInfo& info : op_table().rows())
    if (!info.is(kLeaf) && !info.has_bodies) computed.push_back(info.op());
  rules.add(exact, "folded", computed, fold, {.depth = 1});
}

static Result<Graph> simplified(Graph graph, PassContext& context) {
  static const RuleSet& kRules = lasting([] { return RuleSet{add_normal_form_rules, add_branch_rules}; });
  RewriteOptions options = context.rewrite_options("branches");
  options.expands = is_spelling;
  return fold_constants(RLX_TRY(rewrite(drop_dead(std::move(graph)), kRules, options)), context);
}

static size_t count_nodes(const Graph& graph) {  // of its bodies too
  size_t count = graph.nodes().size();
  if (graph.has_bodies())
    for (const Node& node : graph.nodes())
      for (const Graph* body : bodies_of(node.attrs)) count += count_nodes(*body);
  return count;
}

// Rounds are few: the rules do what they can in one. Each may decide one more of the branches that are left to
// `Inlining`, and walks the whole graph. After so many rounds, or more where they have seen few nodes, the others stay
// and are decided in the run.
static constexpr size_t kMostRounds = 16, kFewNodes = 1 << 16;
static constexpr const char* kOutOfRounds = "known branches were left to the run: each round decided only the next";

Result<Graph> inline_branches(Graph graph, PassContext& context) {
  bool has_replaced = true;
  size_t seen = 0;
  for (size_t round = 0; has_replaced && has_known_branch(graph, context); round++) {
    if (round >= kMostRounds && seen >= kFewNodes) {
      if (context.report) context.report->lines.push_back({"branches", "", "", kOutOfRounds});
      break;
    }
    seen += count_nodes(graph);
    Inlining inlining(context.math);
    Graph made =
        RLX_TRY(with_replaced(graph, [&](GraphCopy& copy, uint32_t index) { return inlining.replaced(copy, index); }));
    graph = RLX_TRY(simplified(std::move(made), context));
    has_replaced = inlining.has_replaced();
  }
  return graph;
}

}  // namespace rlx
