// SPDX-License-Identifier: Apache-2.0
// Every tensor of a safetensors file is read.
#include "tests/fuzz/targets/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rlx::fuzz;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (Imported imported = import("safetensors", bytes); imported.weights) read_all(imported.weights.get());
  return 0;
}
