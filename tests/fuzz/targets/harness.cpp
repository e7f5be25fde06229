// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets/harness.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/printed.h"

namespace rlx::fuzz {

static constexpr size_t kMaxMemory = size_t{64} << 20;  // that the library may ask of its host at once
static constexpr const char* kPlanLimit = "memory.limit=16777216";
static constexpr double kMaxElements = 4096;  // of any value of a graph that is run
static constexpr int kMilliseconds = 500;     // of one run: loops may be endless

[[noreturn]] static void fault(const char* what, std::string_view more) {
  std::fprintf(stderr, "FAULT: %s\n%.*s\n", what, static_cast<int>(more.size()), more.data());
  std::abort();
}

static void* allocate(void* user, size_t size, size_t align, uint32_t) {
  auto& live = *static_cast<size_t*>(user);
  if (size > kMaxMemory - live) return nullptr;
  live += size;
  return std::aligned_alloc(align, (size + align - 1) / align * align);
}

static void deallocate(void* user, void* data, size_t size, size_t, uint32_t) {
  *static_cast<size_t*>(user) -= size;
  std::free(data);
}

static rlx_env_t* make_env() {
  static size_t live = 0;
  rlx_host_t host;
  rlx_host_init(&host, sizeof host);
  host.log_level = RLX_LOG_OFF;
  host.user = &live;
  host.alloc = allocate;
  host.dealloc = deallocate;
  rlx_env_t* made = nullptr;
  if (!passes(rlx_env_create(attrs_of("threads=1 memory.cache=0").get(), &host, &made))) fault("no environment", "");
  return made;
}

rlx_env_t* env() {
  static rlx_env_t* const kEnv = make_env();
  return kEnv;
}

bool passes(rlx_status_t* status) {
  if (!status) return true;
  rlx_code_t code = rlx_status_code(status);
  if (!*rlx_status_message(status)) fault("a failure without a message", rlx_code_name(code));
  if (code == RLX_E_INTERNAL || code == RLX_E_UNKNOWN) fault(rlx_code_name(code), rlx_status_message(status));
  rlx_status_release(status);
  return false;
}

Handle<rlx_attrs_t> attrs_of(const std::string& text) {
  rlx_attrs_t* made = nullptr;
  passes(rlx_attrs_create(text.c_str(), &made));
  return Handle<rlx_attrs_t>(made);
}

Imported import(const char* format, std::string_view bytes, const rlx_attrs_t* options) {
  bool has_graph = std::strcmp(format, "onnx") == 0 || std::strcmp(format, "rlx") == 0;
  rlx_graph_t* graph = nullptr;
  rlx_weights_t* weights = nullptr;
  passes(rlx_import_memory(env(), format, bytes.data(), bytes.size(), nullptr, nullptr, options,
                           has_graph ? &graph : nullptr, &weights));
  return {Handle<rlx_graph_t>(graph), Handle<rlx_weights_t>(weights)};
}

static void read_tensor(rlx_tensor_t* tensor) {
  static volatile unsigned sum;
  const auto* bytes = static_cast<const unsigned char*>(rlx_tensor_data(tensor));
  size_t size = rlx_tensor_bytes(tensor);
  for (size_t i = 0; i < size; i++) sum = sum + bytes[i];
  rlx_blob_t* text = nullptr;
  if (passes(rlx_tensor_print(tensor, 8, &text))) rlx_blob_release(text);
  rlx_tensor_t* floats = nullptr;
  if (size <= 4096 && passes(rlx_tensor_cast(tensor, RLX_F32, &floats))) rlx_tensor_release(floats);
}

void read_all(const rlx_weights_t* weights) {
  for (size_t i = 0; i < rlx_weights_count(weights); i++) {
    rlx_tensor_t* tensor = nullptr;
    if (!passes(rlx_weights_get(weights, rlx_weights_name(weights, i), &tensor))) fault("a name without tensor", "");
    read_tensor(tensor);
    rlx_tensor_release(tensor);
  }
  for (const char* what : {"metadata", "memory"}) {
    rlx_blob_t* json = nullptr;
    if (passes(rlx_weights_report(weights, what, &json))) rlx_blob_release(json);
  }
}

static std::string print(const rlx_graph_t* graph) {
  rlx_blob_t* text = nullptr;
  if (!passes(rlx_graph_print(graph, "rlx", &text))) fault("a graph that cannot be printed", "");
  Handle<rlx_blob_t> owner(text);
  return {static_cast<const char*>(rlx_blob_data(text)), rlx_blob_size(text)};
}

// The graph of a text that was printed, printed again.
static std::string read_and_printed(const std::string& text) {
  rlx_graph_t* again = nullptr;
  rlx_status_t* status =
      rlx_import_memory(env(), "rlx", text.data(), text.size(), nullptr, nullptr, nullptr, &again, nullptr);
  Handle<rlx_graph_t> owner(again);
  if (status) fault(rlx_status_message(status), text);
  return print(again);
}

std::string print_and_read_back(const rlx_graph_t* graph) {
  std::string text = print(graph), again = read_and_printed(text);
  bool is_same = test::without_guards(again) == test::without_guards(text);
  if (!is_same && !test::settles(text, again, read_and_printed(again)))
    fault("printed, read and printed again it differs", text + again);
  return text;
}

// At most how many elements the dims in "f32[2*n,3]" have, by the numbers in it, where n is 2.
static double elements_of(std::string_view dims) {
  double product = 1;
  for (size_t i = 0; i < dims.size();) {
    size_t end = dims.find_first_of("+-*,() ", i);
    end = end == dims.npos ? dims.size() : end;
    if (end > i) product *= 1 + std::max(1.0, std::atof(std::string(dims.substr(i, end - i)).c_str()));
    i = end + 1;
  }
  return product;
}

// Whether each value that the text of a graph shows has few elements: what it computes then takes a short time, unless
// it is a loop.
static bool is_small(std::string_view text) {
  for (size_t open = text.find('['); open != text.npos; open = text.find('[', open + 1)) {
    bool is_type = open > 0 && std::isalnum(static_cast<unsigned char>(text[open - 1]));
    size_t close = std::min(text.find(']', open), text.size());
    if (is_type && elements_of(text.substr(open + 1, close - open - 1)) > kMaxElements) return false;
  }
  return true;
}

// Cancels the run that takes too long, from a signal handler.
class Watchdog {
 public:
  explicit Watchdog(rlx_exec_t* exec) {
    static const timer_t kTimer = make_timer();
    timer_ = kTimer;
    watched_ = exec;
    set(kMilliseconds);
  }
  ~Watchdog() {
    set(0);
    watched_ = nullptr;
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static timer_t make_timer() {
    struct sigaction action {};
    action.sa_handler = [](int) {
      if (rlx_exec_t* exec = watched_) rlx_exec_cancel(exec);
    };
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR2;
    timer_t timer{};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) fault("no timer", "");
    return timer;
  }
  void set(int milliseconds) const {
    itimerspec when{};
    when.it_value.tv_nsec = long{milliseconds} * 1'000'000;
    timer_settime(timer_, 0, &when, nullptr);
  }

