// SPDX-License-Identifier: Apache-2.0
// Prepares a region's program, once per compile or per change of sizes, and has the table of interpreters by Isa.
#include "backends/cpu/kernels/region.h"

#include <array>
#include <type_traits>

#include "backends/cpu/kernels/collapse.h"
#include "base/half.h"
#include "base/inlined_vector.h"

#define RLX_KERNELS "backends/cpu/kernels/region.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

int region_operands(RegionCode code) {
  static constexpr int kOperands[] = {
#define RLX_REGION(name, operands, value) operands,
#include "backends/cpu/kernels/region.def"
#undef RLX_REGION
  };
  return kOperands[static_cast<int>(code)];
}

namespace {

constexpr int kNames = 256;
constexpr int kForever = 1 << 20;

// The registers that an op reads.
std::span<const uint8_t> operands_of(const RegionOp& op, std::array<uint8_t, 3>& storage) {
  storage = {op.a, op.b, op.c};
  return std::span<const uint8_t>(storage).first(region_operands(op.code));
}

// The index of the last op that reads each name; kForever for names that are filled once or read after the last op.
// Names that the program does not have are left out.
std::array<int, kNames> last_readers(const RegionArgs& args, std::span<const RegionOp> ops) {
  std::array<int, kNames> last;
  std::fill_n(last.begin(), static_cast<size_t>(args.input_count + args.constant_count) + ops.size(), 0);
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    std::array<uint8_t, 3> storage;
    for (uint8_t name : operands_of(ops[i], storage)) last[name] = i;
  }
  for (int i = 0; i < args.input_count + args.constant_count; ++i) last[i] = kForever;
  for (int i = 0; i < args.output_count; ++i) last[args.outputs[i].reg] = kForever;
  return last;
}

}  // namespace

bool assign_registers(RegionArgs& args, std::span<RegionOp> ops) {
  const int given = args.input_count + args.constant_count;
  if (given + ops.size() > kNames || given > kMaxRegionRegisters) return false;
  std::array<int, kNames> last = last_readers(args, ops);
  std::array<uint8_t, kNames> reg;
  InlinedVector<uint8_t, kMaxRegionRegisters> free;
  int count = given;
  for (int i = 0; i < given; ++i) reg[i] = static_cast<uint8_t>(i);
  std::array<RegionOp, kNames> renumbered;
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    std::array<uint8_t, 3> names, regs{};
    for (size_t o = 0; uint8_t name : operands_of(ops[i], names)) {
      regs[o++] = reg[name];
      if (last[name] == i) free.push_back(reg[name]);  // the result may reuse it: each element is read, then written
      if (last[name] == i) last[name] = kForever;      // an op may read a name twice; free it once
    }
    if (free.empty()) free.push_back(static_cast<uint8_t>(count++));
    if (count > kMaxRegionRegisters) return false;
    reg[given + i] = free.back();
    free.truncate(free.size() - 1);
    renumbered[i] = {ops[i].code, reg[given + i], regs[0], regs[1], regs[2]};
  }
  std::copy_n(renumbered.begin(), ops.size(), ops.begin());
  for (int i = 0; i < args.output_count; ++i) args.outputs[i].reg = reg[args.outputs[i].reg];
  args.register_count = count;
  return true;
}

void collapse_dims(RegionArgs& args) {
  int64_t* strides[kMaxRegionInputs];
  for (int i = 0; i < args.input_count; ++i) strides[i] = args.inputs[i].strides;
  args.rank = collapse(args.rank, args.dims, std::span(strides, static_cast<size_t>(args.input_count)));
}

const RegionFns& region_fns(Isa isa) {
  static constexpr const RegionFns* kTable[kIsaCount] = {&baseline::kRegion, &avx2::kRegion, &avx512::kRegion};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
