// SPDX-License-Identifier: Apache-2.0
// The rows for attention and rope over f32. q, k and v may be slices of one product: only their elements must be
// adjacent.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/rows/native.h"
#include "ops/attention.h"

namespace rlx::cpu {

namespace {

enum Input { kQ, kK, kV, kMask, kBias, kKvLen, kAlibi, kSinks };

std::string_view refuse_attention(const KernelQuery& query) {
  for (int i : {kQ, kK, kV, kBias, kAlibi, kSinks})
    if (query.has(static_cast<size_t>(i)) && query.type(static_cast<size_t>(i)).dtype != DType::kF32)
      return "takes f32 only";
  return {};
}

// Any layout, read as [batch, sequence, head, element].
struct Heads {
  int64_t batch, seq, heads, d;
  HeadStrides strides;
};

Heads heads_of(const View& view, const Attrs& attrs, std::string_view count) {
  const std::string& layout = attrs.str("layout");
  const Dims &n = view.dims, &s = view.strides;
  if (layout == "bhsd") return {n[0], n[2], n[1], n[3], {s[0], s[2], s[1]}};
  if (layout == "bshd") return {n[0], n[1], n[2], n[3], {s[0], s[1], s[2]}};
  int64_t heads = attrs.i64(count), d = n[2] / heads;
  return {n[0], n[1], heads, d, {s[0], s[1], d}};
}

// Strides over [batch, head, query, key], aligned right.
ScoreStrides score_strides(const View& view) {
  int64_t out[4] = {};
  for (size_t i = 0; i < view.dims.size(); i++)
    if (view.dims[i] != 1) out[4 - view.dims.size() + i] = view.strides[i];
  return {out[0], out[1], out[2], out[3]};
}

EmptyRow empty_row(const Attrs& attrs) {
  return attrs.is("empty_row", "mean")  ? EmptyRow::kMean
         : attrs.is("empty_row", "nan") ? EmptyRow::kNan
                                        : EmptyRow::kZero;
}

void set_scores(AttentionArgs& args, const StepView& view) {
  if (const View& bias = view.in[kBias]) {
    args.bias = bias.as<float>();
    args.bias_strides = score_strides(bias);
  }
  if (const View& mask = view.in[kMask]) {
    args.mask = mask.as<uint8_t>();
    args.mask_strides = score_strides(mask);
  }
  args.alibi = data_or_null<const float>(view.in[kAlibi]);
  args.sinks = data_or_null<const float>(view.in[kSinks]);
  if (const View& lengths = view.in[kKvLen]) {
    args.kv_len = lengths.data;
    args.kv_len_is_i64 = lengths.dtype == DType::kI64;
  }
}

// ---- copies of keys and values ----

// Each block of queries reads all keys and values of its head. Rows that lie between those of other heads share few
// sets of a cache and touch many pages, so many queries repay a copy where the rows of a head are adjacent.
constexpr int64_t kManyQueries = 128, kLargeHead = 1 << 15;
constexpr size_t kMostCopied = 64 << 20;

size_t attention_scratch(const Node& node, std::span<const Dims> upper) {
  double elements = largest_count(upper[kK]) + largest_count(upper[kV]), bytes = elements * sizeof(float);
  int64_t queries = upper[kQ][node.attrs.is("layout", "bhsd") ? 2 : 1];
  if (queries < kManyQueries || elements < double{kLargeHead}) return 0;  // as repays_copies says
  return bytes > double{kMostCopied} ? kMostCopied : static_cast<size_t>(bytes);
}

int64_t copied_elements(const AttentionArgs& args) {
  return args.batch * args.kv_heads * args.k_len * (args.d + args.dv);
}
bool repays_copies(const AttentionArgs& args) {
  bool are_adjacent = args.k_strides.seq == args.d && args.v_strides.seq == args.dv;
  bool reads_all = !args.kv_len && args.window_left < 0;
  return !are_adjacent && reads_all && args.q_len >= kManyQueries && args.k_len * (args.d + args.dv) >= kLargeHead &&
         copied_elements(args) <= static_cast<int64_t>(kMostCopied / sizeof(float));
}

// Makes `data` and its strides those of the copy that the result describes.
CopyArgs copy_of_heads(const AttentionArgs& args, int64_t depth, float* to, const float*& data, HeadStrides& strides) {
  CopyArgs copy;
  copy.from = reinterpret_cast<const std::byte*>(data);
  copy.to = reinterpret_cast<std::byte*>(to);
  copy.element = sizeof(float);
  copy.rank = 4;
  const int64_t dims[] = {args.batch, args.kv_heads, args.k_len, depth};
  const int64_t from[] = {strides.batch, strides.head, strides.seq, 1};
  for (int i = 0; i < copy.rank; i++) copy.dims[i] = dims[i], copy.strides[i] = from[i] * copy.element;
  collapse_dims(copy);
  data = to;
  strides = {args.kv_heads * args.k_len * depth, depth, args.k_len * depth};
  return copy;
}

void load_attention(const StepView& view, const Caps& caps, AttentionArgs args, void* block, Launch& launch) {
  double scores = static_cast<double>(args.batch * args.q_heads * args.q_len) * static_cast<double>(args.k_len);
  double work = 200 + scores * static_cast<double>(args.d + args.dv) / 30;
  const auto& attention = caps.fns.attention.attention;
  if (!repays_copies(args)) return load(block, attention, args, work, launch);
  auto* to = reinterpret_cast<float*>(view.scratch);
  int64_t keys = args.batch * args.kv_heads * args.k_len;
  CopyArgs k = copy_of_heads(args, args.d, to, args.k, args.k_strides);
  CopyArgs v = copy_of_heads(args, args.dv, to + keys * args.d, args.v, args.v_strides);
  load(block, copy_loop(), k, 30 + 0.4 * static_cast<double>(keys * args.d), launch);
  load_after<CopyArgs>(block, copy_loop(), v, 30 + 0.4 * static_cast<double>(keys * args.dv), launch);
  load_after<CopyArgs, CopyArgs>(block, attention, args, work, launch);
}

void encode_attention(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const Attrs& attrs = view.node.attrs;
  Heads q = heads_of(view.in[kQ], attrs, "num_heads"), k = heads_of(view.in[kK], attrs, "num_kv_heads");
  Heads v = heads_of(view.in[kV], attrs, "num_kv_heads"), y = heads_of(view.out[0], attrs, "num_heads");
  AttentionArgs args;
  args.q = view.in[kQ].as<float>();
  args.k = view.in[kK].as<float>();
  args.v = view.in[kV].as<float>();
  args.y = view.out[0].as<float>();
  args.q_strides = q.strides;
  args.k_strides = k.strides;
  args.v_strides = v.strides;
  args.y_strides = y.strides;
  args.batch = q.batch;
  args.q_heads = q.heads;
  args.kv_heads = k.heads;
  args.q_len = q.seq;
  args.k_len = k.seq;
  args.d = q.d;
  args.dv = v.d;
  args.scale = static_cast<float>(attrs.f64_or("scale", 1 / std::sqrt(static_cast<double>(q.d))));
  args.softcap = static_cast<float>(softcap_of(attrs, DType::kF32));
  args.causal = attrs.flag("causal");
  args.upper_left = attrs.is("align", "upper_left");
  args.window_left = std::min(attrs.i64("window_left"), kWidestWindow);
  args.window_right = std::min(attrs.i64("window_right"), kWidestWindow);
  args.empty_row = empty_row(attrs);
  args.lse = data_or_null<float>(view.out[1]);
  set_scores(args, view);
  load_attention(view, caps, args, block, launch);
}

// ---- rope ----

std::string_view refuse_rope(const KernelQuery& query) {
  if (query.has(3)) return "rows of the tables are picked by position";
  return all_f32(query) ? "" : "takes f32 only";
}

// A table [S, R/2] or [B, S, R/2]; a size of 1 broadcasts.
RopeTable rope_table(const View& view) {
  size_t seq = view.dims.size() - 2;
  auto stride = [&](size_t axis) { return view.dims[axis] == 1 ? 0 : view.strides[axis]; };
  return {view.as<float>(), seq ? stride(0) : 0, stride(seq)};
}

void encode_rope(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const Attrs& attrs = view.node.attrs;
  Heads x = heads_of(view.in[0], attrs, "num_heads"), y = heads_of(view.out[0], attrs, "num_heads");
  RopeArgs args;
  args.x = view.in[0].as<float>();
  args.y = view.out[0].as<float>();
  args.cos = rope_table(view.in[1]);
  args.sin = rope_table(view.in[2]);
  args.batch = x.batch;
  args.seq = x.seq;
  args.heads = x.heads;
  args.d = x.d;
  args.pairs = view.in[1].dims.back();
  args.x_strides = x.strides;
  args.y_strides = y.strides;
  args.interleaved = attrs.is("style", "interleaved");
  args.inverse = attrs.flag("inverse");
  load(block, caps.fns.rope.rope, args, 50 + 0.3 * static_cast<double>(view.out[0].count()), launch);
}

}  // namespace

void add_attention_rows(RowsByOp& by_op) {
  add(by_op,
      native<CopyArgs, CopyArgs, AttentionArgs>(Op::kAttention, "attention_f32", refuse_attention, encode_attention)
          .scratch(attention_scratch)
          .strided(0b11111)
          .unit_last(0b00111)
          .optional_outputs(0b10));
  add(by_op,
      native<RopeArgs>(Op::kRope, "rope_f32", refuse_rope, encode_rope).strided(0b0111).unit_last(0b0111).in_place(1));
}

}  // namespace rlx::cpu
