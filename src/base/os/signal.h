// SPDX-License-Identifier: Apache-2.0
// Waiting between threads of one pool: spin a while, then sleep in the kernel. A hand-off while spinning costs about
// 0.1 us, a sleep and wake-up 20-70 us.
#pragma once

#include <atomic>
#include <cstdint>

namespace rlx {

// How long a waiter spins before it sleeps. Short where threads outnumber cores: the one waited for needs the core.
constexpr int kSpinMicroseconds = 100;

// Counts how often it was raised. A waiter passes the last count that it saw, so it misses no raise.
class Signal {
 public:
  uint32_t now() const { return count_.load(std::memory_order_seq_cst); }
  void raise();  // wakes all that wait
  void wait(uint32_t seen, int spin_microseconds);

 private:
  alignas(64) std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace rlx
