// SPDX-License-Identifier: Apache-2.0
#include "runtime/growing.h"

#include <algorithm>
#include <cstring>

namespace rlx {

Status GrowingMemory::reserve(const std::shared_ptr<Host>& host, int64_t bytes, int64_t kept) {
  if (data_ && bytes <= capacity_) return {};
  int64_t wanted = data_ ? std::max(bytes, capacity_ + capacity_ / 2) : bytes;
  auto memory = std::make_shared<HostMemory>(
      RLX_TRY(HostMemory::allocate(host, static_cast<size_t>(wanted), MemoryKind::kTensor)));
  std::shared_ptr<std::byte> next(memory, memory->data());
  if (kept) std::memcpy(next.get(), data_.get(), static_cast<size_t>(kept));
  data_ = std::move(next);
  capacity_ = wanted;
  return {};
}

}  // namespace rlx
