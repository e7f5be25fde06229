// SPDX-License-Identifier: Apache-2.0
// Operands of a rank, or axes, that an op does not take are refused where it is added.
#include "op_test.h"

namespace rlx {
namespace {

using namespace test;
using List = std::vector<int64_t>;

Op op_named(std::string_view name) {
  return op_table().find(name)->op();
}

Tensor i8s(const Sizes& dims, const std::vector<double>& numbers) {
  return tensor(DType::kI8, dims, numbers);
}
Tensor u8s(const Sizes& dims, const std::vector<double>& numbers) {
  return tensor(DType::kU8, dims, numbers);
}

struct Refusal {
  const char* op;
  std::vector<Tensor> in;
  NamedAttrs attrs;
  Code code;
  const char* says;
};

TEST(ranks, that_an_op_does_not_take_are_refused) {
  Tensor one = f32s({1}, {1}), zero = i8s({}, {0}), scale = f32s({}, {1});
  std::vector<double> bytes(32, 1);
  const Refusal refusals[] = {
      {"matmul_nbits",
       {f32s({1, 32}, bytes), u8s({1, 16}, std::vector<double>(16, 1)), f32s({1, 1}, {1})},
       {{"block", int64_t{32}}},
       Code::kShape,
       "packed needs rank 3"},
      {"matmul_nbits",
       {f32s({}, {1}), u8s({1, 1, 16}, std::vector<double>(16, 1)), f32s({1, 1}, {1})},
       {{"block", int64_t{32}}},
       Code::kShape,
       "x rank 1 or more"},
      {"q_matmul",
       {i8s({2}, {1, 2}), i8s({2, 1}, {1, 2}), zero, zero, Tensor(), scale, zero},
       {},
       Code::kShape,
       "x and w need rank 2 or more"},
      {"unpack_bits", {u8s({}, {1})}, {{"bits", int64_t{4}}}, Code::kShape, "x needs rank 1 or more"},
      {"iota",
       {},
       {{"shape", std::vector<Dim>()}, {"axis", int64_t{0}}, {"dtype", DType::kI64}},
       Code::kShape,
       "shape needs rank 1 or more"},
      {"lrn", {one}, {{"size", int64_t{1}}}, Code::kShape, "it has rank 1"},
      {"conv",
       {f32s({1, 1, 1, 1, 1, 1}, {1}), f32s({1, 1, 1, 1, 1, 1}, {1})},
       {},
       Code::kShape,
       "x needs rank 3, 4 or 5"},
      {"dot_general",
       {f32s({1, 1}, {1}), f32s({1, 1}, {1})},
       {{"batch_a", List{0}}, {"batch_b", List{0}}, {"contract_a", List{0}}, {"contract_b", List{1}}},
       Code::kInvalidArgument,
       "axis 0 is a batch axis and contracted, too"},
  };
  for (const Refusal& it : refusals) {
    SCOPED_TRACE(it.op);
    expect_failure(op_named(it.op), it.in, it.attrs, it.code, it.says);
  }
}

}  // namespace
}  // namespace rlx
