// SPDX-License-Identifier: Apache-2.0
// Finds the inputs or outputs that a caller means: by name, or in the order of their declaration. Models and programs
// share it, so that their messages about a wrong name agree.
#pragma once

#include <span>
#include <string_view>

#include "base/function_ref.h"
#include "base/inlined_vector.h"
#include "base/status.h"

namespace rlx {

// Named things of one kind, such as "input".
struct NamedThings {
  std::string_view kind;
  size_t count;
  FunctionRef<int64_t(std::string_view name)> find;  // -1: none has this name
  FunctionRef<std::string_view(size_t index)> name;
};

using Indices = InlinedVector<size_t, 8>;  // few in most calls

enum class Required : bool { kNone, kAll };  // which of the things the caller must mean

// The indices of the `count` things that `names` lists; the first ones if `names` is empty. RLX_E_NOT_FOUND for an
// unknown name; RLX_E_INVALID_ARGUMENT for a repeated name, for too many and, if all are required, for too few.
Result<Indices> match_names(const NamedThings& things, std::span<const std::string_view> names, size_t count,
                            Required required);

}  // namespace rlx
