// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a run beyond its kernels. Beside it stand the limits that the library sets itself and, where it
// can do the same, ONNX Runtime on the same ONNX bytes, in turns, with outputs compared.
//
//   bench_runtime MODEL.onnx libonnxruntime.so [TURNS [PART_OF_A_NAME]]
#include <rlx.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "callers.h"
#include "graphs.h"
#include "minilm_model.h"
#include "ort.h"
#include "table.h"

namespace bench {
namespace {

struct Setup {
  std::string minilm;
  Turns turns;
};

constexpr int kRuns = 2000;  // of a small graph, in one sample

// ---- a graph with one input x, ready to run in each of the possible ways ----

class Small {
 public:
  Small(const Model& model, std::vector<int64_t> dims, int threads = 1, const char* options = "")
      : dims_(std::move(dims)) {
    size_t count = 1;
    for (int64_t dim : dims_) count *= static_cast<size_t>(dim);
    x_.assign(count, 1.5f);
    env_ = make_env(threads, Pin::kNo);
    rlx_graph_t* graph = nullptr;
    rlx_weights_t* weights = nullptr;
    rlx_attrs_t* attrs = nullptr;
    const auto& bytes = model.bytes;
    check(rlx_attrs_create(options, &attrs));
    check(
        rlx_import_memory(env_.get(), "onnx", bytes.data(), bytes.size(), nullptr, nullptr, nullptr, &graph, &weights));
    check(rlx_compile(graph, weights, nullptr, attrs, &compiled));
    check(rlx_model_create(graph, weights, nullptr, &this->model));
    check(rlx_tensor_copy_from(env_.get(), RLX_F32, dims_.data(), dims_.size(), x_.data(), x_.size() * sizeof x_[0],
                               &in));
    exec = new_exec();
    rlx_attrs_release(attrs);
    rlx_weights_release(weights);
    rlx_graph_release(graph);
  }
  ~Small() {
    rlx_exec_release(exec);
    rlx_tensor_release(in);
    rlx_model_release(model);
    rlx_compiled_release(compiled);
  }
  Small(const Small&) = delete;
  Small& operator=(const Small&) = delete;

  rlx_exec_t* new_exec() const {
    rlx_exec_t* made = nullptr;
    check(rlx_exec_create(compiled, nullptr, &made));
    check(rlx_exec_bind(made, RLX_INPUT, 0, in));
    return made;
  }
  void bind(Ort& ort) const { ort.bind("x", Ort::Type::kF32, dims_, x_.data()); }

  void run_exec() const { check(rlx_exec_run(exec)); }
  void run_compiled() const {
    rlx_tensor_t* out = nullptr;
    check(rlx_compiled_run(compiled, nullptr, &in, 1, nullptr, &out, 1));
    rlx_tensor_release(out);
  }
  void run_model() const {
    rlx_tensor_t* out = nullptr;
    check(rlx_model_run(model, nullptr, nullptr, &in, 1, nullptr, &out, 1, nullptr));
    rlx_tensor_release(out);
  }
  static void submit(rlx_exec_t* exec, rlx_fence_t** done) { check(rlx_exec_submit(exec, nullptr, 0, done)); }
  static void wait(rlx_fence_t* fence) {
    check(rlx_fence_wait(&fence, 1, 1, UINT64_MAX, nullptr));
    check(rlx_fence_result(fence, nullptr));
    rlx_fence_release(fence);
  }
  void submit_and_wait() const {
    rlx_fence_t* done = nullptr;
    submit(exec, &done);
    wait(done);
  }

  rlx_compiled_t* compiled = nullptr;
  rlx_model_t* model = nullptr;
  rlx_exec_t* exec = nullptr;
  rlx_tensor_t* in = nullptr;

