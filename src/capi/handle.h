// SPDX-License-Identifier: Apache-2.0
// Reference counts of shared handles, and of the environment that a handle belongs to. The last release deletes a
// handle, on whatever thread it happens, and releases its parents. In a forked child the parent's handles are left as
// they are: a thread that the child does not have may hold their locks. Code that makes a handle does everything that
// can fail before its `new`: an RLX_TRY inside the new-expression would leak the memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace rlx::capi {

struct Counted {
  std::atomic<int64_t> references{1};
};

template <class Handle>
Handle* retain(Handle* handle) {
  if (handle) handle->references.fetch_add(1, std::memory_order_relaxed);
  return handle;
}

// Takes one more reference, unless the last one is gone.
inline bool retain_if_alive(std::atomic<int64_t>& references) {
  int64_t count = references.load(std::memory_order_relaxed);
  while (count > 0 && !references.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) continue;
  return count > 0;
}

// Whether the handle was made before this process was forked.
template <class Handle>
bool is_of_parent(const Handle& handle) {
  if constexpr (requires { handle.alive(); }) {
    const uint32_t* alive = handle.alive();
    return alive && *alive == 0;
  }
  return false;
}

// A handle that has to finish something first does so while it still counts: what goes on until then may take
// references and give them back.
template <class Handle>
void release(Handle* handle) {
  if (!handle || is_of_parent(*handle)) return;
  int64_t count = handle->references.load(std::memory_order_acquire);
  constexpr bool finishes = requires {
    handle->finish();
  };
  if (count == 1 && !finishes) return delete handle;  // nobody else can take a reference
  do {
    if constexpr (finishes)
      if (count == 1) handle->finish();
  } while (!handle->references.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
  if (count == 1) delete handle;
}

// Holds a reference as long as it lives.
template <class Handle>
class Ref {
 public:
  Ref() = default;
  explicit Ref(Handle* handle) : handle_(retain(handle)) {}
  static Ref adopt(Handle* handle) {  // takes over a reference
    Ref ref;
    ref.handle_ = handle;
    return ref;
  }
  Ref(const Ref& other) : Ref(other.handle_) {}
  Ref(Ref&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Ref() { release(handle_); }

  Handle* get() const { return handle_; }
  Handle* operator->() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  Handle* handle_ = nullptr;
};

}  // namespace rlx::capi
