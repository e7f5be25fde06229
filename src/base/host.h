// SPDX-License-Identifier: Apache-2.0
// What the host of the library may own: the log sink, large memory and threads (rlx_host_t). One Host belongs to one
// env. Invariant: every service of a Host can be called. The library's own stands in for what the caller did not give.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/status.h"

namespace rlx {

// The values are the RLX_LOG_* constants of rlx.h.
enum class LogLevel : int32_t { kTrace = 0, kDebug = 1, kInfo = 2, kWarn = 3, kError = 4, kOff = 5 };

// The values are the RLX_MEM_* constants of rlx.h. Small objects use operator new.
enum class MemoryKind : uint32_t { kTensor = 1, kArena = 2, kPrepared = 3, kScratch = 4 };

// The members of rlx_host_t, in its order. A null function means the library's own.
struct HostServices {
  int32_t log_level = static_cast<int32_t>(LogLevel::kTrace);  // least severe level passed to `log`
  void* user = nullptr;
  void (*log)(void* user, int32_t level, const char* category, const char* message) = nullptr;
  void* (*alloc)(void* user, size_t size, size_t align, uint32_t kind) = nullptr;
  void (*dealloc)(void* user, void* data, size_t size, size_t align, uint32_t kind) = nullptr;
  uint32_t (*thread_count)(void* user) = nullptr;
  uint32_t (*thread_index)(void* user) = nullptr;  // UINT32_MAX outside the pool
  void (*parallel_for)(void* user, size_t n, void (*fn)(void* arg, size_t i), void* arg) = nullptr;
  int32_t (*progress)(void* user, const char* what, double fraction) = nullptr;
};

// What a callback that may fail returns: the values of RLX_CB_OK and RLX_CB_STOP.
inline constexpr int32_t kCallbackOk = 0x524c5831, kCallbackStop = 0x524c5832;

// Counters of one kind of memory, for rlx_env_stat and for tests that a run allocates nothing.
struct MemoryCounts {
  std::atomic<int64_t> bytes{0};  // allocated now
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> allocations{0};  // ever
};

class Host {
 public:
  // alloc without dealloc, or parallel_for without thread_count (and the other way around), is kInvalidArgument.
  static Result<std::shared_ptr<Host>> make(const HostServices& services);
  static std::shared_ptr<Host> library();  // a new Host with the library's own services

  const HostServices& services() const { return services_; }
  bool has_own_threads() const { return services_.parallel_for == nullptr; }  // own: the library's
  const MemoryCounts& counts(MemoryKind kind) const { return counts_[static_cast<size_t>(kind) - 1]; }

  bool logs(LogLevel level) const {
    return services_.log != nullptr && static_cast<int32_t>(level) >= services_.log_level;
  }
  // Categories: "device", "compile", "kernel", "plan", "params". If there is no sink, or it does not want the level,
  // nothing happens and `text` (() -> std::string) is not called. The caller must hold no lock.
  template <class Text>
  void log(LogLevel level, const char* category, Text&& text) const {
    if (logs(level)) write_log(level, category, text());
  }

  // Tells the host how far a long call has come, from 0 to 1, and what it does. RLX_E_CANCELLED if the host wants it to
  // stop, RLX_E_CALLBACK if the host returns an unknown value. No lock may be held.
  Status progress(const char* what, double fraction) const;

 private:
  friend class HostMemory;
  explicit Host(const HostServices& services) : services_(services) {}
  void write_log(LogLevel level, const char* category, const std::string& message) const;
  void count_taken(MemoryKind kind, size_t bytes);
  void count_bytes(MemoryKind kind, size_t bytes);

  HostServices services_;
  MemoryCounts counts_[4];
};

constexpr size_t kMemoryAlignment = 64;  // a cache line, and the widest vector

// RLX_E_NO_MEMORY that says how many bytes were asked for, and for what.
Status no_memory_for(size_t bytes, MemoryKind kind);

// Bytes from the host's allocator, given back by the destructor. Never null, even for 0 bytes. Not cleared.
class HostMemory {
 public:
  HostMemory() = default;
  static Result<HostMemory> allocate(std::shared_ptr<Host> host, size_t bytes, MemoryKind kind,
                                     size_t align = kMemoryAlignment);
  HostMemory(HostMemory&& other) noexcept
      : host_(std::move(other.host_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(other.size_),
        align_(other.align_),
        kind_(other.kind_) {}
  HostMemory& operator=(HostMemory other) noexcept {
    swap(other);
    return *this;
  }
  ~HostMemory();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }

  // For an owner that keeps the memory for later use: until count_again, the counters of its kind leave it out.
  void count_as_gone();
  void count_again();

 private:
  void swap(HostMemory& other) noexcept;

  std::shared_ptr<Host> host_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t align_ = 0;
  MemoryKind kind_ = MemoryKind::kTensor;
};

}  // namespace rlx
