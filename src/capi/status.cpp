// SPDX-License-Identifier: Apache-2.0
// rlx_status_*: the handle is a pointer to the failure. So passing it on costs nothing, and RLX_E_NO_MEMORY needs no
// allocation.
#include <algorithm>
#include <string_view>

#include "capi/guard.h"
#include "capi/text.h"

using namespace rlx;
using namespace rlx::capi;

struct CodePair {
  Code ours;
  rlx_code_t theirs;
};
static constexpr CodePair kCodes[] = {
    {Code::kOk, RLX_OK},
    {Code::kCancelled, RLX_E_CANCELLED},
    {Code::kUnknown, RLX_E_UNKNOWN},
    {Code::kInvalidArgument, RLX_E_INVALID_ARGUMENT},
    {Code::kTimeout, RLX_E_TIMEOUT},
    {Code::kNotFound, RLX_E_NOT_FOUND},
    {Code::kExists, RLX_E_EXISTS},
    {Code::kDenied, RLX_E_DENIED},
    {Code::kNoMemory, RLX_E_NO_MEMORY},
    {Code::kState, RLX_E_STATE},
    {Code::kAborted, RLX_E_ABORTED},
    {Code::kRange, RLX_E_RANGE},
    {Code::kUnsupported, RLX_E_UNSUPPORTED},
    {Code::kInternal, RLX_E_INTERNAL},
    {Code::kUnavailable, RLX_E_UNAVAILABLE},
    {Code::kData, RLX_E_DATA},
    {Code::kVersion, RLX_E_VERSION},
    {Code::kIo, RLX_E_IO},
    {Code::kShape, RLX_E_SHAPE},
    {Code::kDtype, RLX_E_DTYPE},
    {Code::kOption, RLX_E_OPTION},
    {Code::kForked, RLX_E_FORKED},
    {Code::kCallback, RLX_E_CALLBACK},
};
static_assert(std::ranges::all_of(kCodes,
                                  [](CodePair pair) { return static_cast<rlx_code_t>(pair.ours) == pair.theirs; }));

// Writes the parts one after the other: joining them would need memory, which may just have run out.
static void copy_failure(const Failure& failure, char* text, size_t capacity) {
  std::string_view parts[] = {code_name(failure.code), ": ", failure.message};
  copy_text("", text, capacity);
  for (std::string_view part : parts) {
    copy_text(part, text, capacity);
    size_t written = capacity ? std::min(part.size(), capacity - 1) : 0;
    if (!text || written < part.size()) return;
    text += written;
    capacity -= written;
  }
}

rlx_code_t rlx_status_take(rlx_status_t* status, char* text, size_t capacity) {
  if (!status) {
    copy_text("", text, capacity);
    return RLX_OK;
  }
  const Failure* failure = from_c(status);
  auto code = static_cast<rlx_code_t>(failure->code);
  copy_failure(*failure, text, capacity);
  Status::release(failure);
  return code;
}

rlx_code_t rlx_status_code(const rlx_status_t* status) {
  return status ? static_cast<rlx_code_t>(from_c(status)->code) : RLX_OK;
}

const char* rlx_status_message(const rlx_status_t* status) {
  return status ? from_c(status)->message.c_str() : "";
}

const char* rlx_status_detail(const rlx_status_t* status, const char* key) {
  if (!status || !key) return nullptr;
  for (const auto& [name, value] : from_c(status)->details)
    if (name == key) return value.c_str();
  return nullptr;
}

const char* rlx_code_name(rlx_code_t code) {
  return code_name(static_cast<Code>(code)).data();  // names are literals, so a NUL follows
}

rlx_status_t* rlx_status_create(rlx_code_t code, const char* message) {
  if (code == RLX_OK) return nullptr;
  bool is_known = std::ranges::any_of(kCodes, [&](CodePair pair) { return pair.theirs == code; });
  return guard({}, [&] { return Status(is_known ? static_cast<Code>(code) : Code::kUnknown, message ? message : ""); });
}

rlx_status_t* rlx_status_retain(rlx_status_t* status) {
  Status::retain(from_c(status));
  return status;
}

void rlx_status_release(rlx_status_t* status) {
  Status::release(from_c(status));
}
