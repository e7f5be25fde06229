// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds of neural networks: products, norms, softmax.
#include <algorithm>

#include "import/onnx/matmul.h"
#include "import/onnx/softmax.h"

namespace rlx::onnx {

Expr softmax_from_axis(Call& call, std::string_view op, Expr x, int64_t axis) {
  if (!x.valid()) return x;
  if (axis + 1 == static_cast<int64_t>(x.rank())) return call.op(op, {x}, {{"axis", axis}});
  const std::vector<Dim>& dims = x.dims();
  std::vector<Dim> joined(dims.begin(), dims.begin() + axis);
  joined.push_back(element_count(std::span(dims).subspan(static_cast<size_t>(axis))));
  return reshape(call.op(op, {reshape(x, joined)}, {{"axis", axis}}), dims);
}

namespace {

void build_matmul(Call& call) {
  call.out(0, matmul_with_vectors(call.in(0), call.in(1), [](Expr a, Expr b) { return matmul(a, b); }));
}

// alpha * a b + beta * c. With a beta of 0 what c holds does not matter, NaN or not.
void build_gemm(Call& call) {
  double alpha = call.f64("alpha", 1), beta = call.f64("beta", 1);
  bool transpose_a = call.i64("transA", 0) != 0, transpose_b = call.i64("transB", 0) != 0;
  if (call.opset() < 7) call.ignore("broadcast");
  Expr y = matmul(call.in(0), call.in(1), {.a = transpose_a, .b = transpose_b});
  if (alpha != 1) y = y * alpha;
  if (call.has(2) && beta != 0) y = y + (beta == 1 ? call.in(2) : call.in(2) * beta);
  call.out(0, y);
}

// Sums of narrow integers are of that dtype, as if each product were.
void build_einsum(Call& call) {
  DType dtype = call.type(0).dtype;
  bool is_narrow = is_integer(dtype) && element_bytes(dtype) < element_bytes(DType::kI32);
  std::vector<Expr> in;
  for (size_t i = 0; i < call.inputs(); i++) in.push_back(is_narrow ? cast(call.in(i), DType::kI32) : call.in(i));
  Expr y = call.ops("einsum", in, {{"equation", std::string(call.text("equation", ""))}})[0];
  call.out(0, is_narrow ? cast(y, dtype) : y);
}

// A scalar is a row of one element.
void build_softmax(Call& call) {
  Expr x = call.in(0);
  bool is_old = call.opset() < 13, is_scalar = x.valid() && x.rank() == 0;
  if (is_scalar) x = unsqueeze(x, 0);
  int64_t axis = call.axis(call.i64("axis", is_old ? 1 : -1), x.rank());
  std::string_view op = call.kind().op;
  Expr y = is_old ? softmax_from_axis(call, op, x, axis) : call.op(op, {x}, {{"axis", axis}});
  call.out(0, is_scalar ? reshape(y, {}) : y);
}

// ---- norms ----

// The dtype of the statistics. Ours are at least as precise: halves are computed in f32.
DType stash_type(Call& call) {
  DType stash = call.dtype("stash_type", DType::kF32);
  if (!is_float(stash)) call.fail(Code::kData, format("'stash_type' is {}", stash));
  return stash;
}

// Gamma and beta of a norm need only broadcast to x. Those that say one number for each element of a row are operands
// of the op, made as large as a row; with others the result of the op is scaled and shifted.
struct Affine {
  Expr gamma, beta;
  bool is_apart = false;
};

bool broadcasts_to(const Expr& value, std::span<const Dim> row) {
  std::vector<Dim> dims = value.dims();
  size_t extra = dims.size() - std::min(dims.size(), row.size());
  return std::all_of(dims.begin(), dims.begin() + static_cast<int64_t>(extra),
                     [](const Dim& dim) { return dim.is(1); });
}

Expr as_row(Expr value, std::span<const Dim> row) {
  if (!value || !value.valid()) return value;
  std::vector<Dim> dims = value.dims();
  if (dims.size() > row.size())
    value = reshape(value, std::vector<Dim>(dims.end() - static_cast<int64_t>(row.size()), dims.end()));
  if (value.rank() == row.size() && std::none_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is(1); }))
    return value;
  return broadcast_to(value, std::vector<Dim>(row.begin(), row.end()));
}

