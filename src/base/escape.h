// SPDX-License-Identifier: Apache-2.0
// The escapes of the text form, inside of the quotes of strings and of names of sizes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rlx {

// `text` between two marks, '"' or '\''. Everything stays on one line, and no mark stands inside but `\"`.
std::string quoted(std::string_view text, char mark = '"');

// `text` on one line: line ends and other control characters are escaped.
std::string on_one_line(std::string_view text);

// Reads the character at `at`, and moves past it. It may be an escape: \n, \", \\, or \x and 00 to 7f (a byte above
// that is not a character of UTF-8 by itself). nullopt for any other escape.
std::optional<char> read_escaped(std::string_view text, size_t& at);

}  // namespace rlx
