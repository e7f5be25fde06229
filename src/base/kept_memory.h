// SPDX-License-Identifier: Apache-2.0
// Buffers that were given back and may be wanted again: the system clears every page that it hands out, which costs
// more than the kernel that fills it. Thread-safe; no lock is held while the host's allocator runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/allocator.h"
#include "base/storage.h"

namespace rlx {

class KeptMemory : public std::enable_shared_from_this<KeptMemory> {
 public:
  KeptMemory(std::shared_ptr<Host> host, size_t most) : host_(std::move(host)), most_(most) {}
  ~KeptMemory() { trim(); }

  // As HostMemory::allocate. From kSmallest on it may be memory that was kept, with whatever was in it; it comes back
  // here when the last reference goes.
  Result<std::shared_ptr<Buffer>> allocate(size_t bytes, MemoryKind kind);
  void trim();  // all that is kept goes back to the allocator
  int64_t bytes() const;

  static constexpr size_t kSmallest = size_t{64} << 10;

 private:
  using Class = std::pair<MemoryKind, size_t>;
  class Held;
  void take_back(HostMemory memory, Class of);

  std::shared_ptr<Host> host_;
  size_t most_;  // bytes
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  std::map<Class, std::vector<HostMemory>> kept_;
};

}  // namespace rlx
