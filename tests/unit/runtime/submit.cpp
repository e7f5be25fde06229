// SPDX-License-Identifier: Apache-2.0
// Runs that are not waited for: order, fences, failures, cancelling, and what a context that changes or goes meanwhile
// leaves of them.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "runtime/queue.h"
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

using namespace testing_programs;

// next = state * 2 + x, over n elements, at most 10.
static std::shared_ptr<Program> doubler(const std::shared_ptr<Env>& env) {
  Graph graph;
  EXPECT_TRUE(graph.declare_symbol("n", {0, 10}).ok());
  Builder b(graph);
  Expr state = input(b, "state", {Dim::symbol("n")}), x = input(b, "x", {Dim::symbol("n")});
  output(b, "next", state * 2.0 + x);
  return *Program::compile(env, graph, nullptr, nullptr, {});
}

// y = x[i], which fails at run time where i is outside.
static std::shared_ptr<Program> gatherer(const std::shared_ptr<Env>& env) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4});
  Expr i = b.wrap(*graph.add_input("i", DType::kI64, {1}));
  output(b, "y", b.op(Op::kGather, {x, i}));
  output(b, "z", x + 1.0);
  return *Program::compile(env, graph, nullptr, nullptr, {});
}

static Status waited(const Fence& fence) {
  Status status = fence.wait();
  return status.ok() ? fence.result() : status;
}

// With and without threads of the library that take runs.
class submit : public testing::TestWithParam<int> {
 protected:
  std::shared_ptr<Env> env = env_with(GetParam());
};
INSTANTIATE_TEST_SUITE_P(threads, submit, testing::Values(0, 1, 2));

TEST_P(submit, runs_of_one_exec_follow_each_other) {
  auto exec = Exec::create(doubler(env)).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled({3}, 1)).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  std::vector<Fence> fences;
  for (int run = 0; run < 20; run++) fences.push_back(*exec->submit({}));
  ASSERT_TRUE(Fence::wait_all(fences).ok());
  for (const Fence& fence : fences) EXPECT_TRUE(fence.result().ok()) << fence.result().message();
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[2], 1048575.0f);
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[2], 2097151.0f);
}

TEST_P(submit, a_run_waits_for_fences_of_the_host) {
  auto exec = Exec::create(doubler(env)).value();
  Fence gate(env->queue().helper());
  Tensor x = filled({2}, 1);
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, x).ok());
  auto done = exec->submit({&gate, 1});
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_FALSE(done->is_done());
  EXPECT_EQ(Fence::wait(Fence::Until::kAll, {&*done, 1}, 1000000).code(), Code::kTimeout);
  x.as<float>()[0] = 7;
  std::thread host([&] { gate.signal({}); });
  EXPECT_TRUE(waited(*done).ok());
  host.join();
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[0], 7);
}

TEST_P(submit, a_fence_that_failed_aborts_what_waits_for_it) {
  auto exec = Exec::create(doubler(env)).value();
  Fence failed = Fence::finished(Status(Code::kUnknown, "driver"));
  auto done = exec->submit({&failed, 1});
  EXPECT_EQ(waited(*done).code(), Code::kAborted);
  EXPECT_TRUE(waited(*exec->submit({})).ok()) << "a later run starts clean";
}

// Else the thread that will signal the other fence would wait for itself.
TEST_P(submit, a_failure_aborts_what_waits_for_another_fence_too) {
  auto exec = Exec::create(doubler(env)).value();
  Fence failing(env->queue().helper()), open(env->queue().helper());
  auto first = exec->submit({&failing, 1}), second = exec->submit({&open, 1});
  Fence both[] = {open, failing};
  auto other = Exec::create(doubler(env)).value()->submit(both);
  failing.signal(Status(Code::kUnknown, "driver"));
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled({3}, 1)).ok());
  for (const auto* run : {&first, &second, &other}) {
    EXPECT_EQ(Fence::wait(Fence::Until::kAll, {&**run, 1}, 10'000'000'000).code(), Code::kOk);
    EXPECT_EQ((*run)->result().code(), Code::kAborted);
  }
  EXPECT_TRUE(waited(*exec->submit({})).ok()) << "a later run starts clean";
  open.signal({});
}

TEST_P(submit, what_is_wrong_with_the_arguments_is_said_at_once) {
  auto exec = Exec::create(doubler(env)).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, filled({3}, 1)).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled({4}, 1)).ok());
  EXPECT_EQ(exec->submit({}).status().code(), Code::kShape);
}

