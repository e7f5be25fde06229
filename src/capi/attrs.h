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
  rlx::Status failure;  // the first failure of a setter; the call that uses the attrs returns it
};

namespace rlx::capi {

// The values, or the failure that they hold. NULL attrs: none.
Result<NamedAttrs> values_of(const rlx_attrs_t* attrs);

// The values for an op: in attributes that are dims, tokens become the dims that they stand for. In all others an
// integer stays an integer, whatever its size.
Result<NamedAttrs> values_of(const rlx_attrs_t* attrs, const OpInfo& op, const DimTokens& tokens);

}  // namespace rlx::capi
