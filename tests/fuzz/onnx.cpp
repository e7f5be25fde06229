// SPDX-License-Identifier: Apache-2.0
// Damaged ONNX files: every truncation and many seeded mutations of a real model are imported, and what still imports
// is compiled and run. Nothing may crash, hang, or make the process hold more memory than a fixed amount above what the
// sound file needs; sanitizers see the rest.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "import/onnx/model.h"
#include "import/onnx/onnx.h"
#include "runtime/program.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/memory.h"
#include "tests/support/paths.h"

namespace rlx::test {

static constexpr size_t kSlack = size_t{8} << 20;
static constexpr int64_t kPlanLimit = int64_t{1} << 20;

static std::string read_model() {
  std::ifstream file(test_path("models/digits.onnx"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static Result<Imported> import_copy(std::string_view bytes) {
  auto imported = import_onnx(copy_of(bytes), {});
  EXPECT_TRUE(imported.ok() || !imported.status().message().empty());
  return imported;
}

// More than this at once, and a file has made us allocate what it does not hold.
static size_t allowed_memory(const std::string& model) {
  size_t before = live_bytes();
  forget_peak();
  EXPECT_TRUE(import_copy(model).ok());
  return peak_bytes() - before + kSlack;
}

TEST(fuzz_onnx, every_truncation_fails_cleanly) {
  std::string model = read_model();
  ASSERT_GT(model.size(), 1000u);
  size_t allowed = allowed_memory(model), base = live_bytes();
  forget_peak();
  for (size_t size = 0; size < model.size(); size++)
    ASSERT_FALSE(import_copy(std::string_view(model).substr(0, size)).ok()) << size;
  EXPECT_LE(peak_bytes() - base, allowed);
}

// Positions outside the weights, where a changed byte changes the meaning.
static std::vector<size_t> structure_of(const std::string& model) {
  std::vector<bool> is_weight(model.size());
  const auto* begin = reinterpret_cast<const std::byte*>(model.data());
  auto parsed = onnx::parse_model(std::as_bytes(std::span(model)));
  for (const onnx::TensorProto& tensor : parsed->graph.initializer)
    for (size_t i = 0; i < tensor.raw_data.size(); i++)
      is_weight[static_cast<size_t>(tensor.raw_data.data() - begin) + i] = true;
  std::vector<size_t> positions;
  for (size_t i = 0; i < model.size(); i++)
    if (!is_weight[i]) positions.push_back(i);
  return positions;
}

// Compiles at sizes of 2 and runs on zeros: results, or a status with a message.
static Status run_on_zeros(const Imported& imported, const std::shared_ptr<Env>& env) {
  auto weights = std::make_shared<Weights>();
  for (const auto& [name, tensor] : imported.weights) RLX_TRY(weights->put(name, tensor));
  NamedAttrs options{{"memory.limit", kPlanLimit}};
  for (const auto& [symbol, range] : imported.graph.symbols()) options.emplace_back("dims." + symbol, int64_t{2});
  auto program = RLX_TRY(Program::compile(env, imported.graph, weights, nullptr, options));
  std::vector<Tensor> inputs;
  for (const Slot& slot : program->slots(SlotKind::kInput)) {
    if (slot.bytes > kPlanLimit) return Status(Code::kNoMemory, "the input '" + slot.name + "' is too large");
    inputs.push_back(RLX_TRY(Tensor::create(slot.type.dtype, slot.upper)));
  }
  return program->run({}, inputs, {}, program->slots(SlotKind::kOutput).size()).status();
}

TEST(fuzz_onnx, ten_thousand_mutations_fail_cleanly_or_import_and_run) {
  std::string model = read_model();
  size_t allowed = allowed_memory(model);
  std::vector<size_t> structure = structure_of(model);
  auto env = Env::create({.threads = 1});
  ASSERT_TRUE(env.ok());
  int sound = 0, ran = 0;
  for (uint32_t seed = 0; seed < kMutations; seed++) {
    std::mt19937 random(seed);
    std::string damaged = mutated(model, structure, random);
    size_t before = live_bytes();
    forget_peak();
    auto imported = import_copy(damaged);
    ASSERT_LE(peak_bytes() - before, allowed) << "seed " << seed;
    if (!imported.ok()) continue;
    sound++;
    Status status = run_on_zeros(*imported, *env);
    ran += status.ok();
    EXPECT_TRUE(status.ok() || !status.message().empty()) << "seed " << seed;
    ASSERT_LE(peak_bytes() - before, allowed + 4 * kPlanLimit) << "seed " << seed;
  }
  std::printf("%d of %d import, %d of them run\n", sound, kMutations, ran);
  EXPECT_GT(ran, 0);             // names may change without harm
  EXPECT_LT(sound, kMutations);  // and most changes do harm
}

}  // namespace rlx::test
