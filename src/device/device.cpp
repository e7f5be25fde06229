// SPDX-License-Identifier: Apache-2.0
// Buffers in host memory, for devices that have no memory of their own.
#include "device/device.h"

#include <cstring>

namespace rlx {

namespace {

Status check_range(const Buffer& buffer, size_t offset, size_t bytes) {
  if (offset <= buffer.size() && bytes <= buffer.size() - offset) return {};
  return Status(Code::kRange, format("bytes [{}, {} + {}) of a buffer of {}", offset, offset, bytes, buffer.size()));
}

}  // namespace

Status Executable::run(const RunArgs& args) const {
  Fence fence = RLX_TRY(submit(args));
  RLX_TRY(Fence::wait({&fence, 1}, true, Fence::kForever, nullptr));
  return fence.result();
}

Result<std::shared_ptr<Buffer>> Device::allocate(size_t bytes, MemoryKind kind) {
  auto memory = std::make_shared<HostMemory>(RLX_TRY(HostMemory::allocate(Host::library(), bytes, kind)));
  std::byte* data = memory->data();
  return host_buffer(std::shared_ptr<std::byte>(std::move(memory), data), bytes);
}

Result<std::shared_ptr<Buffer>> Device::wrap(void* host, size_t bytes) {
  return host_buffer(std::shared_ptr<std::byte>(std::shared_ptr<void>(), static_cast<std::byte*>(host)), bytes);
}

Status Device::write(Buffer& buffer, size_t offset, std::span<const std::byte> bytes) {
  RLX_TRY(check_range(buffer, offset, bytes.size()));
  if (!bytes.empty()) std::memcpy(buffer.host() + offset, bytes.data(), bytes.size());
  return {};
}

Status Device::read(const Buffer& buffer, size_t offset, std::span<std::byte> bytes) {
  RLX_TRY(check_range(buffer, offset, bytes.size()));
  if (!bytes.empty()) std::memcpy(bytes.data(), buffer.host() + offset, bytes.size());
  return {};
}

Status Device::copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) {
  RLX_TRY(check_range(to, to_offset, bytes));
  RLX_TRY(check_range(from, from_offset, bytes));
  if (bytes) std::memmove(to.host() + to_offset, from.host() + from_offset, bytes);
  return {};
}

}  // namespace rlx
