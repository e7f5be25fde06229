// SPDX-License-Identifier: Apache-2.0
#include "base/kept_memory.h"

#include <bit>

namespace rlx {

// Eight classes between a power of two and the next: at most an eighth of a buffer is unused.
static size_t class_size(size_t bytes) {
  size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

// What was allocated, and who takes it back: null where nobody does.
class KeptMemory::Held : public Buffer {
 public:
  Held(HostMemory memory, size_t bytes, std::shared_ptr<KeptMemory> home, Class of)
      : memory_(std::move(memory)), bytes_(bytes), home_(std::move(home)), of_(of) {}
  ~Held() override {
    if (home_) home_->take_back(std::move(memory_), of_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  size_t size() const override { return bytes_; }
  std::byte* host() const override { return memory_.data(); }

 private:
  HostMemory memory_;
  size_t bytes_;
  std::shared_ptr<KeptMemory> home_;
  Class of_;
};

Result<std::shared_ptr<Buffer>> KeptMemory::allocate(size_t bytes, MemoryKind kind) {
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
  std::shared_ptr<KeptMemory> home = is_kept ? shared_from_this() : nullptr;
  return std::shared_ptr<Buffer>(std::make_shared<Held>(std::move(memory), bytes, std::move(home), of));
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
