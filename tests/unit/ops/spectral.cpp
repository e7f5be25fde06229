// SPDX-License-Identifier: Apache-2.0
// fft against golden values, the sum of its definition, and its inverse; rng_bits against published vectors.
#include "op_test.h"

#include <ctime>
#include <numbers>

namespace rlx::test {

static Tensor complexes(const Sizes& dims, const std::vector<c128>& numbers) {
  Tensor result = *Tensor::create(DType::kC128, dims);
  std::copy(numbers.begin(), numbers.end(), result.as<c128>());
  return result;
}

static std::span<const c128> elements(const Tensor& tensor) {
  return {tensor.as<c128>(), static_cast<size_t>(tensor.count())};
}

static void expect_near(const Tensor& got, const std::vector<c128>& expected, double tolerance) {
  ASSERT_EQ(static_cast<size_t>(got.count()), expected.size());
  for (size_t i = 0; i < expected.size(); i++)
    EXPECT_LE(std::abs(got.as<c128>()[i] - expected[i]), tolerance) << "element " << i << ": " << got.as<c128>()[i];
}

TEST(fft, golden_values_in_every_norm_and_direction) {
  struct Case {
    const char* norm;
    int64_t inverse;
    std::vector<c128> expected;
  };
  const Case cases[] = {
      {"backward", 0, {{10, 0}, {-2, 2}, {-2, 0}, {-2, -2}}},
      {"ortho", 0, {{5, 0}, {-1, 1}, {-1, 0}, {-1, -1}}},
      {"forward", 0, {{2.5, 0}, {-0.5, 0.5}, {-0.5, 0}, {-0.5, -0.5}}},
      {"backward", 1, {{2.5, 0}, {-0.5, -0.5}, {-0.5, 0}, {-0.5, 0.5}}},
      {"ortho", 1, {{5, 0}, {-1, -1}, {-1, 0}, {-1, 1}}},
      {"forward", 1, {{10, 0}, {-2, -2}, {-2, 0}, {-2, 2}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.norm);
    auto y = run(Op::kFft, {complexes({4}, {1, 2, 3, 4})}, {{"norm", c.norm}, {"inverse", c.inverse}});
    ASSERT_TRUE(y.ok()) << y.status().message();
    expect_near((*y)[0], c.expected, 1e-15);
  }
}

TEST(fft, any_length_is_the_sum_of_its_definition) {
  for (int64_t n : {1, 2, 3, 5, 6, 9, 12, 13, 30, 49, 64, 97, 120}) {
    std::vector<c128> x, expected(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; i++)
      x.emplace_back(std::sin(1.0 + static_cast<double>(i * i)), 0.1 * static_cast<double>(i % 7));
    for (int64_t k = 0; k < n; k++)
      for (int64_t i = 0; i < n; i++)
        expected[static_cast<size_t>(k)] +=
            x[static_cast<size_t>(i)] *
            std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n));
    auto y = run(Op::kFft, {complexes({n}, x)});
    ASSERT_TRUE(y.ok());
    expect_near((*y)[0], expected, 1e-13 * static_cast<double>(n));
    auto back = run(Op::kFft, {(*y)[0]}, {{"inverse", int64_t{1}}});
    expect_near((*back)[0], x, 1e-13);
  }
}

// Numbers in [-1, 1] without a pattern, the same in every run.
static Tensor complex_noise(DType dtype, int64_t n) {
  Tensor result = *Tensor::create(dtype, std::array{n});
  visit<dtypes::Z>(dtype, [&]<class T>() {
    uint32_t seed = static_cast<uint32_t>(n);
    auto next = [&] {
      seed = seed * 1664525 + 1013904223;
      return static_cast<typename T::value_type>(seed) / 2147483648 - 1;
    };
    for (int64_t i = 0; i < n; i++) {
      auto real = next();
      result.as<T>()[i] = {real, next()};
    }
  });
  return result;
}

using Exact = std::complex<long double>;

static Exact exact_sum(const std::vector<Exact>& x, const std::vector<Exact>& roots, int64_t k) {
  Exact sum = 0;
  for (size_t j = 0; j < x.size(); j++) sum += x[j] * roots[j * static_cast<size_t>(k) % x.size()];
  return sum;
}

