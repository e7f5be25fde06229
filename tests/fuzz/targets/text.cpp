// SPDX-License-Identifier: Apache-2.0
// A graph as text is read, compiled and run.
#include "tests/fuzz/targets/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rlx::fuzz;
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (Imported imported = import("rlx", bytes); imported.graph) compile_and_run(imported, bytes);
  return 0;
}
