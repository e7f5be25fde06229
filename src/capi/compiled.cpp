// SPDX-License-Identifier: Apache-2.0
// rlx_compile, rlx_compiled_*: a handle of a program.
#include "capi/compiled.h"

#include <memory>

#include "capi/attrs.h"
#include "capi/blob.h"
#include "capi/graph.h"
#include "capi/guard.h"
#include "capi/weights.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

static Status check_names(const char* const* names, size_t n, const char* argument) {
  for (size_t i = 0; names && i < n; i++)
    if (!names[i]) return null_element(argument, i);
  return {};
}

Status read_inputs(const rlx_env* env, const char* const* in_names, rlx_tensor_t* const* in, size_t n_in,
                   const char* const* out_names, size_t n_out, RunInputs& inputs) {
  RLX_TRY(check_names(in_names, n_in, "in_names"));
  RLX_TRY(check_names(out_names, n_out, "out_names"));
  if (in_names) inputs.in_names.assign(in_names, in_names + n_in);
  if (out_names) inputs.out_names.assign(out_names, out_names + n_out);
  inputs.in.reserve(n_in);
  for (size_t i = 0; i < n_in; i++) {
    if (!in[i]) return null_element("in", i);
    auto contents = contents_to_retain(*in[i], env, "in");  // the name of the element is made where it fails
    if (!contents.ok()) return contents_to_retain(*in[i], env, element_name("in", i).c_str()).status();
    inputs.in.push_back(**contents);
  }
  return {};
}

void give_outputs(rlx_env* env, std::span<Tensor> tensors, rlx_tensor_t** out) {
  InlinedVector<std::unique_ptr<rlx_tensor>, 4> made;
  for (Tensor& tensor : tensors) made.push_back(std::make_unique<rlx_tensor>(env, std::move(tensor)));
  for (size_t i = 0; i < made.size(); i++) out[i] = made[i].release();
}

static bool is_slot_kind(int32_t kind) {
  return kind == RLX_INPUT || kind == RLX_OUTPUT || kind == RLX_PARAM;
}

static std::span<const Slot> slots(const rlx_compiled_t& compiled, int32_t kind) {
  return is_slot_kind(kind) ? compiled.program->slots(static_cast<SlotKind>(kind)) : std::span<const Slot>();
}

static std::span<const PlanSymbol> symbols(const rlx_compiled_t& compiled, int32_t kind) {
  return kind == RLX_SYMBOL ? std::span<const PlanSymbol>(compiled.program->plan().symbols)
                            : std::span<const PlanSymbol>();
}

static Status not_of_a_model(const rlx_compiled_t& compiled) {
  if (!compiled.is_of_model) return {};
  return Status(Code::kState, "this program belongs to a model: set its params by rlx_model_set_param");
}

}  // namespace rlx::capi

rlx_status_t* rlx_compile(const rlx_graph_t* graph, rlx_weights_t* weights, const rlx_device_t* device,
                          const rlx_attrs_t* options, rlx_compiled_t** out) {
  return guard({cleared(out, "out"), handle(graph, "graph")}, [&]() -> Status {
    if (!graph->status.ok()) return graph->status;
    rlx_env* env = graph->env.get();
    auto shared = RLX_TRY(weights_of(env, weights));
    Device* on = RLX_TRY(device_of(*env, device));
    auto values = RLX_TRY(values_of(options, env));
    // The handle comes first: a program that has dropped weights must reach the caller.
    auto made = std::make_unique<rlx_compiled>(env, nullptr);
    made->program = RLX_TRY(Program::compile(env->env, graph->graph, std::move(shared), on, values));
    *out = made.release();
    return {};
  });
}

rlx_compiled_t* rlx_compiled_retain(rlx_compiled_t* compiled) {
  return retain(compiled);
}

void rlx_compiled_release(rlx_compiled_t* compiled) {
  release(compiled);
}

const rlx_device_t* rlx_compiled_device(const rlx_compiled_t* compiled) {
  return guard_value(nullptr, {handle(compiled, "compiled")},
                     [&] { return compiled->env->handle_of(&compiled->program->device()); });
}

size_t rlx_compiled_count(const rlx_compiled_t* compiled, int32_t kind) {
  return guard_value(0, {handle(compiled, "compiled")},
                     [&] { return slots(*compiled, kind).size() + symbols(*compiled, kind).size(); });
}

