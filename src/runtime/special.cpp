// SPDX-License-Identifier: Apache-2.0
#include "runtime/special.h"

#include <algorithm>
#include <cstring>

namespace rlx {

static constexpr int64_t kMostElements = 64;  // of an input whose value a model is made for

static Status put_weights(ImportedFile& file, Weights& weights) {
  for (auto& [name, tensor] : file.weights)
    if (!weights.find(name)) RLX_TRY(weights.put(name, std::move(tensor)));
  for (const auto& [key, value] : file.metadata) weights.set_metadata(key, value);
  return {};
}

// What may turn out otherwise at known sizes: a rule of sizes, or an input that is not known.
static bool may_be_special(const Status& failure, const Graph& inputs) {
  if (failure.detail(kStaticInputs)) return true;
  bool is_of_sizes =
      failure.code() == Code::kShape || failure.code() == Code::kRange || failure.code() == Code::kOption;
  return is_of_sizes && !inputs.symbols().empty();
}

Result<std::shared_ptr<Model>> open_model(const std::shared_ptr<Env>& env, const Source& source,
                                          const ImportOptions& options, const NamedAttrs& policy) {
  auto file = import_source(source, "", true, options);
  if (file.ok()) {
    auto weights = std::make_shared<Weights>();
    RLX_TRY(put_weights(*file, *weights));
    return Model::create(env, file->graph, std::move(weights), policy);
  }
  ImportOptions bare = options;
  bare.choices.inputs_only = true;
  auto inputs = import_source(source, "", true, bare);
  if (!inputs.ok() || !may_be_special(file.status(), inputs->graph)) return std::move(file).status();
  size_t capacity = RLX_TRY(parse_policy(policy)).capacity;
  auto special = std::make_shared<SpecialModels>(env, source, options, policy, capacity, file.status());
  if (file.status().detail(kStaticInputs)) RLX_TRY(special->want(file.status()));
  return Model::create_special(env, inputs->graph, std::move(special), policy);
}

Status SpecialModels::no_general_graph() const {
  return Status(Code::kUnsupported, "the model has no graph for all sizes and values: " + std::string(why_.message()));
}

Status SpecialModels::want(const Status& failure) {
  const std::string* names = failure.detail(kStaticInputs);
  size_t before = static_.size();
  for (std::string_view rest = names ? std::string_view(*names) : std::string_view(); !rest.empty();) {
    size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) static_.emplace(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return static_.size() > before ? Status() : failure;
}

// The key is what the choices say, as text.
Result<SpecialModels::Attempt> SpecialModels::attempt(const Model& general, std::span<const std::string_view> names,
                                                      std::span<const Tensor> in, bool with_sizes) const {
  Attempt attempt;
  const Graph& graph = general.graph();
  for (size_t i = 0; i < in.size(); i++) {
    std::string name(!names.empty() ? names[i] : i < graph.inputs().size() ? graph.leaf_name(graph.inputs()[i]) : "");
    if (!static_.contains(name)) continue;
    if (in[i].count() > kMostElements)
      return Status(Code::kUnsupported, format("the input '{}' decides the structure of the graph and has {} elements, "
                                               "more than {}: {}",
                                               name, in[i].count(), kMostElements, why_.message()))
          .with("input", name);
    Tensor copy = RLX_TRY(Tensor::create(in[i].dtype(), in[i].dims()));
    if (copy.bytes() > 0 && !in[i].data())
      return Status(Code::kUnsupported,
                    "the input '" + name + "' decides the structure of the graph: it must be on the host")
          .with("input", name);
    if (copy.bytes() > 0) std::memcpy(copy.data(), in[i].data(), static_cast<size_t>(copy.bytes()));
    attempt.key += name + type_text(copy.dtype(), copy.dims()) + "=";
    attempt.key.append(reinterpret_cast<const char*>(copy.data()), static_cast<size_t>(copy.bytes()));
    attempt.choices.values.emplace_back(std::move(name), std::move(copy));
  }
  Model::Sizes sizes = RLX_TRY(general.sizes_of(names, in));
  if (with_sizes) attempt.choices.dims = std::move(sizes);
  for (const auto& [symbol, size] : attempt.choices.dims) attempt.key += ";" + symbol + "=" + std::to_string(size);
  return attempt;
}

Result<std::shared_ptr<Model>> SpecialModels::import(const ImportChoices& choices) {
  ImportOptions options = options_;
  options.choices.dims.insert(options.choices.dims.end(), choices.dims.begin(), choices.dims.end());
  options.choices.values.insert(options.choices.values.end(), choices.values.begin(), choices.values.end());
  ImportedFile file = RLX_TRY(import_source(source_, "", true, options));
  RLX_TRY(put_weights(file, *weights_));
  std::shared_ptr<Model> model = RLX_TRY(Model::create(env_, file.graph, weights_, policy_));
  for (const auto& [name, tensor] : set_)
    if (file.graph.find_leaf(name)) RLX_TRY(model->set_param(name, tensor));
  return model;
}

Result<std::shared_ptr<Model>> SpecialModels::made(const Attempt& attempt) {
  auto known = std::find_if(models_.begin(), models_.end(), [&](const Made& it) { return it.key == attempt.key; });
  if (known == models_.end()) {
    auto model = import(attempt.choices);
    if (!model.ok() && model.status().detail(kStaticInputs))
      return std::move(model).status();  // may be tried with more
    if (models_.size() >= capacity_) models_.erase(models_.begin());
    models_.push_back({attempt.key, model.ok() ? *model : nullptr, model.ok() ? Status() : model.status()});
    known = models_.end() - 1;
  }
  return known->model ? Result<std::shared_ptr<Model>>(known->model) : Status(known->why);
}

Result<std::shared_ptr<Model>> SpecialModels::find(const Model& general, std::span<const std::string_view> names,
                                                   std::span<const Tensor> in) {
  std::lock_guard lock(mutex_);
  Status why;
  for (bool with_sizes : {false, true}) do {
      auto model = made(RLX_TRY(attempt(general, names, in, with_sizes)));
      if (model.ok()) return model;
      why = model.status();
    } while (want(why).ok());
  return why;
}

Status SpecialModels::set_param(std::string_view name, Tensor tensor) {
  std::lock_guard lock(mutex_);
  for (const Made& it : models_)
    if (it.model && it.model->graph().find_leaf(name)) RLX_TRY(it.model->set_param(name, tensor));
  std::erase_if(set_, [&](const auto& pair) { return pair.first == name; });
  set_.emplace_back(name, std::move(tensor));
  return {};
}

}  // namespace rlx
