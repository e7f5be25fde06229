// SPDX-License-Identifier: Apache-2.0
// Waiting between threads of one pool: spin a while, then sleep in the kernel. A hand-off while spinning costs about
// 0.1 us, a sleep and wake-up 20-70 us. Invariant: whoever wakes others touches no memory that they may free first.
#pragma once

#include <atomic>
#include <cstdint>

namespace rlx {

// How long a waiter spins before it sleeps. Short where threads outnumber cores: the one waited for needs the core.
constexpr int kSpinMicroseconds = 100;

// Raised by one thread, awaited by another: each signal ends exactly one wait, and a second signal comes only after it.
class Event {
 public:
  void signal();
  void wait(int spin_microseconds);

 private:
  alignas(64) std::atomic<uint32_t> state_{0};
};

// All `members` arrive before any goes on. Reusable at once; every member passes the same count.
class Barrier {
 public:
  // The last to arrive runs `last` before the others go on.
  template <class Last>
  void arrive(uint32_t members, int spin_microseconds, Last last) {
    uint32_t generation = generation_.load(std::memory_order_relaxed);  // cannot move before we arrive
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < members) return wait(generation, spin_microseconds);
    last();
    arrived_.store(0, std::memory_order_relaxed);
    release();
  }

 private:
  void wait(uint32_t generation, int spin_microseconds);
  void release();

  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace rlx
