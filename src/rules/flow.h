// SPDX-License-Identifier: Apache-2.0
// Where values come from and go to: how far an error of one rounding reaches, and whether the bytes of a boolean are
// known. Both are followed over few values: what is not known is the worst.
#pragma once

#include "rewrite/pattern.h"

namespace rlx {

// What an error of one rounding in an operand does to the float results of an op.
enum class ErrorEffect : uint8_t {
  kDrowns,    // it is lost in the error that the class of the op allows
  kPassesOn,  // it is about as large in the result
  kJumps,     // it may change the result by a jump. So do all ops of class E0 or U1 that are not known to pass it on.
};
ErrorEffect error_effect(const OpInfo& info);

// Whether an op that jumps reads x, or what passes its errors on: floor(41 / 41) is 1, floor(41 * (1/41)) is 0.
bool feeds_jump(const Match& m, Expr x);

// Whether each byte of a boolean is 0 or 1. The host may give others (semantics.md T6), which ops only move.
bool is_zero_or_one(const Match& m, Expr x);

}  // namespace rlx
