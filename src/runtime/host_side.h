// SPDX-License-Identifier: Apache-2.0
// HostSide: what the host has of a frame whose device lacks some kernels. Each base of the plan that the host cannot
// address has a copy in host memory, of the same layout. A segment of the host begins with copies of what it reads and
// ends with copies of what it has made, and in between is one like any other. Invariant: outside of a segment nothing
// counts that lies on the host's side, so the device's memory is always right.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "runtime/room.h"

namespace rlx {

class HostSide {
 public:
  HostSide(Device& device, Device& host, const Plan& plan);

  Status run(size_t segment, const Executable& executable, const RunArgs& args, ExecState& state);

 private:
  // Bytes of a base, at the sizes of now.
  struct Extent {
    uint32_t base;
    int64_t first, last;
    bool operator==(const Extent&) const = default;
    auto operator<=>(const Extent&) const = default;
  };
  static Extent extent_of(const Access& access, const RunArgs& args);
  void find_extents(const Segment& segment, const RunArgs& args);
  Status place(const Segment& segment, const RunArgs& args);  // all that the segment touches, at the sizes of now
  Status hold(uint32_t base, int64_t bytes);
  void move(uint32_t base, const Place& place);
  Status copy(std::span<const Extent> extents, const RunArgs& args, bool to_device);

  Device& device_;
  Device& host_;
  const Plan& plan_;
  std::vector<Room> rooms_;               // by base
  std::vector<Place> bases_;              // where the host finds them: in its rooms, or where they lie
  std::vector<uint64_t> changed_, seen_;  // by base: the version of its last change, here and in the frame
  uint64_t version_ = 0;
  std::vector<Extent> in_, out_;  // of the segment of now
  std::vector<Copy> copies_;
};

}  // namespace rlx
