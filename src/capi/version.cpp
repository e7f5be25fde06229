// SPDX-License-Identifier: Apache-2.0
// rlx_version, rlx_feature: what this build is and has.
#include <string_view>

#include "rlx.h"

struct Feature {
  std::string_view name;
  int32_t level;
};

static constexpr Feature kFeatures[] = {
    {"backend.cpu", 1}, {"backend.reference", 1}, {"format.onnx", 1}, {"format.safetensors", 1}, {"format.rlx", 1},
};

uint32_t rlx_version(void) {
  return RLX_VERSION;
}

const char* rlx_version_string(void) {
  static_assert(RLX_VERSION == 1000, "the text follows the number");
  return "0.1.0";
}

int32_t rlx_feature(const char* name) {
  for (const Feature& feature : kFeatures)
    if (name && feature.name == name) return feature.level;
  return 0;
}
