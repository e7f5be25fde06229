// SPDX-License-Identifier: Apache-2.0
// Turns an exception into a status.
#pragma once

#include <string_view>

#include "base/host_calls.h"
#include "base/status.h"

namespace rlx {

// A callback of the host has thrown: that is not our bug.
struct HostThrew {
  const char* callback;
};

template <class Call>
auto call_host(const char* callback, Call&& call) {
  HostCalls::Call inside;
  try {
    return call();
  } catch (...) {  // std::bad_alloc too: it is not the library whose memory has run out
    throw HostThrew{callback};
  }
}

// The status of the exception that is being handled. The message begins with `where`, except for out of memory, whose
// status is static.
Status from_exception(std::string_view where) noexcept;

}  // namespace rlx
