// SPDX-License-Identifier: Apache-2.0
#include "base/check_size.h"

#include <algorithm>

#include "base/nearest.h"

namespace rlx {

static Status above_limit(std::string_view symbol, int64_t size, int64_t most) {
  return Status(Code::kRange, format("the size '{}' = {} is above {}, the limit of a size without a declared maximum",
                                     symbol, size, most))
      .with("value", symbol)
      .with("expected", format("at most {}", most))
      .with("got", std::to_string(size));
}

static int64_t limit_of(const Interval& range) {
  return std::max(kLargestSymbol, range.lo);
}

Status check_upper_size(std::string_view symbol, int64_t size, const Interval& range) {
  bool is_above = range.hi == Interval::kUnbounded && size > limit_of(range);
  return is_above ? above_limit(symbol, size, limit_of(range)) : check_size(symbol, size, range);
}

Status check_literal(const Dim& dim) {
  if (!dim.is_literal() || dim.literal() <= kLargestSize) return {};
  return Status(Code::kRange, format("the size {} is above 2^48", dim))
      .with("expected", format("at most {}", kLargestSize))
      .with("got", dim.text());
}

Status check_size(std::string_view symbol, int64_t size, const Interval& range) {
  if (size >= range.lo && size <= range.hi) return {};
  bool is_open = range.hi == Interval::kUnbounded;
  if (is_open && size > range.hi) return above_limit(symbol, size, limit_of(range));
  std::string wanted = is_open ? format("[{}, inf)", range.lo) : format("[{}, {}]", range.lo, range.hi);
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
