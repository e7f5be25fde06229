// SPDX-License-Identifier: Apache-2.0
#include "runtime/room.h"

#include <algorithm>

namespace rlx {

Status Room::reserve(Device& device, int64_t bytes, int64_t kept) {
  if (buffer_ && bytes <= capacity()) return {};
  int64_t wanted = buffer_ ? std::max(bytes, capacity() + capacity() / 2) : bytes;
  auto next = RLX_TRY(device.allocate(static_cast<size_t>(wanted), MemoryKind::kTensor));
  if (kept) RLX_TRY(copy_bytes({*next, 0}, place(), static_cast<size_t>(kept)));
  buffer_ = std::move(next);
  return {};
}

}  // namespace rlx
