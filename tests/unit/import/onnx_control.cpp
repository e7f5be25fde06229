// SPDX-License-Identifier: Apache-2.0
// Branches and loops of ONNX: their bodies read whatever is around them, at any level, and become closed graphs.
#include "onnx_maker.h"
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

using namespace testing_programs;
using onnx::Maker;

static Tensor count(int64_t value) {
  Tensor tensor = *Tensor::create(DType::kI64, std::span<const int64_t>());
  tensor.as<int64_t>()[0] = value;
  return tensor;
}

// All outputs on the CPU, one after another.
static std::vector<float> run(const Maker& model, const std::vector<Tensor>& in, const NamedAttrs& options = {}) {
  auto imported = model.import();
  EXPECT_TRUE(imported.ok()) << imported.status().message();
  if (!imported.ok()) return {};
  auto weights = std::make_shared<Weights>();
  for (auto& [name, tensor] : imported->weights) EXPECT_TRUE(weights->put(name, tensor).ok());
  auto program = Program::compile(env_with(1), imported->graph, weights, nullptr, options);
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return {};
  auto results = (*program)->run({}, in, {}, (*program)->slots(SlotKind::kOutput).size());
  EXPECT_TRUE(results.ok()) << results.status().message();
  std::vector<float> numbers;
  if (results.ok())
    for (const Tensor& tensor : *results)
      numbers.insert(numbers.end(), tensor.as<float>(), tensor.as<float>() + tensor.count());
  return numbers;
}

using Numbers = std::vector<float>;

TEST(onnx_control, branches_that_the_run_chooses_read_values_of_two_levels_around_them) {
  Maker plus, minus, yes, no, model(13);
  plus.node("Add", {"x", "twice"}, {"sum"}).output("sum");
  minus.node("Sub", {"mine", "twice"}, {"difference"}).output("difference");
  yes.node("Mul", {"x", "x"}, {"mine"});
  yes.node("If", {"q"}, {"inner"}, {Maker::attr("then_branch", plus), Maker::attr("else_branch", minus)})
      .output("inner");
  no.node("Neg", {"x"}, {"negative"}).output("negative");
  model.input("x", 1, {"2"}).input("p", 9, {}).input("q", 9, {}).node("Add", {"x", "x"}, {"twice"});
  model.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)}).output("y");
  Tensor x = row({3, 5});
  EXPECT_EQ(run(model, {x, truth(true), truth(true)}), (Numbers{9, 15}));
  EXPECT_EQ(run(model, {x, truth(true), truth(false)}), (Numbers{3, 15}));
  EXPECT_EQ(run(model, {x, truth(false), truth(true)}), (Numbers{-3, -5}));
}

// Many bodies would take quadratic time if each declared the sizes of all.
TEST(onnx_control, a_body_declares_the_sizes_that_it_uses) {
  constexpr int kBranches = 20;
  Maker model(13);
  model.input("p", 9, {});
  for (int i = 0; i < kBranches; i++) {
    std::string x = "x" + std::to_string(i), y = "y" + std::to_string(i);
    Maker yes, no;
    yes.node("Neg", {x}, {"negative"}).output("negative");
    no.node("Exp", {x}, {"power"}).output("power");
    model.input(x.c_str(), 1, {"s" + std::to_string(i)});
    model.node("If", {"p"}, {y}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)}).output(y.c_str());
  }
  auto imported = model.import();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  size_t symbols = 0;
  for (const Node& node : imported->graph.nodes())
    if (node.op == Op::kIf)
      for (const char* branch : {"then", "else"}) symbols += node.attrs.graph(branch)->symbols().size();
  EXPECT_EQ(symbols, 2u * kBranches);
}

