// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstring>

#include "capi/env.h"

using rlx::capi::kLargestHost;

void rlx_host_init(rlx_host_t* host, size_t struct_size) {
  if (!host || struct_size < offsetof(rlx_host_t, struct_size) + sizeof host->struct_size || struct_size > kLargestHost)
    return;
  std::memset(static_cast<void*>(host), 0, struct_size);
  host->struct_size = static_cast<uint32_t>(struct_size);
}
