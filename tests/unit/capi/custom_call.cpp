// SPDX-License-Identifier: Apache-2.0
// What a call lends its callback: tensors and threads.
#include <functional>
#include <numeric>
#include <thread>

#include "custom.h"

namespace rlx::custom_ops {
namespace {

std::string code_of(rlx_status_t* status) {
  std::string text = words(status);
  return text.substr(0, text.find(':'));
}

// What a test tells its callbacks, which are plain functions.
struct Shared {
  rlx_env_t* env = nullptr;
  rlx_tensor_t *in = nullptr, *out = nullptr, *of_infer = nullptr;
  std::function<void()> give_back;
  rlx_env_t* last = nullptr;
  std::atomic<int> calls{0};
  std::atomic<bool> is_alone{false};  // the test has released all that it holds
  std::vector<std::atomic<int>> touched = std::vector<std::atomic<int>>(3000);
};
Shared* shared = nullptr;

class CustomCallTest : public CustomOpTest {
 protected:
  void SetUp() override {
    CustomOpTest::SetUp();
    shared = &own_;
    own_.env = env;
  }
  // In a fresh environment.
  void start(const char* env_options, const rlx_host_t* host = nullptr) {
    rlx_graph_release(std::exchange(graph, nullptr));
    rlx_env_release(std::exchange(env, nullptr));
    rlx_attrs_t* options = nullptr;
    OK(rlx_attrs_create(env_options, &options));
    OK(rlx_env_create(options, host, &env));
    rlx_attrs_release(options);
    OK(rlx_graph_create(env, "test", &graph));
  }
  void use(Behaviour& does) {
    ASSERT_EQ(add("it", does), "");
    rlx_graph_output(graph, "y", op("custom name=it", {vector_input()}));
    ASSERT_EQ(failure(), "");
  }

