// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstring>

#include "rlx.h"

// No version of the struct will be larger. A larger size is a mistake of the caller, and nothing is written.
static constexpr size_t kLargestHost = 4096;

void rlx_host_init(rlx_host_t* host, size_t struct_size) {
  if (!host || struct_size < offsetof(rlx_host_t, struct_size) + sizeof host->struct_size || struct_size > kLargestHost)
    return;
  std::memset(static_cast<void*>(host), 0, struct_size);
  host->struct_size = static_cast<uint32_t>(struct_size);
}
