// SPDX-License-Identifier: Apache-2.0
// The symbols that a sub-graph shares with the graph around it, and how the reference runs it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/body.h"
#include "ir/graph.h"
#include "ops/eval.h"

namespace rlx {

// Checks that the sub-graph takes exactly these values, and that its symbols are known around it. `carried`: symbols
// that come with an input.
Status check_inputs(InferArgs& args, const char* attr, std::span<const ValueType> given,
                    const std::vector<std::string>& carried = {});
Status check_output_count(InferArgs& args, const char* attr, size_t expected);
// The types of all values from `first` on, or an error for an absent one.
Result<std::vector<ValueType>> all_given(InferArgs& args, size_t first);
// Checks one output of a sub-graph; `what` names it.
Status check_type(InferArgs& args, const std::string& what, const ValueType& expected, const ValueType& got,
                  const ValueType& formal = {}, const std::vector<std::string>& carried = {});

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
Result<int64_t> scan_steps(const Attrs& attrs, std::span<const Tensor> values, const SymbolLookup& sizes);

}  // namespace rlx
