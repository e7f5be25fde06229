// SPDX-License-Identifier: Apache-2.0
// The graphs of wide.rlx, at sizes around those of vectors, tiles and parts: every instruction set computes what they
// mean, and neither the number of threads nor a plan for larger sizes changes a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "examples.h"
#include "ir/text.h"
#include "meaning.h"
#include "runtime/program.h"
#include "tests/support/isas.h"

namespace rlx::test {

namespace {

constexpr uint64_t kGraphs = 12;  // of an example

std::shared_ptr<Env> env_with(int threads) {
  return Env::create({.threads = threads, .backends = {{"isas", open_isas}}}).value();
}

Result<Results> results_of(const RandomGraph& random, Meaning& meaning, const std::shared_ptr<Env>& env,
                           const std::string& device, int64_t more) {
  auto weights = std::make_shared<Weights>();
  for (const auto& [name, tensor] : random.params) RLX_TRY(weights->put(name, tensor));
  NamedAttrs options{{"bounds", meaning.bounds() == Bounds::kError ? "error" : "clamp"}};
  for (const auto& [symbol, size] : RLX_TRY(bind_sizes(random.graph, meaning.inputs()))) {
    int64_t upper = std::min(size + more, random.graph.symbol_range(symbol).hi);
    options.emplace_back("dims." + symbol, upper);
  }
  auto program = RLX_TRY(Program::compile(env, random.graph, weights, RLX_TRY(env->find_device(device)), options));
  return program->run({}, meaning.inputs(), {}, random.graph.outputs().size());
}

bool same_bits(const Results& a, const Results& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    return x.bytes() == y.bytes() && (x.bytes() == 0 || std::memcmp(x.data(), y.data(), x.bytes()) == 0);
  });
}

void check(const RandomGraph& random, Meaning& meaning) {
  static const std::shared_ptr<Env> kAlone = env_with(0), kThree = env_with(3);
  for (const std::string& device : isa_devices()) {
    SCOPED_TRACE(device);
    auto results = results_of(random, meaning, kAlone, device, 0);
    ASSERT_TRUE(results.ok()) << results.status().message();
    EXPECT_EQ(meaning.difference(*results), "");
    auto by_three = results_of(random, meaning, kThree, device, 0);
    ASSERT_TRUE(by_three.ok()) << by_three.status().message();
    EXPECT_TRUE(same_bits(*results, *by_three)) << "the number of threads changes bits";
    auto of_larger = results_of(random, meaning, kAlone, device, 19);
    ASSERT_TRUE(of_larger.ok()) << of_larger.status().message();
    EXPECT_TRUE(same_bits(*results, *of_larger)) << "a larger plan changes bits";
  }
}

}  // namespace

class wide : public testing::TestWithParam<Example> {};

TEST_P(wide, is_the_same_on_every_instruction_set) {
  int runs = 0;
  for (uint64_t seed = 1; seed <= kGraphs; seed++) {
    auto random = drawn(GetParam(), seed);
    if (!random.ok()) continue;
    SCOPED_TRACE(format("seed {}: {}", seed, print(random->graph)));
    for (size_t run = 0; run < random->runs.size(); run++) {
      auto meaning = Meaning::of(*random, run);
      if (!meaning.ok()) continue;
      check(*random, *meaning);
      runs++;
    }
  }
  EXPECT_GT(runs, 3) << "it hardly ever runs";
}

INSTANTIATE_TEST_SUITE_P(, wide, testing::ValuesIn(examples_in("property/wide.rlx")),
                         [](const auto& info) { return info.param.name.substr(info.param.name.find('/') + 1); });

}  // namespace rlx::test
