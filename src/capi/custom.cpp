// SPDX-License-Identifier: Apache-2.0
// Custom ops: the host's callbacks as functions of a CustomOp. Whatever a callback answers or throws becomes a status.
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "capi/attrs.h"
#include "capi/graph.h"
#include "capi/guard.h"
#include "capi/tensor.h"
#include "capi/versioned.h"
#include "ir/body.h"
#include "passes/inline_customs.h"
#include "runtime/queue.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

// The environment of an op. Its handle may be gone when a run that nobody waits for calls the op.
struct LendingEnv {
  rlx_env* handle;
  std::shared_ptr<Env> env;
  std::shared_ptr<EnvLife> life;
};

}  // namespace rlx::capi

// Threads of rlx_opcall_parallel_for may read a call, and let it fail.
struct rlx_opcall {
  // Owns the handle of a tensor that is lent for the length of the call.
  struct EndLoan {
    void operator()(rlx_tensor* tensor) const {
      tensor->take_back();
      release(tensor);
    }
  };
  using Lent = std::unique_ptr<rlx_tensor, EndLoan>;

  enum class Callback { kInfer, kRun };
  rlx_opcall(const LendingEnv& by, const NamedAttrs& values, Callback callback)
      : lender(by), attrs(values), infers(callback == Callback::kInfer) {}
  const uint32_t* alive() const { return lender.life->mark.alive(); }
  std::span<const Lent> tensors(int32_t kind) const {
    return kind == RLX_INPUT ? in : kind == RLX_OUTPUT ? out : std::span<const Lent>();
  }
  Lent lend(DType dtype, const Dims& dims, Tensor contents = Tensor()) const {
    return Lent(new rlx_tensor(lender.handle, lender.life, dtype, dims, std::move(contents)));
  }
  void fail(Status why) {
    std::lock_guard lock(failing);
    if (failure.ok()) failure = std::move(why);
  }

  const LendingEnv& lender;
  const rlx_attrs attrs;
  const bool infers;  // then no tensor has contents, and the callback makes the outputs
  std::vector<Lent> in = {}, out = {};
  std::vector<Lent> replaced = {};  // outputs whose shape was set again: the callback may still hold their handles
  std::mutex failing;
  Status failure = {};
};

namespace rlx::capi {

static constexpr size_t kFirstDefSize = offsetof(rlx_op_def_t, body) + sizeof(rlx_op_def_t::body);
static constexpr size_t kMaxOutputs = 64;

using Callback = int32_t (*)(void* user, rlx_opcall_t* call);

// The callbacks of a registered op. Owns the caller's `user` once it is armed, when the registration has succeeded:
// then it calls `destroy` at its end. Before that the caller keeps `user`.
struct Callbacks {
  explicit Callbacks(rlx_env* handle) : lender{handle, handle->env, handle->life} {}
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;
  ~Callbacks() {
    if (armed && def.destroy) def.destroy(def.user);
  }

