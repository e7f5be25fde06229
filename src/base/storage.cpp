// SPDX-License-Identifier: Apache-2.0
#include "base/storage.h"

#include <functional>

namespace rlx {

namespace {

class HostBuffer : public Buffer {
 public:
  HostBuffer(std::shared_ptr<std::byte> data, size_t bytes) : data_(std::move(data)), bytes_(bytes) {}
  size_t size() const override { return bytes_; }
  std::byte* host() const override { return data_.get(); }

 private:
  std::shared_ptr<std::byte> data_;
  size_t bytes_;
};

constexpr int64_t kWriter = 1, kFreezer = -1;

}  // namespace

std::shared_ptr<Buffer> host_buffer(std::shared_ptr<std::byte> data, size_t bytes) {
  return std::make_shared<HostBuffer>(std::move(data), bytes);
}

Storage::Storage(std::shared_ptr<Buffer> buffer, size_t offset, size_t bytes, Writable writable)
    : buffer_(buffer.get()),
      keeps_(std::move(buffer)),
      offset_(offset),
      bytes_(bytes),
      host_(buffer_->host()),
      writable_(writable == Writable::kYes) {
  if (host_) host_ += offset_;
}

Storage::Storage(Buffer& buffer)
    : buffer_(&buffer), offset_(0), bytes_(buffer.size()), host_(buffer.host()), writable_(true) {}

bool Storage::overlaps(const Storage& other) const {
  if (!bytes_ || !other.bytes_) return false;
  if (host_ && other.host_) {  // two buffers may wrap the same bytes of the caller
    std::less<const std::byte*> before;
    return before(host_, other.host_ + other.bytes_) && before(other.host_, host_ + bytes_);
  }
  return buffer_ == other.buffer_ && offset_ < other.offset_ + other.bytes_ && other.offset_ < offset_ + bytes_;
}

bool Storage::enter(int64_t side) {
  int64_t users = users_.load(std::memory_order_relaxed);
  do {
    if (side > 0 ? users < 0 : users > 0) return false;
  } while (!users_.compare_exchange_weak(users, users + side, std::memory_order_acquire));
  return true;
}

// A handle for one user. It may be made from the handle of another user, but it holds the storage itself: otherwise a
// chain of users would grow for ever. So the storage remembers the handle of its first use, which no user owns.
std::shared_ptr<Storage> Storage::used(const std::shared_ptr<Storage>& storage, int64_t side) {
  if (!storage->enter(side)) return nullptr;
  std::call_once(storage->first_use_, [&] { storage->self_ = storage; });
  return {storage.get(), [side, held = storage->self_.lock()](Storage* it) { it->leave(side); }};
}

std::shared_ptr<Storage> Storage::frozen(const std::shared_ptr<Storage>& storage) {
  return used(storage, kFreezer);
}

std::shared_ptr<Storage> Storage::written(const std::shared_ptr<Storage>& storage) {
  return storage->is_read_only() ? nullptr : used(storage, kWriter);
}

}  // namespace rlx
