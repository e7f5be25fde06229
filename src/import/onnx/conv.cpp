// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds with spatial windows: convolutions and pools.
#include <algorithm>

#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

struct Window {
  std::vector<int64_t> kernel, strides, dilation;
  std::vector<Dim> lo, hi;
};

// SAME pads so that the output size is the input size divided by the stride, rounded up. An odd pad goes to the end
// (SAME_UPPER) or the start.
void pad_same(Call& call, const std::vector<Dim>& space, bool upper, Window& window) {
  for (size_t i = 0; i < space.size(); i++) {
    Dim stride = window.strides[i], reach = Dim(window.dilation[i]) * Dim(window.kernel[i] - 1) + Dim(1);
    Dim out = floor_div(space[i] + stride - Dim(1), stride);
    Dim pad = (out - Dim(1)) * stride + reach - space[i];
    if (call.range(pad).lo < 0) pad = max(Dim(0), pad);
    Dim small = floor_div(pad, Dim(2));
    window.lo[i] = upper ? small : pad - small;
    window.hi[i] = upper ? pad - small : small;
  }
}

constexpr std::string_view kChannelsLast = "channels_last";  // what the row of such a kind says

// The channels of x stand last: by the kind, or by an attribute, which those of ai.onnx do not have.
bool has_channels_last(Call& call) {
  return call.kind().op == kChannelsLast || (!call.kind().domain.empty() && call.i64("channels_last", 0) != 0);
}

Expr channels_second(Expr x) {
  Axes perm{0, static_cast<int64_t>(x.rank()) - 1};
  for (int64_t i = 1; i + 1 < static_cast<int64_t>(x.rank()); i++) perm.push_back(i);
  return x.valid() && x.rank() > 2 ? transpose(x, perm) : x;
}

Expr channels_last(Expr x) {
  Axes perm{0};
  for (int64_t i = 2; i < static_cast<int64_t>(x.rank()); i++) perm.push_back(i);
  perm.push_back(1);
  return x.valid() && x.rank() > 2 ? transpose(x, perm) : x;
}

// Has as many numbers as x has spatial axes, also if the call has failed.
Window window_of(Call& call, const std::vector<int64_t>& kernel, bool transposed = false) {
  const std::vector<Dim>& dims = call.type(0).dims;
  size_t n = dims.size() < 2 ? 0 : dims.size() - 2;
  const std::vector<int64_t> ones(n, 1);
  Window failed{ones, ones, ones, std::vector<Dim>(n), std::vector<Dim>(n)};
  Window window = failed;
  window.kernel = call.i64s("kernel_shape", kernel);
  window.strides = call.i64s("strides", ones), window.dilation = call.i64s("dilations", ones);
  std::vector<int64_t> pads = call.i64s("pads", std::vector<int64_t>(2 * n, 0));
  std::string_view automatic = call.text("auto_pad", "NOTSET");
  if (n == 0 || window.kernel.size() != n || window.strides.size() != n || window.dilation.size() != n ||
      pads.size() != 2 * n || (!kernel.empty() && kernel.size() != n)) {
    call.fail(Code::kShape, format("kernel, strides, dilations and pads do not suit {} spatial axes", n));
    return failed;
  }
  bool is_given = call.has_attr("kernel_shape");
  if (!is_given && std::ranges::any_of(window.kernel, [](int64_t size) { return size < 0; }))
    return call.fail_of_sizes("the size of its kernel is open"), failed;
  for (size_t i = 0; i < kernel.size(); i++)  // a pool has none but the attribute's
    if (kernel[i] >= 0 && window.kernel[i] != kernel[i])
      return call.fail(Code::kShape, format("'kernel_shape' says {}, the weights {}", window.kernel[i], kernel[i])),
             failed;
  auto first = dims.begin() + (has_channels_last(call) ? 1 : 2);
  std::vector<Dim> space(first, first + static_cast<ptrdiff_t>(n));
  for (size_t i = 0; i < n; i++) {
    if (window.strides[i] < 1 || window.dilation[i] < 1 || window.kernel[i] < 1)
      return call.fail(Code::kData, "a kernel, stride or dilation below 1"), failed;
    window.lo[i] = pads[i], window.hi[i] = pads[i + n];
  }
  if ((automatic == "SAME_UPPER" || automatic == "SAME_LOWER") && !transposed)
    pad_same(call, space, automatic == "SAME_UPPER", window);
  else if (automatic != "NOTSET" && automatic != "VALID" && !automatic.starts_with("SAME_") && !automatic.empty())
    call.fail(Code::kData, "'auto_pad' is " + std::string(automatic));
  return window;
}

