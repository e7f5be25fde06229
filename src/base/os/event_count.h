// SPDX-License-Identifier: Apache-2.0
// How threads of one pool wait for each other: they spin for a while, then sleep in the kernel. A hand-off to a
// spinning thread takes about 0.1 us, to a sleeping one 20-70 us.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace rlx {

// How long a waiter spins before it sleeps. The time is short where threads outnumber cores, because the thread that it
// waits for may need its core.
constexpr int kSpinMicroseconds = 100, kShortSpinMicroseconds = 1;

using SpinClock = std::chrono::steady_clock;

// Spins for about a microsecond without reading the clock: most waits end here.
template <class Done>
bool spin_briefly(Done done) {
  for (int i = 0; i < 32; i++) {
    if (done()) return true;
    __builtin_ia32_pause();
  }
  return false;
}

// Spins until `done` is true or the time is over. Returns whether `done` is true.
template <class Done>
bool spin_until(SpinClock::time_point end, Done done) {
  while (SpinClock::now() < end) {
    if (spin_briefly(done)) return true;
  }
  return false;
}

// An event count. One side raises it after it has changed something; the other reads the count, looks for the change,
// and if there is none waits for another count. So it misses no raise.
class EventCount {
 public:
  uint32_t now() const { return count_.load(std::memory_order_seq_cst); }
  void raise(uint32_t by = 1);                      // wakes all that wait
  void wait(uint32_t seen, int spin_microseconds);  // until the count is another one; 0: sleeps at once

 private:
  alignas(64) std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace rlx
