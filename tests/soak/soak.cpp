// SPDX-License-Identifier: Apache-2.0
// Everything at once, for a while. Eight threads make random calls: they run, submit behind fences of the host, set
// params, cancel, link, change sizes, and release contexts and environments in flight. Every answer is one that the
// header allows, and every result is that of one set of params. Under the sanitizers a race or a leak is a fault too.
//
//   soak [--seconds N] [--seed N]
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "rlx.h"

namespace rlx {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

double seconds = 20;
uint64_t seed = 1;

constexpr int kThreads = 8;
constexpr int64_t kWidth = 16, kRows = 32;  // w is [kWidth, kWidth], x at most [kRows, kWidth]
constexpr int kSettings = 8;                // all elements of w are equal: 1 ... kSettings

struct Faults {
  std::mutex mutex;
  int64_t count = 0;
  void add(const std::string& what) {
    std::lock_guard lock(mutex);
    if (count++ < 20) ADD_FAILURE() << what;
  }
} faults;

// The code of a status, which must be one of these.
rlx_code_t expect(const char* call, rlx_status_t* status, std::initializer_list<rlx_code_t> allowed = {RLX_OK}) {
  char text[512];
  rlx_code_t code = rlx_status_take(status, text, sizeof text);
  if (std::find(allowed.begin(), allowed.end(), code) == allowed.end()) faults.add(std::string(call) + ": " + text);
  return code;
}

// ---- what all threads share ----

class World {
 public:
  World() {
    rlx_attrs_t* options = nullptr;
    expect("attrs", rlx_attrs_create("threads=2", &options));
    expect("env", rlx_env_create(options, nullptr, &env));
    rlx_attrs_release(options);
    rlx_graph_t* layer = make_layer();
    rlx_graph_t* chain = make_chain();
    expect("attrs", rlx_attrs_create("dims.n=32", &options));
    rlx_weights_t* weights = nullptr;
    expect("weights", rlx_weights_create(env, &weights));
    rlx_tensor_t* w = setting(1);
    expect("put", rlx_weights_put(weights, "w", w));
    expect("compile", rlx_compile(layer, weights, nullptr, options, &program));
    expect("compile", rlx_compile(chain, nullptr, nullptr, options, &linked));
    expect("model", rlx_model_create(layer, weights, nullptr, &model));
    const char* counted = "graph {\nc = input i64[]\nr = dynamic_iota(c)\ny = add(r, r)\noutput y\n}";
    rlx_graph_t* graph = nullptr;
    expect("import",
           rlx_import_memory(env, "rlx", counted, std::strlen(counted), nullptr, nullptr, nullptr, &graph, nullptr));
    expect("compile", rlx_compile(graph, nullptr, nullptr, nullptr, &open));
    rlx_graph_release(graph);
    rlx_tensor_release(w);
    rlx_weights_release(weights);
    rlx_attrs_release(options);
    rlx_graph_release(chain);
    rlx_graph_release(layer);
  }
  ~World() {
    rlx_model_release(model);
    rlx_compiled_release(open);
    rlx_compiled_release(linked);
    rlx_compiled_release(program);
    rlx_env_release(env);
  }

  rlx_tensor_t* filled(int64_t rows, float value) const {
    std::vector<float> values(static_cast<size_t>(rows * kWidth), value);
    int64_t dims[] = {rows, kWidth};
    rlx_tensor_t* tensor = nullptr;
    expect("tensor",
           rlx_tensor_copy_from(env, RLX_F32, dims, 2, values.data(), values.size() * sizeof(float), &tensor));
    return tensor;
  }
  rlx_tensor_t* setting(int k) const { return filled(kWidth, static_cast<float>(k)); }

  rlx_env_t* env = nullptr;
  rlx_compiled_t *program = nullptr, *linked = nullptr, *open = nullptr;
  rlx_model_t* model = nullptr;

  // Contexts that anybody may cancel.
  std::mutex mutex;
  std::vector<rlx_exec_t*> cancellable;

