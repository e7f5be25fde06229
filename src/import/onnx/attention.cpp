// SPDX-License-Identifier: Apache-2.0
// ONNX's Attention (opsets 23 to 25), FlexAttention and RotaryEmbedding. Attention is built step by step: scores,
// softcap, bias, softmax, product. The compiler forms the op from it if nothing reads an inner value.
#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx/heads.h"
#include "import/onnx/importer.h"
#include "import/onnx/rotary.h"
#include "ops/attention.h"

namespace rlx::onnx {

namespace {

// The attribute `count` says how many heads lie in the last axis of rank 3.
Expr heads_of(Call& call, Expr x, const char* count) {
  if (!x.valid() || x.rank() != 3) return x;
  int64_t heads = call.i64(count, 0);
  if (heads < 1) return call.fail(Code::kData, std::string("'") + count + "' must be given for inputs of rank 3"), x;
  return split_heads(x, heads);
}

// Repeats each head of k or v for the query heads that share it.
Expr shared(Call& call, Expr x, const Dim& heads) {
  if (!x.valid() || x.dim(1) == heads) return x;
  auto times = divided(x, heads, x.dim(1));
  return times ? call.op("repeat", {x}, {{"axis", int64_t{1}}, {"repeats", *times}}) : x;
}

struct Positions {
  Expr query, key;  // positions of queries in the keys, [S, 1] or [B, 1, S, 1], and of keys, [T]
};

// The bias of the scores: -inf where a key is masked, else 0. Absent if no key is masked.
Expr bias_of(Call& call, const Positions& at, Expr mask, Expr lengths, const Dim& keys, DType dtype) {
  double lowest = -std::numeric_limits<double>::infinity();
  Builder& b = call.builder();
  Expr allowed, bias;
  auto also = [&](Expr condition) { allowed = allowed ? logical_and(allowed, condition) : condition; };
  if (mask && mask.valid()) {
    bool is_bool = mask.dtype() == DType::kBool;
    const Dim& width = mask.dim(-1);
    if (!(width == keys) && !width.is(1)) {  // a shorter mask hides all keys beyond its end
      std::vector<Dim> lo(mask.rank(), Dim(0)), hi(mask.rank(), Dim(0));
      hi.back() = keys - width;
      Expr fill = is_bool ? b.scalar(DType::kBool, 0) : scalar_like(mask, lowest);
      mask = call.op("pad", {mask, fill}, {{"lo", lo}, {"hi", hi}});
    }
    if (is_bool)
      also(mask);
    else
      bias = cast(mask, dtype);
  }
  auto shifted = [&](int64_t by) {
    return at.query + b.size(std::clamp(by, -kWidestWindow, kWidestWindow), DType::kI64);
  };
  if (call.i64("is_causal", 0) != 0) also(less_equal(at.key, at.query));
  if (int64_t left = call.i64("left_window_size", -1); left >= 0) also(less_equal(shifted(-left), at.key));
  if (int64_t right = call.i64("right_window_size", -1); right >= 0) also(less_equal(at.key, shifted(right)));
  if (lengths) also(less(at.key, lengths));
  if (!allowed) return bias;
  Expr open = b.scalar(dtype, 0), closed = b.scalar(dtype, lowest);
  Expr hidden = where(allowed, open, closed);
  return bias ? bias + hidden : hidden;
}

// The root of the scale. Both operands are multiplied by it, so that no half overflows.
Expr root_of_scale(Call& call, Expr q) {
  const Dim& size = q.dim(3);
  if (call.has_attr("scale")) return scalar_like(q, std::sqrt(call.f64("scale", 1)));
  if (size.is_literal()) return scalar_like(q, std::sqrt(1 / std::sqrt(static_cast<double>(size.literal()))));
  return cast(sqrt(1.0 / sqrt(call.builder().size(size, DType::kF32))), q.dtype());
}

// The softmax of the scores; a row without any key gives 0. Absent where the call has failed.
Expr weights_of(Call& call, Expr scores, Expr bias, DType dtype) {
  if (int64_t precision = call.i64("softmax_precision", 0); precision != 0) {
    auto wide = dtype_of(static_cast<int32_t>(precision));
    if (!wide.ok()) return call.fail(wide.status().code(), std::string(wide.status().message())), Expr();
    scores = cast(scores, *wide);
  }
  Expr weights = call.op("softmax", {scores}, {{"axis", int64_t{-1}}});
  if (bias) {
    Expr top = reduce(bias, "max", {static_cast<int64_t>(bias.rank()) - 1});
    Expr none = equal(top, -std::numeric_limits<double>::infinity());
    weights = where(none, scalar_like(weights, 0), weights);
  }
  return cast(weights, dtype);
}

struct Heads {
  Expr q, k, v;  // [B, N, S, D]
  Dim past = 0;  // how many keys are those of the cache
};

// The heads, with the keys and values of the cache before the new ones. nullopt if the call has failed.
std::optional<Heads> heads_with_past(Call& call) {
  Heads heads{heads_of(call, call.in(0), "q_num_heads"), heads_of(call, call.in(1), "kv_num_heads"),
              heads_of(call, call.in(2), "kv_num_heads")};
  call.ignore("q_num_heads");
  call.ignore("kv_num_heads");
  for (const Expr& x : {heads.q, heads.k, heads.v})
    if (!x.valid() || x.rank() != 4)
      return call.fail(Code::kShape, "Q, K and V must all have rank 3, or 4"), std::nullopt;
  if (!call.has(4) || !call.has(5)) return heads;
  heads.past = call.in(4).dim(2);
  Expr keys[] = {call.in(4), heads.k}, values[] = {call.in(5), heads.v};
  heads.k = concat(keys, 2), heads.v = concat(values, 2);
  return heads;
}

// The bias of the scores, from the mask, the lengths and the attributes of the node.
Expr bias_of_node(Call& call, const Heads& heads) {
  Builder& b = call.builder();
  Dim steps = heads.q.dim(2), keys = heads.k.dim(2);
  Expr lengths = call.in(6);
  if (lengths) lengths = reshape(cast(lengths, DType::kI64), {Dim(-1), Dim(1), Dim(1), Dim(1)});
  Expr offset = lengths && !call.has(4) ? lengths - b.size(steps, DType::kI64) : b.size(heads.past, DType::kI64);
  Positions at{unsqueeze(iota(b, {steps}, 0, DType::kI64), 1) + offset, iota(b, {keys}, 0, DType::kI64)};
  return bias_of(call, at, call.in(3), lengths, keys, heads.q.dtype());
}

void build_attention(Call& call) {
  bool is_flat = call.type(0).rank() == 3;
  auto heads = heads_with_past(call);
  if (!heads) return;
  const Expr &q = heads->q, &k = heads->k, &v = heads->v;
  call.out(1, k);
  call.out(2, v);
  Expr bias = bias_of_node(call, *heads);
  Expr root = root_of_scale(call, q);
  Expr every_k = shared(call, k, q.dim(1)), every_v = shared(call, v, q.dim(1));
  Expr scores = matmul(q * root, every_k * root, {.b = true}), raw = scores;
  double cap = call.f64("softcap", 0);
  if (cap > 0) scores = tanh(scores / cap) * cap;
  Expr capped = scores;
  if (bias) scores = scores + bias;
  Expr weights = weights_of(call, scores, bias, q.dtype());
  if (!weights) return;
  int64_t mode = call.i64("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) return call.fail(Code::kData, format("'qk_matmul_output_mode' is {}", mode));
  // ONNX's reference applies the softcap to the output of mode 0 too.
  call.out(3, mode == 0 ? raw : mode == 1 ? capped : mode == 2 ? scores : weights);
  Expr y = matmul(weights, every_v);
  call.out(0, is_flat ? merge_heads(y) : y);
}

// ---- FlexAttention: graphs in attributes change the scores and the probabilities ----

// The graph of an attribute applied to x; x itself without such an attribute.
Expr applied(Call& call, const char* attribute, Expr x) {
  if (!call.has_attr(attribute) || !x.valid()) return x;
  const GraphProto* graph = call.graph(attribute);
  if (!graph) return x;
  auto made = call.importer().inline_graph(*graph, {{.type = x.type(), .value = x.value()}});
  if (!made.ok()) return call.fail(made.status()), x;
  if (made->size() != 1) return call.fail(Code::kData, format("the graph '{}' must have one output", attribute)), x;
  if (made->front().refused)
    return call.fail(Status(Code::kUnsupported, "a node of its graph cannot be imported").with(kFollowsRefused, "1")),
           x;
  return cast(call.importer().expr(made->front(), call.builder()), x.dtype());
}

void build_flex_attention(Call& call) {
  Expr q = call.in(0), k = call.in(1), v = call.in(2);
  if (!q.valid() || !k.valid() || !v.valid() || q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    return call.fail(Code::kShape, "Q, K and V must all have rank 4");
  DType precision = call.dtype("softmax_precision", compute_dtype(q.dtype()));
  Expr root = root_of_scale(call, q);
  Expr every_k = shared(call, k, q.dim(1)), every_v = shared(call, v, q.dim(1));
  Expr scores = applied(call, "score_mod", cast(matmul(q * root, every_k * root, {.b = true}), precision));
  Expr weights = applied(call, "prob_mod", call.op("softmax", {scores}, {{"axis", int64_t{-1}}}));
  call.out(0, cast(matmul(weights, cast(every_v, precision)), call.type(2).dtype));
}

void build_rotary(Call& call) {
  Expr x = call.in(0), cosine = call.in(1), sine = call.in(2), positions = call.in(3);
  if (!x.valid() || !cosine.valid() || !sine.valid()) return;
  int64_t heads = call.i64("num_heads", 0);
  if (!suits_tables(call, cosine)) return;
  if (x.rank() == 3 && heads < 1) return call.fail(Code::kData, "'num_heads' must be given for an input of rank 3");
  call.out(0, call.op("rope", {x, cosine, sine, positions}, rope_attrs(call, x, heads)));
}

constexpr NodeKind kKinds[] = {
    {"Attention", build_attention},
    {"RotaryEmbedding", build_rotary},
    {.op_type = "FlexAttention", .build = build_flex_attention, .domain = "ai.onnx.preview", .control = true},
};

}  // namespace

std::span<const NodeKind> attention_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
