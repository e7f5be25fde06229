// SPDX-License-Identifier: Apache-2.0
// The reference count of shared handles. A handle is deleted by its last release, on whatever thread that is.
#pragma once

#include <atomic>
#include <cstdint>

namespace rlx::capi {

struct Counted {
  std::atomic<int64_t> references{1};
};

template <class Handle>
Handle* retain(Handle* handle) {
  if (handle) handle->references.fetch_add(1, std::memory_order_relaxed);
  return handle;
}

template <class Handle>
void release(Handle* handle) {
  if (handle && handle->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete handle;
}

}  // namespace rlx::capi
