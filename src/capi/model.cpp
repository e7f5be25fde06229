// SPDX-License-Identifier: Apache-2.0
// rlx_model_*: a handle of a model.
#include "runtime/model.h"

#include "capi/attrs.h"
#include "capi/blob.h"
#include "capi/compiled.h"
#include "capi/graph.h"
#include "capi/guard.h"
#include "capi/weights.h"
#include "compile/options.h"
#include "runtime/special.h"

using namespace rlx;
using namespace rlx::capi;

struct rlx_model : Counted {
  rlx_model(rlx_env* owner, std::shared_ptr<Model> made)
      : env(owner), model(std::move(made)), graph(owner, model->graph()) {
    graph.open_ranks = model->open_ranks();
    if (!graph.open_ranks.empty()) graph.status = model->why_not_general();
  }
  const uint32_t* alive() const { return env->alive(); }

  const Ref<rlx_env> env;
  const std::shared_ptr<Model> model;
  rlx_graph graph;  // rlx_model_graph returns its address
};

static Result<rlx_model*> new_model(rlx_env* env, const Graph& graph, std::shared_ptr<Weights> weights,
                                    const NamedAttrs& policy) {
  auto model = RLX_TRY(Model::create(env->env, graph, std::move(weights), policy));
  return new rlx_model(env, std::move(model));
}

// Whether the key is an import option: "rank.x" matches "rank.<input>". For a model, dims.<symbol> is the option of
// rlx_compile.
static bool is_import_option(std::string_view key) {
  for (const AttrDef& def : import_options()) {
    bool is_family = stem_of(def.name) != def.name;
    if (is_family ? key.starts_with(stem_of(def.name)) : key == def.name) return !key.starts_with("dims.");
  }
  return false;
}

// Removes the import options from a policy and returns them.
static Result<ImportOptions> import_options_in(NamedAttrs& policy) {
  NamedAttrs given, rest;
  for (auto& pair : policy) (is_import_option(pair.first) ? given : rest).push_back(std::move(pair));
  policy = std::move(rest);
  return parse_import_options(given);
}

rlx_status_t* rlx_model_create(const rlx_graph_t* graph, rlx_weights_t* weights, const rlx_attrs_t* policy,
                               rlx_model_t** out) {
  return guard({cleared(out, "out"), handle(graph, "graph")}, [&]() -> Status {
    if (!graph->status.ok()) return graph->status;
    rlx_env* env = graph->env.get();
    *out = RLX_TRY(new_model(env, graph->graph, RLX_TRY(weights_of(env, weights)), RLX_TRY(values_of(policy, env))));
    return {};
  });
}

rlx_status_t* rlx_model_open(rlx_env_t* env, const char* path, const rlx_attrs_t* policy, rlx_model_t** out) {
  return guard({cleared(out, "out"), handle(env, "env"), path_argument(path, "path")}, [&]() -> Status {
    NamedAttrs values = RLX_TRY(values_of(policy, env));
    ImportOptions options = RLX_TRY(import_options_in(values));
    options.host = env->env->host().get();
    options.customs = env->customs;
    auto model = RLX_TRY(open_model(env->env, RLX_TRY(Source::open(path)), options, values));
    *out = new rlx_model(env, std::move(model));
    return {};
  });
}

rlx_model_t* rlx_model_retain(rlx_model_t* model) {
  return retain(model);
}

void rlx_model_release(rlx_model_t* model) {
  release(model);
}

const rlx_graph_t* rlx_model_graph(const rlx_model_t* model) {
  return model ? &model->graph : nullptr;
}

rlx_status_t* rlx_model_set_param(rlx_model_t* model, const char* name, rlx_tensor_t* tensor) {
  return guard({handle(model, "model"), {name, "name"}, handle(tensor, "tensor")}, [&]() -> Status {
    Tensor contents = *RLX_TRY(contents_to_retain(*tensor, model->env.get(), "tensor"));
    return model->model->set_param(name, RLX_TRY(contents.frozen()));
  });
}

rlx_status_t* rlx_model_set_policy(rlx_model_t* model, const rlx_attrs_t* policy) {
  return guard({handle(model, "model")}, [&]() -> Status {
    if (!policy) return model->model->set_policy(nullptr);
    NamedAttrs values = RLX_TRY(values_of(policy, model->env.get()));
    return model->model->set_policy(&values);
  });
}

rlx_status_t* rlx_model_resolve(rlx_model_t* model, const char* device, const rlx_device_t** out) {
  return guard({cleared(out, "out"), handle(model, "model")}, [&]() -> Status {
    Device* found = RLX_TRY(model->model->resolve(RLX_TRY(device_spec(*model->env.get(), device))));
    *out = model->env->handle_of(found);
    return {};
  });
}

rlx_status_t* rlx_model_get(rlx_model_t* model, const char* device, const char* const* symbols, const int64_t* sizes,
                            size_t n, rlx_compiled_t** out) {
  auto arguments = {cleared(out, "out"), handle(model, "model"), array(symbols, n, "symbols"),
                    array(sizes, n, "sizes")};
  return guard(arguments, [&]() -> Status {
    std::vector<std::pair<std::string_view, int64_t>> wanted;
    for (size_t i = 0; i < n; i++) {
      if (!symbols[i]) return null_element("symbols", i);
      wanted.emplace_back(symbols[i], sizes[i]);
    }
    auto program = RLX_TRY(model->model->get(RLX_TRY(device_spec(*model->env.get(), device)), wanted));
    *out = new rlx_compiled(model->env.get(), std::move(program), rlx_compiled::MadeBy::kModel);
    return {};
  });
}

rlx_status_t* rlx_model_run(rlx_model_t* model, const char* device, const char* const* in_names,
                            rlx_tensor_t* const* in, size_t n_in, const char* const* out_names, rlx_tensor_t** out,
                            size_t n_out, const rlx_device_t** ran_on) {
  if (ran_on) *ran_on = nullptr;
  auto arguments = {cleared(out, n_out, "out"), handle(model, "model"), array(in, n_in, "in")};
  return guard(arguments, [&]() -> Status {
    RunInputs inputs;
    RLX_TRY(read_inputs(model->env.get(), in_names, in, n_in, out_names, n_out, inputs));
    std::string_view spec = RLX_TRY(device_spec(*model->env.get(), device));
    auto ran = RLX_TRY(model->model->run(spec, inputs.in_names, inputs.in, inputs.out_names, n_out));
    give_outputs(model->env.get(), ran.outputs, out);
    if (ran_on) *ran_on = model->env->handle_of(ran.device);
    return {};
  });
}

rlx_status_t* rlx_model_benchmark(rlx_model_t* model, const char* const* in_names, rlx_tensor_t* const* in, size_t n_in,
                                  int32_t runs, rlx_blob_t** json) {
  return guard({cleared(json, "json"), handle(model, "model"), array(in, n_in, "in")}, [&]() -> Status {
    RunInputs inputs;
    RLX_TRY(read_inputs(model->env.get(), in_names, in, n_in, nullptr, 0, inputs));
    std::string times = RLX_TRY(model->model->benchmark(inputs.in_names, inputs.in, runs));  // not inside `new`
    *json = new rlx_blob(std::move(times));
    return {};
  });
}

rlx_status_t* rlx_model_report(const rlx_model_t* model, const char* what, rlx_blob_t** json) {
  return guard({cleared(json, "json"), handle(model, "model"), {what, "what"}}, [&]() -> Status {
    std::string report = RLX_TRY(model->model->report(what));
    *json = new rlx_blob(std::move(report));
    return {};
  });
}
