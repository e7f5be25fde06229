// SPDX-License-Identifier: Apache-2.0
// Programs end to end: compile, bind, run at several sizes, set params, and what failures say.
#include "ops/interpret.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static const Dim kBatch = Dim::symbol("batch"), kSeq = Dim::symbol("seq");

static Tensor ramp(std::vector<int64_t> dims, float start = 0, float step = 0.125f) {
  Tensor tensor = *Tensor::create(DType::kF32, dims);
  for (int64_t i = 0; i < tensor.count(); i++) tensor.as<float>()[i] = start + step * static_cast<float>(i % 37);
  return tensor;
}

static Graph mlp() {
  Graph graph("mlp");
  EXPECT_TRUE(graph.declare_symbol("batch", {0, 64}).ok());
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF32, {kBatch, 6}));
  Expr w = b.wrap(*graph.add_param("w", DType::kF32, {6, 5}));
  Expr bias = b.wrap(*graph.add_param("b", DType::kF32, {5}));
  Expr h = unary(Op::kGelu, matmul(x, w) + bias);
  EXPECT_TRUE(graph.add_output("y", b.ops(Op::kSoftmax, {h})[0].value()).ok());
  EXPECT_TRUE(graph.add_output("h", reshape(h, {-1}).value()).ok());
  return graph;
}

static std::shared_ptr<Weights> mlp_weights() {
  auto weights = std::make_shared<Weights>();
  EXPECT_TRUE(weights->put("w", ramp({6, 5}, -1)).ok());
  EXPECT_TRUE(weights->put("b", ramp({5}, 0.5f)).ok());
  return weights;
}

static std::shared_ptr<Env> test_env() {
  return env_with(2);
}

TEST(runtime, a_program_runs_at_every_size_up_to_the_planned_one) {
  Graph graph = mlp();
  auto weights = mlp_weights();
  for (const char* device : {"", "reference"}) {
    auto env = test_env();
    auto program = Program::compile(env, graph, weights, *env->find_device(device), {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    for (int64_t batch : {64, 1, 7, 0, 64}) {
      Tensor x = ramp({batch, 6}, 0.25f);
      std::map<std::string, Tensor> params{{"w", weights->find("w")}, {"b", weights->find("b")}};
      auto want = interpret(graph, std::array{x}, params);
      ASSERT_TRUE(want.ok()) << want.status().message();
      auto got = (*program)->run({}, std::array{x}, {}, 2);
      ASSERT_TRUE(got.ok()) << got.status().message();
      expect_near((*got)[0], (*want)[0]);
      expect_near((*got)[1], (*want)[1]);
    }
  }
}

TEST(runtime, a_bound_exec_follows_its_inputs_and_its_params) {
  auto env = test_env();
  auto program = *Program::compile(env, mlp(), mlp_weights(), nullptr, {});
  auto exec = Exec::create(program);
  ASSERT_TRUE(exec.ok()) << exec.status().message();
  Tensor x = ramp({3, 6});
  ASSERT_TRUE((*exec)->bind(SlotKind::kInput, 0, x).ok());
  ASSERT_TRUE((*exec)->run().ok());
  Tensor y = *(*exec)->tensor(SlotKind::kOutput, 0);
  EXPECT_EQ(type_text(y.dtype(), y.dims()), "f32[3,5]");
  auto second = [&] { return on_host(y).as<float>()[1]; };
  float before = second();
  x.as<float>()[0] = 5;
  ASSERT_TRUE((*exec)->run().ok());
  EXPECT_NE(second(), before);
  before = second();
  ASSERT_TRUE(program->set_param("w", ramp({6, 5}, 1)).ok());
  ASSERT_TRUE((*exec)->run().ok());
  EXPECT_NE(second(), before);
}

TEST(runtime, failures_name_what_is_wrong) {
  auto env = test_env();
  Graph graph = mlp();
  auto weights = std::make_shared<Weights>();
  ASSERT_TRUE(weights->put("w", ramp({6, 5})).ok());
  auto program = *Program::compile(env, graph, weights, nullptr, {});
  auto run = [&](Tensor x) { return program->run({}, std::array{x}, {}, 2).status(); };
  EXPECT_EQ(run(ramp({2, 6})).code(), Code::kState);
  EXPECT_TRUE(run(ramp({2, 6})).message().starts_with("the param 'b' is not set: "));
  EXPECT_EQ(program->set_param("b", ramp({4})).code(), Code::kShape);
  EXPECT_EQ(program->set_param("c", ramp({4})).code(), Code::kNotFound);
  ASSERT_TRUE(program->set_param("b", ramp({5})).ok());
  EXPECT_EQ(run(ramp({65, 6})).message(), "the size 'batch' = 65 is above the largest 64");
  EXPECT_EQ(run(ramp({65, 6})).code(), Code::kRange);
  EXPECT_EQ(run(ramp({2, 7})).code(), Code::kShape);
  EXPECT_EQ(run(*Tensor::create(DType::kI32, std::array<int64_t, 2>{2, 6})).code(), Code::kDtype);
  EXPECT_TRUE(run(ramp({64, 6})).ok());
  EXPECT_EQ(Program::compile(env, graph, weights, nullptr, {{"nonsense", int64_t{1}}}).status().code(), Code::kOption);
  Graph open;
  Value a = *open.add_input("a", DType::kF32, {kBatch, kSeq});
  ASSERT_TRUE(open.add_output("b", *open.add(Op::kExp, std::array{a})).ok());
  EXPECT_EQ(
      Program::compile(env, open, nullptr, nullptr, {}).status().message(),
      "no upper size for 'batch', 'seq': give the options dims.batch=512 dims.seq=512, or declare a maximum; a model "
      "needs neither and plans for the sizes of each run");
}

// Halfway to the largest size, n^5 is more than any number holds.
TEST(runtime, sizes_are_found_from_high_powers_of_them) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {0, 4}).ok());
  Dim n = Dim::symbol("n");
  Builder b(graph);
  output(b, "y", unary(Op::kExp, input(b, "x", {n * n * n * n * n})));
  auto program = Program::compile(env_with(1), graph, std::make_shared<Weights>(), nullptr, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE((*program)->run({}, std::array{noise({243})}, {}, 1).ok());
  EXPECT_FALSE((*program)->run({}, std::array{noise({242})}, {}, 1).ok());
}

}  // namespace rlx
