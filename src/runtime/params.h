// SPDX-License-Identifier: Apache-2.0
// ParamStore: the current tensors of a compiled graph's params and what the prologue made of them, as one immutable set
// that is replaced whole. Shared by every plan of it. Invariant: a set that is published is complete for its tensors:
// every resident value whose params are all set has its bytes, but for what an error keeps a body from that is not run.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compile/compile.h"
#include "runtime/env.h"
#include "runtime/prologue.h"
#include "runtime/weights.h"

namespace rlx {

struct ParamSet {
  std::vector<Tensor> params;         // in the order of declaration; an unset one tests false
  std::vector<bool> dropped;          // by weights.drop: set, but its bytes live on in prepared forms only
  std::vector<Tensor> residents;      // by index of Lowered::residents, their bytes; false where a param is missing
  std::vector<Status> failures;       // by resident, of bodies: why there is none; empty where all is well
  const std::string* hole = nullptr;  // the first param that is unset and needed, or null
};

// Whether a tensor may be the param that this node is: RLX_E_DTYPE, RLX_E_SHAPE.
Status check_param(const Graph& graph, uint32_t node, const Tensor& tensor);
Status unknown_param(const Graph& graph,
                     std::string_view name);  // RLX_E_NOT_FOUND, with the names that it may have been

class ParamStore {
 public:
  // `is_told`: the host hears of progress.
  static Result<std::shared_ptr<ParamStore>> make(std::shared_ptr<Env> env, std::shared_ptr<const CompiledGraph> source,
                                                  std::shared_ptr<Weights> weights, bool is_told = true);

  // Checks dtype and shape, prepares what depends on the change, publishes. On failure nothing has changed.
  Status set(std::span<const std::pair<std::string_view, Tensor>> changes);
  Status set_all(Weights& weights);

  // The same in two steps, for stores that change together. A change can be published while the set it was made from is
  // the one of now; false: it is not. Then `settle` gives up what nobody needs any more: without a lock of the
  // caller's, as the host's callbacks run.
  struct Change {
    std::shared_ptr<const ParamSet> base, next;
    std::vector<std::pair<std::string_view, Tensor>> originals;  // that prepared forms replace
    Weights* owner = nullptr;
  };
  // `tried`: a change that came too late, may be null. What it has made of the same params is not made again.
  Result<Change> prepare(std::span<const std::pair<std::string_view, Tensor>> changes, Weights& owner,
                         const Change* tried = nullptr) const;
  bool is_current(const Change& change) const { return current() == change.base; }
  bool publish(Change& change);
  static void settle(Change& change);

  std::shared_ptr<const ParamSet> current() const;
  uint64_t version() const { return version_.load(std::memory_order_acquire); }  // moves with every publication

  const std::shared_ptr<Env>& env() const { return env_; }
  const std::shared_ptr<const CompiledGraph>& source() const { return source_; }
  Weights& weights() const { return *weights_; }

 private:
  Status set_from(std::span<const std::pair<std::string_view, Tensor>> changes, Weights& owner);
  Device& reader_of(const Resident& resident) const;
  // `made`: the key of a form that was not there before and that the weights now keep.
  Result<Tensor> resident(size_t index, const ParamSet& set, Weights& owner, std::optional<FormKey>& made) const;
  Status note_failure(size_t index, Status status, ParamSet& set) const;
  Result<Change> change_to(std::shared_ptr<const ParamSet> base, ParamSet next, const std::vector<bool>& changed,
                           Weights& owner, const Change* tried = nullptr) const;
  bool take_over(size_t index, const ParamSet& tried, ParamSet& next) const;
  Status prepare_all(std::span<const size_t> stale, ParamSet& next, Weights& owner, std::vector<FormKey>& forms) const;
  void note_hole(ParamSet& set) const;
  std::vector<std::pair<std::string_view, Tensor>> drop_originals(ParamSet& set) const;

  std::shared_ptr<Env> env_;
  std::shared_ptr<const CompiledGraph> source_;
  std::unique_ptr<Prologue> prologue_;
  std::shared_ptr<Weights> weights_;
  bool is_told_ = true;
  std::unordered_map<std::string_view, size_t> index_of_;  // of params, by their names in the graph
  mutable std::mutex mutex_;                               // guards current_
  std::shared_ptr<const ParamSet> current_;
  std::atomic<uint64_t> version_{1};
};

}  // namespace rlx
