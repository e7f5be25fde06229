// SPDX-License-Identifier: Apache-2.0
#include "examples.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "draw.h"
#include "edit.h"
#include "ir/text.h"
#include "tests/support/paths.h"

namespace rlx::test {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string between_quotes(const std::string& line) {
  size_t begin = line.find('"') + 1;
  return line.substr(begin, line.find('"', begin) - begin);
}

void load(const fs::path& path, std::vector<Example>& examples) {
  static constexpr std::string_view kHead = "; rules:";
  std::ifstream file(path);
  bool is_open = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kHead)) {
      examples.push_back({path.stem().string(), words_of(line.substr(kHead.size())), ""});
      is_open = true;
    } else if (is_open) {
      if (line.starts_with("graph")) examples.back().name += "/" + between_quotes(line);
      examples.back().text += line + "\n";
    }
  }
}

// One text of an example.
class Expansion {
 public:
  explicit Expansion(Random& random)
      : random_(random),
        is_perturbed_(random.chance(25)),
        has_twins_(random.chance(25)),
        has_ranges_(random.chance(25)) {}

  std::string of(std::string_view text) {
    std::string expanded = expand(text);
    if (has_ranges_) {
      static constexpr const char* kRanges[] = {" (n in [0, 8], m)", " (n in [1, 8], m in [1, 64])",
                                                " (n in [2, 8], m in [0, 9])"};
      expanded.insert(expanded.find(" {"), random_.pick(kRanges));
    }
    return expanded;
  }

 private:
  std::string expand(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      if (text[0] == '<') {
        size_t end = closing(text);
        out += expand(choice(text.substr(1, end - 1)));
        text.remove_prefix(end + 1);
      } else if (text[0] == '$') {
        out += std::isupper(static_cast<unsigned char>(text[1])) ? dim(text[1]) : dtype(text[1]);
        text.remove_prefix(2);
      } else {
        out.push_back(text[0]);
        text.remove_prefix(1);
      }
    }
    return out;
  }

  static size_t closing(std::string_view text) {
    int depth = 0;
    for (size_t i = 0;; i++) {
      depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
      if (depth == 0) return i;
    }
  }

  std::string_view choice(std::string_view text) {
    uint64_t number = random_.next();
    if (text.size() > 1 && std::isdigit(static_cast<unsigned char>(text[0])) && text[1] == ':') {
      number = numbers_.emplace(text[0], number).first->second;
      text.remove_prefix(2);
    }
    std::vector<std::string_view> parts;
    int depth = 0;
    for (size_t i = 0, begin = 0; i <= text.size(); i++) {
      if (i < text.size() && text[i] != '|') {
        depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
      } else if (i == text.size() || depth == 0) {
        parts.push_back(text.substr(begin, i - begin));
        begin = i + 1;
      }
    }
    return parts[number % parts.size()];
  }

  std::string any_dim() {
    static constexpr const char* kDims[] = {"n", "n", "n", "m", "m", "(n + m)", "2*n",
                                            "0", "1", "1", "2", "2", "3",       "4"};
    return random_.pick(kDims);
  }

  std::string dim(char name) {
    std::string dim = dims_.emplace(name, any_dim()).first->second;
    if (is_perturbed_ && random_.chance(10)) return random_.chance(30) ? "1" : any_dim();
    if (has_twins_ && (dim == "n" || dim == "m")) return random_.chance(50) ? "n" : "m";
    return dim;
  }

  std::string dtype(char name) {
    static constexpr DType kFloats[] = {DType::kF32, DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
    static constexpr DType kHalves[] = {DType::kF16, DType::kBF16};
    static constexpr DType kIntegers[] = {DType::kI64, DType::kI64, DType::kI32, DType::kI32, DType::kI16,
                                          DType::kI8,  DType::kU8,  DType::kU16, DType::kU32, DType::kU64};
    DType dtype = name == 'f'          ? random_.pick(kFloats)
                  : name == 'h'        ? random_.pick(kHalves)
                  : name == 'i'        ? random_.pick(kIntegers)
                  : random_.chance(50) ? random_.pick(kFloats)
                                       : random_.pick(kDense);
    return std::string(rlx::name(dtypes_.emplace(name, dtype).first->second));
  }

  Random& random_;
  bool is_perturbed_, has_twins_, has_ranges_;
  std::map<char, std::string> dims_;
  std::map<char, DType> dtypes_;
  std::map<char, uint64_t> numbers_;
};

// Whether a run knows all symbols: those that inputs have as sizes.
bool knows_sizes(const Graph& graph) {
  std::set<std::string, std::less<>> known;
  for (uint32_t leaf : graph.inputs())
    for (const Dim& dim : graph.node(leaf).out[0].dims)
      if (dim.symbol_name()) known.insert(*dim.symbol_name());
  bool knows_all = true;
  for (const Node& node : graph.nodes())
    visit_symbols(node, [&](const std::string& symbol) { knows_all &= known.contains(symbol); });
  return knows_all;
}

}  // namespace

const std::vector<Example>& examples() {
  static const std::vector<Example> kExamples = [] {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(test_path("property/examples"))) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<Example> examples;
    for (const fs::path& path : paths) load(path, examples);
    return examples;
  }();
  return kExamples;
}

std::vector<Example> examples_in(const std::string& file) {
  std::vector<Example> examples;
  load(test_path(file), examples);
  return examples;
}

Result<RandomGraph> drawn(const Example& example, uint64_t seed) {
  constexpr int kAttempts = 60;
  Random random(seed);
  Status refusal;
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    auto graph = parse(Expansion(random).of(example.text));
    if (!graph.ok()) {
      refusal = graph.status();
      continue;
    }
    Graph other = varied(*graph, random);
    if (!Draw(1, other).are_small(0)) other = std::move(*graph);
    if (auto needed = pruned(other); needed.ok()) other = std::move(*needed);
    if (!Draw(1, other).are_small(0) || !knows_sizes(other)) continue;
    RandomGraph made = with_contents(random.next(), std::move(other));
    if (random.chance(50)) add_extremes(made, random);
    if (has_finite_fill(made.graph)) make_tame(made);
    return made;
  }
  return refusal;
}

}  // namespace rlx::test
