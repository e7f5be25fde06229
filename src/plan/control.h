// SPDX-License-Identifier: Apache-2.0
// Control flow in plans: a body is a graph with a plan of its own, whose memory lies in that of the plan around it.
// Invariant: bodies that never run together share their bytes; a body's operands are its slots, and the step sets their
// addresses at every trip.
#pragma once

#include <algorithm>
#include <string_view>

#include "plan/size_table.h"

namespace rlx {

// The attributes that hold the bodies of `if`, `while`, `scan`; none for other ops.
std::span<const std::string_view> body_attrs(Op op);
inline bool is_control(const Node& node) {
  return !body_attrs(node.op).empty();
}
// A region has a body too, which its kernel runs.
inline bool has_control_flow(const Graph& graph) {
  return graph.has_bodies() && std::ranges::any_of(graph.nodes(), is_control);
}

// The kernel of such a step. The runtime executes the bodies itself (runtime/control_step.h).
extern const Kernel kControlKernel;

// How many operands come before those that are inputs of the bodies: the condition of an `if`.
inline size_t operands_before_inputs(const Node& node) {
  return node.op == Op::kIf ? 1 : 0;
}

// How many carries a loop has; an `if` has none. They are its first operands and its first outputs.
inline size_t carry_count(const Node& node) {
  return node.op == Op::kIf ? 0 : static_cast<size_t>(node.attrs.i64("n_carry"));
}

// The index of the first operand that is the same at every trip. The condition of an `if`, or the carries and xs of a
// loop, come before it.
inline size_t first_invariant(const Node& node) {
  return operands_before_inputs(node) + carry_count(node) +
         (node.op == Op::kScan ? static_cast<size_t>(node.attrs.i64("n_xs")) : 0);
}

// A size in which the branches of an `if` differ, and its value in each branch.
struct JoinedSize {
  std::string symbol;
  Dim then, otherwise;
  bool is_chosen;  // sizes choose the branch, not a value of the run
};
std::vector<JoinedSize> joined_sizes(const Node& node);

// Plans the bodies of a step and adds the control to the plan. The memory of the bodies becomes the scratch of the
// step. The operands of the step must be set. `upper`: of symbols that only bodies have.
Status plan_control(const LoweredGraph& lowered, Plan& plan, SizeTable& sizes, const UpperSizes& upper, Step& step);

}  // namespace rlx