std::vector<int64_t> kernel_of(Call& call, size_t weight = 1) {
  std::vector<int64_t> kernel;
  const std::vector<Dim>& dims = call.type(weight).dims;
  for (size_t i = 2; i < dims.size(); i++) kernel.push_back(dims[i].is_literal() ? dims[i].literal() : -1);
  return kernel;
}

// One number per channel as [C,1,...].
Expr per_channel(Expr x, size_t spatial) {
  std::vector<Dim> dims{x.dim(0)};
  dims.resize(spatial + 1, Dim(1));
  return reshape(x, dims);
}

// `weight`: the input with the kernels.
NamedAttrs conv_attrs(Call& call, size_t weight) {
  Window window = window_of(call, kernel_of(call, weight));
  int64_t groups = call.i64("group", 1);
  return {{"strides", window.strides},
          {"pad_lo", window.lo},
          {"pad_hi", window.hi},
          {"rhs_dilation", window.dilation},
          {"groups", groups}};
}

size_t spatial_axes(Expr x) {
  return x.valid() && x.rank() > 2 ? x.rank() - 2 : 0;
}

void build_conv(Call& call) {
  bool is_last = has_channels_last(call);
  Expr x = is_last ? channels_second(call.in(0)) : call.in(0),
       y = call.op("conv", {x, call.in(1)}, conv_attrs(call, 1));
  if (call.has(2)) y = y + per_channel(call.in(2), spatial_axes(x));
  call.out(0, is_last ? channels_last(y) : y);
}

