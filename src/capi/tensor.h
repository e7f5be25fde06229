// SPDX-License-Identifier: Apache-2.0
// rlx_tensor_t: a handle of a tensor.
#pragma once

#include <memory>
#include <span>

#include "base/tensor.h"
#include "capi/env.h"
#include "ops/interpret.h"

struct rlx_tensor : rlx::capi::Counted {
  rlx_tensor(rlx_env* owner, rlx::Tensor made, const rlx_device_t* where = nullptr)
      : env(owner), tensor(std::move(made)), device(where) {}
  const uint32_t* alive() const { return env->alive(); }

  const rlx::capi::Ref<rlx_env> env;
  const rlx::Tensor tensor;
  const rlx_device_t* const device;  // null: the host
};

namespace rlx::capi {

// A tensor with a copy of the caller's data; checks all arguments.
Result<Tensor> copied_tensor(const rlx_env& env, rlx_dtype_t dtype, const int64_t* dims, size_t rank, const void* data,
                             size_t bytes);

Result<DType> checked_dtype(rlx_dtype_t dtype);
// As the op `cast`, in memory of `make`; null: as Tensor::create.
Result<Tensor> cast(const Tensor& tensor, DType to, const MakeTensor* make = nullptr);
std::string to_text(const Tensor& tensor, size_t max_elements);

}  // namespace rlx::capi