 private:
  Shared own_;
};

// ---- tensors ----

TEST_F(CustomCallTest, tensors_of_a_run_are_host_tensors) {
  Behaviour does{shape_of_input, [](rlx_opcall_t* call) -> int32_t {
                   rlx_tensor_t *x = rlx_opcall_tensor(call, RLX_INPUT, 0), *y = rlx_opcall_tensor(call, RLX_OUTPUT, 0);
                   int64_t n = 0;
                   EXPECT_EQ(rlx_tensor_shape(x, &n, 1), 1u);
                   EXPECT_EQ(n, 3);
                   EXPECT_EQ(rlx_tensor_dtype(x), RLX_F32);
                   EXPECT_EQ(rlx_tensor_bytes(y), 12u);
                   EXPECT_EQ(rlx_tensor_device(x), nullptr);
                   float numbers[3] = {};
                   EXPECT_EQ(words(rlx_tensor_read(x, 0, numbers, sizeof numbers)), "");
                   EXPECT_EQ(words(rlx_tensor_copy(y, 4, x, 0, 8)), "");
                   EXPECT_EQ(words(rlx_tensor_write(y, 0, numbers + 2, 4)), "");
                   EXPECT_EQ(words(rlx_tensor_write(x, 0, numbers, 4)),
                             "RLX_E_STATE: the tensor f32[3] cannot be written, it is an input of a custom op");
                   EXPECT_EQ(code_of(rlx_tensor_copy(x, 0, y, 0, 4)), "RLX_E_STATE");
                   EXPECT_EQ(code_of(rlx_tensor_read(x, 8, numbers, 8)), "RLX_E_RANGE");
                   rlx_tensor_t* wide = nullptr;
                   EXPECT_EQ(words(rlx_tensor_cast(x, RLX_F64, &wide)), "");
                   EXPECT_EQ(static_cast<const double*>(rlx_tensor_data(wide))[1], numbers[1]);
                   rlx_tensor_release(wide);
                   rlx_blob_t* text = nullptr;
                   EXPECT_EQ(words(rlx_tensor_print(x, 3, &text)), "");
                   EXPECT_STREQ(static_cast<const char*>(rlx_blob_data(text)), "f32[3]\n1 2 3\n");
                   rlx_blob_release(text);
                   return RLX_CB_OK;
                 }};
  use(does);
  for (const char* device : {"cpu", "reference"}) EXPECT_EQ(run(graph, {1, 2, 3}, device), (Floats{3, 1, 2})) << failed;
}

void expect_no_bytes(rlx_tensor_t* tensor) {
  float number = 0;
  rlx_tensor_t* cast = nullptr;
  rlx_blob_t* text = nullptr;
  EXPECT_EQ(rlx_tensor_dtype(tensor), RLX_F32);
  EXPECT_EQ(rlx_tensor_shape(tensor, nullptr, 0), 1u);
  EXPECT_EQ(rlx_tensor_bytes(tensor), 0u);
  EXPECT_EQ(rlx_tensor_data(tensor), nullptr);
  EXPECT_EQ(words(rlx_tensor_read(tensor, 0, &number, 4)),
            "RLX_E_STATE: a tensor of a custom op has bytes only while its `run` is called");
  EXPECT_EQ(code_of(rlx_tensor_write(tensor, 0, &number, 4)), "RLX_E_STATE");
  EXPECT_EQ(code_of(rlx_tensor_copy(tensor, 0, tensor, 0, 4)), "RLX_E_STATE");
  EXPECT_EQ(code_of(rlx_tensor_cast(tensor, RLX_F64, &cast)), "RLX_E_STATE");
  EXPECT_EQ(code_of(rlx_tensor_print(tensor, 1, &text)), "RLX_E_STATE");
}

TEST_F(CustomCallTest, tensors_of_infer_have_no_bytes) {
  Behaviour does{[](rlx_opcall_t* call) -> int32_t {
                   expect_no_bytes(rlx_opcall_tensor(call, RLX_INPUT, 0));
                   int64_t n = 0;
                   (void)rlx_tensor_shape(rlx_opcall_tensor(call, RLX_INPUT, 0), &n, 1);
                   EXPECT_LT(n, -(int64_t{1} << 48)) << "a token";
                   int64_t seven = 7;
                   EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, RLX_F32, &seven, 1)), "");
                   rlx_tensor_t* first = rlx_opcall_tensor(call, RLX_OUTPUT, 0);
                   EXPECT_EQ(shape_of_input(call), RLX_CB_OK);
                   rlx_tensor_t* second = rlx_opcall_tensor(call, RLX_OUTPUT, 0);
                   EXPECT_NE(first, second);
                   (void)rlx_tensor_shape(first, &n, 1);
                   EXPECT_EQ(n, 7) << "what was replaced lives as long as the callback runs";
                   expect_no_bytes(second);
                   return RLX_CB_OK;
                 },
                 scale};
  use(does);
}

TEST_F(CustomCallTest, what_is_kept_past_the_callback_has_no_bytes) {
  Behaviour does{[](rlx_opcall_t* call) -> int32_t {
                   rlx_tensor_t* x = rlx_opcall_tensor(call, RLX_INPUT, 0);
                   rlx_tensor_release(std::exchange(shared->of_infer, rlx_tensor_retain(x)));
                   return shape_of_input(call);
                 },
                 [](rlx_opcall_t* call) -> int32_t {
                   shared->in = rlx_tensor_retain(rlx_opcall_tensor(call, RLX_INPUT, 0));
                   shared->out = rlx_tensor_retain(rlx_opcall_tensor(call, RLX_OUTPUT, 0));
                   return scale(call);
                 }};
  use(does);
  EXPECT_EQ(run(graph, {1, 2, 3}), (Floats{10, 20, 30}));
  for (rlx_tensor_t* kept : {shared->in, shared->out, shared->of_infer}) expect_no_bytes(kept);
  int64_t n = 0;
  (void)rlx_tensor_shape(shared->in, &n, 1);
  EXPECT_EQ(n, 3);
  rlx_graph_release(std::exchange(graph, nullptr));
  rlx_env_release(std::exchange(env, nullptr));
  EXPECT_EQ(*does.destroyed, 1) << "kept tensors keep neither the op nor the environment";
  for (rlx_tensor_t* kept : {shared->in, shared->out, shared->of_infer}) {
    expect_no_bytes(kept);
    rlx_tensor_release(rlx_tensor_retain(kept));
    rlx_tensor_release(kept);
  }
}

