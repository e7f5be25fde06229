// SPDX-License-Identifier: Apache-2.0
// The client of ../README.md in C++: handles as unique_ptr, statuses as exceptions.
#include <rlx.h>

#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

template <class T, void (*release)(T *)>
struct Release {
  void operator()(T *handle) const { release(handle); }
};
template <class T, void (*release)(T *)>
using Handle = std::unique_ptr<T, Release<T, release>>;
using Env = Handle<rlx_env_t, rlx_env_release>;
using Model = Handle<rlx_model_t, rlx_model_release>;
using Graph = Handle<rlx_graph_t, rlx_graph_release>;
using Tensor = Handle<rlx_tensor_t, rlx_tensor_release>;

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

static void check(rlx_status_t *status) {
  if (!status) return;
  std::string text = std::string(rlx_code_name(rlx_status_code(status))) + ": " + rlx_status_message(status);
  rlx_status_release(status);
  throw Error(text);
}

struct Info {
  rlx_dtype_t dtype;
  std::vector<int64_t> dims;
};

static Info info(const rlx_graph_t *graph, int32_t kind, const char *name) {
  rlx_value_t value = rlx_graph_find(graph, kind, name);
  size_t rank;
  Info result;
  check(rlx_graph_value_info(graph, value, &result.dtype, nullptr, 0, &rank));
  result.dims.resize(rank);
  check(rlx_graph_value_info(graph, value, &result.dtype, result.dims.data(), rank, &rank));
  return result;
}

static std::string dim_text(const rlx_graph_t *graph, int64_t dim) {
  std::string text(rlx_graph_dim_text(graph, dim, nullptr, 0), '\0');
  rlx_graph_dim_text(graph, dim, text.data(), text.size() + 1);
  return text;
}

static void print_values(const rlx_graph_t *graph, int32_t kind, const char *word) {
  for (size_t i = 0; i < rlx_graph_count(graph, kind); i++) {
    const char *name = rlx_graph_name(graph, kind, i);
    Info value = info(graph, kind, name);
    std::cout << word << ' ' << name << ": " << rlx_dtype_name(value.dtype) << " [";
    for (size_t axis = 0; axis < value.dims.size(); axis++)
      std::cout << (axis ? "," : "") << dim_text(graph, value.dims[axis]);
    std::cout << "]\n";
  }
}

static Tensor tensor(const Env &env, rlx_dtype_t dtype, const std::vector<int64_t> &dims,
                     const std::vector<float> &data) {
  rlx_tensor_t *made;
  check(rlx_tensor_copy_from(env.get(), dtype, dims.data(), dims.size(), data.data(), data.size() * sizeof(float),
                             &made));
  return Tensor(made);
}

static Tensor make_input(const Env &env, const rlx_graph_t *graph, int64_t size) {
  Info input = info(graph, RLX_INPUT, rlx_graph_name(graph, RLX_INPUT, 0));
  size_t count = 1;
  for (int64_t &dim : input.dims) {
    if (dim < 0) dim = size;
    count *= static_cast<size_t>(dim);
  }
  std::vector<float> data(count);
  for (size_t i = 0; i < count; i++) data[i] = static_cast<float>(i * 37 % 101) / 128;
  return tensor(env, input.dtype, input.dims, data);
}

static std::vector<Tensor> run(const Model &model, const Tensor &input) {
  size_t n = rlx_graph_count(rlx_model_graph(model.get()), RLX_OUTPUT);
  std::vector<rlx_tensor_t *> out(n);
  rlx_tensor_t *in = input.get();
  check(rlx_model_run(model.get(), nullptr, nullptr, &in, 1, nullptr, out.data(), n, nullptr));
  return std::vector<Tensor>(out.begin(), out.end());
}

static void print_output(const char *name, const Tensor &output) {
  std::vector<int64_t> dims(rlx_tensor_shape(output.get(), nullptr, 0));
  rlx_tensor_shape(output.get(), dims.data(), dims.size());
  std::cout << "  " << name << " [";
  for (size_t axis = 0; axis < dims.size(); axis++) std::cout << (axis ? "," : "") << dims[axis];
  const auto *data = static_cast<const float *>(rlx_tensor_data(output.get()));
  size_t count = rlx_tensor_bytes(output.get()) / sizeof(float);
  uint32_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    std::memcpy(&bits, data + i, sizeof bits);
    sum += bits;
  }
  std::cout << "] bits " << sum << " largest";
  size_t row = dims.empty() ? 1 : static_cast<size_t>(dims.back()), best = 0;
  for (size_t i = 0; i < count; i++) {
    if (i % row == 0 || data[i] > data[best]) best = i;
    if (i % row == row - 1) std::cout << ' ' << best % row;
  }
  std::cout << '\n';
}

static void misbuild(const Env &env) {
  rlx_graph_t *made;
  check(rlx_graph_create(env.get(), "built", &made));
  Graph graph(made);
  const int64_t a_dims[] = {2, 3}, b_dims[] = {5, 4};
  rlx_value_t a = rlx_graph_input(made, "a", RLX_F32, a_dims, 2), b = rlx_graph_input(made, "b", RLX_F32, b_dims, 2);
  rlx_graph_push_name(made, "layer.0");
  rlx_graph_matmul(made, a, b);
  rlx_graph_pop_name(made);
  check(rlx_graph_status(made));
}

int main(int argc, char **argv) try {
  if (argc != 2) throw Error("usage: client MODEL");
  std::cout << "librlx " << rlx_version_string() << '\n';
  rlx_env_t *made_env;
  check(rlx_env_create(nullptr, nullptr, &made_env));
  Env env(made_env);
  rlx_model_t *made_model;
  check(rlx_model_open(env.get(), argv[1], nullptr, &made_model));
  Model model(made_model);
  const rlx_graph_t *graph = rlx_model_graph(model.get());
  print_values(graph, RLX_INPUT, "input");
  print_values(graph, RLX_OUTPUT, "output");
  for (int64_t size : {1, 3}) {
    std::vector<Tensor> outputs = run(model, make_input(env, graph, size));
    std::cout << "size " << size << '\n';
    for (size_t i = 0; i < outputs.size(); i++) print_output(rlx_graph_name(graph, RLX_OUTPUT, i), outputs[i]);
  }
  try {
    run(model, tensor(env, RLX_F32, {2, 3}, std::vector<float>(6)));
  } catch (const Error &error) {
    std::cout << "error " << error.what() << '\n';
  }
  try {
    misbuild(env);
  } catch (const Error &error) {
    std::cout << "error " << error.what() << '\n';
  }
  return 0;
} catch (const Error &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
