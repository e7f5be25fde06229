// SPDX-License-Identifier: Apache-2.0
#include "capi/guard.h"

namespace rlx::capi {

Status check(const char* function, std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (!is_possible(argument.count, argument.element_bytes))
      return Status(Code::kInvalidArgument, format("{}: {} cannot have {} elements of {} bytes", function,
                                                   argument.name, argument.count, argument.element_bytes))
          .with("input", argument.name)
          .with("got", std::to_string(argument.count));
    if (!argument.pointer && argument.count != 0)
      return Status(Code::kInvalidArgument, format("{}: {} is NULL", function, argument.name))
          .with("input", argument.name)
          .with("got", "NULL");
    if (argument.alive && *argument.alive == 0)
      return Status(Code::kForked, format("{}: {} was made before this process was forked", function, argument.name))
          .with("input", argument.name);
  }
  return {};
}

Status null_element(std::string_view array, size_t index) {
  std::string name = format("{}[{}]", array, index);
  return Status(Code::kInvalidArgument, name + " is NULL").with("input", name).with("got", "NULL");
}

}  // namespace rlx::capi
