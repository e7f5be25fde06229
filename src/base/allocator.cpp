// SPDX-License-Identifier: Apache-2.0
// Host services and the library's own allocator. Large buffers get huge pages: without them a product that streams
// weights spends its time in the page walker.
#include "base/allocator.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>

namespace rlx {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{4} << 20;

void* library_alloc(void*, size_t size, size_t align, uint32_t) {
  bool huge = size >= kHugeFrom;
  if (huge && align < kHugePage) align = kHugePage;
  void* data = nullptr;
  if (posix_memalign(&data, align, size) != 0) return nullptr;
  if (huge)
    madvise(data, size & ~(kHugePage - 1), MADV_HUGEPAGE);  // only advice: a system without huge pages may refuse
  return data;
}

void library_dealloc(void*, void* data, size_t, size_t, uint32_t) {
  std::free(data);
}

}  // namespace

Result<std::shared_ptr<Host>> Host::make(const HostServices& services) {
  if (!services.alloc != !services.dealloc) {
    return Status(Code::kInvalidArgument, "host: alloc and dealloc must be given together");
  }
  if (!services.parallel_for != !services.thread_count) {
    return Status(Code::kInvalidArgument, "host: parallel_for and thread_count must be given together");
  }
  HostServices complete = services;
  if (!complete.alloc) {
    complete.alloc = library_alloc;
    complete.dealloc = library_dealloc;
  }
  return std::shared_ptr<Host>(new Host(complete));
}

std::shared_ptr<Host> Host::library() {
  return make({}).value();
}

void Host::log(LogLevel level, const char* category, const char* message) const {
  if (logs(level)) services_.log(services_.user, static_cast<int32_t>(level), category, message);
}

void Host::count_taken(MemoryKind kind, size_t bytes) {
  MemoryCounts& counts = counts_[static_cast<size_t>(kind) - 1];
  int64_t now = counts.bytes.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
  counts.allocations.fetch_add(1);
  int64_t peak = counts.peak;
  while (now > peak && !counts.peak.compare_exchange_weak(peak, now)) continue;
}

Result<HostMemory> HostMemory::allocate(std::shared_ptr<Host> host, size_t bytes, MemoryKind kind, size_t align) {
  if (!std::has_single_bit(align) || align < sizeof(void*)) {
    return Status(Code::kInvalidArgument, format("alignment {} is no power of two from {} up", align, sizeof(void*)));
  }
  if (bytes > PTRDIFF_MAX - align) return Status::no_memory();
  const HostServices& services = host->services();
  size_t asked = bytes == 0 ? align : bytes;
  void* data = services.alloc(services.user, asked, align, static_cast<uint32_t>(kind));
  if (!data) return Status::no_memory();
  host->count_taken(kind, bytes);
  HostMemory memory;
  memory.host_ = std::move(host);
  memory.data_ = static_cast<std::byte*>(data);
  memory.size_ = bytes;
  memory.align_ = align;
  memory.kind_ = kind;
  if (reinterpret_cast<uintptr_t>(data) % align !=
      0) {  // the host's mistake; a kernel that used the memory would crash
    return Status(Code::kCallback, format("host alloc returned {} for an alignment of {}", data, align));
  }
  return memory;
}

HostMemory::~HostMemory() {
  if (!data_) return;
  const HostServices& services = host_->services();
  size_t asked = size_ == 0 ? align_ : size_;
  services.dealloc(services.user, data_, asked, align_, static_cast<uint32_t>(kind_));
  host_->counts_[static_cast<size_t>(kind_) - 1].bytes -= static_cast<int64_t>(size_);
}

void HostMemory::swap(HostMemory& other) noexcept {
  std::swap(host_, other.host_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(align_, other.align_);
  std::swap(kind_, other.kind_);
}

}  // namespace rlx
