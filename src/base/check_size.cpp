// SPDX-License-Identifier: Apache-2.0
#include "base/check_size.h"

#include "base/nearest.h"

namespace rlx {

Status check_size(std::string_view symbol, int64_t size, const Interval& range) {
  if (size >= range.lo && size <= range.hi) return {};
  std::string wanted =
      range.hi == Interval::kUnbounded ? format("[{}, inf)", range.lo) : format("[{}, {}]", range.lo, range.hi);
  return Status(Code::kRange, format("the size '{}' = {} is outside its range {}", symbol, size, wanted))
      .with("value", symbol)
      .with("expected", wanted)
      .with("got", std::to_string(size));
}

Status no_size(std::string_view key, std::string_view name, std::span<const std::string_view> known) {
  return Status(Code::kOption, format("'{}{}': there is no size '{}'{}", key, name, name, only(known)))
      .with("value", name)
      .with("expected", listed(known));
}

}  // namespace rlx
