// SPDX-License-Identifier: Apache-2.0
// Values whose sizes change: cut, joined, padded, or as many as contents select; by branches that give other sizes, and
// by loops whose carries grow and shrink. Some sizes of a body have the name of a size around it.
#include <algorithm>

#include "base/contains.h"
#include "bodies.h"

namespace rlx::test {

namespace {

constexpr int kDeepest = 3;

Axes other_axes(size_t rank, int64_t axis) {
  Axes axes = trailing_axes(0, rank);
  std::erase(axes, axis);
  return axes;
}

// Which rows along the axis hold something above 0; or rows of even numbers.
Expr chosen_rows(Draw& draw, Builder& b, Expr x, int64_t axis) {
  if (draw.random.chance(30) || !dtypes::N.has(x.dtype())) {
    Expr at = iota(b, {x.dim(axis)}, 0, DType::kI64);
    return equal(binary(Op::kRem, at, b.scalar(DType::kI64, 2)), static_cast<double>(draw.random.below(2)));
  }
  Expr most = x.rank() == 1 ? x : reduce(x, "max", other_axes(x.rank(), axis), KeepDims::kNo);
  return greater(most, 0);
}

// A bound within the axis, before it or behind it.
Dim bound(Draw& draw, const Dim& size) {
  switch (draw.random.below(6)) {
    case 0: return size;
    case 1: return size - draw.random.between(1, 2);
    case 2: return floor_div(size, draw.random.between(2, 3));
    case 3: return draw.attribute_dim(draw.dim());
    case 4: return draw.random.between(-2, -1);
    default: return draw.random.between(0, 3);
  }
}

Expr cut(Draw& draw, Expr x, int64_t axis) {
  static constexpr int64_t kSteps[] = {1, 1, 1, 2, -1, -1, -2, 3};
  const Dim& size = x.dim(axis);
  int64_t step = draw.random.pick(kSteps);
  Dim start = step > 0 || draw.random.chance(50) ? bound(draw, size) : Dim(INT32_MAX);
  Dim end = draw.random.chance(50) ? bound(draw, size) : Dim(step > 0 ? INT32_MAX : INT32_MIN);
  return slice(x, axis, start, end, step);
}

// x with another size along an axis.
Expr resized(Draw& draw, Builder& b, Expr x) {
  if (!x.valid() || x.rank() == 0) return {};
  int64_t axis = draw.random.below(static_cast<int64_t>(x.rank()));
  switch (draw.random.below(9)) {
    case 0: return concat(std::array{x, x}, axis);
    case 1:
    case 2:
    case 3: return cut(draw, x, axis);
    case 4: return b.ops(Op::kCompress, std::array{x, chosen_rows(draw, b, x, axis)}, {{"axis", axis}})[0];
    case 5: {
      Expr part = cut(draw, x, axis);
      return part.valid() ? concat(std::array{part, x}, axis) : part;
    }
    case 6: {
      Expr count = reduce(cast(chosen_rows(draw, b, x, axis), DType::kI64), "sum", {0}, KeepDims::kNo);
      NamedAttrs attrs;
      attrs.emplace_back("max", draw.random.chance(70) ? x.dim(axis) : Dim(draw.random.between(6, 20)));
      Expr at = b.ops(Op::kDynamicIota, std::array{count}, attrs)[0];
      return at.valid() ? gather(x, at, axis) : at;
    }
    case 7: return reshape(x, {element_count(x.dims())});
    default: {
      Expr found = b.ops(Op::kNonzero, std::array{x})[0];
      return found.valid() ? cast(found, x.dtype()) : found;
    }
  }
}

// Something of x that relies on its sizes.
Expr followed(Draw& draw, Builder& b, Expr x) {
  if (!x.valid() || x.rank() == 0) return x;
  bool is_float = dtypes::F.has(x.dtype());
  int64_t axis = draw.random.below(static_cast<int64_t>(x.rank()));
  switch (draw.random.below(10)) {
    case 0: return x + x;
    case 1: return dtypes::N.has(x.dtype()) ? reduce(x, "sum", {axis}, KeepDims::kNo) : x;
    case 2: return is_float ? b.op(Op::kSoftmax, {x}) : x;
    case 3: return is_float && x.rank() > 1 ? matmul(x, x, {.b = true}) : x;
    case 4: {
      Expr at = iota(b, x.dims(), axis, DType::kI64), half = b.size(floor_div(x.dim(axis), 2), DType::kI64);
      return dtypes::N.has(x.dtype()) ? where(less(at, half), x, 0) : x;
    }
    case 5: return dtypes::N.has(x.dtype()) ? cumulative(x, "sum", axis) : x;
    case 6: {
      Axes perm = trailing_axes(0, x.rank());
      std::rotate(perm.begin(), perm.begin() + 1, perm.end());
      return transpose(x, perm);
    }
    case 7: return is_float ? tanh(x) : x;
    case 8: {
      if (!dtypes::N.has(x.dtype())) return x;
      Expr scale = cast(b.size(x.dim(axis), DType::kI64), x.dtype());
      return x * scale;
    }
    default: return resized(draw, b, x);
  }
}

Expr changed(Draw& draw, Builder& b, Expr x) {
  for (int64_t steps = draw.random.between(0, 2); steps > 0 && x.valid(); steps--)
    x = draw.random.chance(60) ? resized(draw, b, x) : followed(draw, b, x);
  return x;
}

// x with this dtype and rank.
Expr with_rank(Expr x, DType dtype, size_t rank) {
  if (!x.valid()) return x;
  if (x.dtype() != dtype) x = cast(x, dtype);
  while (x.valid() && x.rank() > rank) {
    std::vector<Dim> dims = x.dims();
    dims[1] = dims[0] * dims[1];
    dims.erase(dims.begin());
    x = reshape(x, dims);
  }
  while (x.valid() && x.rank() < rank) x = unsqueeze(x, 0);
  return x;
}

std::vector<Value> ranked_values(const Draw& draw) {
  std::vector<Value> known;
  for (Value value : draw.values(dtypes::N))
    if (draw.graph.type(value).rank() > 0 && draw.graph.type(value).rank() < 4) known.push_back(value);
  return known;
}

Expr ranked_value(Draw& draw, Builder& b) {
  std::vector<Value> known = ranked_values(draw);
  if (!known.empty() && (draw.is_body || draw.random.chance(70))) return b.wrap(draw.random.pick(known));
  if (draw.is_body) return {};
  Shape shape = draw.shape();
  while (shape.empty() || shape.size() > 3) shape = draw.shape();
  auto made = draw.leaf(DTypeSet{draw.random.chance(70) ? DType::kF32 : DType::kI32}, shape);
  return made ? b.wrap(*made) : Expr();
}

// One output: of this dtype and rank, with any sizes.
bool add_changed(Draw& body, DType dtype, size_t rank, const std::string& name) {
  if (body.random.chance(30)) add_varying(body);
  if (body.random.chance(10)) add_something(body);
  Value result = kInvalid;
  bool made = body.attempt([&](Draw& of, Builder& builder) -> Expr {
    Expr y = with_rank(changed(of, builder, ranked_value(of, builder)), dtype, rank);
    result = y.valid() ? y.value() : kInvalid;
    return y;
  });
  return made && body.graph.add_output(name, result).ok();
}

// ---- if ----

Expr size_condition(Draw& draw, Builder& b, Expr x) {
  int64_t axis = draw.random.below(static_cast<int64_t>(x.rank()));
  Expr size = b.size(x.dim(axis), DType::kI64),
       limit = b.scalar(DType::kI64, static_cast<double>(draw.random.between(0, 4)));
  Expr other = draw.random.chance(30) ? b.size(x.dim(0), DType::kI64) * 2.0 : limit;
  switch (draw.random.below(4)) {
    case 0: return less(size, limit);
    case 1: return equal(size, other);
    case 2: return logical_not(less(other, size));
    default: return logical_and(less(size, other), not_equal(size, limit));
  }
}

Expr if_node(Draw& draw, Builder& b) {
  std::vector<Expr> in;
  for (int64_t count = draw.random.between(1, 2); count > 0; count--) in.push_back(ranked_value(draw, b));
  std::vector<ValueType> types;
  for (Expr x : in) {
    if (!x.valid()) return {};
    types.push_back(x.type());
  }
  Expr condition = draw.random.chance(50) ? size_condition(draw, b, in[0]) : random_condition(draw, b);
  if (!condition.valid()) return {};
  std::vector<ValueType> results;
  for (int64_t count = draw.random.between(1, 2); count > 0; count--) results.push_back(draw.random.pick(types));
  NamedAttrs attrs;
  for (const char* name : {"then", "else"}) {
    Draw body = Draw::body_of(draw, name);
    Builder builder(body.graph);
    if (!add_inputs(body, builder, types)) return {};
    for (size_t i = 0; i < results.size(); i++)
      if (!add_changed(body, results[i].dtype, results[i].rank(), "y" + std::to_string(i))) return {};
    attrs.emplace_back(name, shared_body(draw, std::move(body.graph)));
  }
  in.insert(in.begin(), condition);
  Outputs out = b.ops(Op::kIf, in, attrs);
  return b.status().ok() ? followed(draw, b, draw.random.pick(out)) : Expr();
}

// ---- loops ----

// Sizes of their own that carries have inside of a loop.
struct OwnSizes {
  std::vector<std::string> names;
  Interval range;

