// SPDX-License-Identifier: Apache-2.0
// Versions of a list that share what has not changed.
#include "base/shared_vector.h"

#include <gtest/gtest.h>

namespace rlx {

// An item that counts its copies.
struct Counted {
  int value = 0;
  static inline size_t copies = 0;
  Counted(int number = 0) : value(number) {}  // NOLINT: a number is an item
  Counted(const Counted& other) : value(other.value) { copies++; }
  Counted(Counted&&) = default;
  Counted& operator=(const Counted& other) {
    value = other.value;
    copies++;
    return *this;
  }
  Counted& operator=(Counted&&) = default;
};

static SharedVector<Counted> counting(size_t count) {
  std::vector<Counted> items;
  for (size_t i = 0; i < count; i++) items.emplace_back(static_cast<int>(i));
  return SharedVector<Counted>(std::move(items));
}

TEST(shared_vector, holds_every_item_at_every_size) {
  for (size_t count : {0, 1, 31, 32, 33, 64, 1023, 1024, 1025, 32768, 40000}) {
    SharedVector<Counted> vector = counting(count);
    EXPECT_EQ(vector.size(), count);
    for (size_t i = 0; i < count; i++) ASSERT_EQ(vector[i].value, static_cast<int>(i)) << count;
  }
}

TEST(shared_vector, a_version_has_its_changes_and_leaves_the_one_before) {
  SharedVector<Counted> before = counting(5000);
  SharedVector<Counted> after = before.with({{4999, {-1}}, {0, {-2}}, {33, {-3}}, {33, {-4}}});
  for (size_t i = 0; i < 5000; i++) {
    EXPECT_EQ(before[i].value, static_cast<int>(i));
    EXPECT_EQ(after[i].value, i == 4999 ? -1 : i == 0 ? -2 : i == 33 ? -4 : static_cast<int>(i));
  }
}

// What setting params one by one rests on.
TEST(shared_vector, a_change_copies_a_bounded_part_of_a_list_of_any_length) {
  for (size_t count : {1000, 100000}) {
    SharedVector<Counted> vector = counting(count);
    Counted::copies = 0;
    for (size_t i = 0; i < 100; i++) vector = vector.with({{i * (count / 100), {7}}});
    EXPECT_LT(Counted::copies, 100u * 40) << count;
  }
}

}  // namespace rlx
