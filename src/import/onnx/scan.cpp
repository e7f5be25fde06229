// SPDX-License-Identifier: Apache-2.0
// Scan. The op `scan` goes along the first axis of all values, in one direction; transposes and flips make up for other
// axes and directions.
#include <algorithm>

#include "import/onnx/control.h"

namespace rlx::onnx {

namespace {

// The axes and directions of the scanned inputs and outputs.
struct ScanAxes {
  std::vector<int64_t> axes;
  std::vector<bool> backwards;
  bool all(bool is_backwards) const {
    return std::all_of(backwards.begin(), backwards.end(), [=](bool it) { return it == is_backwards; });
  }
};

ScanAxes scan_axes(Call& call, const char* axes, const char* directions, size_t count) {
  ScanAxes scanned{call.i64s(axes), {}};
  std::vector<int64_t> given = call.i64s(directions);
  if ((!scanned.axes.empty() && scanned.axes.size() != count) || (!given.empty() && given.size() != count))
    call.fail(Code::kData, format("'{}' or '{}' does not name {} values", axes, directions, count));
  scanned.axes.resize(count, 0);
  given.resize(count, 0);
  for (int64_t direction : given) {
    if (direction != 0 && direction != 1) call.fail(Code::kData, format("'{}' holds {}", directions, direction));
    scanned.backwards.push_back(direction == 1);
  }
  return scanned;
}

// One axis moved to another place, the others in order.
Expr moved(Expr x, int64_t from, int64_t to) {
  if (from == to) return x;
  Axes perm;
  for (int64_t i = 0; i < static_cast<int64_t>(x.rank()); i++)
    if (i != from) perm.push_back(i);
  perm.insert(perm.begin() + to, from);
  return transpose(x, perm);
}

Expr flipped(Call& call, Expr x) {
  return call.op("flip", {x}, {{"axes", std::vector<int64_t>{0}}});
}

// A Scan node without its operands.
struct ScanNode {
  const GraphProto& body;
  size_t carries, xs;
  ScanAxes reads, writes;
  bool may_pause = false;  // the carries stay as they are where the last scanned input is false
};

// Carries that stay as they are in trips beyond the end of a sequence.
Status keep_beyond_end(BodyGraph& body, size_t carries, size_t running) {
  Builder b(body.graph);
  auto in = [&](size_t i) { return b.wrap({body.graph.inputs()[i], 0}); };
  for (size_t i = 0; i < carries; i++) {
    Expr after = b.wrap(body.outputs[i]);
    body.outputs[i] = where(in(running), after, in(i)).value();
  }
  return b.status();
}

// The operands of a node as the op `scan` takes them: the axis of the trips is the first, in the order of the trips.
Status turn_operands(Call& call, const ScanNode& node, bool reverse, std::vector<Expr>& in) {
  for (size_t i = 0; i < in.size(); i++) {
    if (!in[i].valid()) return call.status();
    if (i < node.carries) continue;
    if (in[i].rank() == 0) return Status(Code::kData, "a scan over a scalar");
    in[i] = moved(in[i], call.axis(node.reads.axes[i - node.carries], in[i].rank()), 0);
    if (node.reads.backwards[i - node.carries] && !reverse) in[i] = flipped(call, in[i]);
    RLX_TRY(call.status());
  }
  return {};
}

// Adds one op `scan`.
Result<Outputs> build_scan_op(Call& call, const ScanNode& node, bool reverse, std::vector<Expr> in) {
  std::vector<ValueType> types;
  for (size_t i = 0; i < in.size(); i++) {
    types.push_back(in[i].type());
    if (i >= node.carries) types[i].dims.erase(types[i].dims.begin());
  }
  std::vector<ValueType> steady = types;
  BodyGraph body = RLX_TRY(loop_body(call, node.body, types, {.count = node.carries}));
  if (!check_rows(body, node.carries, call.builder().graph()).ok()) {
    body = RLX_TRY(loop_body(call, node.body, steady, {.count = node.carries, .are_steady = true}));
    RLX_TRY(check_rows(body, 0, call.builder().graph()));
  }
  if (node.may_pause) RLX_TRY(keep_beyond_end(body, node.carries, node.carries + node.xs - 1));
  add_captures(call, body, in);
  auto step = RLX_TRY(body.finish());
  Outputs results = call.ops("scan", in,
                             {{"n_carry", static_cast<int64_t>(node.carries)},
                              {"n_xs", static_cast<int64_t>(node.xs)},
                              {"reverse", int64_t{reverse}},
                              {"body", std::move(step)}});
  RLX_TRY(call.status());
  return results;
}

// Unrolls a scan whose number of trips is known at import.
Result<Outputs> unroll(Call& call, const ScanNode& node, bool reverse, const std::vector<Expr>& in) {
  const Dim& length = in[node.carries].dim(0);
  if (node.may_pause || !length.is_literal() || length.is(0) || length.literal() > kMaxTrips)
    return Status(Code::kUnsupported, format("a scan of {} trips whose sizes contents decide", length))
        .with(kDependsOnSizes, "1");
  Outputs carries(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(node.carries));
  std::vector<std::vector<Expr>> rows(node.body.output.size() - node.carries);
  for (int64_t trip = 0; trip < length.literal(); trip++) {
    int64_t at = reverse ? length.literal() - 1 - trip : trip;
    std::vector<OnnxValue> values;
    for (size_t i = 0; i < in.size(); i++) {
      Expr x = i < node.carries ? carries[i] : slice(in[i], 0, at, at + 1);
      if (i >= node.carries) x = reshape(x, {x.dims().begin() + 1, x.dims().end()});
      values.push_back({.type = x.type(), .value = x.value()});
    }
    RLX_TRY(call.status());
    std::vector<OnnxValue> out = RLX_TRY(call.importer().inline_graph(node.body, std::move(values)));
    for (size_t i = 0; i < out.size(); i++) {
      if (out[i].refused)
        return Status(Code::kUnsupported, "a node of its body cannot be imported").with(kFollowsRefused, "1");
      Expr y = call.importer().expr(out[i], call.builder());
      if (i < node.carries) carries[i] = y;
      if (i >= node.carries) rows[i - node.carries].push_back(unsqueeze(y, 0));
    }
    RLX_TRY(call.status());
  }
  for (std::vector<Expr>& each : rows) {
    if (reverse) std::ranges::reverse(each);
    carries.push_back(concat(each, 0));
  }
  return carries;
}

// One scan along an axis of all operands. Where no body can express it, it is unrolled.
Result<Outputs> build_one_scan(Call& call, const ScanNode& node, std::vector<Expr> in) {
  const ScanAxes& writes = node.writes;
  bool reverse = node.reads.all(true) && writes.all(true);
  RLX_TRY(turn_operands(call, node, reverse, in));
  Importer::Refusals before = call.importer().refusals();
  Result<Outputs> made = build_scan_op(call, node, reverse, in);
  if (!made.ok() && made.status().detail(kUnrolledOnly)) {
    call.importer().refusals() = std::move(before);
    made = unroll(call, node, reverse, in);
  }
  Outputs results = RLX_TRY(std::move(made));
  for (size_t i = node.carries; i < std::min(results.size(), call.outputs()); i++) {
    if (writes.backwards[i - node.carries] && !reverse) results[i] = flipped(call, results[i]);
    results[i] = moved(results[i], 0, call.axis(writes.axes[i - node.carries], results[i].rank()));
  }
  return results;
}

// Before opset 9 all operands have a leading batch axis: one scan for each of its elements.
Result<Outputs> build_scan_of_each(Call& call, const ScanNode& node, const std::vector<Expr>& in) {
  for (const Expr& x : in)
    if (!x.valid() || x.rank() == 0 || !x.dim(0).is_literal() || x.dim(0).literal() > kMaxTrips)
      return Status(Code::kUnsupported, "a batch whose size is not known, or large").with(kDependsOnSizes, "1");
  Outputs results;
  std::vector<std::vector<Expr>> rows;
  for (int64_t row = 0; row < in[0].dim(0).literal(); row++) {
    std::vector<Expr> of_row;
    for (const Expr& x : in)
      of_row.push_back(reshape(slice(x, 0, row, row + 1), {x.dims().begin() + 1, x.dims().end()}));
    Outputs out = RLX_TRY(build_one_scan(call, node, std::move(of_row)));
    rows.resize(out.size());
    for (size_t i = 0; i < out.size(); i++) rows[i].push_back(unsqueeze(out[i], 0));
  }
  for (const std::vector<Expr>& each : rows) results.push_back(concat(each, 0));
  return results;
}

// Sequences of these lengths, each at the start of its row. A sequence is reversed by itself. What is stacked beyond
// its end is 0.
Result<Outputs> build_scan_of_lengths(Call& call, const ScanNode& node, std::vector<Expr> in) {
  Expr lengths = call.in(0);
  for (size_t i = node.carries; i < in.size(); i++)
    if (!in[i].valid() || in[i].rank() < 2)
      return Status(Code::kShape, "a scanned input without a batch and a time axis");
  if (!lengths.valid() || lengths.rank() != 1) return Status(Code::kShape, "the lengths of sequences are no list");
  Dim batch = in.back().dim(0), time = in.back().dim(1);
  Expr trip = iota(call.builder(), {batch, time}, 1, lengths.dtype());
  Expr running = less(trip, unsqueeze(lengths, 1));
  GraphProto body = node.body;
  if (body.input.size() != in.size())
    return Status(Code::kData, format("a body takes {}, not {}", plural(body.input.size(), "input"), in.size()));
  body.input.push_back({"row.runs", {}});
  ScanNode paused{call.importer().keep(std::move(body)), node.carries, node.xs + 1, node.reads, node.writes, true};
  for (size_t i = 0; i < node.xs; i++) {
    Expr& x = in[node.carries + i];
    if (!node.reads.backwards[i]) continue;
    x = call.op("reverse_sequence", {x, lengths}, {{"time_axis", int64_t{1}}, {"batch_axis", int64_t{0}}});
    paused.reads.backwards[i] = false;
  }
  paused.reads.axes.push_back(0), paused.reads.backwards.push_back(false);
  in.push_back(running);
  Outputs results = RLX_TRY(build_scan_of_each(call, paused, in));
  for (size_t i = node.carries; i < results.size(); i++) {
    std::vector<Dim> mask(results[i].rank(), 1);
    mask[0] = batch, mask[1] = time;
    results[i] = where(reshape(running, mask), results[i], call.builder().scalar(results[i].dtype(), 0));
  }
  return results;
}

Status build_scan_node(Call& call, const GraphProto& proto) {
  bool has_batch = call.opset() < 9;
  size_t first = has_batch ? 1 : 0, operands = call.inputs() - std::min(first, call.inputs());
  auto xs = static_cast<size_t>(call.i64("num_scan_inputs", 0));
  if (xs < 1 || xs > operands) return Status(Code::kData, "num_scan_inputs is not that of its inputs");
  size_t carries = operands - xs;
  if (proto.output.size() < carries) return Status(Code::kData, "the body has too few outputs");
  ScanNode node{proto, carries, xs,
                scan_axes(call, "scan_input_axes", has_batch ? "directions" : "scan_input_directions", xs),
                scan_axes(call, "scan_output_axes", "scan_output_directions", proto.output.size() - carries)};
  RLX_TRY(call.status());
  std::vector<Expr> in;
  for (size_t i = first; i < call.inputs(); i++) in.push_back(call.in(i));
  Outputs results = RLX_TRY(!has_batch    ? build_one_scan(call, node, in)
                            : call.has(0) ? build_scan_of_lengths(call, node, in)
                                          : build_scan_of_each(call, node, in));
  for (size_t i = 0; i < std::min(results.size(), call.outputs()); i++) call.out(i, results[i]);
  return {};
}

void build_scan(Call& call) {
  const GraphProto* body = call.graph("body");
  if (body) call.fail(build_scan_node(call, *body));
}

constexpr NodeKind kKinds[] = {
    {.op_type = "Scan", .build = build_scan, .control = true},
};

}  // namespace

std::span<const NodeKind> scan_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
