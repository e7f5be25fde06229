// SPDX-License-Identifier: Apache-2.0
// A graph of numbers means the same where its inputs have open sizes instead: what works at a size works at a symbol
// of that size. Passes and programs are tried on graphs of symbols; what inference alone refuses would not be seen
// there.
#include <gtest/gtest.h>

#include "base/contains.h"
#include "generate.h"
#include "ir/text.h"
#include "meaning.h"

namespace rlx::test {

// Rows that need some size as a number: a rank, the names of axes, or the parts of a weight follow from it.
static constexpr std::string_view kNeedNumbers[] = {
    "axial_rope_2d", "bitcast", "causal_conv1d",         "gather_nd", "gru", "gaussian_splat_prepare",
    "lstm",          "rnn",     "gaussian_splat_render", "scatter_nd"};

// The graph with a symbol for each size of an input but 1, which would broadcast; equal sizes have one symbol. Stops at
// the first node that is refused, and names its row.
static Result<Graph> opened(const Graph& given, std::string_view& row) {
  Graph made(given.name(), &given.table());
  std::vector<Value> copies;  // of the first output, by node
  auto copy_of = [&](Value value) { return present(value) ? Value{copies[value.node].node, value.output} : value; };
  for (uint32_t i = 0; i < given.nodes().size(); i++) {
    const Node& node = given.node(i);
    row = given.info(node).name;
    std::vector<Dim> dims = node.out[0].dims;
    if (node.op == Op::kParam) {
      copies.push_back(RLX_TRY(made.add_param(given.leaf_name(i), node.out[0].dtype, dims)));
    } else if (node.op == Op::kInput) {
      for (Dim& dim : dims)
        if (!dim.is(1)) dim = Dim::symbol("size" + dim.text());
      copies.push_back(RLX_TRY(made.add_input(given.leaf_name(i), node.out[0].dtype, dims)));
    } else {
      std::vector<Value> in;
      for (Value value : node.in) in.push_back(copy_of(value));
      copies.push_back(RLX_TRY(made.add(given.info(node), in, node.attrs, node.name)));
    }
  }
  for (const GraphOutput& output : given.outputs()) RLX_TRY(made.add_output(output.name, copy_of(output.value)));
  return made;
}

// "", or what is wrong with the open graph. A body may be in error at other sizes than its own, so it is left out.
static std::string check_opened(const RandomGraph& random, size_t& compared) {
  if (!random.graph.symbols().empty() || random.graph.has_bodies()) return "";
  auto meaning = Meaning::of(random);
  if (!meaning.ok()) return "";
  std::string_view row;
  auto open = opened(random.graph, row);
  if (!open.ok() && contains(kNeedNumbers, row)) return "";
  if (!open.ok()) return "refused: " + std::string(open.status().message());
  auto results = interpret(*open, random.runs[0], random.params, {EvalMode::kTyped, meaning->bounds()});
  compared++;
  return results.ok() ? meaning->difference_in_bits(*results) : "it fails: " + std::string(results.status().message());
}

TEST(open_sizes, mean_what_numbers_mean) {
  constexpr uint64_t kSeeds = 8;
  size_t compared = 0;
  for (const OpInfo& row : op_table().rows())
    for (uint64_t seed = 1; seed <= kSeeds && can_generate(row); seed++) {
      RandomGraph random = random_graph(seed, op_table(), &row);
      std::string wrong = check_opened(random, compared);
      EXPECT_EQ(wrong, "") << "seed " << seed << " of " << row.name << "\n" << print(random.graph);
    }
  std::printf("%zu graphs\n", compared);
  EXPECT_GT(compared, 300u);
}

}  // namespace rlx::test
