// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds whose result has a size that contents decide.
#include "import/onnx/call.h"
#include "ops/recurrent.h"

namespace rlx::onnx {

namespace {

void build_nonzero(Call& call) {
  Expr in[] = {call.in(0)};
  Outputs found = call.ops("nonzero", in);
  if (found[0].valid()) call.out(0, transpose(found[0], {1, 0}));
}

// A condition may be shorter than the axis: elements after its end are dropped.
void build_compress(Call& call) {
  Expr x = call.in(0), condition = call.in(1);
  if (!x.valid() || !condition.valid()) return;
  bool is_flat = !call.has_attr("axis");
  int64_t axis = is_flat ? 0 : call.axis(call.i64("axis", 0), x.rank());
  if (is_flat) x = reshape(x, {element_count(x.dims())});
  if (condition.rank() == 1 && !(condition.dim(0) == x.dim(axis))) x = slice(x, axis, 0, condition.dim(0));
  Expr in[] = {x, condition};
  call.out(0, call.ops("compress", in, {{"axis", axis}})[0]);
}

// A number for each row: equal for equal rows, and in the lexicographic order of the rows.
Result<Expr> row_numbers(Call& call, Expr rows) {
  Builder& b = call.builder();
  const Dim& n = rows.dim(0);
  Expr columns = transpose(rows, {1, 0}), places = iota(b, {n}, 0, DType::kI64);
  // A stable sort by one column after another, from the last to the first.
  std::array carries{places}, xs{columns};
  Expr order = scan(carries, xs, {}, ScanOrder::kReverse, [](auto so_far, auto column, auto) -> std::vector<Expr> {
    Outputs sorted = so_far[0].builder().ops(Op::kSort, {gather(column[0], so_far[0], 0)});
    return {gather(so_far[0], sorted[1], 0)};
  })[0];
  RLX_TRY(call.status());
  Expr sorted = gather(rows, order, 0), previous = gather(sorted, maximum(places - 1.0, 0), 0);
  Expr differs = reduce(cast(not_equal(sorted, previous), DType::kI64), "sum", {1}, KeepDims::kNo);
  Expr starts = cast(greater(differs, 0), DType::kI64);
  Expr number = call.op("cumulative", {starts}, {{"fn", "sum"}, {"axis", int64_t{0}}});
  return call.op("scatter_elements", {places, order, number}, {{"axis", int64_t{0}}});
}

// Distinct slices along an axis.
Status build_unique_slices(Call& call, Expr x, int64_t axis, int64_t sorted) {
  std::vector<int64_t> perm = trailing_axes(0, x.rank());
  perm.erase(perm.begin() + axis);
  perm.insert(perm.begin(), axis);
  Expr first = transpose(x, perm);
  std::vector<Dim> dims = first.dims();
  Expr numbers[] = {
      RLX_TRY(row_numbers(call, reshape(first, {dims[0], element_count(std::span<const Dim>(dims).subspan(1))})))};
  Outputs y = call.ops("unique", numbers, {{"sorted", sorted}});
  RLX_TRY(call.status());
  call.out(0, gather(x, y[1], axis));
  for (size_t i = 1; i < 4; i++) call.out(i, y[i]);
  return {};
}

void build_unique(Call& call) {
  Expr x = call.in(0);
  int64_t sorted = call.i64("sorted", 1);
  if (!x.valid()) return;
  if (call.has_attr("axis")) {
    int64_t axis = call.axis(call.i64("axis", 0), x.rank());
    if (call.status().ok() && x.rank() > 1) return call.fail(build_unique_slices(call, x, axis, sorted));
  }
  Expr in[] = {reshape(x, {element_count(x.dims())})};
  Outputs y = call.ops("unique", in, {{"sorted", sorted}});
  for (size_t i = 0; i < 4 && i < y.size(); i++) call.out(i, y[i]);
}

// The values of a list in the order in which they occur, which of them each element is, and how often each occurs.
void build_unique_in_order(Call& call) {
  Expr x[] = {call.in(0)};
  Outputs y = call.ops("unique", x, {{"sorted", int64_t{0}}});
  for (size_t i = 0; i < 3 && y.size() > 3; i++) call.out(i, y[i == 0 ? 0 : i + 1]);
}

constexpr NodeKind kKinds[] = {
    {"NonZero", build_nonzero},
    {"Compress", build_compress},
    {"Unique", build_unique},
    microsoft("Unique", build_unique_in_order),
};

}  // namespace

std::span<const NodeKind> contents_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
