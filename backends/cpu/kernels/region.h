// SPDX-License-Identifier: Apache-2.0
// Elementwise regions: a small program over registers, each of which holds a tile of elements. Registers hold f32, or
// masks for bools; halves and integers are converted to f32 when they are loaded. Invariant: the result of an element
// depends on no other element.
#pragma once

#include <span>

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

enum class RegionCode : uint8_t {
#define RLX_REGION(name, operands, value) k##name,
#include "backends/cpu/kernels/region.def"
#undef RLX_REGION
};

// dst = code(a, b, c). Operands are register numbers.
struct RegionOp {
  RegionCode code;
  uint8_t dst, a, b, c;
};

enum class RegionType : uint8_t { kF32, kBool, kI32, kI64, kU8, kF16, kBF16 };

inline constexpr int kMaxRegionRank = 8;
inline constexpr int kMaxRegionInputs = 32;
inline constexpr int kMaxRegionOutputs = 8;
inline constexpr int kMaxRegionConstants = 32;
inline constexpr int kMaxRegionRegisters = 64;

// A bool becomes a mask, any other type f32. Strides count elements; 0 where the input is broadcast.
struct RegionInput {
  const void* data;
  RegionType type;
  uint8_t reg;
  int64_t strides[kMaxRegionRank];
};
// Dense row-major in the dims of the region. The dtype is kF32, kBool (from a mask), or a half, to which the register
// is rounded. It may be an input of the same dtype and layout.
struct RegionOutput {
  void* data;
  RegionType type;
  uint8_t reg;
};
struct RegionConstant {
  float value;
  uint8_t reg;
};

// Of each array only the items that its count names are set: a compiler asks for thousands of programs.
struct RegionArgs {
  int32_t rank = 0;
  int64_t dims[kMaxRegionRank];
  int32_t input_count = 0, output_count = 0, constant_count = 0, op_count = 0, register_count = 0;
  RegionInput inputs[kMaxRegionInputs];
  RegionOutput outputs[kMaxRegionOutputs];
  RegionConstant constants[kMaxRegionConstants];
  const RegionOp* ops = nullptr;  // op_count of them, in order
};

int region_operands(RegionCode code);  // 1 to 3

// Takes a program in which every input, constant and op has a register of its own, numbered in this order from 0.
// Reuses each register once its last reader has run, renumbers all operands and outputs, and sets register_count.
// Returns false and changes nothing if more than kMaxRegionRegisters would be live at once, or if the program names
// more than 256 registers.
bool assign_registers(RegionArgs& args, std::span<RegionOp> ops);

void collapse_dims(RegionArgs& args);  // see collapse.h

struct RegionFns {
  Loop<RegionArgs> region;
};
const RegionFns& region_fns(Isa isa);

}  // namespace rlx::cpu