// Both have a size that the run finds. The body names its own before it reads the other one.
TEST(onnx_control, a_size_found_in_a_body_differs_from_one_found_around_it) {
  Maker yes, no, model(13);
  yes.node("NonZero", {"b"}, {"inside"}).node("Cast", {"inside"}, {"places"}, {Maker::attr("to", 1)});
  yes.node("ReduceSum", {"places"}, {"sum"}, {Maker::attr("keepdims", 0)});
  yes.node("Add", {"around", "sum"}, {"both"}).output("both");
  no.node("Neg", {"around"}, {"negative"}).output("negative");
  model.input("p", 9, {}).input("a", 1, {"4"}).input("b", 1, {"3"});
  model.node("NonZero", {"a"}, {"found"}).node("Cast", {"found"}, {"around"}, {Maker::attr("to", 1)});
  model.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)}).output("y");
  EXPECT_EQ(run(model, {truth(true), row({0, 5, 0, 7}), row({1, 1, 1})}), (Numbers{4, 6}));
}

TEST(onnx_control, a_loop_counts_its_trips_and_obeys_its_condition) {
  Maker body, model(13);
  body.input("i", 7, {}).input("c", 9, {}).input("v", 1, {"2"});
  body.node("Add", {"v", "step"}, {"v2"}).node("ReduceMax", {"v2"}, {"top"}, {Maker::attr("keepdims", 0)});
  body.node("Less", {"top", "limit"}, {"more"}).output("more").output("v2");
  model.input("x", 1, {"2"}).input("trips", 7, {}).input("limit", 1, {}).node("Add", {"x", "x"}, {"step"});
  model.node("Loop", {"trips", "", "x"}, {"y"}, {Maker::attr("body", body)}).output("y");
  Tensor limit = noise({});
  limit.as<float>()[0] = 20;
  EXPECT_EQ(run(model, {row({1, 2}), count(3), limit}), (Numbers{7, 14}));
  EXPECT_EQ(run(model, {row({1, 2}), count(0), limit}), (Numbers{1, 2}));
  EXPECT_EQ(run(model, {row({1, 2}), count(9), limit}), (Numbers{11, 22}));
}

// tf2onnx writes bodies like this.
TEST(onnx_control, a_body_may_take_its_trip_and_its_condition_as_lists_of_one) {
  Maker body, model(13);
  body.input("i", 7, {"1"}).input("c", 9, {"1"}).input("v", 1, {"2"});
  body.node("Gather", {"table", "i"}, {"row"});
  body.node("Add", {"v", "row"}, {"v2"}).node("Less", {"row", "limit"}, {"more"}).output("more").output("v2");
  model.f32("table", {4}, {1, 2, 3, 4}).input("x", 1, {"2"}).input("trips", 7, {}).input("limit", 1, {});
  model.node("Loop", {"trips", "", "x"}, {"y"}, {Maker::attr("body", body)}).output("y");
  Tensor limit = noise({});
  limit.as<float>()[0] = 3;
  EXPECT_EQ(run(model, {row({0, 10}), count(2), limit}), (Numbers{3, 13}));
  EXPECT_EQ(run(model, {row({0, 10}), count(4), limit}), (Numbers{6, 16}));
  EXPECT_EQ(run(model, {row({0, 10}), count(0), limit}), (Numbers{0, 10}));
}

TEST(onnx_control, a_loop_of_known_trips_stacks_what_it_gives) {
  Maker body, model(13);
  body.input("i", 7, {}).input("c", 9, {}).input("v", 1, {"2"});
  body.node("Identity", {"c"}, {"c2"}).node("Mul", {"v", "w"}, {"v2"}).node("Neg", {"v2"}, {"row"});
  body.f32("w", {2}, {2, 3}).output("c2").output("v2").output("row");
  model.input("x", 1, {"2"}).i64("three", {}, {3});
  model.node("Loop", {"three", "", "x"}, {"y", "rows"}, {Maker::attr("body", body)}).output("y").output("rows");
  EXPECT_EQ(run(model, {row({1, 1})}), (Numbers{8, 27, -2, -3, -4, -9, -8, -27}));
}

