// SPDX-License-Identifier: Apache-2.0
// Cancelling: a run has a number, and all runs up to a number may be cancelled at once. cancel() and is_set() are
// async-signal-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace rlx {

// Counts the runs that one caller submits, and which of them are cancelled.
class Cancellation {
 public:
  uint64_t next() { return submitted_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // The number only grows, even if another thread cancels meanwhile and has seen fewer runs.
  void cancel() {
    uint64_t last = submitted_.load(std::memory_order_relaxed), known = cancelled_.load(std::memory_order_relaxed);
    while (known < last && !cancelled_.compare_exchange_weak(known, last, std::memory_order_relaxed)) continue;
  }

 private:
  friend class CancelToken;
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  std::atomic<uint64_t> submitted_{0}, cancelled_{0};  // the numbers of the last run of each kind
};

// Tells whether one run is cancelled. The default token never is.
class CancelToken {
 public:
  CancelToken() = default;
  CancelToken(const Cancellation& all, uint64_t run) : all_(&all), run_(run) {}
  bool is_set() const { return all_ && all_->cancelled_.load(std::memory_order_relaxed) >= run_; }

 private:
  const Cancellation* all_ = nullptr;
  uint64_t run_ = 0;
};

// The result of a run that was cancelled.
inline Status cancelled() {
  return Status(Code::kCancelled, "the run was cancelled");
}

}  // namespace rlx
