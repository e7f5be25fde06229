// SPDX-License-Identifier: Apache-2.0
// The backends of this build. Each has one entry: a function that opens the devices it finds.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace rlx {

using Devices = std::vector<std::unique_ptr<Device>>;

// Defined by the backends.
Result<Devices> open_cpu(const DeviceContext&);
Result<Devices> open_reference(const DeviceContext&);
Result<Devices> open_null(const DeviceContext&);

struct BackendEntry {
  std::string_view name;
  std::function<Result<Devices>(const DeviceContext&)> open;
};

// A table that needs no constructor.
struct BuiltInBackend {
  std::string_view name;
  Result<Devices> (*open)(const DeviceContext&);
};
inline constexpr BuiltInBackend kBackends[] = {{"cpu", open_cpu}, {"reference", open_reference}, {"null", open_null}};

}  // namespace rlx
