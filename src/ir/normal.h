// SPDX-License-Identifier: Apache-2.0
// The one form of a node's attributes, from what its row says they are about: defaults that hang on the inputs are
// filled in, axes count from the front, and are sorted where their order says nothing. `Graph::add` stores nothing
// else, so equal nodes are equal, and whoever reads a node has only this form to know.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// One type per port, null where absent; variadic inputs follow.
using InputTypes = std::span<const ValueType* const>;
std::vector<const ValueType*> input_types(const Graph& graph, const OpInfo& info, std::span<const Value> in);

// RLX_E_RANGE for an axis that is not there, RLX_E_OPTION for a list of another length. The form of a normal form is
// itself. An attribute about an input that is missing stays as it is: that is an error of its own.
Result<Attrs> normal_attrs(const OpInfo& info, InputTypes in, Attrs attrs);

// Those that say something: which differ from the normal form of the row's defaults.
NamedAttrs telling_attrs(const OpInfo& info, InputTypes in, const Attrs& attrs);

}  // namespace rlx
