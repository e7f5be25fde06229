// SPDX-License-Identifier: Apache-2.0
// librlx beside ONNX Runtime on single ops of ONNX, on one thread or more: which kernels are behind. Equal outputs are
// asserted for every row; a row whose outputs differ ends the program.
//
//   bench_ops MODEL.onnx libonnxruntime.so [TURNS [PART_OF_A_NAME [THREADS]]]    (the model is not read)
#include <rlx.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "client.h"
#include "measure.h"
#include "op_rows.h"
#include "ort.h"

namespace bench {
namespace {

struct Program {
  rlx_graph_t* graph = nullptr;
  rlx_compiled_t* compiled = nullptr;
  rlx_exec_t* exec = nullptr;

  Program(rlx_env_t* env, const std::vector<uint8_t>& model) {
    check(rlx_import_memory(env, "onnx", model.data(), model.size(), nullptr, nullptr, nullptr, &graph, nullptr));
    check(rlx_compile(graph, nullptr, nullptr, nullptr, &compiled));
    check(rlx_exec_create(compiled, nullptr, &exec));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    rlx_exec_release(exec);
    rlx_compiled_release(compiled);
    rlx_graph_release(graph);
  }
};

// Of one op, beside the peer; returns the ratio.
double bench_op(const OpRow& row, const Turns& turns, int threads) {
  OneOp op;
  row.make(op);
  std::vector<uint8_t> model = op.model();
  Env env = make_env(threads);
  Program program(env.get(), model);
  Ort ort(model, threads);
  for (OneOp::Input& input : op.inputs()) {
    auto slot = static_cast<size_t>(rlx_compiled_find(program.compiled, RLX_INPUT, input.name.c_str()));
    bool is_bytes = !input.bytes.empty();
    void* data = is_bytes ? static_cast<void*>(input.bytes.data()) : input.values.data();
    size_t bytes = is_bytes ? input.bytes.size() : input.values.size() * sizeof(float);
    check(rlx_exec_bind_ptr(program.exec, RLX_INPUT, slot, data, bytes));
    ort.bind(input.name, is_bytes ? Ort::Type::kU8 : Ort::Type::kF32, input.dims, data);
  }
  auto ours = [&] { check(rlx_exec_run(program.exec)); };
  auto peer = [&] { ort.run(); };
  ours(), peer();
  assert_equal(row.name, output(program.exec), ort.output(0));
  int runs = std::max(1, static_cast<int>(20 / time_ms(ours)));  // a turn of some 20 ms
  Duel times = duel(turns, std::min(runs, 100), ours, peer);
  print_duel(row.name, times, "us", 1e3);
  std::fflush(stdout);
  return times.ratio();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.onnx libonnxruntime.so [TURNS [PART_OF_A_NAME [THREADS]]]\n", argv[0]);
    return 2;
  }
  const bench::Turns turns{argc > 3 ? std::max(1, std::atoi(argv[3])) : 5, 0};
  const std::string part = argc > 4 ? argv[4] : "";
  const int threads = argc > 5 ? std::max(1, std::atoi(argv[5])) : 1;
  bench::Ort::load(argv[2]);
  std::printf("%s; librlx %s, ONNX Runtime %s\nsingle ops, f32, threads: %d; %d turns each, in alternation\n",
              bench::cpu_name().c_str(), rlx_version_string(), bench::Ort::version().c_str(), threads, turns.count);
  std::printf("%-22s  %-27s  %-27s  unit ratio\n", "", "librlx [quartiles]", "ONNX Runtime [quartiles]");
  double logs = 0, least = INFINITY;
  int count = 0;
  for (const bench::OpRow& row : bench::op_rows()) {
    if (std::string(row.name).find(part) == std::string::npos) continue;
    double ratio = bench::bench_op(row, turns, threads);
    logs += std::log(ratio), least = std::min(least, ratio), count++;
  }
  if (count > 0) std::printf("geometric mean of %d ops: %.2fx, least %.2fx\n", count, std::exp(logs / count), least);
}
