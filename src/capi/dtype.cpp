// SPDX-License-Identifier: Apache-2.0
// rlx_dtype_*: names and sizes of dtypes.
#include "base/dtype.h"

#include "capi/guard.h"
#include "capi/tensor.h"

using namespace rlx;
using namespace rlx::capi;

static_assert(static_cast<int>(DType::kF32) == RLX_F32 && static_cast<int>(DType::kF8E5M2) == RLX_F8E5M2,
              "the ids of dtype.def are those of rlx.h");

Result<DType> rlx::capi::checked_dtype(rlx_dtype_t dtype) {
  bool known = dtype > 0 && dtype <= static_cast<int>(DType::kNVFP4) && info(static_cast<DType>(dtype)).block != 0;
  if (known) return static_cast<DType>(dtype);
  return Status(Code::kDtype, format("{} is not a dtype", dtype))
      .with("expected", "RLX_F32 ... or a number from rlx_dtype_find")
      .with("got", std::to_string(dtype));
}

const char* rlx_dtype_name(rlx_dtype_t dtype) {
  return guard_value(nullptr, {}, [&]() -> const char* {
    auto known = checked_dtype(dtype);
    return known.ok() ? name(*known).data() : nullptr;  // names are literals, so a NUL follows
  });
}

rlx_dtype_t rlx_dtype_find(const char* name) {
  return guard_value(0, {{name, "name"}}, [&] {
    auto dtype = find_dtype(name);
    return dtype ? static_cast<rlx_dtype_t>(*dtype) : 0;
  });
}

size_t rlx_dtype_bytes(rlx_dtype_t dtype, size_t elements) {
  return guard_value(0, {}, [&]() -> size_t {
    auto known = checked_dtype(dtype);
    if (!known.ok() || elements > static_cast<size_t>(INT64_MAX)) return 0;
    return static_cast<size_t>(byte_size(*known, static_cast<int64_t>(elements)).value_or(0));
  });
}
