// SPDX-License-Identifier: Apache-2.0
// Real models through the whole library: what forms, and that the results are right.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "backend/registry.h"
#include "compile/compile.h"
#include "import/onnx.h"
#include "import/source.h"
#include "ir/text.h"

namespace rlx {

static std::map<std::string, int> count_ops(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes()) counts[std::string(graph.info(node).name)]++;
  return counts;
}

// A model of the cache folder, where `dev demo` puts it; empty if it is not there.
static std::filesystem::path cached(const char* name) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path path =
      cache ? std::filesystem::path(cache) : std::filesystem::path(home ? home : "/") / ".cache";
  path = path / "rlx" / name;
  return std::filesystem::exists(path) ? path : std::filesystem::path();
}

// The passes up to `fuse` for a device that takes every composite.
static Result<Graph> fused(const Graph& graph, RewriteReport* report = nullptr) {
  PassContext context;
  context.refuses = [](const Graph&, Value) { return std::string(); };
  context.report = report;
  Graph current = RLX_TRY(canonicalize(graph, context));
  current = RLX_TRY(fold_constants(current, context));
  current = RLX_TRY(fuse_composites(current, context));
  return merge_siblings(current, context);
}

TEST(models, minilm_forms_every_composite) {
  auto path = cached("minilm/model.onnx");
  if (path.empty()) GTEST_SKIP() << "the model is not in the cache: ./dev demo fetches it";
  auto source = Source::open(path.string());
  ASSERT_TRUE(source.ok()) << source.status().message();
  auto imported = import_onnx(*source, true);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  auto graph = fused(imported->graph);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto counts = count_ops(*graph);
  EXPECT_EQ(counts["layer_norm"] + counts["residual_layer_norm"], 13);
  EXPECT_EQ(counts["attention"], 6);
  EXPECT_EQ(counts["linear"], 6 * 4);  // QKV, projection, up, down
  for (const char* part : {"erf", "mean", "sqrt", "rsqrt", "softmax", "matmul", "pow", "div", "transpose"})
    EXPECT_EQ(counts[part], 0) << part;
  if (HasFailure()) std::fprintf(stderr, "%s\n", print(*graph).c_str());
}

}  // namespace rlx
