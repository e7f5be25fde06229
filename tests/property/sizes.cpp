// SPDX-License-Identifier: Apache-2.0
// A run at sizes s under a plan for u >= s equals, bit for bit, a run under a plan for s; and no number of threads
// changes a bit.
#include <cstring>

#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); i++) {
    ASSERT_EQ(type_text(a[i].dtype(), a[i].dims()), type_text(b[i].dtype(), b[i].dims()));
    EXPECT_TRUE(a[i].bytes() == 0 || std::memcmp(a[i].data(), b[i].data(), a[i].bytes()) == 0) << "output " << i;
  }
}

TEST(sizes, a_larger_plan_gives_the_same_bits) {
  Encoder encoder;
  auto env = env_with(2), alone = env_with(1);
  auto large = *Program::compile(env, encoder.graph, encoder.weights, nullptr, {});
  for (auto [batch, seq] : {std::pair<int64_t, int64_t>{1, 1}, {2, 9}, {5, 64}, {8, 33}}) {
    auto exact =
        *Program::compile(alone, encoder.graph, encoder.weights, nullptr, {{"dims.batch", batch}, {"dims.seq", seq}});
    EXPECT_LE(exact->plan().arena_bytes, large->plan().arena_bytes);
    auto in = Encoder::inputs(batch, seq);
    auto a = large->run({}, in, {}, 2), b = exact->run({}, in, {}, 2);
    ASSERT_TRUE(a.ok()) << a.status().message();
    ASSERT_TRUE(b.ok()) << b.status().message();
    expect_equal(*a, *b);
  }
}

// Sizes that depend on sizes: past + seq, its half, and a mask made of positions.
TEST(sizes, expressions_follow_their_symbols) {
  Graph graph;
  Dim past = Dim::symbol("past"), seq = Dim::symbol("seq"), total = past + seq;
  ASSERT_TRUE(graph.declare_symbol("past", {0, 30}).ok());
  ASSERT_TRUE(graph.declare_symbol("seq", {1, 20}).ok());
  Builder b(graph);
  Expr cache = input(b, "cache", {past, 4}), x = input(b, "x", {seq, 4});
  Expr all = concat(std::array{cache, x}, 0);
  Expr keys = iota(b, {1, total}, 1, DType::kF32), rows = iota(b, {seq, 1}, 0, DType::kF32) + b.size(past, DType::kF32);
  Expr scores = where(less_equal(keys, rows), matmul(x, all, {.b = true}), b.scalar(DType::kF32, -1e9));
  output(b, "y", matmul(b.ops(Op::kSoftmax, {scores})[0], all));
  output(b, "half", slice(all, 0, floor_div(total, 2), total));
  auto env = env_with(1);
  auto program = *Program::compile(env, graph, nullptr, nullptr, {});
  auto oracle = *Program::compile(env, graph, nullptr, *env->find_device("reference"), {});
  EXPECT_GT(program->plan().first_run_step, 0u) << "positions are computed when sizes change";
  for (auto [p, s] : {std::pair<int64_t, int64_t>{0, 1}, {7, 3}, {30, 20}, {7, 3}, {1, 1}}) {
    std::vector<Tensor> in = {noise({p, 4}, 2), noise({s, 4}, 4)};
    auto got = program->run({}, in, {}, 2), want = oracle->run({}, in, {}, 2);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_TRUE(want.ok()) << want.status().message();
    expect_near((*got)[0], (*want)[0]);
    expect_near((*got)[1], (*want)[1]);
  }
}

// The count of a dynamic_iota is a value of the run; what depends on it is planned at its maximum.
TEST(sizes, a_size_from_data_is_known_when_the_walk_arrives) {
  Graph graph;
  Builder b(graph);
  Expr count = b.wrap(*graph.add_input("count", DType::kI64, {}));
  Expr x = input(b, "x", {12, 3});
  Expr picks = b.ops(Op::kDynamicIota, std::array{count}, {{"max", int64_t{12}}})[0];
  Expr rows = gather(x, picks, 0);
  output(b, "rows", rows * 2.0);
  output(b, "total", reduce(exp(rows), "sum", {0}, KeepDims::kNo));
  auto env = env_with(2);
  for (const char* device : {"cpu", "reference"}) {
    auto program = Program::compile(env, graph, nullptr, *env->find_device(device), {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    Tensor n = *Tensor::create(DType::kI64, std::span<const int64_t>()), values = noise({12, 3});
    for (int64_t size : {5, 0, 12, 5, 1}) {
      *n.as<int64_t>() = size;
      auto got = (*program)->run({}, std::array{n, values}, {}, 2);
      ASSERT_TRUE(got.ok()) << got.status().message();
      ASSERT_EQ(type_text((*got)[0].dtype(), (*got)[0].dims()), format("f32[{},3]", static_cast<int>(size)));
      for (int64_t i = 0; i < 3 * size; i++) EXPECT_EQ((*got)[0].as<float>()[i], 2 * values.as<float>()[i]);
      float sum = 0;
      for (int64_t i = 0; i < size; i++) sum += std::exp(values.as<float>()[3 * i]);
      EXPECT_NEAR((*got)[1].as<float>()[0], sum, 1e-5f * (1 + sum));
    }
    *n.as<int64_t>() = 13;
    EXPECT_EQ((*program)->run({}, std::array{n, values}, {}, 2).status().code(), Code::kRange);
  }
}

TEST(sizes, a_size_from_data_has_one_source) {
  auto message = [](bool twice) {
    Graph graph;
    Builder b(graph);
    Expr count = b.wrap(*graph.add_input("count", DType::kI64, {}));
    Expr other = b.wrap(*graph.add_input("other", DType::kI64, {}));
    Expr x = input(b, "x", {twice ? Dim(3) : Dim::symbol("s")});
    NamedAttrs attrs{{"max", int64_t{12}}, {"symbol", "s"}};
    output(b, "a", b.ops(Op::kDynamicIota, std::array{count}, attrs)[0]);
    if (twice) output(b, "b", b.ops(Op::kDynamicIota, std::array{other}, attrs)[0]);
    output(b, "y", x);
    auto program = Program::compile(env_with(1), graph, nullptr, nullptr, {});
    return program.ok() ? "" : std::string(program.status().message());
  };
  EXPECT_EQ(message(true),
            "the size 's', which dynamic_iota (%3) finds in its data, is also that of dynamic_iota (%4)");
  EXPECT_EQ(message(false), "the size 's', which dynamic_iota (%3) finds in its data, is also that of the input 'x'");
}

}  // namespace rlx