TEST_P(submit, a_failure_aborts_the_runs_behind_it) {
  auto exec = Exec::create(gatherer(env)).value();
  Fence gate(env->queue().helper());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, index_of(9)).ok());
  auto bad = exec->submit({&gate, 1});
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, index_of(1)).ok());
  auto behind = exec->submit({}), last = exec->submit({});
  gate.signal({});
  EXPECT_EQ(waited(*bad).code(), Code::kRange);
  EXPECT_EQ(waited(*behind).code(), Code::kAborted);
  EXPECT_EQ(waited(*last).code(), Code::kAborted);
  EXPECT_TRUE(waited(*exec->submit({})).ok());
  EXPECT_TRUE(exec->run().ok());
}

// state' = state + 1 as long as the index is inside.
TEST_P(submit, links_stand_as_the_failed_run_found_them) {
  Graph graph;
  Builder b(graph);
  Expr state = input(b, "state", {4});
  Expr i = b.wrap(*graph.add_input("i", DType::kI64, {1}));
  output(b, "next", state + 1.0);
  output(b, "y", b.op(Op::kGather, {state, i}));
  auto exec = Exec::create(*Program::compile(env, graph, nullptr, nullptr, {})).value();
  ASSERT_TRUE(exec->link(0, 0).ok());
  Tensor good = index_of(0), bad = index_of(9);
  auto submit_at = [&](const Tensor& index, std::span<const Fence> wait) {
    EXPECT_TRUE(exec->bind(SlotKind::kInput, 1, index).ok());
    return *exec->submit(wait);
  };
  EXPECT_TRUE(waited(submit_at(good, {})).ok());  // 0 -> 1
  Fence gate(env->queue().helper());
  Fence second = submit_at(good, {&gate, 1});  // 1 -> 2
  Fence third = submit_at(bad, {});
  Fence fourth = submit_at(good, {}), fifth = submit_at(good, {});
  gate.signal({});
  EXPECT_TRUE(waited(second).ok());
  EXPECT_EQ(waited(third).code(), Code::kRange);
  EXPECT_EQ(waited(fourth).code(), Code::kAborted);
  EXPECT_EQ(waited(fifth).code(), Code::kAborted);
  EXPECT_TRUE(waited(submit_at(good, {})).ok());  // again from what the third found
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[3], 3);
}

// After a failure the output of a link holds the state, as before the run: what is written there is read by the next
// run, and what is written to the input is not.
TEST_P(submit, after_a_failure_the_output_of_a_link_holds_the_state) {
  Graph graph;
  Builder b(graph);
  Expr state = input(b, "state", {Dim::symbol("n")});
  ASSERT_TRUE(graph.declare_symbol("n", {0, 8}).ok());
  Expr i = b.wrap(*graph.add_input("i", DType::kI64, {1}));
  output(b, "next", state + 1.0);
  output(b, "y", b.op(Op::kGather, {input(b, "x", {4}), i}));
  auto exec = Exec::create(*Program::compile(env, graph, nullptr, nullptr, {})).value();
  ASSERT_TRUE(exec->set_dim("n", 4).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, index_of(0)).ok());
  for (float before : {0.0f, 51.0f}) {
    for (int run = 0; run < 3; run++) ASSERT_TRUE(exec->run().ok());
    bool is_submitted = before == 0;
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, index_of(9)).ok());
    EXPECT_EQ((is_submitted ? waited(*exec->submit({})) : exec->run()).code(), Code::kRange);
    EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[3], before + 3);
    write(*exec, SlotKind::kOutput, 0, std::vector<float>(4, 50));
    write(*exec, SlotKind::kInput, 0, std::vector<float>(4, 100));
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, index_of(0)).ok());
    ASSERT_TRUE(exec->run().ok());
    EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[3], 51);
  }
}

