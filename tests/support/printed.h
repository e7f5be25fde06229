// SPDX-License-Identifier: Apache-2.0
// What tests compare of printed graphs.
#pragma once

#include <algorithm>
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

// Without the types of what nodes give, which may be written in another way where guards make two sizes equal.
inline std::string without_types(const std::string& text) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) kept += line.substr(0, line.rfind(" -> ")) + "\n";
  return kept;
}

}  // namespace rlx::test
