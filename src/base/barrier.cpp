// SPDX-License-Identifier: Apache-2.0
// Event and Barrier over futex(2). A wake-up is never lost: a waiter announces that it sleeps by an atomic that the
// waker reads after its own store, and the kernel compares the word again before it puts anybody to sleep.
#include "base/barrier.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

namespace rlx {
namespace {

constexpr uint32_t kIdle = 0, kAsleep = 1, kRaised = 2;  // of Event::state_
constexpr int kPausesPerLook = 32;                       // at the clock, which costs more than a pause

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);  // early returns: the callers loop
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Looks until `done` is true or the time is over; says whether it came true. Most waits end before the first look at
// the clock.
template <class Done>
bool spin(int microseconds, Done done) {
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

}  // namespace

void Event::signal() {
  if (state_.exchange(kRaised, std::memory_order_acq_rel) == kAsleep) futex_wake(state_, 1);
}

void Event::wait(int spin_microseconds) {
  auto raised = [this] { return state_.load(std::memory_order_acquire) == kRaised; };
  if (!spin(spin_microseconds, raised)) {
    uint32_t idle = kIdle;
    state_.compare_exchange_strong(idle, kAsleep, std::memory_order_acq_rel);  // fails only where it was just raised
    while (!raised()) futex_wait(state_, kAsleep);
  }
  state_.store(kIdle, std::memory_order_relaxed);
}

void Barrier::wait(uint32_t generation, int spin_microseconds) {
  auto released = [&] { return generation_.load(std::memory_order_seq_cst) != generation; };
  if (spin(spin_microseconds, released)) return;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!released()) futex_wait(generation_, generation);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Barrier::release() {
  generation_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(generation_, INT_MAX);
}

}  // namespace rlx
