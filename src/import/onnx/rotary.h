// SPDX-License-Identifier: Apache-2.0
// What the kinds of RotaryEmbedding share, of ai.onnx and of com.microsoft.
#pragma once

#include "import/onnx/call.h"

namespace rlx::onnx {

// Whether the node rotates as many elements as the tables have columns for. If not, the call has failed. Most nodes
// leave that number to the tables.
inline bool suits_tables(Call& call, Expr cosine) {
  int64_t rotated = call.i64("rotary_embedding_dim", 0);
  if (rotated == 0 || cosine.rank() == 0 || cosine.dim(-1) * 2 == Dim(rotated)) return true;
  call.fail(Code::kShape, format("'rotary_embedding_dim' is {}, the tables have {}", rotated, cosine.dim(-1) * 2));
  return false;
}

// The attributes of the op `rope` for x: [B, N, S, D], or [B, S, N * D] with this many heads side by side.
inline NamedAttrs rope_attrs(Call& call, Expr x, int64_t heads) {
  bool is_flat = x.rank() == 3;
  NamedAttrs attrs{{"style", call.i64("interleaved", 0) != 0 ? "interleaved" : "half"},
                   {"layout", is_flat ? "bsx" : "bhsd"}};
  if (is_flat) attrs.emplace_back("num_heads", heads);
  return attrs;
}

}  // namespace rlx::onnx
