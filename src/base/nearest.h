// SPDX-License-Identifier: Apache-2.0
// Help in a message about an unknown word: the known word that was probably meant, or a list of all.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlx {

// " (did you mean 'softmax'?)", or "" if no known word is near. A quarter of the letters may differ.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

// The same, or ", known: a, b, c" if no known word is near.
std::string did_you_mean_or_known(std::string_view word, std::span<const std::string_view> known);
std::string did_you_mean_dtype(std::string_view word);  // the same, of dtypes

// "a, b, c"; "..." after twelve words; "none" for no words.
std::string listed(std::span<const std::string_view> known);
// What there is instead of an unknown thing: ", only a, b", or ": there are none".
std::string only(std::span<const std::string_view> known);

}  // namespace rlx
