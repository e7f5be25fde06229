// SPDX-License-Identifier: Apache-2.0
// Signal over futex(2). A wake-up is never lost: a waiter announces that it sleeps by an atomic that the waker reads
// after its own store, and the kernel compares the count again before it puts anybody to sleep.
#include "base/os/signal.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

namespace rlx {

static constexpr int kPausesPerLook = 32;  // reading the clock costs more than a pause

// Spins until `done` is true or the time is over, and returns `done`. Most waits end before the clock is read once.
template <class Done>
static bool spin(int microseconds, Done done) {
  auto look = [&] {
    for (int i = 0; i < kPausesPerLook; i++) {
      if (done()) return true;
      _mm_pause();
    }
    return false;
  };
  if (look()) return true;
  auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (std::chrono::steady_clock::now() < end) {
    if (look()) return true;
  }
  return false;
}

void Signal::raise() {
  count_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0)
    syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Signal::wait(uint32_t seen, int spin_microseconds) {
  auto raised = [&] { return now() != seen; };
  if (spin(spin_microseconds, raised)) return;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!raised()) syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);  // may return early
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace rlx
