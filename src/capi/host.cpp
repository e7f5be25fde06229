// SPDX-License-Identifier: Apache-2.0
// rlx_host_init, rlx_op_def_init: structs that callers make at the size that they know.
#include "capi/versioned.h"

void rlx_host_init(rlx_host_t* host, size_t struct_size) {
  rlx::capi::init_versioned(host, struct_size);
}

void rlx_op_def_init(rlx_op_def_t* def, size_t struct_size) {
  rlx::capi::init_versioned(def, struct_size);
}
