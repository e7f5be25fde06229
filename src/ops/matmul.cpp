// SPDX-License-Identifier: Apache-2.0
// Contractions.
#include "base/contains.h"
#include "ops/blocks.h"
#include "ops/contraction.h"
#include "ops/eval.h"

namespace rlx {

// The legal dtypes of the result: the default first, then those that out_dtype may name.
static Result<std::vector<DType>> product_dtypes(InferArgs& args) {
  DType a = args.in[0]->dtype, b = args.in[1]->dtype;
  if (is_block(b)) {
    if (a == DType::kF32) return std::vector{a};
    if (is_half(a)) return std::vector{a, DType::kF32};
  } else if (kEightBit.has(a) && kEightBit.has(b)) {
    return std::vector{DType::kI32};
  } else if (dtypes::E.has(a) && dtypes::E.has(b)) {
    return std::vector{DType::kF32, DType::kF16, DType::kBF16};
  } else if (a == b && is_half(a)) {
    return std::vector{a, DType::kF32};
  } else if (a == b && (dtypes::N | dtypes::Z).has(a)) {
    return std::vector{a};
  }
  return Status(Code::kDtype, format("no product of {} and {}", a, b))
      .with("input", "b")
      .with("expected", name(a))
      .with("got", name(b));
}

Status infer_matmul(InferArgs& args) {
  std::vector<DType> legal = RLX_TRY(product_dtypes(args));
  DType dtype = args.attrs.has("out_dtype") ? args.attrs.dtype("out_dtype") : legal[0];
  if (!contains(legal, dtype)) return args.fail(Code::kDtype, "out_dtype may not be " + std::string(name(dtype)));
  if (dtype == legal[0]) args.attrs = args.attrs.with("out_dtype", {});  // the default: absent in normal form
  if (args.rank(0) < 2) return wrong_rank("a", "2 or more", args.rank(0));
  if (args.rank(1) < 2) return wrong_rank("b", "2 or more", args.rank(1));
  bool flip_a = args.attrs.flag("transpose_a"), flip_b = args.attrs.flag("transpose_b");
  if (is_block(args.in[1]->dtype) && !flip_b)
    return args.fail(Code::kShape, "a block-quantised b is stored [N,K]: transpose_b must be true");
  std::span<const Dim> a = args.dims(0), b = args.dims(1);
  const Dim &rows = a[a.size() - 2 + flip_a], &inner_a = a[a.size() - 1 - flip_a];
  const Dim &inner_b = b[b.size() - 2 + flip_b], &columns = b[b.size() - 1 - flip_b];
  RLX_TRY(args.same(inner_a, inner_b, "the inner sizes of a and b"));
  std::vector<Dim> dims = RLX_TRY(args.broadcast(a.first(a.size() - 2), b.first(b.size() - 2)));
  dims.push_back(rows);
  dims.push_back(columns);
  args.out[0] = {dtype, std::move(dims)};
  return {};
}

// Element strides of one operand: rows of the result (or columns), the inner axis, and its batch dims.
struct Side {
  int64_t outer, inner;
  Dims batch;
  Side(const Operand& operand, bool inner_is_last, std::span<const int64_t> batch_dims) {
    Dims dense = dense_strides(operand.dims);
    size_t rank = operand.rank();
    outer = dense[inner_is_last ? rank - 2 : rank - 1];
    inner = dense[inner_is_last ? rank - 1 : rank - 2];
    std::span<const int64_t> own = std::span<const int64_t>(operand.dims).first(rank - 2);
    batch = broadcast_strides(own, batch_dims);
    int64_t matrix = operand.dims[rank - 1] * operand.dims[rank - 2];
    for (int64_t& stride : batch) stride *= matrix;
  }
};

template <class A, class B, class Out>
static void product(const EvalArgs& args, const Operand& b) {
  const Operand &a = args.in[0], &out = args.out[0];
  bool flip_a = args.attrs.flag("transpose_a"), flip_b = args.attrs.flag("transpose_b");
  std::span<const int64_t> out_dims(out.dims), batch_dims = out_dims.first(out.rank() - 2);
  Side left(a, !flip_a, batch_dims), right(b, flip_b, batch_dims);
  int64_t rows = out_dims[out.rank() - 2], columns = out_dims[out.rank() - 1];
  int64_t inner = a.dims[a.rank() - 1 - flip_a], batches = *element_count(batch_dims);
  Odometer<2> at(batch_dims, {left.batch, right.batch});
  using Sum = Accumulator<A>;
  for (int64_t batch = 0; batch < batches; batch++, at.next())
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) {
        const A* x = a.as<A>() + at.offset(0) + i * left.outer;
        const B* y = b.as<B>() + at.offset(1) + j * right.outer;
        Sum sum = 0;
        for (int64_t k = 0; k < inner; k++) sum += term<Sum>(x[k * left.inner]) * term<Sum>(y[k * right.inner]);
        out.as<Out>()[(batch * rows + i) * columns + j] = rounded<Out>(sum);
      }
}

Status eval_matmul(EvalArgs& args) {
  const Operand& b = args.in[1];
  DType a = args.in[0].dtype, out = args.out[0].dtype;
  if (is_block(b.dtype)) {
    Tensor weights = RLX_TRY(decoded(b));
    visit<dtypes::F>(a, [&]<class A>() {
      Operand values = Operand::of(weights);
      out == a ? product<A, float, A>(args, values) : product<A, float, float>(args, values);
    });
  } else if (kEightBit.has(a)) {
    visit<kEightBit>(
        a, [&]<class A>() { visit<kEightBit>(b.dtype, [&]<class B>() { product<A, B, int32_t>(args, b); }); });
  } else if (dtypes::E.has(a)) {
    visit<dtypes::E>(a, [&]<class A>() {
      visit<dtypes::E>(b.dtype,
                       [&]<class B>() { visit<dtypes::F>(out, [&]<class Out>() { product<A, B, Out>(args, b); }); });
    });
  } else if (is_half(a)) {
    visit<dtypes::F>(a, [&]<class T>() { out == a ? product<T, T, T>(args, b) : product<T, T, float>(args, b); });
  } else {
    visit<dtypes::N | dtypes::Z>(a, [&]<class T>() { product<T, T, T>(args, b); });
  }
  return {};
}

}  // namespace rlx
