// SPDX-License-Identifier: Apache-2.0
// What a status of the C API says.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "rlx.h"

namespace rlx::capi_tests {

// "" for success. Releases the status.
inline std::string words(rlx_status_t* status) {
  char text[512];
  (void)rlx_status_take(status, text, sizeof text);
  return text;
}
#define OK(call) ASSERT_EQ(words(call), "")

}  // namespace rlx::capi_tests
