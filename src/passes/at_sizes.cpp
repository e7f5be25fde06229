// SPDX-License-Identifier: Apache-2.0
#include "passes/at_sizes.h"

#include "ir/with_dims.h"

namespace rlx {

Result<Graph> at_sizes(const Graph& graph, const std::vector<std::pair<std::string, int64_t>>& sizes) {
  for (const auto& [name, size] : sizes)
    if (Interval range = graph.symbol_range(name); size < range.lo || size > range.hi)
      return Status(Code::kRange, format("the size '{}' = {} is outside of its range", name, size))
          .with("value", name)
          .with("got", std::to_string(size));
  return with_dims(graph, {sizes.begin(), sizes.end()});
}

}  // namespace rlx
