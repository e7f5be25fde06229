// SPDX-License-Identifier: Apache-2.0
// Real models through the whole library: what forms, and that the results are right.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "runtime/model.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "tests/support/transforms.h"

namespace rlx::test {

constexpr double kTolerance = 1e-4;  // of the largest value

static std::map<std::string, int> count_ops(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes()) counts[std::string(graph.info(node).name)]++;
  return counts;
}

TEST(models, minilm_forms_every_composite) {
  auto path = fetched("minilm/model.onnx");
  if (path.empty()) GTEST_SKIP() << "the model is not in the cache: ./dev demo fetches it";
  auto model = open_onnx(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto graph = test::composed(model->graph);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto counts = count_ops(*graph);
  EXPECT_EQ(counts["layer_norm"] + counts["residual_layer_norm"], 13);
  EXPECT_EQ(counts["attention"], 6);
  EXPECT_EQ(counts["linear"], 6 * 4);  // QKV, projection, up, down
  for (const char* part : {"erf", "mean", "sqrt", "rsqrt", "softmax", "matmul", "pow", "div", "transpose"})
    EXPECT_EQ(counts[part], 0) << part;
  if (HasFailure()) std::fprintf(stderr, "%s\n", print(*graph).c_str());
}

// The model's only output on a device.
static Result<Tensor> run(const FileModel& model, std::string_view device, const TensorsByName& inputs) {
  std::shared_ptr<Env> env = RLX_TRY(Env::create({.threads = 2}));
  std::shared_ptr<Model> made = RLX_TRY(Model::create(env, model.graph, model.weights, {}));
  std::vector<std::string_view> names;
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : inputs) names.push_back(name), tensors.push_back(tensor);
  Model::Ran ran = RLX_TRY(made->run(device, names, tensors, {}, 1));
  return ran.outputs[0];
}

// The tensors whose names begin with the prefix, without it; an output is taken out of them.
static TensorsByName with_prefix(const TensorsByName& all, std::string_view prefix) {
  TensorsByName found;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), tensor);
  return found;
}

static void expect_stored_output(const FileModel& model, TensorsByName tensors, const char* output) {
  Tensor want = tensors.extract(output).mapped();
  for (const char* device : {"cpu", "reference"}) {
    auto got = run(model, device, tensors);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_LT(relative_difference(*got, want), kTolerance) << device;
  }
}

TEST(models, minilm_computes_what_onnx_runtime_computes) {
  auto path = fetched("minilm/model.onnx");
  if (path.empty()) GTEST_SKIP() << "the model is not in the cache: ./dev demo fetches it";
  auto model = open_onnx(path);
  auto stored = read_tensors(test_path("models/minilm_expected.tensors"));
  ASSERT_TRUE(model.ok() && stored.ok()) << model.status().message() << stored.status().message();
  for (const char* batch : {"a.", "b."}) expect_stored_output(*model, with_prefix(*stored, batch), "last_hidden_state");
}

TEST(models, digits_computes_what_onnx_runtime_computes) {
  auto model = open_onnx(test_path("models/digits.onnx"));
  auto stored = read_tensors(test_path("models/digits_expected.tensors"));
  ASSERT_TRUE(model.ok() && stored.ok()) << model.status().message() << stored.status().message();
  expect_stored_output(*model, *stored, model->graph.outputs()[0].name.c_str());
}

}  // namespace rlx::test
