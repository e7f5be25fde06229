// SPDX-License-Identifier: Apache-2.0
// From an ONNX model to a graph: above all its sizes, which keep the names and expressions of the model.
#include "import/onnx/onnx.h"

#include <gtest/gtest.h>

#include "onnx_maker.h"
#include "ops/interpret.h"
#include "tests/unit/tensors.h"

namespace rlx {

using onnx::Maker;
using testing_programs::counting;

static std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes())
    if (node.op != Op::kConstant) ops.emplace_back(graph.info(node).name);
  return ops;
}

static ValueType output_type(const Imported& imported) {
  return imported.graph.type(imported.graph.outputs().at(0).value);
}

// The only output at these inputs, as numbers.
static std::vector<double> run(const Imported& imported, std::span<const Tensor> inputs) {
  std::map<std::string, Tensor> params(imported.weights.begin(), imported.weights.end());
  auto results = interpret(imported.graph, inputs, params);
  EXPECT_TRUE(results.ok()) << results.status().message();
  std::vector<double> numbers;
  if (results.ok())
    for (int64_t i = 0; i < results->at(0).count(); i++) numbers.push_back(element_as_f64(results->at(0), i));
  return numbers;
}

#define ASSERT_IMPORTS(imported) ASSERT_TRUE((imported).ok()) << (imported).status().message()

// ---- sizes ----

TEST(onnx_import, shape_arithmetic_becomes_dims_and_leaves_no_op) {
  Maker model(13);
  model.input("x", 1, {"batch", "seq", "64"}).i64("one", {}, {1}).i64("axis", {1}, {0}).i64("heads", {2}, {4, 16});
  model.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "one"}, {"seq"}).node("Unsqueeze", {"seq", "axis"}, {"seq1"});
  model.i64("minus", {1}, {-1}).node("Concat", {"minus", "seq1", "heads"}, {"shape"}, {Maker::attr("axis", 0)});
  model.node("Reshape", {"x", "shape"}, {"y"}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  EXPECT_EQ(ops_of(imported->graph), (std::vector<std::string>{"input", "reshape"}));
  EXPECT_EQ(text_of(output_type(*imported)), "f32[batch,seq,4,16]");
  EXPECT_EQ(imported->graph.symbols().size(), 2u);
  EXPECT_EQ(imported->graph.symbol_range("seq").lo, 0);
  EXPECT_EQ(imported->graph.symbol_range("seq").hi, Interval::kUnbounded);
}

