// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <algorithm>
#include <vector>

namespace rlx {

// Edit distance (insert, delete, replace: Levenshtein 1966), by rows.
static size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  constexpr size_t kLongest = 64;  // of a name that anyone types; keeps garbage cheap
  if (word.size() > kLongest) return "";
  std::string_view best;
  size_t least = word.size() / 3 + 1;
  for (std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    size_t d = distance(word, candidate);
    if (d < least || (d == least && best.empty() && d < word.size())) best = candidate, least = d;
  }
  return best.empty() ? "" : " (did you mean '" + std::string(best) + "'?)";
}

std::string listed(std::span<const std::string_view> known) {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t i = 0; i < std::min(known.size(), kMost); i++) text += (i ? ", " : "") + std::string(known[i]);
  if (known.size() > kMost) text += ", ...";
  return text.empty() ? "none" : text;
}

}  // namespace rlx
