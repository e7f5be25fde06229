// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds of signal processing. ONNX writes complex numbers as pairs along a last axis.
#include <algorithm>
#include <cmath>

#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

std::optional<Dim> one_size(Call& call, size_t i, const char* what) {
  std::vector<Dim> sizes = call.dims(i, what);
  if (sizes.size() == 1) return sizes[0];
  call.fail(Code::kData, std::string("'") + what + "' is not one number");
  return std::nullopt;
}

// A periodic window is the symmetric one of a further element, without it: of one element too, where the op of ours
// gives 1 as other libraries do.
void build_window(Call& call) {
  auto size = one_size(call, 0, "size");
  DType dtype = call.dtype("output_datatype", DType::kF32);
  bool is_periodic = call.i64("periodic", 1) != 0;
  if (!size) return;
  bool is_float_type = is_float(dtype);
  Expr y = call.op("window", {},
                   {{"size", is_periodic ? *size + Dim(1) : *size},
                    {"kind", std::string(call.kind().op)},
                    {"periodic", int64_t{0}},
                    {"dtype", is_float_type ? dtype : DType::kF32}});
  if (is_periodic) y = slice(y, 0, 0, *size);
  call.out(0, is_float_type ? y : cast(y, dtype));
}

// ---- transforms ----

std::vector<Dim> without_last(Expr x) {
  return {x.dims().begin(), x.dims().end() - 1};
}

// A real signal of [..., 1] or [...], or a complex one of [..., 2], in f32 or f64.
Expr signal_of(Call& call, Expr x) {
  if (is_half(x.dtype())) x = cast(x, DType::kF32);
  if (!x.valid() || !is_float(x.dtype()))
    return call.builder().fail(Status(Code::kDtype, "a signal must be of floats"));
  if (x.rank() > 0 && x.dim(-1).is(1)) return reshape(x, without_last(x));
  if (x.rank() == 0 || !x.dim(-1).is(2))
    return call.fail_of_sizes("a signal whose last axis is neither 1 nor 2"), Expr(&call.builder(), kInvalid);
  return call.op("bitcast", {x}, {{"to", x.dtype() == DType::kF32 ? DType::kC64 : DType::kC128}});
}

// Complex numbers as pairs, real ones along a last axis of 1, in the dtype of the signal.
Expr pairs_of(Call& call, Expr y, DType dtype) {
  if (!y.valid()) return y;
  if (!is_complex(y.dtype())) return cast(unsqueeze(y, -1), dtype);
  return cast(call.op("bitcast", {y}, {{"to", y.dtype() == DType::kC64 ? DType::kF32 : DType::kF64}}), dtype);
}

// x cut, or padded with zeros, to a length.
Expr fitted(Call& call, Expr x, int64_t axis, const Dim& length) {
  if (x.dim(axis) == length) return x;
  std::vector<Dim> lo(x.rank(), 0), hi = lo;
  hi[static_cast<size_t>(axis)] = length - x.dim(axis);
  return call.op("pad", {x}, {{"lo", lo}, {"hi", hi}});
}

struct Transform {
  bool inverse, onesided;
};
Expr transformed(Call& call, Expr x, int64_t axis, const Dim& length, Transform transform) {
  auto [inverse, onesided] = transform;
  if (inverse && onesided) {
    if (!is_complex(x.dtype())) x = call.op("complex", {x, scalar_like(x, 0)});
    return call.op("irfft", {x}, {{"axis", axis}, {"n", length}});
  }
  if (onesided && !is_complex(x.dtype())) return call.op("rfft", {x}, {{"axis", axis}, {"n", length}});
  x = fitted(call, x, axis, length);
  if (!is_complex(x.dtype())) x = call.op("complex", {x, scalar_like(x, 0)});
  Expr y = call.op("fft", {x}, {{"axes", Axes{axis}}, {"inverse", int64_t{inverse}}});
  return onesided ? slice(y, axis, 0, floor_div(length, Dim(2)) + Dim(1)) : y;
}

// Before opset 20 the axis is an attribute.
void build_dft(Call& call) {
  Expr x = call.in(0);
  size_t rank = x.rank();
  bool inverse = call.i64("inverse", 0) != 0, onesided = call.i64("onesided", 0) != 0;
  int64_t axis = call.opset() < 20 ? call.i64("axis", 1) : -2;
  if (call.opset() >= 20 && call.has(2)) {
    std::vector<int64_t> given = call.numbers(2, "axis");
    if (given.size() != 1) return call.fail(Code::kData, "'axis' is not one number");
    axis = given[0];
  }
  axis = call.axis(axis, rank);
  if (rank < 2 || axis + 1 >= static_cast<int64_t>(rank))
    return call.fail(Code::kData, "'axis' is that of the complex pairs");
  Dim length = x.dim(axis);
  if (inverse && onesided) length = (length - Dim(1)) * Dim(2);
  if (call.has(1)) {
    auto given = one_size(call, 1, "dft_length");
    if (!given) return;
    length = *given;
  }
  Expr signal = signal_of(call, x);
  if (signal.valid())
    call.out(0, pairs_of(call, transformed(call, signal, axis, length, {inverse, onesided}), x.dtype()));
}

