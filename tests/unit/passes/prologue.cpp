// SPDX-License-Identifier: Apache-2.0
// How the prologue is cut into pieces, and what programs compute with them.
#include "passes/prologue.h"

#include <cstring>
#include <ctime>

#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

// y = x + r1 + r2 + ..., where each r is made of the one before: r' = sin(r) * p'.
static Graph sums_of_a_chain(int count, Weights& weights) {
  Graph graph;
  Builder b(graph);
  Expr y = input(b, "x", {8}), r = weight(b, weights, "p0", {8});
  for (int i = 1; i <= count; i++) {
    std::string name = "p" + std::to_string(i);
    r = unary(Op::kSin, r) * weight(b, weights, name.c_str(), {8});
    y = y + r;
  }
  output(b, "y", y);
  return graph;
}

static std::vector<float> sum_of_a_chain(int count, const Weights& weights, const Tensor& x) {
  std::vector<float> y(x.as<float>(), x.as<float>() + 8), r(8);
  for (int i = 0; i <= count; i++) {
    Tensor p = weights.find("p" + std::to_string(i));
    for (size_t k = 0; k < 8; k++) {
      r[k] = i == 0 ? p.as<float>()[k] : std::sin(r[k]) * p.as<float>()[k];
      if (i > 0) y[k] += r[k];
    }
  }
  return y;
}

static std::vector<Piece> pieces_of(const Graph& graph) {
  auto compiled = compile(graph, **env_with(1)->find_device("cpu"), {});
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  return (*compiled)->pieces;
}

static size_t nodes_of(const std::vector<Piece>& pieces) {
  size_t nodes = 0;
  for (const Piece& piece : pieces) nodes += piece.body ? piece.body->nodes().size() : 0;
  return nodes;
}

TEST(prologue, values_that_residents_share_are_computed_once_where_they_are_many) {
  Weights weights;
  auto few = pieces_of(sums_of_a_chain(3, weights)), many = pieces_of(sums_of_a_chain(200, weights));
  EXPECT_GT(few.size(), 1u) << "apart, as it costs little: each follows its own params";
  EXPECT_LT(nodes_of(many), 3 * 201u);
  std::vector<bool> is_found;
  for (const Piece& piece : many)
    for (uint32_t resident : piece.residents) {
      if (is_found.size() <= resident) is_found.resize(resident + 1);
      EXPECT_FALSE(is_found[resident]) << "in two pieces";
      is_found[resident] = true;
    }
  EXPECT_EQ(std::count(is_found.begin(), is_found.end(), true), static_cast<int64_t>(is_found.size()));
}

// Of a chain of n, apart they take (n + 1) / 2 times the work of all together.
TEST(prologue, residents_stay_apart_up_to_four_times_the_work) {
  for (int count : {7, 8}) {
    Weights weights;
    auto pieces = pieces_of(sums_of_a_chain(count, weights));
    auto computed = std::ranges::count_if(pieces, [](const Piece& piece) { return !piece.is_leaf; });
    EXPECT_EQ(computed, count == 7 ? 7 : 1);
  }
}

// One is a param that is packed, the one before it is computed.
TEST(prologue, pieces_are_in_the_order_of_what_they_make) {
  Weights weights;
  Graph graph;
  Builder b(graph);
  output(b, "y", matmul(input(b, "x", {16, 64}), unary(Op::kSin, weight(b, weights, "w", {64, 64}))));
  output(b, "z", matmul(input(b, "u", {16, 32}), weight(b, weights, "v", {32, 32})));
  std::vector<uint32_t> made;
  for (const Piece& piece : pieces_of(graph)) made.insert(made.end(), piece.residents.begin(), piece.residents.end());
  EXPECT_EQ(made, (std::vector<uint32_t>{0, 1}));
}

// Apart, each of the residents would read all params.
TEST(prologue, residents_that_share_what_reads_many_params_are_computed_together) {
  constexpr int kCount = 300;
  Weights weights;
  Graph graph;
  Builder b(graph);
  std::vector<Expr> params;
  for (int i = 0; i < kCount; i++) params.push_back(weight(b, weights, ("p" + std::to_string(i)).c_str(), {1}));
  Expr joined = concat(params, 0), x = input(b, "x", {kCount});
  for (int i = 0; i < kCount; i++)
    output(b, ("y" + std::to_string(i)).c_str(), x + unary(Op::kSin, joined * (2.0 + i)));
  EXPECT_LT(nodes_of(pieces_of(graph)), 10u * kCount);
}

