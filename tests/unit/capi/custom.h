// SPDX-License-Identifier: Apache-2.0
// A host with ops of its own, for tests in C.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rlx.h"
#include "words.h"

namespace rlx::custom_ops {

using capi_tests::words;

// What an op of the host does in its callbacks, and how often it was asked.
struct Behaviour {
  int32_t (*infer)(rlx_opcall_t* call) = nullptr;
  int32_t (*run)(rlx_opcall_t* call) = nullptr;
  std::atomic<int> infers{0}, runs{0};
  std::shared_ptr<std::atomic<int>> destroyed = std::make_shared<std::atomic<int>>(0);
};

inline int32_t shape_of_input(rlx_opcall_t* call) {
  const rlx_tensor_t* x = rlx_opcall_tensor(call, RLX_INPUT, 0);
  int64_t dims[8];
  size_t rank = rlx_tensor_shape(x, dims, 8);
  return words(rlx_opcall_set_shape(call, 0, rlx_tensor_dtype(x), dims, rank)).empty() ? RLX_CB_OK : 0;
}

inline void* data_of(rlx_opcall_t* call, int32_t kind, size_t index = 0) {
  return rlx_tensor_data(rlx_opcall_tensor(call, kind, index));
}

inline size_t elements(rlx_opcall_t* call) {
  return rlx_tensor_bytes(rlx_opcall_tensor(call, RLX_INPUT, 0)) / 4;
}

inline int32_t scale(rlx_opcall_t* call) {
  double by = 1;
  size_t n = 0;
  if (!words(rlx_attrs_get_f64s(rlx_opcall_attrs(call), "by", &by, 1, &n)).empty()) by = 10;
  auto* x = static_cast<const float*>(data_of(call, RLX_INPUT));
  auto* y = static_cast<float*>(data_of(call, RLX_OUTPUT));
  for (size_t i = 0; i < elements(call); i++) y[i] = x[i] * static_cast<float>(by);
  return RLX_CB_OK;
}

class CustomOpTest : public testing::Test {
 protected:
  void SetUp() override {
    OK(rlx_env_create(nullptr, nullptr, &env));
    OK(rlx_graph_create(env, "test", &graph));
  }
  void TearDown() override {
    rlx_graph_release(graph);
    rlx_env_release(env);
  }

  rlx_op_def_t definition(const char* name, Behaviour& does) {
    rlx_op_def_t def;
    rlx_op_def_init(&def, sizeof def);
    def.name = name;
    def.user = &users_.emplace_back(&does, does.destroyed);
    def.infer = [](void* user, rlx_opcall_t* call) {
      auto* it = static_cast<User*>(user)->first;
      it->infers++;
      return it->infer(call);
    };
    def.run = [](void* user, rlx_opcall_t* call) {
      auto* it = static_cast<User*>(user)->first;
      it->runs++;
      return it->run(call);
    };
    def.destroy = [](void* user) { ++*static_cast<User*>(user)->second; };
    return def;
  }
  std::string add(const char* name, Behaviour& does) {
    rlx_op_def_t def = definition(name, does);
    return words(rlx_env_register_op(env, &def));
  }
  std::string add(const char* name, rlx_graph_t* body) {
    rlx_op_def_t def;
    rlx_op_def_init(&def, sizeof def);
    def.name = name;
    def.body = body;
    return words(rlx_env_register_op(env, &def));
  }
  rlx_value_t op(const char* text, std::vector<rlx_value_t> in) {
    return rlx_graph_op(graph, text, in.data(), in.size(), nullptr);
  }
  rlx_value_t vector_input(const char* name = "x") {
    int64_t n = rlx_graph_dim(graph, "n", 0, 64);
    return rlx_graph_input(graph, name, RLX_F32, &n, 1);
  }
  std::string failure() { return words(rlx_graph_status(graph)); }

  rlx_graph_t* read(const std::string& text) {
    rlx_graph_t* made = nullptr;
    failed = words(rlx_import_memory(env, "rlx", text.data(), text.size(), nullptr, nullptr, nullptr, &made, nullptr));
    return made;
  }
  std::string text_of(const rlx_graph_t* from) {
    rlx_blob_t* blob = nullptr;
    EXPECT_EQ(words(rlx_graph_print(from, "rlx", &blob)), "");
    std::string text = static_cast<const char*>(rlx_blob_data(blob));
    rlx_blob_release(blob);
    return text;
  }
  // The first output for x, or the message in `failed`.
  std::vector<float> run(const rlx_graph_t* given, std::vector<float> x, const char* device = nullptr) {
    rlx_model_t* model = nullptr;
    EXPECT_EQ(words(rlx_model_create(given, nullptr, nullptr, &model)), "");
    std::vector<float> y = run(model, std::move(x), device);
    rlx_model_release(model);
    return y;
  }
  std::vector<float> run(rlx_model_t* model, std::vector<float> x, const char* device = nullptr) {
    auto n = static_cast<int64_t>(x.size());
    rlx_tensor_t *in = nullptr, *out = nullptr;
    EXPECT_EQ(words(rlx_tensor_copy_from(env, RLX_F32, &n, 1, x.data(), 4 * x.size(), &in)), "");
    failed = words(rlx_model_run(model, device, nullptr, &in, 1, nullptr, &out, 1, nullptr));
    std::vector<float> y;
    if (out) {
      auto* data = static_cast<const float*>(rlx_tensor_data(out));
      y.assign(data, data + rlx_tensor_bytes(out) / 4);
    }
    rlx_tensor_release(in);
    rlx_tensor_release(out);
    return y;
  }

  rlx_env_t* env = nullptr;
  rlx_graph_t* graph = nullptr;
  std::string failed;

 private:
  // Outlives the behaviour of a test, because the last release comes after the test.
  using User = std::pair<Behaviour*, std::shared_ptr<std::atomic<int>>>;
  std::deque<User> users_;
};

using Floats = std::vector<float>;

}  // namespace rlx::custom_ops
