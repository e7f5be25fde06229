// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform, for any length: the transform of n = p * m elements is put together from
// p transforms of m (Cooley and Tukey, 1965); a prime length is the sum of its definition. All in c128, rounded once.
#include <cmath>
#include <numbers>

#include "ops/eval.h"

namespace rlx {

Status infer_fft(InferArgs& args) {
  for (int64_t axis : args.attrs.i64s("axes"))
    RLX_TRY(args.require_le(1, args.dims()[static_cast<size_t>(axis)], format("the length of axis {}", axis)));
  args.out[0].dims = args.dims();
  return {};
}

static int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

class Transform {
 public:
  Transform(int64_t length, bool inverse) : roots_(static_cast<size_t>(length)) {
    for (int64_t k = 0; k < length; k++) {
      double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
      roots_[static_cast<size_t>(k)] = std::polar(1.0, inverse ? angle : -angle);
    }
  }

  // out[k] = sum over j < n of in[j * stride] * w^(jk), w the n-th root of unity; n * stride = the length.
  void run(const c128* in, int64_t n, int64_t stride, c128* out) const {
    if (n == 1) {
      *out = *in;
      return;
    }
    int64_t p = smallest_factor(n), m = n / p;
    for (int64_t r = 0; r < p; r++) run(in + r * stride, m, stride * p, out + r * m);
    p == 2 ? join_halves(m, stride, out) : join(p, m, stride, out);
  }

 private:
  // Products of finite numbers: that of the library also repairs infinities, by a call.
  static c128 times(c128 a, c128 b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
  void join_halves(int64_t m, int64_t stride, c128* out) const {
    for (int64_t k = 0; k < m; k++) {
      c128 even = out[k], odd = times(out[m + k], root(k * stride));
      out[k] = even + odd;
      out[m + k] = even - odd;
    }
  }
  // The p parts of m results each become p * m results.
  void join(int64_t p, int64_t m, int64_t stride, c128* out) const {
    std::vector<c128> part(static_cast<size_t>(p));
    for (int64_t k = 0; k < m; k++) {
      for (int64_t r = 0; r < p; r++) part[static_cast<size_t>(r)] = out[r * m + k];
      for (int64_t q = 0; q < p; q++) {
        int64_t to = q * m + k, at = 0;  // at: r * to modulo p * m
        c128 sum = 0;
        for (int64_t r = 0; r < p; r++) {
          sum += times(part[static_cast<size_t>(r)], root(at * stride));
          at += to;
          if (at >= p * m) at -= p * m;
        }
        out[to] = sum;
      }
    }
  }
  c128 root(int64_t k) const { return roots_[static_cast<size_t>(k)]; }
  std::vector<c128> roots_;  // w^k, k < length
};

static double scale_of(const Attrs& attrs, int64_t n) {
  if (attrs.is("norm", "ortho")) return 1 / std::sqrt(static_cast<double>(n));
  return attrs.is("norm", "forward") != attrs.flag("inverse") ? 1 / static_cast<double>(n) : 1;
}

static void transform_axis(const Attrs& attrs, const Dims& dims, size_t axis, std::vector<c128>& values) {
  int64_t n = dims[axis], stride = dense_strides(dims)[axis];
  Transform transform(n, attrs.flag("inverse"));
  double scale = scale_of(attrs, n);
  std::vector<c128> line(static_cast<size_t>(n)), result(static_cast<size_t>(n));
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()) / n; i++) {
    c128* first = values.data() + i / stride * stride * n + i % stride;
    for (int64_t k = 0; k < n; k++) line[static_cast<size_t>(k)] = first[k * stride];
    transform.run(line.data(), n, 1, result.data());
    for (int64_t k = 0; k < n; k++) first[k * stride] = result[static_cast<size_t>(k)] * scale;
  }
}

Status eval_fft(EvalArgs& args) {
  const Operand &in = args.in[0], &out = args.out[0];
  visit<dtypes::Z>(in.dtype, [&]<class T>() {
    std::vector<c128> values(in.as<T>(), in.as<T>() + in.count());
    for (int64_t axis : args.attrs.i64s("axes")) transform_axis(args.attrs, in.dims, static_cast<size_t>(axis), values);
    for (size_t i = 0; i < values.size(); i++) out.as<T>()[i] = T(values[i]);
  });
  return {};
}

}  // namespace rlx
