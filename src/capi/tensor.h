// SPDX-License-Identifier: Apache-2.0
// rlx_tensor_t: a handle of a tensor.
#pragma once

#include <memory>
#include <span>

#include "base/tensor.h"
#include "capi/env.h"
#include "ops/interpret.h"

struct rlx_tensor : rlx::capi::Counted {
  rlx_tensor(rlx_env* of, rlx::Tensor made, const rlx_device_t* where = nullptr)
      : env(of), dtype(made.dtype()), dims(made.dims()), device(where), keeps_(of), tensor_(std::move(made)) {}
  // Lent to a callback of the host for as long as it runs; `made` may be no tensor. Whoever keeps the handle longer
  // keeps neither bytes nor the environment.
  rlx_tensor(rlx_env* of, std::shared_ptr<rlx::capi::EnvLife> life, rlx::DType type, const rlx::Dims& shape,
             rlx::Tensor made)
      : env(of), dtype(type), dims(shape), device(nullptr), lent_by_(std::move(life)), tensor_(std::move(made)) {}

  const uint32_t* alive() const { return lent_by_ ? lent_by_->mark.alive() : env->alive(); }
  bool is_lent() const { return lent_by_ != nullptr; }
  // None: the tensor was lent, and the last handle of the environment is gone.
  rlx::capi::Ref<rlx_env> living_env() const {
    if (!lent_by_) return keeps_;
    return rlx::capi::retain_if_alive(lent_by_->references) ? rlx::capi::Ref<rlx_env>::adopt(env)
                                                            : rlx::capi::Ref<rlx_env>();
  }
  void take_back() { is_taken_back_.store(true, std::memory_order_release); }
  // Null if there are none: they were lent, and the callback has returned; or it only infers shapes.
  const rlx::Tensor* contents() const {
    return tensor_ && !is_taken_back_.load(std::memory_order_acquire) ? &tensor_ : nullptr;
  }

  rlx_env* const env;
  const rlx::DType dtype;
  const rlx::Dims dims;              // lent to infer shapes: may be tokens
  const rlx_device_t* const device;  // null: the host

 private:
  const rlx::capi::Ref<rlx_env> keeps_;
  const std::shared_ptr<rlx::capi::EnvLife> lent_by_;
  const rlx::Tensor tensor_;
  std::atomic<bool> is_taken_back_{false};
};

namespace rlx::capi {

// The contents, for the length of a call; RLX_E_STATE if there are none.
Result<const Tensor*> contents_of(const rlx_tensor& tensor);
// The contents for whatever keeps a copy, in this environment; RLX_E_STATE if they are lent.
Result<const Tensor*> contents_to_retain(const rlx_tensor& tensor, const rlx_env* by, const char* argument);

// The contents as a constant of a graph: frozen. Passes and kernels read its elements, so in memory of another
// alignment it is a copy, which keeps the tensor frozen as long as it lives.
Result<Tensor> constant_of(const rlx_tensor& tensor, const rlx_env* by);

// A tensor with a copy of the caller's data; checks all arguments.
Result<Tensor> copied_tensor(const rlx_env& env, rlx_dtype_t dtype, const int64_t* dims, size_t rank, const void* data,
                             size_t bytes);

Result<DType> checked_dtype(rlx_dtype_t dtype);
// As the op `cast`, in memory of `make`; null: as Tensor::create.
Result<Tensor> cast(const Tensor& tensor, DType to, const MakeTensor* make = nullptr);
std::string to_text(const Tensor& tensor, size_t max_elements);

}  // namespace rlx::capi