  bool declare(Graph& body) const {
    return std::ranges::all_of(names, [&](const std::string& name) { return body.declare_symbol(name, range).ok(); });
  }
};

// The types of carries inside of a loop: an axis or two have sizes of their own.
std::vector<ValueType> own_types(Draw& draw, std::vector<ValueType> types, size_t first, size_t carries,
                                 std::vector<std::string>& own) {
  for (size_t i = first; i < carries; i++)
    for (Dim& dim : types[i].dims) {
      if (!draw.random.chance(60)) continue;
      static constexpr const char* kNames[] = {"c", "d", "n", "m"};
      std::string name = own.empty() || draw.random.chance(80)
                             ? draw.random.pick(kNames) + std::string(draw.random.chance(50) ? "" : "0")
                             : draw.random.pick(own);
      dim = Dim::symbol(name);
      if (!contains(own, name)) own.push_back(name);
    }
  return types;
}

std::optional<Graph> varying_body(Draw& draw, const std::vector<ValueType>& types, const std::vector<ValueType>& inner,
                                  size_t first, size_t carries, const OwnSizes& own, int64_t stacked) {
  Draw body = Draw::body_of(draw, "body");
  if (!own.declare(body.graph)) return std::nullopt;
  Builder builder(body.graph);
  auto in = add_inputs(body, builder, inner);
  if (!in) return std::nullopt;
  if (first == 1) {
    Expr next = (*in)[0] + 1.0;
    if (!next.valid() || !body.graph.add_output("next", next.value()).ok()) return std::nullopt;
  }
  for (size_t i = first; i < carries; i++) {
    auto fits = [&](const ValueType& it) { return it.dtype == types[i].dtype && it.rank() == types[i].rank(); };
    std::string name = "c" + std::to_string(i);
    auto passed = body.random.chance(30) ? random_input(body, fits) : std::nullopt;
    bool added =
        passed ? body.graph.add_output(name, *passed).ok() : add_changed(body, types[i].dtype, types[i].rank(), name);
    if (!added) return std::nullopt;
  }
  for (; stacked > 0; stacked--)
    if (!add_changed(body, DType::kF32, 1, "s" + std::to_string(stacked))) return std::nullopt;
  return std::move(body.graph);
}

// A few trips at most; fewer where a carry is large enough.
std::optional<Graph> varying_cond(Draw& draw, const std::vector<ValueType>& inner, const OwnSizes& own) {
  Draw cond = Draw::body_of(draw, "cond");
  if (!own.declare(cond.graph)) return std::nullopt;
  Builder builder(cond.graph);
  auto in = add_inputs(cond, builder, inner);
  if (!in) return std::nullopt;
  Expr more = less((*in)[0], static_cast<double>(draw.random.between(0, 3)));
  Expr x = draw.random.pick(*in);
  if (draw.random.chance(40) && x.rank() > 0)
    more = logical_and(more, less(builder.size(x.dim(0), DType::kI64), static_cast<double>(draw.random.between(1, 9))));
  if (!more.valid() || !cond.graph.add_output("more", more.value()).ok()) return std::nullopt;
  return std::move(cond.graph);
}

struct Loop {
  bool is_scan;
  size_t first, carries, n_xs;  // the first carry whose size may vary; the numbers of carries and of xs
};

bool add_trips(Draw& draw, const Loop& loop, const std::vector<ValueType>& inner, const OwnSizes& own,
               NamedAttrs& attrs) {
  if (!loop.is_scan) {
    auto cond = varying_cond(draw, inner, own);
    if (cond) attrs.emplace_back("cond", shared_body(draw, std::move(*cond)));
    return cond.has_value();
  }
  Dim length = draw.random.chance(50) ? Dim(draw.random.between(0, 3)) : min(draw.attribute_dim(Dim::symbol("n")), 3);
  attrs.emplace_back("n_xs", static_cast<int64_t>(loop.n_xs));
  if (!loop.n_xs) attrs.emplace_back("length", length);
  if (draw.random.chance(30)) attrs.emplace_back("reverse", int64_t{1});
  return true;
}

Expr loop_node(Draw& draw, Builder& b) {
  Loop loop{.is_scan = draw.random.chance(40)};
  std::vector<Expr> in;
  if (!loop.is_scan) in.push_back(b.scalar(DType::kI64, 0));
  loop.first = in.size();
  for (int64_t count = draw.random.between(1, 3); count > 0; count--) in.push_back(ranked_value(draw, b));
  loop.carries = in.size();
  loop.n_xs = loop.is_scan && draw.random.chance(40) ? 1 : 0;
  if (loop.n_xs) in.push_back(ranked_value(draw, b));
  if (draw.random.chance(40)) in.push_back(ranked_value(draw, b));
  std::vector<ValueType> types;
  for (Expr x : in) {
    if (!x.valid()) return {};
    types.push_back(x.type());
  }
  if (loop.n_xs) types[loop.carries].dims.erase(types[loop.carries].dims.begin());
  OwnSizes own{{}, draw.random.chance(75) ? Interval{0, 48} : Interval()};  // or without a bound
  std::vector<ValueType> inner = own_types(draw, types, loop.first, loop.carries, own.names);
  int64_t stacked = draw.random.chance(30) ? 1 : 0;
  auto body = varying_body(draw, types, inner, loop.first, loop.carries, own, stacked);
  if (!body) return {};
  NamedAttrs attrs{{"body", shared_body(draw, std::move(*body))}, {"n_carry", static_cast<int64_t>(loop.carries)}};
  if (!own.names.empty()) attrs.emplace_back("carried", own.names);
  if (!add_trips(draw, loop, inner, own, attrs)) return {};
  Outputs out = b.ops(loop.is_scan ? Op::kScan : Op::kWhile, in, attrs);
  return b.status().ok() ? followed(draw, b, draw.random.pick(out)) : Expr();
}

Expr varying_node(Draw& draw, Builder& b) {
  return changed(draw, b, ranked_value(draw, b));
}

}  // namespace

bool add_varying(Draw& draw) {
  return draw.attempt(
      [](Draw& of, Builder& b) -> Expr {
        static constexpr Spelling kVarying[] = {varying_node, if_node, loop_node};
        if (of.depth >= kDeepest) return varying_node(of, b);
        return of.random.pick(kVarying)(of, b);
      },
      8);
}

}  // namespace rlx::test
