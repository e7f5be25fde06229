// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds of networks: products, convolutions, pools, norms, softmax.
#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

// A vector on either side is a matrix of one row or column, which the result does not keep.
void build_matmul(Call& call) {
  Expr a = call.in(0), b = call.in(1);
  bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = unsqueeze(a, 0);
  if (column) b = unsqueeze(b, 1);
  Expr y = matmul(a, b);
  std::vector<Dim> dims = y.dims();
  if (!y.valid()) return;
  if (row) dims.erase(dims.end() - 2);
  if (column) dims.erase(dims.end() - 1);
  call.out(0, row || column ? reshape(y, dims) : y);
}

// alpha * a b + beta * c
void build_gemm(Call& call) {
  double alpha = call.f64("alpha", 1), beta = call.f64("beta", 1);
  bool transpose_a = call.i64("transA", 0) != 0, transpose_b = call.i64("transB", 0) != 0;
  Expr y = matmul(call.in(0), call.in(1), transpose_a, transpose_b);
  if (alpha != 1) y = y * alpha;
  if (call.has(2)) y = y + (beta == 1 ? call.in(2) : call.in(2) * beta);
  call.out(0, y);
}

void build_einsum(Call& call) {
  std::vector<Expr> in;
  for (size_t i = 0; i < call.inputs(); i++) in.push_back(call.in(i));
  call.out(0, call.ops("einsum", in, {{"equation", std::string(call.text("equation", ""))}})[0]);
}

// Before opset 13 all axes from `axis` on count as one.
void build_softmax(Call& call) {
  Expr x = call.in(0);
  bool flattens = call.opset() < 13;
  int64_t axis = call.axis(call.i64("axis", flattens ? 1 : -1), x.rank());
  bool is_last = axis + 1 == static_cast<int64_t>(x.rank());
  if (!flattens || is_last) return call.out(0, call.op(call.kind().op, {x}, {{"axis", axis}}));
  std::span<const Dim> dims(x.dims());
  auto split = static_cast<size_t>(axis);
  const std::vector<Dim>& original = x.dims();
  Expr flat = reshape(x, {element_count(dims.first(split)), element_count(dims.subspan(split))});
  call.out(0, reshape(call.op(call.kind().op, {flat}, {{"axis", int64_t{1}}}), original));
}

// ---- norms ----

void build_layer_norm(Call& call) {
  if (call.i64("stash_type", 1) != 1) call.fail(Code::kUnsupported, "'stash_type' must be 1");
  int64_t axis = call.i64("axis", -1);
  Expr in[] = {call.in(0), call.in(1), call.in(2)};
  Outputs y = call.ops("layer_norm", in, {{"axis", axis}, {"eps", call.f64("epsilon", 1e-5)}});
  for (size_t i = 0; i < 3 && i < y.size(); i++) call.out(i, y[i]);
}

void build_rms_norm(Call& call) {
  if (call.i64("stash_type", 1) != 1) call.fail(Code::kUnsupported, "'stash_type' must be 1");
  int64_t axis = call.i64("axis", -1);
  call.out(0, call.op("rms_norm", {call.in(0), call.in(1)}, {{"axis", axis}, {"eps", call.f64("epsilon", 1e-5)}}));
}

void build_batch_norm(Call& call) {
  call.ignore("momentum");
  if (call.i64("training_mode", 0) != 0 || call.wants(1)) call.fail(Code::kUnsupported, "'training_mode' must be 0");
  if (call.i64("spatial", 1) != 1) call.fail(Code::kUnsupported, "'spatial' must be 1");
  call.out(0, call.op("batch_norm", {call.in(0), call.in(1), call.in(2), call.in(3), call.in(4)},
                      {{"eps", call.f64("epsilon", 1e-5)}}));
}

void build_instance_norm(Call& call) {
  call.out(0, call.op("instance_norm", {call.in(0), call.in(1), call.in(2)}, {{"eps", call.f64("epsilon", 1e-5)}}));
}

void build_group_norm(Call& call) {
  if (call.opset() < 21) return call.fail(Code::kUnsupported, "scale and bias per group (opset 18)");
  call.ignore("stash_type");
  call.out(0, call.op("group_norm", {call.in(0), call.in(1), call.in(2)},
                      {{"groups", call.i64("num_groups", 0)}, {"eps", call.f64("epsilon", 1e-5)}}));
}

// ---- windows over space ----

struct Window {
  std::vector<int64_t> kernel, strides, dilation;
  std::vector<Dim> lo, hi;
};

// SAME pads so that the output is the input over the stride, rounded up; the odd one goes to the end or the start.
void pad_same(Call& call, const std::vector<Dim>& space, bool upper, Window& window) {
  for (size_t i = 0; i < space.size(); i++) {
    Dim stride = window.strides[i], reach = window.dilation[i] * (window.kernel[i] - 1) + 1;
    Dim out = floor_div(space[i] + stride - Dim(1), stride);
    Dim pad = (out - Dim(1)) * stride + reach - space[i];
    if (call.range(pad).lo < 0) pad = max(Dim(0), pad);
    Dim small = floor_div(pad, Dim(2));
    window.lo[i] = upper ? small : pad - small;
    window.hi[i] = upper ? pad - small : small;
  }
}

