// SPDX-License-Identifier: Apache-2.0
// What this program has allocated now, and at most since it was last asked to forget. It replaces operator new.
#pragma once

#include <cstddef>

namespace rlx::test {

size_t live_bytes();
size_t peak_bytes();
void forget_peak();  // the peak is what lives now

}  // namespace rlx::test
