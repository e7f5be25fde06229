// SPDX-License-Identifier: Apache-2.0
// Rows for softmax and the norms over f32, one row of memory at a time.
#include <algorithm>

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

size_t first_axis(const Node& node, size_t rank) {
  if (node.op == Op::kResidualLayerNorm || node.op == Op::kResidualRmsNorm) return rank - 1;
  return static_cast<size_t>(node.attrs.i64("axis"));
}

std::string_view refuse_softmax(const KernelQuery& query) {
  if (!all_f32(query)) return "takes f32 only";
  if (first_axis(query.node, query.type(0).rank()) + 1 != query.type(0).rank()) return "not over the last axis";
  return {};
}

void encode_softmax(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View &x = view.in[0], &y = view.out[0];
  SoftmaxArgs args;
  args.x = x.as<float>();
  args.y = y.as<float>();
  args.is_log = view.node.op == Op::kLogSoftmax;
  args.n = args.x_row = args.y_row = x.dims.back();
  args.rows = args.n ? x.count() / args.n : 0;
  const NormFns& fns = caps.fns.norm;
  auto elements = static_cast<double>(x.count());
  if (softmax_pieces(args.rows, args.n).count == 1) return load(block, fns.softmax, args, 50 + elements, launch);
  args.found = reinterpret_cast<SoftmaxPiece*>(view.scratch);
  load(block, fns.softmax_largest, args, 0.2 * elements, launch);
  load_after<SoftmaxArgs>(block, fns.softmax_exp, args, 0.6 * elements, launch);
  load_after<SoftmaxArgs, SoftmaxArgs>(block, fns.softmax_scale, args, 0.2 * elements, launch);
}

size_t softmax_scratch(const Node&, std::span<const Dims> upper) {
  return upper[0].back() < 2 * kSoftmaxPiece ? 0 : kManyParts * sizeof(SoftmaxPiece);
}

bool is_residual(Op op) {
  return op == Op::kResidualLayerNorm || op == Op::kResidualRmsNorm;
}

// gamma, beta and bias must cover the normalised axes completely.
std::string_view refuse_norm(const KernelQuery& query) {
  if (!all_f32(query)) return "takes f32 only";
  const std::vector<Dim>& dims = query.type(0).dims;
  std::span<const Dim> tail = std::span<const Dim>(dims).subspan(first_axis(query.node, dims.size()));
  size_t first = 1;
  if (is_residual(query.node.op)) {
    if (query.type(1).dims != dims) return "the residual is broadcast";
    first = 2;
  }
  for (size_t i = first; i < query.node.in.size(); i++) {
    if (!query.has(i)) continue;
    const std::vector<Dim>& own = query.type(i).dims;
    if (!std::equal(own.begin(), own.end(), tail.begin(), tail.end())) return "gamma or beta is broadcast";
  }
  return {};
}

enum class Center : uint8_t { kZero, kMean };  // what is subtracted, as rms and layer norms do

void load_norm(const StepView& view, const Caps& caps, NormArgs& args, Center center, void* block, Launch& launch) {
  bool is_centered = center == Center::kMean;
  const NormFns& fns = caps.fns.norm;
  auto elements = static_cast<double>(view.in[0].count());
  args.eps = static_cast<float>(view.node.attrs.f64("eps"));
  args.x_row = args.residual_row = args.y_row = args.sum_row = args.n;
  if (norm_pieces(args.rows, args.n).count == 1)
    return load(block, is_centered ? fns.layer_norm : fns.rms_norm, args, 50 + 0.5 * elements, launch);
  args.found = reinterpret_cast<NormPiece*>(view.scratch);
  load(block, is_centered ? fns.layer_norm_sums : fns.rms_norm_sums, args, 0.15 * elements, launch);
  if (is_centered) load_after<NormArgs>(block, fns.layer_norm_squares, args, 0.15 * elements, launch);
  const Loop<NormArgs>& write = is_centered ? fns.layer_norm_write : fns.rms_norm_write;
  load_after<NormArgs, NormArgs>(block, write, args, 0.2 * elements, launch);
}

void encode_norm(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View& x = view.in[0];
  Op op = view.node.op;
  bool is_centered = op == Op::kLayerNorm || op == Op::kResidualLayerNorm;
  NormArgs args;
  args.x = x.as<float>();
  args.y = view.out[0].as<float>();
  args.n = args.rows = 1;  // rows without elements have a mean too: NaN
  size_t axis = first_axis(view.node, x.dims.size());
  for (size_t i = 0; i < x.dims.size(); i++) (i < axis ? args.rows : args.n) *= x.dims[i];
  if (is_residual(op)) {
    args.residual = view.in[1].as<float>();
    args.bias = data_or_null<const float>(view.in[2]);
    args.gamma = data_or_null<const float>(view.in[3]);
    args.beta = data_or_null<const float>(view.in[4]);
    args.sum = data_or_null<float>(view.out[1]);
  } else {
    args.gamma = data_or_null<const float>(view.in[1]);
    args.beta = data_or_null<const float>(view.in[2]);
    args.mean = is_centered ? data_or_null<float>(view.out[1]) : nullptr;
    args.inv = data_or_null<float>(view.out[is_centered ? 2 : 1]);
  }
  load_norm(view, caps, args, is_centered ? Center::kMean : Center::kZero, block, launch);
}

