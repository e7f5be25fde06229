// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <algorithm>
#include <vector>

namespace rlx {

// Edit distance (insert, delete, replace, exchange two neighbours: optimal string alignment), by rows.
static size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) above[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above.back();
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  constexpr size_t kLongest = 64;  // longer than any name; keeps the cost of garbage low
  if (word.size() > kLongest) return "";
  std::string_view best;
  size_t least = std::max<size_t>((word.size() + 1) / 4, 1) + 1;  // a guess that is further off helps nobody
  for (std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    size_t d = distance(word, candidate);
    if (d < least && 2 * d < std::max(word.size(), candidate.size())) best = candidate, least = d;
  }
  return best.empty() ? "" : " (did you mean '" + std::string(best) + "'?)";
}

std::string did_you_mean_or_known(std::string_view word, std::span<const std::string_view> known) {
  std::string hint = did_you_mean(word, known);
  return hint.empty() ? ", known: " + listed(known) : hint;
}

std::string did_you_mean_dtype(std::string_view word) {
  static constexpr std::string_view kNames[] = {
#define RLX_DTYPE(id, Enum, name, block, bytes) #name,
#include "base/dtype.def"
#undef RLX_DTYPE
  };
  return did_you_mean_or_known(word, kNames);
}

std::string listed(std::span<const std::string_view> known) {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t i = 0; i < std::min(known.size(), kMost); i++) text += (i ? ", " : "") + std::string(known[i]);
  if (known.size() > kMost) text += ", ...";
  return text.empty() ? "none" : text;
}

std::string only(std::span<const std::string_view> known) {
  return known.empty() ? ": there are none" : ", only " + listed(known);
}

}  // namespace rlx
