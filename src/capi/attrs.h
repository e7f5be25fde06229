// SPDX-License-Identifier: Apache-2.0
// rlx_attrs_t: named values as the caller gave them. They get their kinds when an op or an option takes them
// (bind_attrs).
#pragma once

#include "base/status.h"
#include "capi/dim_tokens.h"
#include "ir/attr.h"
#include "rlx.h"

struct rlx_attrs {
  rlx::NamedAttrs values;
  rlx::Status failure;  // the first one of a setter; returned where the attrs are used
};

namespace rlx::capi {

// The values for use in an environment, tokens replaced by the dims that they stand for; or the failure that they hold.
// NULL attrs: none.
Result<NamedAttrs> values_of(const rlx_attrs_t* attrs, const DimTokens& tokens);

}  // namespace rlx::capi
