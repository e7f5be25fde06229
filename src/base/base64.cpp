// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <array>
#include <cstdint>

namespace rlx {

static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static constexpr uint8_t kNoDigit = 64;

static constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); i++) values[static_cast<uint8_t>(kDigits[i])] = static_cast<uint8_t>(i);
  return values;
}();

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    size_t here = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; k++) group = group << 8 | (k < here ? static_cast<uint32_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; k++) text += k <= here ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4) return std::nullopt;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; k++) {
      uint8_t value = k < digits ? kValues[static_cast<uint8_t>(text[i + k])] : 0;
      if (value == kNoDigit) return std::nullopt;
      group = group << 6 | value;
    }
    for (size_t k = 0; k + 1 < digits; k++) bytes.push_back(static_cast<std::byte>(group >> (16 - 8 * k)));
    uint32_t unused = digits == 4 ? 0 : group & ((1u << (8 * (4 - digits))) - 1);
    if (unused) return std::nullopt;
  }
  return bytes;
}

}  // namespace rlx
