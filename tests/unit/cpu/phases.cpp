// SPDX-License-Identifier: Apache-2.0
// Steps of several phases. Sizes alone decide how work that would be one long part is cut. So the bits do not depend on
// the number of threads, nor on how a host runs them.
#include <cstring>

#include "ir/text.h"
#include "tests/support/host_threads.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

namespace {

// A node that is cut at these sizes; its output y is near that of the reference device.
struct Cut {
  const char* name;
  const char* text;
  float tolerance = 2e-5f;
};

constexpr Cut kCuts[] = {
    {"product of a row", "x = input f32[1,4100]\n w = input f32[4100,64]\n y = matmul(x, w) -> f32[1,64]", 1e-3f},
    {"product of rows", "x = input f32[33,2050]\n w = input f32[2050,40]\n y = matmul(x, w) -> f32[33,40]", 1e-3f},
    {"product by a vector", "x = input f32[3,70000]\n w = input f32[70000,1]\n y = matmul(x, w) -> f32[3,1]", 1e-3f},
    {"product of a row, transposed",
     "x = input f32[1,70000]\n w = input f32[3,70000]\n y = matmul(x, w) transpose_b=1 -> f32[1,3]", 1e-3f},
    {"sum", "x = input f32[300,400]\n y = reduce(x) fn=sum axes=[0,1] keep_dims=0 -> f32[]", 1e-3f},
    {"largest of columns", "x = input f32[5000,40]\n y = reduce(x) fn=max axes=[0] keep_dims=0 -> f32[40]"},
    {"smallest of rows", "x = input f32[3,70001]\n y = reduce(x) fn=min axes=[1] keep_dims=0 -> f32[3]"},
    {"largest position", "x = input f32[2,70001]\n y = arg_max(x) axis=1 keep_dims=0 -> i64[2]"},
    {"top k", "x = input f32[1,70001]\n y, i = top_k(x) k=9 axis=1 largest=1 -> f32[1,9], i64[1,9]"},
    {"sort", "x = input f32[1,70001]\n y, i = sort(x) axis=1 -> f32[1,70001], i64[1,70001]"},
    {"sort with short positions",
     "x = input f32[3,40001]\n y, i = sort(x) axis=1 descending=1 index_dtype=i32 -> f32[3,40001], i32[3,40001]"},
    {"softmax", "x = input f32[2,30001]\n y = softmax(x) axis=1 -> f32[2,30001]"},
    {"layer norm",
     "x = input f32[2,30001]\n g = input f32[30001]\n y, m, i = layer_norm(x, g) axis=1 -> f32[2,30001], f32[2,1], "
     "f32[2,1]"},
    {"rms norm over two axes", "x = input f32[1,300,200]\n y, i = rms_norm(x) axis=1 -> f32[1,300,200], f32[1,1,1]"},
    {"residual and layer norm",
     "x = input f32[1,70001]\n r = input f32[1,70001]\n y, s = residual_layer_norm(x, r) -> f32[1,70001], "
     "f32[1,70001]"},
    {"running sum", "x = input f32[1,30001]\n y = cumulative(x) fn=sum axis=1 -> f32[1,30001]", 1e-4f},
    {"running sum from the end",
     "x = input f32[3,30001]\n y = cumulative(x) fn=sum axis=1 exclusive=1 reverse=1 -> f32[3,30001]", 1e-4f},
    {"running largest", "x = input f32[30001]\n y = cumulative(x) fn=max axis=0 -> f32[30001]"},
    {"convolution of integers with filters of the run",
     "x = input f32[1,8,40,41]\n w = input f32[16,8,3,3]\n k = constant f32[] {90}\n s = mul(x, k)\n t = mul(w, k)\n"
     " p = cast(s) to=i8\n q = cast(t) to=i8\n a = cast(p) to=i32\n b = cast(q) to=i32\n"
     " y = conv(a, b) -> i32[1,16,38,39]"},
    {"quantise", "x = input f32[300,400]\n y, s, z = dynamic_quantize_linear(x) -> u8[300,400], f32[], u8[]"},
};

Graph graph_of(const Cut& cut) {
  auto graph = parse(std::string("graph \"g\" () {\n ") + cut.text + "\n output y = y\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::move(*graph);
}

std::vector<Tensor> inputs_of(const Graph& graph) {
  std::vector<Tensor> in;
  for (uint32_t node : graph.inputs()) {
    std::vector<int64_t> dims;
    for (const Dim& dim : graph.node(node).out[0].dims) dims.push_back(dim.literal());
    in.push_back(noise(dims, 3 + static_cast<uint32_t>(in.size())));
  }
  return in;
}

Tensor run(const std::shared_ptr<Env>& env, const Graph& graph, const char* device = nullptr) {
  auto program = Program::compile(env, graph, nullptr, device ? *env->find_device(device) : nullptr, {});
  EXPECT_TRUE(program.ok()) << program.status().message();
  auto out = (*program)->run({}, inputs_of(graph), {}, 1);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return on_host((*out)[0]);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

std::shared_ptr<Env> env_with_host_threads() {
  EnvOptions options{.default_device = test_device()};
  if (is_far()) options.backends.push_back(far::backend(nullptr));
  return *Env::create(options, test::three_threads());
}

}  // namespace

TEST(phases, no_number_of_threads_changes_a_bit) {
  std::vector<std::shared_ptr<Env>> envs = {env_with_host_threads()};
  for (int threads : {0, 1, 2, 3, 8}) envs.push_back(env_with(threads));
  for (const Cut& cut : kCuts) {
    SCOPED_TRACE(cut.name);
    Graph graph = graph_of(cut);
    Tensor want = run(envs[1], graph);
    for (const auto& env : envs) EXPECT_TRUE(same_bits(run(env, graph), want));
    Tensor oracle = run(envs[1], graph, "reference");
    if (want.dtype() == DType::kF32)
      expect_near(want, oracle, cut.tolerance);
    else
      EXPECT_TRUE(same_bits(want, oracle));
  }
}

}  // namespace rlx
