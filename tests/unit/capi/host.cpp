// SPDX-License-Identifier: Apache-2.0
// What the library tells its host and asks of it: the log, progress, which thread calls; and hosts of other sizes.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "rlx.h"
#include "tests/unit/import/onnx_maker.h"
#include "words.h"

namespace rlx {
namespace {

using capi_tests::words;

struct Line {
  int32_t level;
  std::string category, message;
};

class HostTest : public testing::Test {
 protected:
  HostTest() {
    rlx_host_init(&host, sizeof host);
    host.user = this;
  }
  ~HostTest() override {
    rlx_graph_release(graph);
    rlx_env_release(env);
  }

  void open(const char* options = "threads=0") {
    rlx_attrs_t* attrs = nullptr;
    fine(rlx_attrs_create(options, &attrs));
    fine(rlx_env_create(attrs, &host, &env));
    rlx_attrs_release(attrs);
    fine(rlx_graph_create(env, "net", &graph));
  }
  void log_at(int32_t level) {
    host.log_level = level;
    host.log = [](void* user, int32_t at, const char* category, const char* message) {
      auto* test = static_cast<HostTest*>(user);
      std::lock_guard lock(test->mutex);
      test->lines.push_back({at, category, message});
    };
  }
  static constexpr int32_t kThrows = -1;
  // Answers with `answer` at the call `at_call`, else with RLX_CB_OK.
  void watch(int at_call, int32_t answer) {
    stop_at = at_call;
    stop_with = answer;
    host.progress = [](void* user, const char* what, double fraction) {
      auto* test = static_cast<HostTest*>(user);
      EXPECT_FALSE(test->inside.exchange(true)) << "two at once";
      EXPECT_GE(fraction, 0);
      EXPECT_LE(fraction, 1);
      test->told.emplace_back(what);
      test->inside = false;
      if (test->seen++ != test->stop_at) return int32_t{RLX_CB_OK};
      if (test->stop_with == kThrows) throw 1;
      return test->stop_with;
    };
  }
  static void fine(rlx_status_t* status) {
    EXPECT_EQ(status, nullptr) << rlx_status_message(status);
    rlx_status_release(status);
  }

  // y = x w, of this dtype.
  void product(rlx_dtype_t dtype) {
    int64_t x[] = {rlx_graph_dim(graph, "n", 1, 8), 16}, w[] = {16, 16};
    rlx_graph_push_name(graph, "layer.0");
    rlx_value_t a = rlx_graph_input(graph, "x", dtype, x, 2), b = rlx_graph_param(graph, "w", dtype, w, 2);
    rlx_graph_output(graph, "y", rlx_graph_matmul(graph, a, b));
    rlx_graph_pop_name(graph);
  }
  rlx_tensor_t* tensor(rlx_dtype_t dtype, std::vector<int64_t> dims) {
    rlx_tensor_t* made = nullptr;
    fine(rlx_tensor_create(env, nullptr, dtype, dims.data(), dims.size(), &made));
    return made;
  }
  rlx_weights_t* weights(rlx_dtype_t dtype = RLX_F32) {
    rlx_weights_t* made = nullptr;
    rlx_tensor_t* w = tensor(dtype, {16, 16});
    fine(rlx_weights_create(env, &made));
    fine(rlx_weights_put(made, "w", w));
    rlx_tensor_release(w);
    return made;
  }
  bool has(int32_t level, const char* category, const char* part) const {
    for (const Line& line : lines)
      if (line.level == level && line.category == category && line.message.find(part) != std::string::npos) return true;
    return false;
  }
  std::string all() const {
    std::string text;
    for (const Line& line : lines)
      text += std::to_string(line.level) + " " + line.category + ": " + line.message + "\n";
    return text;
  }

