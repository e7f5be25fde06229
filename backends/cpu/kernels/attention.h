// SPDX-License-Identifier: Apache-2.0
// Attention over f32, as semantics.md A1-A5 define it. Scores exist only in a tile on the stack. Strides count
// elements. The row of v of a key that is not allowed is left out of the sum, even if it holds NaN. A key whose score
// is -inf for another reason has the weight 0, and 0 * NaN is NaN. A row with only such keys is an empty row.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

enum class EmptyRow : int32_t { kZero, kMean, kNan };

// The strides of a [batch, sequence, head, element] view; the element has stride 1.
struct HeadStrides {
  int64_t batch = 0, seq = 0, head = 0;
};
// The strides of an operand that broadcasts to [batch, head, query, key]: 0 where it is broadcast.
struct ScoreStrides {
  int64_t batch = 0, head = 0, query = 0, key = 0;
};

struct AttentionArgs {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float* y = nullptr;
  HeadStrides q_strides, k_strides, v_strides, y_strides;
  int64_t batch = 0, q_heads = 0, kv_heads = 1;  // kv_heads divides q_heads
  int64_t q_len = 0, k_len = 0, d = 0, dv = 0;
  float scale = 1, softcap = 0;  // softcap 0: none

  const float* bias = nullptr;    // added to the scores
  const uint8_t* mask = nullptr;  // non-zero: attend
  ScoreStrides bias_strides, mask_strides;
  const float* alibi = nullptr;  // [q_heads] slopes
  const float* sinks = nullptr;  // [q_heads]
  const void* kv_len = nullptr;  // [batch] of i32, or of i64; clamped to [0, k_len]
  bool kv_len_is_i64 = false;

  bool causal = false;
  bool upper_left = false;  // query i has key position i; else i + (valid keys) - q_len
  int64_t window_left = -1, window_right = -1;
  EmptyRow empty_row = EmptyRow::kZero;
  float* lse = nullptr;  // dense [batch, q_heads, q_len], or null
};

struct AttentionFns {
  Loop<AttentionArgs> attention;  // a part: one block of queries of one head
};
const AttentionFns& attention_fns(Isa isa);

}  // namespace rlx::cpu
