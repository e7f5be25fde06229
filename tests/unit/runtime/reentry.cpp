// SPDX-License-Identifier: Apache-2.0
// The host's callbacks may call the library again: no lock is held while they run.
#include <atomic>
#include <climits>
#include <thread>

#include "runtime/model.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

namespace {

Graph scaled() {  // y = x * w
  Graph graph;
  EXPECT_TRUE(graph.declare_symbol("n", {0, 1 << 20}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {Dim::symbol("n")});
  Expr w = b.wrap(*graph.add_param("w", DType::kF32, {Dim(1)}));
  output(b, "y", x * exp(w));
  return graph;
}

// Called once from each kind of callback.
struct Caller {
  std::shared_ptr<Model> model;
  std::atomic<bool> is_inside{false};
  std::atomic<int> calls{0};

  void call() {
    if (!model || is_inside.exchange(true)) return;
    Tensor x = noise({3});
    EXPECT_TRUE(model->run("", {}, {&x, 1}, {}, 1).ok());
    EXPECT_TRUE(model->set_param("w", noise({1}, 9)).ok());
    calls++;
    is_inside = false;
  }
};

HostServices services_of(Caller& host) {
  HostServices services;
  services.user = &host;
  services.thread_count = [](void*) -> uint32_t { return 2; };
  services.parallel_for = [](void* user, size_t n, void (*fn)(void*, size_t), void* arg) {
    static_cast<Caller*>(user)->call();
    for (size_t i = 0; i < n; i++) fn(arg, i);
  };
  services.alloc = [](void* user, size_t size, size_t align, uint32_t) -> void* {
    static_cast<Caller*>(user)->call();
    return ::operator new (size ? size : 1, std::align_val_t{align});
  };
  services.dealloc = [](void* user, void* data, size_t, size_t align, uint32_t) {
    static_cast<Caller*>(user)->call();
    ::operator delete (data, std::align_val_t{align});
  };
  return services;
}

}  // namespace

TEST(reentry, models_run_and_change_inside_the_callbacks_of_models) {
  Caller host;
  auto env = *Env::create({}, services_of(host));
  auto model = *Model::create(env, scaled(), nullptr, {});
  ASSERT_TRUE(model->set_param("w", noise({1})).ok());
  host.model = model;
  for (int64_t n : {5, 70000, 200000}) {  // each makes a plan
    Tensor x = noise({n});
    auto ran = model->run("", {}, {&x, 1}, {}, 1);
    ASSERT_TRUE(ran.ok()) << ran.status().message();
  }
  ASSERT_TRUE(model->set_param("w", noise({1}, 3)).ok());
  ASSERT_TRUE(model->set_policy(nullptr).ok());
  EXPECT_GT(host.calls, 3);
  host.model = nullptr;
}

TEST(reentry, what_a_failed_run_made_goes_back_without_a_lock) {
  struct Host : Caller {
    std::atomic<int> left{INT_MAX};  // the allocation of this number fails
  };
  bool ran_out = true;
  for (int nth = 1; ran_out; nth++) {
    Host host;
    HostServices services;
    services.user = &host;
    services.alloc = [](void* user, size_t size, size_t align, uint32_t) -> void* {
      if (--static_cast<Host*>(user)->left == 0) return nullptr;
      return ::operator new (size ? size : 1, std::align_val_t{align});
    };
    services.dealloc = [](void* user, void* data, size_t, size_t align, uint32_t) {
      auto* host = static_cast<Host*>(user);
      if (host->model && !host->is_inside.exchange(true)) {
        Status set = host->model->set_param("w", noise({1}, 9));  // takes the lock of the model
        EXPECT_TRUE(set.ok() || set.code() == Code::kNoMemory) << set.message();
        host->is_inside = false;
      }
      ::operator delete (data, std::align_val_t{align});
    };
    auto model = *Model::create(*Env::create({.threads = 1, .kept_memory = 0}, services), scaled(), nullptr, {});
    ASSERT_TRUE(model->set_param("w", noise({1})).ok());
    host.model = model;
    host.left = nth;
    Tensor x = noise({3});
    auto ran = model->run("", {}, {&x, 1}, {}, 1);
    ran_out = host.left <= 0;
    EXPECT_TRUE(ran.ok() || ran.status().code() == Code::kNoMemory) << ran.status().message();
    EXPECT_TRUE(ran_out || ran.ok());
    host.left = INT_MAX;
    EXPECT_TRUE(model->run("", {}, {&x, 1}, {}, 1).ok());
    host.model = nullptr;
  }
}

// A param is set while a second device is made ready, and then the host throws. Only whole devices stay.
TEST(reentry, a_device_that_could_not_be_caught_up_is_forgotten) {
  struct Host {
    std::shared_ptr<Model> model;
    int prepared = 0, sets_at = -1, throws_at = -1;
  } host;
  HostServices services;
  services.user = &host;
  services.progress = [](void* user, const char* what, double) -> int32_t {
    auto* host = static_cast<Host*>(user);
    if (what != std::string_view("prepare params")) return kCallbackOk;
    int now = host->prepared++;
    if (now == host->throws_at) throw 1;
    if (now == host->sets_at) {
      EXPECT_TRUE(host->model->set_param("w", noise({1}, 9)).ok());
    }
    return kCallbackOk;
  };
  host.model = *Model::create(*Env::create({.threads = 1}, services), scaled(), nullptr, {});
  Tensor x = noise({3});
  auto runs_on = [&](std::string_view device) { return host.model->run(device, {}, {&x, 1}, {}, 1).ok(); };
  ASSERT_TRUE(host.model->set_param("w", noise({1})).ok());
  ASSERT_TRUE(runs_on("cpu"));
  host.sets_at = host.prepared;        // the params of the second device
  host.throws_at = host.prepared + 2;  // after those of the first one, which are set meanwhile
  EXPECT_ANY_THROW(runs_on("reference"));
  host.sets_at = host.throws_at = -1;
  EXPECT_TRUE(runs_on("reference"));
  host.prepared = 0;
  ASSERT_TRUE(host.model->set_param("w", noise({1}, 5)).ok());
  EXPECT_EQ(host.prepared, 2) << "one value on each of two devices";
  host.model = nullptr;
}

TEST(reentry, bytes_that_are_replaced_go_back_without_a_lock) {
  int done = 0;  // outlives the model, which gives back the last one
  auto env = env_with(1);
  auto model = *Model::create(env, scaled(), nullptr, {});
  auto param = [&](float value) {
    auto* number = new float(value);
    std::shared_ptr<std::byte> data(reinterpret_cast<std::byte*>(number), [&, number](std::byte*) {
      Tensor x = noise({3});
      EXPECT_TRUE(done++ > 0 || model->run("", {}, {&x, 1}, {}, 1).ok());
      delete number;
    });
    return *Tensor::adopt(DType::kF32, std::array<int64_t, 1>{1}, data, 4);
  };
  ASSERT_TRUE(model->set_param("w", param(1)).ok());
  Tensor x = noise({3});
  ASSERT_TRUE(model->run("", {}, {&x, 1}, {}, 1).ok());
  ASSERT_TRUE(model->set_param("w", param(2)).ok());
  Weights weights;
  ASSERT_TRUE(weights.put("w", param(3)).ok());
  ASSERT_TRUE(weights.put("w", param(4)).ok());
  EXPECT_GE(done, 1);
}

// A param that no program has yet.
TEST(reentry, a_param_that_is_set_again_before_a_run_goes_back_without_a_lock) {
  struct Lent {
    std::shared_ptr<Model> model;
    float value = 3;
    int returned = 0;
  } lent;
  lent.model = *Model::create(env_with(1), scaled(), nullptr, {});
  {
    std::shared_ptr<std::byte> bytes(reinterpret_cast<std::byte*>(&lent.value), [&lent](std::byte*) {
      lent.returned++;
      EXPECT_TRUE(lent.model->set_param("w", noise({1}, 9)).ok());
      Tensor x = noise({3});
      EXPECT_TRUE(lent.model->run("", {}, {&x, 1}, {}, 1).ok());
    });
    Tensor tensor = *Tensor::adopt(DType::kF32, std::array<int64_t, 1>{1}, bytes, sizeof lent.value);
    bytes.reset();
    ASSERT_TRUE(lent.model->set_param("w", tensor).ok());
  }
  ASSERT_TRUE(lent.model->set_param("w", noise({1}, 4)).ok());
  EXPECT_EQ(lent.returned, 1);
}

// Of a dtype that does not fit, say: what was set stands in its place wherever the model compiles.
TEST(reentry, a_param_that_was_set_needs_no_weight) {
  auto weights = std::make_shared<Weights>();
  ASSERT_TRUE(weights->put("w", *Tensor::create(DType::kF64, std::array<int64_t, 1>{1})).ok());
  auto model = *Model::create(env_with(1), scaled(), weights, {});
  Tensor x = noise({3});
  EXPECT_EQ(model->run("", {}, {&x, 1}, {}, 1).status().code(), Code::kDtype);
  ASSERT_TRUE(model->set_param("w", noise({1}, 4)).ok());
  for (const char* device : {"", "reference"}) {
    auto ran = model->run(device, {}, {&x, 1}, {}, 1);
    EXPECT_TRUE(ran.ok()) << ran.status().message();
  }
}

// They run it, set its param and its policy, all at once.
TEST(reentry, many_threads_share_a_model) {
  auto env = env_with(2);
  auto model = *Model::create(env, scaled(), nullptr, {});
  ASSERT_TRUE(model->set_param("w", noise({1})).ok());
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 6; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; i++) {
        Tensor x = noise({1 + (t * 37 + i * 11) % 300});
        failures += !model->run("", {}, {&x, 1}, {}, 1).ok();
        if (i % 5 == 0) failures += !model->set_param("w", noise({1}, static_cast<uint32_t>(i))).ok();
        if (i % 17 == 0) failures += !model->set_policy(nullptr).ok();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace rlx
