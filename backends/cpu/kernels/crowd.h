// SPDX-License-Identifier: Apache-2.0
// Counts updates by their places, to find whether one place has too many. Places share counters, by a hash.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/movement.h"

namespace rlx::cpu {

class Crowd {
 public:
  // Counts the updates at base + at[i], but not where at[i] < 0. Returns whether a place may now have more than
  // kMaxUpdates.
  bool exceeds_with(int64_t base, const int64_t* at, int64_t count) {
    bool exceeds = false;
    for (int64_t i = 0; i < count; i++)
      if (at[i] >= 0) exceeds |= ++hits_[hash(base + at[i])] > kMaxUpdates;
    return exceeds;
  }

 private:
  static constexpr int kBits = 14;
  static uint64_t hash(int64_t place) { return static_cast<uint64_t>(place) * 0x9e3779b97f4a7c15 >> (64 - kBits); }

  uint16_t hits_[1 << kBits] = {};
};

}  // namespace rlx::cpu
