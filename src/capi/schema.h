// SPDX-License-Identifier: Apache-2.0
// Schemas: the tables of ops and options as JSON.
#pragma once

#include <span>
#include <string>

#include "ir/op.h"

namespace rlx::capi {

const OpInfo* find_public_op(std::string_view name);  // null: no such op, or none that rlx_graph_op takes

std::string schema_of_ops(const OpTable& table);  // names and summaries
std::string schema_of_op(const OpInfo& info);     // inputs, outputs, attributes
std::string schema_of_options(std::span<const AttrDef> options);

}  // namespace rlx::capi
