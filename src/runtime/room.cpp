// SPDX-License-Identifier: Apache-2.0
#include "runtime/room.h"

#include <algorithm>
#include <utility>

namespace rlx {

Status Room::reserve(Device& device, int64_t bytes, int64_t kept) {
  if (buffer_ && bytes <= capacity()) {
    needed_ = std::max(needed_, bytes);
    return {};
  }
  int64_t wanted = buffer_ ? std::max(bytes, capacity() + capacity() / 2) : bytes;
  auto next = RLX_TRY(device.allocate(static_cast<size_t>(wanted), MemoryKind::kTensor));
  if (kept) RLX_TRY(copy_bytes({*next, 0}, place(), static_cast<size_t>(kept)));
  take(std::move(next));
  needed_ = bytes;
  return {};
}

Status Room::trim(Device& device) {
  int64_t needed = std::max<int64_t>(std::exchange(needed_, 0), 1);
  in_vain_ = capacity() >= kLarge && needed < capacity() / 4 ? in_vain_ + 1 : 0;
  if (in_vain_ < kPatience) return {};
  take(RLX_TRY(device.allocate(static_cast<size_t>(needed), MemoryKind::kTensor)));
  in_vain_ = 0;
  return {};
}

void Room::take(std::shared_ptr<Buffer> next) {
  buffer_ = std::move(next);
  now_.store(buffer_.get(), std::memory_order_relaxed);
}

}  // namespace rlx
