// SPDX-License-Identifier: Apache-2.0
// Calls into the hidden OpenBLAS. Invariant: arguments are checked before the call, so BLAS prints nothing.
#include "backends/cpu/blas.h"

#include <cblas.h>

#include <algorithm>
#include <climits>

namespace rlx::cpu {
namespace {

// The position of the argument that BLAS refused in the present call on this thread; 0: none.
thread_local int refused_argument = 0;

constexpr CBLAS_TRANSPOSE kSpelled[] = {CblasNoTrans, CblasTrans, CblasConjTrans};  // in the order of Transpose

CBLAS_TRANSPOSE spelled(Transpose transpose) {
  return kSpelled[static_cast<int>(transpose)];
}

Status check(const Gemm& g) {
  int64_t row_a = g.a == Transpose::kNone ? g.k : g.m, row_b = g.b == Transpose::kNone ? g.n : g.k;
  bool fits = std::min({g.m, g.n, g.k}) >= 0 && std::max({g.m, g.n, g.k, g.lda, g.ldb, g.ldc}) <= INT_MAX;
  int64_t one = 1;
  if (fits && g.lda >= std::max(one, row_a) && g.ldb >= std::max(one, row_b) && g.ldc >= std::max(one, g.n)) return {};
  return Status(Code::kRange, "BLAS takes no product of m=" + std::to_string(g.m) + " n=" + std::to_string(g.n) +
                                  " k=" + std::to_string(g.k) + " with row strides " + std::to_string(g.lda) + ", " +
                                  std::to_string(g.ldb) + ", " + std::to_string(g.ldc));
}

// One checked call; `call` gets the sizes as BLAS wants them.
template <class Call>
Status checked(const Gemm& g, Call call) {
  RLX_TRY(check(g));
  if (g.m == 0 || g.n == 0) return {};
  refused_argument = 0;
  call(spelled(g.a), spelled(g.b), static_cast<int>(g.m), static_cast<int>(g.n), static_cast<int>(g.k),
       static_cast<int>(g.lda), static_cast<int>(g.ldb), static_cast<int>(g.ldc));
  if (refused_argument == 0) return {};
  return Status(Code::kInternal, format("BLAS refused argument {} of a product", refused_argument));
}

}  // namespace

Status gemm_f32(const Gemm& shape, float alpha, const float* a, const float* b, float beta, float* c) {
  return checked(shape, [&](auto ta, auto tb, int m, int n, int k, int lda, int ldb, int ldc) {
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  });
}

Status gemm_f64(const Gemm& shape, double alpha, const double* a, const double* b, double beta, double* c) {
  return checked(shape, [&](auto ta, auto tb, int m, int n, int k, int lda, int ldb, int ldc) {
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  });
}

Status gemm_c64(const Gemm& shape, std::complex<float> alpha, const std::complex<float>* a,
                const std::complex<float>* b, std::complex<float> beta, std::complex<float>* c) {
  return checked(shape, [&](auto ta, auto tb, int m, int n, int k, int lda, int ldb, int ldc) {
    cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
  });
}

Status gemm_c128(const Gemm& shape, std::complex<double> alpha, const std::complex<double>* a,
                 const std::complex<double>* b, std::complex<double> beta, std::complex<double>* c) {
  return checked(shape, [&](auto ta, auto tb, int m, int n, int k, int lda, int ldb, int ldc) {
    cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
  });
}

std::string_view blas_core() {
  return openblas_get_corename();
}

}  // namespace rlx::cpu

// BLAS calls this with the position of an argument that it does not accept. Its own version prints.
extern "C" void xerbla_(const char*, const int* position, int);
void xerbla_(const char*, const int* position, int) {
  rlx::cpu::refused_argument = *position;
}
