// SPDX-License-Identifier: Apache-2.0
// GrowingMemory: memory of an exec that is made when its size is known, and kept. Invariant: it never shrinks, and what
// holds a share of it keeps the bytes when it grows.
#pragma once

#include <memory>

#include "base/allocator.h"

namespace rlx {

class GrowingMemory {
 public:
  // At least so large; the first `kept` bytes stay. It grows by half of itself or more, so n steps cost O(n).
  Status reserve(const std::shared_ptr<Host>& host, int64_t bytes, int64_t kept = 0);
  std::byte* data() const { return data_.get(); }
  const std::shared_ptr<std::byte>& share() const { return data_; }
  int64_t capacity() const { return capacity_; }

 private:
  std::shared_ptr<std::byte> data_;
  int64_t capacity_ = 0;
};

}  // namespace rlx