 private:
  // y = relu(x @ w)
  rlx_graph_t* make_layer() const {
    rlx_graph_t* graph = nullptr;
    expect("graph", rlx_graph_create(env, "layer", &graph));
    int64_t x_dims[] = {rlx_graph_dim(graph, "n", 0, 0), kWidth}, w_dims[] = {kWidth, kWidth};
    rlx_value_t x = rlx_graph_input(graph, "x", RLX_F32, x_dims, 2);
    rlx_value_t w = rlx_graph_param(graph, "w", RLX_F32, w_dims, 2);
    rlx_graph_output(graph, "y", rlx_graph_unary(graph, "relu", rlx_graph_matmul(graph, x, w)));
    return graph;
  }
  // next = state + x
  rlx_graph_t* make_chain() const {
    rlx_graph_t* graph = nullptr;
    expect("graph", rlx_graph_create(env, "chain", &graph));
    int64_t dims[] = {rlx_graph_dim(graph, "n", 0, 0), kWidth};
    rlx_value_t state = rlx_graph_input(graph, "state", RLX_F32, dims, 2);
    rlx_value_t x = rlx_graph_input(graph, "x", RLX_F32, dims, 2);
    rlx_graph_output(graph, "next", rlx_graph_binary(graph, "add", state, x));
    return graph;
  }
};

// Signals fences of other threads a little later.
class Signaller {
 public:
  Signaller() : thread_([this] { work(); }) {}
  ~Signaller() {
    stop_ = true;
    thread_.join();
  }
  void add(rlx_fence_t* fence, bool fails) {
    std::lock_guard lock(mutex_);
    fences_.emplace_back(rlx_fence_retain(fence), fails);
  }

 private:
  void work() {
    for (bool last = false; !last;) {
      last = stop_;
      std::vector<std::pair<rlx_fence_t*, bool>> now;
      {
        std::lock_guard lock(mutex_);
        now.swap(fences_);
      }
      for (auto [fence, fails] : now) {
        expect("signal", rlx_fence_signal(fence, fails ? rlx_status_create(RLX_E_UNKNOWN, "the host's") : nullptr));
        rlx_fence_release(fence);
      }
      std::this_thread::sleep_for(100us);
    }
  }
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<std::pair<rlx_fence_t*, bool>> fences_;
  std::thread thread_;
};

// ---- one thread ----

class Soaker {
 public:
  Soaker(World& world, Signaller& signaller, uint64_t seed) : world_(world), signaller_(signaller), random_(seed) {}

  void work(Clock::time_point until) {
    using Action = void (Soaker::*)();
    static constexpr Action kActions[] = {&Soaker::run_context,   &Soaker::run_context,   &Soaker::run_program,
                                          &Soaker::run_program,   &Soaker::run_model,     &Soaker::run_model,
                                          &Soaker::submit_behind, &Soaker::submit_behind, &Soaker::carry_state,
                                          &Soaker::carry_state,   &Soaker::grow_output,   &Soaker::set_params,
                                          &Soaker::cancel_some,   &Soaker::live_and_go};
    while (Clock::now() < until) {
      (this->*kActions[below(std::size(kActions))])();
      actions++;
    }
  }
  int64_t actions = 0;

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  int64_t some_rows() { return 1 + static_cast<int64_t>(below(kRows)); }

  // Of ones: every element is that of one setting of w.
  void check_layer(const char* what, rlx_tensor_t* y, int64_t rows) {
    int64_t dims[2] = {0, 0};
    rlx_tensor_shape(y, dims, 2);
    auto* data = static_cast<const float*>(rlx_tensor_data(y));
    if (dims[0] != rows || dims[1] != kWidth) return faults.add(std::string(what) + ": a wrong shape");
    float k = data[0] / kWidth;
    bool is_known = k >= 1 && k <= kSettings && k == static_cast<float>(static_cast<int>(k));
    for (int64_t i = 0; i < rows * kWidth; i++) is_known &= data[i] == data[0];
    if (!is_known) faults.add(std::string(what) + ": params were mixed, or memory was");
  }

  // A context of its own that others may cancel meanwhile.
  class Context {
   public:
    Context(World& world, rlx_compiled_t* program) : world_(world) {
      expect("exec", rlx_exec_create(program, nullptr, &exec));
      std::lock_guard lock(world_.mutex);
      world_.cancellable.push_back(exec);
    }
    ~Context() {
      {
        std::lock_guard lock(world_.mutex);
        std::erase(world_.cancellable, exec);
      }
      rlx_exec_release(exec);
    }
    rlx_exec_t* exec = nullptr;

   private:
    World& world_;
  };

  void bind(rlx_exec_t* exec, size_t slot, int64_t rows) {
    rlx_tensor_t* x = world_.filled(rows, 1);
    expect("bind", rlx_exec_bind(exec, RLX_INPUT, slot, x));
    rlx_tensor_release(x);
  }

