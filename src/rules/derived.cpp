// SPDX-License-Identifier: Apache-2.0
// Rules derived from the formulas of composites. A row with the trait kFormula gives two patterns: its decomposition in
// normal form, once with the composites in it and once with these expanded too.
#include <algorithm>

#include "base/lasting.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

namespace {

// The value of attribute `i` while its formula is built: no formula contains it, and every dtype holds it.
double probe(size_t i) {
  return 0.7265625 + 0.03125 * static_cast<double>(i);
}

struct Formula {
  const OpInfo& row;
  std::vector<Pattern> operands, attrs;  // what the row's inputs and attributes are bound to
};

// Whether composites in a formula stay or are expanded too.
enum class Inner { kKept, kExpanded };

// The formula in normal form, as a graph. It has the row's inputs, all of one size, and its first output.
Result<Graph> written_out(const OpInfo& row, Inner inner) {
  Graph graph("formula");
  RLX_TRY(graph.declare_symbol("n", {1, kLargestSymbol}));  // at 0 there would be nothing to compute
  std::vector<Value> in;
  for (const Port& port : row.signature.in)
    in.push_back(RLX_TRY(graph.add_input(port.name, DType::kF32, {Dim::symbol("n")})));
  NamedAttrs attrs;
  for (size_t i = 0; i < row.attrs.size(); i++) attrs.emplace_back(row.attrs[i].name, probe(i));
  RLX_TRY(graph.add_output("y", RLX_TRY(graph.add(row.op(), in, attrs))));
  static const RuleSet& kNormalForm = lasting([] { return RuleSet{add_view_rules, add_arithmetic_rules}; });
  RewriteOptions options;
  options.expands = [&](const Facts& facts, Value value) {
    const OpInfo& info = facts.graph().info(facts.graph().node(value));
    return inner == Inner::kExpanded || info.id == row.id || info.is(kSpelling);
  };
  return rewrite(std::move(graph), kNormalForm, options);
}

class PatternMaker {
 public:
  PatternMaker(const Formula& formula, const Graph& graph) : formula_(formula), graph_(graph), facts_(graph) {}

  Pattern whole() {
    for (uint32_t node = 0; node < graph_.nodes().size(); node++) made_.push_back(of_node(node));
    return made_[graph_.outputs()[0].value.node];
  }

 private:
  Pattern of_node(uint32_t index) {
    const Node& node = graph_.node(index);
    for (size_t i = 0; i < graph_.inputs().size(); i++)
      if (graph_.inputs()[i] == index) return formula_.operands[i];
    if (auto number = facts_.splat({index, 0})) return of_number(*number);
    if (node.op == Op::kMul && !is_scaled_by_attr(node)) return of_product(index);
    std::vector<Pattern> in;
    for (Value input : node.in) in.push_back(made_[input.node]);
    Pattern pattern = op(node.op, in);
    for (const AttrDef& def : graph_.info(node).attrs)
      if (node.attrs.has(def.name)) pattern = pattern.with(def.name, node.attrs.get(def.name));
    return pattern;
  }

  Pattern of_number(double number) const {
    for (size_t i = 0; i < formula_.attrs.size(); i++)
      if (number == probe(i)) return formula_.attrs[i];
    return number;
  }

  bool is_scaled_by_attr(const Node& product) {
    return std::any_of(product.in.begin(), product.in.end(), [&](Value in) {
      auto number = facts_.splat(in);
      return number && of_number(*number).get()->kind != PatternNode::kNumber;
    });
  }

  // A product matches its factors in any order, and the product of its numbers.
  Pattern of_product(uint32_t index) {
    std::vector<uint32_t> waiting{index};
    std::vector<Pattern> factors;
    double scalar = 1;
    for (size_t at = 0; at < waiting.size(); at++) {
      const Node& node = graph_.node(waiting[at]);
      auto number = facts_.splat({waiting[at], 0});
      if (number)
        scalar *= *number;
      else if (node.op != Op::kMul)
        factors.push_back(made_[waiting[at]]);
      else
        for (Value input : node.in) waiting.push_back(input.node);
    }
    return product(factors, scalar);
  }

  const Formula& formula_;
  const Graph& graph_;
  Facts facts_;
  std::vector<Pattern> made_;  // by node
};

Expr composite(const Match& m, const Formula& formula) {
  std::vector<Expr> in;
  for (const Pattern& operand : formula.operands) in.push_back(m[operand]);
  NamedAttrs attrs;
  for (size_t i = 0; i < formula.attrs.size(); i++)
    attrs.emplace_back(formula.row.attrs[i].name, m.number(formula.attrs[i]));
  return m.builder().ops(formula.row.op(), in, attrs)[0];
}

// A formula of one op is part of larger ones.
enum class Formulas { kOfOneOp, kLarger };
void add_derived(RuleSet& rules, Formulas which) {
  for (const OpInfo& row : op_table().rows()) {
    if (!row.is(kFormula)) continue;
    Formula formula{row, std::vector<Pattern>(row.signature.in.size()), std::vector<Pattern>(row.attrs.size())};
    std::generate(formula.operands.begin(), formula.operands.end(), any);
    std::generate(formula.attrs.begin(), formula.attrs.end(), splat);
    for (Inner inner : {Inner::kKept, Inner::kExpanded}) {
      auto graph = written_out(row, inner);
      if (!graph.ok()) continue;  // tests/unit/rules/derived.cpp fails then
      Pattern pattern = PatternMaker(formula, *graph).whole();
      auto is_operand = [](const Pattern& part) { return part.get()->in.empty(); };
      bool is_one_op = std::all_of(pattern.get()->in.begin(), pattern.get()->in.end(), is_operand);
      if (is_one_op != (which == Formulas::kOfOneOp)) continue;
      rules.add(close, std::string(row.name), pattern, [formula](const Match& m) { return composite(m, formula); });
    }
  }
}

}  // namespace

void add_derived_rules(RuleSet& rules) {
  add_derived(rules, Formulas::kLarger);
}

void add_small_derived_rules(RuleSet& rules) {
  add_derived(rules, Formulas::kOfOneOp);
}

}  // namespace rlx
