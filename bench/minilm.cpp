// SPDX-License-Identifier: Apache-2.0
// librlx beside ONNX Runtime on all-MiniLM-L6-v2: time per run, time to compile, time for a new size, and the cost of
// one small op. Equal outputs are asserted for every row; a row whose outputs differ ends the program.
//
//   bench_minilm MODEL.onnx libonnxruntime.so [TURNS [PAUSE_MS]]
#include <rlx.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "measure.h"
#include "minilm_model.h"
#include "onnx_writer.h"
#include "ort.h"

namespace bench {
namespace {

void print_heading(const char* title) {
  std::printf("\n%-22s  %-27s  %-27s  unit ratio\n", title, "librlx [quartiles]", "ONNX Runtime [quartiles]");
}

void bench_runs(const char* path, int threads, const Turns& turns) {
  Env env = make_env(threads);
  Ort ort(path, threads);
  print_heading(threads == 1 ? "run, 1 thread" : "run, 2 threads");
  for (auto [rows, length] : {std::pair<int64_t, int64_t>{1, 128}, {8, 128}, {1, 16}}) {
    Batch batch = make_batch(rows, length);
    Executable program(env.get(), path, rows, length);
    program.bind(batch);
    bind(ort, batch);
    Duel times = duel(
        turns, 5, [&] { program.run(); }, [&] { ort.run(); });
    assert_equal(batch.name(), program.output(), ort.output(0));
    print_duel(batch.name(), times, "ms");
  }
}

// From the file to a bound exec or session with prepared weights, the first run included.
void bench_compile(const char* path, const Turns& turns) {
  Env env = make_env(1);
  Batch batch = make_batch(1, 128);
  auto ours = [&] {
    Executable program(env.get(), path, 1, 128);
    program.bind(batch);
    program.run();
  };
  auto peer = [&] {
    Ort ort(path, 1);
    bind(ort, batch);
    ort.run();
  };
  print_heading("compile");
  print_duel("open, compile, run", duel(turns, 1, ours, peer), "ms");
}

// The extra time of the first run at a new size, compared with a second run at that size.
void bench_new_size(const char* path, const Turns& turns) {
  Env env = make_env(1);
  Executable program(env.get(), path, 8, 128);
  Ort ort(path, 1);
  std::vector<double> ours, peer;
  for (int turn = 0; turn < 4 * turns.count; ++turn) {
    Batch batch = make_batch(1, 4 + turn);
    double first = time_ms([&] { program.bind(batch), program.run(); });
    ours.push_back(first - time_ms([&] { program.run(); }));
    first = time_ms([&] { bind(ort, batch), ort.run(); });
    peer.push_back(first - time_ms([&] { ort.run(); }));
    assert_equal(batch.name(), program.output(), ort.output(0));
  }
  print_heading("new size");
  print_duel("first run - second", {spread(ours), spread(peer)}, "ms");
}

// y = x + x on f32[16]
std::vector<uint8_t> one_op_model() {
  OnnxWriter onnx;
  onnx.input("x", OnnxWriter::kF32, {"16"});
  onnx.output(onnx.node("Add", {"x", "x"}));
  return onnx.model();
}

void bench_one_op(const Turns& turns) {
  constexpr int kRuns = 2000;  // in one sample
  std::vector<uint8_t> model = one_op_model();
  std::vector<float> x(16, 1.5f);
  Env env = make_env(1);
  rlx_graph_t* graph = nullptr;
  rlx_compiled_t* compiled = nullptr;
  rlx_exec_t* exec = nullptr;
  check(rlx_import_memory(env.get(), "onnx", model.data(), model.size(), nullptr, nullptr, nullptr, &graph, nullptr));
  check(rlx_compile(graph, nullptr, nullptr, nullptr, &compiled));
  check(rlx_exec_create(compiled, nullptr, &exec));
  check(rlx_exec_bind_ptr(exec, RLX_INPUT, 0, x.data(), x.size() * sizeof x[0]));
  Ort ort(model, 1);
  ort.bind("x", Ort::Type::kF32, {16}, x.data());
  Duel times = duel(
      turns, 10,
      [&] {
        for (int i = 0; i < kRuns; ++i) check(rlx_exec_run(exec));
      },
      [&] {
        for (int i = 0; i < kRuns; ++i) ort.run();
      });
  assert_equal("one op", output(exec), ort.output(0));
  print_heading("one op through C");
  print_duel("add of 16 floats", times, "ns", 1e6 / kRuns);
  rlx_exec_release(exec);
  rlx_compiled_release(compiled);
  rlx_graph_release(graph);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.onnx libonnxruntime.so [TURNS [PAUSE_MS]]\n", argv[0]);
    return 2;
  }
  const char* model = argv[1];
  const bench::Turns turns{argc > 3 ? std::max(1, std::atoi(argv[3])) : 8,
                           argc > 4 ? std::max(0, std::atoi(argv[4])) : 250};
  bench::Ort::load(argv[2]);
  std::printf(
      "%s; librlx %s, ONNX Runtime %s\nall-MiniLM-L6-v2, f32; %d turns each, in alternation, %d ms apart; ratio above "
      "1: librlx is "
      "faster\n",
      bench::cpu_name().c_str(), rlx_version_string(), bench::Ort::version().c_str(), turns.count, turns.pause_ms);
  for (int threads : {1, 2}) bench::bench_runs(model, threads, turns);
  bench::bench_compile(model, turns);
  bench::bench_new_size(model, turns);
  bench::bench_one_op(turns);
}
