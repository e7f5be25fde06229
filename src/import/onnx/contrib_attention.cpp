// SPDX-License-Identifier: Apache-2.0
// The attentions of the domain com.microsoft, as the op: heads side by side in the last axis, caches [B, heads, T,
// size].
#include <cmath>

#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

// [B, S, N * D] as [B, N, S, D]; rank 4 stays.
Expr by_heads(Expr x, int64_t heads) {
  if (!x.valid() || x.rank() != 3) return x;
  return transpose(reshape(x, {x.dim(0), x.dim(1), Dim(heads), Dim(-1)}), {0, 2, 1, 3});
}

Expr side_by_side(Expr x) {
  if (!x.valid() || x.rank() != 4) return x;
  Expr y = transpose(x, {0, 2, 1, 3});
  return reshape(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
}

Expr slot(Expr x, int64_t axis, int64_t i) {
  if (!x.valid()) return x;
  std::vector<Dim> dims = x.dims();
  dims.erase(dims.begin() + axis);
  return reshape(slice(x, axis, i, i + 1), dims);
}

Expr row(Builder& b, const Dim& count) {
  return iota(b, {count}, 0, DType::kI64);
}

// What is added to the scores of keys that a mask of ones and zeros hides; an absent Expr without a mask. One number a
// row says how many keys there are; two say that as well as where they begin; else there is one for every key.
Expr bias_of_mask(Call& call, Expr mask, const Dim& batch, const Dim& keys) {
  double filter = call.f64("mask_filter_value", -10000);
  if (!mask || !mask.valid()) return mask;
  Builder& b = call.builder();
  Expr seen;
  if (mask.rank() == 1) {
    Expr at = row(b, keys), lengths = cast(mask, DType::kI64);
    bool has_begin = mask.dim(0) == batch * 2;
    seen = less(at, unsqueeze(has_begin ? slice(lengths, 0, 0, batch) : lengths, 1));
    if (has_begin) seen = logical_and(seen, less_equal(unsqueeze(slice(lengths, 0, batch, batch * 2), 1), at));
  } else {
    seen = not_equal(mask, 0);
  }
  if (seen.rank() == 2) seen = unsqueeze(unsqueeze(seen, 1), 1);
  if (seen.rank() == 3) seen = unsqueeze(seen, 1);
  return where(seen, b.scalar(DType::kF32, 0), b.scalar(DType::kF32, filter));
}

Expr sum_of(Expr a, Expr b) {
  return !a ? b : !b ? a : a + b;
}

NamedAttrs scaled(Call& call) {
  NamedAttrs attrs;
  if (double scale = call.f64("scale", 0); scale != 0) attrs.emplace_back("scale", scale);
  return attrs;
}

// The attention of heads [B, N, S, D], and its result with the heads side by side.
Expr attend(Call& call, Expr q, Expr k, Expr v, Expr mask, Expr bias, Expr sinks, const NamedAttrs& attrs) {
  Expr none(&call.builder(), kAbsent);
  auto given = [&](Expr x) { return x ? x : none; };
  return side_by_side(call.op("attention", {q, k, v, given(mask), given(bias), none, none, given(sinks)}, attrs));
}

// ---- MultiHeadAttention ----

struct Heads {
  Expr q, k, v;
};

// Of one packed tensor, of a query beside packed keys and values, or of three.
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
    return {by_heads(q, count), part(0), part(1)};
  }
  return {by_heads(q, count), by_heads(k, count), by_heads(v, count)};
}