// Along the last axis of a real signal; its inverse reads pairs.
void build_contrib_dft(Call& call) {
  bool inverse = call.kind().op_type == "Irfft";
  if (call.i64("signal_ndim", 1) != 1 || call.i64("onesided", 1) != 1 || call.i64("normalized", 0) != 0)
    return call.fail(Code::kUnsupported, "more than one axis, two sides, or a norm");
  Expr x = call.in(0);
  if (!x.valid() || x.rank() < (inverse ? 2U : 1U)) return call.fail(Code::kShape, "X has too few axes");
  Expr signal = inverse ? signal_of(call, x) : is_half(x.dtype()) ? cast(x, DType::kF32) : x;
  if (!signal.valid() || signal.rank() == 0) return;
  int64_t axis = static_cast<int64_t>(signal.rank()) - 1;
  Dim length = inverse ? (signal.dim(axis) - Dim(1)) * Dim(2) : signal.dim(axis);
  Expr y = transformed(call, signal, axis, length, {.inverse = inverse, .onesided = true});
  call.out(0, inverse ? cast(y, x.dtype()) : pairs_of(call, y, x.dtype()));
}

void build_stft(Call& call) {
  Expr x = call.in(0), signal = x, window = call.in(2);
  std::vector<int64_t> hop = call.numbers(1, "frame_step");
  if (hop.size() != 1) return call.fail(Code::kData, "'frame_step' is not one number");
  if (x.rank() == 2) signal = unsqueeze(x, 2);
  if (signal.rank() != 3) return call.fail(Code::kData, "a signal must have rank 2 or 3");
  signal = signal_of(call, signal);
  if (!signal.valid()) return;
  std::optional<Dim> frame;
  if (call.has(3))
    frame = one_size(call, 3, "frame_length");
  else if (window && window.rank() == 1)
    frame = window.dim(0);
  if (!frame) return call.fail(Code::kData, "neither 'window' nor 'frame_length' is there");
  if (window && is_half(window.dtype())) window = cast(window, DType::kF32);
  int64_t onesided = call.i64("onesided", 1);
  if (is_complex(signal.dtype())) onesided = 0;
  Expr y = call.op("stft", {signal, window}, {{"frame", *frame}, {"hop", hop[0]}, {"onesided", onesided}});
  call.out(0, pairs_of(call, y, x.dtype()));
}

// ---- MelWeightMatrix ----

struct MelScale {
  int64_t bands, length, rate;
  double low, high;
  int64_t bins() const { return length / 2 + 1; }

  // The bins at which the bands begin, peak and end.
  std::vector<int64_t> edges() const {
    auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
    double first = mel(low), step = (mel(high) - first) / static_cast<double>(bands + 2);
    std::vector<int64_t> edges;
    for (int64_t i = 0; i < bands + 2; i++) {
      double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + first) / 2595) - 1);
      double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
      edges.push_back(static_cast<int64_t>(std::clamp(bin, 0.0, 0x1p40)));
    }
    return edges;
  }
};

void fill_mel_weights(const MelScale& scale, float* to) {
  std::vector<int64_t> edges = scale.edges();
  for (int64_t band = 0; band < scale.bands; band++) {
    auto at = static_cast<size_t>(band);
    int64_t low = edges[at], centre = edges[at + 1], high = edges[at + 2];
    auto put = [&](int64_t bin, double weight) {
      if (bin >= 0 && bin < scale.bins()) to[bin * scale.bands + band] = static_cast<float>(weight);
    };
    auto ratio = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
    if (low == centre) put(centre, 1);
    for (int64_t bin = low; bin <= std::min(centre, scale.bins()) && low != centre; bin++)
      put(bin, ratio(bin - low, centre - low));
    for (int64_t bin = centre; bin < std::min(high, scale.bins()); bin++) put(bin, ratio(high - bin, high - centre));
  }
}

void build_mel_weight_matrix(Call& call) {
  static constexpr int64_t kMost = int64_t{1} << 24;  // elements
  DType dtype = call.dtype("output_datatype", DType::kF32);
  std::vector<double> given;
  for (size_t i = 0; i < 5; i++) {
    std::vector<double> number = call.reals(i, "mel scale");
    if (number.size() != 1 || !std::isfinite(number[0]) || std::abs(number[0]) > 0x1p40)
      return call.fail(Code::kData, format("input {} is not one number", i));
    given.push_back(number[0]);
  }
  MelScale scale{static_cast<int64_t>(given[0]), static_cast<int64_t>(given[1]), static_cast<int64_t>(given[2]),
                 given[3], given[4]};
  bool is_good = scale.bands >= 0 && scale.length >= 0 && scale.rate > 0 && scale.low >= 0 && scale.high >= scale.low;
  if (!is_good || scale.bands > kMost || scale.length > kMost ||
      scale.bins() * std::max<int64_t>(scale.bands, 1) > kMost)
    return call.fail(Code::kData, "the mel scale makes no matrix of a usable size");
  auto tensor = Tensor::create(DType::kF32, std::array{scale.bins(), scale.bands});
  if (!tensor.ok()) return call.fail(tensor.status().code(), std::string(tensor.status().message()));
  std::fill_n(tensor->as<float>(), tensor->count(), 0.0f);
  fill_mel_weights(scale, tensor->as<float>());
  call.out(0, cast(call.builder().constant(*tensor), dtype));
}

constexpr NodeKind kKinds[] = {
    {"HannWindow", build_window, "hann"},
    {"HammingWindow", build_window, "hamming"},
    {"BlackmanWindow", build_window, "blackman"},
    {"DFT", build_dft},
    {"STFT", build_stft},
    microsoft("Rfft", build_contrib_dft),
    microsoft("Irfft", build_contrib_dft),
    {"MelWeightMatrix", build_mel_weight_matrix},
};

}  // namespace

std::span<const NodeKind> signal_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
