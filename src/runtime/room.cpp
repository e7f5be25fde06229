// SPDX-License-Identifier: Apache-2.0
#include "runtime/room.h"

#include <algorithm>

namespace rlx {

bool Room::is_far_too_large(int64_t bytes) {
  if (capacity() < kLarge || bytes >= capacity() / 4)
    in_vain_ = 0;
  else
    in_vain_++;
  return in_vain_ > kPatience;
}

Status Room::reserve(Device& device, int64_t bytes, int64_t kept) {
  bool shrinks = kept == 0 && is_far_too_large(bytes);
  if (buffer_ && bytes <= capacity() && !shrinks) return {};
  int64_t wanted = buffer_ && !shrinks ? std::max(bytes, capacity() + capacity() / 2) : bytes;
  auto next = RLX_TRY(device.allocate(static_cast<size_t>(wanted), MemoryKind::kTensor));
  if (kept) RLX_TRY(copy_bytes({*next, 0}, place(), static_cast<size_t>(kept)));
  buffer_ = std::move(next);
  in_vain_ = 0;
  return {};
}

}  // namespace rlx
