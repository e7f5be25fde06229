// SPDX-License-Identifier: Apache-2.0
// Conversions at the boundary (io.convert): floats among each other, integers widened exactly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/status.h"
#include "base/storage.h"

namespace rlx {

bool may_convert(DType from, DType to);
// `to` is aligned; `from` need not be. Equal dtypes are copied.
void convert_elements(DType from, const std::byte* source, DType to, std::byte* target, int64_t count);

// The same, wherever the bytes are.
Status convert_elements(DType from, const Place& source, DType to, const Place& target, int64_t count);

}  // namespace rlx
