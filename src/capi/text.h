// SPDX-License-Identifier: Apache-2.0
// Text that is copied into the caller's buffer.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

namespace rlx::capi {

// Copies as many whole UTF-8 characters as fit, and a NUL. Does nothing without a buffer.
inline void copy_text(std::string_view from, char* to, size_t capacity) {
  if (!to || capacity == 0) return;
  size_t size = std::min(from.size(), capacity - 1);
  if (size < from.size())
    while (size > 0 && (static_cast<unsigned char>(from[size]) & 0xc0) == 0x80) size--;
  std::memcpy(to, from.data(), size);
  to[size] = '\0';
}

}  // namespace rlx::capi
