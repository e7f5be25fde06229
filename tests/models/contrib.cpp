// SPDX-License-Identifier: Apache-2.0
// A node of each kind of the domain com.microsoft, beside what ONNX Runtime computes (tests/peer/contrib.py).
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/model.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"

namespace rlx::test {

constexpr double kTolerance = 1e-4;  // of the largest value

static std::string wrong(const Tensor& got, const Tensor& want) {
  if (type_text(got.dtype(), got.dims()) != type_text(want.dtype(), want.dims()))
    return "is " + type_text(got.dtype(), got.dims());
  if (want.dtype() == DType::kF32) {
    double difference = relative_difference(got, want);
    return difference < kTolerance ? "" : "is " + std::to_string(difference) + " away";
  }
  bool is_same = std::memcmp(got.data(), want.data(), static_cast<size_t>(want.bytes())) == 0;
  return is_same ? "" : "has other numbers";
}

class contrib : public testing::TestWithParam<const char*> {};

TEST_P(contrib, computes_what_onnx_runtime_computes) {
  auto file = open_onnx(test_path("models/contrib.onnx"));
  auto stored = read_tensors(test_path("models/contrib_expected.tensors"));
  ASSERT_TRUE(file.ok() && stored.ok()) << file.status().message() << stored.status().message();
  auto env = Env::create({.threads = 2});
  auto model = Model::create(*env, file->graph, file->weights, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::vector<std::string_view> in_names, out_names;
  std::vector<Tensor> in;
  for (uint32_t input : file->graph.inputs()) {
    in_names.push_back(file->graph.leaf_name(input));
    in.push_back(stored->at(std::string(in_names.back())));
  }
  for (const auto& output : file->graph.outputs()) out_names.push_back(output.name);
  auto ran = (*model)->run(GetParam(), in_names, in, out_names, out_names.size());
  ASSERT_TRUE(ran.ok()) << ran.status().message();
  EXPECT_EQ(out_names.size(), 213u);
  for (size_t i = 0; i < out_names.size(); i++)
    EXPECT_EQ(wrong(ran->outputs[i], stored->at(std::string(out_names[i]))), "") << out_names[i];
}

INSTANTIATE_TEST_SUITE_P(, contrib, testing::Values("cpu", "reference"),
                         [](const auto& it) { return std::string(it.param); });

}  // namespace rlx::test
