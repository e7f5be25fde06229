// SPDX-License-Identifier: Apache-2.0
// The tests of this folder; or, with --seconds N [--seed S], random graphs for as long as one likes: every fault is
// printed, cut down, and their count; with --rules before it, graphs of the examples of rules, with --varying graphs
// whose sizes vary; or, with --show S, the graph of that seed (after --varying, of those graphs); or, with --check
// FILE, a graph's text, with contents of 20 seeds.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "compile/compile.h"
#include "edit.h"
#include "examples.h"
#include "generate.h"
#include "ir/text.h"
#include "properties.h"
#include "tests/support/transforms.h"

namespace rlx::test {

// Ranges of seeds for which everything holds. The seeds between two ranges show known faults: when one is mended, join
// the ranges.
struct Seeds {
  uint64_t first, last;
};
static constexpr Seeds kSeeds[] = {{1001, 1396}};

TEST(random_graphs, keep_their_meaning) {
  Tally tally;
  auto env = env_of_tests();
  ASSERT_TRUE(env.ok()) << env.status().message();
  for (Seeds seeds : kSeeds)
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) EXPECT_EQ(check_seed(seed, *env, tally), "");
  EXPECT_GT(tally.evaluated, tally.graphs / 2) << "too few graphs run to say anything";
  std::printf("%llu graphs, %llu of them run, at %llu sizes\n", static_cast<unsigned long long>(tally.graphs),
              static_cast<unsigned long long>(tally.evaluated), static_cast<unsigned long long>(tally.runs));
}

TEST(random_graphs, of_sizes_that_vary_keep_their_meaning) {
  Tally tally;
  auto env = env_of_tests();
  ASSERT_TRUE(env.ok()) << env.status().message();
  for (uint64_t seed = 1; seed <= 150; seed++) EXPECT_EQ(check_varying_of_seed(seed, *env, tally), "");
  // On the device far, a branch wrote to a buffer that was gone.
  EXPECT_EQ(check_varying_of_seed(381300114, *env, tally), "");
  EXPECT_GT(tally.evaluated, tally.graphs / 2) << "too few graphs run to say anything";
}

TEST(random_graphs, go_through_every_pass) {
  for (std::string_view pass : pass_names()) EXPECT_NE(find_transform(pass), nullptr) << pass;
}

// All but leaves, which graphs have anyway, control flow, which has a generator of its own, and block types.
TEST(random_graphs, reach_every_row) {
  std::string missed, left_out;
  for (const OpInfo& row : op_table().rows()) {
    if (!can_generate(row)) {
      left_out += " " + std::string(row.name);
      continue;
    }
    bool reached = false;
    for (uint64_t seed = 1; seed <= 50 && !reached; seed++) {
      RandomGraph random = random_graph(seed, op_table(), &row);
      for (const Node& node : random.graph.nodes()) reached |= node.op == row.op();
    }
    if (!reached) missed += " " + std::string(row.name);
  }
  EXPECT_EQ(missed, "");
  std::printf("not looked for:%s\n", left_out.c_str());
}

// Inner values that several nodes read.
static size_t shared_values(const Graph& graph) {
  size_t shared = 0;
  auto uses = use_counts(graph);
  for (uint32_t node = 0; node < uses.size(); node++)
    if (!graph.info(graph.node(node)).is(kLeaf))
      shared += std::count_if(uses[node].begin(), uses[node].end(), [](uint32_t count) { return count > 1; });
  return shared;
}

TEST(random_graphs, are_large_now_and_then_and_share_values) {
  constexpr uint64_t kSeeds = 400;
  uint64_t large = 0, sharing = 0, bodies = 0;
  for (uint64_t seed = 1; seed <= kSeeds; seed++) {
    Graph graph = random_graph(seed, op_table()).graph;
    bool is_large = graph.nodes().size() >= 20;
    large += is_large;
    EXPECT_LE(graph.nodes().size(), 120u) << seed;
    sharing += is_large && shared_values(graph) >= 2;
    bodies += std::any_of(graph.nodes().begin(), graph.nodes().end(), has_bodies);
  }
  std::printf("of %llu graphs %llu have 20 nodes or more, %llu of these share values; %llu have bodies\n",
              static_cast<unsigned long long>(kSeeds), static_cast<unsigned long long>(large),
              static_cast<unsigned long long>(sharing), static_cast<unsigned long long>(bodies));
  EXPECT_GE(large, kSeeds / 8);
  EXPECT_GE(sharing, large * 7 / 10);
  EXPECT_GE(bodies, kSeeds / 20);
}

