// SPDX-License-Identifier: Apache-2.0
// The bytes of a report, a schema or a print.
#pragma once

#include <string>
#include <utility>

#include "capi/handle.h"
#include "rlx.h"

struct rlx_blob : rlx::capi::Counted {
  explicit rlx_blob(std::string text) : bytes(std::move(text)) {}
  const std::string bytes;  // a std::string keeps the 0 that follows
};
