// SPDX-License-Identifier: Apache-2.0
// Keeps freed buffers for later use: the system clears every page that it hands out, which costs more than the kernel
// that fills the page. Thread-safe; no lock is held while the host's allocator runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/host.h"
#include "base/storage.h"

namespace rlx {

class KeptMemory : public std::enable_shared_from_this<KeptMemory> {
 public:
  KeptMemory(std::shared_ptr<Host> host, size_t most) : host_(std::move(host)), most_(most) {}
  ~KeptMemory() { trim(); }

  // As HostMemory::allocate. A buffer of kSmallest bytes or more may be a kept one with old contents; it comes back
  // here when its last reference goes.
  Result<std::shared_ptr<Buffer>> allocate(size_t bytes, MemoryKind kind);
  // The same, and the storage of the whole buffer, as one object.
  Result<std::shared_ptr<Storage>> allocate_storage(size_t bytes, MemoryKind kind);
  void trim();  // gives all kept memory back to the allocator
  int64_t bytes() const;

  static constexpr size_t kSmallest = size_t{64} << 10;
  static constexpr uint64_t kPatience = 256;  // a buffer is freed once so many others have come back after it

 private:
  using SizeClass = std::pair<MemoryKind, size_t>;
  class Held;
  struct Whole;
  template <class Object>
  Result<std::shared_ptr<Object>> make(size_t bytes, MemoryKind kind);
  Result<HostMemory> allocated(SizeClass key, size_t asked) const;
  HostMemory take_kept(SizeClass key);
  void take_back(HostMemory memory, SizeClass key);
  HostMemory take_oldest(uint64_t before);  // empty if all have come back later

  std::shared_ptr<Host> host_;
  size_t most_;  // bytes
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  struct Kept {
    HostMemory memory;
    uint64_t since = 0;  // by returns_
  };
  uint64_t returns_ = 0;
  std::map<SizeClass, std::vector<Kept>> kept_;  // the oldest of a class first
};

}  // namespace rlx
