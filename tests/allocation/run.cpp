// SPDX-License-Identifier: Apache-2.0
// A bound exec allocates nothing in a run, also when a size has changed.
#include <chrono>

#include "tests/allocation/counting.h"
#include "tests/unit/programs.h"

namespace rlx::test {

using namespace testing_programs;

static int64_t host_allocations(const Env& env) {
  int64_t count = 0;
  for (MemoryKind kind : {MemoryKind::kTensor, MemoryKind::kArena, MemoryKind::kPrepared, MemoryKind::kScratch})
    count += env.host()->counts(kind).allocations;
  return count;
}

TEST(allocation, a_run_allocates_nothing_while_sizes_stay_or_change) {
  Encoder encoder;
  auto env = env_with(2);
  auto program = *Program::compile(env, encoder.graph, encoder.weights, nullptr, {});
  auto exec = Exec::create(program).value();
  std::vector<std::vector<Tensor>> inputs;
  for (int64_t seq : {16, 16, 9, 64}) inputs.push_back(Encoder::inputs(2, seq));
  int64_t before_all = allocations();
  for (int round = 0; round < 3; round++)
    for (auto& in : inputs) {
      int64_t before = allocations(), before_host = host_allocations(*env);
      for (size_t i = 0; i < 2; i++) ASSERT_TRUE(exec->bind(SlotKind::kInput, i, in[i]).ok());
      ASSERT_TRUE(exec->run().ok());
      if (round == 0) continue;  // the slots' own memory and the threads come with the first run
      EXPECT_EQ(allocations() - before, 0);
      EXPECT_EQ(host_allocations(*env) - before_host, 0);
    }
  EXPECT_GT(allocations(), before_all) << "the counter counts";
}

TEST(allocation, a_step_of_many_operands_allocates_nothing_when_its_sizes_change) {
  constexpr size_t kOperands = 40;
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {1, 64}).ok());
  Builder b(graph);
  std::vector<Expr> parts;
  for (size_t i = 0; i < kOperands; i++)
    parts.push_back(input(b, ("x" + std::to_string(i)).c_str(), {4, Dim::symbol("n")}));
  output(b, "y", concat(parts, 1));
  auto env = env_with(1);
  auto exec = Exec::create(*Program::compile(env, graph, nullptr, nullptr, {})).value();
  for (int64_t n : {64, 3, 17, 64, 5}) {
    Tensor x = noise({4, n});
    int64_t before = allocations();
    for (size_t i = 0; i < kOperands; i++) ASSERT_TRUE(exec->bind(SlotKind::kInput, i, x).ok());
    ASSERT_TRUE(exec->run().ok());
    if (n == 64) continue;  // the slot's own memory comes with the first run
    EXPECT_EQ(allocations() - before, 0) << n;
  }
}

// Trips move the bases of their body, alternate between two places for a carry, slice xs and stack ys.
TEST(allocation, a_trip_allocates_nothing) {
  auto body = std::make_shared<Graph>();
  {
    Builder b(*body);
    Expr h = input(b, "h", {4, 16}), x = input(b, "x", {4, 16}), w = input(b, "w", {16, 16});
    Expr next = tanh(matmul(h, w) + x) * b.constant(noise({16}, 3)) + h;
    output(b, "next", next);
    output(b, "y", next * 2.0);
  }
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {0, 100}).ok());
  Builder b(graph);
  Expr h = input(b, "h", {4, 16}), xs = input(b, "xs", {Dim::symbol("n"), 4, 16}), w = input(b, "w", {16, 16});
  auto loop = b.ops(Op::kScan, std::array{h, xs, w},
                    {{"body", std::shared_ptr<const Graph>(body)}, {"n_carry", int64_t{1}}, {"n_xs", int64_t{1}}});
  output(b, "last", loop[0]);
  output(b, "ys", loop[1]);
  auto env = env_with(2);
  auto exec = Exec::create(*Program::compile(env, graph, nullptr, nullptr, {})).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({4, 16})).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 2, noise({16, 16}, 2)).ok());
  auto bind_rows = [&](int64_t trips) { ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, noise({trips, 4, 16})).ok()); };
  bind_rows(100);
  ASSERT_TRUE(exec->run().ok());  // threads and the slots' own memory come with the first run
  for (int64_t trips : {100, 1, 37, 0, 100}) {
    bind_rows(trips);
    int64_t before = allocations(), before_host = host_allocations(*env);
    ASSERT_TRUE(exec->run().ok());
    EXPECT_EQ(allocations() - before, 0) << trips;
    EXPECT_EQ(host_allocations(*env) - before_host, 0) << trips;
  }
}

