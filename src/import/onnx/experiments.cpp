// SPDX-License-Identifier: Apache-2.0
// Node kinds that ai.onnx tried before opset 10 and never standardised. Converters of Core ML and Caffe2 wrote them.
#include "import/onnx/call.h"
#include "import/onnx/list.h"

namespace rlx::onnx {

namespace {

void build_affine(Call& call) {
  double alpha = call.f64("alpha", 1), beta = call.f64("beta", 0);
  call.out(0, call.in(0) * alpha + beta);
}

void build_scale(Call& call) {
  call.out(0, call.in(0) * call.f64("scale", 1));
}

void build_scaled_tanh(Call& call) {
  double alpha = call.f64("alpha", 1), beta = call.f64("beta", 1);
  call.out(0, tanh(call.in(0) * beta) * alpha);
}

void build_parametric_softplus(Call& call) {
  double alpha = call.f64("alpha", 1), beta = call.f64("beta", 1);
  call.out(0, call.op("softplus", {call.in(0) * beta}) * alpha);
}

// One number for all pixels, and one to add for each channel.
void build_image_scaler(Call& call) {
  std::vector<double> bias = call.f64s("bias");
  Expr y = call.in(0) * call.f64("scale", 1);
  if (!y.valid() || bias.empty()) return call.out(0, y);
  auto numbers = list_tensor(DType::kF32, std::span<const float>(std::vector<float>(bias.begin(), bias.end())));
  if (!numbers.ok()) return call.fail(numbers.status());
  Expr row = reshape(call.builder().constant(*numbers), {Dim(numbers->count()), Dim(1), Dim(1)});
  call.out(0, y + cast(row, y.dtype()));
}

// The border is left, top, right, bottom; a scale is the height and width of the result instead of the last two.
void build_crop(Call& call) {
  std::vector<int64_t> border = call.i64s("border"), scale = call.i64s("scale");
  Expr x = call.in(0);
  if (!x.valid() || x.rank() != 4) return call.fail(Code::kShape, "its input must have rank 4");
  if (border.size() != 4 || (!scale.empty() && scale.size() != 2))
    return call.fail(Code::kData, "'border' must hold 4 numbers, 'scale' 2");
  Dim bottom = scale.empty() ? x.dim(2) - Dim(border[3]) : Dim(border[1]) + Dim(scale[0]);
  Dim right = scale.empty() ? x.dim(3) - Dim(border[2]) : Dim(border[0]) + Dim(scale[1]);
  call.out(0, slice(slice(x, 2, border[1], bottom), 3, border[0], right));
}

constexpr NodeKind kKinds[] = {
    {"Affine", build_affine},
    {"Scale", build_scale},
    {"ScaledTanh", build_scaled_tanh},
    {"ParametricSoftplus", build_parametric_softplus},
    {"ImageScaler", build_image_scaler},
    {"Crop", build_crop},
};

}  // namespace

std::span<const NodeKind> experiment_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
