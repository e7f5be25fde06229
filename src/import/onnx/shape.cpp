// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that move elements, and those that read shapes.
#include <algorithm>
#include <array>

#include "import/onnx/call.h"
#include "import/onnx/fold.h"
#include "import/onnx/importer.h"
#include "import/onnx/random.h"
#include "import/onnx/run_sizes.h"
#include "import/onnx/stretch.h"

namespace rlx::onnx {

namespace {

// A bound of a slice beyond this, such as 2^63 - 1, means the end of the axis.
constexpr int64_t kFarBound = int64_t{1} << 47;

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
    if (Status status = call.builder().graph().add_guard(is_not_one); !status.ok()) call.fail(status);
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
  if (call.opset() < 5) {
    std::vector<int64_t> given = call.i64s("shape");
    return {given.begin(), given.end()};
  }
  std::vector<Dim> shape = call.dims(1, "shape");
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
  if (call.wants(1)) call.out(1, broadcast_to(call.builder().scalar(DType::kBool, 1), call.type(0).dims));
}

void build_transpose(Call& call) {
  std::vector<int64_t> perm = call.i64s("perm");
  if (!call.has_attr("perm"))
    for (size_t i = call.type(0).rank(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  call.out(0, transpose(call.in(0), perm));
}

// ---- broadcast, split, concat ----

// The two-way broadcast of x and the shape.
void build_expand(Call& call) {
  if (call.has(1) && !call.sizes(1)) return call.out(0, expand_in_run(call, call.in(0), call.in(1)));
  std::vector<Dim> shape = call.dims(1, "shape");
  const std::vector<Dim>& dims = call.type(0).dims;
  if (shape.size() < dims.size()) shape.insert(shape.begin(), dims.size() - shape.size(), Dim(1));
  for (size_t i = 0; i < dims.size(); i++) {
    Dim& target = shape[shape.size() - dims.size() + i];
    if (call.importer().stretches())
      target = common_size(call.builder(), target, dims[i], "expand");
    else if (target.is(1))
      target = dims[i];
  }
  Expr x = call.in(0);
  call.out(0, broadcast_to(call.importer().stretches() ? stretched(x, shape) : x, shape));
}

void build_tile(Call& call) {
  if (call.opset() < 6) return call.fail(Code::kUnsupported, "a tile along one axis (before opset 6)");
  call.out(0, call.op("tile", {call.in(0)}, {{"repeats", call.run_dims(1, "repeats")}}));
}

void build_concat(Call& call) {
  int64_t axis = call.i64("axis", 1);
  std::vector<Expr> parts;
  for (size_t i = 0; i < call.inputs(); i++) parts.push_back(call.in(i));
  if (parts.empty()) return call.fail(Code::kData, "nothing to join");
  call.out(0, parts.size() == 1 ? parts[0] : concat(parts, axis));
}

Folded fold_concat(Call& call) {
  Sizes result;
  for (size_t i = 0; i < call.inputs(); i++) {
    const Sizes* part = call.sizes(i);
    if (!part || part->dims.size() != 1) return std::nullopt;
    result.dtype = part->dtype;
    result.items.insert(result.items.end(), part->items.begin(), part->items.end());
  }
  call.i64("axis", 0);
  result.dims = {static_cast<int64_t>(result.items.size())};
  return result;
}

// Sizes that may be negative become max(0, size). A run in which one is negative fails, because the sum is not the
// total.
std::vector<Dim> given_pieces(Call& call, const Dim& total) {
  std::vector<Dim> sizes = call.run_dims(1, "split");
  Dim sum = 0;
  for (Dim& size : sizes) {
    if (call.range(size).lo < 0) size = max(Dim(0), size);
    sum += size;
  }
  if (Status status = call.builder().graph().add_guard({Guard::kEqual, sum, total, "split"}); !status.ok())
    call.fail(status);
  return sizes;
}

// Sizes of the pieces: given; or equal except for a smaller last one (opset 18); or equal.
std::vector<Dim> piece_sizes(Call& call, const Dim& total) {
  bool by_attribute = call.opset() < 13;
  if (by_attribute && call.has_attr("split")) {
    std::vector<int64_t> split = call.i64s("split");
    return {split.begin(), split.end()};
  }
  if (!by_attribute && call.has(1)) return given_pieces(call, total);
  auto parts = static_cast<int64_t>(call.outputs());
  if (call.i64("num_outputs", parts) != parts) call.fail(Code::kData, "'num_outputs' is not the number of outputs");
  Dim size = floor_div(total + Dim(parts - 1), Dim(parts));
  std::vector<Dim> sizes(call.outputs(), size);
  sizes.back() = total - Dim(parts - 1) * size;
  return sizes;
}

void build_split(Call& call) {
  Expr x = call.in(0);
  int64_t axis = call.axis(call.i64("axis", 0), x.rank());
  std::vector<Dim> sizes = piece_sizes(call, x.dim(axis));
  if (sizes.size() != call.outputs()) return call.fail(Code::kData, "'split' does not name one size per output");
  Dim at = 0;
  for (size_t i = 0; i < sizes.size(); i++) {
    call.out(i, slice(x, axis, at, at + sizes[i]));
    at += sizes[i];
  }
}

struct SliceArgs {
  std::vector<Dim> starts, ends;
  Axes axes;
  std::vector<int64_t> steps;
};

// The arguments: attributes before opset 10, inputs since.
SliceArgs slice_args(Call& call) {
  SliceArgs args;
  std::vector<int64_t> axes;
  if (call.opset() < 10) {
    std::vector<int64_t> starts = call.i64s("starts"), ends = call.i64s("ends");
    args = {{starts.begin(), starts.end()}, {ends.begin(), ends.end()}, {}, {}};
    axes = call.i64s("axes");
  } else {
    args = {call.dims(1, "starts"), call.dims(2, "ends"), {}, {}};
    if (call.has(3)) axes = call.numbers(3, "axes");
    if (call.has(4)) args.steps = call.numbers(4, "steps");
  }
  for (size_t i = axes.size(); i < args.starts.size(); i++) axes.push_back(static_cast<int64_t>(i));
  args.steps.resize(args.starts.size(), 1);
  args.axes = call.axes(axes, call.type(0).rank());
  for (auto* bounds : {&args.starts, &args.ends})
    for (Dim& bound : *bounds)
      if (bound.is_literal()) bound = std::clamp(bound.literal(), -kFarBound, kFarBound);
  if (args.ends.size() != args.starts.size() || args.axes.size() != args.starts.size())
    call.fail(Code::kData, "'starts', 'ends' and 'axes' are not of one length");
  return args;
}

// Bounds that may be negative count from the end if they are, and are clamped to the front; so is the start of a
// reversed slice (ONNX clamps it to 0, where ours would be before the front). Returns false for the end of a reversed
// slice before the front, which no size expresses.
bool settle_bounds(Call& call, SliceArgs& args) {
  for (size_t i = 0; i < args.starts.size() && i < args.ends.size(); i++) {
    const Dim& n = call.type(0).dims[static_cast<size_t>(args.axes[i])];
    auto is_open = [&](const Dim& bound) { return !bound.is_literal() && call.range(bound).lo < 0; };
    auto settled = [&](const Dim& bound) {  // n - 1 is negative only for an empty axis
      return max(Dim(0), bound == n - Dim(1) ? bound : bound + n * is_less(bound, Dim(0)));
    };
    bool is_down = args.steps[i] < 0;
    if (is_down && is_open(args.ends[i])) return false;
    if (is_open(args.ends[i])) args.ends[i] = settled(args.ends[i]);
    Dim& start = args.starts[i];
    bool is_before = is_down && start.is_literal() && start.literal() < 0 && call.range(n + start).lo < 0;
    if (is_open(start) || is_before) start = settled(start);
  }
  return true;
}

void build_slice(Call& call) {
  bool is_open = call.opset() >= 10 && call.has(1) && call.has(2) &&
                 !(call.sizes(1) && call.sizes(2) && (!call.has(4) || call.sizes(4)));
  if (is_open) {
    Expr x = call.in(0), starts = call.in(1), ends = call.in(2), steps = call.in(4);
    bool is_counted = starts.valid() && starts.rank() == 1 && starts.dim(0).is_literal();
    if (!call.has(3) && !is_counted) return call.fail_of_sizes("how many axes it has is not known");
    Axes axes = call.has(3) ? call.axes(call.numbers(3, "axes"), x.rank())
                            : trailing_axes(0, static_cast<size_t>(starts.dim(0).literal()));
    if (axes.size() > x.rank()) return call.fail(Code::kData, format("{} axes, of rank {}", axes.size(), x.rank()));
    std::array<Dim, 1> one_each{static_cast<int64_t>(axes.size())};
    if (!require_shape(starts, "starts", one_each) || !require_shape(ends, "ends", one_each)) return;
    if (steps && !require_shape(steps, "steps", one_each)) return;
    return call.out(0, slice_in_run(call, x, starts, ends, steps, axes));
  }
  SliceArgs args = slice_args(call);
  if (!settle_bounds(call, args))
    return call.out(0, slice_in_run(call, call.in(0), call.in(1), call.in(2), call.in(4), args.axes));
  call.out(0, call.op("slice", {call.in(0)},
                      {{"starts", args.starts}, {"ends", args.ends}, {"axes", args.axes}, {"steps", args.steps}}));
}

// Slices of a list of sizes.
Folded fold_slice(Call& call) {
  const Sizes* x = call.sizes(0);
  if (!x || x->dims.size() != 1 || (call.opset() >= 10 && (!call.sizes(1) || !call.sizes(2)))) return std::nullopt;
  SliceArgs args = slice_args(call);
  if (args.starts.size() != 1 || args.ends.size() != 1 || !args.starts[0].is_literal() || !args.ends[0].is_literal())
    return std::nullopt;
  int64_t n = x->dims[0], start = args.starts[0].literal(), end = args.ends[0].literal();
  int64_t step = std::clamp(args.steps[0], -n - 1, n + 1);  // a longer one takes one element too, and may overflow
  if (step == 0) return std::nullopt;
  int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? n : n - 1;
  start = std::min(std::max<int64_t>(start < 0 ? start + n : start, 0), highest);
  end = std::clamp(end < 0 ? end + n : end, lowest, highest);
  Sizes result{x->dtype, {}, {}};
  for (int64_t i = start; step > 0 ? i < end : i > end; i += step)
    result.items.push_back(x->items[static_cast<size_t>(i)]);
  result.dims = {static_cast<int64_t>(result.items.size())};
  return result;
}

// Without what negative pads take away, which a wrap does not show again; these pads become 0.
Expr cropped(Call& call, Expr x, std::vector<Dim>& lo, std::vector<Dim>& hi) {
  std::vector<Dim> less_lo(lo.size()), less_hi(hi.size());
  bool is_cut = false;
  for (size_t i = 0; i < lo.size(); i++)
    for (auto [pad, cut] : {std::pair(&lo[i], &less_lo[i]), std::pair(&hi[i], &less_hi[i])}) {
      if (!pad->is_literal() || pad->literal() >= 0) continue;
      std::swap(*pad, *cut);
      is_cut = true;
    }
  Expr none(&call.builder(), kAbsent);
  return is_cut ? call.op("pad", {x, none}, {{"lo", less_lo}, {"hi", less_hi}, {"mode", "constant"}}) : x;
}

// Pads are all the lows, then all the highs: an attribute before opset 11, an input since.
void build_pad(Call& call) {
  Expr x = call.in(0);
  std::string mode(call.text("mode", "constant"));
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return call.fail(Code::kData, "'mode' is " + mode);
  std::vector<Dim> pads;
  Expr value = call.in(2);
  bool has_attributes = call.opset() < 11 && call.kind().domain.empty();
  bool is_open = !has_attributes && call.has(1) && !call.sizes(1);
  if (has_attributes) {
    for (int64_t pad : call.i64s(call.has_attr("paddings") ? "paddings" : "pads")) pads.push_back(pad);
    if (call.has_attr("value")) value = scalar_like(x, call.f64("value", 0));
  } else if (!is_open) {
    pads = call.dims(1, "pads");
  }
  std::vector<int64_t> axes = call.has(3) ? call.axes(call.numbers(3, "axes"), x.rank()) : trailing_axes(0, x.rank());
  if (is_open) {
    if (value && value.rank() != 0) value = reshape(value, {});
    return call.out(0, pad_in_run(call, x, call.in(1), axes, mode, value));
  }
  if (pads.size() != 2 * axes.size()) return call.fail(Code::kData, "'pads' does not hold two numbers per axis");
  std::vector<Dim> lo(x.rank()), hi(x.rank());
  for (size_t i = 0; i < axes.size(); i++) {
    lo[static_cast<size_t>(axes[i])] = pads[i];
    hi[static_cast<size_t>(axes[i])] = pads[i + axes.size()];
  }
  if (value && value.rank() != 0) value = reshape(value, {});
  if (mode != "constant") value = Expr(&call.builder(), kAbsent);
  if (mode == "wrap") x = cropped(call, x, lo, hi);
  call.out(0, call.op("pad", {x, value}, {{"lo", lo}, {"hi", hi}, {"mode", mode}}));
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
  if (!shape || !fill || !(is_integer(fill.dtype()) || fill.dtype() == DType::kBool)) return std::nullopt;
  Sizes result{fill.dtype(), {}, {Dim(element_as_i64(fill, 0))}};
  std::vector<int64_t> dims;
  for (const Dim& dim : shape->items) {
    if (!dim.is_literal() || dim.literal() < 0 || dim.literal() > static_cast<int64_t>(kMaxSizes)) return std::nullopt;
    dims.push_back(dim.literal());
  }
  return move_sizes(result, dims, [](int64_t) { return 0; });
}

// If all three bounds are sizes: start + step * iota, with a length computed from them.
void build_range(Call& call) {
  DType dtype = call.type(0).dtype;
  const Sizes* delta = call.sizes(2);
  bool is_sized = is_integer(dtype) && call.sizes(0) && call.sizes(1) && delta && delta->items.size() == 1 &&
                  delta->items[0].is_literal();
  if (!is_sized) {
    Expr in[3];
    for (size_t i = 0; i < 3; i++) in[i] = reshape(call.in(i), std::vector<Dim>());
    return call.out(0, call.ops("dynamic_range", in)[0]);
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
  if (step[0] != 1) y = y * static_cast<double>(step[0]);
  if (!start.is(0)) y = y + call.in(0);
  call.out(0, y);
}

void build_trilu(Call& call) {
  int64_t upper = call.i64("upper", 1);
  if (call.has(1) && !call.sizes(1)) return call.out(0, trilu_in_run(call.in(0), call.in(1), upper != 0));
  std::vector<int64_t> k = call.has(1) ? call.numbers(1, "k") : std::vector<int64_t>{0};
  call.out(0, call.op("trilu", {call.in(0)}, {{"upper", upper}, {"k", k.empty() ? 0 : k[0]}}));
}

void build_depth_to_space(Call& call) {
  std::string mode(call.text("mode", "DCR"));
  for (char& c : mode) c = static_cast<char>(c | 0x20);
  call.out(0, call.op("depth_to_space", {call.in(0)}, {{"block", call.i64("blocksize", 0)}, {"mode", mode}}));
}

void build_space_to_depth(Call& call) {
  std::string_view mode = call.text("mode", "DCR");
  int64_t block = call.i64("blocksize", 0);
  Expr x = call.in(0), y = call.op("space_to_depth", {x}, {{"block", block}});
  if (mode != "DCR" && mode != "CRD") call.fail(Code::kData, "'mode' is neither DCR nor CRD");
  if (mode == "CRD" && y.valid()) {  // the old channel varies slowest
    Expr apart = reshape(y, {y.dim(0), Dim(block * block), x.dim(1), y.dim(2), y.dim(3)});
    y = reshape(transpose(apart, {0, 2, 1, 3, 4}), y.dims());
  }
  call.out(0, y);
}

void build_center_crop_pad(Call& call) {
  NamedAttrs attrs{{"shape", call.run_dims(1, "shape")}};
  if (call.has_attr("axes")) attrs.emplace_back("axes", call.axes(call.i64s("axes"), call.type(0).rank()));
  call.out(0, call.op("center_crop_pad", {call.in(0)}, attrs));
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
    {.op_type = "Expand", .build = build_expand, .moves = 1},
    {.op_type = "Tile", .build = build_tile, .moves = 1},
    {.op_type = "Concat", .build = build_concat, .fold = fold_concat, .moves = ~0U},
    {.op_type = "Split", .build = build_split, .moves = 1},
    {.op_type = "Slice", .build = build_slice, .fold = fold_slice, .moves = 1},
    {"Pad", build_pad},
    {"Shape", build_never, "", fold_shape},
    {"Size", build_never, "", fold_size},
    {"ConstantOfShape", build_constant_of_shape, "", fold_constant_of_shape},
    {"Range", build_range},
    {"Trilu", build_trilu},
    {"DepthToSpace", build_depth_to_space},
    {"SpaceToDepth", build_space_to_depth},
    {"CenterCropPad", build_center_crop_pad},
    {"EyeLike", build_eye_like},
    microsoft("Pad", build_pad),
    microsoft("Range", build_range),
    microsoft("Trilu", build_trilu),
};

}  // namespace

std::span<const NodeKind> shape_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