// Whatever keeps a tensor would read it after the callback.
TEST_F(CustomCallTest, the_library_keeps_no_tensor_of_a_call) {
  Behaviour does{shape_of_input, [](rlx_opcall_t* call) -> int32_t {
                   for (int32_t kind : {RLX_INPUT, RLX_OUTPUT}) {
                     rlx_tensor_t *x = rlx_opcall_tensor(call, kind, 0), *y = nullptr;
                     const std::string why = "RLX_E_STATE: 'tensor' is lent to a callback of a custom op: make a copy";
                     rlx_weights_t* weights = nullptr;
                     EXPECT_EQ(words(rlx_weights_create(shared->env, &weights)), "");
                     EXPECT_EQ(words(rlx_weights_put(weights, "w", x)), why);
                     rlx_weights_release(weights);

                     rlx_graph_t* inner = nullptr;
                     EXPECT_EQ(words(rlx_graph_create(shared->env, "inner", &inner)), "");
                     const int64_t two = 2;
                     rlx_value_t a = rlx_graph_input(inner, "a", RLX_F32, &two, 1);
                     rlx_graph_output(inner, "b", rlx_graph_binary(inner, "add", a, a));
                     rlx_compiled_t* program = nullptr;
                     rlx_exec_t* exec = nullptr;
                     EXPECT_EQ(words(rlx_compile(inner, nullptr, nullptr, nullptr, &program)), "");
                     EXPECT_EQ(words(rlx_exec_create(program, nullptr, &exec)), "");
                     EXPECT_EQ(words(rlx_exec_bind(exec, kind, 0, x)), why);
                     EXPECT_EQ(code_of(rlx_compiled_run(program, nullptr, &x, 1, nullptr, &y, 1)), "RLX_E_STATE");
                     EXPECT_EQ(code_of(rlx_compiled_set_param(program, "w", x)), "RLX_E_STATE");
                     rlx_exec_release(exec);
                     rlx_compiled_release(program);

                     rlx_model_t* model = nullptr;
                     EXPECT_EQ(words(rlx_model_create(inner, nullptr, nullptr, &model)), "");
                     EXPECT_EQ(code_of(rlx_model_set_param(model, "w", x)), "RLX_E_STATE");
                     rlx_model_release(model);
                     EXPECT_EQ(rlx_graph_tensor(inner, x), 0u);
                     EXPECT_EQ(words(rlx_graph_status(inner)), why);
                     rlx_graph_release(inner);
                     rlx_attrs_t* attrs = nullptr;
                     EXPECT_EQ(words(rlx_attrs_create(nullptr, &attrs)), "");
                     rlx_attrs_set_tensor(attrs, "value", x);
                     EXPECT_EQ(code_of(rlx_env_create(attrs, nullptr, &shared->env)), "RLX_E_STATE");
                     rlx_attrs_release(attrs);
                     shared->env = nullptr;
                     if (kind == RLX_INPUT) return scale(call);
                   }
                   return RLX_CB_OK;
                 }};
  use(does);
  EXPECT_EQ(run(graph, {1, 2}), (Floats{10, 20})) << failed;
}

