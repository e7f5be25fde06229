// SPDX-License-Identifier: Apache-2.0
// From elementwise nodes to the region interpreter's programs.
#pragma once

#include <string_view>
#include <vector>

#include "backends/cpu/kernels/region.h"
#include "base/inlined_vector.h"
#include "ir/graph.h"

namespace rlx::cpu {

// What a region input reads: an operand of the node, or the lower (0) or upper (1) half of an axis of it.
struct RegionSource {
  size_t port = 0;
  int half = kWhole;
  int64_t axis = 0;
  static constexpr int kWhole = -1;
};

struct RegionProgram {
  RegionArgs args;  // all but dims, strides and pointers
  InlinedVector<RegionOp, 8> ops;
  InlinedVector<RegionSource, 4> sources;  // by region input
};

// Writes the program of one node (an elementwise op, a gate or a region), in which each value has a register of its
// own. Returns an empty text, or why there is none.
std::string_view emit_region(const Graph& graph, const Node& node, RegionProgram& program);
// The same, with few registers: it is ready to run.
std::string_view build_region(const Graph& graph, const Node& node, RegionProgram& program);

// Joins pairs of ops that have one loop, where nothing else reads the result of the first. Each value of the program
// has a register of its own still.
void join_pairs(RegionProgram& program);

std::vector<Op> region_ops();  // those that build_region may accept

}  // namespace rlx::cpu
