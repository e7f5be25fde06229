// SPDX-License-Identifier: Apache-2.0
// The table of file formats; what each reads becomes a graph, weights, or both.
#pragma once

#include <string_view>
#include <vector>

#include "import/source.h"
#include "ir/graph.h"

namespace rlx {

struct ImportedFile {
  Graph graph;
  NamedTensors weights;
  std::vector<std::pair<std::string, std::string>> metadata;
};

bool has_format(std::string_view name);

// A format by name, "" to go by the first bytes. `with_weights`: large initialisers become params, not constants.
Result<ImportedFile> import_source(const Source& source, std::string_view name, bool with_graph, bool with_weights);

}  // namespace rlx
