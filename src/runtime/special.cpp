// SPDX-License-Identifier: Apache-2.0
// The choice between the general model and special ones, and the special ones made so far.
#include "runtime/special.h"

#include <algorithm>

#include "base/contains.h"
#include "base/split.h"
#include "compile/options.h"
#include "runtime/convert.h"
#include "runtime/sizes.h"

namespace rlx {

static constexpr int64_t kMaxElements = 64;  // of an input that becomes a constant of a special model

static Status put_weights(ImportedFile& file, Weights& weights) {
  for (auto& [name, tensor] : file.weights)
    if (!weights.find(name)) RLX_TRY(weights.put(name, std::move(tensor)));
  for (const auto& [key, value] : file.metadata) weights.set_metadata(key, value);
  return {};
}

// Whether the failure may vanish with known sizes or values: it is about sizes, or about an input that decides
// structure.
static bool may_be_special(const Status& failure, const Graph& inputs) {
  if (failure.detail(kStaticInputs)) return true;
  bool is_of_sizes = failure.detail(kDependsOnSizes) || failure.code() == Code::kShape ||
                     failure.code() == Code::kRange || failure.code() == Code::kOption;
  return is_of_sizes && !inputs.symbols().empty();
}

// An unknown option may be meant for the import or for the model; a file is not read for it.
static Status check_options(const NamedAttrs& policy) {
  std::vector<std::string_view> names;
  for (const AttrDef& def : import_options()) names.push_back(stem_of(def.name));
  return parse_policy(policy, names).status();
}

Result<std::shared_ptr<Model>> open_model(const std::shared_ptr<Env>& env, const Source& source,
                                          const ImportOptions& options, const NamedAttrs& policy) {
  RLX_TRY(check_options(policy));
  auto remake = [=](const ImportChoices& choices, Weights& weights) -> Result<Graph> {
    ImportOptions chosen = options;
    chosen.choices.ranks.insert(chosen.choices.ranks.end(), choices.ranks.begin(), choices.ranks.end());
    chosen.choices.dims.insert(chosen.choices.dims.end(), choices.dims.begin(), choices.dims.end());
    chosen.choices.stretches |= choices.stretches;
    chosen.choices.separate_sizes |= choices.separate_sizes;
    chosen.choices.values.insert(chosen.choices.values.end(), choices.values.begin(), choices.values.end());
    ImportedFile file = RLX_TRY(import_source(source, "", chosen));
    RLX_TRY(put_weights(file, weights));
    return std::move(file.graph);
  };
  auto special = std::make_shared<SpecialModels>(remake, SpecialModels::From::kFile);
  auto weights = std::make_shared<Weights>();
  auto file = import_source(source, "", options);
  if (file.ok()) {
    RLX_TRY(put_weights(*file, *weights));
    if (!file->has_choices) special = nullptr;  // then other graphs are made from this one
    return Model::create(env, file->graph, std::move(weights), policy, std::move(special));
  }
  ImportOptions bare = options;
  bare.choices.interface_only = true;
  auto interface = import_source(source, "", bare);
  if (!interface.ok()) return std::move(interface).status();
  if (interface->open_ranks.empty() && !may_be_special(file.status(), interface->graph))
    return std::move(file).status();
  special->note_static(file.status());
  RLX_TRY(put_weights(*interface, *weights));
  return Model::create_special(env, interface->graph, std::move(weights), policy, std::move(special), file.status(),
                               std::move(interface->open_ranks));
}

static std::vector<std::string_view> static_names(const Status& failure) {
  const std::string* lines = failure.detail(kStaticInputs);
  std::vector<std::string_view> names = lines ? split(*lines, '\n') : std::vector<std::string_view>();
  std::erase(names, "");
  return names;
}

void SpecialModels::note_static(const Status& failure) {
  std::vector<std::string_view> names = static_names(failure);
  std::lock_guard lock(mutex_);
  for (std::string_view name : names) static_.emplace(name);
}

std::vector<std::string> SpecialModels::static_inputs() const {
  std::lock_guard lock(mutex_);
  return {static_.begin(), static_.end()};
}

size_t SpecialModels::count() const {
  std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count_if(models_, &SpecialModels::Made::has_model));
}

void SpecialModels::forget() {
  std::vector<Made> gone;  // released without the lock
  std::lock_guard lock(mutex_);
  gone.swap(models_);
}