// Carries and rows without a bound have rooms, which are kept: what has been large enough once allocates nothing.
TEST(allocation, a_trip_of_a_loop_that_grows_allocates_nothing_once_its_rooms_are_large_enough) {
  Dim rows = Dim::symbol("rows");
  auto body_with = [&](const std::function<std::vector<Expr>(Builder&, Expr, Expr)>& make) {
    auto graph = std::make_shared<Graph>();
    EXPECT_TRUE(graph->declare_symbol("rows", {}).ok());
    Builder b(*graph);
    Expr x = input(b, "x", {rows, 4}), most = input(b, "most", {});
    std::vector<Expr> outs = make(b, x, most);
    for (size_t i = 0; i < outs.size(); i++) output(b, ("y" + std::to_string(i)).c_str(), outs[i]);
    return std::shared_ptr<const Graph>(graph);
  };
  auto cond = body_with([](Builder&, Expr x, Expr most) {
    return std::vector{less(reduce(x * 0.0 + 1.0, "sum", {0, 1}, KeepDims::kNo), most * 4.0)};
  });
  auto body = body_with([](Builder&, Expr x, Expr) {
    Expr row = reduce(x, "max", {0}) * 0.5;
    return std::vector{concat(std::array{x, row}, 0), reshape(row, {Dim(4)})};
  });
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {2, 4}), most = input(b, "most", {});
  auto loop = b.ops(Op::kWhile, std::array{x, most}, {{"cond", cond}, {"body", body}, {"n_carry", int64_t{1}}});
  output(b, "last", tanh(loop[0]));
  output(b, "rows", loop[1]);
  auto env = env_with(2);
  auto exec = Exec::create(*Program::compile(env, graph, nullptr, nullptr, {})).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({2, 4})).ok());
  Tensor limit = noise({});
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, limit).ok());
  auto run_to = [&](float most_rows) {
    limit.as<float>()[0] = most_rows;
    ASSERT_TRUE(exec->run().ok());
  };
  run_to(100);
  for (float most_rows : {100.f, 3.f, 37.f, 1.f, 100.f}) {
    int64_t before = allocations(), before_host = host_allocations(*env);
    run_to(most_rows);
    EXPECT_EQ(allocations() - before, 0) << most_rows;
    EXPECT_EQ(host_allocations(*env) - before_host, 0) << most_rows;
  }
}

// A decode loop over a cache of fixed capacity, of 64 MiB: what a run costs is what it appends.
TEST(allocation, an_append_in_place_allocates_nothing_and_costs_its_rows) {
  constexpr int64_t kHeads = 8, kCapacity = 16384, kWidth = 128;
  Graph graph;
  Builder b(graph);
  Expr cache = input(b, "cache", {1, kHeads, kCapacity, kWidth}), rows = input(b, "rows", {1, kHeads, 1, kWidth});
  Expr pos = b.wrap(*graph.add_input("pos", DType::kI64, {}));
  output(b, "y", b.op(Op::kKvAppend, {cache, rows, pos}, {{"axis", int64_t{2}}, {"wrap", true}}));
  auto env = env_with(2);
  NamedAttrs options{{"io.alias", std::vector<std::string>{"y=cache"}}};
  auto exec = Exec::create(*Program::compile(env, graph, nullptr, nullptr, options)).value();
  Tensor row = noise({1, kHeads, 1, kWidth});
  int64_t at = 0;
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, row).ok());
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 2, &at, sizeof at).ok());
  ASSERT_TRUE(exec->run().ok());
  int64_t before = allocations(), before_host = host_allocations(*env);
  auto begin = std::chrono::steady_clock::now();
  constexpr int64_t kRuns = 20000;
  for (at = 1; at <= kRuns; at++)
    if (!exec->run().ok()) FAIL();
  double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / kRuns;
  EXPECT_EQ(allocations() - before, 0);
  EXPECT_EQ(host_allocations(*env) - before_host, 0);
  std::printf("an append of 4 KiB to 64 MiB: %.2f us\n", us);
  EXPECT_LT(us, 500) << "64 MiB take some milliseconds";
  const auto* y = shown(*exec, SlotKind::kOutput, 0).as<float>();
  for (int64_t at_row : {int64_t{0}, kCapacity - 1})
    for (int64_t head = 0; head < kHeads; head++)
      EXPECT_EQ(y[(head * kCapacity + at_row) * kWidth + 5], row.as<float>()[head * kWidth + 5]);
}

}  // namespace rlx::test
