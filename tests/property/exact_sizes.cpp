// SPDX-License-Identifier: Apache-2.0
// What is said of sizes is true of numbers: random expressions over symbols, small ones and such whose products pass
// 64 bits, are compared with exact arithmetic at one choice of sizes. Guards that hold at that choice are added, and
// what a graph proves with their help must hold there too.
#include <gtest/gtest.h>

#include <map>

#include "generate.h"
#include "ir/graph.h"

namespace rlx::test {

namespace {

using Exact = __int128;
constexpr Exact kLimit = Exact{1} << 62;

// An expression, as a dim and as its exact value.
struct Sized {
  Dim dim;
  Exact value;
};

Exact divided_down(Exact a, Exact b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

class Sizes {
 public:
  explicit Sizes(uint64_t seed) : random_(seed), is_large_(random_.chance(60)) {
    for (const char* name : {"a", "b", "c", "d"}) {
      Interval range = this->range();
      int64_t hi = std::min(range.hi, std::max(kLargestSymbol, range.lo));
      values_[name] = random_.pick(
          std::array{range.lo, hi, std::min(hi, range.lo + random_.below(4)), random_.between(range.lo, hi)});
      EXPECT_TRUE(graph_.declare_symbol(name, range).ok());
    }
  }

  // "", or what is wrong.
  std::string check() {
    for (int i = 0; i < 6; i++)
      if (auto made = expression(static_cast<int>(random_.between(1, 4)))) made_.push_back(*made);
    for (const Sized& size : made_) check_alone(size);
    for (int64_t count = made_.empty() ? 0 : random_.below(4); count > 0; count--) add_guard(any(), any());
    for (const Sized& size : made_) check_among_guards(size);
    for (int i = 0; i < 12 && !made_.empty(); i++) check_pair(any(), any());
    return wrong_;
  }
  size_t proved() const { return proved_; }

 private:
  Interval range() {
    static constexpr int64_t kMany = int64_t{1} << 21;
    static constexpr Interval kSmall[] = {{0, 1}, {0, 20}, {3, 3}, {1, 16}};
    static constexpr Interval kLarge[] = {
        {0, Interval::kUnbounded}, {1, Interval::kUnbounded}, {0, kLargestSize}, {kMany, kMany + 3}, {kMany, kMany}};
    return is_large_ && random_.chance(50) ? random_.pick(kLarge) : random_.pick(kSmall);
  }

  int64_t number() {
    int64_t value = random_.between(-3, 9);
    if (is_large_ && random_.chance(40)) value = (int64_t{1} << random_.below(48)) - random_.below(2);
    return random_.chance(20) ? -value : value;
  }

  Sized leaf() {
    if (int64_t value = number(); random_.chance(35)) return {value, value};
    std::string name(1, static_cast<char>('a' + random_.below(4)));
    return {Dim::symbol(name), values_.at(name)};
  }

  // Nothing if a step of it is beyond 2^62: that means nothing as a size.
  std::optional<Sized> expression(int depth) {
    if (depth == 0 || random_.chance(15)) return leaf();
    auto a = expression(depth - 1), b = expression(depth - 1);
    if (!a || !b) return std::nullopt;
    Sized made = joined(*a, *b);
    return made.value > -kLimit && made.value < kLimit ? std::optional(made) : std::nullopt;
  }

  Sized joined(const Sized& a, const Sized& b) {
    switch (random_.below(8)) {
      case 0:
      case 1: return {a.dim + b.dim, a.value + b.value};
      case 2:
      case 3: return {a.dim - b.dim, a.value - b.value};
      case 4: return {max(a.dim, b.dim), std::max(a.value, b.value)};
      case 5: return {min(a.dim, b.dim), std::min(a.value, b.value)};
      case 6:
        if (b.value != 0) return {floor_div(a.dim, b.dim), divided_down(a.value, b.value)};
        [[fallthrough]];
      default: return {a.dim * b.dim, a.value * b.value};
    }
  }

  Sized any() { return random_.chance(70) ? random_.pick(made_) : leaf(); }

  Result<int64_t> at_sizes(const Dim& dim) {
    return evaluate(dim, [this](std::string_view name) { return std::optional(values_.at(std::string(name))); });
  }

  void expect(bool is_so, const std::string& what) {
    if (is_so || !wrong_.empty()) return;
    wrong_ = what + "\n";
    for (const auto& [name, value] : values_) {
      Interval range = graph_.symbol_range(name);
      wrong_ += format("  {} = {} in [{}, {}]\n", name, value, range.lo, range.hi);
    }
    for (const Guard& guard : graph_.guards()) wrong_ += "  " + text_of(guard) + "\n";
  }

  // An error is no wrong number: terms may be too large.
  void expect_value(const Dim& dim, const Sized& of, const char* what) {
    auto value = at_sizes(dim);
    expect(!value.ok() || *value == of.value, format("{}: {} is {}", of.dim, what, dim));
  }

  void check_alone(const Sized& size) {
    expect_value(size.dim, size, "its value");
    auto read = parse_dim(size.dim.text());
    expect(read.ok() && *read == size.dim, format("{} does not read back", size.dim));
    check_range(size);
  }

  void check_range(const Sized& size) {
    Interval range = graph_.range(size.dim);
    expect(range.lo <= size.value && size.value <= range.hi,
           format("{} = {} is not in [{}, {}]", size.dim, static_cast<int64_t>(size.value), range.lo, range.hi));
  }

  void add_guard(const Sized& a, const Sized& b) {
    Guard guard{Guard::kLessEqual, a.dim, b.dim, "test"};
    if (a.value > b.value) std::swap(guard.a, guard.b);
    if (a.value == b.value && random_.chance(50)) guard.relation = Guard::kEqual;
    if (random_.chance(30)) guard = {Guard::kEqual, a.dim, Dim(static_cast<int64_t>(a.value)), "test"};
    Status status = graph_.add_guard(guard);
    expect(status.ok() || status.code() == Code::kUnsupported,
           "refused: " + text_of(guard) + ": " + std::string(status.message()));
  }

  void check_among_guards(const Sized& size) {
    check_range(size);
    expect_value(graph_.resolved(size.dim), size, "resolved it");
  }

  void check_pair(const Sized& a, const Sized& b) {
    for (Guard::Relation relation : {Guard::kEqual, Guard::kLessEqual}) {
      if (!graph_.implies(relation, a.dim, b.dim)) continue;
      proved_++;
      bool holds = relation == Guard::kEqual ? a.value == b.value : a.value <= b.value;
      expect(holds, "proved: " + text_of(Guard{relation, a.dim, b.dim, ""}));
    }
  }

  Random random_;
  const bool is_large_;
  Graph graph_;
  std::map<std::string, int64_t> values_;
  std::vector<Sized> made_;
  std::string wrong_;
  size_t proved_ = 0;
};

}  // namespace

TEST(sizes, what_is_said_of_them_is_true_of_numbers) {
  constexpr uint64_t kSeeds = 3000;
  size_t proved = 0;
  for (uint64_t seed = 1; seed <= kSeeds; seed++) {
    Sizes sizes(seed);
    EXPECT_EQ(sizes.check(), "") << "seed " << seed;
    proved += sizes.proved();
  }
  std::printf("%zu proofs\n", proved);
  EXPECT_GT(proved, kSeeds);
}

}  // namespace rlx::test