  static inline std::atomic<rlx_exec_t*> watched_{nullptr};
  timer_t timer_;
};

static void fill_inputs(rlx_exec_t* exec, size_t count, std::string_view bytes) {
  for (size_t i = 0; i < count; i++) {
    rlx_tensor_t* tensor = nullptr;
    if (!passes(rlx_exec_tensor(exec, RLX_INPUT, i, &tensor))) continue;
    auto* data = static_cast<char*>(rlx_tensor_data(tensor));
    for (size_t k = 0; k < rlx_tensor_bytes(tensor); k++) data[k] = bytes[(k + i) % bytes.size()];
    rlx_tensor_release(tensor);
  }
}

static void run(rlx_compiled_t* program, std::string_view bytes) {
  rlx_exec_t* exec = nullptr;
  if (!passes(rlx_exec_create(program, nullptr, &exec))) return;
  Handle<rlx_exec_t> owner(exec);
  for (std::string_view pattern : {std::string_view("\0", 1), bytes}) {
    fill_inputs(exec, rlx_compiled_count(program, RLX_INPUT), pattern);
    Watchdog watchdog(exec);
    passes(rlx_exec_run(exec));
  }
}

void compile_and_run(const Imported& imported, std::string_view bytes) {
  bool runs = is_small(print_and_read_back(imported.graph.get()));
  Handle<rlx_attrs_t> options = attrs_of(kPlanLimit);
  for (size_t i = 0; i < rlx_graph_count(imported.graph.get(), RLX_SYMBOL); i++) {
    std::string symbol = rlx_graph_name(imported.graph.get(), RLX_SYMBOL, i);
    rlx_attrs_set_i64(options.get(), ("dims." + symbol).c_str(), 2);
  }
  rlx_compiled_t* program = nullptr;
  // Without weights nothing is computed from params, which may be long work.
  rlx_weights_t* weights = runs ? imported.weights.get() : nullptr;
  if (!passes(rlx_compile(imported.graph.get(), weights, nullptr, options.get(), &program))) return;
  Handle<rlx_compiled_t> owner(program);
  if (runs) run(program, bytes);
}

}  // namespace rlx::fuzz
