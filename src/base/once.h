// SPDX-License-Identifier: Apache-2.0
// Once: does something once, on whichever thread comes first. If that throws, the next call tries again. For work that
// may throw, in place of std::call_once: there an exception passes through libc, which loads libgcc_s to go on, and
// ends the process if there is no memory for that.
#pragma once

#include <atomic>
#include <mutex>

namespace rlx {

class Once {
 public:
  template <class Work>
  void call(Work&& work) {
    if (is_done_.load(std::memory_order_acquire)) return;
    std::lock_guard lock(mutex_);
    if (is_done_.load(std::memory_order_relaxed)) return;
    work();
    is_done_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> is_done_{false};
  std::mutex mutex_;
};

}  // namespace rlx
