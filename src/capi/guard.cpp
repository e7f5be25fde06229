// SPDX-License-Identifier: Apache-2.0
// The checks of arguments that all functions of rlx.h share, and the text of a failure as UTF-8.
#include "capi/guard.h"

#include "base/utf8.h"

namespace rlx::capi {

Status check(const char* function, std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (!is_possible(argument.count, argument.element_bytes))
      return Status(Code::kInvalidArgument, format("{}: {} cannot have {} elements of {}", function, argument.name,
                                                   argument.count, plural(argument.element_bytes, "byte")))
          .with("input", argument.name)
          .with("got", std::to_string(argument.count));
    if (!argument.pointer && argument.count != 0)
      return Status(Code::kInvalidArgument, format("{}: {} is NULL", function, argument.name))
          .with("input", argument.name)
          .with("got", "NULL");
    if (argument.alive && *argument.alive == 0)
      return made_before_fork(argument.name).prefixed(std::string(function) + ": ");
    if (argument.is_text) RLX_TRY(check_text(function, argument.name, static_cast<const char*>(argument.pointer)));
  }
  return {};
}

Status made_before_fork(std::string_view name) {
  return Status(Code::kForked, format("{} was made before this process was forked", name)).with("input", name);
}

Status check_text(std::string_view subject, std::string_view name, std::string_view text) {
  size_t length = utf8_prefix(text);
  if (length == text.size()) return {};
  std::string shown = rlx::readable(text);
  return Status(Code::kInvalidArgument, format("{}: {} is not UTF-8 at byte {}: '{}'", subject, name, length, shown))
      .with("input", name)
      .with("expected", "UTF-8")
      .with("got", shown);
}

std::string element_name(std::string_view array, size_t index) {
  return format("{}[{}]", array, index);
}

Status null_element(std::string_view array, size_t index) {
  std::string name = element_name(array, index);
  return Status(Code::kInvalidArgument, name + " is NULL").with("input", name).with("got", "NULL");
}

Status readable(Status status) {
  const Failure* failure = std::move(status).take();
  Status given = Status::adopt(failure);
  auto is_text = [](const auto& detail) { return is_utf8(detail.second); };
  if (!failure || (is_utf8(failure->message) && std::ranges::all_of(failure->details, is_text))) return given;
  Status shown(failure->code, rlx::readable(failure->message));
  for (const auto& [key, value] : failure->details) shown = std::move(shown).with(key, rlx::readable(value));
  return shown;
}

}  // namespace rlx::capi
