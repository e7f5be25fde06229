// SPDX-License-Identifier: Apache-2.0
// Outputs whose size has no upper bound: their memory grows in the run. What holds of other slots holds of them.
#include <ctime>

#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

namespace {

Tensor list(std::initializer_list<int64_t> numbers) {
  Tensor tensor = *Tensor::create(DType::kI64, std::array{static_cast<int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), tensor.as<int64_t>());
  return tensor;
}

// t = x, 0, 1, ..., count - 1
std::unique_ptr<Exec> appending() {
  return exec_of(R"(graph (m in [0, 400000]) {
    count = input i64[]
    x = input i64[m]
    r = dynamic_iota(count)
    t = concat(x, r) axis=0
    output t
  })");
}

Status bind(Exec& exec, size_t input, const Tensor& tensor) {
  return exec.bind(SlotKind::kInput, input, tensor);
}

std::string text_of_output(Exec& exec, size_t output) {
  Tensor tensor = shown(exec, SlotKind::kOutput, output);
  std::string text;
  for (int64_t i = 0; i < tensor.count(); i++) text += format("{} ", tensor.as<int64_t>()[i]);
  return text;
}

}  // namespace

TEST(open_outputs, carry_their_state_when_another_size_grows) {
  auto exec = exec_of(R"(graph (n in [0, 400]) {
    count = input i64[]
    s = input i64[n]
    b = input i64[n]
    r = dynamic_iota(count)
    t = concat(s, r) axis=0
    q = add(s, b)
    output t
    output q
  })");
  ASSERT_TRUE(exec->link(0, 1).ok());
  ASSERT_TRUE(bind(*exec, 0, scalar_i64(2)).ok());
  const char* sums[] = {"", "100 102 ", "100 102 102 104 "};
  for (size_t run = 0; run < 3; run++) {
    ASSERT_TRUE(bind(*exec, 2, run == 0 ? list({}) : run == 1 ? list({100, 101}) : list({100, 101, 102, 103})).ok());
    Status status = exec->run();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(text_of_output(*exec, 1), sums[run]);
  }
}

TEST(open_outputs, keep_their_result_when_slots_are_bound_again) {
  auto exec = appending();
  ASSERT_TRUE(bind(*exec, 0, scalar_i64(2)).ok());
  ASSERT_TRUE(bind(*exec, 1, list({7, 8, 9})).ok());
  ASSERT_TRUE(exec->run().ok());
  Tensor large = *Tensor::create(DType::kI64, std::array<int64_t, 1>{1000});
  ASSERT_TRUE(bind(*exec, 1, large).ok());
  EXPECT_TRUE(text_of_output(*exec, 0).starts_with("7 8 9 0 1 "));
  ASSERT_TRUE(bind(*exec, 1, list({1, 2, 3})).ok());
  EXPECT_EQ(text_of_output(*exec, 0), "7 8 9 0 1 ");
}

TEST(open_outputs, begin_with_zeros) {
  auto exec = appending();
  ASSERT_TRUE(bind(*exec, 0, scalar_i64(2)).ok());
  {
    Tensor secret = *Tensor::create(DType::kI64, std::array<int64_t, 1>{20000});
    std::fill_n(secret.as<int64_t>(), 20000, 77);
  }
  ASSERT_TRUE(bind(*exec, 1, *Tensor::create(DType::kI64, std::array<int64_t, 1>{20000})).ok());
  Tensor before = shown(*exec, SlotKind::kOutput, 0);
  for (int64_t i = 0; i < before.count(); i++) ASSERT_EQ(before.as<int64_t>()[i], 0) << i;
}

