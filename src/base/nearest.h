// SPDX-License-Identifier: Apache-2.0
// Help in a message about an unknown word: the known word that was probably meant, or a list of all.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlx {

// " (did you mean 'softmax'?)", or "" where nothing known is near: a quarter of the letters may differ.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

// "a, b, c"; ends in "..." after twelve; "none".
std::string listed(std::span<const std::string_view> known);

}  // namespace rlx
