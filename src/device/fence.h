// SPDX-License-Identifier: Apache-2.0
// Fence: whether work is done, and with what status. Copies share one state. A fence that is done stays done.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"

namespace rlx {

class FenceWaiter;

// Work that waiting threads can help with.
class Helper {
 public:
  virtual ~Helper() = default;
  // Does one piece of the work. Returns false if there is none now, or none that a caller with a deadline should begin:
  // a piece may take longer than it has.
  enum class Time : bool { kLimited, kUnlimited };
  virtual bool help(Time time) = 0;
  // Until `leave`, the waiter is told of new pieces of work.
  virtual void join(const std::shared_ptr<FenceWaiter>& waiter) = 0;
  virtual void leave(const std::shared_ptr<FenceWaiter>& waiter) = 0;
  // The microseconds that a waiter stays awake before it sleeps.
  virtual int spin() const = 0;
};

class Fence {
 public:
  explicit Fence(std::shared_ptr<Helper> helper = nullptr);  // not done yet
  static Fence finished(Status result);

  bool signal(Status result) const;  // only the first call counts; returns false for later ones
  bool is_done() const;
  Status result() const;  // of the work; success until it is done
  // Calls `next` with the result of the work once the fence is done: on the thread that signals it, or at once if it is
  // done already. `next` must not throw.
  void then(std::function<void(const Status& result)> next) const;
  // Fails only with RLX_E_TIMEOUT; the results of the fences are not returned.
  static constexpr uint64_t kForever = UINT64_MAX;
  enum class Until : uint8_t { kAny, kAll };
  static Status wait(Until until, std::span<const Fence> fences, uint64_t timeout_ns = kForever,
                     size_t* which = nullptr);
  static Status wait_all(std::span<const Fence> fences) { return wait(Until::kAll, fences); }
  Status wait() const { return wait_all({this, 1}); }
  // A file descriptor that is readable once the fence is done. The caller closes it.
  Result<int> export_fd() const;
  bool operator==(const Fence& other) const { return state_ == other.state_; }

 private:
  struct State;
  class Waiting;
  std::shared_ptr<State> state_;
};

// A thread that waits. `notify` wakes it to look again.
class FenceWaiter {
 public:
  FenceWaiter();
  ~FenceWaiter();
  void notify();

 private:
  friend class Fence;
  struct Events;
  std::unique_ptr<Events> events_;
};

}  // namespace rlx
