// SPDX-License-Identifier: Apache-2.0
// EventCount over futex(2). A wake-up is never lost. A waiter sets an atomic before it sleeps; the waker reads that
// atomic after its own store; and the kernel compares the count again before it puts a thread to sleep.
#include "base/os/event_count.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace rlx {

void EventCount::raise(uint32_t by) {
  count_.fetch_add(by, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0)
    syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void EventCount::wait(uint32_t seen, int spin_microseconds) {
  auto raised = [&] { return now() != seen; };
  if (spin_microseconds > 0) {
    if (spin_briefly(raised)) return;
    if (spin_until(SpinClock::now() + std::chrono::microseconds(spin_microseconds), raised)) return;
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!raised()) syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);  // may return early
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace rlx
