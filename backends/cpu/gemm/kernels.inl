// SPDX-License-Identifier: Apache-2.0
// What gemm.cpp compiles per instruction set.
#include "backends/cpu/gemm/gemm.inl"
#include "backends/cpu/gemm/tile.inl"
