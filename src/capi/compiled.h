// SPDX-License-Identifier: Apache-2.0
// rlx_compiled_t: a handle of a program.
#pragma once

#include <string_view>
#include <vector>

#include "base/inlined_vector.h"
#include "capi/env.h"
#include "capi/tensor.h"
#include "runtime/program.h"

struct rlx_compiled : rlx::capi::Counted {
  enum class MadeBy { kCaller, kModel };
  rlx_compiled(rlx_env* owner, std::shared_ptr<rlx::Program> made, MadeBy by = MadeBy::kCaller)
      : env(owner), program(std::move(made)), is_of_model(by == MadeBy::kModel) {}
  const uint32_t* alive() const { return env->alive(); }

  const rlx::capi::Ref<rlx_env> env;
  std::shared_ptr<rlx::Program> program;
  const bool is_of_model;  // only the model may set its params
};

namespace rlx::capi {

// The names and inputs of rlx_compiled_run and rlx_model_run, checked and unwrapped.
struct RunInputs {
  InlinedVector<std::string_view, 4> in_names, out_names;  // empty: in order
  InlinedVector<Tensor, 4> in;
};
Status read_inputs(const rlx_env* env, const char* const* in_names, rlx_tensor_t* const* in, size_t n_in,
                   const char* const* out_names, size_t n_out, RunInputs& inputs);
// Gives every output a handle; on failure none.
void give_outputs(rlx_env* env, std::span<Tensor> tensors, rlx_tensor_t** out);

}  // namespace rlx::capi