// A size that the link brings is that of the state, whatever size was set.
TEST_P(submit, setting_a_size_that_a_link_brings_changes_nothing) {
  auto exec = Exec::create(doubler(env)).value();
  ASSERT_TRUE(exec->set_dim("n", 2).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  write(*exec, 1, {1, 1});
  ASSERT_TRUE(exec->run().ok());
  ASSERT_TRUE(exec->set_dim("n", 4).ok());
  for (auto [kind, slot] : {std::pair(SlotKind::kInput, 0), {SlotKind::kInput, 1}, {SlotKind::kOutput, 0}})
    EXPECT_EQ(exec->tensor(kind, slot)->dims()[0], 2);
  EXPECT_NE(exec->report("sizes")->find("\"size\": 2"), std::string::npos) << *exec->report("sizes");
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[1], 3);
}

// t = s + [x]: the linked input is bound to a new state after sizes were asked for, which count the old one as taken.
TEST_P(submit, a_new_state_brings_its_own_sizes) {
  auto graph = parse(
      "graph (n in [0, 6], m in [0, 6]) {\ns = input f32[n]\nx = input f32[1]\nw = input f32[m]\n"
      "t = concat(s, x) axis=0\nu = add(s, s)\noutput t\noutput u\noutput w\n}");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto exec = Exec::create(*Program::compile(env, *graph, nullptr, nullptr, {})).value();
  ASSERT_TRUE(exec->link(0, 0).ok());
  write(*exec, 1, {9});
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, filled({3}, 1)).ok());
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(exec->tensor(SlotKind::kOutput, 1)->dims()[0], 3) << "of the last run";
  ASSERT_TRUE(exec->set_dim("m", 2).ok());
  EXPECT_EQ(exec->tensor(SlotKind::kOutput, 1)->dims()[0], 4) << "of the next run";
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, filled({3}, 20)).ok());
  ASSERT_TRUE(exec->run().ok());
  Tensor t = shown(*exec, SlotKind::kOutput, 0), u = shown(*exec, SlotKind::kOutput, 1);
  EXPECT_EQ(t.dims()[0], 4);
  EXPECT_EQ(t.as<float>()[3], 9);
  EXPECT_EQ(u.dims()[0], 3);
}

TEST_P(submit, a_context_may_go_while_its_runs_are_in_flight) {
  Fence gate(env->queue().helper());
  std::vector<Fence> fences;
  Tensor y = filled({2}, 0);
  {
    auto exec = Exec::create(doubler(env)).value();
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled({2}, 5)).ok());
    ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, y).ok());
    fences.push_back(*exec->submit({&gate, 1}));
    fences.push_back(*exec->submit({}));
  }
  gate.signal({});
  ASSERT_TRUE(Fence::wait_all(fences).ok());
  EXPECT_TRUE(fences[1].result().ok());
  EXPECT_EQ(y.as<float>()[1], 5);
}

TEST_P(submit, bindings_and_sizes_of_a_run_in_flight_are_those_of_its_start) {
  auto exec = Exec::create(doubler(env)).value();
  Fence gate(env->queue().helper());
  std::vector<Tensor> outputs;
  std::vector<Fence> fences;
  for (int64_t n = 1; n <= 4; n++) {
    outputs.push_back(filled({n}, 0));
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, filled({n}, static_cast<float>(n))).ok());
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled({n}, 0)).ok());
    ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, outputs.back()).ok());
    fences.push_back(*exec->submit({&gate, 1}));
  }
  gate.signal({});
  for (int64_t n = 1; n <= 4; n++) {
    EXPECT_TRUE(waited(fences[static_cast<size_t>(n - 1)]).ok());
    EXPECT_EQ(outputs[static_cast<size_t>(n - 1)].as<float>()[n - 1], static_cast<float>(2 * n));
  }
}

TEST_P(submit, cancel_reaches_what_was_submitted_before_and_nothing_later) {
  auto exec = Exec::create(doubler(env)).value();
  Fence gate(env->queue().helper());
  auto first = exec->submit({&gate, 1}), second = exec->submit({});
  exec->cancel();
  auto third = exec->submit({});
  gate.signal({});
  EXPECT_EQ(waited(*first).code(), Code::kCancelled);
  EXPECT_EQ(waited(*second).code(), Code::kCancelled);
  EXPECT_EQ(waited(*third).code(), Code::kAborted) << "it stood behind them";
  exec->cancel();
  EXPECT_TRUE(exec->run().ok());
}

