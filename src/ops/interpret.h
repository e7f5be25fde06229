// SPDX-License-Identifier: Apache-2.0
// The reference interpreter: runs primitives by their `eval` and composites by their decomposition. It is the oracle of
// every test and the CPU's last resort. It allocates every value and does not try to be fast.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "ops/eval.h"

namespace rlx {

enum class EvalMode : uint8_t {
  kTyped,   // the declared dtypes: class E0
  kOracle,  // F in f64, Z in c128
};

// Memory for a value, filled with zeros.
using MakeTensor = std::function<Result<Tensor>(DType dtype, std::span<const int64_t> dims)>;

struct EvalOptions {
  EvalMode mode = EvalMode::kTyped;
  Bounds bounds = Bounds::kError;
  const MakeTensor* make = nullptr;               // null: Tensor::create
  const std::function<Status()>* poll = nullptr;  // asked before each node: an error of it ends the run; null: none
};

using ParamTensors = std::map<std::string, Tensor>;  // by name: global to a graph and all its bodies

using SymbolSizes = std::map<std::string, int64_t, std::less<>>;

// Inputs are in the order of declaration, params by name. Results are as stored: f64 for F in oracle mode. `sizes` has
// the sizes of symbols that are known before, and receives that of each symbol, those that contents decide included.
Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const Tensor> inputs,
                                      const ParamTensors& params = {}, EvalOptions options = {},
                                      SymbolSizes* sizes = nullptr);

// Evaluates one node into allocated outputs. The last row of a primitive in the CPU's table calls it. An eval learns
// the declared dtypes of at most kMaxDeclared inputs and of as many outputs.
inline constexpr size_t kMaxDeclared = 64;
Status eval_node(const Graph& graph, const Node& node, std::span<const Operand> in, std::span<const Operand> out,
                 const SymbolLookup& sizes, EvalOptions options);

// The sizes of symbols that are known and those that input dims determine; a dim that disagrees is RLX_E_SHAPE naming
// input and axis.
Result<SymbolSizes> bind_sizes(const Graph& graph, std::span<const Tensor> inputs, SymbolSizes known = {});

// Converts between dtypes of F, or of Z, with rounding: to the oracle's storage and back.
Result<Tensor> convert(const Tensor& tensor, DType to);

}  // namespace rlx
