// SPDX-License-Identifier: Apache-2.0
// Folds over sliding windows. Positions outside x contribute nothing, so a window without elements gives
// the identity.
#include <algorithm>
#include <memory>

#include "ops/eval.h"
#include "ops/fold.h"

namespace rlx {

// Window attributes over numbers.
struct Windows {
  Dims window, stride, dilation, lo;

  static Result<Windows> of(const EvalArgs& args) {
    auto list = [&](std::string_view name) { return Dims(std::span<const int64_t>(args.attrs.i64s(name))); };
    Dims lo = RLX_TRY(args.dims("pad_lo"));
    return Windows{list("window"), list("strides"), list("dilation"), std::move(lo)};
  }

  // Calls visit(offset in x) for each element of the window at output index o, in row-major order.
  // Only elements inside of x are counted: a window may be far larger than x.
  template <class Visit>
  void visit_elements(const Dims& dims, const Dims& strides, const Dims& o, Visit visit) const {
    Dims counts(dims.size(), 0), steps(dims.size(), 0);
    int64_t offset = 0, count = 1;
    for (size_t i = 0; i < dims.size(); i++) {
      int64_t begin = o[i] * stride[i] - lo[i], first = 0;
      if (begin < 0) first = (-begin - 1) / dilation[i] + 1;
      int64_t last = begin < dims[i] ? std::min(window[i] - 1, (dims[i] - 1 - begin) / dilation[i]) : -1;
      counts[i] = std::max<int64_t>(last - first + 1, 0);
      if (counts[i] == 0) return;
      count *= counts[i];
      offset += (begin + first * dilation[i]) * strides[i];
      steps[i] = dilation[i] * strides[i];
    }
    Odometer<1> at(counts, {steps});
    for (int64_t k = 0; k < count; k++, at.next()) visit(offset + at.offset(0));
  }
};

static Result<std::vector<Dim>> window_counts(InferArgs& args) {
  const Attrs& attrs = args.attrs;
  for (std::string_view name : {"pad_lo", "pad_hi"})
    for (const Dim& pad : attrs.dims(name))
      if (args.graph.range(pad).lo < 0) return args.fail(Code::kOption, format("'{}' may be negative: {}", name, pad));
  std::vector<Dim> counts;
  for (size_t i = 0; i < args.rank(); i++) {
    Dim padded = args.dims()[i] + attrs.dims("pad_lo")[i] + attrs.dims("pad_hi")[i];
    Dim reach = Dim(attrs.i64s("window")[i] - 1) * attrs.i64s("dilation")[i] + 1;
    counts.push_back(args.not_negative(floor_div(padded - reach, attrs.i64s("strides")[i]) + 1));
  }
  return counts;
}

// ---- reduce_window ----

Status infer_reduce_window(InferArgs& args) {
  RLX_TRY(check_fold(args));
  args.out[0].dims = RLX_TRY(window_counts(args));
  return {};
}

Status eval_reduce_window(EvalArgs& args) {
  const Operand &x = args.in[0], &out = args.out[0];
  Windows windows = RLX_TRY(Windows::of(args));
  Fold fold = Fold::named(args.attrs.str("fn"));
  Dims strides = dense_strides(x.dims);
  int64_t count = out.count();
  visit<dtypes::N | dtypes::B | dtypes::Z>(x.dtype, [&]<class T>() {
    Odometer<1> at(out.dims, {dense_strides(out.dims)});
    for (int64_t i = 0; i < count; i++, at.next()) {
      Wide<T> sum = fold.identity<Wide<T>>();
      windows.visit_elements(x.dims, strides, at.index(),
                             [&](int64_t offset) { sum = fold(sum, widened(x.as<T>()[offset])); });
      out.as<T>()[i] = narrowed<T>(sum);
    }
  });
  return {};
}

// ---- select_and_scatter ----

Status infer_select_and_scatter(InferArgs& args) {
  std::vector<Dim> counts = RLX_TRY(window_counts(args));
  if (args.rank(1) != counts.size()) return wrong_rank("u", format("{}, that of x", counts.size()), args.rank(1));
  for (size_t i = 0; i < counts.size(); i++)
    RLX_TRY(args.same(counts[i], args.dims(1)[i], format("axis {} of u, one entry per window", i)));
  args.out[0].dims = args.dims();
  return {};
}

// Whether a candidate replaces the extreme so far. The first NaN wins and stays.
template <class C>
static bool replaces(C candidate, C extreme, bool largest) {
  if (std::isnan(extreme)) return false;
  return std::isnan(candidate) || (largest ? candidate > extreme : candidate < extreme);
}

Status eval_select_and_scatter(EvalArgs& args) {
  const Operand &x = args.in[0], &updates = args.in[1], &out = args.out[0];
  Windows windows = RLX_TRY(Windows::of(args));
  bool largest = args.attrs.is("fn", "max");
  Dims strides = dense_strides(x.dims);
  int64_t count = updates.count(), size = out.count();
  visit<dtypes::F>(x.dtype, [&]<class T>() {
    auto sums = std::make_unique<double[]>(static_cast<size_t>(size));
    Odometer<1> at(updates.dims, {dense_strides(updates.dims)});
    for (int64_t i = 0; i < count; i++, at.next()) {
      int64_t chosen = -1;
      windows.visit_elements(x.dims, strides, at.index(), [&](int64_t offset) {
        if (chosen < 0 || replaces(widened(x.as<T>()[offset]), widened(x.as<T>()[chosen]), largest)) chosen = offset;
      });
      if (chosen >= 0) sums[static_cast<size_t>(chosen)] += widened(updates.as<T>()[i]);
    }
    for (int64_t i = 0; i < size; i++) out.as<T>()[i] = narrowed<T>(sums[static_cast<size_t>(i)]);
  });
  return {};
}

}  // namespace rlx
