// SPDX-License-Identifier: Apache-2.0
// The sizes of symbols from the dims of inputs: each given dim is an equation. Invariant: a size is filled in only if
// the dim has the given value with it.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace rlx {

// The dims of an input in this run. They determine symbols and are checked.
struct GivenDims {
  const ValueType* type;
  std::span<const int64_t> dims;
  std::string_view name;
};

inline constexpr int64_t kUnknownSize = -1;

using IndexOf = FunctionRef<uint32_t(std::string_view name)>;  // the index of a symbol, or Plan::kNoSymbol
using RangeOf = FunctionRef<Interval(uint32_t symbol)>;

// The known sizes of symbols, as a lookup for `evaluate`.
struct KnownSizes {
  IndexOf index_of;
  std::span<const int64_t> sizes;  // by symbol; kUnknownSize: not known
  std::optional<int64_t> operator()(std::string_view name) const {
    uint32_t i = index_of(name);
    return i == Plan::kNoSymbol || sizes[i] == kUnknownSize ? std::nullopt : std::optional(sizes[i]);
  }
};

// Sets the sizes that inputs determine, then those that are requested (by symbol). Of several sizes that fit the
// inputs, as 6 and 7 fit n / 2 = 3, the least is taken, if possible one in the range of the symbol. The others are
// unknown.
void solve_sizes(std::span<const GivenDims> given, std::span<const int64_t> requested, IndexOf index_of, RangeOf legal,
                 std::span<int64_t> sizes);

// Whether the input has the dims that its type has at these sizes.
Status check_given(const GivenDims& input, const SymbolLookup& sizes);

// Reports a dim whose last unknown symbol has no solution, or that leaves several symbols open.
Status check_determined(std::span<const GivenDims> given, const KnownSizes& known);

// The sizes that the dims of inputs determine; nullopt for a symbol that none determines. Used before a plan exists.
// `ranges`: by symbol; empty: of each, all sizes.
// RLX_E_SHAPE if no size of a dim's last unknown symbol gives the size of the input.
Result<std::vector<std::optional<int64_t>>> solve_symbols(std::span<const std::string_view> symbols,
                                                          std::span<const GivenDims> given,
                                                          std::span<const Interval> ranges = {});

}  // namespace rlx