  void run_context() {
    Context context(world_, world_.program);
    for (size_t sizes = 1 + below(3); sizes-- > 0;) {
      int64_t rows = some_rows();
      bind(context.exec, 0, rows);
      for (size_t runs = 1 + below(3); runs-- > 0;) {
        if (expect("run", rlx_exec_run(context.exec), {RLX_OK, RLX_E_CANCELLED}) != RLX_OK) continue;
        rlx_tensor_t* y = nullptr;
        expect("tensor", rlx_exec_tensor(context.exec, RLX_OUTPUT, 0, &y));
        check_layer("rlx_exec_run", y, rows);
        rlx_tensor_release(y);
      }
    }
  }

  void run_program() {
    int64_t rows = some_rows();
    rlx_tensor_t *x = world_.filled(rows, 1), *y = nullptr;
    if (expect("compiled", rlx_compiled_run(world_.program, nullptr, &x, 1, nullptr, &y, 1)) == RLX_OK)
      check_layer("rlx_compiled_run", y, rows);
    rlx_tensor_release(y);
    rlx_tensor_release(x);
  }

  void run_model() {
    int64_t rows = some_rows();
    rlx_tensor_t *x = world_.filled(rows, 1), *y = nullptr;
    if (expect("model", rlx_model_run(world_.model, nullptr, nullptr, &x, 1, nullptr, &y, 1, nullptr)) == RLX_OK)
      check_layer("rlx_model_run", y, rows);
    rlx_tensor_release(y);
    rlx_tensor_release(x);
  }

  void set_params() {
    rlx_tensor_t* w = world_.setting(1 + static_cast<int>(below(kSettings)));
    if (below(2))
      expect("set_param", rlx_compiled_set_param(world_.program, "w", w));
    else
      expect("set_param", rlx_model_set_param(world_.model, "w", w));
    rlx_tensor_release(w);
  }

  void cancel_some() {
    std::lock_guard lock(world_.mutex);
    if (!world_.cancellable.empty()) rlx_exec_cancel(world_.cancellable[below(world_.cancellable.size())]);
  }

  rlx_fence_t* some_gate() {
    rlx_fence_t* gate = nullptr;
    expect("fence", rlx_fence_create(world_.env, &gate));
    signaller_.add(gate, below(8) == 0);
    return gate;
  }

  // Runs behind fences of the host; the context changes, or goes, while they are in flight.
  void submit_behind() {
    std::vector<rlx_fence_t*> done, gates;
    {
      Context context(world_, world_.program);
      for (size_t runs = 1 + below(5); runs-- > 0;) {
        bind(context.exec, 0, some_rows());
        size_t n = below(3);
        for (size_t i = 0; i < n; i++) gates.push_back(some_gate());
        rlx_fence_t* fence = nullptr;
        expect("submit", rlx_exec_submit(context.exec, gates.data() + gates.size() - n, n, &fence));
        if (fence) done.push_back(fence);
        if (below(6) == 0) rlx_exec_cancel(context.exec);
      }
      if (below(4) == 0 && !done.empty())
        expect("wait", rlx_fence_wait(done.data(), done.size(), 0, below(200000), nullptr), {RLX_OK, RLX_E_TIMEOUT});
      if (below(3) == 0) expect("run", rlx_exec_run(context.exec), {RLX_OK, RLX_E_CANCELLED});
    }
    if (below(3)) {
      expect("wait", rlx_fence_wait(done.data(), done.size(), 1, UINT64_MAX, nullptr));
      for (rlx_fence_t* fence : done)
        expect("result", rlx_fence_result(fence, nullptr), {RLX_OK, RLX_E_CANCELLED, RLX_E_ABORTED});
    }
    for (rlx_fence_t* fence : done) rlx_fence_release(fence);
    for (rlx_fence_t* gate : gates) rlx_fence_release(gate);
  }

