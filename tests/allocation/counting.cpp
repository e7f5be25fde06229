// SPDX-License-Identifier: Apache-2.0
#include "tests/allocation/counting.h"

#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<int64_t> count{0}, bytes{0};

static thread_local int64_t until_failure = -1;  // below 0: none is to come

// Returns false if the allocation has to fail.
static bool note(size_t size) {
  count++;
  bytes += static_cast<int64_t>(size);
  return until_failure < 0 || until_failure-- > 0;
}

void* operator new(size_t size) {
  if (void* memory = note(size) ? std::malloc(size ? size : 1) : nullptr) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return note(size) ? std::malloc(size ? size : 1) : nullptr;
}
void* operator new(size_t size, std::align_val_t align) {
  size_t unit = static_cast<size_t>(align), whole = (size + unit - 1) / unit * unit;
  if (void* memory = note(size) ? std::aligned_alloc(unit, whole) : nullptr) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  size_t unit = static_cast<size_t>(align);
  return note(size) ? std::aligned_alloc(unit, (size + unit - 1) / unit * unit) : nullptr;
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

FailingAllocation::FailingAllocation(int64_t nth) {
  until_failure = nth;
}

FailingAllocation::~FailingAllocation() {
  until_failure = -1;
}

bool FailingAllocation::was_met() const {
  return until_failure < 0;
}

}  // namespace rlx::test
