// SPDX-License-Identifier: Apache-2.0
// Which sizes a node may name, and when a run knows them.
#include "ir/text.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static Status compiled(const std::string& statements) {
  auto graph = parse("graph (n in [0, 8], k in [0, 8]) {\nx = input f32[n]\np = input f32[]\n" + statements + "}");
  if (!graph.ok()) return graph.status();
  return Program::compile(env_with(1), *graph, std::make_shared<Weights>(), nullptr, {}).status();
}

TEST(control, a_size_is_named_by_nodes_behind_the_one_that_decides_it) {
  const std::string uses[] = {
      "y = broadcast_to(p) shape=[k]\n",
      "y = scan(p) body=graph {\na = input f32[]\nb = add(a, a)\noutput b\n} n_carry=1 n_xs=0 length=k\n",
      "y = scan(p) body=graph {\na = input f32[]\nc = broadcast_to(a) shape=[k]\nb = reduce(c) fn=sum\noutput b\n} "
      "n_carry=1 n_xs=0 length=2\n"};
  const std::string decides = "z = nonzero(x) symbol=\"k\"\n", outputs = "output y\noutput z\n";
  for (const std::string& use : uses) {
    EXPECT_TRUE(compiled(decides + use + outputs).ok()) << compiled(decides + use + outputs).message();
    Status refused = compiled(use + decides + outputs);
    EXPECT_EQ(refused.code(), Code::kShape);
    EXPECT_NE(refused.message().find("decides later"), std::string::npos) << refused.message();
  }
}

TEST(control, a_size_that_nothing_gives_is_refused) {
  Status refused = compiled("y = broadcast_to(p) shape=[q]\noutput y\n");
  EXPECT_EQ(refused.code(), Code::kShape);
  EXPECT_NE(refused.message().find("names the size 'q', which no input has"), std::string::npos) << refused.message();
}

TEST(control, a_size_without_a_name_is_refused) {
  Status refused = compiled("z = nonzero(x) symbol=\"\"\noutput z\n");
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_NE(refused.message().find("a size must have a name"), std::string::npos) << refused.message();
}

TEST(control, a_condition_reads_carries_of_any_size_that_the_body_gives_them) {
  auto loop = [](const std::string& size) {
    return "y = while(x) cond=graph {\na = input f32[" + size +
           "]\ns = reduce(a) fn=sum\nl = constant f32[] {15}\nm = lt(s, l)\noutput m\n} body=graph (s in [0, 64]) {\n"
           "a = input f32[s]\nb = concat(a, a) axis=0\noutput b\n} n_carry=1 max_trips=3\noutput y\n";
  };
  EXPECT_TRUE(compiled(loop("s")).ok()) << compiled(loop("s")).message();
  Status refused = compiled(loop("n"));
  EXPECT_EQ(refused.code(), Code::kShape);
  EXPECT_NE(refused.message().find("each trip of 'body' may change it"), std::string::npos) << refused.message();
}

// The symbols stand in the other order.
TEST(control, a_size_that_is_chosen_by_another_chosen_one_follows_it) {
  auto exec = exec_of(R"(graph (n in [0, 8], b in [0, 64], a in [0, 64]) {
    x = input f32[n]
    k = dim_size(x) axis=0
    four = constant i64[] {4}
    p = lt(k, four)
    y = if(p, x) then=graph {
      u = input f32[n]
      v = concat(u, u) axis=0
      output v
    } else=graph {
      u = input f32[n]
      output u
    } chosen=["a"]
    w = if(p, y) then=graph {
      u = input f32[a]
      v = concat(u, u) axis=0
      output v
    } else=graph {
      u = input f32[a]
      output u
    } chosen=["b"]
    output w
  })");
  for (int64_t n : {2, 5, 3}) {
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({n})).ok());
    Status ran = exec->run();
    ASSERT_TRUE(ran.ok()) << ran.message();
    EXPECT_EQ(exec->tensor(SlotKind::kOutput, 0)->dims()[0], n < 4 ? 4 * n : n);
  }
}

// Its body has no value of this size.
TEST(control, a_guard_of_a_body_may_name_a_size_of_the_graph_around_it) {
  auto exec = exec_of(R"(graph (n in [0, 8], m in [0, 8], k in [0, 8]) {
    x = input f32[n]
    z = input f32[m]
    c = input f32[k]
    y = scan(x, z) body=graph {
      a = input f32[n]
      b = input f32[m]
      d = add(a, b)
      output d
    } n_carry=0 n_xs=0 length=k rows=[k]
    output y
  })");
  for (uint32_t i = 0; i < 3; i++) ASSERT_TRUE(exec->bind(SlotKind::kInput, i, noise({2})).ok());
  Status ran = exec->run();
  ASSERT_TRUE(ran.ok()) << ran.message();
  EXPECT_EQ(exec->tensor(SlotKind::kOutput, 0)->dims()[1], 2);
}

// The size of the first value, which no trip has replaced, is above the plan. What lies behind the result stays.
TEST(control, a_first_value_that_is_larger_than_planned_is_not_copied) {
  auto exec = exec_of(R"(graph (n in [0, 64]) {
    c = input f32[n]
    y = scan(c) body=graph (s in [0, 64]) {
      a = input f32[s]
      b = neg(a)
      output b
    } n_carry=1 n_xs=0 length=0 symbols=["scan.0"] carried=["s"]
    output y
  })",
                      {{"dims.scan.0", int64_t{2}}});
  Tensor memory = *Tensor::create(DType::kF32, std::array<int64_t, 2>{64, 2});
  std::fill_n(memory.as<float>(), 128, 5.0f);
  for (int64_t n : {64, 2}) {
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({n})).ok());
    ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, *memory.row(0)).ok());
    Status ran = exec->run();
    EXPECT_EQ(ran.code(), n == 2 ? Code::kOk : Code::kRange) << ran.message();
    EXPECT_EQ(memory.as<float>()[2], 5.0f);
  }
}

}  // namespace rlx
