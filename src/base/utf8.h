// SPDX-License-Identifier: Apache-2.0
// Whether bytes are UTF-8 (Unicode 15, table 3-7). Names from files must be, because they go into messages, reports and
// C strings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlx {

// The length of the sequence at the front of a non-empty text; 0 if it is not UTF-8.
size_t utf8_length(std::string_view text);

size_t utf8_prefix(std::string_view text);  // the bytes before the first that is not UTF-8, or all

bool is_utf8(std::string_view text);

// As UTF-8: a byte that is not part of a character is written as \x and two digits.
std::string readable(std::string_view text);

}  // namespace rlx
