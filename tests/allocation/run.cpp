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

}  // namespace rlx::test