const char* rlx_compiled_name(const rlx_compiled_t* compiled, int32_t kind, size_t slot) {
  return guard_value(nullptr, {handle(compiled, "compiled")}, [&]() -> const char* {
    auto all = slots(*compiled, kind);
    auto sizes = symbols(*compiled, kind);
    return slot < all.size() ? all[slot].name.c_str() : slot < sizes.size() ? sizes[slot].name.c_str() : nullptr;
  });
}

int64_t rlx_compiled_find(const rlx_compiled_t* compiled, int32_t kind, const char* name) {
  return guard_value(-1, {handle(compiled, "compiled"), {name, "name"}}, [&]() -> int64_t {
    if (is_slot_kind(kind)) return compiled->program->find(static_cast<SlotKind>(kind), name);
    uint32_t symbol = kind == RLX_SYMBOL ? compiled->program->plan().symbol(name) : Plan::kNoSymbol;
    return symbol == Plan::kNoSymbol ? -1 : int64_t{symbol};
  });
}

rlx_dtype_t rlx_compiled_dtype(const rlx_compiled_t* compiled, int32_t kind, size_t slot) {
  return guard_value(0, {handle(compiled, "compiled")}, [&] {
    auto all = slots(*compiled, kind);
    return slot < all.size() ? static_cast<rlx_dtype_t>(all[slot].type.dtype) : 0;
  });
}

size_t rlx_compiled_shape(const rlx_compiled_t* compiled, int32_t kind, size_t slot, int64_t* dims, size_t capacity) {
  return guard_value(0, {handle(compiled, "compiled")}, [&]() -> size_t {
    auto all = slots(*compiled, kind);
    auto sizes = symbols(*compiled, kind);
    Dims upper;
    if (slot < all.size())
      upper = all[slot].upper;
    else if (slot < sizes.size())
      upper.push_back(sizes[slot].upper);
    if (dims) std::copy_n(upper.begin(), std::min(capacity, upper.size()), dims);
    return upper.size();
  });
}

rlx_status_t* rlx_compiled_set_param(rlx_compiled_t* compiled, const char* name, rlx_tensor_t* tensor) {
  return guard({handle(compiled, "compiled"), {name, "name"}, handle(tensor, "tensor")}, [&]() -> Status {
    RLX_TRY(not_of_a_model(*compiled));
    Tensor contents = *RLX_TRY(contents_to_retain(*tensor, compiled->env.get(), "tensor"));
    return compiled->program->set_param(name, RLX_TRY(contents.frozen()));
  });
}

rlx_status_t* rlx_compiled_set_params(rlx_compiled_t* compiled, rlx_weights_t* weights) {
  return guard({handle(compiled, "compiled"), handle(weights, "weights")}, [&]() -> Status {
    RLX_TRY(not_of_a_model(*compiled));
    return compiled->program->set_params(RLX_TRY(weights_of(compiled->env.get(), weights)));
  });
}

rlx_status_t* rlx_compiled_run(rlx_compiled_t* compiled, const char* const* in_names, rlx_tensor_t* const* in,
                               size_t n_in, const char* const* out_names, rlx_tensor_t** out, size_t n_out) {
  auto arguments = {cleared(out, n_out, "out"), handle(compiled, "compiled"), array(in, n_in, "in")};
  return guard(arguments, [&]() -> Status {
    RunInputs inputs;
    RLX_TRY(read_inputs(compiled->env.get(), in_names, in, n_in, out_names, n_out, inputs));
    InlinedVector<Tensor, 4> outputs;
    for (size_t i = 0; i < n_out; i++) outputs.push_back(Tensor());
    RLX_TRY(compiled->program->run(inputs.in_names, inputs.in, inputs.out_names, outputs));
    give_outputs(compiled->env.get(), outputs, out);
    return {};
  });
}

rlx_status_t* rlx_compiled_report(const rlx_compiled_t* compiled, const char* what, rlx_blob_t** out) {
  return guard({cleared(out, "out"), handle(compiled, "compiled"), {what, "what"}}, [&]() -> Status {
    std::string report = RLX_TRY(compiled->program->report(what));
    *out = new rlx_blob(std::move(report));
    return {};
  });
}