  const LendingEnv lender;
  rlx_op_def_t def{};
  bool armed = false;
};

// An exception of a callback that has no code of its own is RLX_E_CALLBACK: it is not a bug of the library.
static Status thrown_by(const char* name) {
  Status thrown = from_exception(name);
  return thrown.code() == Code::kInternal ? Status(Code::kCallback, std::string(thrown.message())) : thrown;
}

static Status invoke(Callback callback, const char* name, void* user, rlx_opcall& call) {
  int32_t answer = 0;
  try {
    answer = callback(user, &call);
  } catch (const std::bad_alloc& exception) {  // the memory of the host, not that of the library
    return Status(Code::kCallback, format("{}: unexpected exception: {}", name, exception.what()));
  } catch (...) {
    return thrown_by(name);
  }
  if (!call.failure.ok()) return std::move(call.failure).prefixed(std::string(name) + ": ");
  if (answer == RLX_CB_OK) return {};
  if (answer == RLX_CB_STOP) return Status(Code::kCancelled, std::string(name) + ": the host stopped it");
  return Status(Code::kCallback, format("{} returned {}, not RLX_CB_OK", name, answer))
      .with("expected", std::to_string(RLX_CB_OK))
      .with("got", std::to_string(answer));
}

static Result<std::vector<ValueType>> infer(const Callbacks& callbacks, std::span<const ValueType* const> in,
                                            const NamedAttrs& attrs) {
  DimTokens& tokens = callbacks.lender.handle->dims;
  rlx_opcall call(callbacks.lender, attrs, rlx_opcall::Callback::kInfer);
  for (const ValueType* type : in) {
    Dims dims;
    for (const Dim& dim : type->dims) dims.push_back(tokens.token(dim));
    call.in.push_back(call.lend(type->dtype, dims));
  }
  RLX_TRY(invoke(callbacks.def.infer, "infer", callbacks.def.user, call));
  std::vector<ValueType> types;
  for (const rlx_opcall::Lent& tensor : call.out) {
    if (!tensor) return Status(Code::kCallback, format("infer gave no shape to output {}", types.size()));
    auto sizes = RLX_TRY(tokens.dims(tensor->dims));
    types.push_back({tensor->dtype, std::move(sizes)});
  }
  return types;
}

// A tensor over the memory of an operand, which the run owns.
static Result<Tensor> tensor_over(const Operand& operand, Writable writable) {
  size_t bytes = RLX_TRY(Tensor::checked_bytes(operand.dtype, operand.dims));
  return Tensor::adopt(operand.dtype, operand.dims, {std::shared_ptr<void>(), operand.data}, bytes, writable);
}

static Status run(const Callbacks& callbacks, std::span<const Operand> in, std::span<const Operand> out,
                  const NamedAttrs& attrs) {
  rlx_opcall call(callbacks.lender, attrs, rlx_opcall::Callback::kRun);
  for (const Operand& it : in) call.in.push_back(call.lend(it.dtype, it.dims, RLX_TRY(tensor_over(it, Writable::kNo))));
  for (const Operand& it : out)
    call.out.push_back(call.lend(it.dtype, it.dims, RLX_TRY(tensor_over(it, Writable::kYes))));
  return invoke(callbacks.def.run, "run", callbacks.def.user, call);
}

static Result<std::shared_ptr<const Graph>> body_of(const rlx_env* env, const char* name, const rlx_graph_t* body) {
  if (!body) return std::shared_ptr<const Graph>();
  RLX_TRY(check("rlx_env_register_op", {handle(body, "body")}));
  RLX_TRY(same_env(env, body->env.get(), "body"));
  if (!body->status.ok()) return body->status;
  auto graph = with_bodies_in_place(body->graph);
  Status status = graph.ok() ? check_nesting(*graph) : graph.status();
  if (!status.ok()) return std::move(status).prefixed(format("the body of '{}': ", name));
  return std::make_shared<const Graph>(*std::move(graph));
}

static Status register_op(rlx_env* env, const rlx_op_def_t& given) {
  auto callbacks = std::make_shared<Callbacks>(env);
  rlx_op_def_t& def = callbacks->def = RLX_TRY(known_members(given, kFirstDefSize, "rlx_op_def_t"));
  if (def.flags) return Status(Code::kVersion, format("rlx_op_def_t: flags is {}, not 0", def.flags));
  if (!def.name || !*def.name) return Status(Code::kInvalidArgument, "a custom op needs a name").with("input", "name");
  RLX_TRY(check_text("rlx_op_def_t", "name", def.name));
  if (!def.body && !(def.infer && def.run))
    return Status(Code::kInvalidArgument, format("the custom op '{}' needs a body, or both infer and run", def.name))
        .with("value", def.name);
  auto op = std::make_shared<CustomOp>();
  op->name = def.name;
  op->body = RLX_TRY(body_of(env, def.name, def.body));
  def.name = nullptr, def.body = nullptr;  // both were copied, and the caller may free them now
  if (!op->body) {
    op->infer = [callbacks](auto in, const NamedAttrs& attrs) { return infer(*callbacks, in, attrs); };
    op->run = [callbacks](auto in, auto out, const NamedAttrs& attrs) { return run(*callbacks, in, out, attrs); };
  } else {
    op->keeps = callbacks;
  }
  RLX_TRY(env->customs->add(std::move(op)));
  callbacks->armed = true;
  return {};
}

static Status set_shape(rlx_opcall& call, size_t output, rlx_dtype_t dtype, const int64_t* dims, size_t rank) {
  if (!call.infers) return Status(Code::kState, "the shapes of outputs are set in infer, not in run");
  if (output >= kMaxOutputs)
    return Status(Code::kRange, format("output {} is above {}", output, kMaxOutputs - 1))
        .with("got", std::to_string(output));
  DType type = RLX_TRY(checked_dtype(dtype));
  if (rank > kMaxRank) return rank_above_limit(rank);
  Dims sizes(std::span(dims, rank));
  for (const Dim& dim : RLX_TRY(call.lender.handle->dims.dims(sizes)))
    if (dim.is_literal() && dim.literal() < 0)
      return Status(Code::kShape, format("output {}: the size {} is negative", output, dim)).with("got", dim.text());
  if (call.out.size() <= output) call.out.resize(output + 1);
  auto made = call.lend(type, sizes);
  call.replaced.push_back(std::exchange(call.out[output], std::move(made)));
  return {};
}

static constexpr int64_t kMaxParts = 1024;  // of a parallel_for: each part is a run of indices

static Status parallel_for(rlx_opcall& call, size_t n, rlx_index_fn fn, void* arg) {
  if (!fn) return Status(Code::kInvalidArgument, "rlx_opcall_parallel_for: 'fn' is NULL").with("input", "fn");
  if (!is_possible(n, 1)) return Status(Code::kInvalidArgument, format("rlx_opcall_parallel_for: n is {}", n));
  const RunQueue& queue = call.lender.env->queue();
  auto part = [&](int64_t begin, int64_t end) {
    RunQueue::InRun in_run(queue);
    try {
      for (int64_t i = begin; i < end; i++) fn(arg, static_cast<size_t>(i));
    } catch (const std::bad_alloc&) {  // else it would count as one of the library
      throw HostThrew{"fn"};
    }
  };
  auto count = static_cast<int64_t>(n);
  try {
    if (call.infers)
      part(0, count);
    else
      call.lender.env->pool().parallel_for(count, count / kMaxParts + 1, part);
  } catch (...) {
    return thrown_by("rlx_opcall_parallel_for");
  }
  return {};
}

}  // namespace rlx::capi

