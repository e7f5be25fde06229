// SPDX-License-Identifier: Apache-2.0
// Program: a graph that a user compiled for one device and planned for upper sizes, with the param set that its runs
// read. Any number of execs may run it at once. Invariant: a published param set never changes; setting a param
// publishes another.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/inlined_vector.h"
#include "compile/compile.h"
#include "plan/plan.h"
#include "runtime/env.h"
#include "runtime/frame.h"
#include "runtime/match_names.h"
#include "runtime/params.h"
#include "runtime/weights.h"

namespace rlx {

enum class SlotKind : int32_t { kInput = 1, kOutput = 2, kParam = 3 };  // the values of RLX_INPUT ...
std::string_view kind_text(SlotKind kind);                              // "input", "output", "param"

struct Slot {
  const std::string& name;      // of the plan's graph, as the type is: no copy for each of thousands of params
  const ValueType& type;        // symbolic
  Dims upper;                   // at the upper sizes
  int64_t bytes = 0;            // at the upper sizes
  size_t alignment = 1;         // of memory that is used as it lies; a power of two
  bool has_fresh_dims = false;  // the run decides some of its dims
};

class Exec;

class Program : public std::enable_shared_from_this<Program> {
 public:
  // Device null: the default device of the env. Weights null: private, empty weights.
  static Result<std::shared_ptr<Program>> compile(std::shared_ptr<Env> env, const Graph& graph,
                                                  std::shared_ptr<Weights> weights, Device* device,
                                                  const NamedAttrs& given);
  // Compiles a graph of the prologue, without logs or progress. Nodes without a kernel on the device run on the host.
  static Result<std::shared_ptr<Program>> compile_prologue(std::shared_ptr<Env> env, const Graph& graph, Device& device,
                                                           CompileOptions options);
  // Another plan of a compiled graph, for models: it shares the params, so its own setters return RLX_E_STATE.
  static Result<std::shared_ptr<Program>> plan(std::shared_ptr<ParamStore> params, const UpperSizes& upper);

  ~Program();

  const std::shared_ptr<Env>& env() const { return env_; }
  Device& device() const { return *compiled_graph_->device; }
  std::span<const Slot> slots(SlotKind kind) const { return slots_[static_cast<size_t>(kind) - 1]; }
  int64_t find(SlotKind kind, std::string_view name) const;  // -1: no such slot

  Status set_param(std::string_view name, Tensor tensor);
  Status set_params(const std::shared_ptr<Weights>& weights);  // all its tensors whose names are params of this program

  // Inputs and outputs by name, or in the order of declaration if the names are empty. Results are new host tensors.
  Result<std::vector<Tensor>> run(std::span<const std::string_view> in_names, std::span<const Tensor> in,
                                  std::span<const std::string_view> out_names, size_t n_out);
  // The same: takes the inputs, and sets tensors of the caller, which must be empty before. After a failure some may
  // hold a result.
  Status run(std::span<const std::string_view> in_names, std::span<Tensor> in,
             std::span<const std::string_view> out_names, std::span<Tensor> out);

  void trim();    // releases the contexts that `run` keeps, except for those in use
  void retire();  // the same, and those in use go as their runs end, until another run begins

  Result<std::string> report(std::string_view what) const;  // "dispatch" "passes" "memory" "bindings" "text"

  const CompiledGraph& compiled_graph() const { return *compiled_graph_; }
  const std::shared_ptr<ParamStore>& params() const { return params_; }
  const Plan& plan() const { return *plan_; }
  const CompiledPlan& compiled_plan() const { return *compiled_plan_; }

 private:
  friend class Exec;
  Program() = default;
  static Result<std::shared_ptr<Program>> finish(std::shared_ptr<ParamStore> params,
                                                 const std::shared_ptr<const Plan>& plan);
  void make_slots();
  Status find_slots(SlotKind kind, std::span<const std::string_view> names, size_t count, Indices& found) const;
  Result<std::unique_ptr<Exec>> take_exec();
  void return_exec(std::unique_ptr<Exec> exec);

  std::shared_ptr<Env> env_;
  std::shared_ptr<const CompiledGraph> compiled_graph_;
  std::shared_ptr<ParamStore> params_;
  bool shares_params_ = false;  // only the model may set them
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<const CompiledPlan> compiled_plan_;
  std::vector<Slot> slots_[3];  // in the order of the graph

  // Idle execs for run(). While idle, an exec holds no reference to this program. The first few are reached without a
  // lock.
  std::array<std::atomic<Exec*>, 4> idle_ = {};
  std::atomic<bool> is_retired_{false};
  std::mutex more_mutex_;
  std::vector<std::unique_ptr<Exec>> more_idle_;
};

}  // namespace rlx
