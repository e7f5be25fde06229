// SPDX-License-Identifier: Apache-2.0
#include "open_values.h"

#include <algorithm>
#include <cmath>

#include "edit.h"
#include "ops/expr.h"

namespace rlx::test {

namespace {

// The least size that becomes infinite in this dtype.
double infinite_from(DType dtype) {
  switch (dtype) {
    case DType::kF16: return 65520;
    case DType::kBF16: return 0x1.ffp127;
    case DType::kF32:
    case DType::kC64: return 0x1.ffffffp127;
    default: return INFINITY;
  }
}

// What sums stay well below; those of halves run in f32.
double sums_end_at(DType dtype) {
  bool is_double = dtype == DType::kF64 || dtype == DType::kC128;
  return (is_double ? 0x1p1023 : 0x1p127) / 64;
}

// The size of each element in f64, where all sizes are numbers; 0 where an element is not finite, as that alone decides
// what a sum with it is.
Expr finite_size(Expr x) {
  if (is_block(x.dtype())) x = x.builder().op(Op::kDequantize, {x});
  if (is_complex(x.dtype())) x = abs(x);
  Expr size = abs(cast(x, DType::kF64));
  return where(less(size, scalar_like(size, INFINITY)), size, 0);
}

// ---- sums and products of many terms ----

// A scale may have moved out of a product, which makes its terms larger (semantics.md R2).
constexpr double kScale = 0x1p20;

bool is_number(DType dtype) {
  return is_float(dtype) || is_complex(dtype) || dtypes::E.has(dtype);
}

// Products in any order: of the numbers above 1 alone, and of those below 1 alone.
Expr leaves_by_product(Builder& b, const Node& node, Value in) {
  DType dtype = node.out[0].dtype;
  Expr size = abs(cast(b.wrap(in), DType::kF64));
  auto fold = [&](Expr x) { return b.ops(node.op, std::array{x}, node.attrs.named())[0]; };
  Expr large = fold(maximum(where(less(size, INFINITY), size, 1), 1.0));
  Expr small = fold(where(equal(size, 0.0), 1.0, minimum(size, 1.0)));
  double least = dtype == DType::kF64 ? 0x1p-1022 : 0x1p-126;
  return logical_or(greater(large, sums_end_at(dtype)), less(small, least));
}

bool is_scatter(Op op) {
  return op == Op::kScatter || op == Op::kScatterElements || op == Op::kScatterNd;
}

// An element and the updates that are added to it; absent where none are.
Expr leaves_by_updates(Builder& b, const Node& node, const Values& in) {
  DType dtype = node.out[0].dtype;
  if (!is_number(dtype) || !node.attrs.is("reduction", "add")) return {};
  std::array sizes{finite_size(b.wrap(in[0])), b.wrap(in[1]), finite_size(b.wrap(in[2]))};
  return greater(b.ops(node.op, sizes, node.attrs.named())[0], sums_end_at(dtype));
}

// Whether these may be the weights of attention.
bool are_weights(const Graph& graph, Value value) {
  value = behind_casts_and_views(graph, value);
  Op op = graph.node(value).op;
  if (op == Op::kWhere)
    return are_weights(graph, graph.node(value).in[1]) || are_weights(graph, graph.node(value).in[2]);
  return op == Op::kExp || op == Op::kSoftmax || op == Op::kDiv;
}

// Which elements are a sum with a value that is not finite and has the weight 0.
Expr counts_unused(Builder& b, const Values& in) {
  Expr weights = b.wrap(in[0]), values = b.wrap(in[1]);
  Expr unused = cast(equal(weights, 0), DType::kF64);
  Expr is_finite = less(abs(values), scalar_like(values, INFINITY));
  return greater(matmul(unused, cast(logical_not(is_finite), DType::kF64)), 0);
}

// Which elements of the node's result may be anything, because terms may leave the dtype on the way or may not be read.
// Absent: none.
Expr leaves_on_the_way(Builder& b, const Graph& graph, const Node& node, const Values& in) {
  if (is_scatter(node.op)) return leaves_by_updates(b, node, in);
  DType dtype = node.out[0].dtype;
  auto is_sum_of = [&](Value value) { return present(value) && is_number(graph.type(value).dtype); };
  if (!is_number(dtype) || !std::all_of(node.in.begin(), node.in.end(), is_sum_of)) return {};
  switch (node.op) {
    case Op::kMatmul: {
      Expr is_large = greater(of_sizes(b, node, in), sums_end_at(dtype) / kScale);
      bool may_skip = is_float(dtype) && is_float(graph.type(node.in[1]).dtype) && are_weights(graph, node.in[0]);
      return may_skip ? logical_or(is_large, counts_unused(b, in)) : is_large;
    }
    case Op::kConv: return greater(of_sizes(b, node, in), sums_end_at(dtype) / kScale);
    case Op::kReduce:
    case Op::kCumulative:
    case Op::kReduceWindow:
      if (node.attrs.str("fn") == "prod" && is_float(dtype)) return leaves_by_product(b, node, in[0]);
      if (node.attrs.str("fn") == "sum") return greater(of_sizes(b, node, in), sums_end_at(dtype));
      return {};
    default: return {};
  }
}

// ---- matrices ----

// By matrix, with two axes of 1: whether a change by a few roundings may take a dimension from what it spans. A matrix
// with an element that is not finite spans nothing that is known.
Expr loses_rank(Expr matrix) {
  double rounding = matrix.dtype() == DType::kF64 ? 0x1p-53 : 0x1p-24;
  Expr values = matrix.builder().ops(Op::kSvd, std::array{cast(matrix, DType::kF64)})[1];
  Expr least = reduce(values, "min", {-1}), largest = reduce(values, "max", {-1});
  return unsqueeze(logical_not(less(largest * (64 * rounding), least)), -1);
}

// The same for the square that factors are found in.
Expr is_nearly_singular(Expr matrix) {
  return loses_rank(slice(matrix, -1, 0, min(matrix.dim(-2), matrix.dim(-1))));
}

enum class Half : uint8_t { kLower, kUpper };
enum class Diagonal : uint8_t { kAsGiven, kOnes };

Expr triangle(Expr matrix, Half half, Diagonal diagonal = Diagonal::kAsGiven) {
  Builder& b = matrix.builder();
  Dim n = matrix.dim(-1);
  Expr row = iota(b, {n, 1}, 0, DType::kI64), column = iota(b, {1, n}, 1, DType::kI64);
  Expr inside = half == Half::kLower ? less_equal(column, row) : less_equal(row, column);
  Expr read = where(inside, matrix, 0);
  return diagonal == Diagonal::kOnes ? where(equal(row, column), 1.0, read) : read;
}

// Whether the factors, or the solutions, of each matrix may be anything; absent: they may not.
Expr is_open_matrix(Builder& b, const Node& node, const Values& in) {
  switch (node.op) {
    case Op::kLu:
    case Op::kQr: return is_nearly_singular(b.wrap(in[0]));
    case Op::kSvd: return loses_rank(b.wrap(in[0]));
    case Op::kCholesky: {
      Expr lower = triangle(b.wrap(in[0]), Half::kLower), strict = lower - triangle(lower, Half::kUpper);
      Axes turned = trailing_axes(0, lower.rank());
      std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
      return is_nearly_singular(lower + transpose(strict, turned));
    }
    case Op::kTriangularSolve:
      return is_nearly_singular(triangle(b.wrap(in[0]), node.attrs.flag("lower") ? Half::kLower : Half::kUpper,
                                         node.attrs.flag("unit_diagonal") ? Diagonal::kOnes : Diagonal::kAsGiven));
    default: return {};
  }
}

// ---- all values of a node ----

// For a finite stand-in, different numbers for different elements, in another order for another stand-in, and the
// opposite ones for the opposite stand-in: what depends on their order depends on what they are. Cosines, because a
// matrix of them has full rank.
Expr put(Expr value, Expr is_open, double stand_in) {
  Builder& b = value.builder();
  Expr number = b.scalar(DType::kF32, stand_in);
  if (std::isfinite(stand_in)) number = number * unary(Op::kCos, number_of_each(value) * std::abs(stand_in));
  return where(is_open, cast(number, value.dtype()), value);
}

// The rows of an open matrix may come in any order: here as they are, or with each in another place.
Expr put_order(Expr order, Expr is_open, double stand_in) {
  Builder& b = order.builder();
  Expr row = iota(b, {order.dim(-1)}, 0, order.dtype()), last = b.size(order.dim(-1), order.dtype()) - 1.0;
  Expr next = where(equal(row, last), 0.0, row + 1.0);
  return where(is_open, broadcast_to(stand_in < 0 ? next : row, order.dims()), order);
}

// What is known of each matrix, in the shape of its values, which have `fewer` axes less.
Expr with_fewer_axes(Expr is_open, size_t fewer) {
  std::vector<Dim> dims = is_open.dims();
  dims.resize(dims.size() - fewer);
  return fewer == 0 ? is_open : reshape(is_open, dims);
}

Expr with_open_elements(const Graph& graph, const Node& node, Expr value, double stand_in) {
  DType dtype = value.dtype();
  bool moves = graph.info(node).is(kLeaf) || graph.info(node).is(kView);
  if (moves || !(is_float(dtype) || is_complex(dtype)) || std::isinf(infinite_from(dtype))) return value;
  Expr size = finite_size(value);
  return put(value, less_equal(scalar_like(size, infinite_from(dtype)), size), stand_in);
}

}  // namespace

Expr of_sizes(Builder& b, const Node& node, const Values& in) {
  NamedAttrs attrs = node.attrs.named();
  std::erase_if(attrs, [](const auto& attr) { return attr.first == "out_dtype"; });
  std::vector<Expr> sizes;
  for (Value value : in) sizes.push_back(finite_size(b.wrap(value)));
  return b.ops(node.op, sizes, attrs)[0];
}

Expr number_of_each(Expr value) {
  Builder& b = value.builder();
  Expr number = b.scalar(DType::kF32, 0);
  for (size_t axis = 0; axis < value.rank(); axis++) {
    Expr place = iota(b, value.dims(), static_cast<int64_t>(axis), DType::kF32);
    number = number * b.size(value.dim(axis), DType::kF32) + place;
  }
  return number;
}

bool solves_matrices(Op op) {
  return op == Op::kLu || op == Op::kQr || op == Op::kSvd || op == Op::kCholesky || op == Op::kTriangularSolve;
}

Result<Graph> with_open_values(const Graph& primitives, double stand_in) {
  auto copy = [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    const Node& node = primitives.node(index);
    auto edit = [&](const Graph& body) { return with_open_values(body, stand_in); };
    Values values = RLX_TRY(copy_node(primitives, index, in, to, RLX_TRY(with_bodies(node, edit))));
    Builder b(to);
    Expr on_the_way = leaves_on_the_way(b, primitives, node, in), matrix = is_open_matrix(b, node, in);
    for (Value& each : values) {
      Expr value = b.wrap(each);
      size_t fewer = matrix && matrix.rank() > value.rank() ? matrix.rank() - value.rank() : 0;
      if (on_the_way) value = put(value, on_the_way, stand_in);
      if (matrix && is_float(value.dtype())) value = put(value, with_fewer_axes(matrix, fewer), stand_in);
      if (matrix && !is_float(value.dtype())) value = put_order(value, with_fewer_axes(matrix, fewer), stand_in);
      each = with_open_elements(primitives, node, value, stand_in).value();
    }
    RLX_TRY(Status(b.status()));
    return values;
  };
  return edited(primitives, copy, Leaves::kAll, Guards::kKept);
}

}  // namespace rlx::test
