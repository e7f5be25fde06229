// SPDX-License-Identifier: Apache-2.0
// How long the interpreter works on a node, and an end to that. Work is counted in units of a few nanoseconds, so where
// it ends does not depend on the machine.
#pragma once

#include <span>
#include <vector>

#include "ops/interpret.h"

namespace rlx {

// The column `work` of the op table: what a primitive does for an element of its largest output, as its `eval` is
// written. Reading and making each element is one unit more.
double work_of_last_axis(const Node& node, std::span<const Operand> in);
double work_of_filter(const Node& node, std::span<const Operand> in);
double work_of_window(const Node& node, std::span<const Operand> in);
double work_of_sort(const Node& node, std::span<const Operand> in);
double work_of_fft(const Node& node, std::span<const Operand> in);
double work_of_rounds(const Node& node, std::span<const Operand> in);  // each costs as much as a factorisation

// The work of a primitive on these operands.
double work_of(const Node& node, std::span<const Operand> in, std::span<const Operand> out);

// As `interpret`, of a graph without inputs and params. RLX_E_UNSUPPORTED if it takes more than `work`: the primitive
// that would exceed it does not run.
Result<std::vector<Tensor>> interpret_within(const Graph& graph, double work, const MakeTensor& make);

}  // namespace rlx
