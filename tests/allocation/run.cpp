// SPDX-License-Identifier: Apache-2.0
// A bound exec allocates nothing in a run, also when a size has changed.
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

}  // namespace rlx::test
