// SPDX-License-Identifier: Apache-2.0
// Composites at positions that are values: moving windows, growing caches, and results whose size the contents decide
// (semantics.md S6). The latter have an exact form, with a fresh symbol, and a bounded one, which is padded.
#include "ops/expr.h"
#include "ops/fill.h"

namespace rlx {

// ---- windows and caches ----

// start, start + 1, ... as `count` indices along an axis of x; a negative start counts from the end. What lies before
// the axis is not a valid index: it does not count from the end once more.
static Expr window_indices(Expr x, int64_t axis, Expr start, const Dim& count) {
  Builder& b = x.builder();
  Expr n = b.size(x.dim(axis), start.dtype());
  Expr index = where(less(start, 0), start + n, start) + iota(b, {count}, 0, start.dtype());
  return where(less(index, 0), index - n, index);
}

Outputs decompose_dynamic_slice(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], start = in[1];
  int64_t axis = attrs.i64("axis");
  if (!require(x, Guard::kLessEqual, attrs.dim("size"), x.dim(axis))) return {};
  if (start.rank() != 0) return {in.builder().fail(wrong_rank("start", "0", start.rank()))};
  return {gather(x, window_indices(x, axis, start, attrs.dim("size")), axis)};
}

Outputs decompose_dynamic_update_slice(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], rows = in[1], start = in[2];
  int64_t axis = attrs.i64("axis");
  if (start.rank() != 0) return {in.builder().fail(wrong_rank("start", "0", start.rank()))};
  if (rows.rank() != x.rank())
    return {in.builder().fail(wrong_rank("u", format("{}, that of x", x.rank()), rows.rank()))};
  Expr indices = window_indices(x, axis, start, rows.dim(axis));
  return {in.builder().op(Op::kScatter, {x, indices, rows}, {{"axis", axis}})};
}

// The permutation that moves axis `from` to `to` and keeps the order of the others.
static Axes moved_axis(size_t rank, int64_t from, int64_t to) {
  Axes perm;
  for (int64_t i = 0; i < static_cast<int64_t>(rank); i++)
    if (i != from) perm.push_back(i);
  perm.insert(perm.begin() + to, from);
  return perm;
}

// start, start + 1, ... modulo n. `start` is reduced in i64 before the sum: in its own dtype, start + 1 might overflow.
static Expr ring_indices(const Dim& n, Expr start, const Dim& count) {
  Builder& b = start.builder();
  Expr size = b.size(n, DType::kI64), first = binary(Op::kFloorMod, cast(start, DType::kI64), size);
  return binary(Op::kFloorMod, first + iota(b, {count}, 0, DType::kI64), size);
}

Outputs decompose_kv_append(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr cache = in[0], rows = in[1], position = in[2];
  int64_t axis = attrs.i64("axis");
  if (rows.rank() != cache.rank())
    return {b.fail(wrong_rank("rows", format("{}, that of cache", cache.rank()), rows.rank()))};
  bool per_row = position.rank() == 1;
  if (position.rank() > 1) return {b.fail(wrong_rank("pos", "0, or 1 with a number per batch row", position.rank()))};
  if (per_row && axis == 0) return refuse(in, Code::kOption, "with one pos per batch row, axis must not be the batch");
  Expr first = per_row ? unsqueeze(position, 1) : position;
  Expr indices = attrs.flag("wrap") ? ring_indices(cache.dim(axis), first, rows.dim(axis))
                                    : window_indices(cache, axis, first, rows.dim(axis));
  if (!per_row) return {b.op(Op::kScatter, {cache, indices, rows}, {{"axis", axis}})};
  Axes forth = moved_axis(cache.rank(), axis, 1), back = moved_axis(cache.rank(), 1, axis);
  Expr y = b.op(Op::kScatterNd, {transpose(cache, forth), unsqueeze(indices, 2), transpose(rows, forth)},
                {{"batch_dims", int64_t{1}}});
  return {transpose(y, back)};
}

// ---- sizes that contents decide ----

// 0..count-1 for a count that the run decides. The symbol of this length is the attribute `symbol` of the node, once it
// is set.
static Expr positions(Expr count, const Dim& max, const Attrs& attrs) {
  NamedAttrs named{{"max", max}};
  if (attrs.has("symbol")) named.emplace_back("symbol", attrs.str("symbol"));
  return count.builder().op(Op::kDynamicIota, {count}, named);
}

static Expr flat(Expr x) {
  return reshape(x, {element_count(x.dims())});
}
static Expr filled(Builder& b, const Dim& n, double value) {
  return broadcast_to(b.scalar(DType::kI64, value), {n});
}
static Expr scattered(Expr x, Expr indices, Expr updates, const char* reduction = "none") {
  return x.builder().op(Op::kScatter, {x, indices, updates}, {{"reduction", reduction}});
}

