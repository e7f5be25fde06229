// SPDX-License-Identifier: Apache-2.0
// rlx_attrs_t: named values as the caller gave them. They get their kinds when an op or an option takes them
// (bind_attrs).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "capi/dim_tokens.h"
#include "capi/env.h"
#include "ir/op.h"
#include "rlx.h"

struct rlx_attrs {
  rlx::NamedAttrs values;
  rlx::Status failure;  // the first failure of a setter; the call that uses the attrs returns it
  // By key: the environment of a graph or a tensor. It is held, since an op of the host in the graph needs it.
  std::vector<std::pair<std::string, rlx::capi::Ref<rlx_env>>> owners = {};
};

namespace rlx::capi {

// The values for a call in `env`, or the failure that they hold. NULL attrs: none. NULL env: there is none yet.
Result<NamedAttrs> values_of(const rlx_attrs_t* attrs, const rlx_env* env);

// The values for an op: in attributes that are dims, tokens become the dims that they stand for. In all others an
// integer stays an integer, whatever its size.
Result<NamedAttrs> values_of(const rlx_attrs_t* attrs, const rlx_env& env, const OpInfo& op);

}  // namespace rlx::capi
