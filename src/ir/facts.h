// SPDX-License-Identifier: Apache-2.0
// What is known of values: when they are computed, whether all elements are one number, integers as a function of their
// position. A fact is found when it is first asked for and stays true, because a rewrite keeps the meaning of a value;
// it is found again only where an operand has better facts (`find_again`). What an op contributes is a function of its
// row (`facts`). Invariant: a fact about integers is given only where no intermediate result wraps.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/stable_vector.h"
#include "ir/graph.h"

namespace rlx {

// When a value is computed: when params are set, when sizes change, or in every run.
enum class Phase : uint8_t {
  kResident,  // depends on params and constants only
  kSized,     // on these and on sizes
  kRun,       // on inputs
};

// Integers (and bools as 0 or 1) that depend on sizes alone: offset + the sum over axes of steps[axis] * index[axis].
struct Affine {
  Dim offset;
  std::vector<Dim> steps;  // one per axis of the value; 0: constant along the axis

  bool is_uniform() const;  // the same number everywhere
};
// The sum over the axes of the longer form, aligned right; the step of a missing axis is 0.
Affine operator+(const Affine& a, const Affine& b);
Affine operator-(const Affine& a, const Affine& b);
Affine operator*(const Affine& a, const Dim& factor);

// Bounds of all elements of a value of these dims; none where the arithmetic of the form has saturated.
Interval bounds_of(const Graph& graph, const Affine& form, std::span<const Dim> dims);

struct ValueFacts {
  std::optional<double> splat;           // the number that all elements equal, of real dtypes
  std::shared_ptr<const Affine> affine;  // of i32, i64, bool
  std::optional<Interval> range;         // of integers
};

// The arguments of a row's `facts`: the facts of each input (null where absent), and those of output 0 to fill in.
struct FactArgs {
  const Graph& graph;
  const Node& node;
  std::span<const ValueFacts* const> in;
  ValueFacts& out;

  const std::vector<Dim>& dims(size_t input) const { return graph.type(node.in[input]).dims; }
  const ValueType& type() const { return node.out[0]; }
  // Records the form if every element fits the dtype, so that facts derived from it need not consider wrapping.
  void set(Affine form);
  void set(Interval range);
};

class Facts {
 public:
  // kValues: for a few values. There are no phases: do not ask for them. All questions together look at about
  // kMostAsked values, and of later ones nothing is known. Else code that asks for one value of each node would take
  // quadratic time.
  enum class Asked : uint8_t { kAll, kValues };
  static constexpr size_t kMostAsked = 256;
  explicit Facts(const Graph& graph, Asked asked = Asked::kAll);
  const Graph& graph() const { return graph_; }

  void extend();               // to the nodes that have been added to the graph
  void shorten(size_t nodes);  // after a roll-back of the graph
  // Finds the facts of a node again, after one of its inputs was replaced by a value with better facts. Returns whether
  // they have improved.
  bool find_again(uint32_t index);
  bool knows_more(Value value);  // whether anything but its phase is known of it

  Phase phase(uint32_t node) const { return phases_[node]; }
  std::span<const Phase> phases() const { return phases_; }
  bool is_resident(Value value) const { return present(value) && phases_[value.node] == Phase::kResident; }
  // Whether the node depends on constants and sizes alone.
  bool is_static(uint32_t node) const { return phases_[node] != Phase::kRun && !reads_params_[node]; }

  std::optional<double> splat(Value value) { return of(value).splat; }
  const Affine* affine(Value value) { return of(value).affine.get(); }
  std::optional<Interval> range(Value value) { return of(value).range; }

 private:
  Phase phase_of(const Node& node) const;
  const ValueFacts& of(Value value);
  const ValueFacts*& known(uint32_t node) { return asked_ == Asked::kAll ? known_[node] : asked_for_[node]; }
  void find(uint32_t index);

  const Graph& graph_;
  const Asked asked_;
  std::vector<Phase> phases_;                                  // by node
  std::vector<bool> reads_params_;                             // by node
  StableVector<ValueFacts> found_;                             // of values of which something is known
  std::vector<const ValueFacts*> known_;                       // by node, of output 0; null: not asked for yet
  std::unordered_map<uint32_t, const ValueFacts*> asked_for_;  // used instead of known_ for Asked::kValues
  std::unordered_set<std::string> fresh_;                      // symbols that contents decide in the run
};

// The param leaves in the bodies of a node, at every level: their names are global to the program.
struct BodyParam {
  std::string name;
  ValueType type;
};
std::vector<BodyParam> body_params(const Node& node);

}  // namespace rlx
