// SPDX-License-Identifier: Apache-2.0
// What a compile allocates: no pass copies a body in which it has nothing to do.
#include "tests/allocation/counting.h"
#include "tests/unit/programs.h"

namespace rlx::test {

using namespace testing_programs;

// A loop whose body is a chain of sines.
static Graph loop(int length) {
  std::string nodes = "v0 = input f32[8]\n";
  for (int i = 1; i <= length; i++) nodes += rlx::format("v{} = sin(v{})\n", i, i - 1);
  return *parse("graph {\nx = input f32[8]\ny = scan(x) n_carry=1 n_xs=0 length=2 body=graph {\n" + nodes +
                rlx::format("output v{}\n", length) + "}\noutput y\n}");
}

TEST(compile, a_body_is_copied_for_few_passes) {
  constexpr int kShort = 100, kLong = 200;
  auto env = env_with(1);
  int64_t made[2];
  for (int length : {kLong, kShort, kLong}) {  // the first one makes the sets of rules too
    Graph graph = loop(length);
    int64_t before = allocations();
    ASSERT_TRUE(compile(graph, **env->find_device("cpu"), {}).ok());
    made[length == kLong] = allocations() - before;
  }
  double of_a_node = static_cast<double>(made[1] - made[0]) / (kLong - kShort);
  std::printf("%.1f allocations for a node of a body\n", of_a_node);
  EXPECT_LT(of_a_node, 12);  // 29 if every pass copies it
}

}  // namespace rlx::test