// The environment waits for the run, and the run makes a tensor in it.
TEST_F(CustomCallTest, the_last_release_waits_for_a_call) {
  Behaviour does{shape_of_input, [](rlx_opcall_t* call) -> int32_t {
                   std::this_thread::sleep_for(std::chrono::milliseconds(50));
                   for (int i = 0; i < 3; i++) {
                     rlx_tensor_t* wide = nullptr;
                     EXPECT_EQ(words(rlx_tensor_cast(rlx_opcall_tensor(call, RLX_INPUT, 0), RLX_F64, &wide)), "");
                     rlx_tensor_release(wide);
                   }
                   shared->calls++;
                   return scale(call);
                 }};
  use(does);
  rlx_compiled_t* program = nullptr;
  rlx_exec_t* exec = nullptr;
  rlx_fence_t* done = nullptr;
  OK(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  OK(rlx_exec_create(program, nullptr, &exec));
  OK(rlx_exec_submit(exec, nullptr, 0, &done));
  rlx_exec_release(exec);
  rlx_compiled_release(program);
  rlx_fence_release(done);
  rlx_graph_release(std::exchange(graph, nullptr));
  rlx_env_release(std::exchange(env, nullptr));
  EXPECT_EQ(shared->calls, 1);
  EXPECT_EQ(*does.destroyed, 1);
}

// The environment is gone, and what it has lent is still there.
void use_what_is_left(rlx_opcall_t* call) {
  rlx_tensor_t *x = rlx_opcall_tensor(call, RLX_INPUT, 0), *made = nullptr;
  rlx_blob_t* text = nullptr;
  EXPECT_EQ(code_of(rlx_tensor_cast(x, RLX_F64, &made)), "RLX_E_STATE");
  EXPECT_EQ(words(rlx_tensor_print(x, 1, &text)), "");
  rlx_blob_release(text);
}

// Nobody who does a part of a run can wait for its end: neither the thread that began it, nor one that helps it.
TEST_F(CustomCallTest, a_call_may_give_everything_back) {
  static constexpr size_t kParts = 64;
  Behaviour on_its_thread{shape_of_input, [](rlx_opcall_t* call) -> int32_t {
                            shared->give_back();
                            use_what_is_left(call);
                            return scale(call);
                          }};
  Behaviour where_it_helps{shape_of_input, [](rlx_opcall_t* call) -> int32_t {
                             auto part = [](void*, size_t i) {
                               std::this_thread::sleep_for(std::chrono::milliseconds(1));
                               if (i == kParts - 1) shared->give_back();
                             };
                             rlx_opcall_parallel_for(call, kParts, part, nullptr);
                             use_what_is_left(call);
                             return scale(call);
                           }};
  for (Behaviour* does : {&on_its_thread, &where_it_helps})
    for (const char* threads : {"threads=0", "threads=1", "threads=4"}) {
      start(threads);
      use(*does);
      int destroyed = *does->destroyed;
      rlx_compiled_t* program = nullptr;
      rlx_exec_t* exec = nullptr;
      rlx_fence_t *begin = nullptr, *done = nullptr;
      OK(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
      OK(rlx_exec_create(program, nullptr, &exec));
      OK(rlx_fence_create(env, &begin));
      OK(rlx_exec_submit(exec, &begin, 1, &done));
      rlx_exec_release(exec);
      rlx_compiled_release(program);
      rlx_graph_release(std::exchange(graph, nullptr));
      shared->is_alone = false;
      shared->give_back = [done] {
        while (!shared->is_alone) std::this_thread::yield();
        rlx_fence_release(done);
        rlx_env_release(std::exchange(shared->last, nullptr));
      };
      shared->last = std::exchange(env, nullptr);
      OK(rlx_fence_signal(begin, nullptr));
      rlx_fence_release(begin);
      shared->is_alone = true;
      if (threads == std::string("threads=0")) {
        OK(rlx_fence_wait(&done, 1, 1, UINT64_MAX, nullptr));
      }
      for (int i = 0; *does->destroyed == destroyed && i < 10000; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(*does->destroyed, destroyed + 1) << threads;
    }
}

TEST_F(CustomCallTest, several_threads_run_one_program) {
  Behaviour does{shape_of_input, scale};
  use(does);
  rlx_model_t* model = nullptr;
  OK(rlx_model_create(graph, nullptr, nullptr, &model));
  auto work = [&](float first) {
    for (int i = 0; i < 50; i++) {
      const int64_t n = 2;
      const float x[] = {first, static_cast<float>(i)};
      rlx_tensor_t *in = nullptr, *out = nullptr;
      EXPECT_EQ(words(rlx_tensor_copy_from(env, RLX_F32, &n, 1, x, sizeof x, &in)), "");
      EXPECT_EQ(words(rlx_model_run(model, nullptr, nullptr, &in, 1, nullptr, &out, 1, nullptr)), "");
      auto* y = static_cast<const float*>(rlx_tensor_data(out));
      EXPECT_TRUE(y && y[0] == 10 * first && y[1] == 10 * static_cast<float>(i));
      rlx_tensor_release(in);
      rlx_tensor_release(out);
    }
  };
  std::thread other(work, 3.0f);
  work(4);
  other.join();
  EXPECT_EQ(does.runs, 100);
  rlx_model_release(model);
}

// ---- threads ----

void touch(void*, size_t i) {
  shared->touched[i]++;
}

void expect_touched(size_t n, int times) {
  for (size_t i = 0; i < shared->touched.size(); i++) EXPECT_EQ(shared->touched[i], i < n ? times : 0) << i;
  for (auto& count : shared->touched) count = 0;
}

int32_t share_out(rlx_opcall_t* call) {
  for (size_t n : {0, 1, 7, 3000}) {
    rlx_opcall_parallel_for(call, n, touch, nullptr);
    expect_touched(n, 1);
  }
  auto nested = [](void* arg, size_t) {
    rlx_opcall_parallel_for(static_cast<rlx_opcall_t*>(arg), 100, touch, nullptr);
  };
  rlx_opcall_parallel_for(call, 16, nested, call);
  expect_touched(100, 16);
  return RLX_CB_OK;
}

int32_t infer_in_parallel(rlx_opcall_t* call) {
  share_out(call);
  return shape_of_input(call);
}

int32_t run_in_parallel(rlx_opcall_t* call) {
  share_out(call);
  return scale(call);
}

// Beside products that are large enough for a team of threads.
constexpr const char* kCompany = R"(graph (n) {
  x = input f32[n]
  rows = broadcast_to(x) shape=[512,n]
  columns = transpose(rows) perm=[1,0]
  p = matmul(rows, columns)
  one = reduce(p) axes=[1] fn=max
  y = custom(one) name="it" effects=true
  wide = broadcast_to(y) shape=[512,512]
  q = matmul(p, wide)
  z = reduce(q) axes=[0] fn=max
  output z
})";

rlx_host_t host_pool() {
  rlx_host_t host;
  rlx_host_init(&host, sizeof host);
  host.thread_count = [](void*) -> uint32_t { return 3; };
  host.parallel_for = [](void*, size_t n, void (*fn)(void*, size_t), void* arg) {
    static std::atomic<int> inside{0};
    EXPECT_EQ(inside++, 0) << "this pool would wait for itself";
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n; i++) threads.emplace_back(fn, arg, i);
    for (std::thread& thread : threads) thread.join();
    inside--;
  };
  return host;
}

