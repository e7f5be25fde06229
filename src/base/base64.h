// SPDX-License-Identifier: Apache-2.0
// Bytes as base64 (RFC 4648, section 4, with padding) and back.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

std::string to_base64(std::span<const std::byte> bytes);
std::optional<std::vector<std::byte>> from_base64(std::string_view text);  // nullopt for what to_base64 does not write

}  // namespace rlx
