// SPDX-License-Identifier: Apache-2.0
// Positions and gathers.
#include "ops/index.h"

#include <cstring>
#include <numeric>

#include "ops/blocks.h"

namespace rlx {

// ---- indices out of range (semantics.md X1-X3) ----

Result<int64_t> checked_index(const EvalArgs& args, int64_t index, int64_t n, int64_t position) {
  int64_t normal = index < 0 ? index + n : index;
  if (normal >= 0 && normal < n) return normal;
  if (args.bounds == Bounds::kError)
    return args.fail(Code::kRange, format("index {} at position {} is outside a size of {}", index, position, n))
        .with("got", std::to_string(index))
        .with("expected", format("{}..{}", -n, n - 1));
  if (args.bounds == Bounds::kDrop || n == 0) return -1;
  return std::clamp<int64_t>(normal, 0, n - 1);
}

// ---- iota ----

Status infer_iota(InferArgs& args) {
  const auto& shape = args.attrs.dims("shape");
  if (shape.empty()) return wrong_rank("shape", "1 or more", 0);
  args.out[0] = {args.attrs.dtype("dtype"), shape};
  return {};
}

Status eval_iota(EvalArgs& args) {
  const Operand& out = args.out[0];
  Dims step(out.rank());
  step[static_cast<size_t>(args.attrs.i64("axis"))] = 1;
  visit<dtypes::N>(out.dtype, [&]<class T>() {
    Odometer<1> at(out.dims, {step});
    int64_t count = out.count();
    for (int64_t i = 0; i < count; i++, at.next()) out.as<T>()[i] = T(at.offset(0));
  });
  return {};
}

// ---- dynamic_iota ----

static constexpr int64_t kMaxPositions = (int64_t{1} << 31) - 1;

// The dot distinguishes it from the names of users. Names are numbered, so that binary search finds the next free one.
std::string fresh_symbol(const Graph& graph, std::string_view op) {
  auto name = [&](size_t number) { return std::string(op) + "." + std::to_string(number); };
  if (!graph.has_symbol(name(0))) return name(0);
  size_t taken = 0, free = 1;
  for (; graph.has_symbol(name(free)); free *= 2) taken = free;
  while (free - taken > 1)
    (graph.has_symbol(name(std::midpoint(taken, free))) ? taken : free) = std::midpoint(taken, free);
  return name(free);
}

Status infer_dynamic_iota(InferArgs& args) {
  if (args.rank() != 0) return wrong_rank("count", "0", args.rank());
  Interval range;
  if (args.attrs.has("max")) {
    Interval max = args.graph.range(args.attrs.dim("max"));
    if (max.hi < 0) return args.fail(Code::kOption, "'max' is negative: " + args.attrs.dim("max").text());
    // A bound that only follows from sizes without one is none: memory of such a size is not planned (semantics.md S6).
    // The largest size without a bound (S1) lies below kMaxPositions.
    bool is_open = args.graph.declared_range(args.attrs.dim("max")).hi == Interval::kUnbounded;
    if (!is_open) range.hi = std::min(kMaxPositions, max.hi);
  }
  // The node keeps the name, so that a copy of it in another graph means the same size.
  if (!args.attrs.has("symbol")) args.attrs = args.attrs.with("symbol", fresh_symbol(args.graph, args.info.name));
  RLX_TRY(args.graph.declare_symbol(args.attrs.str("symbol"), range));
  Dim size = Dim::symbol(args.attrs.str("symbol"));
  if (args.attrs.has("max")) RLX_TRY(args.require_le(size, args.attrs.dim("max"), "the count"));
  args.out[0].dims = {size};
  return {};
}

Result<int64_t> dynamic_size(const Attrs& attrs, int64_t count, const SymbolLookup& sizes) {
  int64_t most = attrs.has("max") ? RLX_TRY(evaluate(attrs.dim("max"), sizes)) : kMaxPositions;
  if (count > std::min(most, kMaxPositions))
    return Status(Code::kRange, format("the count {} is above {}", count, std::min(most, kMaxPositions)))
        .with("got", std::to_string(count))
        .with("value", attrs.str("symbol"));
  return std::max<int64_t>(count, 0);
}

Status eval_dynamic_iota(EvalArgs& args) {
  const Operand& out = args.out[0];
  visit<dtypes::X>(out.dtype, [&]<class T>() { std::iota(out.as<T>(), out.as<T>() + out.count(), T(0)); });
  return {};
}

// ---- what indices pick ----

Result<std::vector<Dim>> picked_along_axis(InferArgs& args) {
  int64_t axis = args.attrs.i64("axis");
  std::vector<Dim> dims = args.dims(0);
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, args.dims(1).begin(), args.dims(1).end());
  return dims;
}

