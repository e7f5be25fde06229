// SPDX-License-Identifier: Apache-2.0
// What tests compare of printed graphs.
#pragma once

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>

namespace rlx::test {

// Which of several guards that imply each other a graph keeps depends on the order in which they were found. Who
// compares texts leaves them out, and compares what they mean.
inline std::string without_guards(const std::string& text) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t first = std::min(line.find_first_not_of(' '), line.size());  // bodies are indented
    if (line.compare(first, 6, "guard ") != 0) kept += line + "\n";
  }
  return kept;
}

// Without the types of what nodes give, and without the ranges of sizes, of which some follow from such types.
inline std::string without_types(const std::string& text) {
  static const std::regex kRange(R"( in \[\d+, (\d+|inf)\])");
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    bool opens_graph = line.ends_with(" {");
    kept += (opens_graph ? std::regex_replace(line, kRange, "") : line.substr(0, line.rfind(" -> "))) + "\n";
  }
  return kept;
}

// Whether text that is read and printed again changes once at most, and not in nodes. Where the parser has no proof
// that a size is the one that is written, its own stays, which may rest on the guards of later nodes.
inline bool settles(const std::string& text, const std::string& again, const std::string& third) {
  return without_guards(again) == without_guards(third) &&
         without_types(without_guards(text)) == without_types(without_guards(again));
}

}  // namespace rlx::test
