// SPDX-License-Identifier: Apache-2.0
// How much of what a random graph holds.
#include "generate.h"

#include "draw.h"
#include "edit.h"
#include "examples.h"

namespace rlx::test {

void add_something(Draw& draw) {
  int64_t kind = draw.random.below(20);
  if (kind < 7)
    add_any_row(draw);
  else if (kind < 14)
    add_spelling(draw);
  else if (kind < 16)
    add_integers(draw);
  else if (kind < 18)
    add_control(draw);
  else
    add_repeated(draw);
}

namespace {

void add_nodes(Draw& draw) {
  Random& random = draw.random;
  int64_t kind = random.below(20);
  if (kind < 6) {
    for (int64_t count = random.between(1, 8); count > 0; count--) add_any_row(draw);
  } else if (kind < 13) {
    if (random.chance(20)) add_any_row(draw);
    for (int64_t count = random.between(1, 2); count > 0; count--) add_spelling(draw);
    if (random.chance(20)) add_any_row(draw);
  } else if (kind < 15) {
    for (int64_t count = random.between(1, 2); count > 0; count--) add_integers(draw);
  } else if (kind < 17) {
    for (int64_t count = random.between(0, 2); count > 0; count--) add_any_row(draw);
    add_control(draw);
    if (random.chance(30)) add_something(draw);
  } else {
    auto wanted = static_cast<size_t>(random.between(20, 60));
    for (int attempts = 40; attempts > 0 && draw.graph.nodes().size() < wanted; attempts--) add_something(draw);
  }
}

// What nobody reads; and, of what is read, none or some.
void add_outputs(Draw& draw) {
  Graph& graph = draw.graph;
  int percent = draw.random.pick(std::array{0, 0, 5, 10, 25});
  auto uses = use_counts(graph);
  for (uint32_t node = 0; node < uses.size(); node++) {
    bool is_read = false;
    for (uint32_t count : uses[node]) is_read |= count > 0;
    for (uint32_t i = 0; i < uses[node].size(); i++) {
      if (is_block(graph.node(node).out[i].dtype)) continue;  // it is no result
      bool is_dead = uses[node][i] == 0 && !graph.info(graph.node(node)).is(kLeaf);
      bool wanted = is_dead ? (i == 0 && !is_read) || draw.random.chance(50) : draw.random.chance(percent);
      if (wanted) (void)graph.add_output("out" + std::to_string(graph.outputs().size()), {node, i});
    }
  }
  if (graph.outputs().empty() && !graph.nodes().empty())
    (void)graph.add_output("out0", {static_cast<uint32_t>(graph.nodes().size()) - 1, 0});
}

}  // namespace

RandomGraph random_graph(uint64_t seed, const OpTable& table, const OpInfo* wanted) {
  Draw draw(seed, Graph("random", &table));
  if (wanted) add_row(draw, *wanted, 400);
  add_nodes(draw);
  while (draw.graph.nodes().empty()) add_any_row(draw);
  add_outputs(draw);
  if (auto clean = pruned(draw.graph); clean.ok()) draw.graph = std::move(*clean);
  if (!wanted && draw.random.chance(35)) {
    auto other = near_miss(draw.graph, draw.random);
    if (other) {
      Graph before = std::exchange(draw.graph, std::move(*other));
      if (!draw.are_small(0)) draw.graph = std::move(before);
    }
  }
  RandomGraph made = draw.filled();
  if (has_finite_fill(made.graph)) make_tame(made);
  return made;
}

RandomGraph varying_graph(uint64_t seed) {
  Draw draw(seed, Graph("random", &op_table()));
  for (int64_t count = draw.random.between(1, 4); count > 0; count--) add_varying(draw);
  if (draw.random.chance(30)) add_something(draw);
  while (draw.graph.nodes().empty()) add_any_row(draw);
  add_outputs(draw);
  if (auto clean = pruned(draw.graph, Leaves::kAll); clean.ok()) draw.graph = std::move(*clean);
  RandomGraph made = draw.filled();
  if (has_finite_fill(made.graph)) make_tame(made);
  return made;
}

RandomGraph with_contents(uint64_t seed, Graph graph) {
  return Draw(seed, std::move(graph)).filled();
}

}  // namespace rlx::test
