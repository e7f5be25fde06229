// SPDX-License-Identifier: Apache-2.0
// What holds for every graph: text gives it back, no pass changes what it computes, and every device computes that.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "backends/far/far.h"
#include "generate.h"
#include "rewrite/rule_set.h"
#include "runtime/env.h"

namespace rlx::test {

struct Tally {
  uint64_t graphs = 0;
  uint64_t seed = 0;       // of the graph of now
  uint64_t evaluated = 0;  // the interpreter gave results for it, so that transforms and programs were compared
  uint64_t runs = 0;       // at how many sizes
  std::set<std::string, std::less<>> fired;  // rules
};

// "", or what does not hold, and the graph.
std::string check_graph(const RandomGraph& random, const std::shared_ptr<Env>& env, Tally& tally);
// The rules that fire in it, in any family or pass.
void note_fired(const Graph& graph, Tally& tally);
struct Strictness {
  bool exact = false;        // in every bit, not only within the tolerance
  bool with_checks = false;  // only runs in which an index out of range is an error count
};
// "", or where another graph does not mean what a random one means, at its sizes: it may differ, or fail where the
// random one runs.
std::string check_same_meaning(const RandomGraph& random, const Graph& other, Strictness strictness);
// "", or what a set of rules of this grade does wrong.
std::string check_rules(const RuleSet& rules, Grade grade, const RandomGraph& random);
// As check_graph; a graph that fails is cut down first.
std::string check_and_shrink(const RandomGraph& random, const std::shared_ptr<Env>& env, Tally& tally);
// As check_and_shrink, for the graph that is drawn from a seed.
std::string check_seed(uint64_t seed, const std::shared_ptr<Env>& env, Tally& tally);
// As check_seed, for a graph whose sizes vary.
std::string check_varying_of_seed(uint64_t seed, const std::shared_ptr<Env>& env, Tally& tally);
// As check_seed, for a graph of one of the examples of rules, which take turns.
std::string check_example_of_seed(uint64_t seed, const std::shared_ptr<Env>& env, Tally& tally);

// An environment with every device that programs are judged on.
inline Result<std::shared_ptr<Env>> env_of_tests() {
  return Env::create({.threads = 2, .backends = {far::backend(), far::poor_backend()}});
}

}  // namespace rlx::test
