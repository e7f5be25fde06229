// SPDX-License-Identifier: Apache-2.0
#include "runtime/convert.h"

#include <cstring>
#include <memory>

#include "base/visit.h"
#include "device/device.h"

namespace rlx {

bool may_convert(DType from, DType to) {
  if (is_float(from) && is_float(to)) return true;
  if (!is_integer(from) || !is_integer(to)) return false;
  bool from_signed = dtypes::S.has(from), to_signed = dtypes::S.has(to);
  if (from_signed && !to_signed) return false;
  return element_bytes(to) > element_bytes(from) || (from == to);
}

template <class From, class To>
static void convert_each(const std::byte* source, std::byte* target, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    From value;
    std::memcpy(&value, source + static_cast<size_t>(i) * sizeof(From), sizeof(From));
    reinterpret_cast<To*>(target)[i] = To(static_cast<Compute<From>>(value));  // NOLINT: i8 is a number, not a letter
  }
}

void convert_elements(DType from, const std::byte* source, DType to, std::byte* target, int64_t count) {
  if (from == to) {
    if (int64_t bytes = byte_size(to, count).value_or(0)) std::memcpy(target, source, static_cast<size_t>(bytes));
  } else if (is_float(from)) {
    visit<dtypes::F>(from, [&]<class From>() {
      visit<dtypes::F>(to, [&]<class To>() { convert_each<From, To>(source, target, count); });
    });
  } else {
    visit<dtypes::I>(from, [&]<class From>() {
      visit<dtypes::I>(to, [&]<class To>() { convert_each<From, To>(source, target, count); });
    });
  }
}

Status convert_elements(DType from, const Place& source, DType to, const Place& target, int64_t count) {
  auto read = static_cast<size_t>(byte_size(from, count).value_or(0));
  auto written = static_cast<size_t>(byte_size(to, count).value_or(0));
  if (from == to) return copy_bytes(target, source, written);
  if (source.host && target.host) {
    convert_elements(from, source.host, to, target.host, count);
    return {};
  }
  // Bytes that the host cannot address go through host memory.
  std::unique_ptr<std::byte[]> memory(new std::byte[read + written]);
  auto buffer = host_buffer({std::shared_ptr<void>(), memory.get()}, read + written);
  Place made(*buffer, 0), here(*buffer, written);
  RLX_TRY(copy_bytes(here, source, read));
  convert_elements(from, here.host, to, made.host, count);
  return copy_bytes(target, made, written);
}

}  // namespace rlx
