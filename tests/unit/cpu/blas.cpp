// SPDX-License-Identifier: Apache-2.0
// Calls of the linked OpenBLAS: refused sizes, threads, forks, and the kernels that it chooses.
#include "backends/cpu/blas.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

extern "C" char* __real_getenv(const char* name);  // past our own answer

namespace rlx::cpu {
namespace {

template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<std::complex<T>> = true;

auto gemm(const Gemm& g, float x, const float* a, const float* b, float y, float* c) {
  return gemm_f32(g, x, a, b, y, c);
}
auto gemm(const Gemm& g, double x, const double* a, const double* b, double y, double* c) {
  return gemm_f64(g, x, a, b, y, c);
}
template <class T>
auto gemm(const Gemm& g, std::complex<T> x, const std::complex<T>* a, const std::complex<T>* b, std::complex<T> y,
          std::complex<T>* c) {
  if constexpr (sizeof(T) == 4) return gemm_c64(g, x, a, b, y, c);
  if constexpr (sizeof(T) == 8) return gemm_c128(g, x, a, b, y, c);
}

template <class T>
struct blas : testing::Test {
  std::mt19937 random{7};
  T number() {
    auto real = [&] { return static_cast<double>(static_cast<int>(random() % 9)) - 4; };  // products are exact
    if constexpr (kIsComplex<T>) return T(real(), real());
    if constexpr (!kIsComplex<T>) return static_cast<T>(real());
  }
  std::vector<T> numbers(int64_t n) {
    std::vector<T> v(static_cast<size_t>(n));
    for (T& x : v) x = number();
    return v;
  }
  static T at(const std::vector<T>& v, int64_t row, int64_t column, int64_t stride, Transpose how) {
    if (how == Transpose::kNone) return v[row * stride + column];
    T x = v[column * stride + row];
    if constexpr (kIsComplex<T>) return how == Transpose::kConjugate ? std::conj(x) : x;
    return x;
  }
  void check(int64_t m, int64_t n, int64_t k, Transpose ta, Transpose tb) {
    int64_t lda = (ta == Transpose::kNone ? k : m) + 3, ldb = (tb == Transpose::kNone ? n : k) + 2, ldc = n + 1;
    auto a = numbers(lda * std::max(m, k)), b = numbers(ldb * std::max(n, k));
    auto c = numbers(ldc * m), expected = c;
    T alpha = number(), beta = number();
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) {
        T sum{};
        for (int64_t p = 0; p < k; p++) sum += at(a, i, p, lda, ta) * at(b, p, j, ldb, tb);
        expected[i * ldc + j] = alpha * sum + beta * c[i * ldc + j];
      }
    }
    Gemm shape{m, n, k, lda, ldb, ldc, ta, tb};
    ASSERT_TRUE(gemm(shape, alpha, a.data(), b.data(), beta, c.data()).ok());
    EXPECT_EQ(c, expected) << m << 'x' << n << 'x' << k;
  }
};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(blas, Types);

TYPED_TEST(blas, every_form_equals_the_sum_of_products) {
  constexpr Transpose kForms[] = {Transpose::kNone, Transpose::kTranspose, Transpose::kConjugate};
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {1, 17, 33}, {19, 1, 5}, {37, 41, 43}, {5, 6, 0}}) {
    for (Transpose ta : kForms)
      for (Transpose tb : kForms) this->check(m, n, k, ta, tb);
  }
}

TYPED_TEST(blas, with_beta_zero_the_result_is_not_read) {
  using T = TypeParam;
  for (int64_t n : {1, 3, 40}) {
    std::vector<T> one(static_cast<size_t>(n * n), T(1)), c(one.size(), T(std::nan("")));
    ASSERT_TRUE(gemm(Gemm{n, n, n, n, n, n}, T(1), one.data(), one.data(), T(0), c.data()).ok());
    for (T x : c) EXPECT_EQ(x, T(static_cast<float>(n)));
  }
}

