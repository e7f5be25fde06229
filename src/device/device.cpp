// SPDX-License-Identifier: Apache-2.0
// Buffers in host memory, for devices that have no memory of their own.
#include "device/device.h"

#include <cstring>

namespace rlx {

Status Executable::run(const RunArgs& args, ExecState& state) const {
  Fence fence = RLX_TRY(submit(args, state));
  RLX_TRY(fence.wait());
  return fence.result();
}

Result<std::shared_ptr<Buffer>> Device::allocate(size_t bytes, MemoryKind kind) {
  return context_.memory->allocate(bytes, kind);
}

Result<Fence> Device::transfer(std::span<const Copy> copies, std::span<const Fence> wait) {
  RLX_TRY(Fence::wait_all(wait));
  for (const Copy& copy : copies)
    if (copy.bytes) std::memmove(copy.to.host, copy.from.host, copy.bytes);
  return Fence::finished({});
}

static Status transfer(Device& device, const Copy& copy) {
  Fence fence = RLX_TRY(device.transfer({&copy, 1}, {}));
  RLX_TRY(fence.wait());
  return fence.result();
}

Status copy_bytes(const Place& to, const Place& from, size_t bytes) {
  if (bytes == 0) return {};
  if (to.host && from.host) {
    std::memmove(to.host, from.host, bytes);
    return {};
  }
  Device *source = from.buffer->device(), *target = to.buffer->device();
  if (!source || !target || source == target) return transfer(target ? *target : *source, {to, from, bytes});
  std::unique_ptr<std::byte[]> between(new std::byte[bytes]);
  auto buffer = host_buffer({std::shared_ptr<void>(), between.get()}, bytes);
  RLX_TRY(transfer(*source, {{*buffer, 0}, from, bytes}));
  return transfer(*target, {to, {*buffer, 0}, bytes});
}

Status clear_bytes(const Place& place, size_t bytes) {
  if (bytes == 0) return {};
  if (place.host) {
    std::memset(place.host, 0, bytes);
    return {};
  }
  std::unique_ptr<std::byte[]> zeros(new std::byte[bytes]());
  return copy_bytes(place, {*host_buffer({std::shared_ptr<void>(), zeros.get()}, bytes), 0}, bytes);
}

}  // namespace rlx
