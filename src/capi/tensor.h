// SPDX-License-Identifier: Apache-2.0
// rlx_tensor_t: a tensor, whose bytes may not be written while somebody holds them as a param or a constant.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "base/tensor.h"
#include "capi/env.h"

struct rlx_tensor : rlx::capi::Counted {
  struct Access {
    std::atomic<int64_t> freezers{0};  // params and constants that read the bytes
    bool read_only = false;            // a view of a file, or of what weights hold
  };
  rlx_tensor(rlx_env* owner, rlx::Tensor made, const rlx_device_t* where = nullptr, bool read_only = false)
      : env(owner), tensor(std::move(made)), device(where), access(std::make_shared<Access>()) {
    access->read_only = read_only;
  }
  const uint32_t* alive() const { return env->alive(); }
  bool is_writable() const { return !access->read_only && access->freezers == 0; }

  const rlx::capi::Ref<rlx_env> env;
  const rlx::Tensor tensor;
  const rlx_device_t* const device;  // null: the host
  const std::shared_ptr<Access> access;
};

namespace rlx::capi {

// The tensor, frozen until the last copy of the result is gone.
Tensor frozen(const rlx_tensor& handle);

// A tensor with a copy of the caller's data, all of it checked.
Result<Tensor> copied_tensor(const rlx_env& env, rlx_dtype_t dtype, const int64_t* dims, size_t rank, const void* data,
                             size_t bytes);

Result<DType> checked_dtype(rlx_dtype_t dtype);
Result<Tensor> cast(const Tensor& tensor, DType to);  // as the op `cast`
std::string to_text(const Tensor& tensor, size_t max_elements);

}  // namespace rlx::capi