  rlx_host_t host;
  rlx_env_t* env = nullptr;
  rlx_graph_t* graph = nullptr;
  std::mutex mutex;
  std::vector<Line> lines;
  int stop_at = -1, seen = 0;
  int32_t stop_with = RLX_CB_OK;
  std::atomic<bool> inside{false};
  std::vector<std::string> told;
};

// ---- the log ----

TEST_F(HostTest, log_tells_of_devices_passes_kernels_and_plans) {
  log_at(RLX_LOG_TRACE);
  open();
  EXPECT_TRUE(has(RLX_LOG_INFO, "device", "cpu: ")) << all();
  product(RLX_F32);
  rlx_model_t* model = nullptr;
  rlx_weights_t* w = weights();
  fine(rlx_model_create(graph, w, nullptr, &model));
  rlx_tensor_t *x = tensor(RLX_F32, {2, 16}), *y = nullptr;
  fine(rlx_model_run(model, nullptr, nullptr, &x, 1, nullptr, &y, 1, nullptr));
  rlx_tensor_release(y);
  EXPECT_TRUE(has(RLX_LOG_TRACE, "compile", "pass fuse: ")) << all();
  EXPECT_TRUE(has(RLX_LOG_TRACE, "compile", "compiled the graph 'net' for cpu")) << all();
  EXPECT_TRUE(has(RLX_LOG_TRACE, "plan", "n <= ")) << all();
  EXPECT_TRUE(has(RLX_LOG_TRACE, "params", "prepared")) << all();
  EXPECT_TRUE(has(RLX_LOG_DEBUG, "kernel", "'layer.0/matmul'")) << all();
  EXPECT_FALSE(has(RLX_LOG_WARN, "kernel", "")) << all();
  EXPECT_FALSE(has(RLX_LOG_TRACE, "plan", "is there")) << all();
  fine(rlx_model_run(model, nullptr, nullptr, &x, 1, nullptr, &y, 1, nullptr));
  EXPECT_TRUE(has(RLX_LOG_TRACE, "plan", "is there and fits")) << all();
  for (const Line& line : lines) EXPECT_EQ(line.message.find('\n'), std::string::npos) << line.message;
  rlx_tensor_release(y);
  rlx_tensor_release(x);
  rlx_weights_release(w);
  rlx_model_release(model);
}

TEST_F(HostTest, log_warns_of_what_runs_on_the_reference_path) {
  log_at(RLX_LOG_WARN);
  open();
  product(RLX_F64);
  rlx_value_t x = rlx_graph_find(graph, RLX_INPUT, "x");
  rlx_graph_output(graph, "s", rlx_graph_unary(graph, "erf", x));
  rlx_compiled_t* program = nullptr;
  fine(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  rlx_compiled_release(program);
  EXPECT_TRUE(has(RLX_LOG_WARN, "kernel", "erf of f64 runs on the slow reference path of cpu: 1 node")) << all();
  for (const Line& line : lines) EXPECT_GE(line.level, RLX_LOG_WARN) << all();
  lines.clear();
  const rlx_device_t* reference = nullptr;
  fine(rlx_env_find_device(env, "reference", &reference));
  fine(rlx_compile(graph, nullptr, reference, nullptr, &program));
  rlx_compiled_release(program);
  EXPECT_EQ(all(), "") << "who names it wants it";
}

TEST_F(HostTest, log_is_silent_about_numbers_that_follow_from_sizes) {
  log_at(RLX_LOG_WARN);
  open();
  int64_t n = rlx_graph_dim(graph, "n", 0, 8);
  rlx_value_t x = rlx_graph_input(graph, "x", RLX_F32, &n, 1);
  rlx_graph_output(graph, "y", rlx_graph_reduce(graph, "mean", x, nullptr, 0, 0));
  rlx_compiled_t* program = nullptr;
  fine(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  rlx_compiled_release(program);
  EXPECT_EQ(all(), "");
}

TEST_F(HostTest, log_that_is_off_is_silent) {
  log_at(RLX_LOG_OFF);
  open();
  product(RLX_F64);
  rlx_compiled_t* program = nullptr;
  fine(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  rlx_compiled_release(program);
  EXPECT_EQ(all(), "");
}

// ---- progress ----

TEST_F(HostTest, progress_is_told_by_import_compile_and_params) {
  watch(-1, RLX_CB_OK);
  open();
  std::string bytes = onnx::Maker(13).input("x", 1, {"n", "3"}).node("Relu", {"x"}, {"y"}).output("y").bytes();
  rlx_graph_t* imported = nullptr;
  fine(rlx_import_memory(env, "onnx", bytes.data(), bytes.size(), nullptr, nullptr, nullptr, &imported, nullptr));
  rlx_graph_release(imported);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), "import");
  product(RLX_F32);
  rlx_weights_t* w = weights();
  rlx_compiled_t* program = nullptr;
  fine(rlx_compile(graph, w, nullptr, nullptr, &program));
  EXPECT_NE(std::find(told.begin(), told.end(), "compile"), told.end());
  EXPECT_EQ(told.back(), "prepare params");
  rlx_compiled_release(program);
  rlx_weights_release(w);
}

// At whichever call the host stops it: the status says so, and nothing is left behind.
TEST_F(HostTest, progress_stops_a_compile) {
  watch(-1, RLX_CB_OK);
  open();
  product(RLX_F32);
  rlx_weights_t* w = weights();
  rlx_compiled_t* program = nullptr;
  fine(rlx_compile(graph, w, nullptr, nullptr, &program));
  rlx_compiled_release(program);
  rlx_weights_release(w);
  int calls = seen;
  ASSERT_GT(calls, 3);
  for (auto [answer, code] :
       {std::pair<int32_t, rlx_code_t>(RLX_CB_STOP, RLX_E_CANCELLED), {0, RLX_E_CALLBACK}, {kThrows, RLX_E_CALLBACK}})
    for (int at = 0; at < calls; at++) {
      w = weights();
      seen = 0;
      stop_at = at;
      stop_with = answer;
      rlx_status_t* status = rlx_compile(graph, w, nullptr, nullptr, &program);
      EXPECT_EQ(rlx_status_code(status), code) << at << ": " << rlx_status_message(status);
      EXPECT_EQ(program, nullptr);
      rlx_status_release(status);
      for (const char* kind : {"arena", "prepared", "scratch"}) {
        int64_t now = -1;
        fine(rlx_env_stat(env, ("memory." + std::string(kind) + ".now").c_str(), &now));
        EXPECT_EQ(now, 0) << kind << " after call " << at;
      }
      rlx_weights_release(w);
    }
}

// An exception of the host is its own fault, whichever callback throws it.
TEST_F(HostTest, callbacks_that_throw_are_named) {
  host.log_level = RLX_LOG_TRACE;
  host.log = [](void*, int32_t, const char*, const char*) { throw 1; };
  rlx_env_t* none = nullptr;
  EXPECT_EQ(words(rlx_env_create(nullptr, &host, &none)),
            "RLX_E_CALLBACK: rlx_env_create: the host's log callback threw an exception");
  host.log = nullptr;
  host.alloc = [](void*, size_t, size_t, uint32_t) -> void* { throw 1; };
  host.dealloc = [](void*, void*, size_t, size_t, uint32_t) {};
  open();
  int64_t dim = 1 << 20;
  rlx_tensor_t* tensor = nullptr;
  EXPECT_EQ(words(rlx_tensor_create(env, nullptr, RLX_F32, &dim, 1, &tensor)),
            "RLX_E_CALLBACK: rlx_tensor_create: the host's alloc callback threw an exception");
}

// Also the one by which the library knows that its own memory has run out.
TEST_F(HostTest, a_callback_that_throws_bad_alloc_is_named) {
  host.log_level = RLX_LOG_TRACE;
  host.log = [](void*, int32_t, const char*, const char*) { throw std::bad_alloc(); };
  rlx_env_t* none = nullptr;
  EXPECT_EQ(words(rlx_env_create(nullptr, &host, &none)),
            "RLX_E_CALLBACK: rlx_env_create: the host's log callback threw an exception");
  host.log = nullptr;
  host.alloc = [](void*, size_t, size_t, uint32_t) -> void* { throw std::bad_alloc(); };
  host.dealloc = [](void*, void*, size_t, size_t, uint32_t) {};
  open();
  int64_t dim = 1 << 20;
  rlx_tensor_t* tensor = nullptr;
  EXPECT_EQ(words(rlx_tensor_create(env, nullptr, RLX_F32, &dim, 1, &tensor)),
            "RLX_E_CALLBACK: rlx_tensor_create: the host's alloc callback threw an exception");
}

TEST_F(HostTest, progress_stops_a_benchmark_at_any_point) {
  watch(-1, RLX_CB_OK);
  open();
  product(RLX_F32);
  rlx_weights_t* w = weights();
  int64_t dims[] = {2, 16};
  rlx_tensor_t* x = nullptr;
  fine(rlx_tensor_create(env, nullptr, RLX_F32, dims, 2, &x));
  for (int32_t answer : {int32_t{RLX_CB_STOP}, 7})
    for (int at = 0, end = 1; at < end; at++) {
      rlx_model_t* model = nullptr;
      rlx_blob_t* json = nullptr;
      fine(rlx_model_create(graph, w, nullptr, &model));
      seen = 0, stop_at = end == 1 ? -1 : at, stop_with = answer;
      rlx_code_t code = rlx_status_take(rlx_model_benchmark(model, nullptr, &x, 1, 2, &json), nullptr, 0);
      if (end == 1)
        EXPECT_EQ(code, RLX_OK), end = seen, at = -1;
      else
        EXPECT_EQ(code, answer == 7 ? RLX_E_CALLBACK : RLX_E_CANCELLED) << at << " of " << end;
      rlx_blob_release(json);
      rlx_model_release(model);
    }
  rlx_tensor_release(x);
  rlx_weights_release(w);
}

// An allocator that throws while a param is prepared leaves the weights as they were.
TEST_F(HostTest, weights_that_were_replaced_go_back_after_a_callback_threw) {
  static bool throws;
  static int returned;
  throws = false, returned = 0;
  host.alloc = [](void*, size_t size, size_t align, uint32_t kind) -> void* {
    if (throws && kind == RLX_MEM_PREPARED) throw 1;
    return std::aligned_alloc(align, (size + align - 1) / align * align);
  };
  host.dealloc = [](void*, void* data, size_t, size_t, uint32_t) { std::free(data); };
  open();
  product(RLX_F32);
  static float bytes[16 * 16];
  int64_t dims[] = {16, 16};
  rlx_weights_t* w = nullptr;
  fine(rlx_weights_create(env, &w));
  auto put = [&] {
    rlx_tensor_t* tensor = nullptr;
    fine(rlx_tensor_wrap(
        env, RLX_F32, dims, 2, bytes, sizeof bytes, [](void*, void*) { returned++; }, nullptr, &tensor));
    fine(rlx_weights_put(w, "w", tensor));
    rlx_tensor_release(tensor);
  };
  put();
  throws = true;
  rlx_compiled_t* program = nullptr;
  EXPECT_EQ(rlx_status_take(rlx_compile(graph, w, nullptr, nullptr, &program), nullptr, 0), RLX_E_CALLBACK);
  throws = false;
  put();
  EXPECT_EQ(returned, 1);
  put();
  EXPECT_EQ(returned, 2);
  rlx_weights_release(w);
}

TEST_F(HostTest, progress_stops_an_import_and_a_param) {
  watch(-1, RLX_CB_OK);
  open();
  stop_at = 0;
  stop_with = RLX_CB_STOP;
  static int freed;
  freed = 0;
  std::string bytes = onnx::Maker(13).input("x", 1, {"n", "3"}).node("Relu", {"x"}, {"y"}).output("y").bytes();
  rlx_graph_t* imported = nullptr;
  rlx_status_t* status = rlx_import_memory(
      env, "onnx", bytes.data(), bytes.size(), [](void*, void*) { freed++; }, nullptr, nullptr, &imported, nullptr);
  EXPECT_EQ(rlx_status_code(status), RLX_E_CANCELLED);
  EXPECT_EQ(imported, nullptr);
  EXPECT_EQ(freed, 0) << "the bytes are still the caller's";
  rlx_status_release(status);

  stop_at = -1;
  product(RLX_F32);
  rlx_weights_t* w = weights();
  rlx_compiled_t* program = nullptr;
  fine(rlx_compile(graph, w, nullptr, nullptr, &program));
  rlx_tensor_t *one = tensor(RLX_F32, {16, 16}), *x = tensor(RLX_F32, {1, 16}), *y = nullptr;
  std::vector<float> ones(256, 1);
  fine(rlx_tensor_write(one, 0, ones.data(), 1024));
  fine(rlx_tensor_write(x, 0, ones.data(), 64));
  seen = stop_at = 0;
  status = rlx_compiled_set_param(program, "w", one);
  EXPECT_EQ(rlx_status_code(status), RLX_E_CANCELLED) << rlx_status_message(status);
  rlx_status_release(status);
  stop_at = -1;
  fine(rlx_compiled_run(program, nullptr, &x, 1, nullptr, &y, 1));
  EXPECT_EQ(*static_cast<float*>(rlx_tensor_data(y)), 0) << "the old param is still there";
  rlx_tensor_release(y);
  fine(rlx_compiled_set_param(program, "w", one));
  fine(rlx_compiled_run(program, nullptr, &x, 1, nullptr, &y, 1));
  EXPECT_EQ(*static_cast<float*>(rlx_tensor_data(y)), 16);
  for (rlx_tensor_t* it : {one, x, y}) rlx_tensor_release(it);
  rlx_compiled_release(program);
  rlx_weights_release(w);
}

// ---- threads of the host ----

TEST_F(HostTest, work_on_a_thread_of_the_host_asks_it_for_no_more) {
  static std::atomic<int> shared, index;
  shared = 0;
  host.thread_count = [](void*) { return 4u; };
  host.thread_index = [](void*) { return static_cast<uint32_t>(index.load()); };
  host.parallel_for = [](void*, size_t n, void (*fn)(void*, size_t), void* arg) {
    shared++;
    for (size_t i = 0; i < n; i++) fn(arg, i);
  };
  index = -1;  // UINT32_MAX: none of them
  open("");
  int64_t dims[] = {int64_t{1} << 20};
  rlx_value_t x = rlx_graph_input(graph, "x", RLX_F32, dims, 1);
  rlx_graph_output(graph, "y", rlx_graph_unary(graph, "exp", x));
  rlx_compiled_t* program = nullptr;
  fine(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  rlx_tensor_t *in = tensor(RLX_F32, {1 << 20}), *out = nullptr;
  fine(rlx_compiled_run(program, nullptr, &in, 1, nullptr, &out, 1));
  EXPECT_GT(shared.exchange(0), 0);
  rlx_tensor_release(out);
  index = 2;
  fine(rlx_compiled_run(program, nullptr, &in, 1, nullptr, &out, 1));
  EXPECT_EQ(shared, 0);
  rlx_tensor_release(out);
  rlx_tensor_release(in);
  rlx_compiled_release(program);
}

// ---- other sizes of the struct ----

// The one of version 0.1 ended before `progress`; what lies behind it is not read.
TEST_F(HostTest, the_struct_of_version_0_1_is_accepted) {
  watch(0, RLX_CB_STOP);
  host.struct_size = offsetof(rlx_host_t, progress);
  open();
  product(RLX_F32);
  rlx_compiled_t* program = nullptr;
  fine(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  rlx_compiled_release(program);
  EXPECT_EQ(seen, 0);
}

TEST_F(HostTest, a_struct_that_ends_inside_a_member_has_not_got_it_all) {
  host.struct_size = offsetof(rlx_host_t, progress) - 1;
  rlx_status_t* status = rlx_env_create(nullptr, &host, &env);
  EXPECT_EQ(rlx_status_code(status), RLX_E_VERSION);
  EXPECT_NE(std::string(rlx_status_message(status)).find("rlx_host_init"), std::string::npos);
  rlx_status_release(status);
}

// Names may have any characters.
TEST_F(HostTest, messages_of_the_log_are_one_line) {
  log_at(RLX_LOG_TRACE);
  open();
  rlx_graph_t* named = nullptr;
  fine(rlx_graph_create(env, "two\nlines\r", &named));
  std::swap(graph, named);
  product(RLX_F32);
  rlx_compiled_t* program = nullptr;
  fine(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  rlx_compiled_release(program);
  rlx_graph_release(named);
  bool is_named = false;
  for (const auto& line : lines) {
    EXPECT_EQ(line.message.find_first_of("\n\r"), std::string::npos) << line.message;
    is_named |= line.message.find("two\\nlines\\x0d") != std::string::npos;
  }
  EXPECT_TRUE(is_named);
}

// ---- the default device ----

TEST_F(HostTest, the_first_device_is_the_default_one) {
  ASSERT_EQ(setenv("RLXFIRST_DEVICE", "reference", 1), 0);
  open("env.prefix=RLXFIRST");
  unsetenv("RLXFIRST_DEVICE");
  EXPECT_STREQ(rlx_device_name(rlx_env_device(env, 0)), "reference");
  EXPECT_STREQ(rlx_device_name(rlx_env_device(env, 1)), "cpu");
  const rlx_device_t* usual = nullptr;
  fine(rlx_env_find_device(env, nullptr, &usual));
  EXPECT_EQ(usual, rlx_env_device(env, 0));
}

}  // namespace
}  // namespace rlx
