// SPDX-License-Identifier: Apache-2.0
// Turns an exception into a status.
#pragma once

#include <string_view>

#include "base/status.h"

namespace rlx {

// The status of the exception that is being handled. The message begins with `where`, except for out of memory, whose
// status is static.
Status from_exception(std::string_view where) noexcept;

}  // namespace rlx
