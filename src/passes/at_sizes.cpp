// SPDX-License-Identifier: Apache-2.0
#include "passes/at_sizes.h"

#include "base/check_size.h"
#include "ir/with_dims.h"

namespace rlx {

Result<Graph> at_sizes(const Graph& graph, const std::vector<std::pair<std::string, int64_t>>& sizes) {
  for (const auto& [name, size] : sizes) RLX_TRY(check_size(name, size, graph.symbol_range(name)));
  return with_dims(graph, {sizes.begin(), sizes.end()});
}

}  // namespace rlx
