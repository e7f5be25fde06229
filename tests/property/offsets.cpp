// SPDX-License-Identifier: Apache-2.0
// Offsets and the planner: buffers alive together never overlap, at any sizes up to the upper ones.
#include "plan/offsets.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

TEST(offsets, buffers_alive_together_never_overlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; round++) {
    std::vector<Lifetime> buffers(random() % 60);
    for (Lifetime& buffer : buffers) {
      buffer.bytes = static_cast<int64_t>(random() % 4 ? random() % 5000 : 0);
      buffer.first = random() % 40;
      buffer.last = buffer.first + random() % 10;
    }
    int64_t total = assign_offsets(buffers), most = 0;
    for (size_t i = 0; i < buffers.size(); i++) {
      EXPECT_EQ(buffers[i].offset % kPlanAlignment, 0);
      EXPECT_LE(buffers[i].offset + buffers[i].bytes, total);
      for (size_t k = 0; k < i; k++) {
        bool together = buffers[i].first <= buffers[k].last && buffers[k].first <= buffers[i].last;
        EXPECT_FALSE(together && overlap(buffers[i].offset, buffers[i].bytes, buffers[k].offset, buffers[k].bytes));
      }
    }
    for (uint32_t step = 0; step < 50; step++) {
      int64_t alive = 0;
      for (const Lifetime& buffer : buffers)
        if (buffer.first <= step && step <= buffer.last) alive += buffer.bytes;
      most = std::max(most, alive);
    }
    EXPECT_GE(total, most);
    EXPECT_LE(total, 2 * most + 64 * static_cast<int64_t>(buffers.size())) << "far from the lower bound";
  }
}

// What an access touches at the sizes of now lies inside its buffer.
static void expect_inside(const Plan& plan, const Access& access, const SymbolLookup& sizes) {
  if (access.buffer == UINT32_MAX) return;
  int64_t last = *evaluate(plan.sizes[access.shift], sizes), stride = 1;
  for (size_t i = access.dims.size(); i-- > 0;) {
    int64_t dim = *evaluate(plan.sizes[access.dims[i]], sizes);
    if (dim == 0) return;
    last += (dim - 1) * (access.dense ? stride : *evaluate(plan.sizes[access.strides[i]], sizes));
    stride *= dim;
  }
  EXPECT_LE((last + 1) * element_bytes(access.dtype), plan.buffers[access.buffer].bytes);
}

TEST(offsets, a_plan_holds_every_size_up_to_the_upper_ones) {
  Encoder encoder;
  auto env = env_with(1);
  auto program = *Program::compile(env, encoder.graph, encoder.weights, nullptr, {});
  const Plan& plan = program->plan();
  for (size_t i = 0; i < plan.buffers.size(); i++)
    for (size_t k = 0; k < i; k++) {
      const PlanBuffer &a = plan.buffers[i], &b = plan.buffers[k];
      if (a.base != b.base || a.base > kSizedBase) continue;
      if ((a.over == k && b.last == a.first) || (b.over == i && a.last == b.first)) continue;  // in place
      bool together = a.base == kSizedBase || (a.first <= b.last && b.first <= a.last);
      EXPECT_FALSE(together && overlap(a.offset, a.bytes, b.offset, b.bytes)) << a.name << " and " << b.name;
    }
  std::mt19937 random(3);
  for (int round = 0; round < 50; round++) {
    int64_t batch = random() % 9, seq = random() % 65;
    SymbolLookup sizes = [&](std::string_view name) { return std::optional(name == "batch" ? batch : seq); };
    for (const Step& step : plan.steps)
      for (auto* list : {&step.in, &step.out})
        for (const Access& access : *list) expect_inside(plan, access, sizes);
  }
}

}  // namespace rlx