TEST(blas_calls, sizes_that_blas_cannot_take_are_a_status) {
  float x = 0;
  for (Gemm g : {Gemm{-1, 1, 1, 1, 1, 1}, Gemm{1, 1, int64_t{1} << 31, int64_t{1} << 31, 1, 1}, Gemm{2, 3, 4, 3, 3, 3},
                 Gemm{2, 3, 4, 4, 2, 3}, Gemm{2, 3, 4, 4, 3, 2}, Gemm{1, 1, 1, 0, 1, 1}}) {
    EXPECT_EQ(gemm_f32(g, 1, &x, &x, 0, &x).code(), Code::kRange);
  }
  EXPECT_EQ(gemm_f32({2, 3, 4, 3, 3, 3}, 1, &x, &x, 0, &x).message(),
            "BLAS takes no product of m=2 n=3 k=4 with row strides 3, 3, 3");
  EXPECT_TRUE(gemm_f32({0, 3, 4, 4, 3, 3}, 1, &x, &x, 0, &x).ok());
}

// OpenBLAS packs a into buffers, of which it keeps one table for all threads. Each thread has its own a, so that a
// buffer given to two shows.
TEST(blas_calls, may_come_from_many_threads_at_once) {
  constexpr int64_t kSize = 96;
  std::vector<float> b(kSize * kSize, 1.0f);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; t++) {
    callers.emplace_back([&, own = static_cast<float>(t + 1)] {
      std::vector<float> a(kSize * kSize, own), c(kSize * kSize);
      for (int run = 0; run < 2000; run++) {
        Status status = gemm_f32({kSize, kSize, kSize, kSize, kSize, kSize}, 1, a.data(), b.data(), 0, c.data());
        wrong += !status.ok() || std::any_of(c.begin(), c.end(), [&](float x) { return x != own * kSize; });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// Another thread computes, so its buffers are being taken and given back, while this one forks.
TEST(blas_calls, may_come_from_a_child_of_fork) {
  constexpr int64_t kSize = 32;
  std::vector<float> one(kSize * kSize, 1.0f);
  auto is_right = [&] {
    std::vector<float> c(kSize * kSize);
    Status status = gemm_f32({kSize, kSize, kSize, kSize, kSize, kSize}, 1, one.data(), one.data(), 0, c.data());
    return status.ok() && std::all_of(c.begin(), c.end(), [](float x) { return x == 32; });
  };
  std::atomic<bool> stop{false};
  std::jthread busy([&] {
    while (!stop) is_right();
  });
  for (int i = 0; i < 200; i++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(is_right() ? 0 : 1);
    }
    int answer = -1;
    ASSERT_EQ(waitpid(child, &answer, 0), child);
    EXPECT_EQ(answer, 0);
    if (answer) break;
  }
  stop = true;
}

TEST(blas_core, is_named_only_where_openblas_would_take_an_older_one) {
  CpuInfo emerald_rapids{.vendor = "GenuineIntel", .family = 6, .highest = Isa::kAvx512};
  CpuInfo alder_lake{.vendor = "GenuineIntel", .family = 6, .highest = Isa::kAvx2};
  CpuInfo zen4{.vendor = "AuthenticAMD", .family = 0x19, .highest = Isa::kAvx512};
  CpuInfo zen5{.vendor = "AuthenticAMD", .family = 0x1a, .highest = Isa::kAvx512};
  EXPECT_STREQ(better_blas_core(emerald_rapids), "SkylakeX");
  EXPECT_STREQ(better_blas_core(alder_lake), "Haswell");
  EXPECT_STREQ(better_blas_core(zen4), nullptr);
  EXPECT_STREQ(better_blas_core(zen5), "SkylakeX");
  EXPECT_STREQ(better_blas_core({}), nullptr);
}

TEST(blas_core, is_the_best_for_this_processor) {
  if (__real_getenv("OPENBLAS_CORETYPE")) {  // whose choice is obeyed; CTest unsets it
    EXPECT_FALSE(__real_getenv("RLX_REQUIRE_BLAS_CORE")) << "OPENBLAS_CORETYPE decides instead of us";
    GTEST_SKIP() << "OPENBLAS_CORETYPE is set by the user";
  }
  Isa highest = detect_cpu().highest;
  if (highest == Isa::kAvx512) {
    EXPECT_TRUE(blas_core() == "SkylakeX" || blas_core() == "Cooperlake") << blas_core();
  } else if (highest == Isa::kAvx2) {
    EXPECT_TRUE(blas_core() == "Haswell" || blas_core() == "Zen") << blas_core();
  }
}

}  // namespace
}  // namespace rlx::cpu
