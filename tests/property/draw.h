// SPDX-License-Identifier: Apache-2.0
// Draw: one graph under construction, its random numbers and the sizes that it will run at. What adds nodes works on a
// Draw; an attempt that the builder refuses, or whose values grow too large, leaves it as it was.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "generate.h"
#include "ops/expr.h"

namespace rlx::test {

using Shape = std::vector<Dim>;
using Sizes = std::map<std::string, int64_t, std::less<>>;

inline constexpr DType kDense[] = {DType::kF32,  DType::kF16, DType::kBF16, DType::kF64,    DType::kI8,    DType::kI16,
                                   DType::kI32,  DType::kI64, DType::kU8,   DType::kU16,    DType::kU32,   DType::kU64,
                                   DType::kBool, DType::kC64, DType::kC128, DType::kF8E4M3, DType::kF8E5M2};

class Draw {
 public:
  // `graph` with sizes for its symbols, and for n and m.
  Draw(uint64_t seed, Graph graph);
  // The graph of a body, inside that of `around`: it has no inputs but those that are given to it.
  static Draw body_of(Draw& around, std::string name);

  // ---- sizes and types ----
  Dim dim();
  Shape shape();
  Shape related(Shape shape);         // one that may go with another: the same, one that broadcasts to it, a matrix ...
  Dim attribute_dim(const Dim& dim);  // the run knows only the symbols that inputs have as sizes
  bool is_known(const Dim& dim) const;                                 // so that an attribute may name it
  std::optional<Dims> sizes_of(const Shape& shape, size_t run) const;  // legal and small
  bool is_small(const ValueType& type) const;                          // in all runs
  DType float_type();                                                  // f32 mostly

  // ---- values ----
  std::vector<Value> values(DTypeSet set) const;
  std::optional<Value> leaf(DTypeSet set, const Shape& shape);  // an input, a param or a constant
  // Of this type: one that is there, or a leaf.
  Expr value(Builder& builder, DType dtype, const Shape& shape);
  // Any that is there with at least these axes; or a leaf.
  Expr any(Builder& builder, DTypeSet set, size_t least_rank = 0);
  // A param or constant.
  Expr weight(Builder& builder, DType dtype, const Shape& shape);
  // A number, as a scalar of rank 0 or with axes of 1, now and then as a whole row.
  Expr number(Expr like, double value);

  // ---- attempts ----
  using Build = std::function<Expr(Draw&, Builder&)>;
  bool attempt(const Build& build, int attempts = 6);  // whether one was kept
  bool are_small(size_t first) const;                  // the values of the nodes from this one on

  RandomGraph filled();  // with contents for all leaves

  Random random;
  Graph graph;
  bool is_body = false;
  int depth = 0;  // of bodies in bodies

 private:
  Draw(uint64_t seed, Graph graph, const Draw& around);
  void draw_sizes(const std::string& symbol, Interval range);
  Tensor contents(const ValueType& type, size_t run);
  void fill_params(const Graph& graph, RandomGraph& made);

  std::vector<Sizes> runs_;  // of the symbols, for each run
  std::set<std::string, std::less<>> known_;
  std::string prefix_ = "x";  // of the names of leaves: those of params are global
};

// ---- contents.cpp ----
Tensor random_tensor(Random& random, DType dtype, std::span<const int64_t> dims);
// Now and then the largest, smallest, subnormal, infinite numbers of the dtype, powers of two, and those that wrap.
Tensor random_constant(Random& random, DType dtype, std::span<const int64_t> dims);
// Some of its elements such numbers; with the largest only now and then, beside which sums say little.
Tensor with_extremes(Random& random, const Tensor& given);

// ---- what adds nodes; each says whether it did ----
bool add_row(Draw& draw, const OpInfo& row, int attempts);  // rows.cpp
bool add_any_row(Draw& draw);
bool add_repeated(Draw& draw);   // a node that is there already
bool add_integers(Draw& draw);   // integers.cpp: chains that wrap, narrow and are compared
bool add_control(Draw& draw);    // bodies.cpp: if, while, scan
bool add_varying(Draw& draw);    // varying.cpp: values whose sizes the run decides, in branches and loops
bool add_spelling(Draw& draw);   // spellings.cpp: a composite in its expanded form, or as exporters write it
void add_something(Draw& draw);  // generate.cpp: any of these

using Spelling = Expr (*)(Draw&, Builder&);
std::span<const Spelling> norm_spellings();        // spellings.cpp
std::span<const Spelling> activation_spellings();  // spell_activations.cpp
std::span<const Spelling> attention_spellings();   // spell_attention.cpp
std::span<const Spelling> layer_spellings();       // spell_layers.cpp: linear, siblings, gated
std::span<const Spelling> position_spellings();    // spell_positions.cpp: rope, gathers, views

// near_miss.cpp: the graph with one attribute, constant, link, operand order or op changed.
std::optional<Graph> near_miss(const Graph& graph, Random& random);

}  // namespace rlx::test