// As a constant of the graph, of this dtype.
static Result<Tensor> copy_of_input(const std::string& name, const Tensor& given, DType dtype) {
  auto refused = [&](std::string_view why) {
    return Status(Code::kUnsupported, format("the input '{}' decides the structure of the graph{}", name, why))
        .with("input", name);
  };
  if (given.count() > kMaxElements)
    return refused(format(": it has {} elements, and may have {}", given.count(), kMaxElements));
  Tensor copy = RLX_TRY(Tensor::create(dtype, given.dims()));
  if (copy.bytes() == 0) return copy;
  if (!given.data()) return refused(": it must be on the host");
  convert_elements(given.dtype(), given.data(), dtype, copy.data(), given.count());
  return copy;
}

// The dtype in which a program reads the input, if the call gives it in this one.
static Result<DType> dtype_in_program(const Model& general, const std::string& name, DType given) {
  DType declared = general.graph().type(*general.graph().find_leaf(name)).dtype;
  if (given == declared || !may_convert(given, declared)) return given;
  return RLX_TRY(parse_compile_options(general.policy()->options)).io_convert ? declared : given;
}

// Every open size of an input by itself.
static void add_sizes_by_axis(Model::Sizes& sizes, const std::string& name, std::span<const Dim> dims,
                              const Tensor& given) {
  for (size_t axis = 0; axis < given.rank(); axis++)
    if (dims.empty() || !dims[axis].is_literal())
      sizes.emplace_back(name + "." + std::to_string(axis), given.dims()[axis]);
}

// Every size of an input under a name of its own, for calls that give one name two sizes. In files a name does not say
// that sizes agree: writers repeat names by mistake, and other runtimes do not compare the sizes.
static Model::Sizes sizes_by_axis(const Model& model, const NamedTensors& in) {
  Model::Sizes sizes;
  for (const auto& [name, given] : in)
    if (!model.has_open_rank(name))
      add_sizes_by_axis(sizes, name, model.graph().type(*model.graph().find_leaf(name)).dims, given);
  return sizes;
}

// Names have their lengths before them and values have types: two sets of choices never have one text.
static std::string key_of(const ImportChoices& choices) {
  std::string key = format("{}{}", choices.separate_sizes ? "separate " : "", choices.stretches ? "at " : "");
  auto add_number = [&](std::string_view what, const std::pair<std::string, int64_t>& choice) {
    key += format("{}{}:{}={} ", what, choice.first.size(), choice.first, choice.second);
  };
  for (const auto& rank : choices.ranks) add_number("rank ", rank);
  for (const auto& size : choices.dims) add_number("size ", size);
  for (const auto& [name, value] : choices.values) {
    key += format("value {}:{}{}=", name.size(), name, type_text(value.dtype(), value.dims()));
    key.append(reinterpret_cast<const char*>(value.data()), static_cast<size_t>(value.bytes()));
  }
  return key;
}

// First the ranks, which say what axes there are, then the values, then the sizes.
Result<SpecialModels::Attempt> SpecialModels::attempt(const Model& general, std::span<const std::string_view> names,
                                                      std::span<const Tensor> in, Serves serves) const {
  ImportChoices choices;
  auto given = general.sizes_of(names, in);  // this checks the names too
  choices.separate_sizes = from_ == From::kFile && !given.ok() && given.status().detail(kUnequalSizes);
  if (!given.ok() && !choices.separate_sizes) return std::move(given).status();
  NamedTensors inputs;
  for (size_t i = 0; i < in.size(); i++)
    inputs.emplace_back(names.empty() ? general.graph().leaf_name(general.graph().inputs()[i]) : names[i], in[i]);
  std::ranges::sort(inputs, {}, &NamedTensors::value_type::first);  // the order of a call is no other choice
  for (const auto& [name, tensor] : inputs)
    if (general.has_open_rank(name)) choices.ranks.emplace_back(name, static_cast<int64_t>(tensor.rank()));
  std::vector<std::string> wanted = static_inputs();
  for (const auto& [name, tensor] : inputs)
    if (contains(wanted, name)) {
      DType dtype = RLX_TRY(dtype_in_program(general, name, tensor.dtype()));
      choices.values.emplace_back(name, RLX_TRY(copy_of_input(name, tensor, dtype)));
    }
  if (serves == Serves::kOneSet || choices.separate_sizes) {
    choices.dims = choices.separate_sizes ? sizes_by_axis(general, inputs) : std::move(*given);
    choices.stretches = true;
    for (const auto& [name, tensor] : inputs)
      if (general.has_open_rank(name)) add_sizes_by_axis(choices.dims, name, {}, tensor);
  }
  return Attempt{key_of(choices), std::move(choices)};
}

