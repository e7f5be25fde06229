// SPDX-License-Identifier: Apache-2.0
// top_k whose k is a size, or found by the run: the kernel takes any k, and its results are those of the oracle.
#include "tests/unit/cpu/run_on.h"

namespace rlx {

using namespace testing_programs;

static Tensor of_size(int64_t k) {
  return noise({k});
}

static Outputs first(Builder& b, const Expr& x, const Dim& k, int64_t axis, bool largest = true) {
  return b.ops(Op::kTopK, {x}, {{"k", k}, {"axis", axis}, {"largest", int64_t{largest}}});
}

static void expect_kernel(const Graph& graph, std::vector<Tensor> in, const char* kernel = "top_k") {
  auto program = Program::compile(env_with(2), graph, nullptr, nullptr, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::string report = *(*program)->report("dispatch"), wanted = std::string("\"kernel\": \"") + kernel + '"';
  EXPECT_NE(report.find(wanted), std::string::npos) << report;
  std::vector<Tensor> want = run_on("reference", graph, in);
  auto got = (*program)->run({}, in, {}, want.size());
  ASSERT_TRUE(got.ok()) << got.status().message();
  for (size_t i = 0; i < want.size(); i++) EXPECT_TRUE((*got)[i].same_bytes(want[i])) << graph.outputs()[i].name;
}

// More than the kernel for few takes: 4,096.
TEST(top_k, of_a_size_is_a_kernel) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {0, 40000}).ok() && graph.declare_symbol("k", {0, 40000}).ok());
  Builder b(graph);
  Dim n = Dim::symbol("n"), k = Dim::symbol("k");
  Expr x = input(b, "x", {2, n}), few = input(b, "few", {k});
  Outputs top = first(b, x, k, 1), least = first(b, x, k, -1, false);
  output(b, "top", top[0]), output(b, "at", top[1]), output(b, "least", least[0]), output(b, "there", least[1]);
  output(b, "few2", -few);
  for (auto [size, count] :
       {std::pair{300, 9}, {300, 300}, {7, 0}, {6000, 4096}, {6000, 4097}, {40000, 5000}, {40000, 30}}) {
    SCOPED_TRACE(testing::Message() << count << " of " << size);
    expect_kernel(graph, {noise({2, size}), of_size(count)});
  }
}

TEST(top_k, of_a_bounded_size_takes_any_axis) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("k", {0, 1000}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {2, 30, 5}), few = input(b, "few", {Dim::symbol("k")});
  Outputs top = first(b, x, Dim::symbol("k"), 1);
  output(b, "top", top[0]), output(b, "at", top[1]), output(b, "few2", -few);
  for (int64_t count : {0, 1, 7, 30}) expect_kernel(graph, {noise({2, 30, 5}), of_size(count)});
}

TEST(top_k, of_a_size_that_the_run_finds_is_a_kernel) {
  Graph graph;
  Builder b(graph);
  Expr count = b.wrap(*graph.add_input("count", DType::kI64, {})), x = input(b, "x", {3, 5000});
  Expr places = b.op(Op::kDynamicIota, {count});
  Outputs top = first(b, x, places.dim(0), 1);
  output(b, "top", top[0]), output(b, "at", top[1]);
  for (int64_t k : {0, 1, 9, 4500}) expect_kernel(graph, {scalar_i64(k), noise({3, 5000})});
  auto program = Program::compile(env_with(2), graph, nullptr, nullptr, {});
  ASSERT_TRUE(program.ok());
  std::vector<Tensor> too_many{scalar_i64(5001), noise({3, 5000})};
  EXPECT_FALSE((*program)->run({}, too_many, {}, 2).ok());
}

// A sort cuts long lines for many threads.
TEST(top_k, of_all_is_a_sort) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {0, 40000}).ok());
  Builder b(graph);
  Dim n = Dim::symbol("n");
  Outputs all = first(b, input(b, "x", {2, n}), n, 1);
  output(b, "top", all[0]), output(b, "at", all[1]);
  expect_kernel(graph, {noise({2, 40000})}, "sort");
}

}  // namespace rlx
