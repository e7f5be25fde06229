// SPDX-License-Identifier: Apache-2.0
// Padding: in every mode each output position of an axis reads one position of x or none. A table per axis says which.
#include "ops/eval.h"

namespace rlx {

static Status check_pad(InferArgs& args) {
  const Attrs& attrs = args.attrs;
  if (args.in[1] && args.rank(1) != 0) return wrong_rank("value", "0", args.rank(1));
  if (attrs.is("mode", "constant")) return {};
  if (args.in[1]) return args.fail(Code::kInvalidArgument, "mode " + attrs.str("mode") + " takes no value");
  for (int64_t between : attrs.i64s("interior"))
    if (between) return args.fail(Code::kOption, "interior padding is of mode constant alone");
  return {};
}

Status infer_pad(InferArgs& args) {
  RLX_TRY(check_pad(args));
  const auto &lo = args.attrs.dims("lo"), &hi = args.attrs.dims("hi");
  for (size_t i = 0; i < args.rank(); i++) {
    const Dim& n = args.dims()[i];
    Dim spread = n + args.not_negative(n - 1) * args.attrs.i64s("interior")[i];
    Dim length = args.not_negative(spread + lo[i] + hi[i]);
    bool may_grow = args.graph.range(lo[i]).hi > 0 || args.graph.range(hi[i]).hi > 0;
    if (may_grow && !args.attrs.is("mode", "constant"))
      RLX_TRY(args.require_le(min(Dim(1), length), n, format("axis {} has nothing to pad with", i)));
    args.out[0].dims.push_back(std::move(length));
  }
  return {};
}

static int64_t modulo(int64_t a, int64_t n) {
  int64_t rest = a % n;
  return rest < 0 ? rest + n : rest;
}

// The position that reflection reads for position i, which may lie outside an axis with n > 0 elements.
static int64_t reflected(int64_t i, int64_t n) {
  if (n == 1) return 0;
  int64_t period = 2 * (n - 1), at = modulo(i, period);
  return at < n ? at : period - at;
}

// The position that each of `length` output positions reads; -1: the pad value.
static Result<std::vector<int64_t>> sources(const EvalArgs& args, size_t axis, int64_t lo) {
  int64_t n = args.in[0].dims[axis], length = args.out[0].dims[axis];
  int64_t step = args.attrs.i64s("interior")[axis] + 1;
  const std::string& mode = args.attrs.str("mode");
  if (n == 0 && length > 0 && mode != "constant")
    return args.fail(Code::kShape, format("axis {} has nothing to pad with", axis));
  std::vector<int64_t> from(static_cast<size_t>(length));
  for (int64_t j = 0; j < length; j++) {
    int64_t i = j - lo;
    if (mode == "constant")
      i = i >= 0 && i % step == 0 && i / step < n ? i / step : -1;
    else
      i = mode == "edge" ? std::clamp<int64_t>(i, 0, n - 1) : mode == "wrap" ? modulo(i, n) : reflected(i, n);
    from[static_cast<size_t>(j)] = i;
  }
  return from;
}

Status eval_pad(EvalArgs& args) {
  const Operand &x = args.in[0], &value = args.in[1], &out = args.out[0];
  int64_t count = out.count();
  if (count == 0) return {};
  std::vector<std::vector<int64_t>> from;
  const auto& lo = args.attrs.dims("lo");
  for (size_t i = 0; i < out.rank(); i++)
    from.push_back(RLX_TRY(sources(args, i, RLX_TRY(evaluate(lo[i], args.sizes)))));
  Dims strides = dense_strides(x.dims);
  visit<dtypes::A>(out.dtype, [&]<class T>() {
    T fill = value ? *value.as<T>() : T();
    Odometer<1> at(out.dims, {strides});
    for (int64_t i = 0; i < count; i++, at.next()) {
      int64_t offset = 0;
      for (size_t k = 0; k < out.rank() && offset >= 0; k++) {
        int64_t source = from[k][static_cast<size_t>(at.index()[k])];
        offset = source < 0 ? -1 : offset + source * strides[k];
      }
      out.as<T>()[i] = offset < 0 ? fill : x.as<T>()[offset];
    }
  });
  return {};
}

}  // namespace rlx
