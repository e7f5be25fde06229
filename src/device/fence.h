// SPDX-License-Identifier: Apache-2.0
// Fence: whether work is done, and with what status. Copies share one state; what is done stays done. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"

namespace rlx {

class FenceWaiter;

// Work that threads which wait may do.
class Helper {
 public:
  virtual ~Helper() = default;
  // Does a piece of it. False: there is none now. `has_time`: the caller may be away for as long as a piece takes.
  virtual bool help(bool has_time) = 0;
  // From here on, and until `leave`, the waiter is told of new pieces.
  virtual void join(const std::shared_ptr<FenceWaiter>& waiter) = 0;
  virtual void leave(const std::shared_ptr<FenceWaiter>& waiter) = 0;
};

class Fence {
 public:
  explicit Fence(std::shared_ptr<Helper> helper = nullptr);  // not done yet
  static Fence finished(Status result);

  bool signal(Status result) const;  // the first call counts: false for later ones
  bool is_done() const;
  Status result() const;  // of the work; success until it is done
  // Calls `next` once it is done, at once if it is, on the thread that signals. `next` does not throw.
  void then(std::function<void()> next) const;
  // Its own failure only: RLX_E_TIMEOUT.
  static Status wait(std::span<const Fence> fences, bool all, uint64_t timeout_ns, size_t* which);
  static constexpr uint64_t kForever = UINT64_MAX;
  // Readable once it is done; the caller closes it.
  Result<int> export_fd() const;
  bool operator==(const Fence& other) const { return state_ == other.state_; }

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A thread that waits: whoever has news for it calls `tell`.
class FenceWaiter {
 public:
  FenceWaiter();
  ~FenceWaiter();
  void tell();

 private:
  friend class Fence;
  struct Events;
  std::unique_ptr<Events> events_;
};

}  // namespace rlx
