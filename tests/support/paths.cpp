// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

namespace rlx::test {

// The only source that knows this folder, so all others compile alike in every checkout.
std::filesystem::path test_path(std::string_view name) {
  return std::filesystem::path(RLX_TESTS_DIR) / name;
}

}  // namespace rlx::test
