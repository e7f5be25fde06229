// SPDX-License-Identifier: Apache-2.0
// The product kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/gemm.h"

#include <algorithm>

#define RLX_KERNELS "backends/cpu/gemm/gemm.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

Pieces pieces_of_product(int64_t m, int64_t n, int64_t k, int64_t parts) {
  constexpr int64_t kFewParts = 8, kPieceProducts = 120000;  // of a piece, at least: some microseconds
  int64_t results = m * n;
  if (parts >= kFewParts || results == 0) return {1, k};
  return cut(k, parts, std::max(kLeastTerms, kPieceProducts / results), 64);
}

size_t cut_product_bytes(double k, double results) {
  if (k < 2 * kLeastTerms) return 0;
  constexpr double kMaxResults = kRowBlock * 48;  // of a part
  return static_cast<size_t>(kManyParts * std::min(results, kMaxResults)) * sizeof(float);
}

const GemmFns& gemm_fns(Isa isa) {
  static constexpr const GemmFns* kTable[kIsaCount] = {&baseline::kGemm, &avx2::kGemm, &avx512::kGemm};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
