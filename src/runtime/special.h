// SPDX-License-Identifier: Apache-2.0
// Models of files that no one graph can stand for: an input decides the structure, or a size does. The file is imported
// again for each such value, with the input as a constant; all these models share their weights. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "import/format.h"
#include "runtime/model.h"

namespace rlx {

class SpecialModels {
 public:
  SpecialModels(std::shared_ptr<Env> env, Source source, ImportOptions options, NamedAttrs policy, size_t capacity,
                Status why)
      : env_(std::move(env)),
        source_(std::move(source)),
        options_(std::move(options)),
        policy_(std::move(policy)),
        capacity_(capacity),
        why_(std::move(why)) {}

  // The model for the values and sizes of these inputs. `general` has the inputs.
  Result<std::shared_ptr<Model>> find(const Model& general, std::span<const std::string_view> names,
                                      std::span<const Tensor> in);
  Status set_param(std::string_view name, Tensor tensor);
  Status no_general_graph() const;
  Status want(const Status& failure);  // keeps the inputs that it names; the failure itself if there are no new ones

 private:
  struct Made {
    std::string key;
    std::shared_ptr<Model> model;  // null: it failed
    Status why;
  };
  struct Attempt {
    std::string key;
    ImportChoices choices;
  };
  Result<Attempt> attempt(const Model& general, std::span<const std::string_view> names, std::span<const Tensor> in,
                          bool with_sizes) const;
  Result<std::shared_ptr<Model>> made(const Attempt& attempt);
  Result<std::shared_ptr<Model>> import(const ImportChoices& choices);

  const std::shared_ptr<Env> env_;
  const Source source_;
  const ImportOptions options_;
  const NamedAttrs policy_;
  const size_t capacity_;
  const Status why_;
  const std::shared_ptr<Weights> weights_ = std::make_shared<Weights>();
  std::recursive_mutex mutex_;  // of all that follows; a special model is made under it
  std::set<std::string> static_;
  std::vector<Made> models_;  // oldest first
  std::vector<std::pair<std::string, Tensor>> set_;
};

// A model of a file, general where that can be.
Result<std::shared_ptr<Model>> open_model(const std::shared_ptr<Env>& env, const Source& source,
                                          const ImportOptions& options, const NamedAttrs& policy);

}  // namespace rlx
