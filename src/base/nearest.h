// SPDX-License-Identifier: Apache-2.0
// The known word that a mistyped one probably meant, for messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlx {

// " (did you mean 'softmax'?)", or "" where nothing known is near: a third of the letters may differ.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace rlx
