// SPDX-License-Identifier: Apache-2.0
// Whether bytes are UTF-8 (Unicode 15, table 3-7): names out of files go into messages, reports and C strings.
#pragma once

#include <string_view>

namespace rlx {

bool is_utf8(std::string_view text);

}  // namespace rlx
