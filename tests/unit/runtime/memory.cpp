// SPDX-License-Identifier: Apache-2.0
// Who may write which memory, and when: slots, links, params, and what the caller hands over or is handed.
#include <cstring>
#include <numeric>

#include "base/storage.h"
#include "runtime/model.h"
#include "runtime/room.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static std::shared_ptr<Storage> bytes(size_t count, Writable writable = Writable::kYes) {
  std::shared_ptr<std::byte> data(new std::byte[count], [](const std::byte* it) { delete[] it; });
  return std::make_shared<Storage>(host_buffer(data, count), 0, count, writable);
}

TEST(storage, has_writers_or_freezers_never_both) {
  auto storage = bytes(8);
  auto writer = Storage::written(storage);
  ASSERT_TRUE(writer);
  EXPECT_EQ(Storage::frozen(storage), nullptr);
  EXPECT_NE(Storage::written(storage), nullptr) << "a second writer may come";
  writer = nullptr;
  auto frozen = Storage::frozen(storage), again = Storage::frozen(storage);
  ASSERT_TRUE(frozen && again);
  EXPECT_EQ(Storage::written(storage), nullptr);
  frozen = nullptr;
  EXPECT_EQ(Storage::written(storage), nullptr) << "one freezer is left";
  again = nullptr;
  EXPECT_TRUE(storage->is_writable());
  EXPECT_EQ(Storage::written(bytes(8, Writable::kNo)), nullptr) << "read-only";
}

TEST(storage, a_user_may_be_made_of_a_user_any_number_of_times) {
  auto storage = bytes(8);
  auto user = Storage::frozen(storage);
  for (int i = 0; i < 1000000; i++) user = Storage::frozen(user);
  EXPECT_LE(storage.use_count(), 2) << "no user keeps the one that it was made of";
  user = nullptr;  // must not recurse once for each of them
  EXPECT_TRUE(storage->is_writable());
}

TEST(storage, overlaps_by_its_bytes_whoever_keeps_them) {
  std::byte callers[16];
  auto part = [&](size_t offset, size_t count) {
    return Storage(host_buffer({std::shared_ptr<void>(), callers}, sizeof callers), offset, count);
  };
  EXPECT_TRUE(part(0, 8).overlaps(part(4, 8)));
  EXPECT_FALSE(part(0, 8).overlaps(part(8, 8)));
  EXPECT_FALSE(part(0, 8).overlaps(part(4, 0)));
}

// y = concat(x, 1): one row more than it was given, kept for the next run.
static std::shared_ptr<Program> appender(const std::shared_ptr<Env>& env, DType dtype = DType::kF32) {
  Graph graph;
  EXPECT_TRUE(graph.declare_symbol("past", {0, 7}).ok());
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", dtype, {Dim::symbol("past")}));
  Expr one = reshape(b.scalar(dtype, 1), {1});
  std::vector<Expr> parts{x, one};
  output(b, "y", concat(parts, 0));
  return *Program::compile(env, graph, nullptr, nullptr, {});
}

TEST(exec, slots_that_a_link_exchanges_hold_the_larger_of_the_two) {
  auto env = env_with(1);
  auto exec = Exec::create(appender(env)).value();
  ASSERT_TRUE(exec->set_dim("past", 7).ok());
  Tensor before = *exec->tensor(SlotKind::kInput, 0);  // of 7 elements, before there is a link
  ASSERT_TRUE(exec->link(0, 0).ok());
  Tensor x = *exec->tensor(SlotKind::kInput, 0);
  EXPECT_GE(x.storage()->bytes(), size_t{8 * 4});
  write(*exec, 0, {0, 1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(exec->run().code(), Code::kRange) << "8 elements are more than the plan's 7";
  EXPECT_EQ(exec->tensor(SlotKind::kOutput, 0)->count(), 8) << "what the last run wrote";
}

TEST(exec, a_link_keeps_what_was_written_before_it) {
  auto env = env_with(1);
  auto exec = Exec::create(appender(env)).value();
  ASSERT_TRUE(exec->set_dim("past", 2).ok());
  write(*exec, 0, {5, 6});
  ASSERT_TRUE(exec->link(0, 0).ok());
  ASSERT_TRUE(exec->run().ok());
  Tensor y = shown(*exec, SlotKind::kOutput, 0);
  EXPECT_EQ(y.as<float>()[0], 5);
  EXPECT_EQ(y.as<float>()[2], 1);
}

TEST(exec, refuses_to_write_what_is_frozen_or_read_only) {
  auto env = env_with(1);
  auto exec = Exec::create(appender(env)).value();
  Tensor mapped = *Tensor::over(DType::kF32, std::array<int64_t, 1>{3}, bytes(12, Writable::kNo));
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, mapped).ok());
  EXPECT_EQ(exec->link(0, 0).code(), Code::kState) << "the link would write it";
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, Tensor()).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  EXPECT_EQ(exec->bind(SlotKind::kInput, 0, mapped).code(), Code::kState);
  Tensor param = noise({3}), held = *param.frozen();
  EXPECT_EQ(exec->bind(SlotKind::kOutput, 0, param).code(), Code::kState);
}

