// SPDX-License-Identifier: Apache-2.0
// Outputs whose size has no upper bound: their memory grows in the run. What holds of other slots holds of them.
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

}  // namespace rlx
