// SPDX-License-Identifier: Apache-2.0
// HostSide: the host memory for the segments that run on the host because the device lacks kernels. Each base of the
// plan that the host cannot address has a copy in host memory, with the same layout. A segment on the host first copies
// what it reads from the device, then runs like any other segment, then copies its results back. Invariant: outside
// such a segment the device's memory is up to date, and the host's copies are not used.
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
  // A range of bytes of a base, at the present sizes.
  struct Extent {
    uint32_t base;
    int64_t first, last;
    bool operator==(const Extent&) const = default;
    auto operator<=>(const Extent&) const = default;
  };
  static Extent extent_of(const Access& access, const RunArgs& args);
  void find_extents(const Segment& segment, const RunArgs& args);
  // Places all memory that the segment touches, at the present sizes.
  Status place(const Segment& segment, const RunArgs& args);
  Status hold(uint32_t base, int64_t bytes);
  void move(uint32_t base, const Place& place);
  enum class Direction : uint8_t { kToHost, kToDevice };
  Status copy(std::span<const Extent> extents, const RunArgs& args, Direction direction);

  Device& device_;
  Device& host_;
  const Plan& plan_;
  std::vector<Room> rooms_;               // by base
  std::vector<Place> bases_;              // the host's addresses: in `rooms_`, or of the base itself
  std::vector<uint64_t> changed_, seen_;  // by base: the version of its last change, here and in the frame
  uint64_t version_ = 0;
  std::vector<Extent> in_, out_;  // of the present segment
  std::vector<Copy> copies_;
};

}  // namespace rlx
