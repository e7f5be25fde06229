// SPDX-License-Identifier: Apache-2.0
// Model: a graph, its weights and a policy; compiled on demand, with a plan per range of sizes. Thread-safe.
// Invariant: all plans on one device share one compiled graph and one param set.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "runtime/policy.h"
#include "runtime/program.h"
#include "runtime/turns.h"

namespace rlx {

class SpecialModels;
enum class Serves : bool;

class Model {
 public:
  // `special` makes graphs for sizes that break a guard; null: they are made from `graph`, with numbers for symbols.
  static Result<std::shared_ptr<Model>> create(std::shared_ptr<Env> env, const Graph& graph,
                                               std::shared_ptr<Weights> weights, const NamedAttrs& policy,
                                               std::shared_ptr<SpecialModels> special = nullptr);

  // A model of a file without a general graph, and the reason. `interface` has the inputs and params, those of open
  // rank as scalars; each run uses a special model.
  static Result<std::shared_ptr<Model>> create_special(std::shared_ptr<Env> env, const Graph& interface,
                                                       std::shared_ptr<Weights> weights, const NamedAttrs& policy,
                                                       std::shared_ptr<SpecialModels> special, Status why,
                                                       std::vector<std::string> open_ranks = {});

  // A special model for `general`, with its env and weights.
  static Result<std::shared_ptr<Model>> create_for(const Model& general, const Graph& graph, const Policy& policy);

  const Graph& graph() const { return graph_; }
  const std::vector<std::string>& open_ranks() const { return open_ranks_; }  // inputs whose rank only a run says
  const Status& why_not_general() const { return not_general_; }  // ok: there is a graph for all sizes and values
  bool has_open_rank(std::string_view input) const;
  const std::shared_ptr<Env>& env() const { return env_; }
  const std::shared_ptr<Weights>& weights() const { return weights_; }
  std::shared_ptr<const Policy> policy() const;
  Status set_policy(const NamedAttrs* policy);  // forgets plans; null: keeps the policy too
  Status set_param(std::string_view name, const Tensor& tensor);
  // The params that were set after a version, and the present version.
  struct GivenParams {
    std::vector<std::pair<std::string, Tensor>> params;
    uint64_t version;
  };
  GivenParams params_given(uint64_t after, uint64_t until = UINT64_MAX) const;
  uint64_t params_version() const { return params_version_.load(std::memory_order_acquire); }

  // `device`: a spec, or a comma-separated list to try in order; empty: the choice of the policy.
  Result<Device*> resolve(std::string_view device);
  // A program planned for at least these sizes. Its params can only be set through the model.
  Result<std::shared_ptr<Program>> get(std::string_view device,
                                       std::span<const std::pair<std::string_view, int64_t>> sizes);
  using Sizes = std::vector<std::pair<std::string, int64_t>>;
  // The sizes of the symbols that the dims of these inputs determine.
  Result<Sizes> sizes_of(std::span<const std::string_view> names, std::span<const Tensor> in) const;
  struct Ran {
    std::vector<Tensor> outputs;
    Device* device;
  };
  Result<Ran> run(std::string_view device, std::span<const std::string_view> in_names, std::span<const Tensor> in,
                  std::span<const std::string_view> out_names, size_t n_out) {
    return run(Call{device, in_names, in, out_names, n_out});
  }
  // Measures every device that can run the model: JSON with the median of `runs` runs, after one warm-up.
  Result<std::string> benchmark(std::span<const std::string_view> in_names, std::span<const Tensor> in, int runs);
  Result<std::string> report(std::string_view what) const;  // "devices" "policy" "cache" "bindings" "special" "text"

