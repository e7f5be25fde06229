// SPDX-License-Identifier: Apache-2.0
// What a change of params allocates, and so copies, hardly grows with the number of params.
#include "tests/allocation/counting.h"
#include "tests/unit/programs.h"

namespace rlx::test {

using namespace testing_programs;

static int64_t bytes_to_set_one_of(size_t params) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4});
  for (size_t i = 0; i < params; i++)
    output(b, ("y" + std::to_string(i)).c_str(),
           x * b.wrap(*graph.add_param("p" + std::to_string(i), DType::kF32, {Dim(4)})));
  auto program = *Program::compile(env_with(1), graph, nullptr, nullptr, {});
  int64_t before = 0;
  for (uint32_t seed : {1u, 2u}) {
    Tensor tensor = noise({4}, seed);
    before = allocated_bytes();
    EXPECT_TRUE(program->set_param("p7", tensor).ok());
  }
  return allocated_bytes() - before;
}

TEST(allocation, setting_a_param_copies_little_however_many_there_are) {
  int64_t few = bytes_to_set_one_of(32), many = bytes_to_set_one_of(3000);
  EXPECT_LT(many, 4 * few) << few;
}

}  // namespace rlx::test
