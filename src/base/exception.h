// SPDX-License-Identifier: Apache-2.0
// Where an exception ends: as a status.
#pragma once

#include <string_view>

#include "base/status.h"

namespace rlx {

// Of the exception that is being handled. `where` begins the message; out of memory has none.
Status from_exception(std::string_view where) noexcept;

}  // namespace rlx
