// SPDX-License-Identifier: Apache-2.0
// An ONNX file is imported, and what is imported is compiled and run.
#include "tests/fuzz/targets/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rlx::fuzz;
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Imported imported = import("onnx", bytes);
  if (!imported.graph) return 0;
  read_all(imported.weights.get());
  compile_and_run(imported, bytes);
  return 0;
}
