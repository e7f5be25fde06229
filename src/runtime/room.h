// SPDX-License-Identifier: Apache-2.0
// Room: device memory that is allocated when its size is known, and kept. Invariant: a holder of a share keeps the old
// bytes when the room grows.
#pragma once

#include "device/device.h"

namespace rlx {

class Room {
 public:
  // Makes it at least `bytes` large and keeps the first `kept` bytes. It grows by at least half its size, so n steps
  // cost O(n). A large one shrinks when a quarter of it was enough kPatience times in a row.
  Status reserve(Device& device, int64_t bytes, int64_t kept = 0);
  Place place() const { return buffer_ ? Place(*buffer_, 0) : Place(); }
  const std::shared_ptr<Buffer>& share() const { return buffer_; }  // null before the first reserve
  int64_t capacity() const { return buffer_ ? static_cast<int64_t>(buffer_->size()) : 0; }

  static constexpr int64_t kLarge = int64_t{1} << 20;  // bytes
  static constexpr int kPatience = 64;

 private:
  bool is_far_too_large(int64_t bytes);

  std::shared_ptr<Buffer> buffer_;
  int in_vain_ = 0;  // how often in a row most of it was not needed
};

}  // namespace rlx