  // state + x, run after run: as many as have succeeded can be read off the state.
  void carry_state() {
    rlx_exec_t* exec = nullptr;
    expect("exec", rlx_exec_create(world_.linked, nullptr, &exec));
    int64_t rows = some_rows();
    bind(exec, 1, rows);
    expect("link", rlx_exec_link(exec, 0, 0));
    float sum = 0;
    for (size_t runs = 2 + below(6); runs-- > 0; sum++) {
      if (below(2)) {
        expect("run", rlx_exec_run(exec));
        continue;
      }
      rlx_fence_t *gate = below(2) ? nullptr : some_gate_that_opens(), *fence = nullptr;
      expect("submit", rlx_exec_submit(exec, &gate, gate != nullptr, &fence));
      rlx_fence_release(gate);
      rlx_fence_release(fence);
    }
    expect("run", rlx_exec_run(exec));
    rlx_tensor_t* next = nullptr;
    expect("tensor", rlx_exec_tensor(exec, RLX_OUTPUT, 0, &next));
    auto* data = static_cast<const float*>(rlx_tensor_data(next));
    if (data && (data[0] != sum + 1 || data[rows * kWidth - 1] != sum + 1)) faults.add("a state was lost");
    rlx_tensor_release(next);
    rlx_exec_release(exec);
  }
  rlx_fence_t* some_gate_that_opens() {
    rlx_fence_t* gate = nullptr;
    expect("fence", rlx_fence_create(world_.env, &gate));
    signaller_.add(gate, false);
    return gate;
  }

  // An output without an upper size grows while later runs are prepared. It was asked for, so they look where it lies.
  void grow_output() {
    rlx_exec_t* exec = nullptr;
    expect("exec", rlx_exec_create(world_.open, nullptr, &exec));
    int64_t count = 0;
    rlx_tensor_t* y = nullptr;
    for (size_t run = 0, runs = 3 + below(4); run <= runs; run++) {
      count = 1 + static_cast<int64_t>(below(4000) * run);
      rlx_tensor_t* c = nullptr;
      expect("tensor", rlx_tensor_copy_from(world_.env, RLX_I64, nullptr, 0, &count, sizeof count, &c));
      expect("bind", rlx_exec_bind(exec, RLX_INPUT, 0, c));
      rlx_tensor_release(c);
      rlx_fence_t* fence = nullptr;
      expect("run", run == 0 ? rlx_exec_run(exec) : rlx_exec_submit(exec, nullptr, 0, &fence));
      rlx_fence_release(fence);
      if (run == 0) expect("tensor", rlx_exec_tensor(exec, RLX_OUTPUT, 0, &y));
    }
    rlx_tensor_release(y);
    expect("tensor", rlx_exec_tensor(exec, RLX_OUTPUT, 0, &y));
    int64_t rows = 0;
    rlx_tensor_shape(y, &rows, 1);
    auto* data = static_cast<const int64_t*>(rlx_tensor_data(y));
    if (rows != count || data[count - 1] != 2 * (count - 1)) faults.add("an output that grows has other contents");
    rlx_tensor_release(y);
    rlx_exec_release(exec);
  }

  // An environment of its own, whose handles are released in any order, with runs in flight.
  void live_and_go() {
    if (below(4)) return;  // rarer than the others
    World own;
    rlx_exec_t* exec = nullptr;
    expect("exec", rlx_exec_create(own.program, nullptr, &exec));
    rlx_fence_t* done = nullptr;
    for (size_t runs = below(4); runs-- > 0;) {
      rlx_fence_release(done);
      expect("submit", rlx_exec_submit(exec, nullptr, 0, &done));
    }
    if (below(2)) rlx_exec_cancel(exec);
    rlx_exec_release(exec);
    if (below(2) && done) expect("wait", rlx_fence_wait(&done, 1, 1, UINT64_MAX, nullptr));
    rlx_fence_release(done);
  }

  World& world_;
  Signaller& signaller_;
  std::mt19937_64 random_;
};

}  // namespace

TEST(soak, everything_at_once) {
  World world;
  Signaller signaller;
  auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<std::unique_ptr<Soaker>> soakers;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; i++) {
    soakers.push_back(std::make_unique<Soaker>(world, signaller, seed * 100 + static_cast<uint64_t>(i)));
    threads.emplace_back([until, soaker = soakers.back().get()] { soaker->work(until); });
  }
  int64_t actions = 0;
  for (int i = 0; i < kThreads; i++) {
    threads[static_cast<size_t>(i)].join();
    actions += soakers[static_cast<size_t>(i)]->actions;
  }
  std::printf("%lld actions in %.0f s, %lld faults\n", static_cast<long long>(actions), seconds,
              static_cast<long long>(faults.count));
  EXPECT_GT(actions, 0);
}

}  // namespace rlx

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i + 1 < argc; i++) {
    if (!std::strcmp(argv[i], "--seconds")) rlx::seconds = std::atof(argv[i + 1]);
    if (!std::strcmp(argv[i], "--seed")) rlx::seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return RUN_ALL_TESTS();
}
