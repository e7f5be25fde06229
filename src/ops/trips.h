// SPDX-License-Identifier: Apache-2.0
// How the reference runs control flow: which branch an `if` takes, and the trips of a loop.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ops/eval.h"

namespace rlx {

// Whether an `if` runs its `then`: by `when`, if sizes decide, else by the predicate.
Result<bool> takes_then(const Attrs& attrs, const Operand& pred, const SymbolLookup& sizes);

// The sizes around a loop without those that its carries redefine.
SymbolLookup without_carried(const Attrs& attrs, const SymbolLookup& around);

// The results of a loop: the last carries, and for each trip what it adds to the stacked outputs.
struct LoopRun {
  std::vector<Tensor> carries;
  std::vector<std::vector<Tensor>> rows;
  int64_t trips() const { return static_cast<int64_t>(rows.size()); }
  void stack(const Attrs& attrs, size_t i, std::byte* to) const;
};
using RunBody = std::function<Result<std::vector<Tensor>>(const Graph&, std::span<const Tensor>)>;
// Runs `most` trips, or with -1 as many as the condition allows.
Result<LoopRun> run_loop(const Attrs& attrs, std::vector<Tensor> values, int64_t most, const RunBody& run);
// How many trips a scan makes.
Result<int64_t> scan_trips(const Attrs& attrs, std::span<const Tensor> values, const SymbolLookup& sizes);

}  // namespace rlx
