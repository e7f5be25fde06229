// SPDX-License-Identifier: Apache-2.0
// Replaces composites that the device has no kernel for by their decomposition, until none is left. What depends on
// params only stays: the prologue runs it by its definition.
#include "passes/pass.h"
#include "plan/phase.h"

namespace rlx {

Result<Graph> expand_composites(const Graph& graph, PassContext& context) {
  RewriteOptions options = context.rewrite_options("expand");
  options.expands = [&](const Graph& g, Value value) { return !context.supports(g, value) && !is_resident(g, value); };
  return rewrite(graph, RuleSet(), options);
}

}  // namespace rlx
