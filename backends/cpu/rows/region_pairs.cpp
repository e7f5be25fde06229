// SPDX-License-Identifier: Apache-2.0
// A table of pairs of ops that have one loop, and the pass over a region's program that joins them.
#include "backends/cpu/rows/region_program.h"

namespace rlx::cpu {

namespace {

// Two ops that are one: an operand of the second is the result of the first.
struct Pair {
  RegionCode first, second;
  int place;  // of that operand
  RegionCode both;
};

constexpr Pair kPairs[] = {
    {RegionCode::kAdd, RegionCode::kAdd, 0, RegionCode::kAddAdd},
    {RegionCode::kAdd, RegionCode::kAdd, 1, RegionCode::kAddAdd},
    {RegionCode::kAdd, RegionCode::kSub, 0, RegionCode::kAddSub},
    {RegionCode::kAdd, RegionCode::kSub, 1, RegionCode::kAddSubFrom},
    {RegionCode::kAdd, RegionCode::kMul, 0, RegionCode::kAddMul},
    {RegionCode::kAdd, RegionCode::kMul, 1, RegionCode::kAddMul},
    {RegionCode::kSub, RegionCode::kAdd, 0, RegionCode::kSubAdd},
    {RegionCode::kSub, RegionCode::kAdd, 1, RegionCode::kSubAdd},
    {RegionCode::kSub, RegionCode::kSub, 0, RegionCode::kSubSub},
    {RegionCode::kSub, RegionCode::kSub, 1, RegionCode::kSubSubFrom},
    {RegionCode::kSub, RegionCode::kMul, 0, RegionCode::kSubMul},
    {RegionCode::kSub, RegionCode::kMul, 1, RegionCode::kSubMul},
    {RegionCode::kMul, RegionCode::kAdd, 0, RegionCode::kMulAdd},
    {RegionCode::kMul, RegionCode::kAdd, 1, RegionCode::kMulAdd},
    {RegionCode::kMul, RegionCode::kSub, 0, RegionCode::kMulSub},
    {RegionCode::kMul, RegionCode::kSub, 1, RegionCode::kMulSubFrom},
    {RegionCode::kMul, RegionCode::kMul, 0, RegionCode::kMulMul},
    {RegionCode::kMul, RegionCode::kMul, 1, RegionCode::kMulMul},
    {RegionCode::kAdd, RegionCode::kRelu, 0, RegionCode::kAddRelu},
    {RegionCode::kSub, RegionCode::kRelu, 0, RegionCode::kSubRelu},
    {RegionCode::kMul, RegionCode::kRelu, 0, RegionCode::kMulRelu},
};

class Joining {
 public:
  explicit Joining(RegionProgram& program) : program_(program), ops_(program.ops) {
    given_ = static_cast<size_t>(program.args.input_count + program.args.constant_count);
    readers_.resize(given_ + ops_.size());
    for (const RegionOp& op : ops_)
      for (int i = 0; i < region_operands(op.code); i++) readers_[operand(op, i)]++;
    for (int i = 0; i < program.args.output_count; i++) readers_[program.args.outputs[i].reg]++;
  }

  void run() {
    bool joins = false;
    for (RegionOp& op : ops_) joins |= join(op);
    if (joins) renumber();
  }

 private:
  static uint8_t operand(const RegionOp& op, int i) { return i == 0 ? op.a : i == 1 ? op.b : op.c; }

  bool join(RegionOp& op) {
    for (int place = 0; place < region_operands(op.code); place++) {
      uint8_t reg = operand(op, place);
      if (reg < given_ || readers_[reg] != 1) continue;
      const RegionOp& first = ops_[reg - given_];
      for (const Pair& pair : kPairs) {
        if (pair.first != first.code || pair.second != op.code || pair.place != place) continue;
        uint8_t other = region_operands(pair.both) == 3 ? operand(op, 1 - place) : uint8_t{0};
        op = {pair.both, op.dst, first.a, first.b, other};
        readers_[reg] = 0;
        return true;
      }
    }
    return false;
  }

  void renumber() {
    std::vector<uint8_t> numbers(readers_.size());
    for (size_t i = 0; i < given_; i++) numbers[i] = static_cast<uint8_t>(i);
    size_t kept = 0;
    for (size_t i = 0; i < ops_.size(); i++) {
      if (readers_[given_ + i] == 0) continue;
      numbers[given_ + i] = static_cast<uint8_t>(given_ + kept);
      const RegionOp& op = ops_[i];
      ops_[kept++] = {op.code, numbers[given_ + i], numbers[op.a], numbers[op.b], numbers[op.c]};
    }
    ops_.truncate(kept);
    program_.args.op_count = static_cast<int32_t>(kept);
    for (int i = 0; i < program_.args.output_count; i++)
      program_.args.outputs[i].reg = numbers[program_.args.outputs[i].reg];
  }

  RegionProgram& program_;
  InlinedVector<RegionOp, 8>& ops_;
  size_t given_ = 0;
  std::vector<uint16_t> readers_;  // of each register: how many
};

}  // namespace

void join_pairs(RegionProgram& program) {
  if (program.ops.size() > 1) Joining(program).run();
}

}  // namespace rlx::cpu
