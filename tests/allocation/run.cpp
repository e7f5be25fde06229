// SPDX-License-Identifier: Apache-2.0
// A bound exec allocates nothing in a run, also when a size has changed. This program counts every operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/unit/programs.h"

static std::atomic<int64_t> allocations{0};

void* operator new(size_t size) {
  allocations++;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t align) {
  allocations++;
  size_t unit = static_cast<size_t>(align);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace rlx {

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
  auto program = *Compiled::compile(env, encoder.graph, encoder.weights, nullptr, {});
  auto exec = Exec::create(program).value();
  std::vector<std::vector<Tensor>> inputs;
  for (int64_t seq : {16, 16, 9, 64}) inputs.push_back(Encoder::inputs(2, seq));
  int64_t before_all = allocations;
  for (int round = 0; round < 3; round++)
    for (auto& in : inputs) {
      int64_t before = allocations, before_host = host_allocations(*env);
      for (size_t i = 0; i < 2; i++) ASSERT_TRUE(exec->bind(SlotKind::kInput, i, in[i]).ok());
      ASSERT_TRUE(exec->run().ok());
      if (round == 0) continue;  // the slots' own memory and the threads come with the first run
      EXPECT_EQ(allocations - before, 0);
      EXPECT_EQ(host_allocations(*env) - before_host, 0);
    }
  EXPECT_GT(allocations, before_all) << "the counter counts";
}

}  // namespace rlx