TEST(onnx_control, a_scan_walks_the_rows_of_its_input) {
  Maker body, model(13);
  body.input("s", 1, {"2"}).input("x", 1, {"2"});
  body.node("Add", {"s", "x"}, {"sum"}).node("Mul", {"sum", "far"}, {"y"}).output("sum").output("y");
  model.input("s", 1, {"2"}).input("xs", 1, {"3", "2"}).node("Neg", {"s"}, {"far"});
  model.node("Scan", {"s", "xs"}, {"last", "ys"}, {Maker::attr("body", body), Maker::attr("num_scan_inputs", 1)});
  model.output("last").output("ys");
  Tensor xs = *Tensor::create(DType::kF32, std::array<int64_t, 2>{3, 2});
  for (int i = 0; i < 6; i++) xs.as<float>()[i] = static_cast<float>(i);
  EXPECT_EQ(run(model, {row({1, 2}), xs}), (Numbers{7, 11, -1, -6, -3, -12, -7, -22}));
}

TEST(onnx_control, a_loop_stacks_as_many_rows_as_data_say) {
  Maker body, model(13);
  body.input("i", 7, {}).input("c", 9, {}).input("v", 1, {"2"});
  body.node("Add", {"v", "x"}, {"v2"}).node("ReduceMax", {"v2"}, {"top"}, {Maker::attr("keepdims", 0)});
  body.node("Less", {"top", "limit"}, {"more"}).node("Neg", {"v2"}, {"row"});
  body.output("more").output("v2").output("row");
  model.input("x", 1, {"2"}).input("trips", 7, {}).input("limit", 1, {});
  model.node("Loop", {"trips", "", "x"}, {"y", "rows"}, {Maker::attr("body", body)});
  model.node("Mul", {"rows", "x"}, {"scaled"}).output("y").output("scaled");
  Tensor limit = noise({});
  limit.as<float>()[0] = 7;
  EXPECT_EQ(run(model, {row({1, 2}), count(2), limit}), (Numbers{3, 6, -2, -8, -3, -12}));
  EXPECT_EQ(run(model, {row({1, 2}), count(0), limit}), (Numbers{1, 2}));
  EXPECT_EQ(run(model, {row({1, 2}), count(99), limit}), (Numbers{4, 8, -2, -8, -3, -12, -4, -16}));
}

TEST(onnx_control, a_carry_of_a_loop_grows) {
  Maker body, model(13);
  body.input("i", 7, {}).input("c", 9, {}).input("v", 1, {""});
  body.node("Identity", {"c"}, {"c2"}).node("Concat", {"v", "x"}, {"v2"}, {Maker::attr("axis", 0)});
  body.node("ReduceSum", {"v"}, {"row"}, {Maker::attr("keepdims", 0)}).output("c2").output("v2").output("row");
  model.input("x", 1, {"2"}).input("trips", 7, {});
  model.node("Loop", {"trips", "", "x"}, {"y", "rows"}, {Maker::attr("body", body)}).output("y").output("rows");
  EXPECT_EQ(run(model, {row({1, 2}), count(2)}), (Numbers{1, 2, 1, 2, 1, 2, 3, 6}));
  EXPECT_EQ(run(model, {row({1, 2}), count(0)}), (Numbers{1, 2}));
}

TEST(onnx_control, sizes_choose_between_branches_of_different_shape) {
  Maker twice, first, model(13);
  twice.node("Concat", {"x", "x"}, {"both"}, {Maker::attr("axis", 0)}).output("both");
  first.node("Slice", {"x", "zero", "one"}, {"head"}).output("head");
  model.input("x", 1, {"n"}).i64("zero", {1}, {0}).i64("one", {1}, {1}).i64("three", {1}, {3});
  model.node("Shape", {"x"}, {"n"}).node("Equal", {"n", "three"}, {"is_three"}).node("Not", {"is_three"}, {"p"});
  model.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", twice), Maker::attr("else_branch", first)});
  model.node("Neg", {"y"}, {"z"}).output("z");
  NamedAttrs up_to_nine{{"dims.n", int64_t{9}}};
  EXPECT_EQ(run(model, {row({1, 2})}, up_to_nine), (Numbers{-1, -2, -1, -2}));
  EXPECT_EQ(run(model, {row({1, 2, 3})}, up_to_nine), (Numbers{-1}));
}

