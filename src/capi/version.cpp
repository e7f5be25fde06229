// SPDX-License-Identifier: Apache-2.0
// rlx_version, rlx_feature. Features are looked up in the tables that the library itself uses.
#include <algorithm>
#include <string_view>

#include "capi/guard.h"
#include "capi/schema.h"
#include "device/registry.h"
#include "import/format.h"
#include "rlx.h"

using namespace rlx;
using namespace rlx::capi;

static bool has_backend(std::string_view name) {
  return std::any_of(std::begin(kBackends), std::end(kBackends),
                     [&](const BuiltInBackend& backend) { return backend.name == name; });
}

static bool has_op(std::string_view name) {
  return find_public_op(name) != nullptr;
}

struct FeatureKind {
  std::string_view prefix;
  bool (*has)(std::string_view name);
};
static constexpr FeatureKind kKinds[] = {{"backend.", has_backend}, {"format.", has_format}, {"op.", has_op}};

uint32_t rlx_version(void) {
  return RLX_VERSION;
}

const char* rlx_version_string(void) {
  static_assert(RLX_VERSION == 1000, "the text follows the number");
  return "0.1.0";
}

int32_t rlx_feature(const char* name) {
  return guard_value(0, {{name, "name"}}, [&]() -> int32_t {
    for (const FeatureKind& kind : kKinds)
      if (std::string_view(name).starts_with(kind.prefix)) return kind.has(name + kind.prefix.size());
    return 0;
  });
}
