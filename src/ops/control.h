// SPDX-License-Identifier: Apache-2.0
// What the inference of ops with bodies shares: a body against its operands and results.
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace rlx {

using Symbols = std::unordered_set<std::string>;

// Checks that the body takes exactly these values, and that its symbols are known around it. `carried`: symbols
// that come with an input.
Status check_inputs(InferArgs& args, const char* attr, std::span<const ValueType> given, const Symbols& carried = {});
Status check_output_count(InferArgs& args, const char* attr, size_t expected);
// The types of all values from `first` on, or an error for an absent one.
Result<std::vector<ValueType>> all_given(InferArgs& args, size_t first);
// Checks one output of a body; `what` names it.
Status check_type(InferArgs& args, const std::string& what, const ValueType& expected, const ValueType& got,
                  const ValueType& formal = {}, const Symbols& carried = {});

// The column `trips` of the op table. What sizes decide is part of a run, however long it is.
double trips_of_while(const Graph& graph, const Node& node);
double trips_of_scan(const Graph& graph, const Node& node);

}  // namespace rlx