TEST(onnx_control, branches_whose_rank_differs_are_refused_with_the_sizes_that_choose) {
  Maker flat, tall;
  flat.node("Identity", {"x"}, {"same"}).output("same");
  tall.node("Unsqueeze", {"x", "one"}, {"column"}).output("column");
  auto model_of = [&](const char* size) {
    Maker model(13);
    model.input("x", 1, {size}).i64("one", {1}, {1}).i64("three", {1}, {3});
    model.node("Shape", {"x"}, {"n"}).node("Less", {"n", "three"}, {"p"});
    model.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", flat), Maker::attr("else_branch", tall)}).output("y");
    return model;
  };
  EXPECT_EQ(run(model_of("4"), {row({1, 2, 3, 4})}), (Numbers{1, 2, 3, 4}));
  auto imported = model_of("n").import();
  ASSERT_FALSE(imported.ok());
  EXPECT_NE(imported.status().message().find("the sizes in 'min(1,max(0,-n + 3))' choose between them"),
            std::string::npos)
      << imported.status().message();
}

// The maximum of each row, or the rows themselves; then a sum of all.
static Maker rows_or_their_maximum() {
  Maker flat, same, column, rows, model(13);
  flat.node("ReduceMax", {"x"}, {"top"}, {Maker::attr("axes", std::vector<int64_t>{1}), Maker::attr("keepdims", 0)});
  same.node("Identity", {"x"}, {"it"}).output("it");
  column.node("Unsqueeze", {"y", "one"}, {"tall"}).output("tall");
  rows.node("Neg", {"y"}, {"less"}).output("less");
  model.input("x", 1, {"2", "2"}).i64("one", {1}, {1}).f32("seven", {}, {7});
  model.node("ReduceSum", {"x"}, {"all"}, {Maker::attr("keepdims", 0)}).node("Less", {"all", "seven"}, {"q"});
  model.node("If", {"q"}, {"y"}, {Maker::attr("then_branch", same), Maker::attr("else_branch", flat.output("top"))});
  model.node("If", {"q"}, {"z"}, {Maker::attr("then_branch", rows), Maker::attr("else_branch", column)}).output("z");
  model.node("ReduceSum", {"y"}, {"sum"}, {Maker::attr("keepdims", 0)}).output("sum");
  return model;
}

TEST(onnx_control, what_follows_branches_of_unequal_ranks_becomes_part_of_them) {
  Maker model = rows_or_their_maximum();
  Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 2>{2, 2});
  for (int i = 0; i < 4; i++) x.as<float>()[i] = static_cast<float>(i);
  EXPECT_EQ(run(model, {x}), (Numbers{0, -1, -2, -3, 6}));
  x.as<float>()[3] = 5;
  EXPECT_EQ(run(model, {x}), (Numbers{1, 5, 6}));
}

TEST(onnx_control, a_scan_reads_and_writes_along_any_axis_from_either_end) {
  Maker body, model(13);
  body.input("s", 1, {"2"}).input("a", 1, {"2"}).input("b", 1, {"2"});
  body.node("Add", {"s", "a"}, {"t"}).node("Mul", {"t", "b"}, {"s2"}).node("Neg", {"s2"}, {"y"});
  body.node("Identity", {"a"}, {"a2"}).output("s2").output("y").output("a2");
  model.input("s", 1, {"2"}).input("xs", 1, {"2", "n"}).input("zs", 1, {"n", "2"});
  using Axes = std::vector<int64_t>;
  model.node("Scan", {"s", "xs", "zs"}, {"last", "ys", "as"},
             {Maker::attr("body", body), Maker::attr("num_scan_inputs", 2), Maker::attr("scan_input_axes", Axes{-1, 0}),
              Maker::attr("scan_input_directions", Axes{1, 0}), Maker::attr("scan_output_axes", Axes{1, 0}),
              Maker::attr("scan_output_directions", Axes{0, 1})});
  model.output("last").output("ys").output("as");
  Tensor xs = *Tensor::create(DType::kF32, std::array<int64_t, 2>{2, 2}), zs = *Tensor::create(DType::kF32, xs.dims());
  for (int i = 0; i < 4; i++) xs.as<float>()[i] = static_cast<float>(i + 1), zs.as<float>()[i] = i < 2 ? 1 : 2;
  // First the last column (2, 4) with (1, 1), then (1, 3) with (2, 2).
  EXPECT_EQ(run(model, {row({1, 1}), xs, zs}, {{"dims.n", int64_t{9}}}), (Numbers{8, 16, -3, -8, -5, -16, 1, 3, 2, 4}));
}

