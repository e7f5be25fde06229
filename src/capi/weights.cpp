// SPDX-License-Identifier: Apache-2.0
// rlx_weights_*: named tensors that programs take their params from.
#include "capi/weights.h"

#include "capi/blob.h"
#include "capi/guard.h"
#include "capi/tensor.h"

using namespace rlx;
using namespace rlx::capi;

Result<std::shared_ptr<Weights>> rlx::capi::weights_of(const rlx_env* env, const rlx_weights_t* weights) {
  if (!weights) return std::shared_ptr<Weights>();
  RLX_TRY(same_env(env, weights->env.get(), "weights"));
  return weights->weights;
}

rlx_status_t* rlx_weights_create(rlx_env_t* env, rlx_weights_t** out) {
  return guard({cleared(out, "out"), handle(env, "env")}, [&]() -> Status {
    *out = new rlx_weights(env);
    return {};
  });
}

rlx_weights_t* rlx_weights_retain(rlx_weights_t* weights) {
  return retain(weights);
}

void rlx_weights_release(rlx_weights_t* weights) {
  release(weights);
}

rlx_status_t* rlx_weights_put(rlx_weights_t* weights, const char* name, rlx_tensor_t* tensor) {
  return guard({handle(weights, "weights"), {name, "name"}, handle(tensor, "tensor")}, [&]() -> Status {
    Tensor contents = *RLX_TRY(contents_to_retain(*tensor, weights->env.get(), "tensor"));
    return weights->weights->put(name, RLX_TRY(contents.frozen()));
  });
}

rlx_status_t* rlx_weights_get(const rlx_weights_t* weights, const char* name, rlx_tensor_t** out) {
  return guard({cleared(out, "out"), handle(weights, "weights"), {name, "name"}}, [&]() -> Status {
    Tensor tensor = RLX_TRY(RLX_TRY(weights->weights->get(name, *weights->env->env)).frozen());
    *out = new rlx_tensor(weights->env.get(), std::move(tensor));
    return {};
  });
}

size_t rlx_weights_count(const rlx_weights_t* weights) {
  return guard_value(0, {handle(weights, "weights")}, [&] { return weights->weights->count(); });
}

const char* rlx_weights_name(const rlx_weights_t* weights, size_t index) {
  return guard_value(nullptr, {handle(weights, "weights")}, [&] { return weights->weights->name(index); });
}

rlx_status_t* rlx_weights_report(const rlx_weights_t* weights, const char* what, rlx_blob_t** json) {
  return guard({cleared(json, "json"), handle(weights, "weights"), {what, "what"}}, [&]() -> Status {
    std::string report = RLX_TRY(weights->weights->report(what));
    *json = new rlx_blob(std::move(report));
    return {};
  });
}
