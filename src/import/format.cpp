// SPDX-License-Identifier: Apache-2.0
#include "import/format.h"

#include <algorithm>

#include "import/onnx/onnx.h"
#include "import/safetensors.h"
#include "ir/text.h"

namespace rlx {

static Result<ImportedFile> read_onnx(const Source& source, bool with_weights) {
  Imported imported = RLX_TRY(import_onnx(source, with_weights));
  return ImportedFile{std::move(imported.graph), std::move(imported.weights), std::move(imported.metadata)};
}

static Result<ImportedFile> read_safetensors_file(const Source& source, bool) {
  SafeTensors file = RLX_TRY(read_safetensors(source));
  return ImportedFile{Graph(), std::move(file.tensors), std::move(file.metadata)};
}

static Result<ImportedFile> read_text(const Source& source, bool) {
  std::string_view text(reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size());
  return ImportedFile{RLX_TRY(parse(text)), {}, {}};
}

static bool is_text(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && (text[first] == ';' || text.substr(first).starts_with("graph"));
}

struct Format {
  std::string_view name;
  bool (*matches)(std::span<const std::byte>);
  bool has_graph;
  Result<ImportedFile> (*read)(const Source&, bool with_weights);
};
static constexpr Format kFormats[] = {
    {"rlx", is_text, true, read_text},
    {"safetensors", is_safetensors, false, read_safetensors_file},
    {"onnx", is_onnx, true, read_onnx},
};

bool has_format(std::string_view name) {
  return std::any_of(std::begin(kFormats), std::end(kFormats), [&](const Format& it) { return it.name == name; });
}

static Result<const Format*> find_format(const Source& source, std::string_view name) {
  for (const Format& format : kFormats)
    if (name.empty() ? format.matches(source.bytes) : format.name == name) return &format;
  if (name.empty())
    return Status(Code::kUnsupported, (source.path.empty() ? "the memory" : "'" + source.path + "'") +
                                          std::string(" begins like none of the formats onnx, safetensors, rlx"));
  return Status(Code::kNotFound, "there is no format '" + std::string(name) + "', only onnx, safetensors, rlx")
      .with("value", name);
}

Result<ImportedFile> import_source(const Source& source, std::string_view name, bool with_graph, bool with_weights) {
  const Format& format = *RLX_TRY(find_format(source, name));
  if (with_graph && !format.has_graph)
    return Status(Code::kUnsupported, std::string(format.name) + " files hold weights, no graph");
  return format.read(source, with_weights);
}

}  // namespace rlx
