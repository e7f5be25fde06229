// SPDX-License-Identifier: Apache-2.0
// The CPU's device for one instruction set. The backend "cpu" opens the best one; tests open the others as well.
#pragma once

#include "backends/cpu/isa.h"
#include "device/registry.h"

namespace rlx::cpu {

std::unique_ptr<Device> make_device(const DeviceContext& context, const CpuInfo& cpu, std::string name);

}  // namespace rlx::cpu
