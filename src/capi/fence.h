// SPDX-License-Identifier: Apache-2.0
// rlx_fence_t: a handle of a fence.
#pragma once

#include <vector>

#include "capi/env.h"
#include "device/fence.h"

struct rlx_fence : rlx::capi::Counted {
  enum class SignalledBy { kRun, kCaller };
  rlx_fence(rlx_env* owner, rlx::Fence made, SignalledBy by)
      : env(owner), fence(std::move(made)), is_of_caller(by == SignalledBy::kCaller) {}
  ~rlx_fence();
  const uint32_t* alive() const { return env->alive(); }

  const rlx::capi::Ref<rlx_env> env;
  rlx::Fence fence;
  const bool is_of_caller;  // who signals it, rather than a run
};

namespace rlx::capi {

// The fences, checked: a null one, or one of another environment, is RLX_E_INVALID_ARGUMENT.
Result<std::vector<Fence>> fences_of(const rlx_env* env, rlx_fence_t* const* fences, size_t n, const char* argument);

}  // namespace rlx::capi