void build_multi_head(Call& call) {
  int64_t count = call.i64("num_heads", 0);
  if (count < 1) return call.fail(Code::kData, "'num_heads' must be given");
  if (call.has(8) || call.has(9)) return call.fail(Code::kUnsupported, "a past in a buffer, and beams");
  Heads heads = heads_of(call, count, call.in(3));
  if (call.has(6) && call.has(7)) {
    Expr keys[] = {call.in(6), heads.k}, values[] = {call.in(7), heads.v};
    heads.k = concat(keys, 2), heads.v = concat(values, 2);
  }
  if (!heads.q.valid() || !heads.k.valid() || !heads.v.valid()) return;
  Expr bias = sum_of(bias_of_mask(call, call.in(4), heads.q.dim(0), heads.k.dim(2)), call.in(5));
  NamedAttrs attrs = scaled(call);
  Expr allowed;
  if (call.i64("unidirectional", 0) != 0) {
    const Dim &steps = heads.q.dim(2), &keys = heads.k.dim(2);
    if (call.has(6) || steps == keys) {
      attrs.emplace_back("causal", int64_t{1});
    } else {  // the first query stands beside the first key; ONNX Runtime lets the last one see all keys
      Builder& b = call.builder();
      Expr query = unsqueeze(row(b, steps), 1), last = b.size(steps - Dim(1), DType::kI64);
      allowed = logical_or(less_equal(row(b, keys), query), equal(query, last));
    }
  }
  call.out(0, attend(call, heads.q, heads.k, heads.v, allowed, bias, Expr(), attrs));
  call.out(1, heads.k);
  call.out(2, heads.v);
}

// The past is at the start of a buffer, which a run says the length of; what lies behind it is not seen.
void build_decoder_buffer(Call& call, Heads heads) {
  Builder& b = call.builder();
  Expr past = call.in(7);
  if (!call.has(6) || !past || !past.valid()) return call.fail(Code::kData, "a buffer needs 'past_sequence_length'");
  if (!heads.q.valid() || !heads.k.valid() || !heads.v.valid()) return;
  past = reshape(cast(past, DType::kI64), {});
  Expr begin = broadcast_to(past, {heads.q.dim(0)});
  heads.k = call.op("kv_append", {call.in(5), heads.k, begin}, {{"axis", int64_t{2}}});
  heads.v = call.op("kv_append", {call.in(6), heads.v, begin}, {{"axis", int64_t{2}}});
  if (!heads.k.valid() || !heads.v.valid()) return;
  call.out(1, heads.k);
  call.out(2, heads.v);
  Dim keys = call.run_dim(past + b.scalar(DType::kI64, 1));
  heads.k = slice(heads.k, 2, 0, keys), heads.v = slice(heads.v, 2, 0, keys);
  if (!heads.k.valid() || !heads.v.valid()) return;
  Expr bias = sum_of(bias_of_mask(call, call.in(3), heads.q.dim(0), keys), call.in(4));
  call.out(0, attend(call, heads.q, heads.k, heads.v, Expr(), bias, Expr(), scaled(call)));
}

// One query, of a decoder. Keys and values of rank 4 are those of another sequence.
void build_decoder(Call& call) {
  int64_t count = call.i64("num_heads", 0);
  if (count < 1) return call.fail(Code::kData, "'num_heads' must be given");
  bool has_buffer = call.i64("past_present_share_buffer", 0) != 0 && call.has(5);
  if (call.has(8) || call.has(9)) return call.fail(Code::kUnsupported, "beams");
  if (call.i64("output_qk", 0) != 0 || call.wants(3)) return call.fail(Code::kUnsupported, "the scores as a result");
  if (!call.has(1) || !call.has(2)) return call.fail(Code::kUnsupported, "one packed input");
  Heads heads = heads_of(call, count, call.in(10));
  if (has_buffer) return build_decoder_buffer(call, heads);
  if (call.has(5) && call.has(6)) {
    Expr keys[] = {call.in(5), heads.k}, values[] = {call.in(6), heads.v};
    heads.k = concat(keys, 2), heads.v = concat(values, 2);
  }
  if (!heads.q.valid() || !heads.k.valid() || !heads.v.valid()) return;
  Expr bias = sum_of(bias_of_mask(call, call.in(3), heads.q.dim(0), heads.k.dim(2)), call.in(4));
  call.out(0, attend(call, heads.q, heads.k, heads.v, Expr(), bias, Expr(), scaled(call)));
  call.out(1, heads.k);
  call.out(2, heads.v);
}

// ---- Attention and QAttention: with the projections in front ----

