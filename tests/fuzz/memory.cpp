// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/memory.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

// Sizes are asked of the allocator, so that frees need no header.
static std::atomic<size_t> live{0}, peak{0};

static void* counted(void* memory) {
  if (!memory) return nullptr;
  size_t now = live += malloc_usable_size(memory), known = peak;
  while (now > known && !peak.compare_exchange_weak(known, now)) continue;
  return memory;
}

void* operator new(size_t size) {
  if (void* memory = counted(std::malloc(size ? size : 1))) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return counted(std::malloc(size ? size : 1));
}
void* operator new(size_t size, std::align_val_t align) {
  auto alignment = static_cast<size_t>(align);
  if (void* memory = counted(std::aligned_alloc(alignment, (size + alignment) / alignment * alignment))) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  auto alignment = static_cast<size_t>(align);
  return counted(std::aligned_alloc(alignment, (size + alignment) / alignment * alignment));
}
void operator delete(void* memory) noexcept {
  if (memory) live -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  operator delete(memory);
}

namespace rlx::test {

size_t live_bytes() {
  return live;
}
size_t peak_bytes() {
  return peak;
}
void forget_peak() {
  peak = live.load();
}

}  // namespace rlx::test
