// SPDX-License-Identifier: Apache-2.0
// Host services and the library's own allocator. Large buffers get huge pages: without them a matrix product that
// streams weights spends its time on TLB misses.
#include "base/host.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "base/escape.h"
#include "base/exception.h"
#include "base/round_up.h"

namespace rlx {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t whole_pages(size_t size) {
  constexpr size_t kPage = 4096;
  return round_up(size, kPage);
}

// A mapping of its own: malloc would return pages to the system as its heap shrinks, and fault them in again as it
// grows.
void* map_huge(size_t size, size_t align) {
  size_t room = whole_pages(size) + align;
  void* mapped = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(mapped);
  size_t before = (align - reinterpret_cast<uintptr_t>(first) % align) % align;
  if (before) munmap(first, before);
  if (room - before > whole_pages(size)) munmap(first + before + whole_pages(size), room - before - whole_pages(size));
  madvise(first + before, size & ~(kHugePage - 1), MADV_HUGEPAGE);  // only advice: the system may refuse it
  return first + before;
}

// Small blocks come from malloc, which keeps free lists per thread; aligned_alloc does not. The byte before a block
// holds its distance from the start of the block that malloc returned. Under sanitizers we call aligned_alloc, so that
// they know the true bounds.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kSmall = 0;
#else
constexpr size_t kSmall = 512;
#endif
constexpr size_t kSmallAlign = 64;
static_assert(kSmallAlign <= UINT8_MAX);

bool is_small(size_t size, size_t align) {
  return size <= kSmall && align <= kSmallAlign;
}

void* small_alloc(size_t size) {
  auto* given = static_cast<std::byte*>(std::malloc(size + kSmallAlign));
  if (!given) return nullptr;
  size_t distance = kSmallAlign - reinterpret_cast<uintptr_t>(given) % kSmallAlign;
  given[distance - 1] = static_cast<std::byte>(distance);
  return given + distance;
}

void* library_alloc(void*, size_t size, size_t align, uint32_t) {
  if (is_small(size, align)) return small_alloc(size);
  if (size >= kHugePage) return map_huge(size, std::max(align, kHugePage));
  void* data = nullptr;
  return posix_memalign(&data, align, size) == 0 ? data : nullptr;
}

void library_dealloc(void*, void* data, size_t size, size_t align, uint32_t) {
  if (is_small(size, align)) {
    auto* begin = static_cast<std::byte*>(data);
    std::free(begin - std::to_integer<size_t>(begin[-1]));
  } else if (size >= kHugePage) {
    munmap(data, whole_pages(size));
  } else {
    std::free(data);
  }
}

}  // namespace

Result<std::shared_ptr<Host>> Host::make(const HostServices& services) {
  if (!services.alloc != !services.dealloc) {
    return Status(Code::kInvalidArgument, "host: alloc and dealloc must be given together");
  }
  if (!services.parallel_for != !services.thread_count) {
    return Status(Code::kInvalidArgument, "host: parallel_for and thread_count must be given together");
  }
  if (services.log_level < static_cast<int32_t>(LogLevel::kTrace) ||
      services.log_level > static_cast<int32_t>(LogLevel::kOff)) {
    return Status(Code::kInvalidArgument,
                  format("host: log_level is {}, expected RLX_LOG_TRACE (0) to RLX_LOG_OFF (5)", services.log_level))
        .with("expected", "0 to 5")
        .with("got", std::to_string(services.log_level));
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

void Host::write_log(LogLevel level, const char* category, const std::string& message) const {
  std::string line = on_one_line(message);  // names in it may have any characters
  call_host("log", [&] { services_.log(services_.user, static_cast<int32_t>(level), category, line.c_str()); });
}

Status Host::progress(const char* what, double fraction) const {
  if (!services_.progress) return {};
  int32_t answer = call_host("progress", [&] { return services_.progress(services_.user, what, fraction); });
  if (answer == kCallbackOk) return {};
  if (answer == kCallbackStop) return Status(Code::kCancelled, format("{}: the host stopped it", what));
  return Status(Code::kCallback,
                format("{}: the host's progress callback returned {}, expected RLX_CB_OK or RLX_CB_STOP", what, answer))
      .with("expected", "RLX_CB_OK or RLX_CB_STOP")
      .with("got", std::to_string(answer));
}

void Host::count_taken(MemoryKind kind, size_t bytes) {
  counts_[static_cast<size_t>(kind) - 1].allocations.fetch_add(1);
  count_bytes(kind, bytes);
}

void Host::count_bytes(MemoryKind kind, size_t bytes) {
  MemoryCounts& counts = counts_[static_cast<size_t>(kind) - 1];
  int64_t now = counts.bytes.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
  int64_t peak = counts.peak;
  while (now > peak && !counts.peak.compare_exchange_weak(peak, now)) continue;
}

Status no_memory_for(size_t bytes, MemoryKind kind) {
  constexpr std::string_view kUses[] = {"a tensor", "intermediate values", "prepared weights", "working memory"};
  return Status(Code::kNoMemory, format("cannot allocate {} bytes for {}", bytes, kUses[static_cast<size_t>(kind) - 1]))
      .with("got", std::to_string(bytes));
}

Result<HostMemory> HostMemory::allocate(std::shared_ptr<Host> host, size_t bytes, MemoryKind kind, size_t align) {
  bool is_power_of_two = (align & (align - 1)) == 0;  // std::has_single_bit calls libgcc
  if (!is_power_of_two || align < sizeof(void*)) {
    return Status(Code::kInvalidArgument,
                  format("alignment {} is not a power of two of at least {}", align, sizeof(void*)));
  }
  if (bytes > PTRDIFF_MAX - align) return Status::no_memory();
  const HostServices& services = host->services();
  size_t asked = bytes == 0 ? align : bytes;
  void* data =
      call_host("alloc", [&] { return services.alloc(services.user, asked, align, static_cast<uint32_t>(kind)); });
  if (!data) return no_memory_for(asked, kind);
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
  count_as_gone();
}

void HostMemory::count_as_gone() {
  host_->counts_[static_cast<size_t>(kind_) - 1].bytes -= static_cast<int64_t>(size_);
}

void HostMemory::count_again() {
  host_->count_bytes(kind_, size_);
}

void HostMemory::swap(HostMemory& other) noexcept {
  std::swap(host_, other.host_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(align_, other.align_);
  std::swap(kind_, other.kind_);
}

}  // namespace rlx
