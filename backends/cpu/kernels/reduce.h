// SPDX-License-Identifier: Apache-2.0
// Reductions along any axes, and running folds along one, in the type of the elements. Class SUM: no accumulator adds
// more than 512 terms before it is added to another.
#pragma once

#include <span>

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"
#include "base/dtype.h"
#include "base/static_vector.h"

namespace rlx::cpu {

enum class ReduceFn : int32_t { kSum, kProd, kMax, kMin };  // NaN wins in kMax and kMin

// Axes that are walked together. Strides count elements.
struct ReduceAxes {
  int32_t rank = 0;
  int64_t dims[kMaxRank] = {}, strides[kMaxRank] = {};
  int64_t count() const {
    int64_t count = 1;
    for (int32_t i = 0; i < rank; i++) count *= dims[i];
    return count;
  }
};

// x is dense; its innermost axes are [n, inner], of which n is folded. y[kept, inner]. With row_terms the last of the
// kept axes counts pieces of rows of so many terms: each is n long, but the last may be shorter.
struct ReduceArgs {
  const void* x = nullptr;
  void* y = nullptr;
  DType dtype = DType::kF32;
  ReduceFn fn = ReduceFn::kSum;
  bool squares = false, root = false;  // of floats: the terms of a sum are x * x, and the result is the root of it
  int64_t n = 1, inner = 1;
  int64_t row_terms = 0;
  ReduceAxes kept, folded;  // all other axes
};
// `axes`: bit i says whether dim i is folded.
void set_axes(ReduceArgs& args, std::span<const int64_t> dims, uint32_t axes);

// Cuts long rows that give few results. Returns true if it did: then `pieces` must run first, into `partial`, and
// `args` after it.
bool cut_rows(ReduceArgs& args, ReduceArgs& pieces, void* partial);
// Bytes of `partial` that suffice for so many elements and results.
size_t partial_bytes(double elements, double results);

// Running folds along the middle axis of x[outer, n, inner]; floats run in f64, as the op does. y may be x.
struct CumulativeArgs {
  const void* x = nullptr;
  void* y = nullptr;
  DType dtype = DType::kF32;
  ReduceFn fn = ReduceFn::kSum;
  int64_t outer = 1, n = 1, inner = 1;
  bool exclusive = false, reverse = false;
  void* totals = nullptr;  // of each piece of each line, where lines of adjacent elements are cut; 8 bytes each
};
inline constexpr int64_t kLinePiece = 8192;  // at least
constexpr Pieces line_pieces(int64_t lines, int64_t n) {
  return cut(n, lines, kLinePiece);
}

bool can_reduce(DType dtype);

struct ReduceFns {
  Loop<CumulativeArgs> cumulate;       // of lines side by side
  Loop<CumulativeArgs> totals, lines;  // of lines of adjacent elements, inner = 1; where they are cut, totals first
  Loop<ReduceArgs> reduce;
};
const ReduceFns& reduce_fns(Isa isa);

}  // namespace rlx::cpu