 private:
  std::vector<int64_t> dims_;
  std::vector<float> x_;
  Env env_;
};

template <class Work>
auto repeated(int times, Work work) {
  return [=] {
    for (int i = 0; i < times; ++i) work();
  };
}

Spread scaled(Spread spread, double by) {
  return {spread.low * by, spread.median * by, spread.high * by};
}

Line line(std::string name, const Spread& ours, Target target) {
  return {std::move(name), figure(ours), ours.median, target};
}

Line line(std::string name, const Duel& times, double scale, Target target) {
  Line it = line(std::move(name), scaled(times.ours, scale), target);
  it.peer = figure(scaled(times.peer, scale));
  it.ratio = figure(times.ratio());
  return it;
}

// ---- rows ----

void one_op(const Setup& setup, Table& table) {
  Model model = one_add(16);
  Small ours(model, {16});
  Ort peer(model.bytes, 1);
  ours.bind(peer);
  auto peer_runs = repeated(kRuns, [&] { peer.run(); });
  auto row = [&](const char* name, auto&& work, Target target) {
    table.print(line(name, duel(setup.turns, 5, repeated(kRuns, work), peer_runs), 1e6 / kRuns, target));
  };
  row("one op, ns: rlx_exec_run", [&] { ours.run_exec(); }, {110, 70});
  row("one op, ns: rlx_compiled_run", [&] { ours.run_compiled(); }, {450, 250});
  row("one op, ns: rlx_model_run", [&] { ours.run_model(); }, {900, 500});
  assert_equal("one op", output(ours.exec), peer.output(0));
}

void submitted(const Setup& setup, Table& table) {
  constexpr int kSubmits = 500;
  Small ours(one_add(16), {16}, 2);
  Duel times = duel(setup.turns, 5, repeated(kSubmits, [&] { ours.submit_and_wait(); }), [] {});
  table.print(line("one op, us: submit + wait", scaled(times.ours, 1e3 / kSubmits), {15, 8}));
}

void many_steps(const Setup& setup, Table& table) {
  Model model = matmuls(1000, 4);
  Small ours(model, {4, 4});
  Ort peer(model.bytes, 1);
  ours.bind(peer);
  Duel times = duel(
      setup.turns, 20, [&] { ours.run_exec(); }, [&] { peer.run(); });
  assert_equal("1,000 matmuls", output(ours.exec), peer.output(0));
  table.print(line("1,000 steps of 4x4 matmul, ns a step", times, 1e3, {30, 10}));
}

// The extra cost of new outputs at every run, compared with a run into existing memory.
void large_output(const Setup& setup, Table& table) {
  constexpr int64_t kElements = int64_t{4} << 20;
  Model model = one_add(kElements);
  Small ours(model, {kElements});
  Ort peer(model.bytes, 1);
  ours.bind(peer);
  std::vector<double> beyond, peer_beyond;
  auto peer_anew = [&] { ours.bind(peer), peer.run(); };
  for (int i = 0; i < 20 * setup.turns.count; ++i) {
    beyond.push_back(-time_ms([&] { ours.run_exec(); }) + time_ms([&] { ours.run_compiled(); }));
    peer_beyond.push_back(-time_ms([&] { peer.run(); }) + time_ms(peer_anew));
  }
  Line it = line("output of 16 MiB, ms: rlx_compiled_run beyond exec", spread(beyond), {0.1, 0.02});
  it.peer = figure(spread(peer_beyond));
  table.print(it);
}

// Runs of one thread each, so that two cores can carry two at once.
void overlap(const Setup& setup, Table& table) {
  Small ours(matmuls(200, 64), {64, 64}, 2, "threads=1");
  rlx_exec_t* other = ours.new_exec();
  std::vector<double> ratios;
  for (int i = 0; i < 40 * setup.turns.count; ++i) {
    double alone = time_ms([&] { ours.submit_and_wait(); });
    double both = time_ms([&] {
      rlx_fence_t *first = nullptr, *second = nullptr;
      Small::submit(ours.exec, &first);
      Small::submit(other, &second);
      Small::wait(first);
      Small::wait(second);
    });
    ratios.push_back(2 * alone / both);
  }
  rlx_exec_release(other);
  table.print(line("two execs at once, x the runs of one alone", spread(ratios), {1.8, 1.95, true}));
}

void callers(const Setup& setup, Table& table) {
  constexpr double kSeconds = 0.5;
  constexpr int kThreads = 2;
  Batch batch = make_batch(1, 16);
  Env env = make_env(kThreads, Pin::kNo);
  Executable program(env.get(), setup.minilm.c_str(), 1, 16);
  Ort session(setup.minilm, kThreads);
  for (int count : {1, 2, 4, 8}) {
    auto ours = callers_of(program, count, [&](Executable& run) { run.bind(batch); });
    auto peer = callers_of(session, count, [&](Ort& run) { bind(run, batch); });
    std::vector<double> rates, peer_rates, ratios;
    for (int turn = 0; turn < setup.turns.count; turn++) {
      rates.push_back(rate(ours, kSeconds));
      peer_rates.push_back(rate(peer, kSeconds));
      ratios.push_back(rates.back() / peer_rates.back());
    }
    assert_equal("callers", ours.back()->output(), peer.back()->output(0));
    Line it =
        line("MiniLM 1x16, runs a second, x ORT: callers " + std::to_string(count), spread(ratios), {1.2, 1.5, true});
    it.first = figure(spread(rates).median);
    it.peer = figure(spread(peer_rates));
    it.ratio = figure(spread(ratios).median);
    table.print(it);
  }
}

// A loop, compared with the same steps in sequence.
void loop(const Setup& setup, Table& table) {
  constexpr int kTrips = 1000;
  Model looped = matmul_loop(kTrips, 64), flat = matmuls(kTrips, 64);
  Small ours(looped, {64, 64}), ours_flat(flat, {64, 64});
  Ort peer(looped.bytes, 1), peer_flat(flat.bytes, 1);
  ours.bind(peer), ours.bind(peer_flat);
  std::vector<double> beyond, peer_beyond;
  for (int i = 0; i < 5 * setup.turns.count; ++i) {
    beyond.push_back(time_ms([&] { ours.run_exec(); }) - time_ms([&] { ours_flat.run_exec(); }));
    peer_beyond.push_back(time_ms([&] { peer.run(); }) - time_ms([&] { peer_flat.run(); }));
  }
  assert_equal("a loop", output(ours.exec), peer.output(0));
  constexpr double kMicrosecondsATrip = 1e3 / kTrips;
  Line it = line("while, 64x64 step, us a trip beyond its steps", scaled(spread(beyond), kMicrosecondsATrip), {1, 0.3});
  it.peer = figure(scaled(spread(peer_beyond), kMicrosecondsATrip));
  table.print(it);
}

// The extra time of the first run at a new size within the plan, compared with a second run at that size. The first
// sizes of a turn are not counted: only after several runs have the weights displaced from the caches what the other
// library left there.
void new_size(const Setup& setup, Table& table) {
  constexpr int kSizes = 15, kFirstCounted = 3;
  Env env = make_env(1);
  Executable program(env.get(), setup.minilm.c_str(), 8, 128);
  Ort session(setup.minilm, 1);
  auto take_turn = [](int turn, auto&& change, auto&& run, std::vector<double>& extra) {
    for (int i = 0; i < kSizes; ++i) {
      Batch batch = make_batch(1, 4 + (turn * kSizes + i) % 40);
      double first = time_ms([&] { change(batch), run(); });
      double second = time_ms(run);
      if (i >= kFirstCounted) extra.push_back(first - second);
    }
  };
  std::vector<double> ours, peer;
  for (int turn = 0; turn < setup.turns.count; ++turn) {
    take_turn(
        turn, [&](Batch& batch) { program.bind(batch); }, [&] { program.run(); }, ours);
    take_turn(
        turn, [&](Batch& batch) { bind(session, batch); }, [&] { session.run(); }, peer);
  }
  Line it = line("MiniLM, a new size within its plan, ms", spread(ours), {0.1, 0.05});
  it.peer = figure(spread(peer));
  table.print(it);
}

struct Row {
  const char* name;  // selected by a part of it
  void (*print)(const Setup& setup, Table& table);
};
constexpr Row kRows[] = {{"one op", one_op},   {"steps", many_steps}, {"output", large_output}, {"submit", submitted},
                         {"overlap", overlap}, {"callers", callers},  {"while", loop},          {"size", new_size}};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.onnx libonnxruntime.so [TURNS [PART_OF_A_NAME]]\n", argv[0]);
    return 2;
  }
  const bench::Setup setup{argv[1], {argc > 3 ? std::max(1, std::atoi(argv[3])) : 7, 50}};
  std::string part = argc > 4 ? argv[4] : "";
  bench::Ort::load(argv[2]);
  std::printf("%s; librlx %s, ONNX Runtime %s\n%d turns each, in alternation\n\n", bench::cpu_name().c_str(),
              rlx_version_string(), bench::Ort::version().c_str(), setup.turns.count);
  bench::Table table;
  bench::Table::print_heading();
  for (const bench::Row& row : bench::kRows)
    if (std::string(row.name).find(part) != std::string::npos) row.print(setup, table);
  table.print_count();
}
