// SPDX-License-Identifier: Apache-2.0
// Node kinds of the domain com.microsoft that have no family of their own.
#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

// Weights of a few bits, in blocks along K; g_idx would move the blocks.
void build_matmul_nbits(Call& call) {
  for (const char* unused : {"accuracy_level", "K", "N", "weight_prepacked"}) call.ignore(unused);
  if (call.has(4)) return call.fail(Code::kUnsupported, "'g_idx', an order of its own");
  int64_t bits = call.i64("bits", 4), block = call.i64("block_size", 0);
  call.out(0, call.op("matmul_nbits", {call.in(0), call.in(1), call.in(2), call.in(3), call.in(5)},
                      {{"bits", bits}, {"block", block}}));
}

constexpr NodeKind kKinds[] = {
    {"MatMulNBits", build_matmul_nbits, "", nullptr, {}, "com.microsoft"},
};

}  // namespace

std::span<const NodeKind> contrib_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