// Where the two have the inputs that they share.
struct Places {
  size_t mask, past, bias, shared_past;
};

// Of quantised numbers: the product of what is left when the zero points are taken off.
Expr quantised_projection(Call& call) {
  auto centred = [&](size_t i, size_t zero) {
    Expr wide = cast(call.in(i), DType::kI32), off = call.in(zero);
    if (off && off.valid() && off.rank() == 1 && off.dim(0).is(1)) off = reshape(off, {});
    return off ? wide - cast(off, DType::kI32) : wide;
  };
  Expr scale = call.in(4);
  if (scale.valid() && scale.rank() == 1 && scale.dim(0).is(1)) scale = reshape(scale, {});
  return cast(matmul(centred(0, 6), centred(1, 7)), DType::kF32) * (reshape(call.in(3), {}) * scale);
}

void build_packed(Call& call) {
  bool is_quantised = call.kind().op_type == "QAttention";
  constexpr size_t kNone = 99;
  Places at = is_quantised ? Places{5, 8, kNone, kNone} : Places{3, 4, 5, 6};
  int64_t count = call.i64("num_heads", 0);
  std::vector<int64_t> sizes = call.i64s("qkv_hidden_sizes");
  if (count < 1) return call.fail(Code::kData, "'num_heads' must be given");
  if (!sizes.empty() && sizes.size() != 3) return call.fail(Code::kData, "'qkv_hidden_sizes' does not hold 3 sizes");
  if (call.has(at.shared_past) || call.i64("past_present_share_buffer", 0) != 0)
    return call.fail(Code::kUnsupported, "a past in a buffer");
  if (call.i64("do_rotary", 0) != 0) return call.fail(Code::kUnsupported, "'do_rotary'");
  call.ignore("rotary_embedding_dim");
  Expr all = is_quantised ? quantised_projection(call) : matmul(call.in(0), call.in(1));
  if (call.has(2)) all = all + call.in(2);
  if (!all.valid() || all.rank() != 3) return call.fail(Code::kShape, "the input must have rank 3");
  Dim width = all.dim(2), first = sizes.size() == 3 ? Dim(sizes[0]) : floor_div(width, Dim(3)),
      second = sizes.size() == 3 ? first + Dim(sizes[1]) : first + first;
  Expr q = by_heads(slice(all, 2, 0, first), count), k = by_heads(slice(all, 2, first, second), count),
       v = by_heads(slice(all, 2, second, width), count);
  if (call.has(at.past)) {  // [2, B, N, P, D]
    Expr keys[] = {slot(call.in(at.past), 0, 0), k}, values[] = {slot(call.in(at.past), 0, 1), v};
    k = concat(keys, 2), v = concat(values, 2);
  }
  if (!q.valid() || !k.valid() || !v.valid()) return;
  if (call.wants(1)) {
    Expr both[] = {unsqueeze(k, 0), unsqueeze(v, 0)};
    call.out(1, concat(both, 0));
  }
  Expr bias = sum_of(bias_of_mask(call, call.in(at.mask), q.dim(0), k.dim(2)), call.in(at.bias));
  NamedAttrs attrs = scaled(call);
  attrs.emplace_back("causal", call.i64("unidirectional", 0));
  call.out(0, attend(call, q, k, v, Expr(), bias, Expr(), attrs));
}

// ---- GroupQueryAttention: the cache holds as many keys of a row as its number says ----

Expr rotated(Call& call, Expr x, Expr positions, bool is_interleaved) {
  NamedAttrs attrs{{"style", is_interleaved ? "interleaved" : "half"}};
  return call.op("rope", {x, call.in(7), call.in(8), positions}, attrs);
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
  return {by_heads(q, count), by_heads(k, kv_count), by_heads(v, kv_count)};
}

