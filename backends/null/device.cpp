// SPDX-License-Identifier: Apache-2.0
// The device "null": accepts every op, compiles every plan and runs nothing; outputs keep the bytes that they had. It
// serves to test the compiler, and is the smallest possible backend.
#include "device/registry.h"

namespace rlx {

namespace {

class NullExecutable : public Executable {
 public:
  Result<std::unique_ptr<ExecState>> make_state() const override { return std::make_unique<ExecState>(); }
  Result<Fence> submit(const RunArgs&, ExecState&) const override { return Fence::finished({}); }
};

class NullDevice : public Device {
 public:
  explicit NullDevice(const DeviceContext& context) : Device(context) { info_.name = info_.kind = "null"; }
  const DeviceInfo& info() const override { return info_; }
  Found find(const KernelQuery&) const override {
    static constexpr Kernel kNothing{.op = Op::kNone, .name = "nothing"};
    return {&kNothing, {}};
  }
  Result<std::unique_ptr<Executable>> compile(std::shared_ptr<const Plan>, size_t) override {
    return std::unique_ptr<Executable>(new NullExecutable);
  }

 private:
  DeviceInfo info_;
};

}  // namespace

Result<Devices> open_null(const DeviceContext& context) {
  Devices devices;
  devices.push_back(std::make_unique<NullDevice>(context));
  return devices;
}

}  // namespace rlx
