// SPDX-License-Identifier: Apache-2.0
// The rules, by subject: each family's file adds its own to a set.
#pragma once

#include "rewrite/rule_set.h"

namespace rlx {

// Run by `canonicalize`, `branches` and `simplify`: equal meanings get one form. View rules also run in `fuse` and
// `layout`, where they tidy up.
void add_view_rules(RuleSet& rules);        // reshape, transpose, slice, broadcast, concat
void add_arithmetic_rules(RuleSet& rules);  // constants, powers, roots, comparisons, softmax
void add_position_rules(RuleSet& rules);    // comparisons of positions, index tricks that are slices
inline void add_normal_form_rules(RuleSet& rules) {
  for (RuleSet::Family add : {add_view_rules, add_arithmetic_rules, add_position_rules}) add(rules);
}

// Run by `fuse`: composites. passes/fuse.cpp has their order, in stages.
void add_activation_rules(RuleSet& rules);
void add_derived_rules(RuleSet& rules);        // derived from the formulas of their rows
void add_small_derived_rules(RuleSet& rules);  // formulas of one op, after larger ones that contain it
void add_norm_rules(RuleSet& rules);
void add_half_rules(RuleSet& rules);  // wide composites between casts; with the rules that form them
void add_rope_rules(RuleSet& rules);
void add_score_rules(RuleSet& rules);      // the links of attention's scores, absorbed one by one
void add_attention_rules(RuleSet& rules);  // softmax(scores) v
void add_linear_rules(RuleSet& rules);
void add_conv_rules(RuleSet& rules);
void add_channel_rules(RuleSet& rules);       // scales and shifts of channels, into the weights of a product
void add_integer_rules(RuleSet& rules);       // products of quantised numbers
void add_byte_rules(RuleSet& rules);          // elementwise ops on quantised numbers
void add_gate_rules(RuleSet& rules);          // gated_act, residual + norm
void add_softmax_axis_rules(RuleSet& rules);  // softmax of an axis that is not the last

void add_attention_layout_rules(RuleSet& rules);  // run by `layout`
void add_sibling_rules(RuleSet& rules);           // products of one left operand: run by `merge-siblings`
void add_scalar_chain_rules(RuleSet& rules);      // (x + c1) + c2, (x * c1) * c2: run by `simplify` only, after `fuse`

// All of them, for tests: each rule must fire in a golden.
inline constexpr RuleSet::Family kRuleFamilies[] = {
    add_view_rules,         add_arithmetic_rules,    add_position_rules,     add_activation_rules,
    add_derived_rules,      add_small_derived_rules, add_norm_rules,         add_half_rules,
    add_rope_rules,         add_score_rules,         add_attention_rules,    add_attention_layout_rules,
    add_linear_rules,       add_conv_rules,          add_channel_rules,      add_integer_rules,
    add_byte_rules,         add_gate_rules,          add_softmax_axis_rules, add_sibling_rules,
    add_scalar_chain_rules,
};

}  // namespace rlx
