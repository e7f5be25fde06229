// SPDX-License-Identifier: Apache-2.0
// Sparse tensors of files are dense tensors here.
#include "opened.h"

namespace rlx {

using onnx::Maker;

static std::string sum_of(const Message& sparse, const ImportOptions& options = {}) {
  Maker maker(17);
  maker.input("x", 1, {"2", "3"}).sparse(sparse).node("Add", {"x", "w"}, {"y"}).output("y");
  return Opened(maker, {}, options).run({counting({2, 3})});
}

TEST(onnx_sparse, values_stand_at_places_or_rows_of_indices) {
  EXPECT_EQ(sum_of(Maker::sparse_tensor("w", {2, 3}, {10, 20}, {2}, {1, 5})), "f32[2,3] 0 11 2 3 4 25");
  EXPECT_EQ(sum_of(Maker::sparse_tensor("w", {2, 3}, {10, 20}, {2, 2}, {0, 1, 1, 2})), "f32[2,3] 0 11 2 3 4 25");
  EXPECT_EQ(sum_of(Maker::sparse_tensor("w", {2, 3}, {}, {0}, {})), "f32[2,3] 0 1 2 3 4 5");
}

TEST(onnx_sparse, a_constant_may_be_sparse) {
  Message value = Message().text(1, "sparse_value").number(20, 11);
  value.sub(22, Maker::sparse_tensor("", {4}, {7}, {1}, {2}));
  Maker maker(17);
  maker.node("Constant", {}, {"y"}, {value}).output("y");
  EXPECT_EQ(Opened(maker).run({}), "f32[4] 0 0 7 0");
}

// Weights stay params, which may be set.
TEST(onnx_sparse, a_large_one_is_a_param) {
  Maker maker(17);
  maker.input("x", 1, {"64", "64"}).sparse(Maker::sparse_tensor("w", {64, 64}, {1}, {1}, {0}));
  maker.node("MatMul", {"x", "w"}, {"y"}).output("y");
  auto imported = maker.import();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ASSERT_EQ(imported->weights.size(), 1U);
  EXPECT_EQ(imported->weights[0].first, "w");
}

TEST(onnx_sparse, what_is_no_sparse_tensor_is_refused) {
  auto expect = [](const Message& sparse, const char* words) {
    EXPECT_NE(sum_of(sparse).find(words), std::string::npos) << sum_of(sparse);
  };
  expect(Maker::sparse_tensor("w", {2, 3}, {10}, {1}, {6}), "its index 6 is not below 6");
  expect(Maker::sparse_tensor("w", {2, 3}, {10}, {1, 2}, {0, 3}), "its index 3 is not below 3");
  expect(Maker::sparse_tensor("w", {2, 3}, {10}, {1}, {-1}), "its index -1 is not below 6");
  expect(Maker::sparse_tensor("w", {2, 3}, {10}, {2}, {0, 1}), "its indices are i64[2]");
  expect(Maker::sparse_tensor("w", {1 << 20, 1 << 20}, {10}, {1}, {0}), "1099511627776 elements, of which 1 are given");
  expect(Maker::sparse_tensor("w", {-1}, {10}, {1}, {0}), "its dims no shape");
}

}  // namespace rlx
