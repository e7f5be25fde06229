// SPDX-License-Identifier: Apache-2.0
// What a user is told of files that are not right, and what a model says of itself.
#include "errors.h"
#include "tests/unit/import/onnx_maker.h"

namespace rlx::errors {

static std::string tiny_model() {
  return onnx::Maker(13).input("x", 1, {"n", "3"}).node("Relu", {"x"}, {"y"}).output("y").bytes();
}

TEST(messages, files_that_are_not_there_or_hold_no_model) {
  expect_told(std::vector<Told>{
      {"opens an empty file",
       RLX_E_UNSUPPORTED,
       {nullptr, nullptr, "onnx, safetensors, gguf, rlx", nullptr},
       {"empty.onnx' is not a recognised format. It is empty.", "What can be read: onnx, safetensors, gguf, rlx"},
       {"begins like"},
       [](User& u) { return u.open(u.path("empty.onnx", "")); }},
      {"opens a file that is not there",
       RLX_E_NOT_FOUND,
       {nullptr, "nothing.onnx", nullptr, nullptr},
       {"cannot open \"nothing.onnx\": No such file"},
       {},
       [](User& u) { return u.open("nothing.onnx"); }},
      {"opens a GGUF file",
       RLX_E_UNSUPPORTED,
       {nullptr, nullptr, nullptr, nullptr},
       {"m.gguf', read as gguf: gguf files hold weights and no graph"},
       {},
       [](User& u) { return u.open(u.path("m.gguf", "GGUF\3\0\0\0")); }},
      {"opens a PyTorch file",
       RLX_E_UNSUPPORTED,
       {nullptr, nullptr, nullptr, nullptr},
       {"m.pt' is not", "a zip archive, as PyTorch's .pt files are", "export the model to ONNX"},
       {},
       [](User& u) { return u.open(u.path("m.pt", "PK\3\4abcdefgh")); }},
      {"opens an old PyTorch file",
       RLX_E_UNSUPPORTED,
       {nullptr, nullptr, nullptr, nullptr},
       {"m.pth' is not", "a Python pickle"},
       {},
       [](User& u) { return u.open(u.path("m.pth", "\x80\2}q")); }},
      {"opens weights as a model",
       RLX_E_UNSUPPORTED,
       {nullptr, nullptr, nullptr, nullptr},
       {"w.safetensors', read as safetensors: safetensors files hold weights and no graph"},
       {},
       [](User& u) { return u.open(u.path("w.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10))); }},
  });
}

TEST(messages, files_that_cannot_be_read) {
  expect_told(std::vector<Told>{
      {"names a value of a text that is not there",
       RLX_E_DATA,
       {nullptr, "z", nullptr, nullptr},
       {"unknown value 'z'"},
       {},
       [](User& u) { return u.import("rlx", "graph { x = input f32[2]\n y = relu(z)\n output y }"); }},
      {"opens a truncated model",
       RLX_E_DATA,
       {nullptr, nullptr, nullptr, nullptr},
       {"cut.onnx', read as onnx: ", "at byte"},
       {},
       [](User& u) {
         std::string bytes = tiny_model();
         return u.open(u.path("cut.onnx", bytes.substr(0, bytes.size() - 7)));
       }},
      {"calls a GGUF file a model",
       RLX_E_DATA,
       {nullptr, nullptr, nullptr, nullptr},
       {"It looks like a GGUF file"},
       {},
       [](User& u) { return u.import("onnx", "GGUF\3"); }},
      {"calls a web page a model",
       RLX_E_DATA,
       {nullptr, nullptr, nullptr, nullptr},
       {"It looks like an HTML or XML page"},
       {},
       [](User& u) { return u.import("onnx", "<!DOCTYPE html>"); }},
  });
}

// ---- params.min ----

static size_t params_with(User& u, const char* options) {
  std::string bytes = onnx::Maker(13)
                          .input("x", 1, {"n", "3"})
                          .f32("b1", {3}, {1, 2, 3})
                          .node("Add", {"x", "b1"}, {"y"})
                          .output("y")
                          .bytes();
  rlx_graph_t* graph = nullptr;
  rlx_weights_t* weights = nullptr;
  rlx_status_t* status = rlx_import_memory(u.env, "onnx", bytes.data(), bytes.size(), nullptr, nullptr,
                                           u.attrs(options), &graph, &weights);
  EXPECT_EQ(status, nullptr) << rlx_status_message(status);
  size_t count = rlx_graph_count(graph, RLX_PARAM);
  EXPECT_EQ(rlx_weights_count(weights), count);
  rlx_graph_release(graph);
  rlx_weights_release(weights);
  return count;
}

TEST(messages, a_model_says_where_it_runs_and_how_fast) {
  User u;
  u.small_graph();
  rlx_model_t* model = nullptr;
  ASSERT_EQ(told_by(rlx_model_create(u.graph, nullptr, u.attrs("allow=[reference]"), &model)), "");
  ASSERT_EQ(told_by(rlx_model_set_param(model, "w", u.tensor({3}))), "");
  const rlx_device_t* device = nullptr;
  EXPECT_EQ(told_by(rlx_model_resolve(model, nullptr, &device)), "");
  EXPECT_STREQ(rlx_device_name(device), "reference");
  EXPECT_EQ(told_by(rlx_model_set_policy(model, u.attrs("allow=[cpu,reference]"))), "");
  EXPECT_EQ(told_by(rlx_model_resolve(model, nullptr, &device)), "");
  EXPECT_STREQ(rlx_device_name(device), "cpu");
  rlx_tensor_t* x = u.tensor({1, 3});
  rlx_blob_t* json = nullptr;
  ASSERT_EQ(told_by(rlx_model_benchmark(model, nullptr, &x, 1, 3, &json)), "");
  std::string text(static_cast<const char*>(rlx_blob_data(json)), rlx_blob_size(json));
  EXPECT_NE(text.find("median_seconds"), std::string::npos) << text;
  EXPECT_NE(text.find("\"reference\""), std::string::npos) << text;
  EXPECT_EQ(text.find("failed"), std::string::npos) << text;
  rlx_blob_release(json);
  rlx_model_release(model);
}

TEST(messages, an_initialiser_is_a_param_from_params_min_elements_on) {
  User u;
  std::string path = u.path("b1.onnx", onnx::Maker(13)
                                           .input("x", 1, {"n", "3"})
                                           .f32("b1", {3}, {1, 2, 3})
                                           .node("Add", {"x", "b1"}, {"y"})
                                           .output("y")
                                           .bytes());
  rlx_model_t* model = nullptr;
  EXPECT_EQ(told_by(rlx_model_open(u.env, path.c_str(), u.attrs("params.min=1 math=fast"), &model)), "");
  EXPECT_EQ(told_by(rlx_model_set_param(model, "b1", u.tensor({3}))), "");
  rlx_model_release(model);
  EXPECT_EQ(params_with(u, ""), 0u);
  EXPECT_EQ(params_with(u, "params.min=4"), 0u);
  EXPECT_EQ(params_with(u, "params.min=3"), 1u);
  EXPECT_EQ(params_with(u, "params.min=1"), 1u);
}

}  // namespace rlx::errors
