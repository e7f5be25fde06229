// SPDX-License-Identifier: Apache-2.0
// Which inputs or outputs a caller means: by name, or in the order of their declaration. One home, so that models and
// programs say the same of a wrong name.
#pragma once

#include <span>
#include <string_view>

#include "base/function_ref.h"
#include "base/inlined_vector.h"
#include "base/status.h"

namespace rlx {

// The things of one kind, "input", that have names.
struct NamedThings {
  std::string_view kind;
  size_t count;
  FunctionRef<int64_t(std::string_view name)> find;  // -1: none has this name
  FunctionRef<std::string_view(size_t index)> name;
};

using Indices = InlinedVector<size_t, 8>;  // few in most calls

// The index of each of `count` things, which `names` name; the first ones where it is empty. RLX_E_NOT_FOUND for a name
// that none has; RLX_E_INVALID_ARGUMENT for one that comes twice, for too many and, where all are needed, too few.
Result<Indices> match_names(const NamedThings& things, std::span<const std::string_view> names, size_t count,
                            bool needs_all);

}  // namespace rlx
