// SPDX-License-Identifier: Apache-2.0
// A string is taken for attributes of an op, options of an import and options of a compile.
#include <vector>

#include "tests/fuzz/targets/harness.h"

namespace rlx::fuzz {

static constexpr std::string_view kGraph =
    "graph \"g\" (n) {\n  x = input f32[n,4]\n  w = param f32[4,4]\n  y = matmul(x, w)\n  z = softmax(y) axis=1\n"
    "  output z\n}\n";

static void build_op(const std::string& text, size_t count) {
  rlx_graph_t* made = nullptr;
  if (!passes(rlx_graph_create(env(), "g", &made))) return;
  Handle<rlx_graph_t> graph(made);
  int64_t dims[] = {2, 4};
  std::vector<rlx_value_t> in;
  for (size_t i = 0; i < count; i++)
    in.push_back(rlx_graph_input(made, ("x" + std::to_string(i)).c_str(), RLX_F32, dims, 2));
  rlx_graph_op(made, text.c_str(), in.data(), count, nullptr);
  passes(rlx_graph_status(made));
}

}  // namespace rlx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rlx::fuzz;
  std::string text(reinterpret_cast<const char*>(data), size);
  for (size_t count = 1; count <= 3; count++) build_op(text, count);
  if (text.find("dump") != text.npos) return 0;  // writes files
  Handle<rlx_attrs_t> options = attrs_of(text);
  if (!options) return 0;
  import("rlx", kGraph, options.get());
  Imported imported = import("rlx", kGraph);
  rlx_compiled_t* program = nullptr;
  if (passes(rlx_compile(imported.graph.get(), nullptr, nullptr, options.get(), &program)))
    rlx_compiled_release(program);
  return 0;
}
