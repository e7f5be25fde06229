// SPDX-License-Identifier: Apache-2.0
// What constants cost a compile: each is hashed once, and none is computed that takes long.
#include <ctime>

#include "passes/graph_copy.h"
#include "passes/pass.h"
#include "tests/support/transforms.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Each differs from the others at its end only.
static double seconds_to_tell_apart(int count) {
  Graph graph;
  Builder b(graph);
  Expr sum = input(b, "x", {4096});
  for (int i = 0; i < count; i++) {
    Tensor numbers = *Tensor::create(DType::kF32, std::array<int64_t, 1>{4096});
    numbers.as<float>()[4095] = static_cast<float>(1 + i);
    sum = sum * b.constant(numbers);
  }
  output(b, "y", sum);
  PassContext context;
  std::clock_t begin = std::clock();
  EXPECT_TRUE(canonicalize(std::move(graph), context).ok());
  return seconds_since(begin);
}

TEST(constants, that_differ_at_their_ends_are_told_apart_in_linear_time) {
  double few = seconds_to_tell_apart(400), many = seconds_to_tell_apart(3200);
  std::printf("canonicalize: %.1f ms for 400 constants, %.1f ms for 3,200\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 8 * 3 * few + 0.05);
}

// Where each is the operand of the next, no more than two are in memory at once.
struct Alive {
  std::vector<std::weak_ptr<Storage>> made;

  Tensor next(const Tensor& last) {
    EXPECT_LT(std::ranges::count_if(made, [](const auto& it) { return !it.expired(); }), 2);
    Tensor tensor = *Tensor::create(last.dtype(), last.dims());
    made.push_back(tensor.storage());
    return tensor;
  }
};

static Graph chain_of_constants(int count) {
  Graph graph;
  Builder b(graph);
  Expr x = b.constant(noise({4})), y = input(b, "y", {4});
  for (int i = 0; i < count; i++) {
    x = -x;
    output(b, ("y" + std::to_string(i)).c_str(), y + static_cast<double>(i));  // other nodes in between
  }
  output(b, "x", x);
  return graph;
}

TEST(constants, that_are_made_on_the_way_are_not_kept) {
  Graph graph = chain_of_constants(10);
  Alive copied, rewritten;
  auto made = with_replaced(graph, [&](GraphCopy& copy, uint32_t index) -> Result<std::vector<Value>> {
    if (graph.node(index).op != Op::kNeg) return std::vector<Value>();
    return std::vector{
        RLX_TRY(copy.to().add_constant(copied.next(*copy.to().constant(copy.mapped(graph.node(index).in[0])))))};
  });
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(copied.made.size(), 10u);
  RuleSet rules;
  rules.add(exact, "folds", {Op::kNeg},
            [&](const Match& m) { return m.builder().constant(rewritten.next(*m.graph().constant(m.in(0).value()))); });
  made = rewrite(std::move(graph), rules, {});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(rewritten.made.size(), 10u);
}

// Of few elements, but of many products and sums: a run has faster kernels.
TEST(constants, that_take_long_to_compute_are_left_to_the_run) {
  struct Case {
    const char* op;
    std::vector<std::vector<int64_t>> in;
    const char* attrs;
    DType dtype = DType::kF32;
    bool is_folded = false;
  };
  const Case cases[] = {
      {"conv", {{1, 1, 180, 180}, {1, 1, 180, 180}}, "pad_lo=[90, 90] pad_hi=[90, 90]"},
      {"conv", {{1, 1, 180, 180}, {1, 1, 3, 3}}, "", DType::kF32, true},
      {"conv_transpose", {{1, 1, 120, 120}, {1, 1, 120, 120}}, ""},
      {"matmul", {{240, 250}, {250, 240}}, ""},
      {"matmul", {{400, 400}, {400, 100}}, "", DType::kI32},
      {"matmul", {{1, 240}, {240, 250}}, "", DType::kF32, true},
      {"einsum", {{240, 250}, {240, 250}}, "equation=\"ij,kj->ik\""},
      {"reduce_window", {{250, 250}}, "fn=sum window=[100, 100] pad_lo=[50, 50] pad_hi=[50, 50]"},
      {"reduce_window", {{250, 250}}, "fn=sum window=[2, 2]", DType::kF32, true},
      {"max_pool", {{1, 1, 250, 250}}, "kernel=[99, 99] pad_lo=[49, 49] pad_hi=[49, 49]"},
      {"fft", {{65521}}, "", DType::kC64},
      {"fft", {{16381}}, "", DType::kC64, true},
      {"fft", {{16384}}, "", DType::kC64, true},
      {"sort", {{32768}}, "", DType::kF32, true},
      {"sort", {{65537}}, ""},
      {"cumulative", {{65536}}, "fn=sum axis=0", DType::kF32, true},
      {"cumulative", {{65537}}, "fn=sum axis=0"},
      {"gelu", {{65536}}, "", DType::kF32, true},
      {"softmax", {{256, 256}}, "", DType::kF32, true},
      {"matmul", {{100, 100}, {100, 100}}, "", DType::kF32, true},
      {"conv", {{1, 1, 180, 180}, {1, 1, 7, 7}}, ""},
      {"reduce_window", {{200, 200}}, "fn=sum window=[7, 7]", DType::kF32, true},
      {"lu", {{100, 100}}, "", DType::kF32, true},
      {"qr", {{100, 100}}, "", DType::kF32, true},
      {"svd", {{38, 38}}, "", DType::kF32, true},
      {"eigh", {{38, 38}}, "", DType::kF32, true},
      {"qr", {{250, 250}}, ""},
      {"svd", {{60, 60}}, ""},
      {"svd", {{20, 20}}, "", DType::kF32, true},
  };
  for (const Case& it : cases) {
    SCOPED_TRACE(std::string(it.op) + " " + it.attrs);
    Graph graph;
    Builder b(graph);
    std::vector<Expr> in;
    for (const auto& dims : it.in)
      in.push_back(b.constant(it.dtype == DType::kF32 ? noise(dims) : *Tensor::create(it.dtype, dims)));
    Op op = op_table().find(it.op)->op();
    output(b, "y", b.ops(op, in, *parse_attrs(it.attrs))[0]);
    std::clock_t begin = std::clock();
    auto folded = test::find_transform("fold")->run(graph);
    double seconds = seconds_since(begin);
    ASSERT_TRUE(folded.ok()) << folded.status().message();
    EXPECT_EQ(test::has_op(*folded, op), !it.is_folded);
    std::printf("%s of %s: %.1f ms\n", it.op, type_text(it.dtype, it.in[0]).c_str(), seconds * 1e3);
    EXPECT_LT(seconds, 0.2);
  }
}

}  // namespace rlx
