// SPDX-License-Identifier: Apache-2.0
// Tensors without elements: however many rows of nothing they have, they take no time (semantics.md N8).
#include "tests/unit/cpu/run_on.h"
#include "tests/unit/tensors.h"

namespace rlx {

using namespace testing_programs;

namespace {

using Make = Expr (*)(Builder&, const Expr& x);

struct Case {
  const char* name;
  Make make;
};
constexpr Case kCases[] = {
    {"concat",
     [](Builder&, const Expr& x) {
       return concat(std::vector{x, x}, 1);
     }},
    {"sort",
     [](Builder& b, const Expr& x) {
       return b.ops(Op::kSort, std::array{x}, {{"axis", int64_t{1}}})[0];
     }},
    {"sort_first",
     [](Builder& b, const Expr& x) {
       return b.ops(Op::kSort, std::array{x}, {{"axis", int64_t{0}}})[1];
     }},
    {"layer_norm", [](Builder& b, const Expr& x) { return b.ops(Op::kLayerNorm, std::array{x}, {})[0]; }},
    {"rms_norm", [](Builder& b, const Expr& x) { return b.ops(Op::kRmsNorm, std::array{x}, {})[0]; }},
    {"group_norm",
     [](Builder& b, const Expr& x) {
       return b.ops(Op::kGroupNorm, std::array{x}, {{"groups", int64_t{1}}})[0];
     }},
    {"softmax",
     [](Builder& b, const Expr& x) {
       return b.op(Op::kSoftmax, {x}, {{"axis", int64_t{1}}});
     }},
    {"cumulative",
     [](Builder& b, const Expr& x) {
       return b.op(Op::kCumulative, {x}, {{"fn", std::string("sum")}, {"axis", int64_t{0}}});
     }},
    {"flip",
     [](Builder& b, const Expr& x) {
       return b.op(Op::kFlip, {x}, {{"axes", std::vector<int64_t>{0}}});
     }},
    {"add", [](Builder&, const Expr& x) { return x + x; }},
};

}  // namespace

TEST(empty_rows, take_no_time) {
  constexpr int64_t kMany = int64_t{1} << 40;
  for (const Case& it : kCases)
    for (const char* device : {"cpu", "reference"})
      for (bool has_rows : {true, false}) {
        // Op by op, a norm has a statistic for each row, whatever the row holds.
        const int64_t many = device == std::string_view("cpu") ? kMany : 1 << 10;
        const int64_t rows = has_rows ? many : 0, columns = has_rows ? 0 : many;
        SCOPED_TRACE(format("{} of f32[{},{}] on {}", it.name, rows, columns, device));
        Graph graph;
        Builder b(graph);
        output(b, "y", it.make(b, input(b, "x", {rows, columns})));
        auto env = env_with(1);
        auto program = Program::compile(env, graph, nullptr, *env->find_device(device), {});
        ASSERT_TRUE(program.ok()) << program.status().message();
        Tensor x = *Tensor::create(DType::kF32, std::array{rows, columns});
        auto ran = (*program)->run({}, std::array{x}, {}, 1);
        ASSERT_TRUE(ran.ok()) << ran.status().message();
        EXPECT_EQ((*ran)[0].count(), 0);
      }
}

// The same program has elements at one run, and none at the next.
TEST(empty_rows, come_and_go) {
  for (const Case& it : kCases) {
    SCOPED_TRACE(it.name);
    Graph graph;
    Builder b(graph);
    Dim n = Dim::symbol("n");
    ASSERT_TRUE(graph.declare_symbol("n", {0, 8}).ok());
    output(b, "y", it.make(b, input(b, "x", {3, n})));
    auto env = env_with(1);
    auto program = *Program::compile(env, graph, nullptr, *env->find_device("cpu"), {});
    auto oracle = *Program::compile(env, graph, nullptr, *env->find_device("reference"), {});
    for (int64_t columns : {0, 5, 0, 0, 2}) {
      Tensor x = noise({3, columns});
      auto got = program->run({}, std::array{x}, {}, 1), want = oracle->run({}, std::array{x}, {}, 1);
      ASSERT_TRUE(got.ok() && want.ok());
      ASSERT_EQ((*got)[0].count(), (*want)[0].count());
      if ((*got)[0].dtype() == DType::kF32) expect_alike((*got)[0], (*want)[0]);
    }
  }
}

// An op that may fail fails there too.
TEST(empty_rows, are_checked_for_their_indices) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {3, 0}), at = b.wrap(*graph.add_input("at", DType::kI64, {Dim(1)}));
  output(b, "y", b.op(Op::kGather, {x, at}, {{"axis", int64_t{0}}}));
  for (const char* device : {"cpu", "reference"}) {
    auto env = env_with(1);
    auto program = *Program::compile(env, graph, nullptr, *env->find_device(device), {});
    EXPECT_EQ(program->run({}, std::array{noise({3, 0}), index_of(5)}, {}, 1).status().code(), Code::kRange) << device;
  }
}

}  // namespace rlx
