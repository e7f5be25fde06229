// SPDX-License-Identifier: Apache-2.0
// Whether a thread is inside a callback of the host. A thread that waits for it asks: the callback may itself be
// waiting for the thread that asks.
#pragma once

#include <atomic>
#include <cstdint>

namespace rlx {

class HostCalls {
 public:
  static HostCalls& of_this_thread() {
    static thread_local HostCalls calls;
    return calls;
  }
  // Odd inside a callback, and another number for each one. A callback within a callback does not count.
  uint64_t number() const { return number_.load(std::memory_order_acquire); }
  bool is_inside_since(uint64_t number) const { return number % 2 == 1 && this->number() == number; }

  class Call {
   public:
    Call() {
      if (calls_.depth_++ == 0) calls_.count();
    }
    ~Call() {
      if (--calls_.depth_ == 0) calls_.count();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    HostCalls& calls_ = of_this_thread();
  };

 private:
  // Only its own thread writes the number.
  void count() { number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  std::atomic<uint64_t> number_{0};
  int depth_ = 0;
};

}  // namespace rlx
