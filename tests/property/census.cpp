// SPDX-License-Identifier: Apache-2.0
// Counts how often each rule fires in graphs drawn from the examples and in random graphs, and what memory plans of
// these need. So a rule that fires less or more than it did is seen, even if the meaning stays. Near misses count too.
// The census is a golden (census.txt): `./dev bless` takes a new one, and the diff names the rules.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "examples.h"
#include "plan/plan.h"
#include "tests/support/paths.h"
#include "tests/support/transforms.h"

namespace rlx::test {

namespace {

class Census {
 public:
  void add(const Graph& graph) {
    graphs_++;
    RewriteReport report;
    if (auto after = composed(graph, &report); after.ok()) {
      nodes_ += after->nodes().size();
      for (const Transform& transform : transforms()) {
        auto other = transform.run(*after, Bounds::kError, &report);
        if (other.ok()) changed_ += other->nodes().size();
      }
      plan(std::move(*after));
    }
    for (const RewriteReport::Line& line : report.lines) (line.reason.empty() ? fired_ : missed_)[line.rule]++;
  }

  std::string text(const std::string& name) const {
    std::ostringstream text;
    text << name << ": " << graphs_ << " graphs, " << nodes_ << " nodes, " << changed_ << " in all passes; " << plans_
         << " plans, " << steps_ << " steps, " << sized_ << " of sizes, " << residents_ << " residents, " << bytes_
         << " bytes\n";
    for (const auto& [rule, count] : fired_) text << "  " << rule << " " << count << "\n";
    for (const auto& [rule, count] : missed_) text << "  " << rule << " nearly " << count << "\n";
    return text.str();
  }

 private:
  // For a device that has one kernel for everything, so that it is the same on every machine.
  void plan(Graph graph) {
    static constexpr Kernel kAny{.op = Op::kNone, .name = "any"};
    UpperSizes upper;
    for (const auto& [symbol, range] : graph.symbols()) upper.emplace_back(symbol, 6);
    auto lowered = lower(std::move(graph), {}, [](const Facts&, uint32_t) { return Found{&kAny, {}}; }).value();
    auto made = make_plan(lowered, upper);
    if (!made.ok()) return;
    plans_++;
    steps_ += (*made)->steps.size();
    sized_ += (*made)->first_run_step;
    residents_ += lowered->residents.size();
    bytes_ += (*made)->arena_bytes + (*made)->sized_bytes;
  }

  uint64_t graphs_ = 0, nodes_ = 0, changed_ = 0, plans_ = 0, steps_ = 0, sized_ = 0, residents_ = 0;
  int64_t bytes_ = 0;
  std::map<std::string, int> fired_, missed_;
};

std::string census() {
  constexpr uint64_t kOfExample = 100, kGroups = 20, kInGroup = 40;
  std::string text;
  for (const Example& example : examples()) {
    Census of;
    for (uint64_t seed = 1; seed <= kOfExample; seed++)
      if (auto random = drawn(example, seed); random.ok()) of.add(random->graph);
    text += of.text(example.name);
  }
  for (uint64_t group = 0; group < kGroups; group++) {
    Census of;
    for (uint64_t seed = 1; seed <= kInGroup; seed++) of.add(random_graph(group * kInGroup + seed, op_table()).graph);
    text += of.text("random " + std::to_string(group));
  }
  return text;
}

}  // namespace

TEST(golden_census, is_as_it_was) {
  const auto path = test_path("property/census.txt");
  std::string is = census();
  if (std::getenv("RLX_BLESS")) std::ofstream(path) << is;
  std::istringstream now(is);
  std::ifstream was(path);
  size_t line = 0;
  for (std::string a, b; line++, std::getline(was, a), std::getline(now, b), was || now;)
    ASSERT_EQ(was ? a : "(end)", now ? b : "(end)") << "line " << line << ": ./dev bless, if it is meant to be";
}

}  // namespace rlx::test
