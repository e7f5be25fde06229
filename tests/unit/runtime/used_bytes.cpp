// SPDX-License-Identifier: Apache-2.0
// Overlaps of slots, found by addresses, beside a look at every pair.
#include "runtime/used_bytes.h"

#include <random>
#include <vector>

#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

TEST(used_bytes, agrees_with_a_look_at_every_piece) {
  std::mt19937 random(1);
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  std::vector<std::byte> memory(64);
  struct Piece {
    std::shared_ptr<Storage> storage;
    UsedBytes::Use use;
  };
  auto draw = [&] {
    size_t first = below(60), bytes = below(std::min<size_t>(12, 65 - first));
    std::shared_ptr<std::byte> data(std::shared_ptr<void>(), memory.data() + first);
    auto storage = std::make_shared<Storage>(host_buffer(std::move(data), bytes), 0, bytes);
    return Piece{std::move(storage), below(3) ? UsedBytes::kRead : UsedBytes::kWritten};
  };
  UsedBytes used;
  std::vector<Piece> pieces;
  for (int step = 0; step < 20000; step++) {
    Piece asked = draw();
    const Piece* own = pieces.empty() || below(2) ? nullptr : &pieces[below(pieces.size())];
    if (own) asked.use = own->use;
    bool is_free = true;
    for (const Piece& it : pieces)
      if (&it != own && (it.use == UsedBytes::kWritten || asked.use == UsedBytes::kWritten))
        is_free &= !it.storage->overlaps(*asked.storage);
    ASSERT_EQ(used.is_free(*asked.storage, asked.use, own ? own->storage.get() : nullptr), is_free) << step;
    if (pieces.size() > 12 || (!pieces.empty() && below(3) == 0)) {
      std::swap(pieces[below(pieces.size())], pieces.back());
      used.remove(*pieces.back().storage, pieces.back().use);
      pieces.pop_back();
    } else if (!pieces.empty() && below(3) == 0) {
      Piece& it = pieces[below(pieces.size())];
      UsedBytes::Use other = it.use == UsedBytes::kRead ? UsedBytes::kWritten : UsedBytes::kRead;
      used.change(*it.storage, it.use, other);
      it.use = other;
    } else {
      used.add(*asked.storage, asked.use);
      pieces.push_back(std::move(asked));
    }
  }
}

// As many slots as parts of a large model's state have. Each call looks at its own slot, not at all of them.
class many_slots : public testing::Test {
 protected:
  static constexpr size_t kSlots = 20000;
  void SetUp() override {
    Graph graph;
    Builder b(graph);
    for (size_t i = 0; i < kSlots; i++) output(b, name("y", i).c_str(), input(b, name("x", i).c_str(), {2}) * 2.0);
    program = *Program::compile(env_with(1), graph, nullptr, nullptr, {});
    exec = Exec::create(program).value();
    for (size_t i = 0; i < kSlots; i++) {
      ASSERT_TRUE(exec->bind(SlotKind::kInput, i, in.emplace_back(noise({2}, static_cast<uint32_t>(i)))).ok());
      ASSERT_TRUE(exec->bind(SlotKind::kOutput, i, out.emplace_back(noise({2}))).ok());
    }
  }
  static std::string name(const char* kind, size_t i) { return kind + std::to_string(i); }
  Code bound(SlotKind kind, size_t slot, const Tensor& tensor) { return exec->bind(kind, slot, tensor).code(); }

  std::shared_ptr<Program> program;
  std::unique_ptr<Exec> exec;
  std::vector<Tensor> in, out;
};

TEST_F(many_slots, overlaps_are_found_whatever_was_bound_and_linked_before) {
  EXPECT_EQ(bound(SlotKind::kOutput, 7, in[kSlots - 1]), Code::kInvalidArgument);
  EXPECT_EQ(bound(SlotKind::kInput, 7, out[9]), Code::kInvalidArgument);
  EXPECT_EQ(bound(SlotKind::kInput, 7, in[9]), Code::kOk) << "two slots may read it";
  EXPECT_EQ(bound(SlotKind::kOutput, 9, in[7]), Code::kOk) << "nobody reads it any more";
  EXPECT_EQ(bound(SlotKind::kInput, 7, in[7]), Code::kInvalidArgument);
  EXPECT_EQ(bound(SlotKind::kOutput, 9, Tensor()), Code::kOk);
  EXPECT_EQ(exec->link(9, 9).code(), Code::kInvalidArgument) << "another slot reads it";
  EXPECT_EQ(bound(SlotKind::kInput, 7, in[7]), Code::kOk);
  EXPECT_EQ(bound(SlotKind::kOutput, 9, out[9]), Code::kOk);
  for (size_t i = 0; i < kSlots; i++) ASSERT_TRUE(exec->link(i, i).ok()) << i;
  EXPECT_EQ(bound(SlotKind::kInput, 7, in[9]), Code::kInvalidArgument) << "runs write it now";
  for (int run = 0; run < 3; run++) ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(bound(SlotKind::kInput, 7, out[9]), Code::kInvalidArgument);
  for (size_t i = 0; i < kSlots; i++) ASSERT_EQ(bound(SlotKind::kInput, i, noise({2})), Code::kOk);
  EXPECT_TRUE(exec->run().ok());
}

}  // namespace rlx
