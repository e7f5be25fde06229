// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rlx::cpu {

struct Caps {};

}  // namespace rlx::cpu
