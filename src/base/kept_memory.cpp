// SPDX-License-Identifier: Apache-2.0
#include "base/kept_memory.h"

#include <bit>

namespace rlx {

// Eight classes between a power of two and the next: at most an eighth of a buffer is unused.
static size_t class_size(size_t bytes) {
  size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

Result<std::shared_ptr<std::byte>> KeptMemory::allocate(size_t bytes, MemoryKind kind) {
  bool is_kept = most_ > 0 && bytes >= kSmallest && bytes <= most_;
  Class of{kind, is_kept ? class_size(bytes) : bytes};
  HostMemory memory;
  if (is_kept) {
    std::lock_guard lock(mutex_);
    if (auto found = kept_.find(of); found != kept_.end() && !found->second.empty()) {
      memory = std::move(found->second.back());
      found->second.pop_back();
      bytes_ -= of.second;
    }
  }
  if (memory.data())
    memory.count_again();
  else
    memory = RLX_TRY(HostMemory::allocate(host_, of.second, kind));
  auto held = std::make_shared<HostMemory>(std::move(memory));
  std::byte* data = held->data();
  if (!is_kept) return std::shared_ptr<std::byte>(std::move(held), data);
  auto give_back = [self = shared_from_this(), held, of](std::byte*) { self->take_back(std::move(*held), of); };
  return std::shared_ptr<std::byte>(data, std::move(give_back));
}

// What does not fit any more goes when this returns, without the lock.
void KeptMemory::take_back(HostMemory memory, Class of) {
  std::lock_guard lock(mutex_);
  if (bytes_ + of.second > most_) return;
  memory.count_as_gone();
  try {
    kept_[of].push_back(std::move(memory));
  } catch (const std::bad_alloc&) {
    memory.count_again();
    return;
  }
  bytes_ += of.second;
}

void KeptMemory::trim() {
  std::map<Class, std::vector<HostMemory>> gone;
  {
    std::lock_guard lock(mutex_);
    gone.swap(kept_);
    bytes_ = 0;
  }
  for (auto& [of, list] : gone)
    for (HostMemory& memory : list) memory.count_again();  // it is counted out by its destructor
}

int64_t KeptMemory::bytes() const {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(bytes_);
}

}  // namespace rlx
