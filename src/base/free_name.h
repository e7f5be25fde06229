// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace rlx {

// The name, or the first of name.2, name.3 ... that is not taken.
inline std::string free_name(std::string_view wanted, FunctionRef<bool(const std::string& name)> is_taken) {
  std::string name(wanted);
  for (int k = 2; is_taken(name); k++) name = std::string(wanted) + "." + std::to_string(k);
  return name;
}

}  // namespace rlx