TEST(exec, what_runs_write_cannot_be_frozen) {
  auto env = env_with(1);
  auto exec = Exec::create(appender(env)).value();
  Tensor y = noise({4});
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({3})).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, y).ok());
  EXPECT_EQ(y.frozen().status().code(), Code::kState);
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, Tensor()).ok());
  EXPECT_TRUE(y.frozen().ok());
}

// An output that was handed out and became a param keeps its bytes; the next run writes elsewhere.
TEST(exec, gives_up_memory_of_its_own_that_was_frozen) {
  auto env = env_with(1);
  auto exec = Exec::create(appender(env)).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({3}, 1)).ok());
  ASSERT_TRUE(exec->run().ok());
  Tensor param = *exec->tensor(SlotKind::kOutput, 0)->frozen();
  float first = on_host(param).as<float>()[0];
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({3}, 2)).ok());
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(on_host(param).as<float>()[0], first);
  EXPECT_NE(shown(*exec, SlotKind::kOutput, 0).as<float>()[0], first);
}

TEST(exec, staged_memory_must_hold_what_a_run_reads) {
  auto env = env_with(1);
  auto exec = Exec::create(appender(env)).value();
  alignas(8) char memory[40] = {};
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 0, memory + 1, 8).ok());
  ASSERT_TRUE(exec->set_dim("past", 7).ok());
  EXPECT_EQ(exec->run().code(), Code::kInvalidArgument);
}

TEST(exec, refuses_operands_that_share_memory) {
  auto env = env_with(1);
  auto exec = Exec::create(appender(env)).value();
  float memory[8] = {};
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 0, memory, 12).ok());
  Status shared = exec->bind_ptr(SlotKind::kOutput, 0, memory + 2, 16);
  EXPECT_EQ(shared.code(), Code::kInvalidArgument);
  EXPECT_EQ(shared.message(), "the output 'y' and the input 'x' share memory");
  EXPECT_TRUE(exec->bind_ptr(SlotKind::kOutput, 0, memory + 3, 16).ok());
}

// What a run has made is the state of the next one, whatever is asked or bound in between.
static std::unique_ptr<Exec> linked_sum(const std::shared_ptr<Env>& env) {
  Graph graph;
  EXPECT_TRUE(graph.declare_symbol("n", {1, 8}).ok());
  Builder b(graph);
  Expr state = input(b, "state", {Dim::symbol("n")}), x = input(b, "x", {Dim::symbol("n")});
  output(b, "next", state + x);
  output(b, "other", x * x);
  auto exec = Exec::create(*Program::compile(env, graph, nullptr, nullptr, {})).value();
  EXPECT_TRUE(exec->link(0, 0).ok());
  return exec;
}

static Tensor filled(int64_t n, float value) {
  Tensor tensor = *Tensor::create(DType::kF32, std::array{n});
  std::fill_n(tensor.as<float>(), n, value);
  return tensor;
}

TEST(links, a_new_output_does_not_become_the_state) {
  auto env = env_with(1);
  auto exec = linked_sum(env);
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, filled(4, 0)).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, filled(4, 0)).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled(4, 1)).ok());
  ASSERT_TRUE(exec->run().ok());
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, filled(4, 777)).ok());
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[0], 2);
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, filled(2, 0)).ok());
  EXPECT_EQ(exec->run().code(), Code::kShape) << "too small for the state";
}

