// SPDX-License-Identifier: Apache-2.0
// Attributes in normal form: however a node is written, what is stored is the same.
#include "ir/normal.h"

#include <set>

#include "ir/text.h"
#include "tests/support/samples.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

// ---- no rule is needed for it ----

// Compiles for cpu without one rule that normalises views, or without any, and compares with the reference.
static void expect_right_without_view_rules(const Graph& graph, const std::vector<Tensor>& in) {
  static const std::vector<std::string> kAll = {"reshape_once", "transpose_once", "full_slice", "slice_bounds",
                                                "broadcast_once"};
  std::vector<std::vector<std::string>> choices{kAll};
  for (const std::string& rule : kAll) choices.push_back({rule});
  auto env = env_with(1);
  auto oracle = Program::compile(env, graph, nullptr, *env->find_device("reference"), {});
  ASSERT_TRUE(oracle.ok()) << oracle.status().message();
  auto want = (*oracle)->run({}, in, {}, 1);
  ASSERT_TRUE(want.ok()) << want.status().message();
  for (const auto& skip : choices) {
    auto program = Program::compile(env, graph, nullptr, *env->find_device("cpu"), {{"passes.skip", skip}});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto got = (*program)->run({}, in, {}, 1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    expect_near((*got)[0], (*want)[0]);
  }
}

TEST(normal, a_transpose_by_negative_axes_needs_no_rule_that_normalises_it) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {2, 3, 4}), y = input(b, "y", {6, 5});
  output(b, "z", matmul(transpose(reshape(x, {6, 4}), {-1, -2}), y));
  expect_right_without_view_rules(graph, {noise({2, 3, 4}), noise({6, 5}, 2)});
}

// ---- every op of the table, on its samples ----

using Numbers = std::vector<int64_t>;

// Each axis counted from the end, and every list whose order says nothing the other way round.
static Attrs written_backwards(const OpInfo& info, InputTypes in, const Attrs& attrs) {
  Attrs result = attrs;
  auto rank_of = [&](const AttrDef& def) { return std::ssize(in[def.of]->dims); };
  auto from_end = [&](size_t i, int64_t rank, bool turned) {
    if (auto* axis = std::get_if<int64_t>(&attrs.values()[i])) return result.set(i, *axis - rank);
    Numbers axes = std::get<Numbers>(attrs.values()[i]);
    for (int64_t& axis : axes) axis -= rank;
    if (turned) std::reverse(axes.begin(), axes.end());
    result.set(i, axes);
  };
  for (size_t i = 0; i < info.attrs.size(); i++) {
    const AttrDef& def = info.attrs[i];
    if (!attrs.has(def.name)) continue;
    switch (def.role) {
      case AttrRole::kAxis: from_end(i, rank_of(def), false); break;
      case AttrRole::kShapeAxis: from_end(i, std::ssize(attrs.dims(def.with)), false); break;
      case AttrRole::kInsertedAxis: from_end(i, rank_of(def) + 1, false); break;
      case AttrRole::kPairedAxes:
      case AttrRole::kPerm: from_end(i, rank_of(def), false); break;
      case AttrRole::kAxes:
      case AttrRole::kUnitAxes:
      case AttrRole::kListedAxes: from_end(i, rank_of(def), true); break;
      case AttrRole::kInsertedAxes: from_end(i, rank_of(def) + std::ssize(attrs.i64s(def.name)), true); break;
      case AttrRole::kCut:
        if (attrs.i64(def.name) < rank_of(def)) from_end(i, rank_of(def), false);
        break;
      case AttrRole::kChannelAxis:
        if (in[def.of + 1u]->rank() > 0) from_end(i, rank_of(def), false);
        break;
      case AttrRole::kBesides: {
        AttrValue list = attrs.values()[i];
        if (auto* numbers = std::get_if<Numbers>(&list))
          std::reverse(numbers->begin(), numbers->end());
        else
          std::reverse(std::get<std::vector<Dim>>(list).begin(), std::get<std::vector<Dim>>(list).end());
        result.set(i, std::move(list));
        break;
      }
      default: break;
    }
  }
  return result;
}

// One of the sizes, if it can be told from the others, as -1.
static Attrs with_one_size_left_out(const OpInfo& info, const Attrs& attrs) {
  Attrs result = attrs;
  for (size_t i = 0; i < info.attrs.size(); i++) {
    if (info.attrs[i].role != AttrRole::kSizes) continue;
    std::vector<Dim> sizes = attrs.dims(info.attrs[i].name);
    bool some = !sizes.empty() && std::none_of(sizes.begin(), sizes.end(), [](const Dim& dim) { return dim.is(0); });
    if (some) sizes.back() = -1;
    result.set(i, sizes);
  }
  return result;
}

// Bound anew, so that what is not listed has the row's default.
static Attrs bound(const OpInfo& info, const NamedAttrs& named) {
  auto attrs = bind_attrs(info, named);
  EXPECT_TRUE(attrs.ok()) << attrs.status().message();
  return attrs.ok() ? *attrs : Attrs();
}

