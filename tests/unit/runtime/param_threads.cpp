// SPDX-License-Identifier: Apache-2.0
// Params are set while other threads run: every run sees one whole set, old or new, never a mixture.
#include <barrier>
#include <thread>

#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

using namespace testing_programs;

// y = x * w + b with w = k everywhere and b = k: every element is 17 k.
TEST(param_threads, every_run_sees_one_set) {
  Graph graph;
  auto weights = std::make_shared<Weights>();
  Builder b(graph);
  Expr x = input(b, "x", {3, 16});
  output(b, "y", matmul(x, weight(b, *weights, "w", {16, 40})) + weight(b, *weights, "b", {40}) * 1.0);
  ASSERT_TRUE(weights->put("w", filled({16, 40}, 1)).ok());
  ASSERT_TRUE(weights->put("b", filled({40}, 1)).ok());
  auto env = env_with(2);
  auto program = *Program::compile(env, graph, weights, nullptr, {});
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0}, runs{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&] {
      auto exec = Exec::create(program).value();
      if (!exec->bind(SlotKind::kInput, 0, filled({3, 16}, 1)).ok()) torn++;
      while (!stop) {
        if (!exec->run().ok()) torn++;
        Tensor y = shown(*exec, SlotKind::kOutput, 0);
        float first = y.as<float>()[0];
        for (int64_t k = 0; k < y.count(); k++) torn += y.as<float>()[k] != first;
        torn += std::fmod(first, 17.0f) != 0;
        runs++;
      }
    });
  for (int k = 2; k < 60; k++) {
    auto next = std::make_shared<Weights>();
    ASSERT_TRUE(next->put("w", filled({16, 40}, static_cast<float>(k))).ok());
    ASSERT_TRUE(next->put("b", filled({40}, static_cast<float>(k))).ok());
    ASSERT_TRUE(program->set_params(next).ok());
  }
  while (runs < 200) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  auto last = program->run({}, std::array{filled({3, 16}, 1)}, {}, 1);
  EXPECT_EQ((*last)[0].as<float>()[0], 17.0f * 59);
}

TEST(param_threads, programs_share_the_forms_of_one_weights_object) {
  if (is_far()) GTEST_SKIP() << "its copies of constants are counted as well";
  Encoder encoder;
  auto env = env_with(1);
  auto first = *Program::compile(env, encoder.graph, encoder.weights, nullptr, {});
  int64_t prepared = env->host()->counts(MemoryKind::kPrepared).allocations;
  EXPECT_GT(prepared, 0);
  auto second = *Program::compile(env, encoder.graph, encoder.weights, nullptr, {{"dims.seq", int64_t{8}}});
  EXPECT_EQ(env->host()->counts(MemoryKind::kPrepared).allocations, prepared);
  ASSERT_TRUE(second->set_param("w1", noise({Encoder::kWidth, Encoder::kInner}, 99)).ok());
  EXPECT_EQ(env->host()->counts(MemoryKind::kPrepared).allocations, prepared + 1) << "only what depends on it";
}

