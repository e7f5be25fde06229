// SPDX-License-Identifier: Apache-2.0
// Buffers for kernel tests, at any misalignment. On both sides of the values lie guards: NaN with a payload of its own.
// A kernel that writes outside changes a guard, and one that reads outside spreads NaN.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace rlx::cpu {

inline constexpr uint32_t kPoison = 0x7fc0dead;

class Guarded {
 public:
  // `offset` floats (0..15) behind a 64-byte border.
  explicit Guarded(int64_t count, int offset = 1) : count_(count), storage_(count + 2 * kGuard + 32) {
    for (float& f : storage_) std::memcpy(&f, &kPoison, 4);
    auto address = reinterpret_cast<uintptr_t>(storage_.data());
    first_ = (64 - address % 64) % 64 / 4 + kGuard + offset;
  }
  static Guarded random(int64_t count, std::mt19937& rng, float lo = -1, float hi = 1, int offset = 1) {
    Guarded g(count, offset);
    std::uniform_real_distribution<float> uniform(lo, hi);
    for (int64_t i = 0; i < count; ++i) g[i] = uniform(rng);
    return g;
  }
  float* data() { return storage_.data() + first_; }
  const float* data() const { return storage_.data() + first_; }
  float& operator[](int64_t i) { return data()[i]; }
  float operator[](int64_t i) const { return data()[i]; }
  int64_t size() const { return count_; }

  bool guards_intact() const {
    for (int64_t i = 0; i < static_cast<int64_t>(storage_.size()); ++i) {
      bool inside = i >= first_ && i < first_ + count_;
      if (!inside && std::memcmp(&storage_[i], &kPoison, 4) != 0) return false;
    }
    return true;
  }
  bool same_bits(const Guarded& other) const {
    return count_ == other.count_ && (count_ == 0 || std::memcmp(data(), other.data(), count_ * 4) == 0);
  }

 private:
  static constexpr int64_t kGuard = 64;
  int64_t count_;
  std::vector<float> storage_;
  int64_t first_;
};

// Runs a loop as one piece, and again part by part from the last to the first.
template <class L, class Args>
void run_whole(const L& loop, const Args& args) {
  loop.run(args, 0, loop.parts(args));
}
template <class L, class Args>
void run_backwards(const L& loop, const Args& args) {
  for (int64_t i = loop.parts(args); i-- > 0;) loop.run(args, i, i + 1);
}

inline bool same_special(double got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  return std::isinf(want) && got == want;
}

}  // namespace rlx::cpu
