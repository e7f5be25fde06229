// SPDX-License-Identifier: Apache-2.0
// Custom ops for graphs of tests: `test.square` is a body over f32[n], `test.scale` a call of the host that multiplies
// f32 of any shape by the attribute `by`.
#pragma once

#include <memory>

#include "ops/custom.h"

namespace rlx::test {

std::shared_ptr<const CustomOps> host_ops();

}  // namespace rlx::test