// The bits of what is computed of params depend on what chose the kernels: programs share only what is the same.
// Each form is made without the lock, so several at once; all who ask for one get the same.
TEST(param_threads, forms_are_made_at_once_and_kept_once) {
  constexpr int kThreads = 4, kForms = 200;
  Weights weights;
  Tensor source = filled({4}, 1);
  std::barrier together(kThreads);
  auto form = [&](int number) {
    FormKey key{.forms = {std::to_string(number)}, .device = "test", .sources = {source.storage()}};
    return weights.form(key, [&]() -> Result<Weights::Tensors> {
      together.arrive_and_wait();
      return Weights::Tensors{filled({1}, static_cast<float>(number))};
    });
  };
  std::vector<std::vector<const void*>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; i++)
    threads.emplace_back([&, i] {
      for (int number = 0; number < kForms; number++) {
        auto made = form(number);
        ASSERT_TRUE(made.ok()) << made.status().message();
        EXPECT_EQ((*made)[0].as<float>()[0], static_cast<float>(number));
        seen[i].push_back((*made)[0].data());
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& addresses : seen) EXPECT_EQ(addresses, seen[0]);
  EXPECT_NE(weights.report("memory")->find("\"form_count\": 200"), std::string::npos) << *weights.report("memory");
}

TEST(param_threads, programs_of_other_grades_do_not_share_what_they_compute) {
  Graph graph;
  auto shared = std::make_shared<Weights>(), own = std::make_shared<Weights>();
  Builder b(graph);
  output(b, "y", input(b, "x", {4096}) * unary(Op::kTanh, weight(b, *shared, "w", {4096}, 4)));
  ASSERT_TRUE(own->put("w", shared->find("w")).ok());
  auto env = env_with(1);
  NamedAttrs strict{{"math", "strict"}, {"dispatch", "reference"}};
  std::array in{filled({4096}, 1)};
  auto close = *Program::compile(env, graph, shared, nullptr, {});
  auto after = *Program::compile(env, graph, shared, nullptr, strict);
  auto alone = *Program::compile(env, graph, own, nullptr, strict);
  Tensor got = (*after->run({}, in, {}, 1))[0], want = (*alone->run({}, in, {}, 1))[0];
  EXPECT_TRUE(std::equal(got.as<float>(), got.as<float>() + 4096, want.as<float>()));
}

// As the C API does it: each holder of frozen bytes has a handle of its own.
TEST(param_threads, a_weight_that_is_set_again_is_the_weight) {
  Graph graph;
  auto weights = std::make_shared<Weights>();
  Builder b(graph);
  output(b, "y", matmul(input(b, "x", {2, 16}), unary(Op::kExp, weight(b, *weights, "w", {16, 40}))));
  auto env = env_with(1);
  auto prepared = [&] { return env->host()->counts(MemoryKind::kPrepared).bytes.load(); };
  auto set = [](Program& program, const Tensor& tensor) { return program.set_param("w", *tensor.frozen()); };
  Tensor own = weights->find("w"), other = noise({16, 40}, 5);
  auto program = *Program::compile(env, graph, weights, nullptr, {});
  const int64_t first = prepared();
  for (int i = 0; i < 3; i++) {
    ASSERT_TRUE(set(*program, own).ok());
    EXPECT_EQ(prepared(), first) << i;
    ASSERT_TRUE(set(*program, other).ok());
  }
  ASSERT_TRUE(set(*program, own).ok());
  auto dropping = *Program::compile(env, graph, nullptr, nullptr, {{"weights.drop", int64_t{1}}});
  ASSERT_TRUE(dropping->set_params(weights).ok());
  program = dropping = nullptr;
  EXPECT_EQ(prepared(), 0) << "what was dropped is not kept for anybody";
}

// Each set of params shares most of the one before. So params may be set one by one, and an earlier set stays as it
// was.
TEST(param_threads, many_params_are_set_one_by_one) {
  constexpr size_t kParams = 2000;
  Graph graph;
  Builder b(graph);
  Expr y = input(b, "x", {4});
  for (size_t i = 0; i < kParams; i++) y = y + b.wrap(*graph.add_param("p" + std::to_string(i), DType::kF32, {Dim(4)}));
  output(b, "y", y);
  auto program = *Program::compile(env_with(1), graph, nullptr, nullptr, {});
  auto empty = program->params()->current();
  for (size_t i = kParams; i-- > 0;) {
    ASSERT_NE(program->params()->current()->first_unset, nullptr);
    ASSERT_TRUE(program->set_param("p" + std::to_string(i), filled({4}, 1)).ok());
  }
  EXPECT_EQ(program->params()->current()->first_unset, nullptr);
  EXPECT_FALSE(empty->params[kParams - 1].is_set());
  EXPECT_EQ((*program->run({}, std::array{filled({4}, 1)}, {}, 1))[0].as<float>()[0], kParams + 1);
}

TEST(param_threads, originals_that_forms_replace_can_be_dropped) {
  Graph graph;
  auto weights = std::make_shared<Weights>();
  Builder b(graph);
  output(b, "y", matmul(input(b, "x", {2, 16}), weight(b, *weights, "w", {16, 40})));
  auto env = env_with(1);
  auto keep = *Program::compile(env, graph, weights, nullptr, {});
  auto want = *keep->run({}, std::array{noise({2, 16})}, {}, 1);
  auto program = *Program::compile(env, graph, weights, nullptr, {{"weights.drop", int64_t{1}}});
  EXPECT_EQ(weights->get("w", *env).status().code(), Code::kState);
  EXPECT_EQ(Program::compile(env, graph, weights, nullptr, {}).status().code(), Code::kState) << "not: unset";
  expect_near((*program->run({}, std::array{noise({2, 16})}, {}, 1))[0], want[0]);
}

TEST(param_threads, weights_that_were_dropped_cannot_be_set) {
  Graph graph;
  auto weights = std::make_shared<Weights>();
  Builder b(graph);
  output(b, "y", matmul(input(b, "x", {2, 16}), weight(b, *weights, "w", {16, 40})));
  auto env = env_with(1);
  auto unset = *Program::compile(env, graph, nullptr, nullptr, {});
  auto program = *Program::compile(env, graph, weights, nullptr, {{"weights.drop", int64_t{1}}});
  Status status = unset->set_params(weights);
  EXPECT_EQ(status.code(), Code::kState);
  EXPECT_EQ(status.message(), "the bytes of 'w' were released by weights.drop");
  EXPECT_TRUE(program->set_params(weights).ok()) << "it holds what it made of them";
}

TEST(param_threads, forms_of_originals_that_were_dropped_are_not_kept) {
  Graph graph;
  auto weights = std::make_shared<Weights>();
  Builder b(graph);
  output(b, "y", matmul(input(b, "x", {2, 16}), weight(b, *weights, "w", {16, 40})));
  auto env = env_with(1);
  auto program = *Program::compile(env, graph, weights, nullptr, {{"weights.drop", int64_t{1}}});
  for (int i = 0; i < 5; i++) {
    ASSERT_TRUE(weights->put("w", noise({16, 40}, i)).ok());
    ASSERT_TRUE(program->set_params(weights).ok());
  }
  EXPECT_EQ(env->host()->counts(MemoryKind::kPrepared).bytes, (*program->params()->current()).residents[0].bytes());
}

}  // namespace rlx
