// SPDX-License-Identifier: Apache-2.0
// A program that runs at many sizes gives the same bits as programs made for exactly these sizes. A run at a new size
// allocates nothing, so it neither compiles nor plans.
#include <cstring>

#include "tests/allocation/counting.h"
#include "tests/support/models.h"
#include "tests/unit/programs.h"

namespace rlx::test {

using namespace testing_programs;

struct Size {
  int64_t batch, length;
};
constexpr Size kLargest{4, 64};
constexpr Size kSizes[] = {{4, 64}, {1, 1}, {1, 2},  {1, 3},  {1, 7}, {1, 8},  {1, 15}, {1, 16}, {1, 33}, {1, 64},
                           {2, 1},  {2, 5}, {2, 31}, {2, 48}, {3, 3}, {3, 17}, {3, 64}, {4, 1},  {4, 9},  {4, 63}};
static_assert(std::size(kSizes) == 20);

static NamedAttrs planned_for(const Size& size) {
  return {{"dims.batch_size", size.batch}, {"dims.sequence_length", size.length}};
}

static Tensor integers(const Size& size, int64_t modulus) {
  Tensor tensor = *Tensor::create(DType::kI64, std::array{size.batch, size.length});
  for (int64_t i = 0; i < tensor.count(); i++) tensor.as<int64_t>()[i] = (i * 7919 + 11) % modulus;
  return tensor;
}

// Tokens and a mask that leaves out the end of all rows but the first.
static TensorsByName minilm_inputs(const Size& size) {
  Tensor mask = integers(size, 1);
  for (int64_t i = 0; i < mask.count(); i++)
    mask.as<int64_t>()[i] = i < size.length || i % size.length <= size.length / 2;
  return {{"input_ids", integers(size, 30522)}, {"token_type_ids", integers(size, 2)}, {"attention_mask", mask}};
}

static void bind_all(Exec& exec, const TensorsByName& inputs) {
  for (const auto& [name, tensor] : inputs) {
    auto slot = static_cast<size_t>(exec.program()->find(SlotKind::kInput, name));
    ASSERT_TRUE(exec.bind(SlotKind::kInput, slot, tensor).ok()) << name;
  }
}

TEST(sizes, minilm_at_twenty_sizes_equals_exact_programs) {
  auto path = fetched("minilm/model.onnx");
  if (path.empty()) GTEST_SKIP() << "the model is not in the cache: ./dev demo fetches it";
  auto model = open_onnx(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto env = env_with(2);
  auto compiled = [&](const Size& size) {
    return *Program::compile(env, model->graph, model->weights, nullptr, planned_for(size));
  };
  auto exec = Exec::create(compiled(kLargest)).value();
  bind_all(*exec, minilm_inputs(kLargest));
  ASSERT_TRUE(exec->run().ok());  // threads and the slots' own memory come with the first run
  for (const Size& size : kSizes) {
    SCOPED_TRACE(rlx::format("{} x {}", size.batch, size.length));
    TensorsByName inputs = minilm_inputs(size);
    int64_t before = allocations();
    bind_all(*exec, inputs);
    ASSERT_TRUE(exec->run().ok());
    EXPECT_EQ(allocations() - before, 0);
    auto exact = Exec::create(compiled(size)).value();
    bind_all(*exact, inputs);
    ASSERT_TRUE(exact->run().ok());
    Tensor got = *exec->tensor(SlotKind::kOutput, 0), want = *exact->tensor(SlotKind::kOutput, 0);
    ASSERT_EQ(type_text(got.dtype(), got.dims()), type_text(want.dtype(), want.dims()));
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.bytes()), 0);
  }
}

}  // namespace rlx::test
