// SPDX-License-Identifier: Apache-2.0
// Matrix products by OpenBLAS, for cases without a kernel of our own: f64, complex, and products of two variable sides.
// A call uses one thread, and any thread may call; a caller that wants more threads cuts the result into tiles. The
// BLAS is linked in and hidden: no other BLAS of the process is ever called, and nobody else calls this one.
#pragma once

#include <complex>
#include <cstdint>
#include <string_view>

#include "backends/cpu/isa.h"
#include "base/status.h"

namespace rlx::cpu {

enum class Transpose { kNone, kTranspose, kConjugate };  // kConjugate: transposed and conjugated

// Row-major C[m,n] = alpha * op(A)[m,k] * op(B)[k,n] + beta * C; rows are `ld*` elements apart. If beta is 0, C is not
// read; if k is 0, the result is beta * C.
struct Gemm {
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  Transpose a = Transpose::kNone;
  Transpose b = Transpose::kNone;
};

// RLX_E_RANGE for a size or stride that BLAS cannot take: negative, above 2^31 - 1, or a row stride below the length of
// a row.
Status gemm_f32(const Gemm& shape, float alpha, const float* a, const float* b, float beta, float* c);
Status gemm_f64(const Gemm& shape, double alpha, const double* a, const double* b, double beta, double* c);
Status gemm_c64(const Gemm& shape, std::complex<float> alpha, const std::complex<float>* a,
                const std::complex<float>* b, std::complex<float> beta, std::complex<float>* c);
Status gemm_c128(const Gemm& shape, std::complex<double> alpha, const std::complex<double>* a,
                 const std::complex<double>* b, std::complex<double> beta, std::complex<double>* c);

std::string_view blas_core();  // the kernels that OpenBLAS chose: "SkylakeX", "Haswell" ...

// The core that OpenBLAS should be told to use, or null if its own choice is as good.
const char* better_blas_core(const CpuInfo& cpu);

}  // namespace rlx::cpu
