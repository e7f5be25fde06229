// SPDX-License-Identifier: Apache-2.0
#include "noise.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "edit.h"
#include "exceptions.h"
#include "open_values.h"
#include "ops/expr.h"

namespace rlx::test {

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::kF8E5M2: return 0x1p-3;
    case DType::kF8E4M3: return 0x1p-4;
    case DType::kBF16: return 0x1p-8;
    case DType::kF16: return 0x1p-11;
    case DType::kF32:
    case DType::kC64: return 0x1p-24;
    case DType::kF64:
    case DType::kC128: return 0x1p-53;
    default: return 0;
  }
}

namespace {

// Changes what no tolerance looks at (semantics.md N3-N5): the sign of NaN and of zero, numbers below the normal ones
// of f32, and the parts of a complex number that is not finite.
Expr otherwise_equal(Expr value, Random& random) {
  if (is_complex(value.dtype())) return where(equal(value - value, value - value), value, scalar_like(value, NAN));
  Expr size = abs(value), zero = scalar_like(value, random.chance(50) ? 0.0 : -0.0);
  value = where(logical_or(equal(size, 0.0), less(size, kLeastNormal)), zero, value);
  return where(equal(size, size), value, -value);
}

// A number from -1 to 1 for each element. Different values get different numbers, so that nearly equal values may
// change their order; so do different places, if asked.
Expr wobble(Expr value, bool by_place) {
  Builder& builder = value.builder();
  Expr phase = cast(value, DType::kF64) * builder.scalar(DType::kF64, 1e9);
  if (by_place) phase = phase + cast(number_of_each(value), DType::kF64);
  Expr wave = cast(builder.op(Op::kSin, {phase}), value.dtype());
  return where(equal(wave, wave), wave, scalar_like(value, 0));
}

// What has been built, if all of it was legal.
Result<Value> built(Expr value) {
  RLX_TRY(Status(value.builder().status()));
  return value.value();
}

// The value as another device may compute it.
Result<Value> with_noise(Graph& graph, Value given, Noise noise, Random& random) {
  Builder builder(graph);
  Expr value = builder.wrap(given);
  if (!is_float(value.dtype()) && !is_complex(value.dtype())) return given;
  if (random.chance(noise.flushes)) value = otherwise_equal(value, random);
  if (!noise.rounds) return built(value);
  double rounding = 2 * epsilon_of(value.dtype()) * static_cast<double>(random.between(-4, 4));
  Expr error = builder.scalar(value.dtype(), rounding);
  if (is_float(value.dtype()) && random.chance(50)) error = error * wobble(value, noise.by_place);
  return built(value * (error + scalar_like(value, 1)));
}

// The largest size of a finite element, along the last `count` axes.
Expr largest_size(Expr value, size_t count) {
  Expr size = abs(value);
  Axes last(count);
  std::iota(last.begin(), last.end(), static_cast<int64_t>(value.rank() - count));
  return reduce(where(less(size, INFINITY), size, 0), "max", last, KeepDims::kYes);
}

// A number that may be rounding alone may be 0: `size` is that of what was rounded on the way.
Result<Value> cancelled(Graph& graph, Value given, Expr size) {
  Builder builder(graph);
  Expr value = builder.wrap(given), rounding = scalar_like(size, 8 * epsilon_of(value.dtype()));
  Expr is_rounding = less_equal(cast(abs(value), size.dtype()), size * rounding);
  return built(where(logical_and(is_rounding, less(abs(value), INFINITY)), scalar_like(value, 0), value));
}

// Whether it compares two numbers for equality, of which at least one was computed.
bool compares_roundings(const Graph& graph, const Node& node) {
  auto is_computed = [&](Value value) { return !graph.info(graph.node(value)).is(kLeaf); };
  return (node.op == Op::kEq || node.op == Op::kNe) && epsilon_of(graph.type(node.in[0]).dtype) > 0 &&
         std::any_of(node.in.begin(), node.in.end(), is_computed);
}

// The first of two compared numbers, or the second if the two differ only by roundings of the largest number of the
// first tensor: where that number was added on the way, the difference may be rounding alone.
Result<Value> rounded_together(Graph& graph, const Values& in) {
  Builder builder(graph);
  Expr a = builder.wrap(in[0]), b = builder.wrap(in[1]), largest = largest_size(a, a.rank());
  Expr rounding = scalar_like(largest, 8 * epsilon_of(largest.dtype()));
  return built(where(less_equal(abs(a - b), largest * rounding), b, a));
}

// Below what size an op may take a number as 0: f32 and bf16 may have no numbers below `least` (semantics.md N5), and
// two roundings to f16 make 0 of what is below twice its least number.
double vanishes_below(DType dtype, double least) {
  if (dtype == DType::kF32 || dtype == DType::kBF16) return least;
  return dtype == DType::kF16 ? 0x1p-23 : 0;
}

bool may_vanish(const Graph& graph, Value value) {
  return present(value) && vanishes_below(graph.type(value).dtype, kLeastNormal) > 0;
}

// The value with a 0 of the same sign in place of each number that may vanish.
Value flushed(Graph& graph, Value value, double least = kLeastNormal) {
  double limit = vanishes_below(present(value) ? graph.type(value).dtype : DType::kBool, least);
  if (limit == 0) return value;
  Builder builder(graph);
  Expr number = builder.wrap(value);
  return where(less(abs(number), limit), number * scalar_like(number, 0), number).value();
}

// By node, whether a size that contents decide depends on it.
std::vector<bool> decides_sizes(const Graph& graph) {
  std::vector<bool> decides(graph.nodes().size());
  for (const DecidedSize& size : decided_sizes(graph)) decides[size.node] = true;
  for (size_t i = decides.size(); i-- > 0;)
    for (Value in : graph.nodes()[i].in)
      if (present(in) && decides[i]) decides[in.node] = true;
  return decides;
}

// Whether it adds up elements of an operand: where they cancel, their roundings are all that is left.
bool adds_up(Op op) {
  return op == Op::kReduce || op == Op::kReduceWindow || op == Op::kCumulative || op == Op::kMatmul || op == Op::kConv;
}

// By whose size roundings of the result are measured; absent where the result does not cancel.
Expr size_of_terms(Builder& builder, const Node& node, const Values& in, Value result) {
  DType dtype = node.out[0].dtype;
  if (!is_float(dtype)) return {};
  bool is_sum = node.op == Op::kAdd || node.op == Op::kSub;
  if (is_sum) return abs(builder.wrap(in[0])) + abs(builder.wrap(in[1]));
  if (solves_matrices(node.op)) {
    Expr solved = builder.wrap(result);
    return largest_size(solved, std::min<size_t>(solved.rank(), 2)) * scalar_like(solved, 16);
  }
  bool is_product = node.op == Op::kMatmul || node.op == Op::kConv;
  if (is_product || (adds_up(node.op) && node.attrs.is("fn", "sum"))) return of_sizes(builder, node, in);
  return {};
}

// The read with this number is flushed. `number` is reduced by how many reads there are, so it is negative afterwards
// if there is such a read.
Result<Graph> with_read_flushed(const Graph& graph, int64_t& number) {
  auto copy = [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    auto inner = [&](const Graph& body) { return with_read_flushed(body, number); };
    Attrs attrs = RLX_TRY(with_bodies(graph.node(index), inner));
    Values read = in;
    for (Value& value : read)
      if (may_vanish(to, value) && number-- == 0) value = flushed(to, value);
    return copy_node(graph, index, read, to, std::move(attrs));
  };
  return edited(graph, copy, Leaves::kAll, Guards::kKept);
}

}  // namespace

