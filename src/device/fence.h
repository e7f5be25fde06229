// SPDX-License-Identifier: Apache-2.0
// Fence: whether work is done, and with what status. Copies share one state; what is done stays done.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"

namespace rlx {

class Fence {
 public:
  Fence();  // not done yet
  static Fence finished(Status result);

  void signal(Status result) const;  // the first call counts
  bool is_done() const;
  Status result() const;  // of the work; success until it is done
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

}  // namespace rlx
