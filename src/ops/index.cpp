// SPDX-License-Identifier: Apache-2.0
// Indexing (OPS.md 4.4). One rule for every index: it is valid from -n to n-1; what else happens is the option
// `bounds`.
#include <cstring>

#include "ops/eval.h"

namespace rlx {

// ---- the bounds rule (OPS.md 3.1) ----

// The position that an index means in a dim of size n, or -1 where it is to be ignored.
static Result<int64_t> checked_index(const EvalArgs& args, int64_t index, int64_t n, int64_t position) {
  int64_t normal = index < 0 ? index + n : index;
  if (normal >= 0 && normal < n) return normal;
  if (args.bounds == Bounds::kError)
    return args
        .fail(Code::kRange,
              format("index %lld at position %lld is outside a size of %lld", static_cast<long long>(index),
                     static_cast<long long>(position), static_cast<long long>(n)))
        .with("got", std::to_string(index))
        .with("expected", format("%lld..%lld", static_cast<long long>(-n), static_cast<long long>(n - 1)));
  if (args.bounds == Bounds::kDrop || n == 0) return -1;
  return std::clamp<int64_t>(normal, 0, n - 1);
}

static int64_t index_at(const Operand& indices, int64_t i) {
  return indices.dtype == DType::kI32 ? indices.as<int32_t>()[i] : indices.as<int64_t>()[i];
}

// ---- iota ----

Status infer_iota(InferArgs& args) {
  const auto& shape = args.attrs.dims("shape");
  if (shape.empty()) return args.fail(Code::kShape, "iota needs an axis: rank 1 or more");
  RLX_TRY(args.axis(args.attrs.i64("axis"), shape.size()));
  for (const Dim& dim : shape)
    if (args.graph.range(dim).hi < 0) return args.fail(Code::kShape, "the size " + dim.text() + " is negative");
  args.out[0] = {args.attrs.dtype("dtype"), shape};
  return {};
}

Status eval_iota(EvalArgs& args) {
  const Operand& out = args.out[0];
  size_t axis = static_cast<size_t>(normal_axis(args.attrs.i64("axis"), out.rank()));
  Dims step(out.rank());
  step[axis] = 1;
  visit<dtypes::N>(out.dtype, [&]<class T>() {
    Odometer<1> at(out.dims, {step});
    int64_t count = out.count();
    for (int64_t i = 0; i < count; i++, at.next()) out.as<T>()[i] = T(static_cast<Compute<T>>(at.offset(0)));
  });
  return {};
}

// ---- gather ----

Status infer_gather(InferArgs& args) {
  bool quantised = is_block(args.in[0]->dtype);
  if (args.rank() == 0) return args.fail(Code::kShape, "a scalar has no axis to gather along");
  int64_t axis = RLX_TRY(args.axis(args.attrs.i64("axis"), args.rank()));
  if (quantised && axis == static_cast<int64_t>(args.rank()) - 1)
    return args.fail(Code::kShape, "a block-quantised x is gathered by rows, not along its last axis");
  std::vector<Dim> dims = args.dims(0);
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, args.dims(1).begin(), args.dims(1).end());
  args.out[0] = {quantised ? args.attrs.dtype("dequant") : args.in[0]->dtype, std::move(dims)};
  return {};
}

Status eval_gather(EvalArgs& args) {
  const Operand &x = args.in[0], &indices = args.in[1], &out = args.out[0];
  if (is_block(x.dtype)) return args.fail(Code::kUnsupported, "block-quantised rows come with `dequantize`");
  size_t axis = static_cast<size_t>(normal_axis(args.attrs.i64("axis"), x.rank()));
  std::span<const int64_t> dims(x.dims);
  int64_t outer = *element_count(dims.first(axis)), n = dims[axis], picked = indices.count();
  int64_t row = *element_count(dims.subspan(axis + 1)) * element_bytes(x.dtype);
  for (int64_t i = 0; i < picked; i++) {
    if (outer == 0) break;
    int64_t from = RLX_TRY(checked_index(args, index_at(indices, i), n, i));
    for (int64_t p = 0; p < outer && row; p++) {
      std::byte* to = out.data + (p * picked + i) * row;
      if (from < 0)
        std::memset(to, 0, static_cast<size_t>(row));
      else
        std::memcpy(to, x.data + (p * n + from) * row, static_cast<size_t>(row));
    }
  }
  return {};
}

}  // namespace rlx
