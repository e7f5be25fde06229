// SPDX-License-Identifier: Apache-2.0
// Scatters: y is x with updates folded in, index by index in row-major order. Each element is rounded
// once, after its last update.
#include <cstring>
#include <memory>

#include "ops/fold.h"
#include "ops/index.h"

namespace rlx {

// The common checks: u has the shape that the gather would give, and its dtype has the reduction.
static Status infer_updates(InferArgs& args, std::vector<Dim> picked) {
  const std::vector<Dim>& updates = args.dims(2);
  if (updates.size() != picked.size())
    return args
        .fail(Code::kShape, format("u has rank {}, the indices pick {}", updates.size(), plural(picked.size(), "axis")))
        .with("expected", text_of(picked))
        .with("got", text_of(updates));
  for (size_t i = 0; i < picked.size(); i++) RLX_TRY(args.same(picked[i], updates[i], format("axis {} of u", i)));
  DType dtype = args.in[0]->dtype;
  const std::string& reduction = args.attrs.str("reduction");
  if (reduction != "none" && (dtypes::E.has(dtype) || !Fold::named(reduction).accepts(dtype)))
    return args.fail(Code::kDtype, "reduction " + reduction + " is not defined for " + std::string(name(dtype)));
  args.out[0].dims = args.dims(0);
  return {};
}

Status infer_scatter(InferArgs& args) {
  return infer_updates(args, RLX_TRY(picked_along_axis(args)));
}
Status infer_scatter_elements(InferArgs& args) {
  return infer_updates(args, RLX_TRY(picked_elements(args)));
}
Status infer_scatter_nd(InferArgs& args) {
  return infer_updates(args, RLX_TRY(picked_nd(args)));
}

// The kind of the fold is decided for a row, not for each of its elements.
template <Fold::Kind kKind, class T>
static void fold_row(Wide<T>* sums, const T* row, int64_t run) {
  constexpr Fold kFold{kKind};
  for (int64_t k = 0; k < run; k++) sums[k] = kFold(sums[k], widened(row[k]));
}
template <class T>
static auto row_fold(Fold fold) {
  switch (fold.kind) {
    case Fold::kSum: return fold_row<Fold::kSum, T>;
    case Fold::kProd: return fold_row<Fold::kProd, T>;
    case Fold::kMax: return fold_row<Fold::kMax, T>;
    default: return fold_row<Fold::kMin, T>;
  }
}

// Applies the updates that `walk(visit)` enumerates.
template <class Walk>
static Status apply_updates(EvalArgs& args, Walk walk) {
  const Operand &x = args.in[0], &updates = args.in[2], &out = args.out[0];
  int64_t count = out.count(), unit = element_bytes(x.dtype);
  if (args.attrs.is("reduction", "none")) {
    if (count) std::memcpy(out.data, x.data, static_cast<size_t>(count * unit));
    return walk([&](int64_t at, int64_t i, int64_t run) {
      if (at >= 0) std::memcpy(out.data + at * unit, updates.data + i * unit, static_cast<size_t>(run * unit));
    });
  }
  return visit<dtypes::D>(x.dtype, [&]<class T>() -> Status {
    auto fold = row_fold<T>(Fold::named(args.attrs.str("reduction")));
    auto sums = std::make_unique_for_overwrite<Wide<T>[]>(static_cast<size_t>(count));
    const T *from = x.as<T>(), *rows = updates.as<T>();
    T* to = out.as<T>();
    for (int64_t k = 0; k < count; k++) sums[static_cast<size_t>(k)] = widened(from[k]);
    RLX_TRY(walk([&](int64_t at, int64_t i, int64_t run) {
      if (at >= 0) fold(sums.get() + at, rows + i, run);
    }));
    for (int64_t k = 0; k < count; k++) to[k] = narrowed<T>(sums[static_cast<size_t>(k)]);
    return {};
  });
}

Status eval_scatter(EvalArgs& args) {
  return apply_updates(args, [&](auto visit) { return walk_axis(args, args.in[0], args.in[1], visit); });
}
Status eval_scatter_elements(EvalArgs& args) {
  return apply_updates(args, [&](auto visit) { return walk_elements(args, args.in[0], args.in[1], visit); });
}
Status eval_scatter_nd(EvalArgs& args) {
  return apply_updates(args, [&](auto visit) { return walk_nd(args, args.in[0], args.in[1], visit); });
}

}  // namespace rlx