Affine affine_of(Call& call, const Expr& x, Expr gamma, Expr beta) {
  Affine affine{gamma, beta};
  if (!x.valid() || x.rank() == 0) return affine;
  const std::vector<Dim> dims = x.dims();
  std::span row = std::span(dims).subspan(static_cast<size_t>(call.axis(call.i64("axis", -1), x.rank())));
  for (const Expr& each : {gamma, beta})
    if (each && each.valid() && !broadcasts_to(each, row)) affine.is_apart = true;
  if (!affine.is_apart) affine = {as_row(gamma, row), as_row(beta, row)};
  return affine;
}

// Computes in f64 if the statistics are f64. The result has the dtype of x.
Outputs build_norm(Call& call, std::string_view op, Expr x, Expr gamma, Expr beta) {
  DType stash = stash_type(call), dtype = call.type(0).dtype;
  Affine affine = affine_of(call, x, gamma, beta);
  auto widened = [&](Expr each) {
    bool widens = stash == DType::kF64 || (affine.is_apart && dtype != DType::kF64);
    return each && widens ? cast(each, stash) : each;
  };
  Expr none(&call.builder(), kAbsent);
  Expr scale = widened(affine.gamma), shift = widened(affine.beta);
  Expr in[] = {widened(x), affine.is_apart ? none : scale, affine.is_apart ? none : shift};
  Outputs y = call.ops(op, in, {{"axis", call.i64("axis", -1)}, {"eps", call.f64("epsilon", 1e-5)}});
  if (affine.is_apart && scale) y[0] = y[0] * scale;
  if (affine.is_apart && shift) y[0] = y[0] + shift;
  for (size_t i = 0; i < y.size() && y[i].valid(); i++) y[i] = cast(y[i], i == 0 ? dtype : stash);
  return y;
}

void build_layer_norm(Call& call) {
  Outputs y = build_norm(call, "layer_norm", call.in(0), call.in(1), call.in(2));
  for (size_t i = 0; i < 3 && i < y.size(); i++) call.out(i, y[i]);
}

void build_rms_norm(Call& call) {
  Outputs y = build_norm(call, "rms_norm", call.in(0), call.in(1), Expr(&call.builder(), kAbsent));
  for (size_t i = 0; i < 2 && i < y.size(); i++) call.out(i, y[i]);
}

// Computes in the wider dtype of input and statistics. Before opset 14 the last two outputs are what a gradient reads:
// the mean of the batch and the inverse of its deviation.
void build_batch_norm_training(Call& call) {
  Expr x = call.in(0);
  if (!x.valid() || !call.in(4).valid()) return;
  if (x.rank() == 1) x = unsqueeze(x, 1);  // of one channel
  Expr in[] = {x, call.in(1), call.in(2), call.in(3), call.in(4)};
  DType narrow = call.type(0).dtype, stats = call.type(3).dtype;
  DType wide = element_bytes(narrow) > element_bytes(stats) ? narrow : stats;
  for (Expr& each : in) each = cast(each, wide);
  Outputs y =
      call.ops("batch_norm_train", in, {{"eps", call.f64("epsilon", 1e-5)}, {"momentum", call.f64("momentum", 0.9)}});
  if (!y[0].valid()) return;
  call.out(0, reshape(cast(y[0], narrow), call.type(0).dims));
  for (size_t i = 1; i < std::min(y.size(), call.outputs()); i++) call.out(i, cast(y[i], stats));
}

// One number for every element of an item.
void build_batch_norm_of_elements(Call& call) {
  Expr scale = call.in(1) / sqrt(call.in(4) + call.f64("epsilon", 1e-5));
  call.out(0, (call.in(0) - call.in(3)) * scale + call.in(2));
}

