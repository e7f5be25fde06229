// SPDX-License-Identifier: Apache-2.0
#include "compile_once.h"

#include <rlx.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>

#include "ort.h"

namespace bench {
namespace {

constexpr double kTolerance = 1e-4;  // of the largest value

void check(rlx_status_t* status) {
  char text[1024];
  if (rlx_status_take(status, text, sizeof text) == RLX_OK) return;
  std::fprintf(stderr, "%s\n", text);
  std::_Exit(1);
}

template <auto release>
struct Release {
  template <class T>
  void operator()(T* handle) const {
    release(handle);
  }
};
template <class T, auto release>
using Handle = std::unique_ptr<T, Release<release>>;
using Attrs = Handle<rlx_attrs_t, rlx_attrs_release>;
using Graph = Handle<rlx_graph_t, rlx_graph_release>;
using WeightSet = Handle<rlx_weights_t, rlx_weights_release>;
using Compiled = Handle<rlx_compiled_t, rlx_compiled_release>;
using Exec = Handle<rlx_exec_t, rlx_exec_release>;
using TensorHandle = Handle<rlx_tensor_t, rlx_tensor_release>;

Attrs make_attrs(const std::string& text) {
  rlx_attrs_t* attrs = nullptr;
  check(rlx_attrs_create(text.c_str(), &attrs));
  return Attrs(attrs);
}

struct Imported {
  Graph graph;
  WeightSet weights;
};

Imported import_model(rlx_env_t* env, const Model& model) {
  rlx_graph_t* graph = nullptr;
  rlx_weights_t* weights = nullptr;
  if (model.path.empty())
    check(rlx_import_memory(env, "onnx", model.bytes.data(), model.bytes.size(), nullptr, nullptr, nullptr, &graph,
                            &weights));
  else
    check(rlx_import_file(env, "onnx", model.path.c_str(), nullptr, &graph, &weights));
  return {Graph(graph), WeightSet(weights)};
}

Compiled compile(const Imported& imported, rlx_weights_t* weights, const Attrs& options) {
  rlx_compiled_t* compiled = nullptr;
  check(rlx_compile(imported.graph.get(), weights, nullptr, options.get(), &compiled));
  return Compiled(compiled);
}

std::unique_ptr<Ort> make_session(const Model& model) {
  if (!model.path.empty()) return std::make_unique<Ort>(model.path, 1);
  return std::make_unique<Ort>(std::span(model.bytes), 1);
}

void bind(rlx_env_t* env, rlx_compiled_t* compiled, rlx_exec_t* exec, const Feed& feed) {
  rlx_tensor_t* tensor = nullptr;
  check(rlx_tensor_copy_from(env, RLX_I64, feed.dims.data(), feed.dims.size(), feed.values.data(),
                             feed.values.size() * sizeof feed.values[0], &tensor));
  TensorHandle owner(tensor);
  check(rlx_exec_bind(exec, RLX_INPUT, rlx_compiled_find(compiled, RLX_INPUT, feed.input.c_str()), tensor));
}

std::vector<float> our_output(rlx_env_t* env, const Model& model) {
  Imported imported = import_model(env, model);
  Compiled compiled = compile(imported, imported.weights.get(), make_attrs(model.options));
  rlx_exec_t* exec = nullptr;
  check(rlx_exec_create(compiled.get(), nullptr, &exec));
  Exec owner(exec);
  for (const Feed& feed : model.feeds) bind(env, compiled.get(), exec, feed);
  check(rlx_exec_run(exec));
  rlx_tensor_t* tensor = nullptr;
  check(rlx_exec_tensor(exec, RLX_OUTPUT, 0, &tensor));
  TensorHandle output(tensor);
  auto* data = static_cast<const float*>(rlx_tensor_data(tensor));
  return {data, data + rlx_tensor_bytes(tensor) / sizeof(float)};
}

std::vector<float> peer_output(const Model& model) {
  std::unique_ptr<Ort> session = make_session(model);
  for (const Feed& feed : model.feeds) session->bind(feed.input, Ort::Type::kI64, feed.dims, feed.values.data());
  session->run();
  std::span<const float> output = session->output(0);
  return {output.begin(), output.end()};
}

}  // namespace

Env make_env() {
  rlx_env_t* env = nullptr;
  check(rlx_env_create(make_attrs("threads=1").get(), nullptr, &env));
  return Env(env, rlx_env_release);
}

// Every turn imports again, because weights keep their packed forms.
void compile_once(Reporter& reporter, rlx_env* env, const Model& model, Weights weights) {
  Attrs options = make_attrs(model.options);
  Imported imported;
  Compiled compiled;
  bool at_compile = weights == Weights::kAtCompile;
  reporter.time(Stage::kImport, [&] { imported = import_model(env, model); });
  reporter.time(Stage::kCompile,
                [&] { compiled = compile(imported, at_compile ? imported.weights.get() : nullptr, options); });
  if (at_compile) return;
  reporter.time(Stage::kPacking, [&] { check(rlx_compiled_set_params(compiled.get(), imported.weights.get())); });
}

void session_once(Reporter& reporter, const Model& model) {
  std::unique_ptr<Ort> session;
  reporter.time(Stage::kSession, [&] { session = make_session(model); });
}

void assert_equal_outputs(Reporter& reporter, rlx_env* env, const Model& model) {
  std::vector<float> ours, peer;
  reporter.time(Stage::kComparison, [&] {
    ours = our_output(env, model);
    peer = peer_output(model);
  });
  if (ours.size() != peer.size()) reporter.fail("outputs of different sizes");
  double largest = 0, worst = 0;
  for (size_t i = 0; i < peer.size(); ++i) {
    largest = std::max(largest, std::abs(double{peer[i]}));
    worst = std::max(worst, std::isfinite(ours[i]) ? std::abs(double{ours[i]} - peer[i]) : INFINITY);
  }
  if (worst > kTolerance * largest) reporter.fail("outputs differ by " + std::to_string(worst));
}

}  // namespace bench