TEST(onnx_import, sizes_keep_the_models_names_and_expressions) {
  Maker model(13);
  model.input("x", 1, {"past + seq", "", "3", "unk 'n", "-1"}).input("now", 1, {"seq"});  // which tells the two apart
  model.node("Identity", {"x"}, {"y"}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  EXPECT_EQ(text_of(output_type(*imported)), "f32[past + seq,x.1,3,'unk \\x27n',x.4]");
}

// Each expression over n, computed by ONNX nodes on Shape(x), at several n.
TEST(onnx_import, size_expressions_have_the_values_that_the_nodes_say) {
  struct Case {
    const char* op;
    int64_t other;
    int64_t (*expected)(int64_t n);
  };
  static constexpr Case kCases[] = {
      {"Add", 7, [](int64_t n) { return n + 7; }},
      {"Sub", 2, [](int64_t n) { return n - 2; }},
      {"Mul", 3, [](int64_t n) { return n * 3; }},
      {"Div", 4, [](int64_t n) { return n / 4; }},
      {"Mod", 4, [](int64_t n) { return n % 4; }},
      {"Max", 5, [](int64_t n) { return std::max<int64_t>(n, 5); }},
      {"Min", 5, [](int64_t n) { return std::min<int64_t>(n, 5); }},
  };
  for (const Case& test : kCases) {
    Maker model(13);
    model.input("x", 1, {"n"}).i64("c", {1}, {test.other}).node("Shape", {"x"}, {"s"});
    model.node(test.op, {"s", "c"}, {"y"}).output("y");
    auto imported = model.import();
    ASSERT_IMPORTS(imported);
    for (int64_t n : {0, 1, 4, 9}) {
      Tensor x = counting({n});
      EXPECT_EQ(run(*imported, {&x, 1}), (std::vector<double>{static_cast<double>(test.expected(n))})) << test.op << n;
    }
  }
}

// Of n - 5: division goes toward zero, the remainder is that of rounding down, or, with fmod, toward zero.
TEST(onnx_import, sizes_below_zero_divide_as_the_nodes_say) {
  Maker model(13);
  model.input("x", 1, {"n"}).i64("c", {1}, {5}).i64("four", {1}, {4}).node("Shape", {"x"}, {"s"});
  model.node("Sub", {"s", "c"}, {"d"}).node("Div", {"d", "four"}, {"q"}).node("Mod", {"d", "four"}, {"r"});
  model.node("Mod", {"d", "four"}, {"f"}, {Maker::attr("fmod", 1)});
  model.node("Concat", {"q", "r", "f"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  for (const std::string& op : ops_of(imported->graph)) EXPECT_TRUE(op != "div" && op != "floor_mod") << op;
  for (int64_t n : {0, 1, 4, 5, 6, 9, 14}) {
    Tensor x = counting({n});
    int64_t d = n - 5, rest = d % 4;
    std::vector<double> expected = {static_cast<double>(d / 4), static_cast<double>(rest < 0 ? rest + 4 : rest),
                                    static_cast<double>(rest)};
    EXPECT_EQ(run(*imported, {&x, 1}), expected) << n;
  }
}

// Pads as torch's older exporter writes them: pairs from the last axis on, turned and laid flat. How many there are to
// a multiple of 4 is no negative number, so nothing holds them at 0.
// What torch makes of roll: 2 modulo the size. An empty axis is no error.
TEST(onnx_import, sizes_that_divide_may_be_zero) {
  Maker model(17);
  model.input("x", 1, {"n"}).i64("two", {1}, {2}).i64("zero", {1}, {0}).node("Shape", {"x"}, {"s"});
  model.node("Mod", {"two", "s"}, {"by"}).node("Slice", {"x", "zero", "by"}, {"a"});
  model.node("Slice", {"x", "by", "s"}, {"b"}).node("Concat", {"b", "a"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  EXPECT_EQ(ops_of(imported->graph), (std::vector<std::string>{"input", "slice", "slice", "concat"}));
  EXPECT_EQ(text_of(output_type(*imported)), "f32[n]");
  for (int64_t n : {0, 1, 2, 3, 5}) {
    std::vector<double> expected;
    for (int64_t i = 0; i < n; i++) expected.push_back(static_cast<double>((i + 2) % n));
    Tensor x = counting({n});
    EXPECT_EQ(run(*imported, {&x, 1}), expected) << n;
  }
}

TEST(onnx_import, sizes_that_are_moved_stay_sizes) {
  Maker model(17);
  model.input("x", 1, {"n", "3"}).i64("four", {1}, {4}).i64("zero", {1}, {0}).node("Shape", {"x"}, {"s"});
  model.node("Gather", {"s", "zero"}, {"n"}).node("Mod", {"n", "four"}, {"m"}).node("Sub", {"four", "m"}, {"d"});
  model.node("Mod", {"d", "four"}, {"pad"}).i64("pairs", {2}, {-1, 2}).i64("flat", {1}, {-1});
  model.node("Concat", {"zero", "zero", "zero", "pad"}, {"list"}, {Maker::attr("axis", 0)});
  model.node("Reshape", {"list", "pairs"}, {"rows"}).i64("from", {1}, {-1}).i64("to", {1}, {INT64_MIN + 1});
  model.node("Slice", {"rows", "from", "to", "zero", "from"}, {"turned"});
  model.node("Transpose", {"turned"}, {"columns"}, {Maker::attr("perm", std::vector<int64_t>{1, 0})});
  model.node("Reshape", {"columns", "flat"}, {"pads"}).node("Pad", {"x", "pads"}, {"y"}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  EXPECT_EQ(ops_of(imported->graph), (std::vector<std::string>{"input", "pad"}));
  EXPECT_EQ(text_of(output_type(*imported)).find("max"), std::string::npos) << text_of(output_type(*imported));
  for (int64_t n : {0, 1, 4, 7}) {
    Tensor x = counting({n, 3});
    EXPECT_EQ(run(*imported, {&x, 1}).size(), static_cast<size_t>((n + 3) / 4 * 4 * 3)) << n;
  }
}

// x[4 - n:] counts from the end where n is more than 4.
TEST(onnx_import, a_bound_below_zero_at_some_sizes_counts_from_the_end) {
  Maker model(13);
  model.input("x", 1, {"n"}).i64("c", {1}, {4}).i64("all", {1}, {INT64_MAX}).node("Shape", {"x"}, {"s"});
  model.i64("zero", {1}, {0})
      .i64("one", {1}, {1})
      .node("Sub", {"c", "s"}, {"from"})
      .node("Sub", {"s", "one"}, {"last"});
  model.node("Slice", {"x", "from", "all", "zero"}, {"tail"}).node("Slice", {"x", "zero", "last", "zero"}, {"front"});
  model.node("Concat", {"tail", "front"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  for (int64_t n : {0, 1, 3, 4, 5, 6, 9, 12}) {
    int64_t from = 4 - n < 0 ? std::max<int64_t>(0, 4 - n + n) : 4 - n;
    std::vector<double> expected;
    for (int64_t i = std::min(from, n); i < n; i++) expected.push_back(static_cast<double>(i));
    for (int64_t i = 0; i < n - 1; i++) expected.push_back(static_cast<double>(i));
    Tensor x = counting({n});
    EXPECT_EQ(run(*imported, {&x, 1}), expected) << n;
  }
}

// torch takes the largest size of a list of images, as floats even where all are known.
TEST(onnx_import, the_largest_of_sizes_is_a_size) {
  Maker model(13);
  model.input("x", 1, {"n", "m"}).f32("sizes", {2}, {2, 3}).node("Shape", {"x"}, {"s"});
  model.node("ReduceMax", {"s"}, {"most"}, {Maker::attr("keepdims", 1)});
  model.node("ReduceMax", {"sizes"}, {"f"}, {Maker::attr("keepdims", 1)});
  model.node("Cast", {"f"}, {"three"}, {Maker::attr("to", 7)}).f32("zero", {1}, {0});
  model.node("Concat", {"most", "three"}, {"shape"}, {Maker::attr("axis", 0)});
  model.node("Expand", {"zero", "shape"}, {"y"}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  EXPECT_EQ(text_of(output_type(*imported)), "f32[max(m,n),3]");
}

// What torch makes of repeat_interleave: a one-hot list of how often each axis is repeated.
TEST(onnx_import, one_hot_sizes_stay_sizes) {
  Maker model(13);
  model.input("x", 1, {"n", "1", "2"}).i64("at", {1}, {1}).i64("rank", {}, {3}).i64("one", {1}, {1});
  model.i64("zero", {1}, {0}).node("Shape", {"x"}, {"s"}).node("Gather", {"s", "zero"}, {"n"});
  model.node("Concat", {"one", "n"}, {"values"}, {Maker::attr("axis", 0)});
  model.node("OneHot", {"at", "rank", "values"}, {"hot"}).i64("flat", {1}, {-1});
  model.node("Reshape", {"hot", "flat"}, {"repeats"}).node("Tile", {"x", "repeats"}, {"y"}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  EXPECT_EQ(text_of(output_type(*imported)), "f32[n,n,2]");
}

TEST(onnx_import, a_size_is_never_minus_one) {
  Maker model(13);
  model.input("x", 1, {"n", "1"}).i64("open", {1}, {-1}).i64("five", {1}, {5}).node("Shape", {"x"}, {"s"});
  model.node("Equal", {"s", "open"}, {"is_open"}).node("Where", {"is_open", "five", "s"}, {"shape"});
  model.node("Expand", {"x", "shape"}, {"y"}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  EXPECT_EQ(text_of(output_type(*imported)), "f32[n,1]");
}

TEST(onnx_import, what_the_ranges_do_not_decide_runs) {
  Maker model(13);
  model.input("x", 1, {"n"}).i64("four", {1}, {4}).node("Shape", {"x"}, {"s"});
  model.node("Equal", {"s", "four"}, {"is_four"}).output("is_four");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  for (int64_t n : {3, 4}) {
    Tensor x = counting({n});
    EXPECT_EQ(run(*imported, {&x, 1}), std::vector<double>{n == 4 ? 1.0 : 0.0});
  }
}

TEST(onnx_import, literals_are_computed_so_that_sizes_may_depend_on_them) {
  Maker model(13);
  model.input("x", 1, {"n", "6"}).f32("half", {1}, {0.5f}).i64("six", {1}, {6}).i64("open", {1}, {-1});
  model.node("Cast", {"six"}, {"f"}, {Maker::attr("to", 1)}).node("Mul", {"f", "half"}, {"h"});
  model.node("Floor", {"h"}, {"hf"}).node("Cast", {"hf"}, {"three"}, {Maker::attr("to", 7)});
  model.node("Concat", {"open", "three"}, {"shape"}, {Maker::attr("axis", 0)});
  model.node("Reshape", {"x", "shape"}, {"y"}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  EXPECT_EQ(text_of(output_type(*imported)), "f32[2*n,3]");
}

// ---- weights ----

TEST(onnx_import, large_float_initializers_are_params_where_weights_are_asked_for) {
  Maker model(13);
  model.input("x", 1, {"n", "65"}).f32("w", {65}, std::vector<float>(65, 2)).f32("b", {1}, {1});
  model.node("Mul", {"x", "w"}, {"m"}).node("Add", {"m", "b"}, {"y"}).output("y");
  auto with = model.import(true), without = model.import(false);
  ASSERT_IMPORTS(with);
  ASSERT_IMPORTS(without);
  ASSERT_EQ(with->graph.params().size(), 1u);
  EXPECT_EQ(with->graph.leaf_name(with->graph.params()[0]), "w");
  ASSERT_EQ(with->weights.size(), 1u);
  EXPECT_EQ(without->graph.params().size(), 0u);
  Tensor x = counting({1, 65});
  EXPECT_EQ(run(*with, {&x, 1}), run(*without, {&x, 1}));
  EXPECT_EQ(run(*with, {&x, 1})[3], 7);
}

TEST(onnx_import, numbers_per_channel_are_constants_that_rules_can_read) {
  Maker model(13);
  model.input("x", 3, {"n", "65"}).f32("s", {65}, std::vector<float>(65, 2)).f32("w", {65}, std::vector<float>(65, 3));
  model.node("DequantizeLinear", {"x", "s"}, {"m"}, {Maker::attr("axis", 1)})
      .node("Mul", {"m", "w"}, {"y"})
      .output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  ASSERT_EQ(imported->graph.params().size(), 1u);
  EXPECT_EQ(imported->graph.leaf_name(imported->graph.params()[0]), "w");
}

// ---- opsets: one meaning, spelled as attribute or input ----

TEST(onnx_import, axes_and_bounds_are_attributes_in_old_opsets_and_inputs_in_new_ones) {
  Tensor x = counting({2, 3});
  auto result = [&](Maker& model) {
    auto imported = model.output("y").import();
    EXPECT_TRUE(imported.ok()) << imported.status().message();
    return imported.ok() ? run(*imported, {&x, 1}) : std::vector<double>();
  };
  Maker old_slice(9), new_slice(13);
  old_slice.input("x", 1, {"n", "3"})
      .node("Slice", {"x"}, {"y"},
            {Maker::attr("starts", std::vector<int64_t>{1}), Maker::attr("ends", std::vector<int64_t>{INT64_MAX}),
             Maker::attr("axes", std::vector<int64_t>{1})});
  new_slice.input("x", 1, {"n", "3"}).i64("b", {1}, {1}).i64("e", {1}, {INT64_MAX}).i64("a", {1}, {1});
  new_slice.node("Slice", {"x", "b", "e", "a"}, {"y"});
  EXPECT_EQ(result(old_slice), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(result(new_slice), (std::vector<double>{1, 2, 4, 5}));

  Maker old_sum(11), new_sum(13);
  old_sum.input("x", 1, {"n", "3"}).node("ReduceSum", {"x"}, {"y"}, {Maker::attr("axes", std::vector<int64_t>{-1})});
  new_sum.input("x", 1, {"n", "3"}).i64("a", {1}, {-1}).node("ReduceSum", {"x", "a"}, {"y"});
  EXPECT_EQ(result(old_sum), (std::vector<double>{3, 12}));
  EXPECT_EQ(result(new_sum), (std::vector<double>{3, 12}));
}

TEST(onnx_import, softmax_before_opset_13_takes_all_axes_from_axis_on) {
  Tensor x = *Tensor::create(DType::kF32, std::vector<int64_t>{1, 2, 2});
  for (int64_t opset : {11, 13}) {
    Maker model(opset);
    model.input("x", 1, {"n", "2", "2"}).node("Softmax", {"x"}, {"y"}, {Maker::attr("axis", 1)}).output("y");
    auto imported = model.import();
    ASSERT_IMPORTS(imported);
    EXPECT_EQ(run(*imported, {&x, 1}), std::vector<double>(4, opset == 11 ? 0.25 : 0.5));
  }
}

// ---- control ----

TEST(onnx_import, a_known_branch_is_taken_and_the_other_never_looked_at) {
  Maker yes, no, model(13);
  yes.node("Neg", {"x"}, {"yes_out"}).output("yes_out");
  no.node("NoSuchKind", {"x"}, {"no_out"}).output("no_out");
  model.input("x", 1, {"n", "3"}).i64("two", {}, {2}).node("Shape", {"x"}, {"s"}).node("Size", {"s"}, {"rank"});
  model.node("Equal", {"rank", "two"}, {"is_matrix"});
  model.node("If", {"is_matrix"}, {"y"}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)}).output("y");
  auto imported = model.import();
  ASSERT_IMPORTS(imported);
  EXPECT_EQ(ops_of(imported->graph), (std::vector<std::string>{"input", "neg"}));
}

// ---- failures ----

static std::string failure_of(const Maker& model, Code code) {
  auto imported = model.import();
  EXPECT_FALSE(imported.ok());
  EXPECT_EQ(imported.status().code(), code);
  return std::string(imported.status().message());
}

TEST(onnx_import, all_unsupported_kinds_are_named_at_once) {
  Maker model(13);
  model.input("x", 1, {"n"}).node("Foo", {"x"}, {"a"}).node("Foo", {"x"}, {"b"}).node("Relu", {"a"}, {"c"});
  model.node("Bar", {"c"}, {"d"}, {}, "com.example").node("Baz", {"x"}, {"y"}, {}, "com.example").output("y");
  EXPECT_EQ(failure_of(model, Code::kUnsupported),
            "ONNX model: node 'a' (Foo of ai.onnx, opset 13) cannot be imported; in all: "
            "[Foo of ai.onnx, opset 13: no such node kind is known; 2 nodes] "
            "[Bar of com.example, opset 0: no such node kind is known; 1 node] "
            "[Baz of com.example, opset 0: no such node kind is known; 1 node]");
}

// Converters append nodes. ONNX asks for an order, but other runtimes do without.
TEST(onnx_import, nodes_may_stand_in_any_order) {
  Maker yes, no, model(13);
  yes.node("Neg", {"late"}, {"minus"}).output("minus");
  no.node("Identity", {"own"}, {"same"}).node("Relu", {"late"}, {"own"}).output("same");
  model.input("x", 1, {"3"}).input("p", 9, {}).node("Abs", {"x"}, {"first"});
  model.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)});
  model.node("Exp", {"first"}, {"late"}).output("y");
  auto imported = model.import();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->graph.node(imported->graph.outputs()[0].value.node).op, Op::kIf);
  Maker cycle(13);
  cycle.input("x", 1, {"3"}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
  EXPECT_EQ(failure_of(cycle, Code::kData),
            "ONNX node 'b' (Relu of ai.onnx, opset 13): ONNX model: nothing before it defines the value 'a'");
}

TEST(onnx_import, a_failure_names_the_node_and_what_it_expected) {
  Maker reshape(13), unknown(13), twice(13), attribute(13), axis(13), rank(13), opset(29), type(13);
  reshape.input("x", 1, {"3"}).i64("s", {1}, {4}).node("Reshape", {"x", "s"}, {"y"}).output("y");
  EXPECT_EQ(failure_of(reshape, Code::kShape),
            "ONNX node 'y' (Reshape of ai.onnx, opset 13): reshape: the number of elements: 4 is not 3; x is input 'x' "
            "f32[3]");
  unknown.input("x", 1, {"3"}).node("Relu", {"z"}, {"y"}).output("y");
  EXPECT_EQ(failure_of(unknown, Code::kData),
            "ONNX node 'y' (Relu of ai.onnx, opset 13): ONNX model: nothing before it defines the value 'z'");
  twice.input("x", 1, {"3"}).node("Relu", {"x"}, {"x"}).output("x");
  EXPECT_EQ(failure_of(twice, Code::kData),
            "ONNX node 'x' (Relu of ai.onnx, opset 13): ONNX model: the value 'x' is defined twice");
  attribute.input("x", 1, {"3"}).node("Relu", {"x"}, {"y"}, {Maker::attr("slope", 1)}).output("y");
  EXPECT_NE(failure_of(attribute, Code::kUnsupported).find("the attribute 'slope' is not known"), std::string::npos);
  axis.input("x", 1, {"3"}).node("Softmax", {"x"}, {"y"}, {Maker::attr("axis", 2)}).output("y");
  EXPECT_EQ(failure_of(axis, Code::kRange),
            "ONNX node 'y' (Softmax of ai.onnx, opset 13): axis 2 of a value of rank 1");
  type.input("x", 8, {"3"});
  EXPECT_EQ(failure_of(type, Code::kUnsupported), "ONNX model: input 'x': elements of the ONNX type string");
  opset.input("x", 1, {"3"});
  EXPECT_EQ(failure_of(opset, Code::kUnsupported), "ONNX model: opset 29 of ai.onnx; 1 to 28 can be read");
}

TEST(onnx_import, sizes_that_explode_are_refused) {
  Maker model(13);
  model.input("x", 1, {"n"}).node("Shape", {"x"}, {"s0"});
  for (int i = 0; i < 60; i++) {
    std::string from = "s" + std::to_string(i), to = "s" + std::to_string(i + 1);
    model.node("Mul", {from, from}, {to});
  }
  EXPECT_NE(failure_of(model.output("s60"), Code::kUnsupported).find("more than 1000 parts"), std::string::npos);
}

}  // namespace rlx
