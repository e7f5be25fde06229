// SPDX-License-Identifier: Apache-2.0
#include "tests/allocation/counting.h"

#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<int64_t> count{0}, bytes{0};

static void note(size_t size) {
  count++;
  bytes += static_cast<int64_t>(size);
}

void* operator new(size_t size) {
  note(size);
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  note(size);
  return std::malloc(size ? size : 1);
}
void* operator new(size_t size, std::align_val_t align) {
  note(size);
  size_t unit = static_cast<size_t>(align);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  note(size);
  size_t unit = static_cast<size_t>(align);
  return std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace rlx::test {

int64_t allocations() {
  return count;
}

int64_t allocated_bytes() {
  return bytes;
}

}  // namespace rlx::test
