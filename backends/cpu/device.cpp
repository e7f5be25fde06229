// SPDX-License-Identifier: Apache-2.0
// The device "cpu".
#include "backends/cpu/device.h"

#include "backends/cpu/caps.h"
#include "backends/cpu/executable.h"
#include "backends/cpu/table.h"

namespace rlx {

namespace cpu {

class CpuDevice : public Device {
 public:
  CpuDevice(const DeviceContext& context, const CpuInfo& cpu, std::string name)
      : Device(context), table_(op_table()), caps_(cpu) {
    info_.name = std::move(name);
    info_.kind = "cpu";
    info_.description = std::string(caps_.cpu.vendor) + ", " + std::string(isa_name(caps_.cpu.chosen));
    info_.capabilities = {{"isa", std::string(isa_name(caps_.cpu.chosen))}, {"vendor", caps_.cpu.vendor}};
  }
  const DeviceInfo& info() const override { return info_; }
  Found find(const KernelQuery& query) const override { return table_.find(query); }
  std::vector<std::string_view> kernels(Op op) const override { return table_.names(op); }
  Result<std::unique_ptr<Executable>> compile(std::shared_ptr<const Plan> plan, size_t segment) override {
    return std::unique_ptr<Executable>(new CpuExecutable(std::move(plan), segment, caps_, context_));
  }

 private:
  Table table_;
  Caps caps_;
  DeviceInfo info_;
};

std::unique_ptr<Device> make_device(const DeviceContext& context, const CpuInfo& cpu, std::string name) {
  return std::make_unique<CpuDevice>(context, cpu, std::move(name));
}

}  // namespace cpu

Result<Devices> open_cpu(const DeviceContext& context) {
  Devices devices;
  devices.push_back(cpu::make_device(context, cpu::detect_cpu(), "cpu"));
  return devices;
}

}  // namespace rlx