void build_group_query(Call& call) {
  int64_t count = call.i64("num_heads", 0), kv_count = call.i64("kv_num_heads", 0);
  if (count < 1 || kv_count < 1) return call.fail(Code::kData, "'num_heads' and 'kv_num_heads' must be given");
  call.ignore("kv_cache_bit_width");  // that of quantised caches
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (call.text(name, "NONE") != "NONE") return call.fail(Code::kUnsupported, "a cache of quantised numbers");
  if (call.i64("qk_output", 0) != 0) return call.fail(Code::kUnsupported, "'qk_output', the scores as a result");
  bool rotates = call.i64("do_rotary", 0) != 0, is_interleaved = call.i64("rotary_interleaved", 0) != 0;
  bool is_smooth = call.i64("smooth_softmax", 0) != 0;
  int64_t window = call.i64("local_window_size", -1);
  if (window == 0) return call.fail(Code::kData, "'local_window_size' is 0");
  Builder& b = call.builder();
  Heads heads = split_groups(call, count, kv_count);
  Expr past_k = call.in(3), past_v = call.in(4), last = call.in(5);
  if (!heads.q.valid() || !heads.k.valid() || !heads.v.valid() || !last.valid()) return;
  std::vector<Dim> total = call.run_dims(6, "total_sequence_length");
  if (total.size() != 1) return;
  Dim steps = heads.q.dim(2), keys = past_k && past_k.valid() ? max(past_k.dim(2), total[0]) : total[0];
  // Of each row: how many keys it has now, and where the new ones begin.
  Expr length = reshape(cast(last, DType::kI64), {heads.q.dim(0)}) + 1.0;
  Expr begin = maximum(length - b.size(steps, DType::kI64), 0);
  Expr positions = unsqueeze(begin, 1) + row(b, steps);  // [B, S]
  if (rotates) {
    Expr given = call.has(9) ? cast(call.in(9), DType::kI64) : positions;
    heads.q = rotated(call, heads.q, given, is_interleaved);
    heads.k = rotated(call, heads.k, given, is_interleaved);
  }
  heads.k = appended(call, past_k, heads.k, begin, keys);
  heads.v = appended(call, past_v, heads.v, begin, keys);
  if (!heads.k.valid() || !heads.v.valid()) return;
  Expr query = unsqueeze(unsqueeze(positions, 1), 3), key = row(b, keys), allowed = less_equal(key, query);
  if (window > 0) allowed = logical_and(allowed, less(query - b.scalar(DType::kI64, static_cast<double>(window)), key));
  NamedAttrs attrs = scaled(call);
  attrs.emplace_back("softcap", call.f64("softcap", 0));
  Expr sinks = call.in(11);
  if (is_smooth && !sinks) sinks = broadcast_to(b.scalar(DType::kF32, 0), {Dim(count)});
  call.out(0, attend(call, heads.q, heads.k, heads.v, allowed, call.in(10), sinks, attrs));
  call.out(1, heads.k);
  call.out(2, heads.v);
}

// ---- SparseAttention: of blocks of keys, some of which each block of queries sees ----

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
  Expr seen = seen_blocks(wide(call.in(5)), wide(call.in(6))), block = b.scalar(DType::kI64, static_cast<double>(size));
  seen = gather(seen, call.op("floor_div", {row(b, keys), block}), 2);
  seen = gather(seen, call.op("floor_div", {positions, block}), 1);  // [L, B, S, T]
  if (!seen.valid()) return seen;
  Expr layout = call.op("floor_mod", {row(b, Dim(heads)), b.size(seen.dim(0), DType::kI64)});
  return transpose(gather(seen, layout, 0), {1, 0, 2, 3});
}