TEST_P(submit, any_of_several_fences_is_named) {
  auto a = Exec::create(doubler(env)).value(), b = Exec::create(doubler(env)).value();
  Fence gate(env->queue().helper());
  Fence fences[] = {*a->submit({&gate, 1}), *b->submit({})};
  size_t which = 9;
  ASSERT_TRUE(Fence::wait(Fence::Until::kAny, fences, Fence::kForever, &which).ok());
  EXPECT_EQ(which, 1u);
  gate.signal({});
  ASSERT_TRUE(Fence::wait(Fence::Until::kAll, fences, Fence::kForever, &which).ok());
  EXPECT_EQ(which, 0u);
}

// y = the rows of x that are not 0: the run finds how many.
TEST_P(submit, sizes_that_data_decides_are_waited_for_where_they_are_asked_for) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("m", {0, 8}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {8});
  output(b, "where", b.op(Op::kNonzero, {x}, {{"symbol", std::string("m")}}));
  auto program = Program::compile(env, graph, nullptr, nullptr, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  auto exec = Exec::create(*program).value();
  Fence gate(env->queue().helper());
  for (int64_t count : {3, 8, 0, 5}) {
    Tensor x_now = filled({8}, 0);
    std::fill_n(x_now.as<float>(), count, 1.0f);
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, x_now).ok());
    auto done = exec->submit({});
    Tensor found = shown(*exec, SlotKind::kOutput, 0);
    EXPECT_TRUE(done->is_done());
    EXPECT_EQ(std::max(found.dims()[0], found.dims()[1]), std::max<int64_t>(count, 1));
    auto shape = found.dims();
    Tensor largest = *Tensor::create(DType::kI64, (*program)->slots(SlotKind::kOutput)[0].upper);
    ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, largest).ok());
    EXPECT_TRUE(exec->run().ok());
    EXPECT_TRUE(std::ranges::equal(shown(*exec, SlotKind::kOutput, 0).dims(), shape)) << "bound memory has it too";
    ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, Tensor()).ok());
  }
}

// A link whose size data decide: a slot beside it is bound while the run waits.
TEST_P(submit, a_slot_that_is_not_linked_is_bound_without_waiting) {
  Graph graph;
  for (const char* symbol : {"m", "k"}) ASSERT_TRUE(graph.declare_symbol(symbol, {0, 8}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {8});
  b.wrap(*graph.add_input("before", DType::kI64, {Dim::symbol("k"), 1}));
  output(b, "where", b.op(Op::kNonzero, {x}, {{"symbol", std::string("m")}}));
  output(b, "y", x + 1.0);
  auto program = Program::compile(env, graph, nullptr, nullptr, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  auto exec = Exec::create(*program).value();
  ASSERT_TRUE(exec->link(0, 1).ok());
  Fence gate(env->queue().helper());
  auto done = exec->submit({&gate, 1});
  ASSERT_TRUE(done.ok()) << done.status().message();
  std::thread late([&] {  // so that a bind that waits is a failure, and no deadlock
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    gate.signal({});
  });
  EXPECT_TRUE(exec->bind(SlotKind::kInput, 0, filled({8}, 3)).ok());
  EXPECT_TRUE(exec->bind(SlotKind::kOutput, 1, filled({8}, 0)).ok());
  EXPECT_FALSE(gate.is_done());
  EXPECT_TRUE(exec->bind(SlotKind::kInput, 1, Tensor()).ok());
  EXPECT_TRUE(gate.is_done()) << "a linked slot waits for the size";
  late.join();
  EXPECT_TRUE(waited(*done).ok());
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 1).as<float>()[7], 4.0f);
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).dims()[0], 8);
}

