// SPDX-License-Identifier: Apache-2.0
// Room: device memory that is allocated when its size is known, and kept. Invariants: a holder of a share keeps the old
// bytes when the room gets other memory; only `trim` makes a room smaller.
#pragma once

#include <atomic>

#include "device/device.h"

namespace rlx {

class Room {
 public:
  // Makes it at least `bytes` large and keeps the first `kept` bytes. It grows by at least half its size, so n steps
  // cost O(n).
  Status reserve(Device& device, int64_t bytes, int64_t kept = 0);
  // Before the first write of a run, when nobody needs its bytes: a large room for which a quarter was enough in
  // kPatience runs gets memory of the size that the last one needed.
  Status trim(Device& device);
  Place place() const { return buffer_ ? Place(*buffer_, 0) : Place(); }
  const std::shared_ptr<Buffer>& share() const { return buffer_; }  // null before the first reserve
  // Whether its bytes lie in this buffer. Any thread may ask, also while a run on another thread lets the room grow.
  bool lies_in(const Buffer& buffer) const { return now_.load(std::memory_order_relaxed) == &buffer; }
  int64_t needed() const { return needed_; }  // the most bytes that were reserved since the last trim
  int64_t capacity() const { return buffer_ ? static_cast<int64_t>(buffer_->size()) : 0; }

  static constexpr int64_t kLarge = int64_t{1} << 20;  // bytes
  static constexpr int kPatience = 64;

 private:
  void take(std::shared_ptr<Buffer> next);

  std::shared_ptr<Buffer> buffer_;
  std::atomic<const Buffer*> now_{nullptr};  // `buffer_`, to be compared only
  int64_t needed_ = 0;
  int in_vain_ = 0;  // how many runs in a row did not need most of it
};

}  // namespace rlx
