// SPDX-License-Identifier: Apache-2.0
// rlx_fence_*: fences that the caller signals, and those of submitted runs.
#include "capi/fence.h"

#include <new>

#include "capi/guard.h"
#include "runtime/queue.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

Result<std::vector<Fence>> fences_of(const rlx_env* env, rlx_fence_t* const* fences, size_t n, const char* argument) {
  std::vector<Fence> list;
  list.reserve(n);
  for (size_t i = 0; i < n; i++) {
    if (!fences[i]) return null_element(argument, i);
    if (env && env != fences[i]->env.get())
      return same_env(env, fences[i]->env.get(), element_name(argument, i).c_str());
    list.push_back(fences[i]->fence);
  }
  return list;
}

}  // namespace rlx::capi

// A fence that nobody can signal any more would block the runs that wait for it for ever.
rlx_fence::~rlx_fence() {
  if (!is_of_caller || fence.is_done()) return;
  Status status;
  try {
    status = Status(Code::kAborted, "the fence was released before it was signalled");
  } catch (const std::bad_alloc&) {
    status = Status::no_memory();
  }
  fence.signal(std::move(status));
}

rlx_status_t* rlx_fence_create(rlx_env_t* env, rlx_fence_t** out) {
  return guard({cleared(out, "out"), handle(env, "env")}, [&]() -> Status {
    *out = new rlx_fence(env, Fence(env->env->queue().helper()), rlx_fence::SignalledBy::kCaller);
    return {};
  });
}

rlx_fence_t* rlx_fence_retain(rlx_fence_t* fence) {
  return retain(fence);
}

void rlx_fence_release(rlx_fence_t* fence) {
  release(fence);
}

rlx_status_t* rlx_fence_signal(rlx_fence_t* fence, rlx_status_t* result) {
  Status taken = Status::adopt(from_c(result));
  return guard({handle(fence, "fence")}, [&]() -> Status {
    if (!fence->is_of_caller) return Status(Code::kState, "the fence of a run is signalled by the run");
    return fence->fence.signal(std::move(taken)) ? Status() : Status(Code::kState, "the fence was signalled before");
  });
}

rlx_status_t* rlx_fence_wait(rlx_fence_t* const* fences, size_t n, int32_t all, uint64_t timeout_ns, size_t* which) {
  if (which) *which = 0;
  return guard({array(fences, n, "fences")}, [&]() -> Status {
    std::vector<Fence> list = RLX_TRY(fences_of(nullptr, fences, n, "fences"));
    for (size_t i = 0; i < n; i++) RLX_TRY(check("rlx_fence_wait", {handle(fences[i], "a fence")}));
    return Fence::wait(all != 0 ? Fence::Until::kAll : Fence::Until::kAny, list, timeout_ns, which);
  });
}

rlx_status_t* rlx_fence_result(const rlx_fence_t* fence, int32_t* done) {
  if (done) *done = 0;
  return guard({handle(fence, "fence")}, [&]() -> Status {
    bool is_done = fence->fence.is_done();
    if (done) *done = is_done;
    return is_done ? fence->fence.result() : Status();
  });
}

rlx_status_t* rlx_fence_export_fd(rlx_fence_t* fence, int32_t* fd) {
  if (fd) *fd = -1;
  return guard({handle(fence, "fence"), {fd, "fd"}}, [&]() -> Status {
    if (!fence->is_of_caller && !fence->fence.is_done() && !fence->env->env->queue().has_threads())
      return Status(Code::kUnsupported,
                    "no thread of the library would do this run, so nothing would write to the file");
    *fd = RLX_TRY(fence->fence.export_fd());
    return {};
  });
}
