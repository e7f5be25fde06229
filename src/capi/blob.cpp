// SPDX-License-Identifier: Apache-2.0
// rlx_blob_*: bytes that the library returns.
#include "capi/blob.h"

using namespace rlx::capi;

const void* rlx_blob_data(const rlx_blob_t* blob) {
  return blob ? blob->bytes.c_str() : "";
}

size_t rlx_blob_size(const rlx_blob_t* blob) {
  return blob ? blob->bytes.size() : 0;
}

rlx_blob_t* rlx_blob_retain(rlx_blob_t* blob) {
  return retain(blob);
}

void rlx_blob_release(rlx_blob_t* blob) {
  release(blob);
}
