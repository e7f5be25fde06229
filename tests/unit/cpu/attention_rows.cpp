// SPDX-License-Identifier: Apache-2.0
// Attention of many queries over long heads, whose keys and values are copied first if they lie far apart, against the
// oracle.
#include "tests/unit/cpu/run_on.h"

namespace rlx {

using namespace testing_programs;

static void expect_agreement(const Graph& graph, const std::vector<Tensor>& in) {
  expect_near(run_on("cpu", graph, in)[0], run_on("reference", graph, in)[0]);
}

constexpr int64_t kHeads = 4, kKvHeads = 2, kDepth = 72, kValues = 56;

TEST(attention_rows, long_heads_side_by_side) {
  for (int64_t keys : {255, 256, 300})
    for (int64_t causal : {0, 1}) {
      Graph graph;
      ASSERT_TRUE(graph.declare_symbol("n", {0, 400}).ok());
      Builder b(graph);
      Expr q = input(b, "q", {2, 130, kHeads * kDepth}), k = input(b, "k", {2, Dim::symbol("n"), kKvHeads * kDepth});
      Expr v = input(b, "v", {2, Dim::symbol("n"), kKvHeads * kValues});
      NamedAttrs attrs{{"layout", "bsx"}, {"num_heads", kHeads}, {"num_kv_heads", kKvHeads}, {"causal", causal}};
      output(b, "y", b.op(Op::kAttention, {q, k, v}, attrs));
      expect_agreement(graph, {noise({2, 130, kHeads * kDepth}), noise({2, keys, kKvHeads * kDepth}, 3),
                               noise({2, keys, kKvHeads * kValues}, 5)});
    }
}

// The slices of one product are read where they are, or copied.
TEST(attention_rows, long_heads_that_are_slices) {
  Graph graph;
  Builder b(graph);
  constexpr int64_t kWidth = kHeads * kDepth;
  Expr all = input(b, "all", {1, 256, 3 * kWidth});
  auto part = [&](int64_t i) { return slice(all, 2, i * kWidth, (i + 1) * kWidth); };
  NamedAttrs attrs{{"layout", "bsx"}, {"num_heads", kHeads}, {"num_kv_heads", kHeads}};
  output(b, "y", b.op(Op::kAttention, {part(0), part(1), part(2)}, attrs));
  expect_agreement(graph, {noise({1, 256, 3 * kWidth})});
}

// The least caps leave scores that count as 0, also where f32 rounds them to 0; the largest one leaves all as they are.
TEST(attention_rows, caps_beyond_f32) {
  for (double cap : {1e-30, 1e-40, 1e-300, 1e300}) {
    Graph graph;
    Builder b(graph);
    Expr q = input(b, "q", {1, 2, 3, 8}), k = input(b, "k", {1, 2, 5, 8});
    output(b, "y", b.op(Op::kAttention, {q, k, k}, {{"softcap", cap}}));
    Tensor queries = noise({1, 2, 3, 8});
    for (int64_t i = 0; i < 8; i++) queries.as<float>()[i] = 0;
    SCOPED_TRACE(cap);
    expect_agreement(graph, {queries, noise({1, 2, 5, 8}, 3)});
  }
}

}  // namespace rlx