TEST(random_graphs, are_the_same_for_the_same_seed) {
  for (uint64_t seed : {1u, 2u, 3u}) {
    RandomGraph a = random_graph(seed, op_table()), b = random_graph(seed, op_table());
    EXPECT_TRUE(equal(std::make_shared<const Graph>(a.graph), std::make_shared<const Graph>(b.graph)));
  }
}

static Tally tally;  // of the run from the command line, for who looks at it after a crash

static void name_seed(int signal) {
  std::fprintf(stderr, "signal %d at seed %llu\n", signal, static_cast<unsigned long long>(tally.seed));
  _exit(2);
}

static int show(uint64_t seed, bool is_varying) {
  RandomGraph random = is_varying ? varying_graph(seed) : random_graph(seed, op_table());
  std::printf("%s", print(random.graph).c_str());
  return 0;
}

constexpr unsigned kMaxSeconds = 300;  // for one graph; a loop without end is a fault too

using CheckSeed = std::string (*)(uint64_t seed, const std::shared_ptr<Env>& env, Tally& tally);

static int run_for(double seconds, uint64_t first, CheckSeed check) {
  using Clock = std::chrono::steady_clock;
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGALRM}) std::signal(signal, name_seed);
  auto env = env_of_tests().value();
  uint64_t faults = 0;
  std::chrono::time_point end = Clock::now() + std::chrono::duration<double>(seconds);
  for (uint64_t seed = first; Clock::now() < end; seed++) {
    alarm(kMaxSeconds);
    std::string wrong = check(seed, env, tally);
    if (wrong.empty()) continue;
    std::printf("==== %s\n", wrong.c_str());
    std::fflush(stdout);
    faults++;
  }
  alarm(0);
  std::printf("%llu graphs from seed %llu, %llu of them run, at %llu sizes; %llu faults\n",
              static_cast<unsigned long long>(tally.graphs), static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(tally.evaluated), static_cast<unsigned long long>(tally.runs),
              static_cast<unsigned long long>(faults));
  return faults ? 1 : 0;
}

static int check_file(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  auto graph = parse(text.str());
  if (!graph.ok()) {
    std::printf("%s\n", std::string(graph.status().message()).c_str());
    return 2;
  }
  auto env = env_of_tests().value();
  std::string wrong;
  for (uint64_t seed = 1; seed <= 20 && wrong.empty(); seed++)
    wrong = check_graph(with_contents(seed, *graph), env, tally);
  std::printf("%llu runs\n%s\n", static_cast<unsigned long long>(tally.runs), wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

}  // namespace rlx::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  double seconds = 0;
  uint64_t seed = 1;
  rlx::test::CheckSeed check = rlx::test::check_seed;
  for (int i = 1; i < argc; i++) {
    if (!std::strcmp(argv[i], "--varying")) check = rlx::test::check_varying_of_seed;
    if (!std::strcmp(argv[i], "--rules")) check = rlx::test::check_example_of_seed;
    if (i + 1 == argc) break;
    if (!std::strcmp(argv[i], "--seconds")) seconds = std::atof(argv[i + 1]);
    if (!std::strcmp(argv[i], "--show"))
      return rlx::test::show(std::strtoull(argv[i + 1], nullptr, 10), check == rlx::test::check_varying_of_seed);
    if (!std::strcmp(argv[i], "--check")) return rlx::test::check_file(argv[i + 1]);
    if (!std::strcmp(argv[i], "--seed")) seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return seconds > 0 ? rlx::test::run_for(seconds, seed, check) : RUN_ALL_TESTS();
}
