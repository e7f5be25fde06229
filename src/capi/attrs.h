// SPDX-License-Identifier: Apache-2.0
// rlx_attrs_t: named values as the caller gave them. They get their kinds when an op or an option takes them
// (bind_attrs).
#pragma once

#include "base/status.h"
#include "capi/dim_tokens.h"
#include "ir/op.h"
#include "rlx.h"

struct rlx_attrs {
  rlx::NamedAttrs values;
  rlx::Status failure;  // the first one of a setter; returned where the attrs are used
};

namespace rlx::capi {

// The values, or the failure that they hold. NULL attrs: none.
Result<NamedAttrs> values_of(const rlx_attrs_t* attrs);

// For an op: where an attribute is a dim or a list of dims, tokens become the dims that they stand for. Any other
// integer is an integer, of whatever size.
Result<NamedAttrs> values_of(const rlx_attrs_t* attrs, const OpInfo& op, const DimTokens& tokens);

}  // namespace rlx::capi
