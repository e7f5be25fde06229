// SPDX-License-Identifier: Apache-2.0
// The functions of rows for ir/facts.h: one per op, or per group of similar ops.
#pragma once

#include "ir/facts.h"

namespace rlx {

void facts_constant(FactArgs& args);
void facts_iota(FactArgs& args);
void facts_dim_size(FactArgs& args);
void facts_cast(FactArgs& args);
void facts_neg(FactArgs& args);
void facts_add(FactArgs& args);
void facts_sub(FactArgs& args);
void facts_mul(FactArgs& args);
void facts_eq(FactArgs& args);
void facts_ne(FactArgs& args);
void facts_lt(FactArgs& args);
void facts_le(FactArgs& args);
void facts_gt(FactArgs& args);
void facts_ge(FactArgs& args);
void facts_and(FactArgs& args);
void facts_or(FactArgs& args);
void facts_xor(FactArgs& args);
void facts_not(FactArgs& args);
void facts_reshape(FactArgs& args);
void facts_broadcast_to(FactArgs& args);
void facts_transpose(FactArgs& args);
void facts_slice(FactArgs& args);

}  // namespace rlx
