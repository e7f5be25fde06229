// SPDX-License-Identifier: Apache-2.0
// Damaged text. Every mutation of a printed graph ends in a graph, or in a status that says where the error is. So does
// the compiler's work on such a graph.
#include <gtest/gtest.h>

#include "generate.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "runtime/program.h"

namespace rlx::test {

static std::string mutated(Random& random, std::string text) {
  static constexpr std::string_view kPieces[] = {"(",        ")",  "[",   "]",    "{",
                                                 "}",        "\"", "'",   ",",    "=",
                                                 "->",       "\n", "-1",  "0",    "9223372036854775807",
                                                 "graph",    "%",  "nan", "f32[", "\\x0",
                                                 "base64 \""};
  for (int64_t edits = random.between(1, 4); edits > 0 && !text.empty(); edits--) {
    auto at = static_cast<size_t>(random.below(static_cast<int64_t>(text.size())));
    auto length = static_cast<size_t>(random.between(1, 12));
    switch (random.below(5)) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, random.pick(kPieces)); break;
      case 2: text[at] = static_cast<char>(random.below(256)); break;
      case 3: text.resize(at); break;
      default:
        text.insert(at, text.substr(static_cast<size_t>(random.below(static_cast<int64_t>(text.size()))), length));
    }
  }
  return text;
}

static Status compiled(const Graph& graph, const std::shared_ptr<Env>& env) {
  NamedAttrs options{{"memory.limit", int64_t{1} << 24}};
  for (const auto& [symbol, range] : graph.symbols()) options.emplace_back("dims." + symbol, int64_t{2});
  return Program::compile(env, graph, nullptr, nullptr, options).status();
}

TEST(damaged_text, ends_in_a_graph_or_a_status) {
  uint64_t graphs = 0;
  std::string text;
  auto env = Env::create({.threads = 1});
  ASSERT_TRUE(env.ok());
  for (uint64_t seed = 1; seed <= 10000; seed++) {
    Random random(seed);
    if (seed % 20 == 1) text = print(random_graph(seed, op_table()).graph);
    std::string damaged = mutated(random, text);
    auto graph = parse(damaged);
    if (graph.ok()) {
      graphs++;
      EXPECT_TRUE(verify(*graph).ok()) << damaged;
      EXPECT_TRUE(parse(print(*graph)).ok()) << damaged << "\n" << print(*graph);
      Status status = compiled(*graph, *env);
      EXPECT_TRUE(status.ok() || !status.message().empty());
    } else {
      EXPECT_FALSE(graph.status().message().empty());
    }
  }
  EXPECT_GT(graphs, 0u);
}

}  // namespace rlx::test