// Row-major positions as index tuples [K, rank]; -1 stays -1 in every component.
static Expr unravelled(Expr position, const std::vector<Dim>& dims) {
  Builder& b = position.builder();
  const Dim& count = position.dim(0);
  if (dims.empty()) return broadcast_to(b.scalar(DType::kI64, 0), {count, 0});
  std::vector<Expr> columns;
  for (size_t i = 0; i < dims.size(); i++) {
    Expr stride = b.size(element_count(std::span<const Dim>(dims).subspan(i + 1)), DType::kI64);
    Expr index = binary(Op::kRem, position / stride, b.size(dims[i], DType::kI64));
    columns.push_back(unsqueeze(where(less(position, 0), -1, index), 1));
  }
  return concat(columns, 1);
}

// All forms are made of the bounded form over bools, for which a device may have a kernel.
Outputs decompose_nonzero(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  const Dim& most = attrs.dim("max_count");
  bool bounded = attrs.flag("bounded");
  if (in[0].dtype() != DType::kBool || !bounded) {
    Expr found = in[0].dtype() == DType::kBool ? in[0] : not_equal(in[0], 0);
    Outputs padded = b.ops(Op::kNonzero, {found}, {{"max_count", most}, {"bounded", int64_t{1}}});
    if (!b.status().ok() || bounded) return padded;
    return {gather(padded[0], positions(padded[1], most, attrs), 0), padded[1]};
  }
  Expr found = flat(in[0]);
  const Dim& n = found.dim(0);
  Expr ones = cast(found, DType::kI64), at = cumulative_before(ones, "sum", 0), limit = b.size(most, DType::kI64);
  // Elements that were not found, and those beyond `max_count`, go to an extra last place, which is cut off.
  Expr place = where(logical_and(found, less(at, limit)), at, limit);
  Expr places = scattered(filled(b, most + 1, -1), place, iota(b, {n}, 0, DType::kI64));
  Expr index = unravelled(slice(places, 0, 0, most), in[0].dims());
  return {index, minimum(reduce(ones, "sum", {0}, KeepDims::kNo), limit)};
}

Outputs decompose_compress(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = attrs.has("axis") ? in[0] : flat(in[0]), condition = in[1];
  int64_t axis = attrs.i64_or("axis", 0);
  if (condition.rank() != 1) return {b.fail(wrong_rank("cond", "1", condition.rank()))};
  NamedAttrs same{{"bounded", attrs.flag("bounded") ? int64_t{1} : int64_t{0}}};
  for (std::string_view name : {"max_count", "symbol"})
    if (attrs.has(name)) same.emplace_back(name, attrs.get(name));
  Outputs found = b.ops(Op::kNonzero, {condition}, same);
  if (!b.status().ok()) return {};
  Expr index = reshape(found[0], {found[0].dim(0)}), count = found[1];
  Expr place = maximum(index, 0);
  if (!attrs.flag("bounded")) return {gather(x, place, axis), count};
  // Padding reads the first slice. If x has none, it reads one of zeros, and every index stays invalid.
  auto along = static_cast<size_t>(axis);
  Dim lacks = lacking(b.graph(), x.dims()[along]);
  if (!lacks.is(0)) place = where(less(index, 0), 0, index + b.size(lacks, DType::kI64));
  Expr y = gather(never_empty(x, along, 1), place, axis);
  std::vector<Dim> along_axis(y.rank(), 1);
  along_axis[along] = index.dim(0);
  return {where(less(iota(b, along_axis, axis, DType::kI64), count), y, 0), count};
}

// Groups of equal values, in ascending order. First the group of each position of the sorted x.
Outputs decompose_unique(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  if (x.rank() != 1) return {b.fail(wrong_rank("x", "1", x.rank()))};
  const Dim& n = x.dim(0);
  Outputs sorted = b.ops(Op::kSort, {x});
  Expr position = iota(b, {n}, 0, DType::kI64);
  Expr previous = gather(sorted[0], maximum(position - 1.0, 0), 0);
  Expr starts = cast(logical_or(equal(position, 0), not_equal(sorted[0], previous)), DType::kI64);
  Expr group = cumulative(starts, "sum", 0) - 1.0, count = reduce(starts, "sum", {0}, KeepDims::kNo);
  Expr length = b.size(n, DType::kI64);
  Expr first = scattered(broadcast_to(length, {n}), group, sorted[1], "min");
  Expr counts = scattered(filled(b, n, 0), group, filled(b, n, 1), "add");
  Expr inverse = scattered(filled(b, n, 0), sorted[1], group);
  if (!attrs.flag("sorted")) {  // groups without elements have first = n and stay last
    Outputs by_first = b.ops(Op::kSort, {first});
    Expr rank = scattered(filled(b, n, 0), by_first[1], position);
    first = by_first[0], counts = gather(counts, by_first[1], 0), inverse = gather(rank, inverse, 0);
  }
  Expr is_group = less(position, count);
  if (attrs.flag("bounded")) {
    Expr values = where(is_group, gather(x, where(is_group, first, 0), 0), 0);
    return {values, where(is_group, first, -1), inverse, counts, count};
  }
  Expr exact = positions(count, n, attrs);
  first = gather(first, exact, 0);
  return {gather(x, first, 0), first, inverse, gather(counts, exact, 0), count};
}

}  // namespace rlx
