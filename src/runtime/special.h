// SPDX-License-Identifier: Apache-2.0
// Special models. A graph cannot serve all sizes and values if an input decides its structure or a size breaks one of
// its guards, and a file may leave the rank of an input open. It is then built again with these ranks, values and sizes
// as constants, once for each set of them. Special models share the weights of the general model and the params that
// were set in it. Thread-safe.
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

enum class Serves : bool { kAllSizes, kOneSet };  // what a special model is for, where there is a choice

class SpecialModels {
 public:
  // Builds the graph again; new weights go into those given. May call the host.
  using Remake = std::function<Result<Graph>(const ImportChoices&, Weights&)>;

  enum class From : bool { kGraph, kFile };  // what is built again: only a file leaves it open what a size's name means

  SpecialModels(Remake remake, From from) : remake_(std::move(remake)), from_(from) {}

  // The model for the values and sizes of these inputs of `general`. With Serves::kOneSet each set of sizes gets a
  // model of its own; else only if no graph can be built for all sizes.
  Result<std::shared_ptr<Model>> find(const Model& general, std::span<const std::string_view> names,
                                      std::span<const Tensor> in, Serves serves);
  // Notes the inputs that a failed import names: their values are constants from now on.
  void note_static(const Status& failure);
  void forget();  // drops all models, for example for another policy
  std::vector<std::string> static_inputs() const;
  size_t count() const;  // the number of models

 private:
  struct Made {
    std::string key;
    std::shared_ptr<Model> model;  // null: making it failed
    Status why;
    std::shared_ptr<const Policy> policy = nullptr;  // for which it was made
    uint64_t params_version = 0;                     // the version of the general model's params
    bool has_model() const { return model != nullptr; }
  };
  struct Attempt {
    std::string key;
    ImportChoices choices;
  };
  Result<Attempt> attempt(const Model& general, std::span<const std::string_view> names, std::span<const Tensor> in,
                          Serves serves) const;
  Result<std::shared_ptr<Model>> find_or_make(const Model& general, const Attempt& attempt);
  Result<std::shared_ptr<Model>> build(const Model& general, const ImportChoices& choices, const Policy& policy) const;
  Made* find_made(const std::string& key);
  void keep(Made made, size_t capacity);  // at most so many models, and so many failures

  const Remake remake_;
  const From from_;
  mutable std::mutex mutex_;  // guards what follows; never held while a model is made
  Turns<std::string> turns_{mutex_};
  std::set<std::string> static_;
  std::vector<Made> models_;  // oldest first
};

// A model of a file: a general one if possible.
Result<std::shared_ptr<Model>> open_model(const std::shared_ptr<Env>& env, const Source& source,
                                          const ImportOptions& options, const NamedAttrs& policy);

}  // namespace rlx
