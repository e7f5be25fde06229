// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tolerance.h"

#include <cmath>

#include "base/visit.h"

namespace rlx::test {

// ---- the table ----

static constexpr ToleranceRow kRows[] = {
    // tol      ulps absolute   relative by_input by_largest by_norm by_terms steps
    {Tol::kE0, 0, 0, 0, 0, 0, 0, false, 0},        {Tol::kU1, 1, 0, 0, 0, 0, 0, false, 0},
    {Tol::kU4, 4, 0, 0, 0, 0, 0, false, 0},        {Tol::kU16, 16, 0x1p-126, 0, 0, 0, 0, false, 0},
    {Tol::kSUM, 0, 0, 0, 0, 0, 0, true, 0},        {Tol::kACT, 0, 0, 4e-6, 1e-6, 0, 0, false, 0},
    {Tol::kNRM, 0, 0, 1e-5, 0, 2e-6, 0, false, 0}, {Tol::kATT, 0, 1e-5, 1e-4, 0, 0, 0, false, 0},
    {Tol::kLIN, 0, 0, 0, 0, 0, 32, false, 0},      {Tol::kQNT, 0, 0, 0, 0, 0, 0, false, 1},
    {Tol::kRNG, 0, 4e-6, 0, 0, 0, 0, false, 0},
};

const ToleranceRow& tolerance_of(Tol tol) {
  return kRows[static_cast<size_t>(tol)];
}

// ---- precisions ----

struct Precision {
  DType dtype;
  int digits;          // of the significand, the leading one included
  int least_exponent;  // of a normal number
  double largest;
};

static const Precision& precision_of(DType dtype) {
  static constexpr Precision kPrecisions[] = {
      {DType::kF32, 24, -126, 0x1.fffffep127}, {DType::kF16, 11, -14, 65504},
      {DType::kBF16, 8, -126, 0x1.fep127},     {DType::kF8E4M3, 4, -6, 448},
      {DType::kF8E5M2, 3, -14, 57344},         {DType::kF64, 53, -1022, 0x1.fffffffffffffp1023}};
  for (const Precision& precision : kPrecisions)
    if (precision.dtype == dtype) return precision;
  return dtype == DType::kC64 ? kPrecisions[0] : kPrecisions[5];
}

static double spacing(const Precision& precision, double value) {
  int exponent = value == 0 ? precision.least_exponent : std::max(std::ilogb(value), precision.least_exponent);
  return std::ldexp(1.0, exponent - precision.digits + 1);
}

double round_to(DType dtype, double value) {
  const Precision& precision = precision_of(dtype);
  if (!std::isfinite(value) || precision.digits == 53) return value;
  double step = spacing(precision, value);
  double rounded = std::nearbyint(value / step) * step;
  return std::fabs(rounded) > precision.largest ? std::copysign(HUGE_VAL, value) : rounded;
}

// ---- one element ----

static double known(const Tensor& tensor, int64_t i) {
  return tensor && i < tensor.count() ? tensor.as<double>()[i] : 0;
}

struct Bound {
  const ToleranceRow& row;
  const Precision& work;  // f32, or f64
  DType dtype;
  const Terms& terms;
  double largest, last_dim;

  double allowed(int64_t i, double oracle) const {
    double epsilon = std::ldexp(1.0, -work.digits), unit = work.digits == 53 ? 0x1p-29 : 1.0, size = std::fabs(oracle);
    double allowed = row.ulps * spacing(work, oracle);
    allowed += unit * (row.absolute + row.relative * size + row.by_largest * (1 + largest));
    if (row.by_input != 0) allowed += unit * row.by_input * std::max(1.0, std::fabs(known(terms.input, i)));
    allowed += row.by_norm * last_dim * epsilon * largest;
    if (row.by_terms)
      allowed += epsilon * (16 + 2 * std::sqrt(known(terms.counts, i))) * std::max(size, known(terms.sums, i));
    if (is_half(dtype) && row.tol != Tol::kE0) allowed += spacing(precision_of(dtype), oracle);
    return std::isfinite(allowed) ? allowed : spacing(work, oracle);
  }