Result<std::vector<Dim>> picked_elements(InferArgs& args) {
  if (args.rank(1) != args.rank()) return wrong_rank("idx", format("{}, that of x", args.rank()), args.rank(1));
  int64_t axis = args.attrs.i64("axis");
  for (size_t i = 0; i < args.rank(); i++)
    if (static_cast<int64_t>(i) != axis)
      RLX_TRY(args.require_le(args.dims(1)[i], args.dims(0)[i], format("axis {} of idx", i)));
  return args.dims(1);
}

Result<std::vector<Dim>> picked_nd(InferArgs& args) {
  const std::vector<Dim>&x = args.dims(0), &indices = args.dims(1);
  if (indices.empty()) return wrong_rank("idx", "1 or more", 0);
  if (!indices.back().is_literal())
    return args.fail(Code::kShape, "the last size of idx must be a number, not " + indices.back().text());
  auto batch_dims = static_cast<size_t>(args.attrs.i64("batch_dims"));
  auto depth = static_cast<size_t>(indices.back().literal());
  if (batch_dims >= indices.size() || batch_dims + depth > x.size())
    return args
        .fail(Code::kShape, format("{} batch dims and {} indices do not fit x of rank {} and idx of rank {}",
                                   batch_dims, depth, x.size(), indices.size()))
        .with("expected", format("x of rank {} or more", batch_dims + depth))
        .with("got", format("rank {}", x.size()));
  std::vector<Dim> dims;
  for (size_t i = 0; i < batch_dims; i++)
    dims.push_back(RLX_TRY(args.same(x[i], indices[i], format("batch axis {} of x and idx", i))));
  dims.insert(dims.end(), indices.begin() + static_cast<ptrdiff_t>(batch_dims), indices.end() - 1);
  dims.insert(dims.end(), x.begin() + static_cast<ptrdiff_t>(batch_dims + depth), x.end());
  return dims;
}

// ---- gathers ----

Status infer_gather(InferArgs& args) {
  bool quantised = is_block(args.in[0]->dtype);
  std::vector<Dim> dims = RLX_TRY(picked_along_axis(args));
  if (quantised && args.attrs.i64("axis") + 1 == std::ssize(args.dims()))
    return args.fail(Code::kShape, "a block-quantised x is gathered by rows, not along its last axis");
  args.out[0] = {quantised ? args.attrs.dtype("dequant") : args.in[0]->dtype, std::move(dims)};
  return {};
}

Status infer_gather_elements(InferArgs& args) {
  args.out[0].dims = RLX_TRY(picked_elements(args));
  return {};
}

Status infer_gather_nd(InferArgs& args) {
  args.out[0].dims = RLX_TRY(picked_nd(args));
  return {};
}

// The body of a walk that copies elements out of x. An ignored index gives zeros.
static auto copy_out(const EvalArgs& args) {
  const Operand &x = args.in[0], &out = args.out[0];
  return [&x, &out, unit = element_bytes(x.dtype)](int64_t at, int64_t i, int64_t run) {
    auto bytes = static_cast<size_t>(run * unit);
    if (at < 0)
      std::memset(out.data + i * unit, 0, bytes);
    else
      std::memcpy(out.data + i * unit, x.data + at * unit, bytes);
  };
}

// Only the picked rows are decoded.
static Status gather_blocks(EvalArgs& args) {
  const Operand &x = args.in[0], &out = args.out[0];
  const DTypeInfo& type = info(x.dtype);
  std::vector<float> row;
  return visit<dtypes::F>(out.dtype, [&]<class T>() {
    return walk_axis(args, x, args.in[1], [&](int64_t at, int64_t i, int64_t run) {
      row.assign(static_cast<size_t>(run), 0);
      if (at >= 0) decode_blocks(x.dtype, x.data + at / type.block * type.bytes, run, row.data());
      std::copy(row.begin(), row.end(), out.as<T>() + i);
    });
  });
}

Status eval_gather(EvalArgs& args) {
  if (is_block(args.in[0].dtype)) return gather_blocks(args);
  return walk_axis(args, args.in[0], args.in[1], copy_out(args));
}
Status eval_gather_elements(EvalArgs& args) {
  return walk_elements(args, args.in[0], args.in[1], copy_out(args));
}
Status eval_gather_nd(EvalArgs& args) {
  return walk_nd(args, args.in[0], args.in[1], copy_out(args));
}

}  // namespace rlx
