// SPDX-License-Identifier: Apache-2.0
#include "passes/pass.h"

#include <algorithm>

namespace rlx {

KernelOptions PassContext::options_of(const OpInfo& info) const {
  KernelOptions own = options;
  for (const auto& [op, dispatch] : dispatch_of)
    if (op == info.name) own.dispatch = dispatch;
  return own;
}

Found PassContext::find(const Graph& graph, uint32_t node) const {
  const OpInfo& info = graph.info(graph.node(node));
  KernelOptions own = options_of(info);
  if (!info.primitive() && own.dispatch != Dispatch::kNative)
    return {nullptr, own.dispatch == Dispatch::kCommon ? "dispatch=common" : "dispatch=reference"};
  if (!device) return {nullptr, "no device"};
  return device->find(Query{graph, graph.node(node), own});
}

bool PassContext::skips(std::string_view rule) const {
  return std::find(skip.begin(), skip.end(), rule) != skip.end();
}

}  // namespace rlx
