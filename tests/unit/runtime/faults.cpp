// SPDX-License-Identifier: Apache-2.0
// A device that fails: every act of every kind, one after the other. Each failure is a status, and what it met works
// again when the device does.
#include "runtime/model.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;
using far::Act;
using far::Faults;

// y = x @ w + 1, with a loop that doubles it three times where the first element is positive.
static Graph network() {
  auto body_of = [](const std::function<Expr(Expr)>& make) {
    auto graph = std::make_shared<Graph>();
    Builder b(*graph);
    output(b, "y", make(input(b, "x", {4, 8})));
    return std::shared_ptr<const Graph>(graph);
  };
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4, 16});
  Expr w = b.wrap(*graph.add_param("w", DType::kF32, {16, 8}));
  Expr h = matmul(x, w) + 1.0;
  Expr first = less(b.scalar(DType::kF32, 0), reshape(slice(slice(h, 0, 0, 1), 1, 0, 1), {}));
  auto twice = body_of([](Expr it) { return it * 2.0; }), negative = body_of([](Expr it) { return it * -1.0; });
  output(b, "y", b.ops(Op::kIf, std::array{first, h}, {{"then", twice}, {"else", negative}})[0]);
  return graph;
}

static std::shared_ptr<Weights> weights_of_network() {
  auto weights = std::make_shared<Weights>();
  EXPECT_TRUE(weights->put("w", noise({16, 8}, 3)).ok());
  return weights;
}

class faults : public testing::TestWithParam<Act> {
 protected:
  std::shared_ptr<Faults> planted = std::make_shared<Faults>();

  // Does it with the first act failing, then the second, until none fails. Returns how many did.
  int64_t each(const std::function<Status()>& work) {
    for (int64_t nth = 0;; nth++) {
      planted->plan(GetParam(), nth);
      Status status = work();
      bool was_met = planted->count(GetParam()) > nth;
      planted->clear();
      if (!was_met) {
        EXPECT_TRUE(status.ok()) << status.message();
        return nth;
      }
      EXPECT_FALSE(status.ok()) << "act " << nth << " has failed unheard";
      EXPECT_FALSE(status.message().empty() && status.code() != Code::kNoMemory);
      if (nth == 1000) return nth;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(acts, faults,
                         testing::Values(Act::kAllocate, Act::kCompile, Act::kTransfer, Act::kSubmit, Act::kLoss),
                         [](const auto& info) { return std::string(far::kActs[static_cast<size_t>(info.param)]); });

TEST(faults_of_opening, are_those_of_the_environment) {
  auto planted = std::make_shared<Faults>();
  planted->plan(Act::kOpen, 0);
  EnvOptions options;
  options.backends.push_back(far::backend(planted));
  EXPECT_EQ(Env::create(options).status().code(), Code::kUnknown);
  EXPECT_TRUE(Env::create(options).ok());
}

TEST_P(faults, a_program_is_compiled_runs_and_has_its_params_set) {
  auto env = env_with(1, planted);
  Graph graph = network();
  Device* device = *env->find_device("far");
  each([&] { return Program::compile(env, graph, weights_of_network(), device, {}).status(); });
  auto program = *Program::compile(env, graph, weights_of_network(), device, {});
  Tensor x = noise({4, 16});
  Tensor want = (*program->run({}, std::array{x}, {}, 1))[0];
  int64_t met = each([&] {
    auto ran = program->run({}, std::array{x}, {}, 1);
    if (ran.ok()) expect_near((*ran)[0], want);
    return ran.status();
  });
  bool acts_in_runs = GetParam() != Act::kCompile && GetParam() != Act::kAllocate;
  EXPECT_EQ(met > 0, acts_in_runs);
  Tensor other = noise({16, 8}, 9);
  each([&] { return program->set_param("w", other); });
  EXPECT_TRUE(program->run({}, std::array{x}, {}, 1).ok());
}

TEST_P(faults, an_exec_with_links_binds_submits_and_runs) {
  auto env = env_with(2, planted);
  Graph graph;
  Builder b(graph);
  Expr state = input(b, "state", {8}), x = input(b, "x", {8});
  output(b, "next", state + x);
  auto program = *Program::compile(env, graph, nullptr, *env->find_device("far"), {});
  Tensor ones = *Tensor::create(DType::kF32, std::array<int64_t, 1>{8});
  std::fill_n(ones.as<float>(), 8, 1.0f);
  each([&]() -> Status {
    auto exec = RLX_TRY(Exec::create(program));
    RLX_TRY(exec->bind(SlotKind::kInput, 1, ones));
    RLX_TRY(exec->link(0, 0));
    for (int run = 0; run < 3; run++) {
      Fence fence = RLX_TRY(exec->submit({}));
      RLX_TRY(fence.wait());
      RLX_TRY(fence.result());
    }
    RLX_TRY(exec->run());
    Tensor next = RLX_TRY(exec->tensor(SlotKind::kOutput, 0));
    Tensor read = RLX_TRY(Tensor::create(DType::kF32, next.dims()));
    RLX_TRY(copy_bytes(read.storage()->place(), next.storage()->place(), read.bytes()));
    EXPECT_EQ(read.as<float>()[7], 4);
    return {};
  });
}

// After any failure the same exec goes on from where it stood.
TEST_P(faults, an_exec_that_failed_goes_on) {
  auto env = env_with(1, planted);
  Graph graph;
  Builder b(graph);
  Expr state = input(b, "state", {8}), x = input(b, "x", {8});
  output(b, "next", state + x);
  auto program = *Program::compile(env, graph, nullptr, *env->find_device("far"), {});
  auto exec = Exec::create(program).value();
  Tensor ones = *Tensor::create(DType::kF32, std::array<int64_t, 1>{8});
  std::fill_n(ones.as<float>(), 8, 1.0f);
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, ones).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  float runs = 0;
  each([&]() -> Status {
    RLX_TRY(exec->run());
    runs++;
    RLX_TRY(exec->run());
    runs++;
    return {};
  });
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[0], runs + 1);
}

TEST_P(faults, a_chain_goes_on_to_the_next_device) {
  auto env = env_with(1, planted);
  Tensor x = noise({4, 16});
  for (int64_t nth = 0; nth < 12; nth++) {
    auto model = *Model::create(env, network(), weights_of_network(), {});
    planted->plan(GetParam(), nth);
    auto ran = model->run("far,cpu", {}, std::array{x}, {}, 1);
    bool was_met = planted->count(GetParam()) > nth;
    planted->clear();
    ASSERT_TRUE(ran.ok()) << ran.status().message();
    EXPECT_EQ(ran->device->info().name, was_met ? "cpu" : "far");
    EXPECT_TRUE(model->set_param("w", noise({16, 8}, 4)).ok());
    EXPECT_EQ(model->run("far,cpu", {}, std::array{x}, {}, 1)->device->info().name, "far");
  }
}

}  // namespace rlx
