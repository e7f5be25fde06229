// SPDX-License-Identifier: Apache-2.0
// Compiling, planning, and running with a context that is kept for the next call.
#include "runtime/program.h"

#include <algorithm>

#include "base/json.h"
#include "ir/text.h"
#include "runtime/exec.h"

namespace rlx {

Result<std::shared_ptr<Program>> Program::compile(std::shared_ptr<Env> env, const Graph& graph,
                                                  std::shared_ptr<Weights> weights, Device* device,
                                                  const NamedAttrs& given) {
  CompileOptions options = RLX_TRY(parse_compile_options(given));
  if (!device) device = RLX_TRY(env->find_device(""));
  UpperSizes upper = options.dims;
  Device* fallback = env->fallback_of(*device);
  std::shared_ptr<const CompiledGraph> source =
      RLX_TRY(rlx::compile(graph, *device, std::move(options), env->host().get(), fallback));
  // The plan comes first: it is cheap, and if a size is missing no weight needs to be prepared.
  std::shared_ptr<const Plan> plan = RLX_TRY(plan_for(*source, upper, env->host().get()));
  auto params = RLX_TRY(ParamStore::make(std::move(env), std::move(source), std::move(weights)));
  std::shared_ptr<Program> made = RLX_TRY(finish(std::move(params), plan));
  made->params_->drop_originals();  // last: without a program, the weights stay whole
  return made;
}

Result<std::shared_ptr<Program>> Program::compile_prologue(std::shared_ptr<Env> env, const Graph& graph, Device& device,
                                                           CompileOptions options) {
  Device* fallback = env->fallback_of(device);
  options.falls_back = true;
  std::shared_ptr<const CompiledGraph> source =
      RLX_TRY(rlx::compile(graph, device, std::move(options), nullptr, fallback));
  std::shared_ptr<const Plan> plan = RLX_TRY(plan_for(*source, {}));
  return finish(RLX_TRY(ParamStore::make(std::move(env), std::move(source), nullptr, Progress::kSilent)), plan);
}

Result<std::shared_ptr<Program>> Program::plan(std::shared_ptr<ParamStore> params, const UpperSizes& upper) {
  std::shared_ptr<const Plan> plan = RLX_TRY(plan_for(*params->compiled_graph(), upper, params->env()->host().get()));
  std::shared_ptr<Program> made = RLX_TRY(finish(std::move(params), plan));
  made->shares_params_ = true;
  return made;
}

Result<std::shared_ptr<Program>> Program::finish(std::shared_ptr<ParamStore> params,
                                                 const std::shared_ptr<const Plan>& plan) {
  std::shared_ptr<Program> made(new Program);
  made->env_ = params->env();
  made->compiled_graph_ = params->compiled_graph();
  made->params_ = std::move(params);
  made->plan_ = plan;
  made->compiled_plan_ = RLX_TRY(CompiledPlan::make(made->device(), made->compiled_graph_->fallback, plan));
  made->make_slots();
  made->env_->watch(made);
  return made;
}

void Program::make_slots() {
  const Graph& graph = plan_->graph();
  auto add = [&](SlotKind kind, const std::string& name, const ValueType& type, Dims upper, int64_t bytes) -> Slot& {
    return slots_[static_cast<size_t>(kind) - 1].emplace_back(Slot{name, type, upper, bytes});
  };
  auto add_planned = [&](SlotKind kind, const std::string& name, Value value, const PlanSlot& planned) {
    const ValueType& type = graph.type(value);
    Slot& slot = add(kind, name, type, planned.upper, planned.bytes);
    bool may_be_unaligned = (kind == SlotKind::kInput && planned.may_be_unaligned) || is_block(type.dtype);
    if (!may_be_unaligned) slot.alignment = std::min<size_t>(8, static_cast<size_t>(element_bytes(type.dtype)));
    slot.has_fresh_dims = plan_->known_at(planned.dims) != PlanSymbol::kGiven;
  };
  auto reserve = [&](SlotKind kind, size_t count) { slots_[static_cast<size_t>(kind) - 1].reserve(count); };
  reserve(SlotKind::kInput, graph.inputs().size());
  reserve(SlotKind::kOutput, graph.outputs().size());
  reserve(SlotKind::kParam, graph.params().size());
  for (size_t i = 0; i < graph.inputs().size(); i++)
    add_planned(SlotKind::kInput, graph.leaf_name(graph.inputs()[i]), {graph.inputs()[i], 0}, plan_->inputs[i]);
  for (size_t i = 0; i < graph.outputs().size(); i++)
    add_planned(SlotKind::kOutput, graph.outputs()[i].name, graph.outputs()[i].value, plan_->outputs[i]);
  for (uint32_t node : graph.params()) {
    const ValueType& type = graph.node(node).out[0];
    Dims dims;
    for (const Dim& dim : type.dims) dims.push_back(dim.literal());
    int64_t count = element_count(std::span<const int64_t>(dims)).value_or(0);
    add(SlotKind::kParam, graph.leaf_name(node), type, dims, byte_size(type.dtype, count).value_or(0));
  }
}

int64_t Program::find(SlotKind kind, std::string_view name) const {
  const Graph& graph = plan_->graph();
  auto index = kind == SlotKind::kInput    ? graph.index_of_input(name)
               : kind == SlotKind::kOutput ? graph.index_of_output(name)
                                           : graph.index_of_param(name);
  return index ? static_cast<int64_t>(*index) : -1;
}

static Status owned_by_model() {
  return Status(Code::kState, "this program belongs to a model: set params through the model");
}

Status Program::set_param(std::string_view name, Tensor tensor) {
  if (shares_params_) return owned_by_model();
  std::pair<std::string_view, Tensor> change{name, std::move(tensor)};
  return params_->set({&change, 1});
}

Status Program::set_params(const std::shared_ptr<Weights>& weights) {
  if (shares_params_) return owned_by_model();
  return params_->set_all(*weights);
}

// ---- running ----

std::string_view kind_text(SlotKind kind) {
  return kind == SlotKind::kInput ? "input" : kind == SlotKind::kOutput ? "output" : "param";
}

// As match_names. The usual call, without names, takes the short way.
Status Program::find_slots(SlotKind kind, std::span<const std::string_view> names, size_t count, Indices& found) const {
  size_t all = slots(kind).size();
  if (names.empty() && count == all) {
    for (size_t i = 0; i < all; i++) found.push_back(i);
    return {};
  }
  auto find_slot = [&](std::string_view name) { return find(kind, name); };
  auto name_of = [&](size_t slot) -> std::string_view { return slots(kind)[slot].name; };
  Required required = kind == SlotKind::kInput ? Required::kAll : Required::kNone;
  found = RLX_TRY(match_names({kind_text(kind), all, find_slot, name_of}, names, count, required));
  return {};
}

Result<std::vector<Tensor>> Program::run(std::span<const std::string_view> in_names, std::span<const Tensor> in,
                                         std::span<const std::string_view> out_names, size_t n_out) {
  Indices out_slots;
  RLX_TRY(find_slots(SlotKind::kOutput, out_names, n_out, out_slots));  // before there is memory for as many
  std::vector<Tensor> results(n_out);
  InlinedVector<Tensor, 4> inputs(in.begin(), in.end());
  RLX_TRY(run(in_names, std::span(inputs.data(), inputs.size()), out_names, results));
  return results;
}

Status Program::run(std::span<const std::string_view> in_names, std::span<Tensor> in,
                    std::span<const std::string_view> out_names, std::span<Tensor> out) {
  Indices in_slots, out_slots;
  RLX_TRY(find_slots(SlotKind::kInput, in_names, in.size(), in_slots));
  RLX_TRY(find_slots(SlotKind::kOutput, out_names, out.size(), out_slots));
  std::unique_ptr<Exec> exec = RLX_TRY(take_exec());
  Status status = exec->run_once(in_slots, in, out_slots, out);
  return_exec(std::move(exec));
  return status;
}

Result<std::unique_ptr<Exec>> Program::take_exec() {
  if (is_retired_.load(std::memory_order_relaxed)) is_retired_.store(false, std::memory_order_relaxed);
  std::unique_ptr<Exec> exec;
  for (size_t i = 0; i < idle_.size() && !exec; i++)
    if (idle_[i].load(std::memory_order_relaxed)) exec.reset(idle_[i].exchange(nullptr, std::memory_order_acquire));
  if (!exec) {
    std::lock_guard lock(more_mutex_);
    if (!more_idle_.empty()) {
      exec = std::move(more_idle_.back());
      more_idle_.pop_back();
    }
  }
  if (!exec) return Exec::create(shared_from_this());
  exec->program_ = std::shared_ptr<Program>(std::shared_ptr<Program>(), this);  // the caller of run keeps it
  return exec;
}

void Program::return_exec(std::unique_ptr<Exec> exec) {
  exec->forget_bindings();
  exec->program_.reset();
  if (is_retired_.load(std::memory_order_acquire)) return exec.reset();
  for (std::atomic<Exec*>& place : idle_) {
    Exec* nobody = nullptr;
    if (!place.compare_exchange_strong(nobody, exec.get(), std::memory_order_release, std::memory_order_relaxed))
      continue;
    static_cast<void>(exec.release());
    return;
  }
  std::lock_guard lock(more_mutex_);
  try {
    more_idle_.push_back(std::move(exec));
  } catch (const std::bad_alloc&) {}  // it is not kept; the run has succeeded all the same
}

void Program::retire() {
  is_retired_.store(true, std::memory_order_release);
  trim();
}

void Program::trim() {
  for (std::atomic<Exec*>& place : idle_)
    std::unique_ptr<Exec> gone(place.exchange(nullptr, std::memory_order_acquire));
  std::vector<std::unique_ptr<Exec>> gone;  // without the lock, as it may call the host
  std::lock_guard lock(more_mutex_);
  gone.swap(more_idle_);
}

Program::~Program() {
  for (std::atomic<Exec*>& place : idle_) delete place.load(std::memory_order_acquire);
}

// ---- reports ----

static void write_slots(JsonWriter& json, const char* key, std::span<const Slot> slots) {
  json.key(key).begin_array();
  for (const Slot& slot : slots)
    json.begin_object()
        .member("name", std::string_view(slot.name))
        .member("dtype", name(slot.type.dtype))
        .member("shape", std::string_view(text_of(slot.type.dims)))
        .member("upper", std::span<const int64_t>(slot.upper))
        .member("bytes", slot.bytes)
        .end_object();
  json.end_array();
}

Result<std::string> Program::report(std::string_view what) const {
  if (what == "dispatch") return dispatch_report(*compiled_graph_);
  if (what == "passes") return passes_report(*compiled_graph_, *plan_);
  if (what == "memory") return memory_json(*plan_);
  if (what == "text") return print(compiled_graph_->graph()) + plan_text(*plan_);
  if (what == "bindings") {
    JsonWriter json;
    json.begin_object();
    write_slots(json, "inputs", slots(SlotKind::kInput));
    write_slots(json, "outputs", slots(SlotKind::kOutput));
    write_slots(json, "params", slots(SlotKind::kParam));
    json.end_object();
    return std::move(json).take();
  }
  return Status(Code::kNotFound,
                "a program has no report '" + std::string(what) + "', only dispatch, passes, memory, bindings, text")
      .with("value", what);
}

}  // namespace rlx
