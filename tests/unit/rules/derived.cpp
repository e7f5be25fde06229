// SPDX-License-Identifier: Apache-2.0
// Every row with the trait kFormula is found by its formula.
#include <gtest/gtest.h>

#include "rules/rules.h"

namespace rlx {

// The row's op on inputs of one size, with attributes that are not its defaults.
static Graph one_op(const OpInfo& row) {
  Graph graph("one");
  std::vector<Value> in;
  for (const Port& port : row.signature.in)
    in.push_back(*graph.add_input(port.name, DType::kF32, {Dim::symbol("n"), Dim(3)}));
  NamedAttrs attrs;
  for (const AttrDef& def : row.attrs) attrs.emplace_back(def.name, 0.375 + 0.125 * static_cast<double>(attrs.size()));
  EXPECT_TRUE(graph.add_output("y", *graph.add(row.op(), in, attrs)).ok());
  return graph;
}

class derived : public testing::TestWithParam<const OpInfo*> {};

TEST_P(derived, is_found_by_its_formula) {
  const OpInfo& row = *GetParam();
  Graph graph = one_op(row);
  static const RuleSet kNormalForm{add_view_rules, add_arithmetic_rules};
  static const RuleSet kDerived{add_derived_rules}, kSmall{add_small_derived_rules};
  for (bool all : {false, true}) {
    RewriteOptions expand, plain;
    expand.expands = [&](const Facts& facts, Value value) { return all || facts.graph().node(value).op == row.op(); };
    Graph written_out = *rewrite(graph, kNormalForm, expand);
    ASSERT_NE(written_out.node(written_out.outputs()[0].value).op, row.op());
    Graph found = *rewrite(*rewrite(written_out, kDerived, plain), kSmall, plain);
    const Node& node = found.node(found.outputs()[0].value);
    EXPECT_EQ(node.op, row.op()) << row.name << (all ? ", all of it written out" : "");
    EXPECT_TRUE(node.op != row.op() || node.attrs == graph.node(graph.outputs()[0].value).attrs);
  }
}

static std::vector<const OpInfo*> derived_rows() {
  std::vector<const OpInfo*> rows;
  for (const OpInfo& row : op_table().rows())
    if (row.is(kFormula)) rows.push_back(&row);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(rows, derived, testing::ValuesIn(derived_rows()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace rlx
