// SPDX-License-Identifier: Apache-2.0
// The table of file formats. A file of each becomes a graph, weights, or both.
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
  std::vector<std::string> open_ranks = {};  // as in Imported
  bool has_choices = false;                  // ImportChoices may make another graph of it
};

bool has_format(std::string_view name);
Status no_format(std::string_view name);  // RLX_E_NOT_FOUND

std::span<const AttrDef> import_options();  // the options of a user: "params.min"
Result<ImportOptions> parse_import_options(const NamedAttrs& given);

// Reads a source in the format of this name; "": the first bytes decide.
Result<ImportedFile> import_source(const Source& source, std::string_view name, const ImportOptions& options);

}  // namespace rlx