void build_batch_norm(Call& call) {
  bool has_statistics = false, is_spatial = call.i64("spatial", 1) != 0;
  for (size_t i = 1; i < call.outputs(); i++) has_statistics |= call.wants(i);
  call.ignore("is_test");  // before opset 14, a node trains if it has more than one output
  if (call.i64("training_mode", 0) != 0 || (has_statistics && call.opset() < 14 && is_spatial))
    return build_batch_norm_training(call);
  call.ignore("momentum");
  if (has_statistics)
    call.fail(Code::kUnsupported, is_spatial ? "'training_mode' must be 1 for more than one output"
                                             : "statistics of every element: 'spatial' is 0");
  if (!is_spatial) return build_batch_norm_of_elements(call);
  Expr x = call.in(0);
  bool is_list = x.valid() && x.rank() == 1;  // of one channel
  Expr y = call.op("batch_norm", {is_list ? unsqueeze(x, 1) : x, call.in(1), call.in(2), call.in(3), call.in(4)},
                   {{"eps", call.f64("epsilon", 1e-5)}});
  call.out(0, is_list ? reshape(y, x.dims()) : y);
}

void build_instance_norm(Call& call) {
  call.out(0, call.op("instance_norm", {call.in(0), call.in(1), call.in(2)}, {{"eps", call.f64("epsilon", 1e-5)}}));
}

void build_group_norm(Call& call) {
  call.ignore("stash_type");
  Expr x = call.in(0), scale = call.in(1), bias = call.in(2);
  int64_t groups = call.i64("num_groups", 0);
  if (call.opset() < 21 && groups > 0 && x.valid() && x.rank() > 1) {  // one number a group
    Dim each = floor_div(x.dim(1), Dim(groups));
    scale = call.op("repeat", {scale}, {{"axis", int64_t{0}}, {"repeats", each}});
    bias = call.op("repeat", {bias}, {{"axis", int64_t{0}}, {"repeats", each}});
  }
  call.out(0, call.op("group_norm", {x, scale, bias}, {{"groups", groups}, {"eps", call.f64("epsilon", 1e-5)}}));
}

void build_lrn(Call& call) {
  call.out(0, call.op("lrn", {call.in(0)},
                      {{"size", call.i64("size", 0)},
                       {"alpha", call.f64("alpha", 1e-4)},
                       {"beta", call.f64("beta", 0.75)},
                       {"bias", call.f64("bias", 1)}}));
}

void build_lp_norm(Call& call) {
  call.out(0, call.op("lp_norm", {call.in(0)}, {{"axis", call.i64("axis", -1)}, {"p", call.i64("p", 2)}}));
}

void build_mean_variance_norm(Call& call) {
  call.out(0, call.op("mean_variance_norm", {call.in(0)}, {{"axes", call.i64s("axes", {0, 2, 3})}}));
}

// ---- matrices ----

// Halves are computed in f32.
void build_of_matrix(Call& call) {
  DType dtype = call.type(0).dtype;
  call.out(0, cast(call.op(call.kind().op, {cast(call.in(0), compute_dtype(dtype))}), dtype));
}

// ---- over all spatial axes ----

void build_global_average(Call& call) {
  Expr x = call.in(0);
  call.out(0, mean(x, trailing_axes(2, x.rank())));
}

void build_global_max(Call& call) {
  Expr x = call.in(0);
  call.out(0, reduce(x, "max", trailing_axes(2, x.rank())));
}

void build_swiglu(Call& call) {
  Expr gate = call.op("silu", {call.in(0)}, {{"beta", call.f64("alpha", 1)}});
  call.out(0, gate * call.in(1));
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
    {"SimplifiedLayerNormalization", build_rms_norm},
    {.op_type = "SimplifiedLayerNormalization", .build = build_rms_norm, .domain = "com.microsoft"},
    {"BatchNormalization", build_batch_norm},
    {"InstanceNormalization", build_instance_norm},
    {"GroupNormalization", build_group_norm},
    {"LRN", build_lrn},
    {"LpNormalization", build_lp_norm},
    {"MeanVarianceNormalization", build_mean_variance_norm},
    {"Det", build_of_matrix, "det"},
    microsoft("Inverse", build_of_matrix, "inverse"),
    {"GlobalAveragePool", build_global_average},
    {"GlobalMaxPool", build_global_max},
    {"SwiGLU", build_swiglu},
};

}  // namespace

std::span<const NodeKind> nn_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
