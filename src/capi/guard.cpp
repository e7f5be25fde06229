// SPDX-License-Identifier: Apache-2.0
#include "capi/guard.h"

#include <exception>
#include <new>

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

static Status rethrown(const char* function) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status::no_memory();
  } catch (const std::exception& exception) {
    return Status(Code::kInternal, format("{}: unexpected exception: {}", function, exception.what()));
  } catch (...) {
    return Status(Code::kInternal, format("{}: unexpected exception of an unknown type", function));
  }
}

Status from_exception(const char* function) noexcept {
  try {
    return rethrown(function);
  } catch (...) {  // no memory for the message about the first exception
    return Status::no_memory();
  }
}

}  // namespace rlx::capi
