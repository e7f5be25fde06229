// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that move elements: broadcasts, pieces, slices, pads, blocks of images.
#include <algorithm>
#include <array>
#include <cmath>

#include "import/onnx/call.h"
#include "import/onnx/fold.h"
#include "import/onnx/importer.h"
#include "import/onnx/run_sizes.h"
#include "import/onnx/stretch.h"

namespace rlx::onnx {

namespace {

// A bound of a slice beyond this, such as 2^63 - 1, means the end of the axis.
constexpr int64_t kFarBound = int64_t{1} << 47;

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

// Old opsets give whole numbers as floats.
std::vector<int64_t> whole_numbers(Call& call, size_t i, const char* what) {
  constexpr double kMost = 1 << 30;
  std::vector<int64_t> numbers;
  for (double number : call.reals(i, what)) {
    bool is_whole = std::abs(number) <= kMost && number == std::floor(number);
    if (!is_whole) call.fail(Code::kData, format("'{}' has {}, which is not a whole number", what, number));
    numbers.push_back(is_whole ? static_cast<int64_t>(number) : 0);
  }
  return numbers;
}

// Before opset 6 a tile was along one axis, by numbers of the dtype of x.
void build_tile_along_axis(Call& call) {
  Expr x = call.in(0);
  std::vector<int64_t> tiles = whole_numbers(call, 1, "tiles"), given = whole_numbers(call, 2, "axis");
  if (!x.valid() || tiles.size() != 1 || given.size() != 1)
    return call.fail(Code::kData, "'tiles' and 'axis' are not one number each");
  std::vector<int64_t> repeats(x.rank(), 1);
  int64_t axis = call.axis(given[0], x.rank());
  if (!call.status().ok()) return;
  repeats[static_cast<size_t>(axis)] = tiles[0];
  call.out(0, call.op("tile", {x}, {{"repeats", std::vector<Dim>(repeats.begin(), repeats.end())}}));
}

void build_tile(Call& call) {
  if (call.opset() < 6) return build_tile_along_axis(call);
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
  if (Status status = call.builder().graph().declare_guard({Guard::kEqual, sum, total, "split"}); !status.ok())
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
  if (call.opset() < 2 && call.has(1)) {  // as numbers of the dtype of x
    std::vector<int64_t> sizes = whole_numbers(call, 1, "split");
    return {sizes.begin(), sizes.end()};
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

// ---- slices and pads ----

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
  if (args.axes.size() != args.starts.size() || args.ends.size() != args.starts.size()) return true;  // it has failed
  for (size_t i = 0; i < args.starts.size(); i++) {
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
    std::vector<int64_t> given = call.has(3) ? call.numbers(3, "axes") : std::vector<int64_t>();
    Dim count = call.has(3) ? Dim(static_cast<int64_t>(given.size())) : starts.dim(0);
    if (!(count.literal() <= static_cast<int64_t>(x.rank())))
      return call.fail(Code::kData, format("{} axes, of rank {}", count, x.rank()));
    Axes axes = call.has(3) ? call.axes(given, x.rank()) : trailing_axes(0, static_cast<size_t>(count.literal()));
    std::array one_each{count};
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
  if (value && value.rank() != 0) value = reshape(value, {});
  if (is_open) return call.out(0, pad_in_run(call, x, call.in(1), axes, mode, value));
  if (pads.size() != 2 * axes.size()) return call.fail(Code::kData, "'pads' does not hold two numbers per axis");
  std::vector<Dim> lo(x.rank()), hi(x.rank());
  for (size_t i = 0; i < axes.size(); i++) {
    lo[static_cast<size_t>(axes[i])] = pads[i];
    hi[static_cast<size_t>(axes[i])] = pads[i + axes.size()];
  }
  if (mode != "constant") value = Expr(&call.builder(), kAbsent);
  if (mode == "wrap") x = cropped(call, x, lo, hi);
  call.out(0, call.op("pad", {x, value}, {{"lo", lo}, {"hi", hi}, {"mode", mode}}));
}

// ---- triangles, blocks, crops ----

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

constexpr NodeKind kKinds[] = {
    {.op_type = "Expand", .build = build_expand, .moves = 1},
    {.op_type = "Tile", .build = build_tile, .moves = 1},
    {.op_type = "Concat", .build = build_concat, .fold = fold_concat, .moves = ~0U},
    {.op_type = "Split", .build = build_split, .moves = 1},
    {.op_type = "Slice", .build = build_slice, .fold = fold_slice, .moves = 1},
    {"Pad", build_pad},
    {"Trilu", build_trilu},
    {"DepthToSpace", build_depth_to_space},
    {"SpaceToDepth", build_space_to_depth},
    {"CenterCropPad", build_center_crop_pad},
    microsoft("Pad", build_pad),
    microsoft("Trilu", build_trilu),
};

}  // namespace

std::span<const NodeKind> movement_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
