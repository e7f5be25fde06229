// SPDX-License-Identifier: Apache-2.0
// A backend with a device for each instruction set of this machine, beside "cpu", which is the best of them.
#pragma once

#include <string>
#include <vector>

#include "device/registry.h"

namespace rlx::test {

Result<Devices> open_isas(const DeviceContext& context);
std::vector<std::string> isa_devices();  // their names

}  // namespace rlx::test