TEST(prologue, a_chain_of_residents_follows_each_of_its_params) {
  for (int count : {3, 200}) {
    auto weights = std::make_shared<Weights>();
    Graph graph = sums_of_a_chain(count, *weights);
    auto program = *Program::compile(env_with(2), graph, weights, nullptr, {});
    Tensor x = noise({8}, 5);
    auto expect_right = [&] {
      auto results = program->run({}, std::array{x}, {}, 1);
      ASSERT_TRUE(results.ok()) << results.status().message();
      std::vector<float> want = sum_of_a_chain(count, *weights, x);
      for (size_t k = 0; k < 8; k++) EXPECT_NEAR((*results)[0].as<float>()[k], want[k], 1e-4 * (1 + std::abs(want[k])));
    };
    expect_right();
    for (int changed : {0, count / 2, count}) {
      Tensor tensor = noise({8}, static_cast<uint32_t>(changed) + 900);
      std::string name = "p" + std::to_string(changed);
      ASSERT_TRUE(weights->put(name, tensor).ok());
      ASSERT_TRUE(program->set_params(weights).ok());
      expect_right();
    }
    auto again = *Program::compile(env_with(2), graph, weights, nullptr, {});
    auto memory = weights->report("memory");
    EXPECT_EQ(memory->find("\"form_count\":0"), std::string::npos) << *memory;
  }
}

// A view that is a composite has no kernel, so its piece runs through all passes: these may be the first to expand it.
TEST(prologue, a_piece_expands_a_view_that_no_earlier_pass_has_expanded) {
  for (const char* view : {"unsqueeze(w) axes=[0]", "flatten(w) axis=0", "flip(w) axes=[1]"}) {
    auto weights = std::make_shared<Weights>();
    ASSERT_TRUE(weights->put("w", noise({1, 6})).ok());
    auto graph = parse("graph {\nx = input f32[1,6]\nw = param f32[1,6]\nu = " + std::string(view) +
                       "\ny = add(x, u)\noutput y\n}");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    std::vector<std::string> skip{"canonicalize", "simplify"};
    auto program = Program::compile(env_with(1), *graph, weights, nullptr, {{"passes.skip", skip}});
    EXPECT_TRUE(program.ok()) << program.status().message();
  }
}

// Compiled and prepared.
static double seconds_to_run(int count) {
  auto weights = std::make_shared<Weights>();
  Graph graph = sums_of_a_chain(count, *weights);
  std::clock_t begin = std::clock();
  auto program = Program::compile(env_with(1), graph, weights, nullptr, {});
  EXPECT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE((*program)->run({}, std::array{noise({8})}, {}, 1).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(prologue, a_chain_of_residents_takes_linear_time) {
  double few = seconds_to_run(200), many = seconds_to_run(2000);
  std::printf("%.1f ms for 200, %.1f ms for 2,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 10 * 4 * few + 0.05);
}

// semantics.md R5: the constant and the input hold the same numbers.
TEST(prologue, strict_values_of_constants_have_the_bits_of_the_run) {
  Tensor numbers = noise({512}, 3, 4);
  for (Op op : {Op::kGelu, Op::kExp, Op::kTanh, Op::kErf, Op::kSoftmax, Op::kSqrt, Op::kRsqrt, Op::kSigmoid}) {
    Graph graph;
    Builder b(graph);
    Expr one = input(b, "one", {512}), x = input(b, "x", {512}), c = b.wrap(*graph.add_constant(numbers));
    output(b, "before", b.op(op, {c}) * one);
    output(b, "now", b.op(op, {x}) * one);
    auto program = Program::compile(env_with(1), graph, std::make_shared<Weights>(), nullptr, {{"math", "strict"}});
    ASSERT_TRUE(program.ok()) << program.status().message();
    Tensor ones = *Tensor::create(DType::kF32, std::array<int64_t, 1>{512});
    std::fill_n(ones.as<float>(), 512, 1.0f);
    auto results = (*program)->run({}, std::array{ones, numbers}, {}, 2);
    ASSERT_TRUE(results.ok()) << results.status().message();
    EXPECT_EQ(std::memcmp((*results)[0].data(), (*results)[1].data(), 512 * 4), 0) << static_cast<int>(op);
  }
}

}  // namespace rlx
