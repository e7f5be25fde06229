// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that give the same elements other dims, and those that read shapes or make values of a shape.
#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/fold.h"
#include "import/onnx/importer.h"
#include "import/onnx/random.h"
#include "import/onnx/run_sizes.h"
#include "ops/fill.h"
#include "ops/interpret.h"

namespace rlx::onnx {

namespace {

// ---- same elements, other dims ----

std::vector<Dim> unsqueezed(Call& call, const std::vector<Dim>& dims, std::vector<int64_t> axes) {
  axes = call.axes(axes, dims.size() + axes.size());
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) call.fail(Code::kData, "an axis is named twice");
  std::vector<Dim> result = dims;
  for (int64_t axis : axes)
    result.insert(result.begin() + std::min<int64_t>(axis, static_cast<int64_t>(result.size())), Dim(1));
  return result;
}

// Without axes: all literal 1s.
std::vector<Dim> squeezed(Call& call, const std::vector<Dim>& dims, std::vector<int64_t> axes, bool all) {
  axes = call.axes(axes, dims.size());
  std::vector<Dim> result;
  for (size_t i = 0; i < dims.size(); i++) {
    bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (named && dims[i].is_literal() && !dims[i].is(1))
      call.fail(Code::kShape, format("axis {} is {}, not 1", i, dims[i]));
    if (named || (all && dims[i].is(1))) continue;
    result.push_back(dims[i]);
    Interval range = call.range(dims[i]);
    if (!all || range.lo > 1 || range.hi < 1) continue;
    // An open size is assumed not to be 1, and kept; for sizes of 1 the graph is built again.
    call.importer().assume_sizes();
    Guard is_not_one{Guard::kEqual, is_equal(dims[i], Dim(1)), Dim(0), "squeeze"};
    if (Status status = call.builder().graph().declare_guard(is_not_one); !status.ok()) call.fail(status);
  }
  return result;
}

// The axes: an attribute before opset 13, an input since.
std::vector<int64_t> axes_of(Call& call, size_t input) {
  if (call.opset() < 13) return call.i64s("axes");
  return call.has(input) ? call.numbers(input, "axes") : std::vector<int64_t>();
}

std::vector<Dim> dims_unsqueeze(Call& call) {
  return unsqueezed(call, call.type(0).dims, axes_of(call, 1));
}

std::vector<Dim> dims_squeeze(Call& call) {
  bool all = call.opset() < 13 ? !call.has_attr("axes") : !call.has(1);
  return squeezed(call, call.type(0).dims, axes_of(call, 1), all);
}

std::vector<Dim> dims_flatten(Call& call) {
  const std::vector<Dim>& dims = call.type(0).dims;
  auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = call.i64("axis", 1);
  if (axis < -rank || axis > rank) call.fail(Code::kRange, "'axis' is outside the rank");
  axis = std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  std::span<const Dim> all(dims);
  return {element_count(all.first(static_cast<size_t>(axis))), element_count(all.subspan(static_cast<size_t>(axis)))};
}

// A 0 copies the input's size unless allowzero says that it is one.
std::vector<Dim> dims_reshape(Call& call) {
  bool zero_is_size = call.i64("allowzero", 0) != 0;
  std::vector<Dim> shape;
  if (call.opset() < 5)
    for (int64_t size : call.i64s("shape")) shape.emplace_back(size);
  else
    shape = call.dims(1, "shape");
  const std::vector<Dim>& from = call.type(0).dims;
  for (size_t i = 0; i < shape.size() && !zero_is_size; i++)
    if (shape[i].is(0) && i < from.size()) shape[i] = from[i];
  return shape;
}

template <std::vector<Dim> (*kDims)(Call&)>
void build_view(Call& call) {
  std::vector<Dim> dims = kDims(call);
  call.out(0, reshape(call.in(0), std::move(dims)));
}

void build_reshape(Call& call) {
  if (call.opset() < 5 || !call.has(1) || call.sizes(1)) return build_view<dims_reshape>(call);
  call.out(0, reshape_in_run(call, call.in(0), call.in(1), call.i64("allowzero", 0) != 0));
}

// Sizes keep their order; -1 stands for as many elements as are left.
template <std::vector<Dim> (*kDims)(Call&)>
Folded fold_view(Call& call) {
  const Sizes* x = call.sizes(0);
  if (!x || (call.inputs() > 1 && !call.sizes(1))) return std::nullopt;
  Sizes result{x->dtype, {}, x->items};
  std::vector<int64_t> known;
  for (const Dim& dim : kDims(call)) {
    if (!dim.is_literal()) return std::nullopt;
    result.dims.push_back(dim.literal());
    if (dim.literal() != -1) known.push_back(dim.literal());
  }
  auto rest = element_count(std::span<const int64_t>(known));  // nullopt: negative or far too large
  if (!rest || known.size() + 1 < result.dims.size()) return std::nullopt;
  auto count = static_cast<int64_t>(x->items.size());
  if (known.size() == result.dims.size()) return *rest == count ? Folded(result) : std::nullopt;
  if (*rest == 0 || count % *rest != 0) return std::nullopt;
  *std::find(result.dims.begin(), result.dims.end(), -1) = count / *rest;
  return result;
}

void build_identity(Call& call) {
  if (!call.has(0) || call.value(0)->is_sequence) return call.out_value(0, 0);
  call.out(0, call.in(0));
}

// In training it drops random elements; otherwise it is the identity, with a mask that is all true. Since opset 12 the
// ratio is an input and training_mode exists.
void build_dropout(Call& call) {
  bool trains = call.has(2) && call.numbers(2, "training_mode") != std::vector<int64_t>{0};
  for (const char* unused : {"ratio", "is_test"}) call.ignore(unused);
  double ratio = 0.5;
  if (trains && call.has(1)) {
    std::vector<double> given = call.reals(1, "ratio");
    ratio = given.size() == 1 ? given[0] : -1;
  }
  if (trains && ratio != 0) {
    auto [key, counter] = random_state(call);
    Expr in[] = {call.in(0), key, counter};
    Outputs y = call.ops("dropout", in, {{"p", ratio}});
    for (size_t i = 0; i < 2 && i < y.size(); i++) call.out(i, y[i]);
    return;
  }
  call.ignore("seed");
  call.out(0, call.in(0));
  DType mask = call.opset() < 10 ? call.type(0).dtype : DType::kBool;
  if (call.wants(1)) call.out(1, broadcast_to(call.builder().scalar(mask, 1), call.type(0).dims));
}

void build_transpose(Call& call) {
  std::vector<int64_t> perm = call.i64s("perm");
  if (!call.has_attr("perm"))
    for (size_t i = call.type(0).rank(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  call.out(0, transpose(call.in(0), perm));
}

// ---- shapes as values ----

Folded fold_shape(Call& call) {
  const std::vector<Dim>& dims = call.type(0).dims;
  auto rank = static_cast<int64_t>(dims.size());
  int64_t start = call.i64("start", 0), end = call.i64("end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, start, rank);
  return Sizes{DType::kI64, {end - start}, {dims.begin() + start, dims.begin() + end}};
}

Folded fold_size(Call& call) {
  return Sizes{DType::kI64, {}, {element_count(call.type(0).dims)}};
}

// Shape and Size always fold, unless the value has no type.
void build_never(Call& call) {
  call.fail(Code::kData, "its input has no shape");
}

// The value is a tensor of one element, 0.f if it is left out.
Tensor fill_of(Call& call) {
  const TensorProto* proto = call.tensor("value");
  auto value = proto ? call.importer().read(*proto) : scalar_tensor(DType::kF32, 0);
  if (!value.ok()) return call.fail(value.status().code(), std::string(value.status().message())), Tensor();
  if (value->count() != 1) return call.fail(Code::kData, "'value' is not one element"), Tensor();
  return *value->reshaped({});
}

void build_constant_of_shape(Call& call) {
  Tensor fill = fill_of(call);
  std::vector<Dim> shape = call.run_dims(0, "shape");
  if (fill) call.out(0, broadcast_to(call.builder().constant(fill), shape));
}

Folded fold_constant_of_shape(Call& call) {
  const Sizes* shape = call.sizes(0);
  Tensor fill = fill_of(call);
  Folded result = fill ? sizes_of(fill) : std::nullopt;
  if (!shape || !result) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Dim& dim : shape->items) {
    if (!dim.is_literal() || dim.literal() < 0 || dim.literal() > static_cast<int64_t>(kMaxSizes)) return std::nullopt;
    dims.push_back(dim.literal());
  }
  return move_sizes(*result, dims, [](int64_t) { return 0; });
}

// How many numbers a range of literals has; nullopt if the run decides.
std::optional<int64_t> literal_count(Call& call, DType precision) {
  Graph aside;
  Builder builder(aside);
  Expr bounds[3];
  for (size_t i = 0; i < 3; i++) {
    const OnnxValue* value = call.value(i);
    if (value ? !value->tensor || value->tensor.count() != 1 : i < 2) return std::nullopt;
    auto bound = value ? value->tensor.aligned() : scalar_tensor(precision, 1);
    if (!bound.ok()) return std::nullopt;
    bounds[i] = cast(reshape(builder.constant(*bound), std::vector<Dim>()), precision);
  }
  Expr count = range_count(bounds[0], bounds[1], bounds[2]);
  if (!builder.status().ok() || !aside.add_output("count", count.value()).ok()) return std::nullopt;
  auto counted = interpret(aside, {});
  return counted.ok() ? std::optional((*counted)[0].as<int64_t>()[0]) : std::nullopt;
}

// If all three bounds are sizes: start + step * iota, with a length computed from them.
void build_range(Call& call) {
  DType dtype = call.type(0).dtype;
  DType stash = call.dtype("stash_type", DType::kF32);
  DType precision = dtype == DType::kF16 || dtype == DType::kBF16 ? stash : dtype;
  const Sizes* delta = call.sizes(2);
  bool is_sized = is_integer(dtype) && call.sizes(0) && call.sizes(1) && delta && delta->items.size() == 1 &&
                  delta->items[0].is_literal();
  if (!is_sized) {
    Expr in[3];
    for (size_t i = 0; i < 3; i++)
      in[i] = call.has(i) || i < 2 ? cast(reshape(call.in(i), std::vector<Dim>()), precision)
                                   : call.builder().scalar(precision, 1);
    auto count = literal_count(call, precision);
    Expr y = count && *count <= kLargestSymbol ? in[0] + in[2] * iota(call.builder(), {Dim(*count)}, 0, precision)
                                               : call.ops("dynamic_range", in)[0];
    return call.out(0, cast(y, dtype));
  }
  Dim start = call.dims(0, "start").empty() ? 0 : call.dims(0, "start")[0];
  std::vector<Dim> limit = call.dims(1, "limit");
  std::vector<int64_t> step = call.numbers(2, "delta");
  if (limit.size() != 1 || step.size() != 1 || step[0] == 0 || step[0] == INT64_MIN)
    return call.fail(Code::kData, "'limit' or 'delta' is not one number");
  Dim span = step[0] > 0 ? limit[0] - start : start - limit[0];
  int64_t stride = std::abs(step[0]);
  Dim count = floor_div(span + Dim(stride - 1), Dim(stride));
  if (call.range(count).lo < 0) count = max(Dim(0), count);
  Expr y = iota(call.builder(), {count}, 0, dtype);
  Builder& b = call.builder();
  if (step[0] != 1) y = y * (dtype == DType::kI64 ? b.size(step[0], dtype) : b.scalar(dtype, double(step[0])));
  if (!start.is(0)) y = y + call.in(0);
  call.out(0, y);
}

void build_eye_like(Call& call) {
  const ValueType& type = call.type(0);
  DType dtype = type.dtype;
  if (call.has_attr("dtype")) {
    auto given = dtype_of(static_cast<int32_t>(call.i64("dtype", 0)));
    if (!given.ok()) return call.fail(given.status().code(), std::string(given.status().message()));
    dtype = *given;
  }
  if (type.rank() != 2) return call.fail(Code::kData, "its input is not a matrix");
  call.out(0,
           call.op("eye", {}, {{"n", type.dims[0]}, {"m", type.dims[1]}, {"k", call.i64("k", 0)}, {"dtype", dtype}}));
}

constexpr NodeKind kKinds[] = {
    {"Reshape", build_reshape, "", fold_view<dims_reshape>},
    {"Flatten", build_view<dims_flatten>, "", fold_view<dims_flatten>},
    {"Squeeze", build_view<dims_squeeze>, "", fold_view<dims_squeeze>},
    {"Unsqueeze", build_view<dims_unsqueeze>, "", fold_view<dims_unsqueeze>},
    {"Identity", build_identity, "", fold_identity},
    {"Dropout", build_dropout},
    {.op_type = "Transpose", .build = build_transpose, .moves = 1},
    {"Shape", build_never, "", fold_shape},
    {"Size", build_never, "", fold_size},
    {"ConstantOfShape", build_constant_of_shape, "", fold_constant_of_shape},
    {"Range", build_range},
    {"EyeLike", build_eye_like},
    microsoft("Range", build_range),
};

}  // namespace

std::span<const NodeKind> shape_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