TEST_P(submit, a_file_descriptor_tells_a_loop_that_a_run_is_done) {
  if (GetParam() == 0) return;
  auto exec = Exec::create(doubler(env)).value();
  Fence gate(env->queue().helper());
  Fence done = *exec->submit({&gate, 1});
  auto open_files = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  auto before = open_files();
  pollfd entry{*done.export_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&entry, 1, 0), 0);
  gate.signal({});
  EXPECT_EQ(poll(&entry, 1, 10000), 1);
  EXPECT_TRUE(done.is_done());
  ::close(entry.fd);
  EXPECT_EQ(open_files(), before) << "the fence keeps none once it is done";
  entry.fd = *done.export_fd();
  EXPECT_EQ(poll(&entry, 1, 0), 1);
  ::close(entry.fd);
  EXPECT_EQ(open_files(), before);
}

TEST_P(submit, ten_thousand_runs_may_wait_for_one_fence) {
  auto exec = Exec::create(doubler(env)).value();
  Fence gate(env->queue().helper());
  std::vector<Fence> all{*exec->submit({&gate, 1})};
  for (int run = 0; run < 10000; run++) {
    auto other = exec->submit({});
    ASSERT_TRUE(other.ok()) << other.status().message();
    all.push_back(*other);
  }
  gate.signal({});
  EXPECT_TRUE(Fence::wait_all(all).ok());
  EXPECT_TRUE(all.back().result().ok());
}

// A run in flight writes it, and one that has ended no longer does.
TEST_P(submit, memory_that_is_no_longer_bound_may_become_a_param) {
  auto exec = Exec::create(doubler(env)).value();
  Tensor x = noise({4}), y = *Tensor::create(DType::kF32, std::array<int64_t, 1>{4});
  for (size_t slot : {0, 1}) ASSERT_TRUE(exec->bind(SlotKind::kInput, slot, x).ok());
  for (bool is_submitted : {false, true}) {
    SCOPED_TRACE(is_submitted);
    ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, y).ok());
    Fence gate(env->queue().helper()), done = Fence::finished({});
    if (is_submitted)
      done = *exec->submit({&gate, 1});
    else
      ASSERT_TRUE(exec->run().ok());
    EXPECT_EQ(y.frozen().status().code(), Code::kState);
    ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, Tensor()).ok());
    EXPECT_EQ(y.frozen().ok(), !is_submitted);
    gate.signal({});
    EXPECT_TRUE(waited(done).ok());
    EXPECT_TRUE(y.frozen().ok());
  }
}

// The slots' own memory is no exception: who holds the tensor can freeze it when the run has ended.
TEST_P(submit, memory_of_a_slots_own_cannot_be_frozen_while_a_run_writes_it) {
  auto exec = Exec::create(doubler(env)).value();
  for (size_t slot : {0, 1}) ASSERT_TRUE(exec->bind(SlotKind::kInput, slot, noise({4})).ok());
  Tensor y = exec->tensor(SlotKind::kOutput, 0).value();
  Fence gate(env->queue().helper());
  Fence done = *exec->submit({&gate, 1});
  EXPECT_EQ(y.frozen().status().code(), Code::kState);
  gate.signal({});
  EXPECT_TRUE(waited(done).ok());
  Tensor kept = *y.frozen();
  float made = on_host(y).as<float>()[0];
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({4}, 5)).ok());
  EXPECT_TRUE(waited(*exec->submit({})).ok());
  EXPECT_EQ(on_host(y).as<float>()[0], made) << "the context has other memory now";
}

// The caller has the memory of a slot back once the slot is bound anew and the run has ended, however it ended.
TEST_P(submit, a_link_that_was_bound_anew_is_not_restored) {
  auto exec = Exec::create(doubler(env)).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled({4}, 1)).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  for (bool is_followed : {false, true}) {
    SCOPED_TRACE(is_followed);
    Tensor state = filled({4}, 1), next = filled({4}, 2), new_state = filled({4}, 3), new_next = filled({4}, 4);
    auto bind = [&](const Tensor& in, const Tensor& out) {
      ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, in).ok());
      ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, out).ok());
    };
    bind(state, next);
    Fence gate(env->queue().helper());
    Fence failed = *exec->submit({&gate, 1});
    bind(new_state, new_next);
    Fence aborted = is_followed ? *exec->submit({}) : failed;
    gate.signal(Status(Code::kUnknown, "driver"));
    EXPECT_EQ(waited(failed).code(), Code::kAborted);
    EXPECT_EQ(waited(aborted).code(), Code::kAborted);
    ASSERT_TRUE(exec->run().ok());
    EXPECT_EQ(state.as<float>()[0], 1);
    EXPECT_EQ(next.as<float>()[0], 2);
    EXPECT_EQ(new_state.as<float>()[0], 3);
    EXPECT_EQ(new_next.as<float>()[0], 7);
  }
}

