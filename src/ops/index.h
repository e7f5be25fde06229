// SPDX-License-Identifier: Apache-2.0
// How indices address a tensor: one function interprets an index, and one walk for each of three layouts is shared by
// gathers and scatters. A walk calls visit(at, i, run): `run` elements of the indexed tensor from offset `at` (-1:
// ignore this index) correspond to `run` elements of the other tensor from offset i. Every index is checked, even if it
// picks no elements.
#pragma once

#include "ops/eval.h"

namespace rlx {

// The position that an index means in a dim of size n; -1 if the index must be ignored (semantics.md X2). `position` is
// the place of the index in its tensor, for messages.
Result<int64_t> checked_index(const EvalArgs& args, int64_t index, int64_t n, int64_t position);

inline int64_t index_at(const Operand& indices, int64_t i) {
  return indices.dtype == DType::kI32 ? indices.as<int32_t>()[i] : indices.as<int64_t>()[i];
}

// A symbol that is new to the graph, for a size that the contents of a value decide (semantics.md S6).
std::string fresh_symbol(const Graph& graph, std::string_view op);

// The result size of a `dynamic_iota` whose count is this value (semantics.md S6).
Result<int64_t> dynamic_size(const Attrs& attrs, int64_t count, const SymbolLookup& sizes);

// The shape of the elements that each layout picks from x: the result of a gather, the updates of a scatter.
Result<std::vector<Dim>> picked_along_axis(InferArgs& args);
Result<std::vector<Dim>> picked_elements(InferArgs& args);
Result<std::vector<Dim>> picked_nd(InferArgs& args);

// x[p, idx, q] along `axis`.
template <class Visit>
Status walk_axis(const EvalArgs& args, const Operand& x, const Operand& indices, Visit visit) {
  auto axis = static_cast<size_t>(args.attrs.i64("axis"));
  std::span<const int64_t> dims(x.dims);
  int64_t outer = *element_count(dims.first(axis)), n = dims[axis], picked = indices.count();
  int64_t run = *element_count(dims.subspan(axis + 1));
  for (int64_t i = 0; i < picked; i++) {
    int64_t at = RLX_TRY(checked_index(args, index_at(indices, i), n, i));
    for (int64_t p = 0; p < outer && run; p++) visit(at < 0 ? -1 : (p * n + at) * run, (p * picked + i) * run, run);
  }
  return {};
}

// x[i with i_axis = idx[i]].
template <class Visit>
Status walk_elements(const EvalArgs& args, const Operand& x, const Operand& indices, Visit visit) {
  auto axis = static_cast<size_t>(args.attrs.i64("axis"));
  Dims strides = dense_strides(x.dims);
  int64_t n = x.dims[axis], stride = strides[axis], count = indices.count();
  strides[axis] = 0;
  Odometer<1> rest(indices.dims, {strides});
  for (int64_t i = 0; i < count; i++, rest.next()) {
    int64_t at = RLX_TRY(checked_index(args, index_at(indices, i), n, i));
    visit(at < 0 ? -1 : rest.offset(0) + at * stride, i, 1);
  }
  return {};
}

// x[b, idx[b, i, 0], ..., idx[b, i, m-1], q] with `batch_dims` leading dims in common.
template <class Visit>
Status walk_nd(const EvalArgs& args, const Operand& x, const Operand& indices, Visit visit) {
  std::span<const int64_t> dims(x.dims), index_dims(indices.dims);
  size_t batch_dims = static_cast<size_t>(args.attrs.i64("batch_dims"));
  size_t depth = static_cast<size_t>(index_dims.back());
  int64_t batches = *element_count(dims.first(batch_dims)), batch = *element_count(dims.subspan(batch_dims));
  int64_t rows = *element_count(index_dims.subspan(batch_dims, index_dims.size() - 1 - batch_dims));
  int64_t run = *element_count(dims.subspan(batch_dims + depth));
  Dims strides = dense_strides(x.dims);
  for (int64_t row = 0; row < batches * rows; row++) {
    int64_t at = row / rows * batch;
    for (size_t k = 0; k < depth; k++) {
      int64_t position = row * static_cast<int64_t>(depth) + static_cast<int64_t>(k);
      int64_t index = RLX_TRY(checked_index(args, index_at(indices, position), dims[batch_dims + k], position));
      at = index < 0 || at < 0 ? -1 : at + index * strides[batch_dims + k];
    }
    if (run) visit(at, row * run, run);
  }
  return {};
}

}  // namespace rlx