Result<std::vector<Graph>> with_one_read_flushed(const Graph& graph) {
  std::vector<Graph> forms;
  for (int64_t read = 0;; read++) {
    int64_t number = read;
    Graph form = RLX_TRY(with_read_flushed(graph, number));
    if (number >= 0) return forms;
    forms.push_back(std::move(form));
  }
}

Result<Graph> with_flushed(const Graph& graph, double least) {
  auto copy = [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    auto inner = [&](const Graph& body) { return with_flushed(body, least); };
    Attrs attrs = RLX_TRY(with_bodies(graph.node(index), inner));
    Values values = RLX_TRY(copy_node(graph, index, in, to, std::move(attrs)));
    for (Value& value : values) value = flushed(to, value, least);
    return values;
  };
  return edited(graph, copy, Leaves::kAll, Guards::kKept);
}

Result<Graph> without_subnormals(const Graph& graph) {
  return with_flushed(graph, kLeastNormal);
}

Result<Graph> with_noise(const Graph& graph, Noise noise, Random& random) {
  const std::vector<bool> decides = decides_sizes(graph);
  auto copy = [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    const Node& node = graph.node(index);
    if (noise.keeps_sizes && decides[index]) return copy_node(graph, index, in, to, node.attrs);
    Attrs attrs = RLX_TRY(with_bodies(node, [&](const Graph& body) { return with_noise(body, noise, random); }));
    Values read(in.begin(), in.end());  // of two readers one may take a number as 0
    for (Value& value : read)
      if (random.chance(noise.flushes)) value = flushed(to, value);
    if (noise.rounds && adds_up(node.op)) read[0] = RLX_TRY(with_noise(to, read[0], noise, random));
    if (noise.rounds && compares_roundings(graph, node) && random.chance(50))
      read[0] = RLX_TRY(rounded_together(to, read));
    Values values = RLX_TRY(copy_node(graph, index, read, to, std::move(attrs)));
    if (noise.rounds && random.chance(25)) {
      Builder builder(to);
      if (Expr size = size_of_terms(builder, node, in, values[0])) values[0] = RLX_TRY(cancelled(to, values[0], size));
    }
    Noise of_results = noise;  // a device does not round what it is given
    of_results.rounds &= !graph.info(node).is(kLeaf) || node.op == Op::kConstant;
    of_results.by_place = adds_up(node.op);
    for (Value& value : values) value = RLX_TRY(with_noise(to, value, of_results, random));
    return values;
  };
  return edited(graph, copy, Leaves::kAll, Guards::kKept);
}

}  // namespace rlx::test
