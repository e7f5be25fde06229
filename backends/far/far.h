// SPDX-License-Identifier: Apache-2.0
// The device "far", for tests: the CPU's kernels over memory that the host cannot address, on a thread of its own. It
// proves that the layers above need only the device interface, and it fails where a test asks it to. It is not part of
// the library.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string_view>

#include "device/registry.h"

namespace rlx::far {

// The acts of a device that may fail. kLoss: the device is lost during a submit.
enum class Act { kOpen, kAllocate, kCompile, kTransfer, kSubmit, kLoss };
inline constexpr std::array<std::string_view, 6> kActs = {"open", "allocate", "compile", "transfer", "submit", "loss"};

// Makes the n-th act of a kind fail, counted from 0 since the request. Thread-safe.
class Faults {
 public:
  void plan(Act act, int64_t nth);
  void clear();
  int64_t count(Act act) const { return seen_[static_cast<size_t>(act)]; }
  // RLX_E_NO_MEMORY for an allocation, RLX_E_UNAVAILABLE for a loss and from then on, else RLX_E_UNKNOWN.
  Status next(Act act);

 private:
  std::array<std::atomic<int64_t>, kActs.size()> seen_{}, failing_{-1, -1, -1, -1, -1, -1};
  std::atomic<bool> is_lost_{false};
};

// The backend, to be opened in addition to the library's own. `faults` may be null, and so may `lacks`, which says for
// which ops it has no kernel.
BackendEntry backend(std::shared_ptr<Faults> faults = nullptr, std::function<bool(Op)> lacks = nullptr);

// The devices "poor:0", "poor:1" and so on; each lacks a random half of the ops.
inline constexpr int kPoorDevices = 8;
BackendEntry poor_backend();

}  // namespace rlx::far