// To the tolerance of the op: 8 + 8 log2 n roundings of the norm of x.
template <class T>
static void expect_exact_sums(DType dtype, int64_t n, bool is_inverse) {
  Tensor x = complex_noise(dtype, n);
  Tensor y =
      (*run(Op::kFft, {x}, {{"inverse", int64_t{is_inverse}}, {"norm", is_inverse ? "forward" : "backward"}}))[0];
  std::vector<Exact> numbers, roots;
  long double squares = 0;
  for (int64_t j = 0; j < n; j++) {
    numbers.emplace_back(x.as<T>()[j].real(), x.as<T>()[j].imag());
    squares += std::norm(numbers.back());
    long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(j) / static_cast<long double>(n);
    roots.push_back(std::polar(1.0L, is_inverse ? angle : -angle));
  }
  auto bound = std::numeric_limits<typename T::value_type>::epsilon() * std::sqrt(squares) *
               (8 + 8 * std::log2(static_cast<long double>(n)));
  for (int64_t k = 0; k < n; k += 1 + n * n / 300000) {  // not all of many, because that takes long
    Exact got(y.as<T>()[k].real(), y.as<T>()[k].imag()), expected = exact_sum(numbers, roots, k);
    EXPECT_LE(std::abs(got - expected), bound) << n << ", element " << k << ": " << got << ", not " << expected;
  }
}

TEST(fft, of_long_primes_is_the_exact_sum) {
  for (int64_t n : {127, 131, 137, 251, 257, 2 * 131, 3 * 131, 9 * 257, 4099, 131 * 137, 137 * 137, 40009})
    for (bool is_inverse : {false, true}) {
      expect_exact_sums<c128>(DType::kC128, n, is_inverse);
      expect_exact_sums<c64>(DType::kC64, n, is_inverse);
    }
}

