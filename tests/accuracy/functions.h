// SPDX-License-Identifier: Apache-2.0
// The elementwise functions of the op table, as programs for each instruction set of this machine and as references in
// f64. Nothing here names an op, apart from the exceptions in functions.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace rlx::accuracy {

inline constexpr int64_t kBlock = 1 << 16;  // elements of an operand

// An op of `arity` float operands of one dtype, with a value for each attribute that is an enum or a flag.
struct Function {
  const OpInfo* info;
  size_t arity;
  NamedAttrs attrs;
  std::string name;  // "gelu approx=tanh"
};
std::vector<Function> functions_of(DType dtype, size_t arity);

// How far a kernel may be from the exact value, in units in the last place of the result's dtype.
double bound_of(const Function& function, DType dtype);

// One way to compute a function on blocks of kBlock elements. Ways that compile to the same graph on the same device
// are one.
struct Way {
  std::string name;  // "avx2, strict"
  std::shared_ptr<Program> program;
};
std::vector<Way> ways_of(const Function& function, DType dtype);

// The function in f64. The operands are of the function's dtype; so the result is exact except for the rounding of f64.
std::vector<double> exact(const Function& function, std::span<const Tensor> operands);

}  // namespace rlx::accuracy
