// SPDX-License-Identifier: Apache-2.0
// rlx_import_*: files to handles.

#include "capi/attrs.h"
#include "capi/graph.h"
#include "capi/guard.h"
#include "capi/weights.h"
#include "import/format.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

static Status import(rlx_env_t* env, const Source& source, const char* format, const rlx_attrs_t* options,
                     rlx_graph_t** graph, rlx_weights_t** weights) {
  if (format && !*format) return no_format("").suffixed("; NULL lets the first bytes decide");
  ImportOptions chosen = RLX_TRY(parse_import_options(RLX_TRY(values_of(options, env))));
  chosen.with_graph = graph != nullptr;
  chosen.with_weights = weights != nullptr;
  chosen.host = env->env->host().get();
  chosen.make = [env](DType dtype, std::span<const int64_t> dims) { return env->env->make_tensor(dtype, dims); };
  chosen.customs = env->customs;
  if (!graph && !weights) return Status(Code::kInvalidArgument, "neither a graph nor weights are asked for");
  auto read = RLX_TRY(import_source(source, format ? format : "", chosen));
  std::unique_ptr<rlx_weights> made(weights ? new rlx_weights(env) : nullptr);
  if (made) {
    for (auto& [name, tensor] : read.weights) RLX_TRY(made->weights->put(name, std::move(tensor)));
    for (const auto& [key, value] : read.metadata) made->weights->set_metadata(key, value);
  }
  if (graph) *graph = new rlx_graph(env, std::move(read.graph));
  if (weights) *weights = made.release();
  return {};
}

// Clears outputs, which the caller may leave out.
static void clear(rlx_graph_t** graph, rlx_weights_t** weights) {
  if (graph) *graph = nullptr;
  if (weights) *weights = nullptr;
}

}  // namespace rlx::capi

rlx_status_t* rlx_import_file(rlx_env_t* env, const char* format, const char* path, const rlx_attrs_t* options,
                              rlx_graph_t** graph, rlx_weights_t** weights) {
  clear(graph, weights);
  return guard({handle(env, "env"), path_argument(path, "path")},
               [&]() -> Status { return import(env, RLX_TRY(Source::open(path)), format, options, graph, weights); });
}

rlx_status_t* rlx_import_memory(rlx_env_t* env, const char* format, const void* data, size_t bytes, rlx_free_fn done,
                                void* user, const rlx_attrs_t* options, rlx_graph_t** graph, rlx_weights_t** weights) {
  clear(graph, weights);
  return guard({handle(env, "env"), array(data, bytes, "data")}, [&]() -> Status {
    // `done` is armed last: after a failure the bytes still belong to the caller.
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