TEST_F(CustomCallTest, work_is_shared_out) {
  const rlx_host_t pool = host_pool();
  for (const char* threads : {"threads=2", "threads=1", "threads=0", "host"}) {
    bool is_host = std::string(threads) == "host";
    start(is_host ? nullptr : threads, is_host ? &pool : nullptr);
    Behaviour does{infer_in_parallel, run_in_parallel};
    use(does);
    EXPECT_EQ(run(graph, {1, 2}), (Floats{10, 20})) << threads << ": " << failed;
    rlx_graph_t* company = read(kCompany);
    ASSERT_EQ(failed, "");
    EXPECT_EQ(run(company, Floats(256, 1)).size(), 512u) << threads << ": " << failed;
    EXPECT_EQ(does.runs, 2) << threads;
    rlx_graph_release(company);
  }
}

TEST_F(CustomCallTest, two_runs_share_the_threads) {
  Behaviour does{shape_of_input, [](rlx_opcall_t* call) -> int32_t {
                   std::vector<std::atomic<int>> own(500);
                   auto count = [](void* arg, size_t i) { (*static_cast<std::vector<std::atomic<int>>*>(arg))[i]++; };
                   for (int turn = 1; turn <= 20; turn++) {
                     rlx_opcall_parallel_for(call, own.size(), count, &own);
                     for (auto& it : own) EXPECT_EQ(it, turn);
                   }
                   return scale(call);
                 }};
  use(does);
  rlx_graph_t* company = read(kCompany);
  ASSERT_EQ(failed, "");
  rlx_model_t* model = nullptr;
  OK(rlx_model_create(company, nullptr, nullptr, &model));
  auto work = [&] {
    for (int i = 0; i < 5; i++) {
      const int64_t n = 256;
      rlx_tensor_t *in = nullptr, *out = nullptr;
      EXPECT_EQ(words(rlx_tensor_create(env, nullptr, RLX_F32, &n, 1, &in)), "");
      EXPECT_EQ(words(rlx_model_run(model, nullptr, nullptr, &in, 1, nullptr, &out, 1, nullptr)), "");
      rlx_tensor_release(in);
      rlx_tensor_release(out);
    }
  };
  std::thread other(work);
  work();
  other.join();
  rlx_model_release(model);
  rlx_graph_release(company);
}

