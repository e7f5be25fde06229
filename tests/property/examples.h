// SPDX-License-Identifier: Apache-2.0
// Examples of what rules look for: examples/*.rlx, a file for each family. Graphs are drawn from them. A line `; rules:
// a b` opens an example, and says which rules fire in some graph of it; `*` is any rule. An example is the text of a
// graph, in which
//   $A, $B ...    is a dim: 0, 1, a few, an open one, a sum; now and then one occurrence differs from the others
//   $t, $u ...    is any dtype, $f a float one, $h a half, $i an integer
//   <a|b|c>       is one of these; <1:a|b|c> takes the same choice wherever the digit is the same
// What the builder refuses is drawn again. A graph that was made is then varied: see `varied`.
#pragma once

#include <string>
#include <vector>

#include "generate.h"

namespace rlx::test {

struct Example {
  std::string name;  // file/graph
  std::vector<std::string> rules;
  std::string text;
};
const std::vector<Example>& examples();
std::vector<Example> examples_in(const std::string& file);

// A graph of the example, varied; the last refusal where the builder takes none.
Result<RandomGraph> drawn(const Example& example, uint64_t seed);

// vary.cpp: constants at the extremes of their dtype, or of more axes; operands exchanged; inner values that are
// outputs, or read by others; inputs that are params or constants; near misses.
Graph varied(Graph graph, Random& random);
// Of each run and the params, some elements at the extremes of their dtype.
void add_extremes(RandomGraph& made, Random& random);
// An exception of close rules (semantics.md R2): a finite fill of masked scores is taken for lower than any score,
// which scores of infinite or huge inputs are not.
bool has_finite_fill(const Graph& graph);
// Numbers of all inputs and params that are infinite, NaN or beyond 100 become 1.
void make_tame(RandomGraph& made);

}  // namespace rlx::test
