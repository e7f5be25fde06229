// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform, for any length: the transform of n = p * m elements is put together from
// p transforms of m (Cooley and Tukey, 1965). A prime length is the sum of its definition, or, if it is long, a
// convolution (Bluestein, 1970). All in c128, rounded once.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "ops/eval.h"
#include "ops/work.h"

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

// A longer prime is a convolution. Measured, that wins from 83 elements for many lines, from 190 for one.
static constexpr int64_t kLongestSum = 128;

// By the formula alone: operator* of std::complex also repairs infinities, which costs a call.
static c128 times(c128 a, c128 b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

static bool is_finite(c128 x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

static bool is_all_nan(c128 x) {
  return std::isnan(x.real()) && std::isnan(x.imag());
}

static size_t padded_length(int64_t p) {
  return std::bit_ceil(2 * static_cast<size_t>(p) - 1);
}

class Chirp;

class Transform {
 public:
  Transform(int64_t length, bool inverse);

  // out[k] = sum over j < n of in[j * stride] * w^(jk), w the n-th root of unity; n * stride = the length.
  void run(const c128* in, int64_t n, int64_t stride, c128* out) {
    if (n == 1) {
      *out = *in;
      return;
    }
    int64_t p = smallest_factor(n), m = n / p;
    for (int64_t r = 0; r < p; r++) run(in + r * stride, m, stride * p, out + r * m);
    p == 2 ? join_halves(m, stride, out) : join(p, m, stride, out);
  }

 private:
  void join_halves(int64_t m, int64_t stride, c128* out) const {
    for (int64_t k = 0; k < m; k++) {
      c128 even = out[k], odd = times(out[m + k], root(k * stride));
      out[k] = even + odd;
      out[m + k] = even - odd;
    }
  }
  // The p parts of m results each become p * m results.
  void join(int64_t p, int64_t m, int64_t stride, c128* out);
  void add_up(const std::vector<c128>& part, int64_t k, int64_t m, int64_t stride, c128* out) const;
  void add_up_nonfinite(const std::vector<c128>& part, int64_t k, int64_t m, int64_t stride, c128* out) const;
  void convolve(Chirp& chirp, std::vector<c128>& part, int64_t k, int64_t m, int64_t stride, c128* out) const;
  c128 root(int64_t k) const { return roots_[static_cast<size_t>(k)]; }
  std::vector<c128> roots_;    // w^k, k < length
  std::vector<Chirp> chirps_;  // one for each prime factor above kLongestSum
};

// The transform of a prime length p as a convolution. As jk = (j^2 + k^2 - (k - j)^2) / 2, with the chirp
// c[k] = w^(k^2 / 2) it is y[k] = c[k] * sum over j of (x[j] * c[j]) / c[k - j] (Bluestein, A linear filtering approach
// to the computation of discrete Fourier transform, 1970). Exponents of w count modulo p, which is odd: there, half of
// k^2 is the integer k^2 * (p + 1) / 2. So every c[k] is a root of unity from the table, as exact as the others.
class Chirp {
 public:
  Chirp(int64_t p, const std::vector<c128>& roots)  // the roots: of a multiple of p
      : chirp_(static_cast<size_t>(p)),
        padded_(padded_length(p)),
        spectrum_(padded_.size()),
        halves_(static_cast<int64_t>(padded_.size()), false) {
    size_t stride = roots.size() / chirp_.size(), half = (chirp_.size() + 1) / 2, at = 0;
    for (size_t k = 0; k < chirp_.size(); k++) {
      chirp_[k] = roots[at * stride];
      at = (at + k + half) % chirp_.size();  // (k + 1)^2 / 2 = k^2 / 2 + k + 1 / 2
    }
    for (size_t k = 0; k < chirp_.size(); k++)
      padded_[k] = padded_[mirrored(k)] = std::conj(chirp_[k]) / static_cast<double>(padded_.size());
    transform(padded_, spectrum_);
  }

  int64_t length() const { return static_cast<int64_t>(chirp_.size()); }

  void run(std::vector<c128>& x) {  // in place
    std::fill(padded_.begin(), padded_.end(), c128());
    for (size_t k = 0; k < x.size(); k++) padded_[k] = times(x[k], chirp_[k]);
    transform(padded_, product_);
    for (size_t k = 0; k < product_.size(); k++) product_[k] = times(product_[k], spectrum_[k]);
    transform(product_, padded_);  // instead of the inverse, of which it is the mirror image
    for (size_t k = 0; k < x.size(); k++) x[k] = times(padded_[mirrored(k)], chirp_[k]);
  }

 private:
  void transform(const std::vector<c128>& in, std::vector<c128>& out) {
    halves_.run(in.data(), static_cast<int64_t>(in.size()), 1, out.data());
  }
  size_t mirrored(size_t k) const { return k == 0 ? 0 : padded_.size() - k; }
  std::vector<c128> chirp_;
  std::vector<c128> padded_, spectrum_, product_ = spectrum_;  // the spectrum: of 1 / c, divided by its length
  Transform halves_;
};

Transform::Transform(int64_t length, bool inverse) : roots_(static_cast<size_t>(length)) {
  for (int64_t k = 0; k < length; k++) {
    double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
    roots_[static_cast<size_t>(k)] = std::polar(1.0, inverse ? angle : -angle);
  }
  for (int64_t n = length, last = 0; n > 1; n /= last) {
    int64_t p = smallest_factor(n);
    if (p > kLongestSum && p != last) chirps_.emplace_back(p, roots_);
    last = p;
  }
}

void Transform::join(int64_t p, int64_t m, int64_t stride, c128* out) {
  auto chirp = std::ranges::find(chirps_, p, &Chirp::length);
  std::vector<c128> part(static_cast<size_t>(p));
  for (int64_t k = 0; k < m; k++) {
    for (int64_t r = 0; r < p; r++) part[static_cast<size_t>(r)] = out[r * m + k];
    if (chirp == chirps_.end())
      add_up(part, k, m, stride, out);
    else if (std::ranges::all_of(part, is_finite))
      convolve(*chirp, part, k, m, stride, out);
    else
      add_up_nonfinite(part, k, m, stride, out);
  }
}

// The sum of the definition, for the results k, k + m, k + 2m ...
void Transform::add_up(const std::vector<c128>& part, int64_t k, int64_t m, int64_t stride, c128* out) const {
  int64_t p = static_cast<int64_t>(part.size());
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

// The same where a part is inf or NaN. A root of unity times such a part is inf or NaN in both components, also where
// it is inf * 0, so no result is finite, and finite parts do not count. A convolution would make NaN of every inf. The
// signs of the roots of most results soon differ, and NaN stays NaN: each sum ends after few steps.
void Transform::add_up_nonfinite(const std::vector<c128>& part, int64_t k, int64_t m, int64_t stride, c128* out) const {
  int64_t p = static_cast<int64_t>(part.size());
  std::vector<int64_t> places;
  for (int64_t r = 0; r < p; r++)
    if (!is_finite(part[static_cast<size_t>(r)])) places.push_back(r);
  for (int64_t to = k; to < p * m; to += m) {
    c128 sum = 0;
    for (size_t i = 0; i < places.size() && !is_all_nan(sum); i++) {
      auto at = static_cast<int64_t>(__int128{places[i]} * to % (p * m));
      sum += times(part[static_cast<size_t>(places[i])], root(at * stride));
    }
    out[to] = sum;
  }
}

// The same by a convolution. A sum inside it may exceed every result, so the parts are first scaled to about 1. If all
// are 0, every result is +0, as in a sum.
void Transform::convolve(Chirp& chirp, std::vector<c128>& part, int64_t k, int64_t m, int64_t stride, c128* out) const {
  double largest = 0;
  for (c128 it : part) largest = std::max({largest, std::abs(it.real()), std::abs(it.imag())});
  int exponent = largest == 0 ? 0 : std::clamp(std::ilogb(largest), -1022, 1022);
  double down = std::ldexp(1, -exponent), up = std::ldexp(1, exponent);
  int64_t p = static_cast<int64_t>(part.size());
  for (int64_t r = 0; r < p; r++)
    part[static_cast<size_t>(r)] = times(part[static_cast<size_t>(r)] * down, root(r * k * stride));
  chirp.run(part);
  for (int64_t q = 0; q < p; q++) out[q * m + k] = largest == 0 ? 0 : part[static_cast<size_t>(q)] * up;
}

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

// For an element of the result, along one axis. A convolution is two transforms of its padded length.
static double work_of_length(int64_t n) {
  double work = 0;
  for (int64_t p = 0; n > 1; n /= p) {
    p = smallest_factor(n);
    double size = static_cast<double>(p), padded = static_cast<double>(padded_length(p));
    work += p <= kLongestSum ? size : 2 * 2 * std::log2(padded) * padded / size;
  }
  return work;
}

double work_of_fft(const Node& node, std::span<const Operand> in) {
  double work = 0;
  for (int64_t axis : node.attrs.i64s("axes")) work += work_of_length(in[0].dims[static_cast<size_t>(axis)]);
  return work;
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
