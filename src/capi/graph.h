// SPDX-License-Identifier: Apache-2.0
// rlx_graph_t: a graph under construction, and the first thing that went wrong with it.
#pragma once

#include "capi/env.h"
#include "ir/graph.h"

struct rlx_graph : rlx::capi::Counted {
  rlx_graph(rlx_env* owner, rlx::Graph made) : env(owner), graph(std::move(made)) {}
  const uint32_t* alive() const { return env->alive(); }

  const rlx::capi::Ref<rlx_env> env;
  rlx::Graph graph;
  rlx::Status status;
};

namespace rlx::capi {

rlx_value_t to_c(Value value);
Result<Value> from_c(const Graph& graph, rlx_value_t value);  // RLX_ABSENT is kAbsent; 0 and strangers are errors

}  // namespace rlx::capi