// A convolution followed by a sum and an activation.
void build_fused_conv(Call& call) {
  std::string_view name = call.text("activation", "");
  std::vector<double> params = call.f64s("activation_params");
  bool is_last = has_channels_last(call);
  Expr x = is_last ? channels_second(call.in(0)) : call.in(0),
       y = call.op("conv", {x, call.in(1)}, conv_attrs(call, 1));
  if (call.has(2)) y = y + per_channel(call.in(2), spatial_axes(x));
  if (is_last) y = channels_last(y);
  if (call.has(3)) y = y + call.in(3);
  auto param = [&](size_t i, double fallback) { return i < params.size() ? params[i] : fallback; };
  if (name == "Relu") y = call.op("relu", {y});
  if (name == "Tanh") y = tanh(y);
  if (name == "Sigmoid") y = call.op("sigmoid", {y});
  if (name == "LeakyRelu") y = call.op("leaky_relu", {y}, {{"alpha", param(0, 0.01)}});
  if (name == "Clip") y = minimum(maximum(y, param(0, -3e38)), param(1, 3e38));
  if (name == "HardSigmoid") y = call.op("hard_sigmoid", {y}, {{"alpha", param(0, 0.2)}, {"beta", param(1, 0.5)}});
  static constexpr std::string_view kKnown[] = {"", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"};
  if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
    call.fail(Code::kUnsupported, "the activation " + std::string(name));
  call.out(0, y);
}

// Integers minus their zero points, as i32.
enum class ZeroPoints { kOne, kPerFilter };
Expr centred(Expr x, Expr zero, ZeroPoints points) {
  Expr wide = cast(x, DType::kI32);
  if (!zero || !zero.valid() || !wide.valid()) return wide;
  zero = cast(zero, DType::kI32);
  if (zero.rank() == 0 || zero.dim(0).is(1) || points == ZeroPoints::kOne) return wide - reshape(zero, {});
  if (x.rank() == 0) return {x.builder().fail(wrong_rank("w", "3 or more", 0))};
  std::vector<Dim> dims(x.rank(), Dim(1));
  dims[0] = zero.dim(0);
  return wide - reshape(zero, dims);
}

void build_conv_integer(Call& call) {
  Expr x = centred(call.in(0), call.in(2), ZeroPoints::kOne),
       w = centred(call.in(1), call.in(3), ZeroPoints::kPerFilter);
  call.out(0, call.op("conv", {x, w}, conv_attrs(call, 1)));
}

// Inputs: x, its scale and zero point; w, its scale and zero point; the scale and zero point of the result; an i32
// bias.
void build_q_conv(Call& call) {
  bool is_last = has_channels_last(call);
  Expr x = centred(call.in(0), call.in(2), ZeroPoints::kOne),
       w = centred(call.in(3), call.in(5), ZeroPoints::kPerFilter);
  if (is_last) x = channels_second(x);
  Expr total = call.op("conv", {x, w}, conv_attrs(call, 3));
  if (!total.valid()) return;
  if (call.has(8)) total = total + per_channel(call.in(8), spatial_axes(x));
  auto scalar = [](Expr scale) { return scale.rank() == 0 ? scale : reshape(scale, {}); };
  Expr w_scale = call.in(4);
  bool by_kernel = w_scale.rank() == 1 && !w_scale.dim(0).is(1);
  Expr scale =
      (by_kernel ? per_channel(w_scale, spatial_axes(x)) : scalar(w_scale)) * scalar(call.in(1)) / scalar(call.in(6));
  Expr one = call.builder().scalar(DType::kF32, 1);
  Expr y = call.op("quantize_linear", {cast(total, DType::kF32) * scale, one, scalar(call.in(7))});
  call.out(0, is_last ? channels_last(y) : y);
}

// A convolution of each channel over its own past. The second output is the state for the next call.
void build_causal_conv(Call& call) {
  Expr x = call.in(0), w = call.in(1), past = call.in(3);
  std::string_view act = call.text("activation", "none");
  int64_t dilation = call.i64("dilation", 1);
  bool is_last = call.i64("channels_last", 0) != 0;
  if (call.i64("state_window", 0) != 0 || call.i64("ndim", 1) != 1)
    return call.fail(Code::kUnsupported, "a window of states, or more than one axis of space");
  if (!x.valid() || !w.valid() || x.rank() != 3 || w.rank() != 3)
    return call.fail(Code::kShape, "its input and weight must have rank 3");
  if (dilation < 1) return call.fail(Code::kData, "'dilation' is below 1");
  if (is_last) x = channels_second(x), past = past ? channels_second(past) : past;
  if (!x.dim(1).is_literal()) return call.fail_of_sizes("a number of channels that is not known");
  Dim before = (w.dim(2) - Dim(1)) * Dim(dilation);
  if (!past) past = broadcast_to(scalar_like(x, 0), {x.dim(0), x.dim(1), before});
  Expr parts[] = {past, x};
  Expr all = concat(parts, 2);
  Expr y =
      call.op("conv", {all, w}, {{"groups", x.dim(1).literal()}, {"rhs_dilation", std::vector<int64_t>{dilation}}});
  if (call.has(2)) y = y + per_channel(call.in(2), 1);
  if (act == "silu" || act == "swish")
    y = call.op("silu", {y});
  else if (act != "none")
    call.fail(Code::kUnsupported, "'activation' is " + std::string(act));
  Expr next = slice(all, 2, x.dim(2), x.dim(2) + before);
  call.out(0, is_last ? channels_last(y) : y);
  call.out(1, is_last ? channels_last(next) : next);
}

// In a transposed convolution pads crop the result. The size of the result may be given instead.
void pad_to_size(Call& call, const std::vector<int64_t>& more, const std::vector<Dim>& asked, bool upper,
                 Window& window) {
  const std::vector<Dim>& dims = call.type(0).dims;
  for (size_t i = 0; i < window.kernel.size(); i++) {
    Dim reach = window.dilation[i] * (window.kernel[i] - 1) + 1;
    Dim pad = (dims[2 + i] - Dim(1)) * Dim(window.strides[i]) + Dim(more[i]) + reach - asked[i];
    Dim held = max(Dim(0), pad), small = floor_div(held, Dim(2));
    window.lo[i] = upper ? small : held - small;
    window.hi[i] = pad - window.lo[i];  // a result that is too small is extended at the end
  }
}

void build_conv_transpose(Call& call) {
  Window window = window_of(call, kernel_of(call), true);
  size_t axes = window.kernel.size();
  std::string_view automatic = call.text("auto_pad", "NOTSET");
  std::vector<int64_t> more = call.i64s("output_padding", std::vector<int64_t>(axes, 0));
  std::vector<int64_t> given = call.i64s("output_shape");
  if (more.size() != axes || (!given.empty() && given.size() != axes && given.size() != axes + 2))
    return call.fail(Code::kShape, format("'output_padding' or 'output_shape' do not suit {} spatial axes", axes));
  if (call.type(0).rank() != axes + 2) return;  // it has failed
  size_t bias = 2;
  if (call.kind().op_type == "ConvTransposeWithDynamicPads") {
    std::vector<Dim> pads = call.has(2) ? call.dims(2, "Pads") : std::vector<Dim>(2 * axes, Dim(0));
    if (pads.size() != 2 * axes) return call.fail(Code::kData, "'Pads' does not hold two numbers per axis");
    for (size_t i = 0; i < axes; i++) window.lo[i] = pads[i], window.hi[i] = pads[i + axes];
    bias = 3;
  }
  std::vector<Dim> asked;
  for (size_t i = 0; i < axes; i++)
    asked.push_back(given.empty() ? call.type(0).dims[2 + i] * Dim(window.strides[i])
                                  : Dim(given[i + given.size() - axes]));
  bool is_same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  if (is_same || !given.empty()) pad_to_size(call, more, asked, automatic == "SAME_UPPER", window);
  call.out(0, call.op("conv_transpose", {call.in(0), call.in(1), call.in(bias)},
                      {{"strides", window.strides},
                       {"pad_lo", window.lo},
                       {"pad_hi", window.hi},
                       {"dilation", window.dilation},
                       {"output_padding", more},
                       {"groups", call.i64("group", 1)}}));
}

void build_deform_conv(Call& call) {
  Window window = window_of(call, kernel_of(call));
  if (window.kernel.size() != 2) return call.fail(Code::kUnsupported, "only images of two axes");
  int64_t groups = call.i64("group", 1), offset_groups = call.i64("offset_group", 1);
  call.out(0, call.op("deform_conv", {call.in(0), call.in(1), call.in(2), call.in(3), call.in(4)},
                      {{"strides", window.strides},
                       {"pad_lo", window.lo},
                       {"pad_hi", window.hi},
                       {"dilation", window.dilation},
                       {"groups", groups},
                       {"offset_groups", offset_groups}}));
}

NamedAttrs pool_attrs(Call& call) {
  Window window = window_of(call, {});
  return {{"kernel", window.kernel}, {"strides", window.strides},   {"pad_lo", window.lo},
          {"pad_hi", window.hi},     {"dilation", window.dilation}, {"ceil_mode", call.i64("ceil_mode", 0)}};
}

// Positions in x, counted in column-major order (`storage_order`).
Expr column_major(Call& call, Expr index, const std::vector<Dim>& dims) {
  Builder& b = call.builder();
  auto size = [&](const Dim& dim) { return b.size(dim, DType::kI64); };
  std::span<const Dim> space = std::span(dims).subspan(2);
  Dim plane = element_count(space), stride = 1;
  Expr rest = binary(Op::kRem, index, size(plane)), result = index - rest;
  for (size_t i = 0; i < space.size(); i++) {
    Expr inner = size(element_count(space.subspan(i + 1)));
    result = result + rest / inner * size(stride);
    rest = binary(Op::kRem, rest, inner);
    stride *= space[i];
  }
  return result;
}

void build_max_pool(Call& call) {
  bool by_columns = call.i64("storage_order", 0) != 0, is_last = call.kind().op == kChannelsLast;
  Expr in[] = {is_last ? channels_second(call.in(0)) : call.in(0)};
  Outputs y = call.ops(call.wants(1) ? "max_pool_with_indices" : "max_pool", in, pool_attrs(call));
  call.out(0, is_last ? channels_last(y[0]) : y[0]);
  if (y.size() < 2 || !call.wants(1) || !y[1].valid()) return;
  call.out(1, by_columns ? column_major(call, y[1], call.type(0).dims) : y[1]);
}

// Without a given size: the smallest that the windows cover. Positions always count in that size.
void build_max_unpool(Call& call) {
  const std::vector<Dim>& dims = call.type(0).dims;
  Window window = window_of(call, {});
  if (dims.size() != window.kernel.size() + 2) return;
  std::vector<Dim> shape(dims.begin(), dims.begin() + 2);
  for (size_t i = 0; i < window.kernel.size(); i++)
    shape.push_back((dims[2 + i] - Dim(1)) * Dim(window.strides[i]) - window.lo[i] - window.hi[i] +
                    Dim(window.kernel[i]));
  Expr y = call.op("max_unpool", {call.in(0), call.in(1)}, {{"shape", shape}});
  if (!call.has(2)) return call.out(0, y);
  std::vector<Dim> asked = call.dims(2, "output_shape"), lo(shape.size(), 0), hi;
  if (asked.size() != shape.size()) return call.fail(Code::kData, "'output_shape' does not suit the rank of x");
  for (size_t i = 0; i < shape.size(); i++) hi.push_back(asked[i] - shape[i]);
  call.out(0, asked == shape ? y : call.op("pad", {y}, {{"lo", lo}, {"hi", hi}}));
}

// A float in opset 1.
int64_t exponent_of(Call& call) {
  return call.opset() < 2 ? static_cast<int64_t>(call.f64("p", 2)) : call.i64("p", 2);
}

void build_lp_pool(Call& call) {
  NamedAttrs attrs = pool_attrs(call);
  attrs.emplace_back("p", exponent_of(call));
  call.out(0, call.op("lp_pool", {call.in(0)}, attrs));
}

void build_global_lp_pool(Call& call) {
  Expr x = call.in(0), p = scalar_like(x, static_cast<double>(exponent_of(call)));
  Expr powers = reduce(binary(Op::kPow, abs(x), p), "sum", trailing_axes(2, x.rank()));
  call.out(0, binary(Op::kPow, powers, 1.0 / p));
}

// Two numbers for each axis.
std::pair<std::vector<Dim>, std::vector<Dim>> pads_of(Call& call, size_t axes) {
  std::vector<int64_t> pads = call.i64s("pads", std::vector<int64_t>(2 * axes, 0));
  if (pads.size() != 2 * axes) call.fail(Code::kData, "'pads' does not hold two numbers per axis");
  pads.resize(2 * axes);
  auto middle = pads.begin() + static_cast<ptrdiff_t>(axes);
  return {{pads.begin(), middle}, {middle, pads.end()}};
}

void build_col2im(Call& call) {
  std::vector<Dim> shape = call.dims(1, "image_shape");
  std::vector<int64_t> kernel = call.numbers(2, "block_shape"), ones(kernel.size(), 1);
  auto [lo, hi] = pads_of(call, kernel.size());
  call.out(0, call.op("col2im", {call.in(0)},
                      {{"shape", shape},
                       {"kernel", kernel},
                       {"strides", call.i64s("strides", ones)},
                       {"dilation", call.i64s("dilations", ones)},
                       {"pad_lo", lo},
                       {"pad_hi", hi}}));
}

void build_avg_pool(Call& call) {
  NamedAttrs attrs = pool_attrs(call);
  attrs.emplace_back("count_include_pad", call.i64("count_include_pad", 0));
  call.out(0, call.op("avg_pool", {call.in(0)}, attrs));
}

// An average pool of quantised numbers; the channel axis is the last or the second.
void build_q_avg_pool(Call& call) {
  bool is_last = has_channels_last(call);
  auto scalar = [&](size_t i) { return call.has(i) ? reshape(call.in(i), {}) : call.in(i); };
  NamedAttrs attrs = pool_attrs(call);
  attrs.emplace_back("count_include_pad", call.i64("count_include_pad", 0));
  Expr x = call.op("dequantize_linear", {call.in(0), scalar(1), scalar(2)});
  if (!x.valid()) return;
  Expr y = call.op("avg_pool", {is_last ? channels_second(x) : x}, attrs);
  if (is_last) y = channels_last(y);
  NamedAttrs dtype;
  if (!call.has(4)) dtype.emplace_back("dtype", call.type(0).dtype);
  call.out(0, call.op("quantize_linear", {y, scalar(3), scalar(4)}, dtype));
}

constexpr NodeKind kKinds[] = {
    {"Conv", build_conv},
    microsoft("FusedConv", build_fused_conv),
    microsoft("NhwcConv", build_conv, kChannelsLast),
    microsoft("NhwcFusedConv", build_fused_conv, kChannelsLast),
    microsoft("NhwcMaxPool", build_max_pool, kChannelsLast),
    microsoft("ConvTransposeWithDynamicPads", build_conv_transpose),
    microsoft("CausalConvWithState", build_causal_conv),
    microsoft("QLinearAveragePool", build_q_avg_pool),
    {"ConvInteger", build_conv_integer},
    {.op_type = "QLinearConv", .build = build_q_conv, .per_channel = 0b11110110},
    {.op_type = "QLinearConv", .build = build_q_conv, .domain = "com.microsoft", .per_channel = 0b11110110},
    {"CausalConvWithState", build_causal_conv},
    {"ConvTranspose", build_conv_transpose},
    {"DeformConv", build_deform_conv},
    {"MaxPool", build_max_pool},
    {"AveragePool", build_avg_pool},
    {"LpPool", build_lp_pool},
    {"GlobalLpPool", build_global_lp_pool},
    {"MaxUnpool", build_max_unpool},
    {"Col2Im", build_col2im},
};

}  // namespace

std::span<const NodeKind> conv_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
