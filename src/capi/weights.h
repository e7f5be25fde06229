// SPDX-License-Identifier: Apache-2.0
// rlx_weights_t: a handle of weights.
#pragma once

#include "capi/env.h"
#include "runtime/weights.h"

struct rlx_weights : rlx::capi::Counted {
  explicit rlx_weights(rlx_env* owner) : env(owner), weights(std::make_shared<rlx::Weights>()) {}
  const uint32_t* alive() const { return env->alive(); }

  const rlx::capi::Ref<rlx_env> env;
  const std::shared_ptr<rlx::Weights> weights;
};

namespace rlx::capi {

// The weights, checked to belong to the environment; null for NULL.
Result<std::shared_ptr<Weights>> weights_of(const rlx_env* env, const rlx_weights_t* weights);

}  // namespace rlx::capi
