// SPDX-License-Identifier: Apache-2.0
// Transforms of real signals, and of frames along them; windows for these.
#include <numbers>

#include "ops/expr.h"

namespace rlx {

// x cut, or padded with zeros, to n elements along an axis.
static Expr fitted(Expr x, int64_t axis, const Dim& n) {
  if (x.dim(axis) == n) return x;
  std::vector<Dim> none(x.rank(), 0), more = none;
  more[static_cast<size_t>(axis)] = n - x.dim(axis);
  return x.builder().op(Op::kPad, {x}, {{"lo", none}, {"hi", more}});
}

enum class Direction { kForward, kInverse };
static Expr transformed(Expr x, int64_t axis, Direction direction, const std::string& norm) {
  bool inverse = direction == Direction::kInverse;
  return x.builder().op(Op::kFft, {x}, {{"axes", Axes{axis}}, {"inverse", int64_t{inverse}}, {"norm", norm}});
}

static Expr with_imaginary(Expr x, Expr imaginary) {
  return x.builder().op(Op::kComplex, {x, imaginary});
}

Outputs decompose_rfft(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  int64_t axis = attrs.i64("axis");
  Dim n = attrs.has("n") ? attrs.dim("n") : x.dim(axis);
  x = fitted(x, axis, n);
  Expr y = transformed(with_imaginary(x, scalar_like(x, 0)), axis, Direction::kForward, attrs.str("norm"));
  return {slice(y, axis, 0, floor_div(n, Dim(2)) + Dim(1))};
}

Outputs decompose_irfft(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  int64_t axis = attrs.i64("axis");
  Dim n = attrs.has("n") ? attrs.dim("n") : Dim(2) * (x.dim(axis) - Dim(1));
  if (!require(x, Guard::kLessEqual, 1, n)) return {};
  Dim half = floor_div(n, Dim(2)) + Dim(1), mirrored = floor_div(n + Dim(1), Dim(2));
  x = fitted(x, axis, half);
  if (!x.valid()) return {x};
  // Entry 0, and the middle entry of an even n, are their own mirror images, so their imaginary parts are ignored.
  std::vector<Dim> along(x.rank(), 1);
  along[static_cast<size_t>(axis)] = half;
  Expr k = iota(b, along, axis, DType::kI64), doubled = k * 2.0;
  Expr is_own = logical_or(equal(k, 0), equal(doubled, b.size(n, DType::kI64)));
  Expr real = unary(Op::kReal, x), imaginary = where(is_own, 0, unary(Op::kImag, x));
  x = with_imaginary(real, imaginary);
  Expr tail = unary(Op::kConj, slice(x, axis, 1, mirrored));
  tail = b.op(Op::kFlip, {tail}, {{"axes", Axes{axis}}});
  return {
      unary(Op::kReal, transformed(concat(std::array{x, tail}, axis), axis, Direction::kInverse, attrs.str("norm")))};
}

Outputs decompose_stft(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0], window = in[1];
  bool onesided = attrs.flag("onesided");
  if (x.rank() != 2) return refuse(in, Code::kShape, format("x has rank {}, not 2", x.rank()));
  if (onesided && is_complex(x.dtype())) return refuse(in, Code::kOption, "'onesided' must be false of complex x");
  const Dim& frame = attrs.dim("frame");
  int64_t hop = attrs.i64("hop");
  if (!require(x, Guard::kLessEqual, 1, frame) || !require(x, Guard::kLessEqual, frame, x.dim(1))) return {};
  Dim frames = floor_div(x.dim(1) - frame, Dim(hop)) + Dim(1);
  Expr place = iota(b, {frames, 1}, 0, DType::kI64) * b.size(hop, DType::kI64) + iota(b, {1, frame}, 1, DType::kI64);
  Expr y = gather(x, place, 1);
  if (window) {
    if (window.rank() != 1) return refuse(in, Code::kShape, format("window has rank {}, not 1", window.rank()));
    if (!require(x, Guard::kLessEqual, window.dim(0), frame)) return {};
    Dim more = frame - window.dim(0), before = floor_div(more, Dim(2));
    window = b.op(Op::kPad, {window}, {{"lo", std::vector<Dim>{before}}, {"hi", std::vector<Dim>{more - before}}});
    if (is_complex(x.dtype()) && !is_complex(window.dtype())) window = cast(window, x.dtype());
    y = y * window;
  }
  if (onesided) return {b.op(Op::kRfft, {y})};
  if (!is_complex(y.dtype())) y = with_imaginary(y, scalar_like(y, 0));
  return {transformed(y, 2, Direction::kForward, "backward")};
}

Outputs decompose_window(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  const Dim& size = attrs.dim("size");
  Expr n = b.size(attrs.flag("periodic") ? size : size - Dim(1), DType::kF64);
  n = where(equal(n, 0), 1, n);  // for a single element
  Expr t = iota(b, {size}, 0, DType::kF64) * (2 * std::numbers::pi) / n;
  auto cosine = [](Expr x) { return unary(Op::kCos, x); };
  Expr y;
  if (attrs.is("kind", "hann"))
    y = 0.5 - 0.5 * cosine(t);
  else if (attrs.is("kind", "hamming"))
    y = 25.0 / 46 - 21.0 / 46 * cosine(t);
  else
    y = 0.42 - 0.5 * cosine(t) + 0.08 * cosine(2.0 * t);
  y = where(equal(b.size(size, DType::kI64), 1), 1, y);
  return {cast(y, attrs.dtype("dtype"))};
}

}  // namespace rlx