TEST_F(CustomCallTest, work_that_fails_or_throws_fails_the_call) {
  struct Case {
    int32_t (*run)(rlx_opcall_t* call);
    const char* says;
  };
  const Case cases[] = {
      {[](rlx_opcall_t* call) -> int32_t {
         rlx_opcall_parallel_for(
             call, 100, [](void*, size_t) { throw std::runtime_error("no luck"); }, nullptr);
         return RLX_CB_OK;
       },
       "RLX_E_CALLBACK: 'it': run: rlx_opcall_parallel_for: unexpected exception: no luck"},
      {[](rlx_opcall_t* call) -> int32_t {
         rlx_opcall_parallel_for(
             call, 100, [](void*, size_t) { throw std::bad_alloc(); }, nullptr);
         return RLX_CB_OK;
       },
       "RLX_E_CALLBACK: 'it': run: rlx_opcall_parallel_for: the host's fn callback threw an exception"},
      {[](rlx_opcall_t*) -> int32_t { throw std::bad_alloc(); },
       "RLX_E_CALLBACK: 'it': run: unexpected exception: std::bad_alloc"},
      {[](rlx_opcall_t* call) -> int32_t {
         auto fails = [](void* arg, size_t) {
           (void)rlx_opcall_fail(static_cast<rlx_opcall_t*>(arg), RLX_E_IO, "the plug is out");
         };
         rlx_opcall_parallel_for(call, 100, fails, call);
         return RLX_CB_OK;
       },
       "RLX_E_IO: 'it': run: the plug is out"},
      {[](rlx_opcall_t* call) -> int32_t {
         rlx_opcall_parallel_for(call, 0, nullptr, nullptr);
         return RLX_CB_OK;
       },
       "RLX_E_INVALID_ARGUMENT: 'it': run: rlx_opcall_parallel_for: 'fn' is NULL"},
      {[](rlx_opcall_t* call) -> int32_t {
         rlx_opcall_parallel_for(
             call, SIZE_MAX, [](void*, size_t) { FAIL(); }, nullptr);
         return RLX_CB_OK;
       },
       "RLX_E_INVALID_ARGUMENT: 'it': run: rlx_opcall_parallel_for: n is 18446744073709551615"},
  };
  Behaviour does{shape_of_input, nullptr};
  use(does);
  for (const Case& each : cases) {
    does.run = each.run;
    run(graph, {1, 2});
    EXPECT_NE(failed.find(each.says), failed.npos) << failed;
  }
}

}  // namespace
}  // namespace rlx::custom_ops
