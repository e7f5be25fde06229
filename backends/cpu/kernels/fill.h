// SPDX-License-Identifier: Apache-2.0
// Writes one element many times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rlx::cpu {

// `length` elements of kBytes, 16 bytes at a time.
template <size_t kBytes>
inline void fill_row(const std::byte* element, std::byte* to, int64_t length) {
  std::byte pattern[16];
  for (size_t i = 0; i < sizeof pattern; i += kBytes) std::memcpy(pattern + i, element, kBytes);
  int64_t bytes = length * static_cast<int64_t>(kBytes), i = 0;
  for (; i + 16 <= bytes; i += 16) std::memcpy(to + i, pattern, 16);
  std::memcpy(to + i, pattern, static_cast<size_t>(bytes - i));
}

}  // namespace rlx::cpu
