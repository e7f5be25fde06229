// SPDX-License-Identifier: Apache-2.0
// Damaged ONNX files: every truncation and many seeded mutations of a real model are imported. None may crash, hang, or
// make the process hold more memory than a fixed amount above what the sound file needs; sanitizers see the rest.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <random>

#include "import/onnx.h"
#include "import/onnx_model.h"

// Counts what is allocated now and at most. Sizes are asked of the allocator, so that frees need no header.
static std::atomic<size_t> live{0}, peak{0};

static void* counted(void* memory) {
  if (!memory) return nullptr;
  size_t now = live += malloc_usable_size(memory), known = peak;
  while (now > known && !peak.compare_exchange_weak(known, now)) continue;
  return memory;
}

void* operator new(size_t size) {
  if (void* memory = counted(std::malloc(size ? size : 1))) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t align) {
  auto alignment = static_cast<size_t>(align);
  if (void* memory = counted(std::aligned_alloc(alignment, (size + alignment) / alignment * alignment))) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  auto alignment = static_cast<size_t>(align);
  return counted(std::aligned_alloc(alignment, (size + alignment) / alignment * alignment));
}
void operator delete(void* memory) noexcept {
  if (memory) live -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  operator delete(memory);
}

namespace rlx {

static constexpr size_t kSlack = size_t{8} << 20;
static constexpr int kMutations = 10'000;

static std::string read_model() {
  std::ifstream file(RLX_TESTS_DIR "/models/digits.onnx", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Imports a copy that ends where the bytes end, so that a sanitizer sees any read past it. Returns whether it was
// sound.
static bool import_copy(std::string_view bytes) {
  auto view = std::as_bytes(std::span(bytes));
  auto copy = std::make_shared<std::vector<std::byte>>(view.begin(), view.end());
  auto imported = import_onnx({*copy, copy, {}}, true);
  EXPECT_TRUE(imported.ok() || !imported.status().message().empty());
  return imported.ok();
}

// More than this at once, and a file has made us allocate what it does not hold.
static size_t allowed_memory(const std::string& model) {
  size_t before = live;
  peak = before;
  EXPECT_TRUE(import_copy(model));
  return peak - before + kSlack;
}

TEST(fuzz_onnx, every_truncation_fails_cleanly) {
  std::string model = read_model();
  ASSERT_GT(model.size(), 1000u);
  size_t allowed = allowed_memory(model), base = live;
  peak = base;
  for (size_t size = 0; size < model.size(); size++)
    ASSERT_FALSE(import_copy(std::string_view(model).substr(0, size))) << size;
  EXPECT_LE(peak - base, allowed);
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

// One to four changes: a bit, a byte, a piece removed, a piece repeated.
static std::string mutated(std::string model, const std::vector<size_t>& structure, std::mt19937& random) {
  for (auto changes = random() % 4 + 1; changes > 0; changes--) {
    size_t at =
        std::min(random() % 10 ? structure[random() % structure.size()] : random() % model.size(), model.size() - 1);
    size_t length = random() % 16 + 1;
    switch (random() % 5) {
      case 0: model[at] = static_cast<char>(model[at] ^ (1 << random() % 8)); break;
      case 1: model[at] = static_cast<char>(random()); break;
      case 2: model[at] = static_cast<char>(random() % 2 ? 0xff : 0); break;
      case 3: model.erase(at, length); break;
      default: model.insert(at, model.substr(at, length)); break;
    }
  }
  return model;
}

TEST(fuzz_onnx, ten_thousand_mutations_fail_cleanly_or_import) {
  std::string model = read_model();
  size_t allowed = allowed_memory(model);
  std::vector<size_t> structure = structure_of(model);
  int sound = 0;
  for (uint32_t seed = 0; seed < kMutations; seed++) {
    std::mt19937 random(seed);
    std::string damaged = mutated(model, structure, random);
    size_t before = live;
    peak = before;
    sound += import_copy(damaged);
    ASSERT_LE(peak - before, allowed) << "seed " << seed;
  }
  EXPECT_GT(sound, 0);           // names may change without harm
  EXPECT_LT(sound, kMutations);  // and most changes do harm
}

}  // namespace rlx
