// SPDX-License-Identifier: Apache-2.0
// What an object is after a change for which memory did not suffice: what it was before, and good for the next change.
#include "base/kept_memory.h"
#include "runtime/weights.h"
#include "tests/allocation/counting.h"
#include "tests/unit/programs.h"

namespace rlx::test {

using namespace testing_programs;

// A change that is tried again and again on a new object: once its first allocation fails, then its second, until none
// is left to fail.
class Failures {
 public:
  bool are_left() const { return was_met_; }
  // Returns whether the change was made.
  bool try_to(const std::function<void()>& change) {
    FailingAllocation failure(nth_++);
    bool is_made = true;
    try {
      change();
    } catch (const std::bad_alloc&) {
      is_made = false;
    }
    was_met_ = failure.was_met();
    return is_made;
  }

 private:
  int64_t nth_ = 0;
  bool was_met_ = true;
};

TEST(failures, a_buffer_that_cannot_be_kept_is_freed) {
  for (Failures failures; failures.are_left();) {
    auto host = Host::library();
    auto kept = std::make_shared<KeptMemory>(host, size_t{1} << 20);
    auto buffer = *kept->allocate(100000, MemoryKind::kTensor);
    EXPECT_TRUE(failures.try_to([&] { buffer = nullptr; }));
    EXPECT_EQ(kept->bytes() == 0, failures.are_left());
    EXPECT_EQ(host->counts(MemoryKind::kTensor).bytes, 0);
    (void)*kept->allocate(100000, MemoryKind::kTensor);
    EXPECT_GT(kept->bytes(), 0);
    kept->trim();
    EXPECT_EQ(host->counts(MemoryKind::kTensor).bytes, 0);
  }
}

TEST(failures, metadata_is_there_or_not) {
  for (Failures failures; failures.are_left();) {
    Weights weights;
    std::string key(100, 'k');
    bool is_set = failures.try_to([&] { weights.set_metadata(key, "1"); });
    weights.set_metadata("other", "2");
    weights.set_metadata(key, "3");
    std::string first = " \"" + key + "\": \"3\"", second = " \"other\": \"2\"";
    if (!is_set) std::swap(first, second);
    EXPECT_EQ(*weights.report("metadata"), "{\n" + first + ",\n" + second + "\n}\n");
  }
}

TEST(failures, a_weight_is_there_or_not) {
  for (Failures failures; failures.are_left();) {
    Weights weights;
    Tensor tensor = noise({4}, 1), other = noise({4}, 2);
    std::string long_name(100, 'n');
    bool is_put = failures.try_to([&] { EXPECT_TRUE(weights.put(long_name, tensor).ok()); });
    EXPECT_EQ(weights.count(), is_put ? 1u : 0u);
    EXPECT_TRUE(weights.put("other", other).ok());
    EXPECT_EQ(weights.find("other").storage(), other.storage());
    EXPECT_TRUE(weights.put(long_name, tensor).ok());
    EXPECT_EQ(weights.find(long_name).storage(), tensor.storage());
  }
}

}  // namespace rlx::test
