// SPDX-License-Identifier: Apache-2.0
// The verifier against graphs that no builder would make: each is a good one with one thing changed behind its back.
#include "ir/verify.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace rlx {

class verifier : public testing::Test {
 protected:
  verifier()
      : graph_(*parse(R"(graph (n in [5, 9]) {
  x = input f32[batch,4]
  w = param f32[4,2]
  y = matmul(x, w) -> f32[batch,2]
  z, z.mean = layer_norm(y) eps=0.5 -> f32[batch,2], f32[batch,1]
  other = input f32[n,2]
  sum = add(z, other)
  output sum
  output z.mean
})")) {}

  Node& node(uint32_t i) { return const_cast<Node&>(graph_.node(i)); }
  std::string failure() const { return std::string(verify(graph_).message()); }

  Graph graph_;
};

TEST_F(verifier, accepts_what_the_builder_made) {
  EXPECT_EQ(failure(), "");
}

TEST_F(verifier, repeats_inference) {
  node(2).out[0].dims[1] = 3;
  EXPECT_EQ(failure(),
            "not a valid graph: matmul 'y' (%2): output 0 is stored as f32[batch,3], inference gives f32[batch,2]");
}

TEST_F(verifier, repeats_the_checks_of_the_builder) {
  node(1).out[0].dtype = DType::kF64;
  EXPECT_EQ(failure(), "not a valid graph: param 'w': output 0 is stored as f64[4,2], inference gives f32[4,2]");
  node(1).out[0].dtype = DType::kF32;
  node(5).in[0] = Value{1, 0};
  EXPECT_EQ(failure(), "not a valid graph: add 'sum' (%5): [4,2] and [n,2] do not broadcast: n is not 4");
}

// The second guard is n = k once the first one is known.
TEST_F(verifier, takes_guards_that_others_decide) {
  auto made = parse(R"(graph "g" (n, k) {
    t = input bool[4,4]
    s = input f32[n,k]
    r = slice(t) starts=[0] ends=[n] axes=[1]
    y = where(r, s, s)
    output y
  })");
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->guards().size(), 2u);
  EXPECT_TRUE(verify(*made).ok()) << verify(*made).message();
}

// A third of 2 is no size. Which guard is found to be in error depends on their order, if one is.
TEST_F(verifier, takes_guards_that_no_sizes_meet) {
  Graph graph;
  Dim n = Dim::symbol("n"), m = Dim::symbol("m"), least = min(m, Dim::symbol("k")) * m;
  Value x = *graph.add_input("x", DType::kF32, {n}), y = *graph.add_input("y", DType::kF32, {Dim(2)});
  for (const Guard& guard : {Guard{Guard::kEqual, n, least, ""}, Guard{Guard::kEqual, 2, least, ""}})
    ASSERT_TRUE(graph.add_guard(guard).ok());
  ASSERT_TRUE(graph.add_output("sum", *graph.add(Op::kAdd, std::array{x, y})).ok());
  ASSERT_TRUE(graph.add_guard({Guard::kEqual, n, 3 * m, ""}).ok());
  EXPECT_EQ(verify(graph).message(), "");
}

// An equality says the same from either side.
TEST_F(verifier, takes_guards_either_way_round) {
  Guard& guard = const_cast<Guard&>(graph_.guards()[0]);
  std::swap(guard.a, guard.b);
  EXPECT_EQ(failure(), "");
  guard.b = guard.b + 1;
  EXPECT_NE(failure(), "");
}

TEST_F(verifier, wants_topological_order_and_values_that_exist) {
  node(2).in[0] = Value{3, 0};
  EXPECT_EQ(failure(), "not a valid graph: matmul 'y' (%2): uses %3, which does not come before it");
  node(2).in[0] = Value{2, 0};
  EXPECT_EQ(failure(), "not a valid graph: matmul 'y' (%2): uses %2, which does not come before it");
  node(2).in[0] = Value{0, 1};
  EXPECT_EQ(failure(), "not a valid graph: matmul 'y' (%2): uses output 1 of input 'x', which has 1");
}

TEST_F(verifier, wants_legal_attributes) {
  node(3).attrs = node(3).attrs.with("eps", "small");
  EXPECT_EQ(failure(), "not a valid graph: layer_norm 'z' (%3): 'eps' must be of kind f64, not 'small'");
  node(3).attrs = node(3).attrs.with("eps", AttrValue());
  EXPECT_EQ(failure(), "not a valid graph: layer_norm 'z' (%3): the attribute 'eps' is missing");
  node(3).attrs = node(2).attrs;
  EXPECT_EQ(failure(), "not a valid graph: layer_norm 'z' (%3): its attributes belong to another op");
}

TEST_F(verifier, wants_rows_guards_leaves_and_outputs) {
  node(3).op = static_cast<Op>(9999);
  EXPECT_EQ(failure(), "not a valid graph: %3: no row has the id 9999");
  node(3).op = Op::kLayerNorm;
  const_cast<std::vector<Guard>&>(graph_.guards()).clear();
  EXPECT_EQ(failure(), "not a valid graph: add 'sum' needs the guard batch = n");
  graph_ = *parse("graph {\n  x = input f32[4]\n  y = input f32[4]\n output x\n}");
  node(1).attrs = node(1).attrs.with("name", "x");
  EXPECT_EQ(failure(), "not a valid graph: input 'x': another leaf has the same name");
  node(1).attrs = node(1).attrs.with("name", "y");
  const_cast<GraphOutput&>(graph_.outputs()[0]).value = Value{7, 0};
  EXPECT_EQ(failure(), "not a valid graph: output 'x' is not a value of it");
  graph_ = Graph();
  ASSERT_TRUE(graph_.add(Op::kInput, {}, {{"name", "x"}, {"dtype", DType::kF32}, {"shape", std::vector<Dim>{}}}).ok());
  EXPECT_EQ(failure(), "not a valid graph: an input or param was not added as one");
}

}  // namespace rlx