// The host gets it back inside a call to the context, and may call the context then.
TEST_P(submit, memory_of_an_ended_run_may_use_the_context_when_it_goes_back) {
  auto exec = Exec::create(doubler(env)).value();
  for (size_t slot : {0, 1}) ASSERT_TRUE(exec->bind(SlotKind::kInput, slot, noise({4})).ok());
  int returned = 0;
  auto lent = [&] {
    std::shared_ptr<std::byte> data(new std::byte[16], [&](std::byte* bytes) {
      returned++;
      EXPECT_TRUE(exec->run().ok());
      delete[] bytes;
    });
    return *Tensor::adopt(DType::kF32, std::array<int64_t, 1>{4}, std::move(data), 16);
  };
  std::vector<Fence> all;
  for (int run = 0; run < 3; run++) {
    ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, lent()).ok());
    all.push_back(*exec->submit({}));
  }
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, Tensor()).ok());
  EXPECT_TRUE(waited(all.back()).ok());
  EXPECT_TRUE(exec->run().ok());
  EXPECT_EQ(returned, 3);
}

TEST_P(submit, memory_of_a_linked_slot_may_use_the_context_when_it_goes_back) {
  auto exec = Exec::create(doubler(env)).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, filled({4}, 1)).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  Tensor output = filled({4}, 0);
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, output).ok());
  int64_t holders = output.storage().use_count();
  int returned = 0;
  auto lent = [&] {
    std::shared_ptr<std::byte> data(new std::byte[16](), [&](std::byte* bytes) {
      returned++;
      EXPECT_TRUE(exec->run().ok());
      delete[] bytes;
    });
    return *Tensor::adopt(DType::kF32, std::array<int64_t, 1>{4}, std::move(data), 16);
  };
  for (int binding = 0; binding < 3; binding++) ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, lent()).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, filled({4}, 5)).ok());
  EXPECT_EQ(returned, 3);
  EXPECT_EQ(output.storage().use_count(), holders) << "nothing is released twice";
  EXPECT_EQ(output.as<float>()[0], 11);
}

// Nothing recurses along a chain of runs: neither when it runs, nor when it goes.
TEST_P(submit, a_hundred_thousand_runs_may_wait_one_for_the_other) {
  std::array execs{Exec::create(doubler(env)).value(), Exec::create(doubler(env)).value()};
  Fence gate(env->queue().helper()), last = gate;
  std::vector<Fence> all;
  for (size_t run = 0; run < 100000; run++) {
    auto next = execs[run % 2]->submit({&last, 1});
    ASSERT_TRUE(next.ok()) << next.status().message();
    all.push_back(last = *next);
  }
  gate.signal(Status(Code::kIo, "the host failed"));
  EXPECT_EQ(waited(last).code(), Code::kAborted);
}

TEST_P(submit, contexts_of_several_threads_overlap) {
  auto program = doubler(env);
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int thread = 0; thread < 4; thread++)
    threads.emplace_back([&, thread] {
      auto exec = Exec::create(program).value();
      for (int round = 0; round < 200; round++) {
        int64_t n = 1 + (round + thread) % 9;
        Tensor x = filled({n}, static_cast<float>(thread));
        if (!exec->bind(SlotKind::kInput, 1, x).ok()) failures++;
        auto done = exec->submit({});
        if (!done.ok() || (round % 7 == 0 && (exec->cancel(), false))) {
          failures++;
          continue;
        }
        Status status = waited(*done);
        if (!status.ok() && status.code() != Code::kCancelled) failures++;
        if (status.ok() && shown(*exec, SlotKind::kOutput, 0).as<float>()[n - 1] != static_cast<float>(thread))
          failures++;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace rlx