Result<std::shared_ptr<Model>> SpecialModels::build(const Model& general, const ImportChoices& choices,
                                                    const Policy& policy) const {
  Graph graph = RLX_TRY(remake_(choices, *general.weights()));
  return Model::create_for(general, graph, policy);
}

SpecialModels::Made* SpecialModels::find_made(const std::string& key) {
  auto known = std::find_if(models_.begin(), models_.end(), [&](const Made& it) { return it.key == key; });
  return known == models_.end() ? nullptr : &*known;
}

void SpecialModels::keep(Made made, size_t capacity) {
  std::shared_ptr<Model> gone;  // released without the lock
  std::lock_guard lock(mutex_);
  if (Made* known = find_made(made.key)) {
    std::swap(*known, made);
    gone = std::move(made.model);
    return;
  }
  auto is_alike = [&](const Made& it) { return it.has_model() == made.has_model(); };
  if (static_cast<size_t>(std::ranges::count_if(models_, is_alike)) >= capacity) {
    auto oldest = std::ranges::find_if(models_, is_alike);
    gone = std::move(oldest->model);
    models_.erase(oldest);
  }
  models_.push_back(std::move(made));
}

// Whether another or a later call may succeed: the failure is one of the host, of the machine or of its files, not of
// the graph.
static bool may_pass(Code code) {
  switch (code) {
    case Code::kCancelled:
    case Code::kCallback:
    case Code::kNoMemory:
    case Code::kUnavailable:
    case Code::kIo:
    case Code::kNotFound:
    case Code::kDenied: return true;
    default: return false;
  }
}

// A model may be kept after `forget`, by a run that began before: one of another policy counts as none.
Result<std::shared_ptr<Model>> SpecialModels::find_or_make(const Model& general, const Attempt& attempt) {
  Turns<std::string>::Turn turn(turns_, attempt.key);
  const std::shared_ptr<const Policy> policy = general.policy();
  Made it{.key = attempt.key, .policy = policy};
  {
    std::unique_lock lock(mutex_);
    do {
      const Made* known = find_made(attempt.key);
      if (known && known->policy != policy) known = nullptr;
      if (known && !known->model) return known->why;
      if (known && known->params_version == general.params_version()) return known->model;
      if (known) it = *known;
    } while (!turn.begin(lock));
  }
  size_t capacity = policy->capacity;
  if (!it.model) {
    auto model = build(general, attempt.choices, *policy);
    if (model.ok()) it.model = *model;
    if (!model.ok() && (may_pass(model.status().code()) || model.status().detail(kStaticInputs)))
      return std::move(model).status();  // the caller may retry with more static inputs
    if (!model.ok()) {
      keep({it.key, nullptr, model.status(), policy}, capacity);
      return std::move(model).status();
    }
  }
  Model::GivenParams given = general.params_given(it.params_version);
  for (const auto& [name, tensor] : given.params)
    if (it.model->graph().find_leaf(name)) RLX_TRY(it.model->set_param(name, tensor));
  it.params_version = given.version;
  keep(it, capacity);
  return it.model;
}

Result<std::shared_ptr<Model>> SpecialModels::find(const Model& general, std::span<const std::string_view> names,
                                                   std::span<const Tensor> in, Serves serves) {
  while (true) {
    Attempt attempt = RLX_TRY(this->attempt(general, names, in, serves));
    auto model = find_or_make(general, attempt);
    if (model.ok()) return model;
    std::vector<std::string_view> wanted = static_names(model.status());
    bool is_new = std::any_of(wanted.begin(), wanted.end(),
                              [&](std::string_view name) { return !attempt.choices.find_value(name); });
    if (!is_new) return may_pass(model.status().code()) ? model : Status(model.status()).with(kDependsOnSizes, "1");
    note_static(model.status());
  }
}

}  // namespace rlx
