// SPDX-License-Identifier: Apache-2.0
// Leaves. They have no eval: the caller of a run supplies their values.
#include "ops/eval.h"

namespace rlx {

Status infer_leaf(InferArgs& args) {
  args.out[0] = {args.attrs.dtype("dtype"), args.attrs.dims("shape")};
  bool is_param = args.info.op() == Op::kParam;
  for (const Dim& dim : args.out[0].dims) {
    if (is_param && !dim.is_literal())
      return args.fail(Code::kShape, "a param has sizes that are numbers, not " + dim.text());
    if (dim.is_literal() && dim.literal() < 0) return args.fail(Code::kShape, "a size is negative: " + dim.text());
  }
  if (is_block(args.out[0].dtype) && !is_param && !args.graph.is_prologue())
    return args.fail(Code::kDtype, "block-quantised types are for params and constants");
  return {};
}

Status infer_prepack(InferArgs& args) {
  args.out[0] = {DType::kU8, {args.attrs.i64("bytes")}};
  return {};
}

Status infer_constant(InferArgs& args) {
  const Tensor& value = args.attrs.tensor("value");
  args.out[0].dtype = value.dtype();
  args.out[0].dims.assign(value.dims().begin(), value.dims().end());
  return {};
}

}  // namespace rlx
