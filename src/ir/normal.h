// SPDX-License-Identifier: Apache-2.0
// The normal form of a node's attributes, by the roles that its row gives them. Defaults that depend on the inputs are
// filled in. Axes count from the front, and are sorted where their order has no meaning. `Graph::add` stores only this
// form. So equal nodes compare equal, and a reader of nodes need handle no other form.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// One type per port, null where absent; variadic inputs follow.
using InputTypes = std::span<const ValueType* const>;
InlinedVector<const ValueType*, 4> input_types(const Graph& graph, const OpInfo& info, std::span<const Value> in);

// RLX_E_RANGE for an axis that does not exist, RLX_E_OPTION for a list of another length. Idempotent. An attribute
// about a missing input stays as it is: the missing input is an error elsewhere.
Result<Attrs> normal_attrs(const OpInfo& info, InputTypes in, Attrs attrs);

// The attributes that differ from the normal form of the row's defaults.
NamedAttrs non_default_attrs(const OpInfo& info, InputTypes in, const Attrs& attrs);

}  // namespace rlx
