// SPDX-License-Identifier: Apache-2.0
// Memory of any device, and who may write it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace rlx {

class Device;

// Memory of one device. `host()` is null where the host cannot address it.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual size_t size() const = 0;
  virtual std::byte* host() const { return nullptr; }
  virtual Device* device() const { return nullptr; }  // null: the host's memory
};

// Where bytes lie: a buffer and an offset into it.
struct Place {
  Buffer* buffer = nullptr;  // null: nowhere
  size_t offset = 0;
  std::byte* host = nullptr;  // the host's address of the same place; null if it has none

  Place() = default;
  Place(Buffer& in, size_t at) : Place(in, at, in.host() ? in.host() + at : nullptr) {}
  Place(Buffer& in, size_t at, std::byte* of_host) : buffer(&in), offset(at), host(of_host) {}
  Place operator+(int64_t bytes) const {
    Place place = *this;
    place.offset += static_cast<size_t>(bytes);
    if (host) place.host += bytes;
    return place;
  }
  bool operator==(const Place& other) const {  // two buffers may wrap the same bytes of the caller
    return host || other.host ? host == other.host : buffer == other.buffer && offset == other.offset;
  }
};

// A buffer over host bytes that `data` keeps alive: an allocator's, a mapped file, or the caller's.
std::shared_ptr<Buffer> host_buffer(std::shared_ptr<std::byte> data, size_t bytes);

enum class Writable : bool { kNo, kYes };

// A shared piece of a buffer. Whether it may be written is a property of the storage, not of its holder. Invariant: it
// has writers or freezers, never both. Thread-safe.
class Storage {
 public:
  Storage(std::shared_ptr<Buffer> buffer, size_t offset, size_t bytes, Writable writable = Writable::kYes);
  // All of a buffer that lives as long as the storage.
  explicit Storage(Buffer& buffer);

  Buffer& buffer() const { return *buffer_; }
  // The buffer for another storage within it, which then keeps this one.
  static std::shared_ptr<Buffer> shared_buffer(const std::shared_ptr<Storage>& storage) {
    return {storage, storage->buffer_};
  }
  size_t offset() const { return offset_; }
  size_t bytes() const { return bytes_; }
  std::byte* host() const { return host_; }
  Place place() const { return {*buffer_, offset_, host_}; }

  bool is_read_only() const { return !writable_; }                               // whatever its users
  bool is_frozen() const { return users_.load(std::memory_order_acquire) < 0; }  // a param, constant or weight
  bool is_writable() const { return writable_ && !is_frozen(); }
  bool overlaps(const Storage& other) const;

  // Makes the caller a freezer or a writer, until the last copy of the result is gone. Returns null if there are users
  // of the other kind, or if a writer asks for read-only storage.
  static std::shared_ptr<Storage> frozen(const std::shared_ptr<Storage>& storage);
  static std::shared_ptr<Storage> written(const std::shared_ptr<Storage>& storage);

 private:
  static std::shared_ptr<Storage> used(const std::shared_ptr<Storage>& storage, int64_t side);
  bool enter(int64_t side);
  void leave(int64_t side) { users_.fetch_sub(side, std::memory_order_release); }

  Buffer* buffer_;
  std::shared_ptr<Buffer> keeps_;  // null: the buffer lives as long as the storage
  size_t offset_, bytes_;
  std::byte* host_;
  bool writable_;
  std::atomic<int64_t> users_{0};  // above 0: writers; below: freezers
  std::once_flag first_use_;
  std::weak_ptr<Storage> self_;  // set by the first use: most storages have none
};

}  // namespace rlx
