// SPDX-License-Identifier: Apache-2.0
// What a sub-graph shares with the graph around it, and how the reference runs one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/body.h"
#include "ir/graph.h"
#include "ops/eval.h"

namespace rlx {

// Which branch of an `if` runs: by `when`, which sizes decide, or by the predicate.
Result<bool> takes_then(const Attrs& attrs, const Operand& pred, const SymbolLookup& sizes);

// The sizes around a loop as its bodies see them.
SymbolLookup without_carried(const Attrs& attrs, const SymbolLookup& around);

// What the trips of a loop came to: the last carries, at whatever sizes, and by trip what each adds to the stacks.
struct LoopRun {
  std::vector<Tensor> carries;
  std::vector<std::vector<Tensor>> rows;
  int64_t trips() const { return static_cast<int64_t>(rows.size()); }
  void stack(const Attrs& attrs, size_t i, std::byte* to) const;
};
using RunBody = std::function<Result<std::vector<Tensor>>(const Graph&, std::span<const Tensor>)>;
// `most` trips, or with -1 as many as the condition allows.
Result<LoopRun> run_loop(const Attrs& attrs, std::vector<Tensor> values, int64_t most, const RunBody& run);
Result<int64_t> scan_steps(const Attrs& attrs, std::span<const Tensor> values, const SymbolLookup& sizes);

}  // namespace rlx
