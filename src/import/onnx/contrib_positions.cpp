// SPDX-License-Identifier: Apache-2.0
// Node kinds of the domain com.microsoft that say where tokens stand: biases by distance, and rotations by one position
// or by three.
#include <cmath>

#include "import/onnx/rotary.h"

namespace rlx::onnx {

namespace {

// ---- the biases of T5 and WavLM ----

// The bucket of a distance. A short distance has a bucket of its own, a long one shares that of its logarithm. Unless
// the buckets are bidirectional, keys behind a query share that of distance 0.
Expr bucket_of(Expr apart, int64_t buckets, double most, bool is_bidirectional) {
  Builder& b = apart.builder();
  auto number = [&](int64_t value) { return b.scalar(DType::kI64, static_cast<double>(value)); };
  Expr first = number(0), behind = maximum(-apart, 0);
  if (is_bidirectional) {
    buckets /= 2;
    first = where(less(number(0), apart), number(buckets), number(0));
    behind = abs(apart);
  }
  int64_t exact = buckets / 2;
  auto base = static_cast<float>(exact);
  // For short distances the logarithm is not used, but its operand must be above 0.
  Expr ratio = cast(maximum(behind, static_cast<double>(exact)), DType::kF32) / static_cast<double>(base);
  double width = std::log(static_cast<float>(most) / base);
  Expr steps = cast(log(ratio) / width * static_cast<double>(buckets - exact), DType::kI64);
  Expr far = minimum(steps + number(exact), static_cast<double>(buckets - 1));
  return first + where(less(behind, number(exact)), behind, far);
}

// The table lies in the file column by column, whatever its dims say.
void build_relative_bias(Call& call) {
  int64_t most = call.i64("max_distance", 128);
  bool is_bidirectional = call.i64("is_bidirectional", 0) != 0;
  Expr table = call.in(0);
  std::vector<Dim> queries = call.run_dims(1, "query_length"), keys = call.run_dims(2, "key_length");
  if (queries.size() != 1 || keys.size() != 1 || !table.valid()) return;
  if (table.rank() != 2 || !table.dim(0).is_literal())
    return call.fail(Code::kShape, "'bias_table' must have rank 2 and a number of buckets");
  int64_t buckets = table.dim(0).literal(), exact = buckets / (is_bidirectional ? 4 : 2);
  if (exact < 1 || most <= exact) return call.fail(Code::kData, "'max_distance' is too short for the buckets");
  Builder& b = call.builder();
  Expr apart = iota(b, {keys[0]}, 0, DType::kI64) - unsqueeze(iota(b, {queries[0]}, 0, DType::kI64), 1);
  Expr bucket = bucket_of(apart, buckets, static_cast<double>(most), is_bidirectional);
  call.out(0, unsqueeze(gather(reshape(table, {table.dim(1), table.dim(0)}), bucket, 1), 0));
}

// Each query and head scales the bias by two gates of its own.
void build_gated_bias(Call& call) {
  int64_t heads = call.i64("num_heads", 0);
  Expr q = call.in(0);
  if (heads < 1) return call.fail(Code::kData, "'num_heads' must be given");
  if (call.has(6)) return call.fail(Code::kUnsupported, "'token_offset', rows without padding");
  if (!q.valid() || q.rank() != 3) return call.fail(Code::kShape, "'query_layer' must have rank 3");
  Dim batch = q.dim(0), steps = q.dim(1);
  q = transpose(reshape(q + call.in(1), {batch, steps, Dim(heads), Dim(-1)}), {0, 2, 1, 3});
  Expr parts = matmul(q, call.in(3)) + call.in(4);
  parts = sum(reshape(parts, {batch, Dim(heads), steps, Dim(2), Dim(-1)}), {4});
  Expr gates = call.op("sigmoid", {reshape(parts, {batch, Dim(heads), steps, Dim(2)})});
  Expr u = slice(gates, 3, 0, 1), r = slice(gates, 3, 1, 2);
  call.out(0, (u * (r * call.in(5) - 1.0) + 2.0) * call.in(2));
}

// ---- RotaryEmbedding: one position says where the first row stands ----

void build_rotary(Call& call) {
  if (call.i64("is_packed_batching", 0) != 0) return call.fail(Code::kUnsupported, "'is_packed_batching'");
  Expr x = call.in(0), positions = call.in(1), cosine = call.in(2), sine = call.in(3);
  int64_t heads = call.i64("num_heads", 0);
  call.ignore("scale");  // ONNX Runtime computes without it
  if (!x.valid() || !positions.valid() || !cosine.valid() || !sine.valid()) return;
  if (cosine.rank() != 2) return call.fail(Code::kShape, "cos_cache must have rank 2");
  if (!suits_tables(call, cosine)) return;
  if (x.rank() == 3 && heads == 0) {
    Dim count = floor_div(x.dim(2), cosine.dim(1) * 2);
    if (!count.is_literal()) return call.fail_of_sizes("a number of heads that is not known");
    heads = count.literal();
  }
  if (positions.rank() == 1)
    positions = reshape(positions, {}) + iota(call.builder(), {x.dim(-2)}, 0, positions.dtype());
  call.out(0, call.op("rope", {x, cosine, sine, positions}, rope_attrs(call, x, heads)));
}

// ---- MRotaryEmbedding ----

// Which of the three positions rotates a column: the columns are three chunks, or every third column is that of the
// second or of the third position.
Tensor streams_of(Call& call, const std::vector<int64_t>& sections, int64_t columns, bool is_interleaved) {
  auto streams = Tensor::create(DType::kI64, std::span<const int64_t>(&columns, 1));
  if (!streams.ok()) return call.fail(streams.status()), Tensor();
  for (int64_t i = 0; i < columns; i++) {
    int64_t chunk = i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2, turn = i % 3;
    bool is_taken = turn > 0 && i < 3 * sections[static_cast<size_t>(turn)];
    streams->as<int64_t>()[i] = is_interleaved ? (is_taken ? turn : 0) : chunk;
  }
  return std::move(*streams);
}

// The row of the table for every token, [B * S, columns]. Each column comes from the row at the position of the
// column's stream.
Expr mixed_table(Call& call, Expr table, Expr positions, const Tensor& streams) {
  Builder& b = call.builder();
  Expr stream = b.constant(streams), mixed;
  for (int64_t i = 0; i < 3; i++) {
    Expr rows = gather(table, reshape(slice(positions, 0, i, i + 1), {Dim(-1)}), 0);
    mixed = i == 0 ? rows : where(equal(stream, static_cast<double>(i)), rows, mixed);
  }
  return mixed;
}

void build_rotary_of_three(Call& call) {
  std::vector<int64_t> sections = call.i64s("mrope_section");
  bool is_interleaved = call.i64("mrope_layout", 0) != 0;
  int64_t heads = call.i64("num_heads", 0);
  double scale = call.f64("scale", 1);
  if (call.i64("is_packed_batching", 0) != 0) return call.fail(Code::kUnsupported, "'is_packed_batching'");
  Expr x = call.in(0), positions = call.in(1), cosine = call.in(2), sine = call.in(3);
  if (!x.valid() || !positions.valid() || !cosine.valid() || !sine.valid()) return;
  if (positions.rank() != 3 || cosine.rank() != 2 || !cosine.dim(1).is_literal())
    return call.fail(Code::kShape, "'position_ids' must have rank 3, and the tables a number of columns");
  int64_t columns = cosine.dim(1).literal();
  if (!suits_tables(call, cosine)) return;
  if (sections.size() != 3 || sections[0] + sections[1] + sections[2] != columns)
    return call.fail(Code::kData, "'mrope_section' does not split the columns of the tables");
  if (x.rank() == 3 && heads < 1) return call.fail(Code::kData, "'num_heads' must be given for an input of rank 3");
  Tensor streams = streams_of(call, sections, columns, is_interleaved);
  if (!streams) return;
  Dim batch = positions.dim(1), steps = positions.dim(2);
  Expr token = reshape(iota(call.builder(), {batch * steps}, 0, DType::kI64), {batch, steps});
  auto mixed = [&](Expr table) {  // a scale is one of what is rotated
    Expr rows = mixed_table(call, table, positions, streams);
    return scale == 1 ? rows : rows * scale;
  };
  call.out(0, call.op("rope", {x, mixed(cosine), mixed(sine), token}, rope_attrs(call, x, heads)));
}

constexpr NodeKind kKinds[] = {
    microsoft("RelativePositionBias", build_relative_bias),
    microsoft("GatedRelativePositionBias", build_gated_bias),
    microsoft("RotaryEmbedding", build_rotary),
    microsoft("MRotaryEmbedding", build_rotary_of_three),
};

}  // namespace

std::span<const NodeKind> contrib_position_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
