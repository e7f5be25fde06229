// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "words.h"

namespace rlx::errors {

static void expect_fine(rlx_status_t* status) {
  char text[512];
  EXPECT_EQ(rlx_status_take(status, text, sizeof text), RLX_OK) << text;
}

User::User() {
  rlx_attrs_t* options = attrs("threads=0");
  expect_fine(rlx_env_create(options, nullptr, &env));
  expect_fine(rlx_graph_create(env, "mistake", &graph));
}

User::~User() {
  for (auto last = after_.rbegin(); last != after_.rend(); ++last) (*last)();
  rlx_graph_release(graph);
  rlx_env_release(env);
}

rlx_value_t User::input(const char* name, std::vector<int64_t> dims, rlx_dtype_t dtype) {
  return rlx_graph_input(graph, name, dtype, dims.data(), dims.size());
}

rlx_value_t User::op(const char* text, std::vector<rlx_value_t> in) {
  return rlx_graph_op(graph, text, in.data(), in.size(), nullptr);
}

rlx_attrs_t* User::attrs(const char* text) {
  if (!text) return nullptr;
  rlx_attrs_t* made = nullptr;
  expect_fine(rlx_attrs_create(text, &made));
  return mine(made, rlx_attrs_release);
}

rlx_tensor_t* User::tensor(std::vector<int64_t> dims, rlx_dtype_t dtype) {
  rlx_tensor_t* made = nullptr;
  expect_fine(rlx_tensor_create(env, nullptr, dtype, dims.data(), dims.size(), &made));
  return mine(made, rlx_tensor_release);
}

rlx_weights_t* User::weights(std::vector<std::pair<const char*, rlx_tensor_t*>> tensors) {
  rlx_weights_t* made = nullptr;
  expect_fine(rlx_weights_create(env, &made));
  for (auto [name, tensor] : tensors) expect_fine(rlx_weights_put(made, name, tensor));
  return mine(made, rlx_weights_release);
}

void User::small_graph(bool has_maximum) {
  rlx_value_t x = input("x", {rlx_graph_dim(graph, "n", 1, has_maximum ? 4 : 0), 3});
  int64_t three = 3;
  rlx_value_t w = rlx_graph_param(graph, "w", RLX_F32, &three, 1);
  rlx_graph_output(graph, "y", op("add", {op("exp", {x}), w}));
}

rlx_status_t* User::compile(const char* options) {
  rlx_compiled_t* made = nullptr;
  rlx_status_t* status = rlx_compile(graph, weights({{"w", tensor({3})}}), nullptr, attrs(options), &made);
  rlx_compiled_release(made);
  return status;
}

rlx_status_t* User::compile_small(const char* options) {
  small_graph();
  return compile(options);
}

rlx_compiled_t* User::program() {
  if (program_) return program_;
  small_graph();
  expect_fine(rlx_compile(graph, weights({{"w", tensor({3})}}), nullptr, nullptr, &program_));
  return mine(program_, rlx_compiled_release);
}

rlx_exec_t* User::exec() {
  rlx_exec_t* made = nullptr;
  expect_fine(rlx_exec_create(program(), nullptr, &made));
  return mine(made, rlx_exec_release);
}

rlx_status_t* User::run(std::vector<rlx_tensor_t*> in, std::vector<const char*> in_names, size_t n_out,
                        const char* out_name) {
  std::vector<rlx_tensor_t*> out(n_out);
  rlx_status_t* status = rlx_compiled_run(program(), in_names.empty() ? nullptr : in_names.data(), in.data(), in.size(),
                                          out_name ? &out_name : nullptr, out.data(), n_out);
  for (rlx_tensor_t* tensor : out) rlx_tensor_release(tensor);
  return status;
}

std::string User::path(const char* name, const std::string& bytes) {
  auto path = std::filesystem::temp_directory_path() / ("rlx_errors_" + std::to_string(::getpid()) + "_" + name);
  std::ofstream(path, std::ios::binary) << bytes;
  after_.emplace_back([path] { std::filesystem::remove(path); });
  return path.string();
}

rlx_status_t* User::import(const char* format, const std::string& bytes, bool with_graph) {
  rlx_graph_t* made = nullptr;
  rlx_weights_t* tensors = nullptr;
  rlx_status_t* status = rlx_import_memory(env, format, bytes.data(), bytes.size(), nullptr, nullptr, nullptr,
                                           with_graph ? &made : nullptr, &tensors);
  rlx_graph_release(made);
  rlx_weights_release(tensors);
  return status;
}

rlx_status_t* User::open(const std::string& path) {
  rlx_model_t* model = nullptr;
  rlx_status_t* status = rlx_model_open(env, path.c_str(), nullptr, &model);
  rlx_model_release(model);
  return status;
}

static std::string detail_of(const rlx_status_t* status, const char* key) {
  const char* text = rlx_status_detail(status, key);
  return text ? text : "";
}

void expect_details(const char* what, const rlx_status_t* status) {
  std::string message = rlx_status_message(status), op = detail_of(status, "op");
  bool is_word = std::all_of(op.begin(), op.end(), [](char c) { return std::isalnum(c) || c == '_'; });
  bool is_ours = std::none_of(op.begin(), op.end(), [](char c) { return std::isupper(c); });  // else a node of a file
  EXPECT_TRUE(is_word && (op.empty() || !is_ours || rlx_feature(("op." + op).c_str()) > 0))
      << what << ": op '" << op << "'";
  for (const char* key : {"op", "value", "input", "device"}) {
    const char* text = rlx_status_detail(status, key);
    if (!text) continue;
    EXPECT_STRNE(text, "") << what << ": " << key << " in: " << message;
    EXPECT_EQ(std::string(text).find('\''), std::string::npos) << what << ": " << key << " is " << text;
  }
  if (message.find(" rank ") == message.npos) return;
  for (const char* key : {"expected", "got"})
    EXPECT_NE(rlx_status_detail(status, key), nullptr) << what << ": " << key << " in: " << message;
}

std::string told_by(rlx_status_t* status) {
  expect_details("runs", status);
  return capi_tests::words(status);
}

template <class Told>
static void expect_says(const Told& mistake, rlx_status_t* status) {
  expect_details(mistake.what, status);
  std::string message = rlx_status_message(status);
  EXPECT_STREQ(rlx_code_name(rlx_status_code(status)), rlx_code_name(mistake.code)) << mistake.what << ": " << message;
  for (const char* part : mistake.says)
    EXPECT_NE(message.find(part), message.npos) << mistake.what << ": no '" << part << "' in: " << message;
  rlx_status_release(status);
}

void expect_told(const std::vector<Told>& mistakes) {
  for (const Told& mistake : mistakes) {
    User user;
    rlx_status_t* status = mistake.make(user);
    std::string message = rlx_status_message(status);
    for (const char* part : mistake.never)
      EXPECT_EQ(message.find(part), message.npos) << mistake.what << ": '" << part << "' in: " << message;
    auto [op, value, expected, got] = mistake.details;
    for (auto [key, wanted] : {std::pair("op", op), {"value", value}, {"expected", expected}, {"got", got}})
      if (wanted) {
        EXPECT_EQ(detail_of(status, key), wanted) << mistake.what << ": " << key << " of: " << message;
      }
    expect_says(mistake, status);
  }
}

void expect_told(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    User user;
    expect_says(mistake, mistake.make(user));
  }
}

void expect_kept(const std::vector<Misbuilt>& mistakes) {
  for (const Misbuilt& mistake : mistakes) {
    User user;
    mistake.make(user);
    expect_says(mistake, rlx_graph_status(user.graph));
  }
}

}  // namespace rlx::errors