TEST(onnx_control, a_loop_in_a_branch_reads_values_of_all_levels) {
  Maker body, yes, no, model(13);
  body.input("i", 7, {}).input("c", 9, {}).input("v", 1, {"2"});
  body.node("Identity", {"c"}, {"c2"}).node("Mul", {"v", "far"}, {"v1"}).node("Add", {"v1", "mine"}, {"v2"});
  body.node("Add", {"v2", "x"}, {"row"}).output("c2").output("v2").output("row");
  yes.node("Add", {"x", "x"}, {"mine"}).node("Loop", {"m", "", "x"}, {"lv", "lr"}, {Maker::attr("body", body)});
  yes.node("ReduceSum", {"lr"}, {"total"}, {Maker::attr("keepdims", 0)})
      .node("Add", {"lv", "total"}, {"a"})
      .output("a");
  no.node("Sub", {"x", "far"}, {"b"}).output("b");
  model.input("x", 1, {"2"}).input("m", 7, {}).input("p", 9, {}).node("Neg", {"x"}, {"far"});
  model.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)}).output("y");
  // v: (1, 2) -> (1, 0) -> (1, 4); rows (2, 2), (2, 6).
  EXPECT_EQ(run(model, {row({1, 2}), count(2), truth(true)}), (Numbers{13, 16}));
  EXPECT_EQ(run(model, {row({1, 2}), count(0), truth(true)}), (Numbers{1, 2}));
  EXPECT_EQ(run(model, {row({1, 2}), count(2), truth(false)}), (Numbers{2, 4}));
}

TEST(onnx_control, carries_of_a_scan_that_stacks_them_keep_the_sizes_that_a_run_finds) {
  Maker body, model(16);
  body.input("before", 1, {"", "", ""}).input("row", 1, {"", "", ""}).node("Add", {"before", "row"}, {"sum"});
  body.node("Identity", {"row"}, {"after"}).output("after").output("sum");
  model.input("start", 1, {"1", "1", "2"})
      .input("s", 7, {"4"})
      .input("x", 1, {"4"})
      .node("Reshape", {"x", "s"}, {"rows"});
  model.node("Scan", {"start", "rows"}, {"last", "sums"},
             {Maker::attr("body", body), Maker::attr("num_scan_inputs", 1)});
  model.output("sums");
  Tensor start = *Tensor::create(DType::kF32, std::array<int64_t, 3>{1, 1, 2});
  std::fill_n(start.as<float>(), 2, 10.f);
  Tensor shape = *Tensor::create(DType::kI64, std::array<int64_t, 1>{4});
  std::ranges::copy(std::array<int64_t, 4>{2, 1, 1, 2}, shape.as<int64_t>());
  EXPECT_EQ(run(model, {start, shape, row({1, 2, 3, 4})}), (Numbers{11, 12, 4, 6}));
}

TEST(onnx_control, a_loop_that_carries_nothing_needs_no_condition) {
  Maker body, model(13);
  body.input("i", 7, {}).input("more", 9, {}).node("Cast", {"i"}, {"real"}, {Maker::attr("to", 1)});
  body.node("Add", {"x", "real"}, {"row"}).node("Identity", {"more"}, {"again"}).output("again").output("row");
  model.input("x", 1, {"1"}).input("trips", 7, {}).node("Loop", {"trips", ""}, {"y"}, {Maker::attr("body", body)});
  model.output("y");
  EXPECT_EQ(run(model, {row({5}), count(3)}), (Numbers{5, 6, 7}));
  EXPECT_EQ(run(model, {row({5}), count(5000)}).size(), 5000U);
}

}  // namespace rlx
