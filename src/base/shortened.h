// SPDX-License-Identifier: Apache-2.0
// Long texts in messages, such as sizes that are long expressions.
#pragma once

#include <string>

namespace rlx {

// The text, or only its beginning, and "..." after it.
inline std::string shortened(std::string text) {
  constexpr size_t kMaxLetters = 200;
  if (text.size() > kMaxLetters) text.replace(kMaxLetters, text.npos, "...");
  return text;
}

}  // namespace rlx