TEST(links, a_new_input_starts_anew) {
  auto env = env_with(1);
  auto exec = linked_sum(env);
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled(4, 1)).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, filled(4, 0)).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, filled(4, 0)).ok());
  ASSERT_TRUE(exec->run().ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, filled(4, 100)).ok());
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[0], 101);
}

TEST(links, looking_at_the_output_changes_nothing) {
  auto env = env_with(1);
  auto exec = Exec::create(appender(env)).value();
  ASSERT_TRUE(exec->set_dim("past", 0).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  for (int64_t run = 1; run <= 3; run++) {
    ASSERT_TRUE(exec->run().ok());
    EXPECT_EQ(exec->tensor(SlotKind::kOutput, 0)->count(), run);
    EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[0], 1);
  }
}

TEST(links, keep_the_state_where_another_output_is_wanted) {
  auto env = env_with(1);
  auto exec = linked_sum(env);
  alignas(8) char state[24] = {}, next[24] = {};
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 0, state + 1, 16).ok());  // not aligned, so staged
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kOutput, 0, next + 1, 16).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled(4, 1)).ok());
  ASSERT_TRUE(exec->want(std::array<size_t, 1>{1}).ok());
  for (int run = 0; run < 4; run++) ASSERT_TRUE(exec->run().ok());
  float got;
  std::memcpy(&got, next + 1, 4);
  if (got != 4) std::memcpy(&got, state + 1, 4);
  EXPECT_EQ(got, 4);
}

TEST(links, memory_of_a_slot_of_its_own_overlaps_too) {
  auto env = env_with(1);
  auto exec = Exec::create(linked_sum(env)->program()).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, filled(4, 1)).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled(4, 1)).ok());
  ASSERT_TRUE(exec->run().ok());
  Tensor own = *exec->tensor(SlotKind::kOutput, 0);
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, own).ok());
  EXPECT_EQ(exec->run().message(), "the output 'next' and the input 'state' share memory");
}

// ---- what the host counts ----

static int64_t now(const Env& env, MemoryKind kind) {
  return env.host()->counts(kind).bytes;
}

