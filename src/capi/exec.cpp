// SPDX-License-Identifier: Apache-2.0
// rlx_exec_*: a handle of an execution context.
#include "runtime/exec.h"

#include "capi/attrs.h"
#include "capi/blob.h"
#include "capi/compiled.h"
#include "capi/fence.h"
#include "capi/guard.h"

using namespace rlx;
using namespace rlx::capi;

struct rlx_exec {
  const uint32_t* alive() const { return env->alive(); }
  Ref<rlx_env> env;
  std::unique_ptr<Exec> exec;
};

static Result<SlotKind> slot_kind(int32_t kind) {
  if (kind == RLX_INPUT || kind == RLX_OUTPUT) return static_cast<SlotKind>(kind);
  return Status(Code::kInvalidArgument, format("kind {} is neither RLX_INPUT nor RLX_OUTPUT", kind))
      .with("expected", "RLX_INPUT or RLX_OUTPUT")
      .with("got", std::to_string(kind));
}

rlx_status_t* rlx_exec_create(rlx_compiled_t* compiled, const rlx_attrs_t* options, rlx_exec_t** out) {
  return guard({cleared(out, "out"), handle(compiled, "compiled")}, [&]() -> Status {
    auto values = RLX_TRY(values_of(options, compiled->env.get()));
    auto exec = RLX_TRY(Exec::create(compiled->program, values));
    *out = new rlx_exec{compiled->env, std::move(exec)};
    return {};
  });
}

void rlx_exec_release(rlx_exec_t* exec) {
  if (exec && !is_of_parent(*exec)) delete exec;
}

rlx_status_t* rlx_exec_bind(rlx_exec_t* exec, int32_t kind, size_t slot, rlx_tensor_t* tensor) {
  return guard({handle(exec, "exec")}, [&]() -> Status {
    SlotKind of = RLX_TRY(slot_kind(kind));
    if (!tensor) return exec->exec->bind(of, slot, Tensor());
    return exec->exec->bind(of, slot, *RLX_TRY(contents_to_retain(*tensor, exec->env.get(), "tensor")));
  });
}

rlx_status_t* rlx_exec_bind_ptr(rlx_exec_t* exec, int32_t kind, size_t slot, void* data, size_t bytes) {
  return guard({handle(exec, "exec")}, [&]() -> Status {
    const void* given = data ? data : exec;  // NULL is not a mistake: it unbinds
    RLX_TRY(check("rlx_exec_bind_ptr", {array(given, bytes, "data")}));
    return exec->exec->bind_ptr(RLX_TRY(slot_kind(kind)), slot, data, bytes);
  });
}

rlx_status_t* rlx_exec_tensor(rlx_exec_t* exec, int32_t kind, size_t slot, rlx_tensor_t** out) {
  return guard({cleared(out, "out"), handle(exec, "exec")}, [&]() -> Status {
    Tensor tensor = RLX_TRY(exec->exec->tensor(RLX_TRY(slot_kind(kind)), slot));
    *out = new rlx_tensor(exec->env.get(), std::move(tensor));
    return {};
  });
}

rlx_status_t* rlx_exec_set_dim(rlx_exec_t* exec, const char* symbol, int64_t size) {
  return guard({handle(exec, "exec"), {symbol, "symbol"}}, [&] { return exec->exec->set_dim(symbol, size); });
}

rlx_status_t* rlx_exec_link(rlx_exec_t* exec, size_t output, size_t input) {
  return guard({handle(exec, "exec")}, [&] { return exec->exec->link(output, input); });
}

rlx_status_t* rlx_exec_want(rlx_exec_t* exec, const size_t* outputs, size_t n) {
  return guard({handle(exec, "exec"), array(outputs, n, "outputs")},
               [&] { return exec->exec->want(std::span(outputs, n)); });
}

rlx_status_t* rlx_exec_set(rlx_exec_t* exec, const rlx_attrs_t* options) {
  return guard({handle(exec, "exec")},
               [&]() -> Status { return exec->exec->set(RLX_TRY(values_of(options, exec->env.get()))); });
}

rlx_status_t* rlx_exec_run(rlx_exec_t* exec) {
  return guard({handle(exec, "exec")}, [&] { return exec->exec->run(); });
}

rlx_status_t* rlx_exec_submit(rlx_exec_t* exec, rlx_fence_t* const* wait, size_t n_wait, rlx_fence_t** done) {
  return guard({cleared(done, "done"), handle(exec, "exec"), array(wait, n_wait, "wait")}, [&]() -> Status {
    std::vector<Fence> before = RLX_TRY(fences_of(exec->env.get(), wait, n_wait, "wait"));
    auto made = std::make_unique<rlx_fence>(exec->env.get(), Fence(), rlx_fence::SignalledBy::kRun);
    made->fence = RLX_TRY(exec->exec->submit(before));
    *done = made.release();
    return {};
  });
}

// May run in a signal handler, so it has no guard, which could allocate a status.
void rlx_exec_cancel(rlx_exec_t* exec) {
  if (exec && !is_of_parent(*exec)) exec->exec->cancel();
}

rlx_status_t* rlx_exec_report(rlx_exec_t* exec, const char* what, rlx_blob_t** json) {
  return guard({cleared(json, "json"), handle(exec, "exec"), {what, "what"}}, [&]() -> Status {
    std::string report = RLX_TRY(exec->exec->report(what));
    *json = new rlx_blob(std::move(report));
    return {};
  });
}
