// SPDX-License-Identifier: Apache-2.0
// Graphs in found/ for which some property once did not hold, cut to what mattered; each says what it shows.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/text.h"
#include "properties.h"
#include "tests/support/paths.h"

namespace rlx::test {

namespace fs = std::filesystem;

static std::vector<fs::path> found_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(test_path("property/found"))) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class found : public testing::TestWithParam<fs::path> {};

TEST_P(found, holds) {
  std::ostringstream text;
  text << std::ifstream(GetParam()).rdbuf();
  auto graph = parse(text.str());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto env = env_of_tests();
  ASSERT_TRUE(env.ok()) << env.status().message();
  Tally tally;
  for (uint64_t seed = 1; seed <= 20; seed++) EXPECT_EQ(check_graph(with_contents(seed, *graph), *env, tally), "");
  EXPECT_GT(tally.evaluated, 0u) << "it never runs";
}

INSTANTIATE_TEST_SUITE_P(, found, testing::ValuesIn(found_files()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace rlx::test
