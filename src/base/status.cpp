// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

namespace rlx {

static Failure* out_of_memory() {
  static Failure failure{Code::kNoMemory, "out of memory", {}, {1}, true};
  return &failure;
}

// Made while the library loads, so that reporting it later allocates nothing: CONTRIBUTING.md lists such objects.
[[gnu::used]] static Failure* const kOutOfMemory = out_of_memory();

std::string_view code_name(Code code) {
  static constexpr std::string_view kNames[] = {"RLX_OK",
                                                "RLX_E_CANCELLED",
                                                "RLX_E_UNKNOWN",
                                                "RLX_E_INVALID_ARGUMENT",
                                                "RLX_E_TIMEOUT",
                                                "RLX_E_NOT_FOUND",
                                                "RLX_E_EXISTS",
                                                "RLX_E_DENIED",
                                                "RLX_E_NO_MEMORY",
                                                "RLX_E_STATE",
                                                "RLX_E_ABORTED",
                                                "RLX_E_RANGE",
                                                "RLX_E_UNSUPPORTED",
                                                "RLX_E_INTERNAL",
                                                "RLX_E_UNAVAILABLE",
                                                "RLX_E_DATA",
                                                "RLX_E_VERSION",
                                                "RLX_E_IO",
                                                "RLX_E_SHAPE",
                                                "RLX_E_DTYPE",
                                                "RLX_E_OPTION",
                                                "RLX_E_FORKED",
                                                "RLX_E_CALLBACK"};
  auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "RLX_E_UNKNOWN";
}

Status Status::no_memory() {
  return adopt(kOutOfMemory);
}

void Status::retain(const Failure* failure) {
  if (failure && !failure->is_static) failure->references.fetch_add(1, std::memory_order_relaxed);
}

void Status::release(const Failure* failure) {
  if (!failure || failure->is_static) return;
  if (failure->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete failure;
}

const std::string* Status::detail(std::string_view key) const {
  if (!failure_) return nullptr;
  for (const auto& [name, value] : failure_->details)
    if (name == key) return &value;
  return nullptr;
}

Failure* Status::unique() {
  auto* copy = new Failure{failure_->code, failure_->message, failure_->details};
  release(std::exchange(failure_, copy));
  return copy;
}

Status Status::with(std::string_view key, std::string_view value) && {
  if (failure_ && !failure_->is_static && !value.empty() && !detail(key)) unique()->details.emplace_back(key, value);
  return std::move(*this);
}

Status Status::prefixed(std::string_view words) && {
  if (failure_ && !failure_->is_static) unique()->message.insert(0, words);
  return std::move(*this);
}

Status Status::suffixed(std::string_view words) && {
  if (failure_ && !failure_->is_static) unique()->message.append(words);
  return std::move(*this);
}

}  // namespace rlx
