// SPDX-License-Identifier: Apache-2.0
// Includes RLX_KERNELS (a .inl file) once per instruction set, after simd.inl, in a namespace and under a target of its
// own. Everything that those files use from outside must be included before this file, so that no header is compiled
// twice. We use target pragmas, never per-file flags: with flags the linker could keep an AVX copy of an inline
// function for every machine.
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>

// Loops over registers must be unrolled; otherwise the registers are spilled to memory.
#if defined(__clang__)
#define RLX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RLX_UNROLL _Pragma("GCC unroll 32")
#endif

#if !defined(__clang__)  // GCC 12 warns about the undefined operand inside its own _mm512_max_ps
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define RLX_ISA 0
namespace rlx::cpu::baseline {
#include "backends/cpu/simd.inl"
#include "backends/cpu/simd_math.inl"
#include RLX_KERNELS
}  // namespace rlx::cpu::baseline
#undef RLX_ISA

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#endif
#define RLX_ISA 1
namespace rlx::cpu::avx2 {
#include "backends/cpu/simd.inl"
#include "backends/cpu/simd_math.inl"
#include RLX_KERNELS
}  // namespace rlx::cpu::avx2
#undef RLX_ISA
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi,bmi2"))), \
                             apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi,bmi2")
#endif
#define RLX_ISA 2
namespace rlx::cpu::avx512 {
#include "backends/cpu/simd.inl"
#include "backends/cpu/simd_math.inl"
#include RLX_KERNELS
}  // namespace rlx::cpu::avx512
#undef RLX_ISA
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