// y = exp(x w) w of n rows: the arena grows with n. Returns w.
static Value two_products(Graph& graph, int64_t most) {
  EXPECT_TRUE(graph.declare_symbol("n", {0, most}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {Dim::symbol("n"), 4}), w = input(b, "w", {4, 4});
  output(b, "y", matmul(exp(matmul(x, w)), w));
  return w.value();
}

// As a file may hold it.
static Tensor misaligned(int64_t count) {
  size_t size = static_cast<size_t>(count) * sizeof(float);
  std::shared_ptr<Storage> all = bytes(size + 1);
  std::memset(all->host(), 0, size + 1);
  return *Tensor::over(DType::kF32, {{count}}, std::make_shared<Storage>(Storage::shared_buffer(all), 1, size));
}

TEST(host_memory, holds_the_aligned_copy_of_a_weight) {
  auto env = env_with(1);
  Weights weights;
  ASSERT_TRUE(weights.put("w", misaligned(64)).ok());
  Tensor copy = *weights.get("w", *env);
  EXPECT_EQ(now(*env, MemoryKind::kTensor), 64 * 4);
  EXPECT_EQ(weights.get("w", *env)->data(), copy.data()) << "one for all";
}

TEST(host_memory, holds_what_params_alone_decide) {
  if (is_far()) GTEST_SKIP() << "its copy is in its own memory";
  auto env = env_with(1);
  auto weights = std::make_shared<Weights>();
  Graph graph;
  Builder b(graph);
  Expr sum = b.wrap(*graph.add_param("a", DType::kF32, {64})) + b.wrap(*graph.add_param("b", DType::kF32, {64}));
  output(b, "y", input(b, "x", {64}) + sum);
  ASSERT_TRUE(weights->put("a", misaligned(64)).ok() && weights->put("b", noise({64})).ok());
  auto program = *Program::compile(env, graph, weights, nullptr, {});
  EXPECT_EQ(now(*env, MemoryKind::kPrepared), 64 * 4) << "the sum";
  EXPECT_EQ(now(*env, MemoryKind::kTensor), 0) << "and no copy of a";
}

TEST(host_memory, of_contexts_that_are_kept_goes_back_when_it_is_trimmed) {
  if (is_far()) GTEST_SKIP() << "its arenas are its own";
  auto env = env_with(1);
  Graph graph;
  two_products(graph, 1 << 16);
  auto program = *Program::compile(env, graph, nullptr, nullptr, {});
  std::array<Tensor, 2> in{noise({3, 4}), noise({4, 4})};
  Tensor first = (*program->run({}, in, {}, 1))[0];
  EXPECT_GT(now(*env, MemoryKind::kArena), 0) << "one is kept for the next run";
  env->trim();
  EXPECT_EQ(now(*env, MemoryKind::kArena), 0);
  EXPECT_EQ(now(*env, MemoryKind::kScratch), 0);
  EXPECT_EQ(env->kept_memory().bytes(), 0);
  EXPECT_TRUE((*program->run({}, in, {}, 1))[0].same_bytes(first));
}

TEST(host_memory, of_a_large_size_goes_back_when_others_run) {
  if (is_far()) GTEST_SKIP() << "its arenas are its own";
  auto env = *Env::create({.threads = 1, .kept_memory = 0});
  Graph graph;
  two_products(graph, 1 << 24);
  auto model = *Model::create(env, graph, nullptr, {});
  auto run = [&](int64_t n) {
    std::array<Tensor, 2> in{noise({n, 4}), noise({4, 4})};
    EXPECT_TRUE(model->run("", {}, in, {}, 1).ok());
  };
  run(int64_t{1} << 21);
  EXPECT_GT(now(*env, MemoryKind::kArena), int64_t{1} << 24);
  run(3);
  EXPECT_LT(now(*env, MemoryKind::kArena), int64_t{1} << 20);
  NamedAttrs buckets{{"buckets.n", std::vector<int64_t>{8, int64_t{1} << 21}}};
  ASSERT_TRUE(model->set_policy(&buckets).ok());
  run(int64_t{1} << 21);
  run(100);  // in the larger bucket
  EXPECT_GT(now(*env, MemoryKind::kArena), int64_t{1} << 24);
  run(3);
  EXPECT_LT(now(*env, MemoryKind::kArena), int64_t{1} << 20);
}

TEST(host_memory, of_a_large_run_that_failed_goes_back) {
  if (is_far()) GTEST_SKIP() << "its arenas are its own";
  auto env = *Env::create({.threads = 1, .kept_memory = 0});
  Graph graph;
  Value table = two_products(graph, 1 << 24);
  Builder b(graph);
  Expr index = b.wrap(*graph.add_input("i", DType::kI64, {}));
  output(b, "row", b.op(Op::kGather, {b.wrap(table), index}, {{"axis", int64_t{0}}}));
  auto model = *Model::create(env, graph, nullptr, {});
  Tensor at = *Tensor::create(DType::kI64, {});
  auto run = [&](int64_t n) {
    std::array<Tensor, 3> in{noise({n, 4}), noise({4, 4}), at};
    return model->run("", {}, in, {}, 2).ok();
  };
  at.as<int64_t>()[0] = 9;
  EXPECT_FALSE(run(int64_t{1} << 21));
  at.as<int64_t>()[0] = 1;
  EXPECT_TRUE(run(3));
  EXPECT_LT(now(*env, MemoryKind::kArena), int64_t{1} << 20);
}

TEST(host_memory, of_a_room_that_is_far_too_large_goes_back) {
  auto env = env_with(1);
  Device& device = **env->find_device("cpu");
  Room room;
  ASSERT_TRUE(room.reserve(device, 8 * Room::kLarge).ok());
  for (int i = 0; i <= Room::kPatience; i++) {
    EXPECT_GE(room.capacity(), 8 * Room::kLarge);
    ASSERT_TRUE(room.trim(device).ok());
    ASSERT_TRUE(room.reserve(device, 100).ok());
  }
  EXPECT_LT(room.capacity(), Room::kLarge);
}

TEST(host_memory, of_a_room_stays_while_it_holds_a_result) {
  auto env = env_with(1);
  Device& device = **env->find_device("cpu");
  Room room;
  ASSERT_TRUE(room.reserve(device, 8 * Room::kLarge).ok());
  auto held = room.share();
  for (int i = 0; i < 4 * Room::kPatience; i++) ASSERT_TRUE(room.reserve(device, 100).ok());
  EXPECT_EQ(room.share(), held);
}

}  // namespace rlx
