// SPDX-License-Identifier: Apache-2.0
// How a dim changes as one of its symbols grows and all others stay. Invariant: what is said holds at all sizes within
// the ranges; a dim of which nothing is found is unclear.
#pragma once

#include "base/dim.h"

namespace rlx {

// Rises or falls: never the other way, though it may stay for a while, as n / 2 does.
enum class Trend : uint8_t { kSteady, kRises, kFalls, kUnclear };
Trend trend_of(const Dim& dim, std::string_view symbol, const RangeLookup& ranges);

// Whether it is k * symbol + c, where neither k nor c names the symbol.
bool is_linear_in(const Dim& dim, std::string_view symbol);

}  // namespace rlx
