// SPDX-License-Identifier: Apache-2.0
// Cutting a failing graph down to what fails: fewer outputs, runs and nodes, with the values that were there.
#pragma once

#include <functional>

#include "generate.h"

namespace rlx::test {

// The smallest that was found within this time for which `fails` still holds.
RandomGraph shrunk(RandomGraph failing, const std::function<bool(const RandomGraph&)>& fails, double seconds = 15);

// The sizes of each run, and the contents of small inputs, as comments.
std::string contents_text(const RandomGraph& random);

}  // namespace rlx::test
