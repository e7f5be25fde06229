// SPDX-License-Identifier: Apache-2.0
// Special models: where a graph cannot stand for all sizes and values, because an input decides its structure or a size
// breaks one of its conditions, it is made again with those as constants, once for each of them. They share the weights
// of the model that they belong to, and what was set in it. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "import/format.h"
#include "runtime/model.h"
#include "runtime/turns.h"

namespace rlx {

class SpecialModels {
 public:
  // Makes the graph again; new weights go into those given. May call the host.
  using Remake = std::function<Result<Graph>(const ImportChoices&, Weights&)>;

  explicit SpecialModels(Remake remake) : remake_(std::move(remake)) {}

  // The model for the values and sizes of these inputs of `general`. With `at_sizes` each set of sizes has its own;
  // else those whose graph cannot be made for all sizes.
  Result<std::shared_ptr<Model>> find(const Model& general, std::span<const std::string_view> names,
                                      std::span<const Tensor> in, bool at_sizes);
  // Notes the inputs that a failed import names: their values are constants from now on.
  void note_static(const Status& failure);
  void forget();  // all models, as for another policy
  std::vector<std::string> static_inputs() const;
  size_t count() const;  // models that there are

 private:
  struct Made {
    std::string key;
    std::shared_ptr<Model> model;  // null: it failed
    Status why;
    uint64_t params_version = 0;  // of what was set in the general model
  };
  struct Attempt {
    std::string key;
    ImportChoices choices;
  };
  Result<Attempt> attempt(const Model& general, std::span<const std::string_view> names, std::span<const Tensor> in,
                          bool at_sizes) const;
  Result<std::shared_ptr<Model>> made(const Model& general, const Attempt& attempt);
  Result<std::shared_ptr<Model>> make(const Model& general, const ImportChoices& choices) const;
  Made* find_made(const std::string& key);
  void keep(Made made, size_t capacity);

  const Remake remake_;
  mutable std::mutex mutex_;  // guards what follows; never held while a model is made
  Turns<std::string> turns_{mutex_};
  std::set<std::string> static_;
  std::vector<Made> models_;  // oldest first
};

// A model of a file, general where that can be.
Result<std::shared_ptr<Model>> open_model(const std::shared_ptr<Env>& env, const Source& source,
                                          const ImportOptions& options, const NamedAttrs& policy);

}  // namespace rlx
