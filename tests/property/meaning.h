// SPDX-License-Identifier: Apache-2.0
// What a random graph computes: by the oracle, and with every value rounded to its dtype. If a result differs from
// these, also with noise of a few roundings on every node, with small numbers as 0 (noise.h), with the exceptions that
// rules may make (exceptions.h), and with stand-ins for values that may be anything (open_values.h). The distance
// between the runs shows how much rounding matters in this graph. So a long chain of ops is judged by its own
// condition.
#pragma once

#include <optional>
#include <string>

#include "generate.h"
#include "ops/interpret.h"

namespace rlx::test {

using Results = std::vector<Tensor>;

class Meaning {
 public:
  // What one run computes. Fails where the graph gives no results: its sizes break a guard, or an op refuses a value.
  // The graph must outlive the result.
  static Result<Meaning> of(const RandomGraph& random, size_t run = 0);
  std::span<const Tensor> inputs() const { return random_.runs[run_]; }

  // What an index out of range does in all runs: an error where this graph has none, so that what passes may assume of
  // indices is seen to hold; else they are clamped.
  Bounds bounds() const { return bounds_; }

  // Whether no value inside is -0, infinite or NaN: rules of grade fast are held to no others.
  bool is_tame() const;

  // Whether it runs where numbers below the normal ones are 0 too (semantics.md N5), which may decide a size.
  bool runs_without_subnormals() const;

  // "" if `got` is what the oracle gives, or near it; else the first place where it is not. `got` is as declared, or as
  // the oracle holds it.
  std::string difference(const Results& got);
  // The same for results that must have the bits of typed evaluation (any NaN is any NaN).
  std::string difference_in_bits(const Results& got) const;

 private:
  Meaning(const RandomGraph& random, size_t run) : random_(random), run_(run) {}
  Result<Results> run_apart(const Graph& graph) const;
  Status add_exact_runs();
  Status add_noisy_runs();
  void add_exceptions();
  void add_open_values();
  std::string difference_now(const Results& got) const;
  std::string difference(size_t output, const Tensor& got) const;
  // How far the elements of an output may be from those of the oracle.
  struct Margin {
    bool is_exact = false;          // its elements are not rounded
    double largest = 1, apart = 0;  // the largest finite number; how far the runs are apart
    double rounding = 0, most = 0;  // at a number of size 1; of any element
  };
  Margin margin(size_t output) const;
  bool is_left_out(size_t output, const Tensor& got) const;
  bool depends_on_open_values(size_t output, int64_t i) const;
  bool is_open(size_t output, int64_t i) const;
  bool is_excepted(size_t output, int64_t i, const Tensor& got, const Margin& margin) const;
  void find_bits_of_numbers();
  // A graph that has all real values inside as outputs, and its results; nullopt where it does not run.
  std::optional<std::pair<Graph, Results>> values_inside() const;

  const RandomGraph& random_;
  size_t run_;
  std::vector<Results> runs_;  // of the oracle, typed, noisy ones when they are needed
  struct Exception {
    Results results;
    bool moves_factors;  // NaN where any number may come
  };
  std::vector<Exception> exceptions_;  // what else close rules may make of it: each element is one of these, or near it
  std::vector<Results> by_stand_in_;   // of the oracle, for what may be anything; the first as it is
  Bounds bounds_ = Bounds::kError;
  bool has_attention_ = false;  // or what may become one
  bool has_product_ = false;
  bool has_batch_norm_ = false;
  bool has_nan_guard_ = false;
  bool bounds_numbers_ = false;  // so that what is infinite by a moved factor may become any finite number
  bool has_huge_numbers_ = false;
  bool decides_by_overflow_ = false;  // huge numbers may decide outputs that are not floats
  bool has_finite_fill_ = false;      // a constant that is low enough to be a mask
  std::vector<bool> shows_bits_;      // of each output: it depends on how a number that was computed is written
  int64_t steps_ = 0;                 // that a row allows an integer to be off by
  double epsilon_ = 0;                // of the narrowest dtype in the graph that floats are rounded to
};

}  // namespace rlx::test