rlx_status_t* rlx_env_register_op(rlx_env_t* env, const rlx_op_def_t* def) {
  return guard({handle(env, "env"), {def, "def"}}, [&] { return register_op(env, *def); });
}

size_t rlx_opcall_count(const rlx_opcall_t* call, int32_t kind) {
  return guard_value(0, {handle(call, "call")}, [&] { return call->tensors(kind).size(); });
}

rlx_tensor_t* rlx_opcall_tensor(const rlx_opcall_t* call, int32_t kind, size_t index) {
  return guard_value(nullptr, {handle(call, "call")}, [&]() -> rlx_tensor_t* {
    auto tensors = call->tensors(kind);
    return index < tensors.size() ? tensors[index].get() : nullptr;
  });
}

const rlx_attrs_t* rlx_opcall_attrs(const rlx_opcall_t* call) {
  return call ? &call->attrs : nullptr;
}

rlx_status_t* rlx_opcall_set_shape(rlx_opcall_t* call, size_t output, rlx_dtype_t dtype, const int64_t* dims,
                                   size_t rank) {
  return guard({handle(call, "call"), array(dims, rank, "dims")},
               [&] { return set_shape(*call, output, dtype, dims, rank); });
}

int32_t rlx_opcall_fail(rlx_opcall_t* call, rlx_code_t code, const char* message) {
  return guard_value(0, {handle(call, "call")}, [&] {
    call->fail(Status::adopt(from_c(rlx_status_create(code == RLX_OK ? RLX_E_CALLBACK : code, message))));
    return 0;
  });
}

void rlx_opcall_parallel_for(rlx_opcall_t* call, size_t n, rlx_index_fn fn, void* arg) {
  Status status = contained(__func__, {handle(call, "call")}, [&] { return parallel_for(*call, n, fn, arg); });
  if (call && !status.ok()) call->fail(std::move(status));
}
