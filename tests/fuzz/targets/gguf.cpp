// SPDX-License-Identifier: Apache-2.0
// Reads every tensor of a GGUF file, once where types without a dtype are refused, and once where they are decoded.
#include "tests/fuzz/targets/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rlx::fuzz;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const char* choice : {"decode=0", "decode=1"}) {
    Handle<rlx_attrs_t> options = attrs_of(choice);
    if (Imported imported = import("gguf", bytes, options.get()); imported.weights) read_all(imported.weights.get());
  }
  return 0;
}