// 65,537 elements took 23 seconds.
TEST(fft, of_a_long_prime_takes_the_time_of_other_lengths) {
  auto seconds_for = [](int64_t n) {
    Tensor x = complex_noise(DType::kC64, n);
    std::clock_t begin = std::clock();
    EXPECT_TRUE(run(Op::kFft, {x}).ok());
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  double few = seconds_for(2003), many = seconds_for(32003), twice = seconds_for(2 * 16001);
  std::printf("fft: %.1f ms for 2,003 elements, %.1f ms for 32,003, %.1f ms for 2 * 16,001\n", few * 1e3, many * 1e3,
              twice * 1e3);
  EXPECT_LT(many, 16 * 3 * few + 0.05);
  EXPECT_LT(twice, 16 * 3 * few + 0.05);
  double square = seconds_for(521 * 521);
  std::printf("fft: %.1f ms for 521 * 521\n", square * 1e3);
  EXPECT_LT(square, 136 * 3 * few + 0.05);
}

// As in a sum of inf * cosine and inf * sine: no result is finite, and the signs are those of the cosine and sine.
TEST(fft, of_a_long_prime_with_an_infinity_is_infinite_everywhere) {
  constexpr int64_t kLength = 131, kAt = 7;
  auto transformed = [](c128 special, int64_t length) {
    Tensor x = complex_noise(DType::kC128, length);
    x.as<c128>()[kAt] = special;
    return (*run(Op::kFft, {x}))[0];
  };
  for (c128 special : {c128(kInf, 0), c128(0, -kInf), c128(kInf, kInf), c128(kNan, 1), c128(2, kNan)})
    for (int64_t length : {kLength, 2 * kLength, kLength * 137})
      for (Tensor y = transformed(special, length); c128 it : elements(y))
        EXPECT_FALSE(std::isfinite(it.real()) || std::isfinite(it.imag())) << special << ", " << length << ": " << it;
  Tensor y = transformed({kInf, 1}, kLength);
  for (int64_t k = 1; k < kLength; k++) {
    double angle = -2 * std::numbers::pi * static_cast<double>(k * kAt % kLength) / kLength;
    EXPECT_EQ(y.as<c128>()[k], c128(std::copysign(kInf, std::cos(angle)), std::copysign(kInf, std::sin(angle)))) << k;
  }
  EXPECT_EQ(y.as<c128>()[0].real(), kInf);
  EXPECT_TRUE(std::isnan(y.as<c128>()[0].imag()));
}

TEST(fft, of_a_long_prime_does_not_overflow_where_its_results_do_not) {
  constexpr int64_t kLength = 131;
  std::vector<c128> chirp;  // of which every result has the same size, while a convolution adds up all of it
  for (int64_t j = 0; j < kLength; j++)
    chirp.push_back(std::polar(1e307, 2 * std::numbers::pi * static_cast<double>(j * j * 66 % kLength) / kLength));
  Tensor y = (*run(Op::kFft, {complexes({kLength}, chirp)}))[0];
  for (int64_t k = 0; k < kLength; k++)
    EXPECT_NEAR(std::abs(y.as<c128>()[k] * 1e-307), std::sqrt(double{kLength}), 1e-13);
  for (double tiny : {5e-324, 1e-310}) {
    Tensor small = *Tensor::create(DType::kC128, std::array{kLength});
    small.as<c128>()[0] = tiny;
    Tensor same = (*run(Op::kFft, {small}))[0];
    for (c128 it : elements(same)) EXPECT_EQ(it, c128(tiny));
  }
  Tensor zeros = (*run(Op::kFft, {complexes({kLength}, std::vector<c128>(kLength, c128(-0.0, -0.0)))}))[0];
  for (c128 it : elements(zeros)) EXPECT_FALSE(std::signbit(it.real()) || std::signbit(it.imag()));
}

TEST(fft, several_axes_are_one_after_another_and_c64_is_rounded_once) {
  Tensor x = complexes({2, 3}, {{1, 0}, {2, 1}, {3, 0}, {0, -1}, {5, 0}, {6, 2}});
  Tensor rows = (*run(Op::kFft, {x}, {{"axes", std::vector<int64_t>{1}}}))[0];
  Tensor both = (*run(Op::kFft, {rows}, {{"axes", std::vector<int64_t>{0}}}))[0];
  Tensor at_once = (*run(Op::kFft, {x}, {{"axes", std::vector<int64_t>{0, -1}}}))[0];
  expect_near(at_once, {both.as<c128>(), both.as<c128>() + 6}, 1e-14);
  Tensor single = *Tensor::create(DType::kC64, std::array<int64_t, 1>{3});
  single.as<c64>()[1] = 1;
  Tensor y = (*run(Op::kFft, {single}))[0];
  EXPECT_EQ(y.as<c64>()[1].real(), -0.5f);
  EXPECT_EQ(y.as<c64>()[1].imag(), static_cast<float>(-std::sqrt(3.0) / 2));
}

TEST(fft, of_no_elements_is_an_error_but_no_lines_are_fine) {
  expect_failure(Op::kFft, {complexes({0}, {})}, {}, Code::kShape, "the length of axis 0");
  EXPECT_EQ((*run(Op::kFft, {complexes({0, 4}, {})}))[0].count(), 0);
  expect_failure(Op::kFft, {complexes({2}, {1, 2})}, {{"axes", std::vector<int64_t>{0, -1}}}, Code::kInvalidArgument,
                 "twice");
}

// ---- rng_bits ----

static Tensor words(const std::vector<uint32_t>& list) {
  Tensor result = *Tensor::create(DType::kU32, std::array{static_cast<int64_t>(list.size())});
  std::copy(list.begin(), list.end(), result.as<uint32_t>());
  return result;
}

static void expect_words(const Tensor& got, const std::vector<uint32_t>& expected) {
  ASSERT_EQ(got.bytes(), expected.size() * 4);
  for (size_t i = 0; i < expected.size(); i++) EXPECT_EQ(got.as<uint32_t>()[i], expected[i]) << "word " << i;
}

static std::vector<Tensor> bits(const std::vector<uint32_t>& key, const std::vector<uint32_t>& counter, int64_t count,
                                const char* dtype = "u32") {
  auto got =
      run(Op::kRngBits, {words(key), words(counter)}, {{"shape", std::vector<int64_t>{count}}, {"dtype", dtype}});
  EXPECT_TRUE(got.ok()) << got.status().message();
  return *got;
}

TEST(rng_bits, known_answers_of_philox) {
  constexpr uint32_t kOnes = 0xffffffff;
  expect_words(bits({0, 0}, {0, 0, 0, 0}, 4)[0], {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  expect_words(bits({kOnes, kOnes}, {kOnes, kOnes, kOnes, kOnes}, 4)[0],
               {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_words(bits({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 4)[0],
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(rng_bits, streams_and_the_counter_after_them) {
  auto six = bits({1, 0}, {0, 0, 0, 0}, 6);
  expect_words(six[0], {0xe3e80670, 0xe50a0ebc, 0x95f222c0, 0xb615aa27, 0xac08141b, 0xdfc5ccbe});
  expect_words(six[1], {2, 0, 0, 0});
  auto two = bits({1, 0}, {0, 0, 0, 0}, 2, "u64");
  EXPECT_EQ(two[0].as<uint64_t>()[0], 0xe50a0ebce3e80670);
  EXPECT_EQ(two[0].as<uint64_t>()[1], 0xb615aa2795f222c0);
  expect_words(two[1], {1, 0, 0, 0});
  auto carried = bits({1, 0}, {0xffffffff, 0xffffffff, 0, 0}, 5);
  expect_words(carried[0], {0xcd60644b, 0x892854e3, 0xce8609ef, 0x1d7e96dd, 0x07071c12});
  expect_words(carried[1], {1, 0, 1, 0});
  expect_words(bits({1, 0}, {7, 0, 0, 0}, 0)[1], {7, 0, 0, 0});
}

TEST(rng_bits, refuses_other_shapes_and_dtypes) {
  NamedAttrs shape{{"shape", std::vector<int64_t>{1}}};
  expect_failure(Op::kRngBits, {words({0}), words({0, 0, 0, 0})}, shape, Code::kShape, "key");
  expect_failure(Op::kRngBits, {words({0, 0}), words({0, 0})}, shape, Code::kShape, "counter");
  shape.emplace_back("dtype", "u8");
  expect_failure(Op::kRngBits, {words({0, 0}), words({0, 0, 0, 0})}, shape, Code::kDtype, "u32 or u64");
}

}  // namespace rlx::test