 private:
  struct Call {  // the arguments of `run`
    std::string_view device;
    std::span<const std::string_view> in_names;
    std::span<const Tensor> in;
    std::span<const std::string_view> out_names;
    size_t n_out;
  };
  struct OnDevice {  // made when a device is first used
    Device* device;
    std::shared_ptr<ParamStore> params;
    std::vector<std::shared_ptr<Program>> programs;  // oldest first; guarded by the model's mutex, as is what follows
    bool is_ready = false;                           // has all params; until then it takes part in changes alone
  };
  // The last call: a call with the same arguments needs no search for its program.
  struct LastCall {
    std::string spec;
    std::vector<std::string> in_names;
    std::vector<Dims> dims;  // of the inputs
    Device* device;
    std::shared_ptr<Program> program;
    bool fits(const Call& call) const;
  };

  struct Given {  // a param that was set, and the version after that
    std::string name;
    Tensor tensor;
    uint64_t version;
  };
  using Turn = Turns<Device*>::Turn;

  static Result<std::shared_ptr<Model>> make(std::shared_ptr<Env> env, const Graph& graph,
                                             std::shared_ptr<Weights> weights, const NamedAttrs& policy,
                                             std::vector<std::string> open_ranks = {});
  Model(std::shared_ptr<Env> env, Graph graph, std::shared_ptr<Weights> weights)
      : env_(std::move(env)), graph_(std::move(graph)), weights_(std::move(weights)) {}
  Result<std::vector<double>> times_on(std::string_view device, std::span<const std::string_view> in_names,
                                       std::span<const Tensor> in, int runs);
  std::string bindings_json() const;
  std::string special_json() const;
  using Replaced = std::array<Tensor, 2>;  // what the caller releases without the lock
  // These two need the lock.
  Given& given_at(std::string_view name);
  Replaced note_given(std::string_view name, Tensor tensor);
  Result<Ran> run(const Call& call);
  Result<Ran> run_general(const Call& call);
  Result<Ran> run_special(const Call& call, Serves serves);
  Result<Ran> run_anew(const Call& call);
  void note_last_call(const Call& call, Device* device, const std::shared_ptr<Program>& program);
  Result<std::vector<Device*>> candidates(std::string_view device) const;
  Status check_general() const;         // that there is a graph for all sizes and values
  std::vector<Device*> viable() const;  // the devices that the policy allows or names
  Result<std::shared_ptr<OnDevice>> on_device(Device* device);
  Status catch_up(OnDevice& on, uint64_t version);
  void set_last_special(std::shared_ptr<Model> next);

  // ---- model_plans.cpp, with sizes_of ----
  void log_hit(const Device& device) const;
  Result<std::shared_ptr<Program>> program_for_sizes(Device* device, const Sizes& sizes);
  Result<UpperSizes> upper_sizes(const OnDevice& on, const Sizes& sizes, const Policy& policy) const;
  static void retire_if_large(Program& program);
  Status check_all_wanted(std::unordered_set<std::string_view> known, const UpperSizes& of_policy,
                          std::string_view advice) const;

  std::shared_ptr<Env> env_;
  Graph graph_;
  std::shared_ptr<Weights> weights_;
  std::shared_ptr<TakenParams> taken_ = std::make_shared<TakenParams>();  // special models share it
  std::shared_ptr<SpecialModels> special_;  // null: this is a special model itself, or no size is open
  Status not_general_;                      // why there is no graph for all sizes and values; ok if there is one
  std::vector<std::string> open_ranks_;
  mutable std::mutex mutex_;      // guards what follows; never held while compiling, preparing or running
  Turns<Device*> turns_{mutex_};  // to make a device's compiled graph, or a plan
  std::shared_ptr<const Policy> policy_;
  std::vector<std::shared_ptr<OnDevice>> devices_;
  std::vector<Given> given_;  // params set through the model, for devices and special models made later
  ByName<size_t> given_at_;   // the places of params in it
  std::atomic<uint64_t> params_version_{0};
  std::shared_ptr<const LastCall> last_call_;  // null after a change of plans
  std::shared_ptr<Model> last_special_;        // that ran, if the last run was one of a special model
};

}  // namespace rlx
