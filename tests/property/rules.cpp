// SPDX-License-Identifier: Apache-2.0
// Every rule is tried on graphs that it looks for, and on near misses of these: examples.h.
#include "rules/rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "examples.h"
#include "properties.h"

namespace rlx::test {

std::string check_example_of_seed(uint64_t seed, const std::shared_ptr<Env>& env, Tally& tally) {
  const Example& example = examples()[seed % examples().size()];
  tally.seed = seed;
  auto random = drawn(example, seed);
  if (!random.ok()) return "";  // every choice was an unlucky one
  std::string wrong = check_and_shrink(*random, env, tally);
  return wrong.empty() ? "" : example.name + ", seed " + std::to_string(seed) + ": " + wrong;
}

static std::set<std::string, std::less<>> all_rules() {
  std::set<std::string, std::less<>> names;
  for (RuleSet::Family family : kRuleFamilies) {
    RuleSet rules({family});
    for (std::string_view name : rules.names()) names.emplace(name);
  }
  return names;
}

static bool names_rule(const Example& example, std::string_view rule) {
  return std::any_of(example.rules.begin(), example.rules.end(),
                     [&](const std::string& name) { return name == rule || name == "*"; });
}

// A rule for which nothing stands here fails, and an example that is no example of what it says.
TEST(rules, have_examples_in_which_they_fire) {
  constexpr uint64_t kMaxSeeds = 300;
  std::set<std::string, std::less<>> rules = all_rules(), covered;
  for (const Example& example : examples()) {
    Tally tally;
    auto fires = [&](const std::string& rule) {
      return rule == "*" ? !tally.fired.empty() : tally.fired.contains(rule);
    };
    auto all_fire = [&] { return std::all_of(example.rules.begin(), example.rules.end(), fires); };
    Status refusal;
    uint64_t made = 0;
    for (uint64_t seed = 1; seed <= kMaxSeeds && (seed <= 10 || !all_fire()); seed++) {
      auto random = drawn(example, seed);
      if (!random.ok()) refusal = random.status();
      if (!random.ok()) continue;
      made++;
      note_fired(random->graph, tally);
    }
    EXPECT_GT(made, 0u) << example.name << ": " << refusal.message();
    for (const std::string& rule : example.rules)
      EXPECT_TRUE(fires(rule)) << example.name << ": " << rule << " does not fire in " << made << " graphs";
    for (const std::string& rule : tally.fired)
      if (names_rule(example, rule)) covered.insert(rule);
  }
  for (const std::string& rule : rules) EXPECT_TRUE(covered.contains(rule)) << rule << " has no example";
  std::printf("%zu rules, %zu examples\n", rules.size(), examples().size());
}

TEST(rules, keep_the_meaning_of_their_examples) {
  constexpr uint64_t kSeeds = 8;
  Tally tally;
  auto env = env_of_tests();
  ASSERT_TRUE(env.ok()) << env.status().message();
  for (uint64_t seed = 0; seed < kSeeds * examples().size(); seed++)
    EXPECT_EQ(check_example_of_seed(seed, *env, tally), "");
  EXPECT_GT(tally.evaluated, tally.graphs / 2) << "too few graphs run to say anything";
  std::printf("%llu graphs, %llu of them run, at %llu sizes; %zu rules fired\n",
              static_cast<unsigned long long>(tally.graphs), static_cast<unsigned long long>(tally.evaluated),
              static_cast<unsigned long long>(tally.runs), tally.fired.size());
}

}  // namespace rlx::test
