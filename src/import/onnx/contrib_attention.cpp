// SPDX-License-Identifier: Apache-2.0
// The attentions of the domain com.microsoft, as the op: heads side by side in the last axis, caches [B, heads, T,
// size].
#include <algorithm>
#include <cmath>

#include "import/onnx/contrib.h"
#include "import/onnx/heads.h"
#include "import/onnx/quantize.h"
#include "ops/attention.h"

namespace rlx::onnx {

namespace {

Expr slot(Expr x, int64_t axis, int64_t i) {
  if (!x.valid()) return x;
  std::vector<Dim> dims = x.dims();
  dims.erase(dims.begin() + axis);
  return reshape(slice(x, axis, i, i + 1), dims);
}

Expr row(Builder& b, const Dim& count) {
  return iota(b, {count}, 0, DType::kI64);
}

struct Heads {  // [B, N, S, D]
  Expr q, k, v;
  bool valid() const { return q.valid() && k.valid() && v.valid(); }
};

// The bias of the scores: the filter value where the mask hides a key, else 0; absent without a mask. Masks are
//   [B]          how many keys each row has
//   [2 * B]      the same, then where the keys of each row begin
//   [3 * B + 2]  how many keys each row has, then where joined rows begin, which is not needed here
//   rank 2, 3    for every key 1 if it is seen, 0 if it is hidden
//   rank 4       the same for the longest sequence: the last positions are those of the queries
Expr bias_of_mask(Call& call, Expr mask, const Heads& heads) {
  double filter = call.f64("mask_filter_value", -10000);
  if (!mask || !mask.valid()) return mask;
  Builder& b = call.builder();
  const Dim &batch = heads.q.dim(0), &steps = heads.q.dim(2), &keys = heads.k.dim(2);
  Expr seen;
  if (mask.rank() == 1) {
    Expr at = row(b, keys), lengths = cast(mask, DType::kI64);
    bool has_begin = mask.dim(0) == batch * 2, has_places = mask.dim(0) == batch * 3 + 2;
    seen = less(at, unsqueeze(has_begin || has_places ? slice(lengths, 0, 0, batch) : lengths, 1));
    if (has_begin) seen = logical_and(seen, less_equal(unsqueeze(slice(lengths, 0, batch, batch * 2), 1), at));
  } else {
    seen = not_equal(mask, 0);
    if (mask.rank() == 4) seen = slice(slice(seen, 2, keys - steps, keys), 3, 0, keys);
    if (!seen.valid()) return seen;
  }
  if (seen.rank() == 2) seen = unsqueeze(unsqueeze(seen, 1), 1);
  if (seen.rank() == 3) seen = unsqueeze(seen, 1);
  return where(seen, b.scalar(DType::kF32, 0), b.scalar(DType::kF32, filter));
}

// The sum of the mask's bias and the bias that the node gets, which may be a half.
Expr sum_of(Expr mask, Expr bias) {
  return !mask ? bias : !bias ? mask : mask + cast(bias, mask.dtype());
}

NamedAttrs scaled(Call& call) {
  NamedAttrs attrs;
  if (double scale = call.f64("scale", 0); scale != 0) attrs.emplace_back("scale", scale);
  return attrs;
}

// Keys and values of a cache come before the new ones, if there is a cache.
void prepend_past(Heads& heads, Expr past_k, Expr past_v) {
  if (!past_k || !past_v) return;
  Expr keys[] = {past_k, heads.k}, values[] = {past_v, heads.v};
  heads.k = concat(keys, 2), heads.v = concat(values, 2);
}

// Output 0: the attention of these heads, side by side again.
void give_attention(Call& call, const Heads& heads, Expr mask, Expr bias, Expr sinks, const NamedAttrs& attrs) {
  Expr none(&call.builder(), kAbsent);
  auto given = [&](Expr x) { return x ? x : none; };
  call.out(
      0, merge_heads(call.op("attention",
                             {heads.q, heads.k, heads.v, given(mask), given(bias), none, none, given(sinks)}, attrs)));
}

// Outputs 1 and 2: the keys and values for the next run.
void give_cache(Call& call, const Heads& heads) {
  call.out(1, heads.k);
  call.out(2, heads.v);
}

// ---- MultiHeadAttention ----

// The heads of q, k and v. The node gets these as one packed tensor, as a query beside packed keys and values, or as
// three tensors.
Heads heads_of(Call& call, int64_t count, Expr bias) {
  Expr q = call.in(0), k = call.in(1), v = call.in(2);
  if (!q.valid()) return {q, q, q};
  if (q.rank() == 5) {  // [B, S, N, 3, D]
    auto part = [&](int64_t i) { return transpose(slot(q, 3, i), {0, 2, 1, 3}); };
    return {part(0), part(1), part(2)};
  }
  if (bias && bias.valid()) {
    Dim width = q.dim(2);
    q = q + slice(bias, 0, 0, width);
    if (k && k.valid() && k.rank() == 3) k = k + slice(bias, 0, width, width + width);
    if (v && v.valid() && v.rank() == 3) v = v + slice(bias, 0, width + width, bias.dim(0));
  }
  if (k && k.valid() && k.rank() == 5) {  // [B, T, N, 2, D]
    auto part = [&](int64_t i) { return transpose(slot(k, 3, i), {0, 2, 1, 3}); };
    return {split_heads(q, count), part(0), part(1)};
  }
  return {split_heads(q, count), split_heads(k, count), split_heads(v, count)};
}

void build_multi_head(Call& call) {
  enum Input { kQuery, kKey, kValue, kBias, kMask, kScoreBias, kPastKey, kPastValue, kPastLength, kBeams };
  int64_t count = call.i64("num_heads", 0);
  if (count < 1) return call.fail(Code::kData, "'num_heads' must be given");
  if (call.has(kPastLength) || call.has(kBeams)) return call.fail(Code::kUnsupported, "a past in a buffer, and beams");
  Heads heads = heads_of(call, count, call.in(kBias));
  Expr past_k = call.in(kPastKey), past_v = call.in(kPastValue);
  prepend_past(heads, past_k, past_v);
  if (!heads.valid()) return;
  Expr mask = bias_of_mask(call, call.in(kMask), heads);
  Expr bias = sum_of(mask, call.in(kScoreBias));
  NamedAttrs attrs = scaled(call);
  Expr allowed;
  if (call.i64("unidirectional", 0) != 0) {
    Dim steps = heads.q.dim(2), keys = heads.k.dim(2), past = past_k ? past_k.dim(2) : Dim(0);
    if (keys == past + steps) {
      attrs.emplace_back("causal", int64_t{1});
    } else {  // the first query stands beside the first new key; ONNX Runtime lets the last one see all keys
      Builder& b = call.builder();
      Expr query = unsqueeze(row(b, steps), 1), last = b.size(steps - Dim(1), DType::kI64);
      Expr reached = query + b.size(past, DType::kI64);
      allowed = logical_or(less_equal(row(b, keys), reached), equal(query, last));
    }
  }
  give_attention(call, heads, allowed, bias, Expr(), attrs);
  give_cache(call, heads);
}

// ---- DecoderMaskedMultiHeadAttention: one query ----

namespace decoder {
enum Input {
  kQuery,
  kKey,
  kValue,
  kMask,
  kScoreBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kBeamWidth,
  kBeams,
  kBias,
};
}

Expr decoder_bias(Call& call, const Heads& heads) {
  Expr mask = bias_of_mask(call, call.in(decoder::kMask), heads);
  return sum_of(mask, call.in(decoder::kScoreBias));
}

// The past is at the start of a buffer, and its length is a value of the run. Queries do not see what lies behind it.
void build_decoder_buffer(Call& call, Heads heads) {
  Builder& b = call.builder();
  Expr past = call.in(decoder::kPastLength);
  if (!call.has(decoder::kPastValue) || !past || !past.valid())
    return call.fail(Code::kData, "a buffer needs 'past_sequence_length'");
  if (!heads.valid()) return;
  past = reshape(cast(past, DType::kI64), {});
  Expr begin = broadcast_to(past, {heads.q.dim(0)});
  heads.k = call.op("kv_append", {call.in(decoder::kPastKey), heads.k, begin}, {{"axis", int64_t{2}}});
  heads.v = call.op("kv_append", {call.in(decoder::kPastValue), heads.v, begin}, {{"axis", int64_t{2}}});
  if (!heads.valid()) return;
  give_cache(call, heads);
  Dim keys = call.run_dim(past + b.scalar(DType::kI64, 1));
  heads.k = slice(heads.k, 2, 0, keys), heads.v = slice(heads.v, 2, 0, keys);
  if (!heads.valid()) return;
  give_attention(call, heads, Expr(), decoder_bias(call, heads), Expr(), scaled(call));
}

// Keys and values of rank 4 are those of another sequence.
void build_decoder(Call& call) {
  int64_t count = call.i64("num_heads", 0);
  if (count < 1) return call.fail(Code::kData, "'num_heads' must be given");
  bool has_buffer = call.i64("past_present_share_buffer", 0) != 0 && call.has(decoder::kPastKey);
  if (call.has(decoder::kBeamWidth) || call.has(decoder::kBeams)) return call.fail(Code::kUnsupported, "beams");
  if (call.i64("output_qk", 0) != 0 || call.wants(3)) return call.fail(Code::kUnsupported, "the scores as a result");
  if (!call.has(decoder::kKey) || !call.has(decoder::kValue)) return call.fail(Code::kUnsupported, "one packed input");
  Heads heads = heads_of(call, count, call.in(decoder::kBias));
  if (has_buffer) return build_decoder_buffer(call, heads);
  Expr past_k = call.in(decoder::kPastKey), past_v = call.in(decoder::kPastValue);
  prepend_past(heads, past_k, past_v);
  if (!heads.valid()) return;
  give_attention(call, heads, Expr(), decoder_bias(call, heads), Expr(), scaled(call));
  give_cache(call, heads);
}

// ---- Attention and QAttention: with the projections in front ----

namespace packed {
enum Input { kX, kWeight, kBias, kMask, kPast, kScoreBias, kPastLength };
}
namespace quantized {
enum Input { kX, kWeight, kBias, kScale, kWeightScale, kMask, kZero, kWeightZero, kPast };
}

// The inputs of both kinds; those that a kind does not have are absent.
struct PackedInputs {
  Expr product, mask, past, score_bias;
};

// The product of x and the weights, each minus its zero point, in f32.
Expr quantized_product(Call& call) {
  Expr scale = per_tensor(call.in(quantized::kWeightScale));
  Expr x = centred(call.in(quantized::kX), call.in(quantized::kZero));
  Expr w = centred(call.in(quantized::kWeight), call.in(quantized::kWeightZero));
  return cast(matmul(x, w), DType::kF32) * (reshape(call.in(quantized::kScale), {}) * scale);
}

PackedInputs packed_inputs(Call& call) {
  bool is_quantized = call.kind().op_type == "QAttention", has_buffer = call.i64("past_present_share_buffer", 0) != 0;
  if (has_buffer || (!is_quantized && call.has(packed::kPastLength)))
    call.fail(Code::kUnsupported, "a past in a buffer");
  if (is_quantized) return {quantized_product(call), call.in(quantized::kMask), call.in(quantized::kPast), Expr()};
  return {matmul(call.in(packed::kX), call.in(packed::kWeight)), call.in(packed::kMask), call.in(packed::kPast),
          call.in(packed::kScoreBias)};
}

// q, k and v lie side by side in `all`. Without sizes of their own they are as wide as each other.
Heads split_packed(Expr all, const std::vector<int64_t>& sizes, int64_t count) {
  Dim width = all.dim(2), first = sizes.empty() ? floor_div(width, Dim(3)) : Dim(sizes[0]),
      second = first + (sizes.empty() ? first : Dim(sizes[1]));
  Expr q = split_heads(slice(all, 2, 0, first), count), k = split_heads(slice(all, 2, first, second), count),
       v = split_heads(slice(all, 2, second, width), count);
  return {q, k, v};
}

void build_packed(Call& call) {
  int64_t count = call.i64("num_heads", 0);
  std::vector<int64_t> sizes = call.i64s("qkv_hidden_sizes");
  if (count < 1) return call.fail(Code::kData, "'num_heads' must be given");
  if (!sizes.empty() && sizes.size() != 3) return call.fail(Code::kData, "'qkv_hidden_sizes' does not hold 3 sizes");
  if (call.i64("do_rotary", 0) != 0) return call.fail(Code::kUnsupported, "'do_rotary'");
  call.ignore("rotary_embedding_dim");
  PackedInputs in = packed_inputs(call);
  Expr all = call.has(packed::kBias) ? in.product + call.in(packed::kBias) : in.product;
  if (!all.valid() || all.rank() != 3) return call.fail(Code::kShape, "the input must have rank 3");
  Heads heads = split_packed(all, sizes, count);
  if (in.past) {  // [2, B, N, P, D]
    Expr past_k = slot(in.past, 0, 0), past_v = slot(in.past, 0, 1);
    prepend_past(heads, past_k, past_v);
  }
  if (!heads.valid()) return;
  if (call.wants(1)) {
    Expr both[] = {unsqueeze(heads.k, 0), unsqueeze(heads.v, 0)};
    call.out(1, concat(both, 0));
  }
  Expr bias = sum_of(bias_of_mask(call, in.mask, heads), in.score_bias);
  NamedAttrs attrs = scaled(call);
  attrs.emplace_back("causal", call.i64("unidirectional", 0));
  give_attention(call, heads, Expr(), bias, Expr(), attrs);
}

// ---- GroupQueryAttention: the cache holds as many keys of a row as its number says ----

// The tokens of this run: where they begin in each row of the cache, [B], and their positions, [B, S].
struct NewTokens {
  Expr begin, positions;
};

// `total`: how many keys each row has with the new ones, [B].
NewTokens new_tokens(Expr total, const Dim& steps) {
  Builder& b = total.builder();
  Expr begin = maximum(total - b.size(steps, DType::kI64), 0);
  return {begin, unsqueeze(begin, 1) + row(b, steps)};
}

// Turns queries and keys, if the node asks for it. The tables are the inputs from `cosine` on.
void rotate(Call& call, Heads& heads, size_t cosine, Expr positions) {
  bool rotates = call.i64("do_rotary", 0) != 0, is_interleaved = call.i64("rotary_interleaved", 0) != 0;
  if (!rotates) return;
  NamedAttrs attrs{{"style", is_interleaved ? "interleaved" : "half"}};
  positions = cast(positions, DType::kI64);
  heads.q = call.op("rope", {heads.q, call.in(cosine), call.in(cosine + 1), positions}, attrs);
  heads.k = call.op("rope", {heads.k, call.in(cosine), call.in(cosine + 1), positions}, attrs);
}

// The cache, of this many keys, with new ones written from a position of each row on.
Expr appended(Call& call, Expr past, Expr rows, Expr begin, const Dim& keys) {
  if (past && past.valid() && !(past.dim(2) == keys)) {
    std::vector<Dim> none(4, Dim(0)), behind = none;
    behind[2] = keys - past.dim(2);
    past = call.op("pad", {past, scalar_like(past, 0)}, {{"lo", none}, {"hi", behind}});
  }
  if (!past) past = broadcast_to(scalar_like(rows, 0), {rows.dim(0), rows.dim(1), keys, rows.dim(3)});
  return call.op("kv_append", {past, rows, begin}, {{"axis", int64_t{2}}});
}

Heads split_groups(Call& call, int64_t count, int64_t kv_count) {
  Expr q = call.in(0), k = call.in(1), v = call.in(2);
  if (!q.valid()) return {q, q, q};
  if (!k) {  // side by side in one
    Dim size = floor_div(q.dim(2), Dim(count + 2 * kv_count)), first = size * Dim(count), second = size * Dim(kv_count);
    v = slice(q, 2, first + second, first + second + second);
    k = slice(q, 2, first, first + second);
    q = slice(q, 2, 0, first);
  }
  return {split_heads(q, count), split_heads(k, kv_count), split_heads(v, kv_count)};
}

// Which keys each query sees: none behind it and, with a window, only the last ones.
Expr seen_keys(Expr positions, const Dim& keys, int64_t window) {
  Builder& b = positions.builder();
  Expr query = unsqueeze(unsqueeze(positions, 1), 3), key = row(b, keys), seen = less_equal(key, query);
  if (window <= 0) return seen;
  return logical_and(seen, less(query - b.size(std::min(window, kWidestWindow), DType::kI64), key));
}

void check_group_query(Call& call) {
  call.ignore("kv_cache_bit_width");  // that of quantised caches
  call.ignore("qk_norm_epsilon");     // of scales that would be more inputs
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (call.text(name, "NONE") != "NONE") call.fail(Code::kUnsupported, "a cache of quantised numbers");
  if (call.i64("causal", 1) != 1) call.fail(Code::kUnsupported, "'causal' is not 1");
  if (call.i64("sliding_window_cache", 0) != 0) call.fail(Code::kUnsupported, "'sliding_window_cache'");
  if (call.i64("qk_output", 0) != 0) call.fail(Code::kUnsupported, "'qk_output', the scores as a result");
}

void build_group_query(Call& call) {
  enum Input {
    kQuery,
    kKey,
    kValue,
    kPastKey,
    kPastValue,
    kLast,
    kTotal,
    kCosine,
    kSine,
    kPositions,
    kScoreBias,
    kSinks,
  };
  int64_t count = call.i64("num_heads", 0), kv_count = call.i64("kv_num_heads", 0);
  if (count < 1 || kv_count < 1) return call.fail(Code::kData, "'num_heads' and 'kv_num_heads' must be given");
  check_group_query(call);
  bool is_smooth = call.i64("smooth_softmax", -1) == 1;
  int64_t window = call.i64("local_window_size", -1);
  if (window == 0) return call.fail(Code::kData, "'local_window_size' is 0");
  Builder& b = call.builder();
  Heads heads = split_groups(call, count, kv_count);
  Expr past_k = call.in(kPastKey), past_v = call.in(kPastValue), last = call.in(kLast);
  if (!heads.valid() || !last.valid()) return;
  std::vector<Dim> total = call.run_dims(kTotal, "total_sequence_length");
  if (total.size() != 1) return call.fail(Code::kShape, "'total_sequence_length' must be one number");
  Dim keys = past_k && past_k.valid() ? max(past_k.dim(2), total[0]) : total[0];
  NewTokens tokens = new_tokens(reshape(cast(last, DType::kI64), {heads.q.dim(0)}) + 1.0, heads.q.dim(2));
  Expr positions = call.in(kPositions);
  rotate(call, heads, kCosine, positions ? positions : tokens.positions);
  heads.k = appended(call, past_k, heads.k, tokens.begin, keys);
  heads.v = appended(call, past_v, heads.v, tokens.begin, keys);
  if (!heads.valid()) return;
  NamedAttrs attrs = scaled(call);
  attrs.emplace_back("softcap", call.f64("softcap", 0));
  Expr sinks = call.in(kSinks);
  if (is_smooth && !sinks) sinks = broadcast_to(b.scalar(DType::kF32, 0), {Dim(count)});
  give_attention(call, heads, seen_keys(tokens.positions, keys, window), call.in(kScoreBias), sinks, attrs);
  give_cache(call, heads);
}

// ---- SparseAttention: of blocks of keys, some of which each block of queries sees ----

namespace sparse {
enum Input { kQuery, kKey, kValue, kPastKey, kPastValue, kBlockRows, kBlockColumns, kMaxLength, kLengths, kCosine };
}

// [layouts, blocks, blocks]: whether queries of one block see keys of another, from rows of column numbers. Those of
// row i stand from begin[i] up to begin[i + 1].
Expr seen_blocks(Expr begin, Expr columns) {
  Builder& b = begin.builder();
  Dim blocks = begin.dim(1) - Dim(1);
  Expr at = iota(b, {columns.dim(1)}, 0, DType::kI64);
  Expr from = unsqueeze(slice(begin, 1, 0, blocks), 2), to = unsqueeze(slice(begin, 1, 1, blocks + Dim(1)), 2);
  Expr in_row = logical_and(less_equal(from, at), less(at, to));                     // [L, blocks, numbers]
  Expr is_column = equal(unsqueeze(columns, 2), iota(b, {blocks}, 0, DType::kI64));  // [L, numbers, blocks]
  return less(b.scalar(DType::kF32, 0.5), matmul(cast(in_row, DType::kF32), cast(is_column, DType::kF32)));
}

// [B, heads, S, T]: the layouts take turns over the heads.
Expr seen_by_blocks(Call& call, Expr positions, const Dim& keys, int64_t heads, int64_t size) {
  Builder& b = call.builder();
  auto wide = [](Expr x) { return cast(x, DType::kI64); };
  Expr begin = wide(call.in(sparse::kBlockRows)), columns = wide(call.in(sparse::kBlockColumns));
  Expr seen = seen_blocks(begin, columns), block = b.scalar(DType::kI64, static_cast<double>(size));
  seen = gather(seen, call.op("floor_div", {row(b, keys), block}), 2);
  seen = gather(seen, call.op("floor_div", {positions, block}), 1);  // [L, B, S, T]
  if (!seen.valid()) return seen;
  Expr layout = call.op("floor_mod", {row(b, Dim(heads)), b.size(seen.dim(0), DType::kI64)});
  return transpose(gather(seen, layout, 0), {1, 0, 2, 3});
}

void build_sparse(Call& call) {
  int64_t count = call.i64("num_heads", 0), kv_count = call.i64("kv_num_heads", 0),
          size = call.i64("sparse_block_size", 0);
  if (count < 1 || kv_count < 1 || size < 1)
    return call.fail(Code::kData, "'num_heads', 'kv_num_heads' and 'sparse_block_size' must be given");
  Heads heads = split_groups(call, count, kv_count);
  Expr past_k = call.in(sparse::kPastKey), past_v = call.in(sparse::kPastValue), lengths = call.in(sparse::kLengths);
  if (!heads.valid() || !lengths.valid() || !past_k.valid()) return;
  Dim keys = past_k.dim(2);
  NewTokens tokens = new_tokens(reshape(cast(lengths, DType::kI64), {heads.q.dim(0)}), heads.q.dim(2));
  rotate(call, heads, sparse::kCosine, tokens.positions);
  heads.k = appended(call, past_k, heads.k, tokens.begin, keys);
  heads.v = appended(call, past_v, heads.v, tokens.begin, keys);
  if (!heads.valid()) return;
  Expr allowed =
      logical_and(seen_keys(tokens.positions, keys, 0), seen_by_blocks(call, tokens.positions, keys, count, size));
  give_attention(call, heads, allowed, Expr(), Expr(), scaled(call));
  give_cache(call, heads);
}

constexpr NodeKind kKinds[] = {
    microsoft("MultiHeadAttention", build_multi_head),
    microsoft("Attention", build_packed),
    microsoft("QAttention", build_packed),
    microsoft("GroupQueryAttention", build_group_query),
    microsoft("SparseAttention", build_sparse),
    microsoft("DecoderMaskedMultiHeadAttention", build_decoder),
};

}  // namespace

std::span<const NodeKind> contrib_attention_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
