// SPDX-License-Identifier: Apache-2.0
#include "tests/support/isas.h"

#include "backends/cpu/device.h"

namespace rlx::test {

Result<Devices> open_isas(const DeviceContext& context) {
  Devices devices;
  for (cpu::Isa isa : cpu::available_isas()) {
    cpu::CpuInfo info = cpu::detect_cpu();
    info.chosen = isa;
    if (isa != cpu::Isa::kAvx512) info.bytes = cpu::ByteProducts::kPairs;
    devices.push_back(cpu::make_device(context, info, std::string(cpu::isa_name(isa))));
  }
  return devices;
}

std::vector<std::string> isa_devices() {
  std::vector<std::string> names;
  for (cpu::Isa isa : cpu::available_isas()) names.emplace_back(cpu::isa_name(isa));
  return names;
}

}  // namespace rlx::test
