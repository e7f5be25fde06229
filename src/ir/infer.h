// SPDX-License-Identifier: Apache-2.0
// Inference of one node: what the infer functions of rows share, and what `add` does with them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// The arguments of an inference function. `out` arrives with the dtypes that the signature gives.
struct InferArgs {
  Graph& graph;
  const OpInfo& info;
  std::span<const ValueType* const> in;  // one per port, null where absent; variadic inputs follow
  std::span<const Value> values;         // the inputs of the node
  Attrs& attrs;                          // in normal form; may be completed (a fresh symbol's name), never changed
  OutputTypes& out;
  std::string_view name;  // of the node; may be empty

  std::string where() const;  // the node, for messages

  size_t rank(size_t i = 0) const { return in[i]->rank(); }
  const std::vector<Dim>& dims(size_t i = 0) const { return in[i]->dims; }
  Status fail(Code code, std::string message) const;
  Status require(Guard::Relation relation, const Dim& a, const Dim& b);    // or a guard
  Result<Dim> same(const Dim& a, const Dim& b, std::string_view what);     // equal, or a guard
  Status require_le(const Dim& a, const Dim& b, std::string_view what);    // a <= b, or a guard
  Result<Dim> divided(const Dim& a, const Dim& b, std::string_view what);  // a / b exactly, or with a guard
  Dim not_negative(const Dim& dim) const { return graph.not_negative(dim); }
  Result<std::vector<Dim>> broadcast(std::span<const Dim> a, std::span<const Dim> b);  // semantics.md S3
};

// What `add` does before it appends: checks a node against its row, brings its attributes to normal form, and infers
// its outputs. `in` has one type per port (input_types of ir/normal.h). Symbols and guards are those of `scope`, which
// gets the new ones.
Status infer_node(Graph& scope, const OpInfo& info, std::span<const ValueType* const> in, Node& node);

// The check of a node's results: their ranks and sizes. infer_node makes it for every node; the infer function of
// custom ops makes it before, to name the op in the failure.
Status check_results(InferArgs& args);

}  // namespace rlx
