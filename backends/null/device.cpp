// SPDX-License-Identifier: Apache-2.0
// The device "null": accepts every op, compiles every plan and computes nothing. All outputs are 0: left as they were,
// they could make a loop run on whatever the memory held. It serves to test the compiler, and is the smallest possible
// backend.
#include <cstring>

#include "device/registry.h"

namespace rlx {

namespace {

class NullExecutable : public Executable {
 public:
  explicit NullExecutable(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  Result<std::unique_ptr<ExecState>> make_state() const override { return std::make_unique<ExecState>(); }
  Result<Fence> submit(const RunArgs& args, ExecState&) const override {
    for (size_t i = 0; i < plan_->outputs.size(); i++)
      if (std::byte* data = args.bases.values[plan_->output_base(i)].host) std::memset(data, 0, bytes_of(i, args));
    return Fence::finished({});
  }

 private:
  size_t bytes_of(size_t output, const RunArgs& args) const {
    Dims dims = dims_at(plan_->outputs[output].dims, args.sizes.values);
    DType dtype = plan_->graph().type(plan_->graph().outputs()[output].value).dtype;
    return static_cast<size_t>(byte_size(dtype, element_count(std::span<const int64_t>(dims)).value_or(0)).value_or(0));
  }

  std::shared_ptr<const Plan> plan_;
};

class NullDevice : public Device {
 public:
  explicit NullDevice(const DeviceContext& context) : Device(context) { info_.name = info_.kind = "null"; }
  const DeviceInfo& info() const override { return info_; }
  Found find(const KernelQuery&) const override {
    static constexpr Kernel kNothing{.op = Op::kNone, .name = "nothing"};
    return {&kNothing, {}};
  }
  Result<std::unique_ptr<Executable>> compile(std::shared_ptr<const Plan> plan, size_t) override {
    return std::unique_ptr<Executable>(new NullExecutable(std::move(plan)));
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