// The result of an earlier run is not where a run for bound memory works.
TEST(open_outputs, stay_while_a_run_writes_elsewhere) {
  auto exec = appending();
  ASSERT_TRUE(bind(*exec, 0, scalar_i64(2)).ok());
  ASSERT_TRUE(bind(*exec, 1, list({7, 8})).ok());
  ASSERT_TRUE(exec->run().ok());
  Tensor first = *exec->tensor(SlotKind::kOutput, 0);
  Tensor elsewhere = list({0, 0, 0, 0});
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, elsewhere).ok());
  ASSERT_TRUE(bind(*exec, 1, list({5, 6})).ok());
  for (bool is_frozen : {false, true}) {
    if (is_frozen) {
      ASSERT_TRUE(first.frozen().ok());
    }
    ASSERT_TRUE(exec->run().ok());
    EXPECT_EQ(elsewhere.as<int64_t>()[0], 5);
    EXPECT_EQ(on_host(first).as<int64_t>()[0], 7);
  }
}

TEST(open_outputs, share_no_memory_with_other_slots) {
  auto exec = exec_of(R"(graph (m in [0, 400]) {
    count = input i64[]
    x = input i64[m]
    r = dynamic_iota(count)
    a = concat(x, r) axis=0
    b = concat(r, x) axis=0
    output a
    output b
  })");
  ASSERT_TRUE(bind(*exec, 0, scalar_i64(2)).ok());
  ASSERT_TRUE(bind(*exec, 1, list({7, 8})).ok());
  ASSERT_TRUE(exec->run().ok());
  Tensor a = *exec->tensor(SlotKind::kOutput, 0);
  ASSERT_TRUE(bind(*exec, 1, a).ok());
  EXPECT_EQ(exec->run().code(), Code::kInvalidArgument);
  ASSERT_TRUE(bind(*exec, 1, list({7, 8})).ok());
  Status bound = exec->bind(SlotKind::kOutput, 1, a);
  EXPECT_EQ((bound.ok() ? exec->run() : bound).code(), Code::kInvalidArgument);
}

TEST(open_outputs, have_sizes_that_nobody_sets) {
  auto exec = appending();
  Status status = exec->set_dim("dynamic_iota.0", 3);
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
}

// A run in flight lets the memory of its output grow, while the next one is prepared. Of use under TSan.
TEST(open_outputs, grow_while_the_next_run_is_prepared) {
  auto exec = exec_of("graph {\nc = input i64[]\ny = dynamic_iota(c) symbol=k\nz = add(y, y)\noutput z\n}");
  ASSERT_TRUE(bind(*exec, 0, scalar_i64(100)).ok());
  ASSERT_TRUE(exec->run().ok());
  ASSERT_TRUE(exec->tensor(SlotKind::kOutput, 0).ok());
  std::vector<Fence> fences;
  for (int64_t count : {1000, 20000, 40000, 90000}) {
    ASSERT_TRUE(bind(*exec, 0, scalar_i64(count)).ok());
    auto fence = exec->submit({});
    ASSERT_TRUE(fence.ok()) << fence.status().message();
    fences.push_back(*fence);
  }
  ASSERT_TRUE(Fence::wait_all(fences).ok());
  Tensor last = shown(*exec, SlotKind::kOutput, 0);
  ASSERT_EQ(last.count(), 90000);
  EXPECT_EQ(last.as<int64_t>()[89999], 2 * 89999);
}

// Each size that a run finds updates only what it names.
TEST(open_outputs, cost_a_run_the_same_each_however_many_there_are) {
  if (is_far()) GTEST_SKIP() << "its host copies each output: on cpu this measures the run";
  auto seconds_of = [](int count) {
    std::string nodes, outputs;
    for (int i = 0; i < count; i++) {
      nodes += format("y{} = dynamic_iota(c) symbol=k{}\n", i, i);
      outputs += format("output y{}\n", i);
    }
    auto exec = exec_of("graph {\nc = input i64[]\n" + nodes + outputs + "}");
    EXPECT_TRUE(bind(*exec, 0, scalar_i64(3)).ok());
    double least = 1e9;
    for (int run = 0; run < 6; run++) {  // the first one allocates
      std::clock_t begin = std::clock();
      EXPECT_TRUE(exec->run().ok());
      least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    return least;
  };
  double few = seconds_of(500), many = seconds_of(16000);
  std::printf("%.2f ms for 500, %.2f for 16,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 32 * 8 * few + 0.05);
}

}  // namespace rlx
