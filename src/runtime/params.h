// SPDX-License-Identifier: Apache-2.0
// ParamStore: the current tensors of a compiled graph's params, and what the prologue made of them. Both form one
// immutable set, which is replaced whole. The next set shares what does not change, so setting one param costs little
// however many there are. All plans of the compiled graph share the store. Invariant: in a published set every resident
// value whose params are all set has its bytes, unless an error keeps back what only an untaken body needs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/inlined_vector.h"
#include "base/shared_vector.h"
#include "compile/compile.h"
#include "runtime/env.h"
#include "runtime/prologue.h"
#include "runtime/weights.h"

namespace rlx {

struct ParamSet {
  struct Param {
    Tensor tensor;         // tests false if it is unset
    bool dropped = false;  // by weights.drop: set, but its bytes live on in prepared forms only
    bool is_set() const { return tensor || dropped; }
  };
  SharedVector<Param> params;      // in the order of declaration
  SharedVector<Tensor> residents;  // by index of LoweredGraph::residents, their bytes; false where a param is missing
  std::shared_ptr<const std::vector<Status>> failures;  // by resident, of bodies: why there is none; null: all is well
  size_t needed_set = 0;  // how many of the needed params, in their order, are set before the first that is not
  const std::string* first_unset = nullptr;  // the first param that is unset and needed, or null
};

// Whether a tensor may be the param that this node is: RLX_E_DTYPE, RLX_E_SHAPE.
Status check_param(const Graph& graph, uint32_t node, const Tensor& tensor);
// RLX_E_NOT_FOUND, with the names that it may have been.
Status unknown_param(const Graph& graph, std::string_view name);

// The tensors that a model took from its weights, each when it was first needed, or that were set since. What is put
// into the weights later does not reach the model, so that its results do not depend on when it compiles for which
// device. Thread-safe.
class TakenParams {
 public:
  // What a store that is being made takes. Its destructor gives all of it back, unless the model keeps the store.
  class Taking {
   public:
    explicit Taking(TakenParams& from) : from_(from) {}
    ~Taking() { from_.give_back(names_); }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;
    Result<Tensor> take(const std::string& name, const Weights& weights);  // tests false: there is none yet
    void keep() { names_.clear(); }

   private:
    TakenParams& from_;
    std::vector<std::string> names_;
  };
  // From now on a store begins with this tensor, whatever the weights hold. Returns the one that it replaces, which the
  // caller releases without a lock.
  Tensor set(std::string_view name, Tensor tensor);

 private:
  struct Taken {
    Tensor tensor;
    size_t stores = 0;    // that are made with it
    bool is_set = false;  // not taken from the weights
  };
  void give_back(std::span<const std::string> names) noexcept;
  std::mutex mutex_;
  std::unordered_map<std::string, Taken> tensors_;
};

enum class Progress : bool { kSilent, kTold };  // whether the host hears of it

class ParamStore {
 public:
  // `taking`: of a model. With weights.drop, call drop_originals when nothing else can fail.
  static Result<std::shared_ptr<ParamStore>> make(std::shared_ptr<Env> env, std::shared_ptr<const CompiledGraph> source,
                                                  std::shared_ptr<Weights> weights, Progress progress = Progress::kTold,
                                                  TakenParams::Taking* taking = nullptr);

  // Releases the weights that the first set holds prepared forms of, with weights.drop. Before any other thread knows
  // the store.
  void drop_originals() noexcept { settle(first_); }

  // Checks dtype and shape, prepares what depends on the change, publishes. On failure nothing has changed.
  Status set(std::span<const std::pair<std::string_view, Tensor>> changes);
  Status set_all(Weights& weights);

  // The same in three steps, for stores that change together: `prepare` makes the next set from the current one;
  // `publish` makes it the current one, and returns false if another thread has published meanwhile; `settle` releases
  // what the change has replaced, and cannot fail. It may call the host, so the caller holds no lock then.
  struct Change {
    std::shared_ptr<const ParamSet> base, next;
    std::vector<std::pair<std::string_view, Tensor>> originals;  // that prepared forms replace
    Weights* owner = nullptr;
  };
  // `tried`: null, or a change that could not be published. What it has made of the same params is not made again.
  Result<Change> prepare(std::span<const std::pair<std::string_view, Tensor>> changes, Weights& owner,
                         const Change* tried = nullptr) const;
  bool is_current(const Change& change) const { return current() == change.base; }
  bool publish(Change& change);
  static void settle(Change& change) noexcept;

  std::shared_ptr<const ParamSet> current() const;
  uint64_t version() const { return version_.load(std::memory_order_acquire); }  // moves with every publication

  const std::shared_ptr<Env>& env() const { return env_; }
  const std::shared_ptr<const CompiledGraph>& compiled_graph() const { return compiled_graph_; }
  Weights& weights() const { return *weights_; }

 private:
  struct Prepared {  // of a set that is being made
    std::vector<SharedVector<Tensor>::Change> residents;
    std::vector<std::pair<size_t, Status>> failures;  // of residents
    std::vector<FormKey> forms;                       // that are new
  };
  void note_reads();
  std::vector<uint32_t> readers_of(std::span<const uint32_t> params) const;  // pieces
  Status set_from(std::span<const std::pair<std::string_view, Tensor>> changes, Weights& owner);
  Device& reader_of(const Piece& piece) const;
  FormKey form_key(const Piece& piece, std::span<const Tensor> params) const;
  Result<std::vector<Tensor>> made_of(const Piece& piece, std::span<const Tensor> params) const;
  Result<Tensor> plain(const Piece& piece, const ParamSet& set, Weights& owner) const;
  // `made`: the key of a form that was not there before and that the weights now keep.
  Result<std::vector<Tensor>> residents_of(const Piece& piece, const ParamSet& set, Weights& owner,
                                           std::optional<FormKey>& made) const;
  Status note(const Piece& piece, Result<std::vector<Tensor>> result, Prepared& prepared) const;
  Result<Change> change_to(std::shared_ptr<const ParamSet> base, ParamSet next, std::span<const uint32_t> changed,
                           Weights& owner, const Change* tried = nullptr) const;
  bool reuse(const Piece& piece, const ParamSet& tried, const ParamSet& next, Prepared& prepared) const;
  Status prepare_one(const Piece& piece, const ParamSet& next, Weights& owner, Prepared& prepared) const;
  Status prepare_all(std::span<const uint32_t> stale, const ParamSet& next, Weights& owner, Prepared& prepared) const;
  void apply(Prepared& prepared, ParamSet& next) const;
  void note_first_unset(ParamSet& set) const;
  std::vector<std::pair<std::string_view, Tensor>> take_originals(ParamSet& set,
                                                                  std::span<const uint32_t> changed) const;

  std::shared_ptr<Env> env_;
  std::shared_ptr<const CompiledGraph> compiled_graph_;
  std::unique_ptr<Prologue> prologue_;
  std::shared_ptr<Weights> weights_;
  Progress progress_ = Progress::kTold;
  std::vector<InlinedVector<uint32_t, 2>> readers_;  // by param: the pieces that read it
  std::vector<uint32_t> needed_;                     // params, in the order in which pieces read them first
  std::vector<bool> is_read_plainly_;                // by param: in its own layout
  mutable std::mutex mutex_;                         // guards current_
  std::shared_ptr<const ParamSet> current_;
  Change first_;  // until drop_originals
  std::atomic<uint64_t> version_{1};
};

}  // namespace rlx
