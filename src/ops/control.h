// SPDX-License-Identifier: Apache-2.0
// What the inference of ops with sub-graphs shares: a sub-graph against its operands and results.
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace rlx {

using Symbols = std::unordered_set<std::string>;

// Checks that the sub-graph takes exactly these values, and that its symbols are known around it. `carried`: symbols
// that come with an input.
Status check_inputs(InferArgs& args, const char* attr, std::span<const ValueType> given, const Symbols& carried = {});
Status check_output_count(InferArgs& args, const char* attr, size_t expected);
// The types of all values from `first` on, or an error for an absent one.
Result<std::vector<ValueType>> all_given(InferArgs& args, size_t first);
// Checks one output of a sub-graph; `what` names it.
Status check_type(InferArgs& args, const std::string& what, const ValueType& expected, const ValueType& got,
                  const ValueType& formal = {}, const Symbols& carried = {});

}  // namespace rlx