Window window_of(Call& call, const std::vector<int64_t>& kernel) {
  const std::vector<Dim>& dims = call.type(0).dims;
  size_t n = dims.size() < 2 ? 0 : dims.size() - 2;
  Window window{call.i64s("kernel_shape", kernel), call.i64s("strides", std::vector<int64_t>(n, 1)),
                call.i64s("dilations", std::vector<int64_t>(n, 1)), std::vector<Dim>(n), std::vector<Dim>(n)};
  std::vector<int64_t> pads = call.i64s("pads", std::vector<int64_t>(2 * n, 0));
  std::string_view automatic = call.text("auto_pad", "NOTSET");
  if (n == 0 || window.kernel.size() != n || window.strides.size() != n || window.dilation.size() != n ||
      pads.size() != 2 * n) {
    call.fail(Code::kData, format("kernel, strides, dilations and pads do not suit {} spatial axes", n));
    return window;
  }
  for (size_t i = 0; i < n; i++) {
    if (window.strides[i] < 1 || window.dilation[i] < 1 || window.kernel[i] < 1)
      return call.fail(Code::kData, "a kernel, stride or dilation below 1"), window;
    window.lo[i] = pads[i], window.hi[i] = pads[i + n];
  }
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER")
    pad_same(call, {dims.begin() + 2, dims.end()}, automatic == "SAME_UPPER", window);
  else if (automatic != "NOTSET" && automatic != "VALID" && !automatic.empty())
    call.fail(Code::kData, "'auto_pad' is " + std::string(automatic));
  return window;
}

std::vector<int64_t> kernel_of(Call& call) {
  std::vector<int64_t> kernel;
  const std::vector<Dim>& dims = call.type(1).dims;
  for (size_t i = 2; i < dims.size(); i++) kernel.push_back(dims[i].is_literal() ? dims[i].literal() : 0);
  return kernel;
}

// One number per channel as [C,1,...].
Expr per_channel(Expr x, size_t spatial) {
  std::vector<Dim> dims{x.dim(0)};
  dims.resize(spatial + 1, Dim(1));
  return reshape(x, dims);
}

void build_conv(Call& call) {
  Window window = window_of(call, kernel_of(call));
  int64_t groups = call.i64("group", 1);
  Expr y = call.op("conv", {call.in(0), call.in(1)},
                   {{"strides", window.strides},
                    {"pad_lo", window.lo},
                    {"pad_hi", window.hi},
                    {"rhs_dilation", window.dilation},
                    {"groups", groups}});
  call.out(0, call.has(2) ? y + per_channel(call.in(2), window.kernel.size()) : y);
}

void build_conv_transpose(Call& call) {
  if (call.has_attr("output_shape")) return call.fail(Code::kUnsupported, "'output_shape' in place of pads");
  if (call.text("auto_pad", "NOTSET") != "NOTSET") return call.fail(Code::kUnsupported, "'auto_pad'");
  Window window = window_of(call, kernel_of(call));
  std::vector<int64_t> more = call.i64s("output_padding", std::vector<int64_t>(window.kernel.size(), 0));
  call.out(0, call.op("conv_transpose", {call.in(0), call.in(1), call.in(2)},
                      {{"strides", window.strides},
                       {"pad_lo", window.lo},
                       {"pad_hi", window.hi},
                       {"dilation", window.dilation},
                       {"output_padding", more},
                       {"groups", call.i64("group", 1)}}));
}

NamedAttrs pool_attrs(Call& call) {
  Window window = window_of(call, {});
  return {{"kernel", window.kernel}, {"strides", window.strides},   {"pad_lo", window.lo},
          {"pad_hi", window.hi},     {"dilation", window.dilation}, {"ceil_mode", call.i64("ceil_mode", 0)}};
}

void build_max_pool(Call& call) {
  if (call.i64("storage_order", 0) != 0) call.fail(Code::kUnsupported, "'storage_order' must be 0");
  Expr in[] = {call.in(0)};
  Outputs y = call.ops(call.wants(1) ? "max_pool_with_indices" : "max_pool", in, pool_attrs(call));
  for (size_t i = 0; i < 2 && i < y.size(); i++) call.out(i, y[i]);
}

void build_avg_pool(Call& call) {
  NamedAttrs attrs = pool_attrs(call);
  attrs.emplace_back("count_include_pad", call.i64("count_include_pad", 0));
  call.out(0, call.op("avg_pool", {call.in(0)}, attrs));
}

void build_global_average(Call& call) {
  Expr x = call.in(0);
  call.out(0, mean(x, trailing_axes(2, x.rank())));
}

void build_global_max(Call& call) {
  Expr x = call.in(0);
  call.out(0, reduce(x, "max", trailing_axes(2, x.rank())));
}

constexpr NodeKind kKinds[] = {
    {"MatMul", build_matmul},
    {"Gemm", build_gemm},
    {"Einsum", build_einsum},
    {"Softmax", build_softmax, "softmax"},
    {"LogSoftmax", build_softmax, "log_softmax"},
    {"Hardmax", build_softmax, "hardmax"},
    {"LayerNormalization", build_layer_norm},
    {"RMSNormalization", build_rms_norm},
    {"BatchNormalization", build_batch_norm},
    {"InstanceNormalization", build_instance_norm},
    {"GroupNormalization", build_group_norm},
    {"Conv", build_conv},
    {"ConvTranspose", build_conv_transpose},
    {"MaxPool", build_max_pool},
    {"AveragePool", build_avg_pool},
    {"GlobalAveragePool", build_global_average},
    {"GlobalMaxPool", build_global_max},
};

}  // namespace

std::span<const NodeKind> nn_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
