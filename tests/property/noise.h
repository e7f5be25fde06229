// SPDX-License-Identifier: Apache-2.0
// A graph as other devices may compute it: with other roundings, and with 0 in place of numbers below the normal ones.
#pragma once

#include "generate.h"

namespace rlx::test {

// Half the spacing at 1 of what a value of this dtype, or its parts, is rounded to; 0 if it is not rounded.
double epsilon_of(DType dtype);

struct Noise {
  bool rounds;            // false: only changes that keep every value
  bool keeps_sizes;       // none where it may change a size that contents decide
  int flushes;            // percent of the places where a number below the normal ones may become 0
  bool by_place = false;  // equal numbers may become unequal: a kernel may add up the last rows in another way
};

// The graph and its bodies, with the result of every float node multiplied by a number within a few roundings of 1.
Result<Graph> with_noise(const Graph& graph, Noise noise, Random& random);

// The graph and its bodies, as a device computes them that treats numbers below `least` as 0 everywhere.
Result<Graph> with_flushed(const Graph& graph, double least);
Result<Graph> without_subnormals(const Graph& graph);

// For each operand of each node, those in bodies included: the graph in which this reader alone takes numbers below the
// normal ones as 0.
Result<std::vector<Graph>> with_one_read_flushed(const Graph& graph);

}  // namespace rlx::test
