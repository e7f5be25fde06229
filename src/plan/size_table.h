// SPDX-License-Identifier: Apache-2.0
// The sizes of a plan that is being made: its symbols with their upper sizes, and the table of distinct dims.
// Invariant: equal dims have one id, and an id never changes.
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "plan/plan.h"

namespace rlx {

class SizeTable {
 public:
  explicit SizeTable(Plan& plan) : plan_(plan) {}

  // Gives every symbol of the graph an upper size; RLX_E_SHAPE names all that have none. A symbol that a node
  // decides may stay open, and in a body any symbol.
  Status set_symbols(const UpperSizes& upper);
  using NodeBySymbol = std::unordered_map<std::string_view, uint32_t>;

  SizeId id(const Dim& dim);
  SizeIds ids(std::span<const Dim> dims);
  Interval range(const Dim& dim) const;  // up to the upper sizes
  Dims upper(std::span<const Dim> dims) const;
  bool is_open(std::span<const Dim> dims) const;  // whether one of them has no upper size
  Result<int64_t> upper_bytes(const ValueType& type, std::string_view name) const;
  void add_room(uint32_t base, const ValueType& type);

 private:
  struct DimHash {
    size_t operator()(const Dim& dim) const { return dim.hash(); }
  };
  struct Branch;
  struct Join;                             // of the branches of an `if`: the sizes in which they differ
  using Joins = std::map<uint32_t, Join>;  // by node, in their order
  using Names = std::unordered_set<std::string_view>;
  Joins find_joins(const std::vector<DecidedSize>& decided) const;
  Status add_symbols(const UpperSizes& upper, const NodeBySymbol& decider_of, const Joins& joins);
  void open(const Names& names);
  void note_too_large(const Graph& graph, Names& found, Names& too_large) const;  // `found` is the same afterwards
  void note_chosen(const Joins& joins);                                           // in the plan
  int64_t most_of(const std::string& symbol, uint32_t decider, const Joins& joins, int64_t declared) const;
  Interval open_range(const Dim& dim, const Branch* branch = nullptr) const;
  Interval capped_range(const Dim& dim) const;
  bool names_open_symbol(const Dim& dim) const;
  bool is_open(const Dim& dim) const;

  Plan& plan_;
  std::unordered_map<Dim, SizeId, DimHash> ids_;
};

}  // namespace rlx