  bool holds(int64_t i, double got, double oracle) const {
    if (std::isnan(oracle)) return std::isnan(got);
    double rounded = round_to(dtype, oracle);
    if (got == rounded || round_to(dtype, got) == rounded) return true;
    if (!std::isfinite(oracle) || !std::isfinite(rounded)) return false;
    bool flushes = dtype == DType::kF32 || dtype == DType::kBF16;  // denormals may be taken as 0
    if (flushes && std::fabs(oracle) < 0x1p-126 && std::fabs(got) < 0x1p-126) return true;
    return std::fabs(got - oracle) <= allowed(i, oracle);
  }
};

// ---- all elements ----

static std::string report(int64_t i, const std::string& got, const std::string& expected) {
  return "element " + std::to_string(i) + " is " + got + ", not " + expected;
}

static std::string floats(const Tensor& got, const Tensor& oracle, const Bound& bound) {
  for (int64_t i = 0; i < got.count(); i++) {
    double y = element_as_f64(got, i), expected = element_as_f64(oracle, i);
    if (!bound.holds(i, y, expected)) return report(i, format("{:.9}", y), format("{:.17}", expected));
  }
  return "";
}

// Normwise: |y - oracle| against |oracle|. Elements that are not finite in one must not be finite in the other.
static std::string complexes(const Tensor& got, const Tensor& oracle, const Bound& bound) {
  for (int64_t i = 0; i < got.count(); i++) {
    c128 y = got.dtype() == DType::kC64 ? c128(got.as<c64>()[i]) : got.as<c128>()[i], expected = oracle.as<c128>()[i];
    bool finite = std::isfinite(expected.real()) && std::isfinite(expected.imag());
    bool good = finite ? std::abs(y - expected) <= bound.allowed(i, std::abs(expected))
                       : !(std::isfinite(y.real()) && std::isfinite(y.imag()));
    bool equal = bound.holds(i, y.real(), expected.real()) && bound.holds(i, y.imag(), expected.imag());
    if (!good && !equal)
      return report(i, format("({:.9}, {:.9})", y.real(), y.imag()),
                    format("({:.17}, {:.17})", expected.real(), expected.imag()));
  }
  return "";
}

static std::string integers(const Tensor& got, const Tensor& oracle, int64_t steps) {
  for (int64_t i = 0; i < got.count(); i++) {
    int64_t y = element_as_i64(got, i), expected = element_as_i64(oracle, i);
    bool near = steps && (y == expected + steps || y == expected - steps);
    if (y != expected && !near) return report(i, std::to_string(y), std::to_string(expected));
  }
  return "";
}

static double largest_of(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.count(); i++) {
    double size = is_complex(tensor.dtype()) ? std::abs(tensor.as<c128>()[i]) : std::fabs(element_as_f64(tensor, i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

std::string difference(const Tensor& got, const Tensor& oracle, DType dtype, Tol tol, const Terms& terms) {
  if (!std::equal(got.dims().begin(), got.dims().end(), oracle.dims().begin(), oracle.dims().end()))
    return "the result is " + type_text(dtype, got.dims()) + ", not " + type_text(dtype, oracle.dims());
  const ToleranceRow& row = tolerance_of(tol);
  if (is_integer(dtype) || dtype == DType::kBool) return integers(got, oracle, row.steps);
  bool is_double = dtype == DType::kF64 || dtype == DType::kC128;
  double last_dim = oracle.rank() ? static_cast<double>(oracle.dims().back()) : 1;
  Bound bound{row, precision_of(is_double ? DType::kF64 : DType::kF32), dtype, terms, largest_of(oracle), last_dim};
  return is_complex(dtype) ? complexes(got, oracle, bound) : floats(got, oracle, bound);
}

}  // namespace rlx::test
