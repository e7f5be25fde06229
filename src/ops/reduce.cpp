// SPDX-License-Identifier: Apache-2.0
// Reductions (OPS.md 4.5, 5.3). Sums of floats run in f64, whatever is stored: the class of a reference sum is one
// rounding.
#include <cmath>

#include "ops/eval.h"
#include "ops/expr.h"

namespace rlx {

static Result<std::vector<int64_t>> reduced_axes(InferArgs& args) {
  if (args.attrs.has("axes")) return args.axes(args.attrs.i64s("axes"), args.rank());
  return trailing_axes(0, args.rank());
}

Status infer_reduce(InferArgs& args) {
  DType dtype = args.in[0]->dtype;
  bool adds = args.attrs.is("fn", "sum") || args.attrs.is("fn", "prod");
  if (adds ? dtype == DType::kBool : is_complex(dtype))
    return args.fail(Code::kDtype, args.attrs.str("fn") + " is not defined for " + std::string(name(dtype)));
  std::vector<int64_t> axes = RLX_TRY(reduced_axes(args));
  size_t next = 0;
  for (size_t i = 0; i < args.rank(); i++) {
    bool reduced = next < axes.size() && axes[next] == static_cast<int64_t>(i);
    next += reduced;
    if (!reduced)
      args.out[0].dims.push_back(args.dims()[i]);
    else if (args.attrs.flag("keep_dims"))
      args.out[0].dims.push_back(1);
  }
  return {};
}

// What a fold of T is kept in: floats in f64, complex in c128, integers and bools in themselves.
template <class T>
using Wide =
    std::conditional_t<is_complex_type<T>, c128,
                       std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, bool8>, Compute<T>, double>>;

struct Fold {
  enum Kind { kSum, kProd, kMax, kMin } kind;

  static Fold of(const Attrs& attrs) {
    const std::string& fn = attrs.str("fn");
    return {fn == "sum" ? kSum : fn == "prod" ? kProd : fn == "max" ? kMax : kMin};
  }

  // OPS.md D7: what the fold of nothing is.
  template <class W>
  W identity() const {
    if constexpr (is_complex_type<W>) {
      return kind == kProd ? W(1) : W(0);
    } else {
      using Limits = std::numeric_limits<W>;
      if (kind == kSum) return W(0);
      if (kind == kProd) return W(1);
      if constexpr (Limits::has_infinity)
        return kind == kMax ? -Limits::infinity() : Limits::infinity();
      else
        return kind == kMax ? Limits::lowest() : Limits::max();
    }
  }

  template <class W>
  W operator()(W a, W b) const {
    if constexpr (is_complex_type<W>) {
      return kind == kSum ? a + b : a * b;
    } else if constexpr (std::is_same_v<W, bool>) {
      return kind == kMax ? a || b : a && b;
    } else if constexpr (std::is_integral_v<W>) {
      using U = std::common_type_t<std::make_unsigned_t<W>, unsigned>;
      if (kind == kSum) return static_cast<W>(static_cast<U>(a) + static_cast<U>(b));
      if (kind == kProd) return static_cast<W>(static_cast<U>(a) * static_cast<U>(b));
      return kind == kMax ? std::max(a, b) : std::min(a, b);
    } else {
      if (kind == kSum) return a + b;
      if (kind == kProd) return a * b;
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<W>::quiet_NaN();
      return kind == kMax ? std::max(a, b) : std::min(a, b);
    }
  }
};

// Input dims split into the kept ones (with the strides of both sides) and the reduced ones.
struct ReducedAxes {
  Dims kept, kept_strides, reduced, reduced_strides;
  ReducedAxes(const EvalArgs& args, const Operand& in) {
    Dims strides = dense_strides(in.dims);
    std::vector<bool> is_reduced(in.rank(), !args.attrs.has("axes"));
    if (args.attrs.has("axes"))
      for (int64_t axis : args.attrs.i64s("axes")) is_reduced[static_cast<size_t>(normal_axis(axis, in.rank()))] = true;
    for (size_t i = 0; i < in.rank(); i++) {
      (is_reduced[i] ? reduced : kept).push_back(in.dims[i]);
      (is_reduced[i] ? reduced_strides : kept_strides).push_back(strides[i]);
    }
  }
};

Status eval_reduce(EvalArgs& args) {
  const Operand &in = args.in[0], &out = args.out[0];
  ReducedAxes axes(args, in);
  Fold fold = Fold::of(args.attrs);
  int64_t terms = *element_count(std::span<const int64_t>(axes.reduced)), count = out.count();
  visit<dtypes::N | dtypes::B | dtypes::Z>(in.dtype, [&]<class T>() {
    using W = Wide<T>;
    Odometer<1> at(axes.kept, {axes.kept_strides});
    for (int64_t i = 0; i < count; i++, at.next()) {
      W sum = fold.identity<W>();
      Odometer<1> term(axes.reduced, {axes.reduced_strides});
      for (int64_t k = 0; k < terms; k++, term.next())
        sum = fold(sum, static_cast<W>(static_cast<Compute<T>>(in.as<T>()[at.offset(0) + term.offset(0)])));
      out.as<T>()[i] = T(static_cast<Compute<T>>(sum));
    }
  });
  return {};
}

// ---- composites ----

Outputs decompose_mean(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  Axes axes = attrs.has("axes") ? attrs.i64s("axes") : trailing_axes(0, x.rank());
  Dim count = 1;
  for (int64_t axis : axes) count *= x.dim(axis);
  Expr total = reduce(x, "sum", axes, attrs.flag("keep_dims"));
  return {total / x.builder().size(count, x.dtype())};
}

}  // namespace rlx