TEST(normal, however_a_node_is_written_it_is_stored_the_same) {
  std::set<std::string> written;  // OP.ATTRIBUTE that was there to be written in another way
  for (const test::Sample& sample : test::all_samples()) {
    if (!sample.program.empty() || !sample.error.empty()) continue;
    SCOPED_TRACE(sample.where + ": " + sample.op + " " + sample.attrs);
    auto built = test::graph_of(sample);
    ASSERT_TRUE(built.ok()) << built.status().message();
    Graph& graph = *built;
    Node node = graph.nodes().back();
    const OpInfo& info = graph.info(node);
    auto in = input_types(graph, info, node.in);
    for (const AttrDef& def : info.attrs)
      if (def.role != AttrRole::kPlain && node.attrs.has(def.name))
        written.insert(std::string(info.name) + "." + std::string(def.name));
    for (const Attrs& attrs :
         {node.attrs, written_backwards(info, in, node.attrs), with_one_size_left_out(info, node.attrs),
          bound(info, node.attrs.named()), bound(info, non_default_attrs(info, in, node.attrs))}) {
      auto again = graph.add(info, node.in, attrs);
      ASSERT_TRUE(again.ok()) << again.status().message();
      EXPECT_TRUE(graph.node(*again).attrs == node.attrs);
      EXPECT_TRUE(graph.node(*again).out == node.out);
    }
    auto read = parse(print(graph), graph.table());
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(equal(std::make_shared<const Graph>(graph), std::make_shared<const Graph>(*read))) << print(graph);
  }
  for (const OpInfo& info : op_table().rows())
    for (const AttrDef& def : info.attrs) {
      if (def.role == AttrRole::kPlain) continue;
      std::string name = std::string(info.name) + "." + std::string(def.name);
      EXPECT_TRUE(written.contains(name)) << "no sample has " << name;
    }
}

// Every integer attribute that is called an axis has a role, so that a new row cannot forget it.
TEST(normal, what_is_called_an_axis_is_one_to_the_row) {
  for (const OpInfo& info : op_table().rows())
    for (const AttrDef& def : info.attrs)
      if (def.name.find("axis") != def.name.npos || def.name.find("axes") != def.name.npos || def.name == "perm") {
        EXPECT_NE(def.role, AttrRole::kPlain) << info.name << ' ' << def.name;
      }
}

// ---- what is filled in, what is said, what is refused ----

struct Normal : testing::Test {
  Graph graph;
  Builder b{graph};
  Dim n = Dim::symbol("n");
  Expr x = input(b, "x", {n, 3, 4});
  const Attrs& attrs(Expr y) const { return graph.node(y.value()).attrs; }
  Expr op(Op op, const NamedAttrs& attrs) { return b.op(op, {x}, attrs); }
  std::string failure(Op op, const NamedAttrs& given, std::string_view detail = "expected") {
    auto added = graph.add(op, std::array{x.value()}, given);
    if (added.ok()) return "";
    const std::string* expected = added.status().detail(detail);
    std::string message(added.status().message());
    return message.substr(0, message.find("; ")) + (expected ? " (" + *expected + ")" : "");  // without operands
  }
};

TEST_F(Normal, axes_are_written_out_sorted_and_from_the_front) {
  EXPECT_EQ(attrs(op(Op::kReduce, {{"fn", "sum"}})).i64s("axes"), (Numbers{0, 1, 2}));
  EXPECT_EQ(attrs(op(Op::kReduce, {{"fn", "sum"}, {"axes", Numbers{-1, 0}}})).i64s("axes"), (Numbers{0, 2}));
  EXPECT_EQ(attrs(transpose(x, {-1, 0, -2})).i64s("perm"), (Numbers{2, 0, 1}));
  EXPECT_EQ(attrs(op(Op::kSoftmax, {})).i64("axis"), 2);
  EXPECT_EQ(attrs(op(Op::kUnsqueeze, {{"axes", Numbers{-1, 0}}})).i64s("axes"), (Numbers{0, 4}));
}

TEST_F(Normal, lists_beside_axes_are_sorted_with_them) {
  Attrs slice = attrs(op(Op::kSlice, {{"starts", Numbers{1, 2}}, {"ends", Numbers{3, 9}}, {"axes", Numbers{-1, 0}}}));
  EXPECT_EQ(slice.i64s("axes"), (Numbers{0, 2}));
  EXPECT_EQ(slice.dims("starts"), (std::vector<Dim>{2, 1}));
  EXPECT_EQ(slice.dims("ends"), (std::vector<Dim>{9, 3}));
  EXPECT_EQ(slice.i64s("steps"), (Numbers{1, 1}));
}

TEST_F(Normal, what_a_reshape_leaves_open_is_resolved) {
  EXPECT_EQ(attrs(reshape(x, {-1, 6})).dims("shape"), (std::vector<Dim>{n * 2, 6}));
  EXPECT_TRUE(graph.guards().empty());
  EXPECT_EQ(text_of(reshape(x, {5, -1}).type()), "f32[5,((12*n)/5)]");
  EXPECT_EQ(graph.guards().size(), 1u);  // what is left is all there is
}

