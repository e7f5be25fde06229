// SPDX-License-Identifier: Apache-2.0
// Golden files: graphs as text, and the expected result of each. The folder says how a file is read:
//
//   ir/        one graph, printed as it is parsed
//   verify/    graphs that are refused, `---` between them, each with `; error: COLUMN: MESSAGE` on the offending line
//   others     `; pass: NAME` in the header, a graph, `---`, the rules that fired, and the resulting graph
//
// A test makes the whole text anew and compares it with the file. With RLX_BLESS=1 it writes the file instead (`./dev
// bless`).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ir/text.h"
#include "ir/verify.h"
#include "rules/rules.h"
#include "tests/support/host_ops.h"
#include "tests/support/paths.h"
#include "tests/support/transforms.h"

namespace rlx {

namespace fs = std::filesystem;

static fs::path folder_of_goldens() {
  return test::test_path("golden");
}

// ---- text ----

static std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

static std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

static constexpr char kSeparator[] = "---\n";

static std::vector<std::string> sections_of(const std::string& text) {
  std::vector<std::string> sections(1);
  for (const std::string& line : lines_of(text)) {
    if (line + "\n" == kSeparator)
      sections.emplace_back();
    else
      sections.back() += line + "\n";
  }
  return sections;
}

// The comments that a file begins with.
static std::string header_of(const std::string& text) {
  std::string header;
  for (const std::string& line : lines_of(text)) {
    if (!line.empty() && line[0] != ';') break;
    header += line + "\n";
  }
  return header;
}

static std::string pass_of(const std::string& header) {
  static constexpr std::string_view kKey = "; pass: ";
  for (const std::string& line : lines_of(header))
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  return "";
}

// ---- what a file should be ----

static Result<Graph> read(const std::string& text) {
  return parse(text, op_table(), test::host_ops());
}

// Or, in place of a graph, why there is none.
static std::string printed(const Result<Graph>& graph) {
  if (!graph.ok()) return "failed: " + std::string(graph.status().message()) + "\n";
  if (Status status = verify(*graph); !status.ok()) return "failed: " + std::string(status.message()) + "\n";
  return print(*graph);
}

static std::string ir_form(const std::string& text) {
  return header_of(text) + printed(read(text));
}

static constexpr char kError[] = "  ; error: ";

// A refused graph with the reason on its line.
static std::string with_error(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  for (std::string& line : lines) line = line.substr(0, line.find(kError));
  std::string bare;
  for (const std::string& line : lines) bare += line + "\n";
  auto graph = read(bare);
  if (graph.ok()) return bare + "failed: nothing is wrong with this graph\n";
  size_t line = std::stoul(*graph.status().detail("line"));
  std::string message(graph.status().message());
  message = message.substr(message.find(':') + 1);  // without the line
  bare.clear();
  for (size_t i = 0; i < lines.size(); i++) bare += lines[i] + (i + 1 == line ? kError + message : "") + "\n";
  return bare;
}

static std::string verify_form(const std::string& text) {
  std::string result;
  for (const std::string& section : sections_of(text))
    result += (result.empty() ? "" : kSeparator) + with_error(section);
  return result;
}

static std::set<std::string> fired_rules(const RewriteReport& report) {
  std::set<std::string> fired;
  for (const RewriteReport::Line& line : report.lines)
    if (line.reason.empty()) fired.insert(line.rule);
  return fired;
}

static std::string pass_form(const std::string& text) {
  std::string header = header_of(text);
  const test::Transform* transform = test::find_transform(pass_of(header));
  if (!transform) return header + "failed: the header names no pass\n";
  auto before = read(sections_of(text)[0]);
  std::string result = header + printed(before) + kSeparator;
  if (!before.ok()) return result;
  RewriteReport report;
  auto after = transform->run(*before, Bounds::kError, &report);
  std::set<std::string> fired = fired_rules(report);
  std::string list;
  for (const std::string& rule : fired) list += (list.empty() ? "; rules: " : ", ") + rule;
  return result + list + (list.empty() ? "" : "\n") + printed(after);
}

// ---- the walk ----

static std::vector<std::string> golden_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder_of_goldens()))
    if (entry.path().extension() == ".rlx") files.push_back(fs::relative(entry.path(), folder_of_goldens()).string());
  std::sort(files.begin(), files.end());
  return files;
}

class golden : public testing::TestWithParam<std::string> {};

TEST_P(golden, file) {
  fs::path path = folder_of_goldens() / GetParam();
  std::string folder = fs::path(GetParam()).begin()->string(), is = read(path);
  std::string should = folder == "ir" ? ir_form(is) : folder == "verify" ? verify_form(is) : pass_form(is);
  if (std::getenv("RLX_BLESS"))
    std::ofstream(path) << should;
  else
    EXPECT_EQ(is, should) << path;
  EXPECT_EQ(should.find("failed: "), std::string::npos) << path << "\n" << should;
}

INSTANTIATE_TEST_SUITE_P(, golden, testing::ValuesIn(golden_files()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST(golden_files, stand_in_every_folder) {
  for (const char* folder : {"ir", "verify", "decompose", "canonicalize", "fold", "fuse", "layout", "merge-siblings",
                             "expand", "widen", "simplify", "regions", "dce"})
    EXPECT_FALSE(fs::is_empty(folder_of_goldens() / folder)) << folder;
}

TEST(golden_files, show_every_rule_at_work) {
  std::set<std::string> shown;
  for (const std::string& file : golden_files())
    for (const std::string& line : lines_of(read(folder_of_goldens() / file)))
      if (constexpr std::string_view kKey = "; rules: "; line.starts_with(kKey)) {
        std::istringstream list(line.substr(kKey.size()));
        for (std::string rule; std::getline(list, rule, ',');) shown.insert(rule.substr(rule.find_first_not_of(' ')));
      }
  RuleSet rules;
  for (RuleSet::Family add : kRuleFamilies) add(rules);
  for (std::string_view rule : rules.names()) EXPECT_TRUE(shown.contains(std::string(rule))) << rule;
}

}  // namespace rlx
