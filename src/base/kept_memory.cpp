// SPDX-License-Identifier: Apache-2.0
#include "base/kept_memory.h"

#include <bit>

#include "base/round_up.h"

namespace rlx {

// Eight classes between a power of two and the next: at most an eighth of a buffer is unused.
static size_t class_size(size_t bytes) {
  size_t step = std::bit_floor(bytes) / 8;
  return round_up(bytes, step);
}

// Allocated memory, and the KeptMemory that takes it back; null if it is simply freed.
class KeptMemory::Held : public Buffer {
 public:
  Held(HostMemory&& memory, size_t bytes, std::shared_ptr<KeptMemory> home, SizeClass key)
      : memory_(std::move(memory)), bytes_(bytes), home_(std::move(home)), key_(key) {}
  ~Held() override {
    if (home_) home_->take_back(std::move(memory_), key_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  size_t size() const override { return bytes_; }
  std::byte* host() const override { return memory_.data(); }

 private:
  HostMemory memory_;
  size_t bytes_;
  std::shared_ptr<KeptMemory> home_;
  SizeClass key_;
};

struct KeptMemory::Whole {
  template <class... Arguments>
  explicit Whole(Arguments&&... of_buffer) : buffer(std::forward<Arguments>(of_buffer)...), storage(buffer) {}
  Held buffer;
  Storage storage;
};

// Allocates memory of a class. A failure says how many bytes were asked for, not how many the class has.
Result<HostMemory> KeptMemory::allocated(SizeClass key, size_t asked) const {
  auto memory = HostMemory::allocate(host_, key.second, key.first);
  if (memory.ok() || memory.status().code() != Code::kNoMemory || asked == 0) return memory;
  return no_memory_for(asked, key.first);
}

template <class Object>
Result<std::shared_ptr<Object>> KeptMemory::make(size_t bytes, MemoryKind kind) {
  bool is_kept = most_ > 0 && bytes >= kSmallest && bytes <= most_;
  SizeClass key{kind, is_kept ? class_size(bytes) : bytes};
  if (!is_kept) return std::make_shared<Object>(RLX_TRY(allocated(key, bytes)), bytes, nullptr, key);
  HostMemory memory = take_kept(key);
  if (memory.data())
    memory.count_again();
  else
    memory = RLX_TRY(allocated(key, bytes));
  return std::make_shared<Object>(std::move(memory), bytes, shared_from_this(), key);
}

Result<std::shared_ptr<Buffer>> KeptMemory::allocate(size_t bytes, MemoryKind kind) {
  return std::shared_ptr<Buffer>(RLX_TRY(make<Held>(bytes, kind)));
}

Result<std::shared_ptr<Storage>> KeptMemory::allocate_storage(size_t bytes, MemoryKind kind) {
  std::shared_ptr<Whole> whole = RLX_TRY(make<Whole>(bytes, kind));
  Storage* storage = &whole->storage;
  return std::shared_ptr<Storage>(std::move(whole), storage);
}

// Empty if no buffer of the class is kept.
HostMemory KeptMemory::take_kept(SizeClass key) {
  std::lock_guard lock(mutex_);
  auto found = kept_.find(key);
  if (found == kept_.end() || found->second.empty()) return {};
  HostMemory memory = std::move(found->second.back().memory);
  found->second.pop_back();
  bytes_ -= key.second;
  return memory;
}

// Frees memory above the limit, and a buffer that nobody has wanted for long. This happens at the end, after the lock
// is released.
void KeptMemory::take_back(HostMemory memory, SizeClass key) {
  HostMemory unwanted;
  std::lock_guard lock(mutex_);
  returns_++;
  if (returns_ > kPatience) unwanted = take_oldest(returns_ - kPatience);
  if (bytes_ + key.second > most_) return;
  try {
    Kept& place = kept_[key].emplace_back();  // without memory for it, the buffer is freed
    memory.count_as_gone();
    place = {std::move(memory), returns_};
    bytes_ += key.second;
  } catch (const std::bad_alloc&) {}
}

HostMemory KeptMemory::take_oldest(uint64_t before) {
  HostMemory taken;
  for (auto& [key, list] : kept_) {
    if (list.empty() || list.front().since >= before) continue;
    taken = std::move(list.front().memory);
    list.erase(list.begin());
    bytes_ -= key.second;
    taken.count_again();  // its destructor counts it out
    break;
  }
  return taken;
}

void KeptMemory::trim() {
  decltype(kept_) gone;
  {
    std::lock_guard lock(mutex_);
    gone.swap(kept_);
    bytes_ = 0;
  }
  for (auto& [key, list] : gone)
    for (Kept& it : list) it.memory.count_again();  // its destructor counts it out
}

int64_t KeptMemory::bytes() const {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(bytes_);
}

}  // namespace rlx
