// SPDX-License-Identifier: Apache-2.0
// Room: memory of a device that is made when its size is known, and kept. Invariant: who holds a share of it keeps the
// bytes when it grows.
#pragma once

#include "device/device.h"

namespace rlx {

class Room {
 public:
  // At least so large; the first `kept` bytes stay. It grows by half of itself or more, so n steps cost O(n). Where a
  // quarter would have been enough kPatience times in a row, what is large is given back.
  Status reserve(Device& device, int64_t bytes, int64_t kept = 0);
  Place place() const { return buffer_ ? Place(*buffer_, 0) : Place(); }
  const std::shared_ptr<Buffer>& share() const { return buffer_; }  // null: nothing was reserved yet
  int64_t capacity() const { return buffer_ ? static_cast<int64_t>(buffer_->size()) : 0; }

  static constexpr int64_t kLarge = int64_t{1} << 20;  // bytes
  static constexpr int kPatience = 64;

 private:
  bool is_far_too_large(int64_t bytes);

  std::shared_ptr<Buffer> buffer_;
  int in_vain_ = 0;  // how often in a row most of it was not needed
};

}  // namespace rlx