// The quotient is that of open sizes which are 0 in a run.
TEST(normal, a_reshape_may_have_an_open_size_beside_a_zero_of_its_input) {
  auto shape = [](std::vector<Dim> from, std::vector<Dim> to) {
    Graph graph;
    Value x = *graph.add_input("x", DType::kF32, std::move(from));
    auto y = graph.add(Op::kReshape, std::array{x}, {{"shape", std::move(to)}});
    return y.ok() ? text_of(graph.type(*y)) : std::string(y.status().message());
  };
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  EXPECT_EQ(shape({n, 6}, {n, 2, -1}), "f32[n,2,3]");
  EXPECT_EQ(shape({0, 6}, {0, 2, -1}), "f32[0,2,3]");
  EXPECT_EQ(shape({n, m}, {-1, m}), "f32[n,m]");
  EXPECT_EQ(shape({0, 0}, {-1, 0}), "f32[0,0]");
  EXPECT_EQ(shape({0, m}, {0, -1}), "f32[0,m]");
  for (std::vector<Dim> to : {std::vector<Dim>{0, 0, -1}, {0, 4, -1}})
    EXPECT_EQ(shape({0, 6}, to).substr(0, 9), "reshape: ") << text_of(to);
  EXPECT_EQ(shape({0, 6}, {0, 4, -1}).substr(0, 45), "reshape: -1 beside a size of 0 is ambiguous; ");
  EXPECT_EQ(shape({0, 6}, {0, n, -1}).substr(0, 45), "reshape: -1 beside a size of 0 is ambiguous; ");
  EXPECT_EQ(shape({2, 6}, {0, -1}).substr(0, 45), "reshape: -1 beside a size of 0 is ambiguous; ");
}

TEST_F(Normal, an_output_dtype_that_comes_anyway_is_not_kept) {
  Expr y = b.op(Op::kMatmul, {x, transpose(x, {0, 2, 1})}, {{"out_dtype", DType::kF32}});
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_FALSE(attrs(y).has("out_dtype"));
}

TEST_F(Normal, only_what_differs_from_the_default_at_this_rank_is_printed) {
  auto line = [&](Expr y) {
    std::string text = print(graph), label = "%" + std::to_string(y.value().node) + " = ";
    size_t at = text.find(label) + label.size();
    return text.substr(at, text.find(" -> ", at) - at);
  };
  EXPECT_EQ(line(op(Op::kSoftmax, {{"axis", int64_t{2}}})), "softmax(x)");
  EXPECT_EQ(line(op(Op::kSoftmax, {{"axis", int64_t{-2}}})), "softmax(x) axis=1");
  EXPECT_EQ(line(op(Op::kReduce, {{"fn", "max"}, {"axes", Numbers{2, 0, 1}}})), "reduce(x) fn=max");
  EXPECT_EQ(line(slice(x, 0, 1, 2)), "slice(x) starts=[1] ends=[2]");
  EXPECT_EQ(line(slice(x, -1, 1, 2, 1)), "slice(x) starts=[1] ends=[2] axes=[2]");
}

TEST_F(Normal, what_is_wrong_is_named) {
  EXPECT_EQ(failure(Op::kSoftmax, {{"axis", int64_t{3}}}), "softmax: axis 3 is outside rank 3 (-3..2)");
  EXPECT_EQ(failure(Op::kSoftmax, {{"axis", int64_t{-4}}}, "got"), "softmax: axis -4 is outside rank 3 (-4)");
  EXPECT_EQ(failure(Op::kStack, {{"axis", int64_t{4}}}), "stack: axis 4 is outside rank 4 (-4..3)");
  EXPECT_EQ(failure(Op::kFlatten, {{"axis", int64_t{4}}}), "flatten: axis 4 is outside 0..3 (-3..3)");
  EXPECT_EQ(failure(Op::kReduce, {{"fn", "sum"}, {"axes", Numbers{1, -2}}}), "reduce: axis 1 is named twice");
  EXPECT_EQ(failure(Op::kTranspose, {{"perm", Numbers{0, 1}}}),
            "transpose: 'perm' names 2 axes of a value of rank 3 (3)");
  EXPECT_EQ(failure(Op::kSlice, {{"starts", Numbers{0}}, {"ends", Numbers{1, 2}}}),
            "slice: 'ends' needs one entry per axis that is named: 1, not 2 (1)");
  EXPECT_EQ(failure(Op::kPad, {{"lo", Numbers{0}}, {"hi", Numbers{0, 0, 0}}}),
            "pad: 'lo' needs one entry per axis: 3, not 1 (3)");
  EXPECT_EQ(failure(Op::kMaxPool, {{"kernel", Numbers{2}}, {"strides", Numbers{1, 1}}}),
            "max_pool: 'strides' needs one entry per spatial axis: 1, not 2 (1)");
  EXPECT_EQ(failure(Op::kReshape, {{"shape", std::vector<Dim>{-1, -1}}}), "reshape: more than one size is -1");
}

}  // namespace rlx