void build_sparse(Call& call) {
  int64_t count = call.i64("num_heads", 0), kv_count = call.i64("kv_num_heads", 0),
          size = call.i64("sparse_block_size", 0);
  bool rotates = call.i64("do_rotary", 0) != 0, is_interleaved = call.i64("rotary_interleaved", 0) != 0;
  if (count < 1 || kv_count < 1 || size < 1)
    return call.fail(Code::kData, "'num_heads', 'kv_num_heads' and 'sparse_block_size' must be given");
  Builder& b = call.builder();
  Heads heads = split_groups(call, count, kv_count);
  Expr past_k = call.in(3), past_v = call.in(4), lengths = call.in(8);
  if (!heads.q.valid() || !heads.k.valid() || !heads.v.valid() || !lengths.valid() || !past_k.valid()) return;
  Dim steps = heads.q.dim(2), keys = past_k.dim(2);
  Expr begin = maximum(reshape(cast(lengths, DType::kI64), {heads.q.dim(0)}) - b.size(steps, DType::kI64), 0);
  Expr positions = unsqueeze(begin, 1) + row(b, steps);  // [B, S]
  if (rotates) {
    NamedAttrs attrs{{"style", is_interleaved ? "interleaved" : "half"}};
    heads.q = call.op("rope", {heads.q, call.in(9), call.in(10), positions}, attrs);
    heads.k = call.op("rope", {heads.k, call.in(9), call.in(10), positions}, attrs);
  }
  heads.k = appended(call, past_k, heads.k, begin, keys);
  heads.v = appended(call, past_v, heads.v, begin, keys);
  if (!heads.k.valid() || !heads.v.valid()) return;
  Expr allowed = less_equal(row(b, keys), unsqueeze(unsqueeze(positions, 1), 3));
  allowed = logical_and(allowed, seen_by_blocks(call, positions, keys, count, size));
  call.out(0, attend(call, heads.q, heads.k, heads.v, allowed, Expr(), Expr(), scaled(call)));
  call.out(1, heads.k);
  call.out(2, heads.v);
}

// ---- RotaryEmbedding: one position says where the first row stands ----

void build_rotary(Call& call) {
  if (call.i64("is_packed_batching", 0) != 0) return call.fail(Code::kUnsupported, "'is_packed_batching'");
  int64_t turned = call.i64("rotary_embedding_dim", 0);  // the tables say it too
  Expr x = call.in(0), positions = call.in(1), cosine = call.in(2), sine = call.in(3);
  int64_t heads = call.i64("num_heads", 0);
  call.ignore("scale");  // ONNX Runtime computes without it
  if (!x.valid() || !positions.valid() || !cosine.valid() || !sine.valid()) return;
  if (cosine.rank() != 2) return call.fail(Code::kShape, "cos_cache must have rank 2");
  if (turned != 0 && !(cosine.dim(1) * 2 == Dim(turned)))
    return call.fail(Code::kShape,
                     format("'rotary_embedding_dim' is {}, the tables have {}", turned, cosine.dim(1) * 2));
  bool is_flat = x.rank() == 3;
  if (is_flat && heads == 0) {
    Dim count = floor_div(x.dim(2), cosine.dim(1) * 2);
    if (!count.is_literal()) return call.fail(Code::kUnsupported, "a number of heads that is not known");
    heads = count.literal();
  }
  NamedAttrs attrs{{"style", call.i64("interleaved", 0) != 0 ? "interleaved" : "half"},
                   {"layout", is_flat ? "bsx" : "bhsd"}};
  if (is_flat) attrs.emplace_back("num_heads", heads);
  if (positions.rank() == 1)
    positions = reshape(positions, {}) + iota(call.builder(), {x.dim(-2)}, 0, positions.dtype());
  call.out(0, call.op("rope", {x, cosine, sine, positions}, attrs));
}

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr NodeKind kKinds[] = {
    {"MultiHeadAttention", build_multi_head, "", nullptr, {}, kMicrosoft},
    {"Attention", build_packed, "", nullptr, {}, kMicrosoft},
    {"QAttention", build_packed, "", nullptr, {}, kMicrosoft},
    {"GroupQueryAttention", build_group_query, "", nullptr, {}, kMicrosoft},
    {"SparseAttention", build_sparse, "", nullptr, {}, kMicrosoft},
    {"RotaryEmbedding", build_rotary, "", nullptr, {}, kMicrosoft},
    {"DecoderMaskedMultiHeadAttention", build_decoder, "", nullptr, {}, kMicrosoft},
};

}  // namespace

std::span<const NodeKind> contrib_attention_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
