// SPDX-License-Identifier: Apache-2.0
// The environment variables that the library knows. This is the one place where they are read: once for each rlx_env_t,
// when it is made.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::capi {

struct Variable {
  std::string_view suffix;  // after the prefix: "THREADS" of RLX_THREADS
  std::string_view summary;
  std::string name;                  // with the prefix
  std::optional<std::string> value;  // as it was then
};

class Environment {
 public:
  explicit Environment(std::string_view prefix);
  const std::optional<std::string>& operator[](std::string_view suffix) const;  // of the table; another is our bug
  const std::string& name(std::string_view suffix) const;
  const std::vector<Variable>& variables() const { return variables_; }

 private:
  const Variable& find(std::string_view suffix) const;
  std::vector<Variable> variables_;
};

}  // namespace rlx::capi