size_t norm_scratch(const Node& node, std::span<const Dims> upper) {
  double n = 1;
  for (size_t i = first_axis(node, upper[0].size()); i < upper[0].size(); i++) n *= static_cast<double>(upper[0][i]);
  return n < 2 * kNormPiece ? 0 : kManyParts * sizeof(NormPiece);
}

// ---- norms of groups of channels ----

int64_t groups_of(const Node& node, const Dims& x) {
  return node.op == Op::kInstanceNorm ? x[1] : node.attrs.i64("groups");
}

// Each channel is a run of one gamma, so short ones are better scaled by a region.
constexpr int64_t kShortRun = 8;

std::string_view refuse_group_norm(const KernelQuery& query) {
  if (!all_f32(query)) return "takes f32 only";
  std::span<const Dim> dims = query.type(0).dims;
  double space = 1;
  for (const Dim& dim : dims.subspan(2)) space *= static_cast<double>(dim.is_literal() ? dim.literal() : kShortRun);
  if (space < kShortRun) return "channels are short";
  for (size_t i : {1, 2})
    if (query.has(i) && !std::ranges::equal(query.type(i).dims, dims.subspan(1, 1)))
      return "gamma or beta is broadcast";
  return {};
}

void encode_group_norm(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View& x = view.in[0];
  int64_t groups = groups_of(view.node, x.dims), space = 1;
  for (size_t i = 2; i < x.dims.size(); i++) space *= x.dims[i];
  NormArgs args;
  args.x = x.as<float>();
  args.y = view.out[0].as<float>();
  args.channels = x.dims[1];
  args.run = space;
  args.rows = x.dims[0] * groups;
  args.n = groups ? x.dims[1] / groups * space : 0;
  args.gamma = data_or_null<const float>(view.in[1]);
  args.beta = data_or_null<const float>(view.in[2]);
  if (view.node.op == Op::kGroupNorm) {
    args.mean = data_or_null<float>(view.out[1]);
    args.inv = data_or_null<float>(view.out[2]);
  }
  load_norm(view, caps, args, Center::kMean, block, launch);
}

size_t group_norm_scratch(const Node& node, std::span<const Dims> upper) {
  int64_t groups = groups_of(node, upper[0]), channels = groups > 0 ? upper[0][1] / groups : 1;
  auto n = static_cast<double>(channels);
  for (size_t i = 2; i < upper[0].size(); i++) n *= static_cast<double>(upper[0][i]);
  return n < 2 * kNormPiece ? 0 : kManyParts * sizeof(NormPiece);
}

}  // namespace

void add_norm_rows(RowsByOp& by_op) {
  for (auto [op, name] : {std::pair(Op::kSoftmax, "softmax_f32"), std::pair(Op::kLogSoftmax, "log_softmax_f32")})
    add(by_op, native<SoftmaxArgs, SoftmaxArgs, SoftmaxArgs>(op, name, refuse_softmax, encode_softmax)
                   .scratch(softmax_scratch)
                   .in_place(1));
  static constexpr std::pair<Op, std::string_view> kNorms[] = {{Op::kLayerNorm, "layer_norm_f32"},
                                                               {Op::kRmsNorm, "rms_norm_f32"},
                                                               {Op::kResidualLayerNorm, "residual_layer_norm_f32"},
                                                               {Op::kResidualRmsNorm, "residual_rms_norm_f32"}};
  for (auto [op, name] : kNorms)
    add(by_op, native<NormArgs, NormArgs, NormArgs>(op, name, refuse_norm, encode_norm)
                   .scratch(norm_scratch)
                   .optional_outputs(0b110)
                   .in_place(is_residual(op) ? 0b11 : 0b1, is_residual(op) ? 0b11 : 0));
  for (auto [op, name] :
       {std::pair(Op::kGroupNorm, "group_norm_f32"), std::pair(Op::kInstanceNorm, "instance_norm_f32")})
    add(by_op, native<NormArgs, NormArgs, NormArgs>(op, name, refuse_group_norm, encode_group_norm)
                   .scratch(group_norm_scratch)
                   .optional_outputs(op == Op::kGroupNorm ? 0b110 : 0)
                   .in_place(0b1));
}

}  // namespace rlx::cpu
