// SPDX-License-Identifier: Apache-2.0
// The environment variables that the library knows. They are read only here: once for each rlx_env_t, when it is made.
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
  std::optional<std::string> value;  // when the environment was made
};

class Variables {
 public:
  explicit Variables(std::string_view prefix);
  // A suffix that is not in the table is our bug.
  const std::optional<std::string>& operator[](std::string_view suffix) const;
  const std::string& name(std::string_view suffix) const;
  const std::vector<Variable>& all() const { return variables_; }

 private:
  const Variable& find(std::string_view suffix) const;
  std::vector<Variable> variables_;
};

}  // namespace rlx::capi
