// SPDX-License-Identifier: Apache-2.0
// rlx_import_*: a table of formats; what each reads becomes a graph, weights, or both.
#include "capi/import.h"

#include <algorithm>

#include "capi/attrs.h"
#include "capi/graph.h"
#include "capi/guard.h"
#include "capi/weights.h"
#include "import/onnx.h"
#include "import/safetensors.h"
#include "ir/text.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

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

static Status import(rlx_env_t* env, const Source& source, const char* format, const rlx_attrs_t* options,
                     rlx_graph_t** graph, rlx_weights_t** weights) {
  NamedAttrs given = RLX_TRY(values_of(options, env->dims));
  if (!given.empty())
    return Status(Code::kOption, "unknown import option '" + given[0].first + "'").with("value", given[0].first);
  if (!graph && !weights) return Status(Code::kInvalidArgument, "neither a graph nor weights are asked for");
  auto read = RLX_TRY(import_source(source, format ? format : "", graph != nullptr, weights != nullptr));
  std::unique_ptr<rlx_weights> made(weights ? new rlx_weights(env) : nullptr);
  if (made) {
    for (auto& [name, tensor] : read.weights) RLX_TRY(made->weights->put(name, std::move(tensor)));
    for (const auto& [key, value] : read.metadata) made->weights->set_metadata(key, value);
  }
  if (graph) *graph = new rlx_graph(env, std::move(read.graph));
  if (weights) *weights = made.release();
  return {};
}

// Outputs that the caller may leave out.
static void clear(rlx_graph_t** graph, rlx_weights_t** weights) {
  if (graph) *graph = nullptr;
  if (weights) *weights = nullptr;
}

}  // namespace rlx::capi

rlx_status_t* rlx_import_file(rlx_env_t* env, const char* format, const char* path, const rlx_attrs_t* options,
                              rlx_graph_t** graph, rlx_weights_t** weights) {
  clear(graph, weights);
  return guard({handle(env, "env"), {path, "path"}},
               [&]() -> Status { return import(env, RLX_TRY(Source::open(path)), format, options, graph, weights); });
}

rlx_status_t* rlx_import_memory(rlx_env_t* env, const char* format, const void* data, size_t bytes, rlx_free_fn done,
                                void* user, const rlx_attrs_t* options, rlx_graph_t** graph, rlx_weights_t** weights) {
  clear(graph, weights);
  return guard({handle(env, "env"), array(data, bytes, "data")}, [&]() -> Status {
    // The owner learns of the end only once nothing can fail any more.
    auto armed = std::make_shared<bool>(false);
    auto release = [done, user, armed](void* memory) {
      if (done && *armed) done(user, memory);
    };
    std::shared_ptr<const void> owner(const_cast<void*>(data), release);
    Source source{{static_cast<const std::byte*>(data), bytes}, std::move(owner), ""};
    RLX_TRY(import(env, source, format, options, graph, weights));
    *armed = true;
    return {};
  });
}
