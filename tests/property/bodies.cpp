// SPDX-License-Identifier: Apache-2.0
// Control flow: `if`, `while` and `scan`, also nested. Captures are operands; bodies hold constants and params. Some
// loops have no trip, and some conditions are false at once. A loop ends whatever its values are. Often its carries
// change places.
#include "bodies.h"

#include "edit.h"
#include "ops/expr.h"

namespace rlx::test {

std::shared_ptr<const Graph> shared_body(Draw& draw, Graph graph) {
  auto clean = pruned(graph, Leaves::kAll);
  return std::make_shared<const Graph>(clean.ok() && draw.random.chance(90) ? std::move(*clean) : std::move(graph));
}

std::optional<std::vector<Expr>> add_inputs(Draw& body, Builder& builder, const std::vector<ValueType>& types) {
  std::vector<Expr> in;
  for (size_t i = 0; i < types.size(); i++) {
    auto leaf = body.graph.add_input("a" + std::to_string(i), types[i].dtype, types[i].dims);
    if (!leaf.ok()) return std::nullopt;
    in.push_back(builder.wrap(*leaf));
  }
  return in;
}

std::optional<Value> random_input(Draw& body, const std::function<bool(const ValueType&)>& accepts) {
  std::vector<Value> accepted;
  for (uint32_t input : body.graph.inputs())
    if (accepts(body.graph.type({input, 0}))) accepted.push_back({input, 0});
  if (accepted.empty()) return std::nullopt;
  return body.random.pick(accepted);
}

namespace {

constexpr int kDeepest = 2;

// x, by steps that keep its type.
Expr kept_type(Draw& body, Builder& builder, Expr x) {
  ValueType type = x.type();
  bool is_float = dtypes::F.has(type.dtype);
  for (int64_t steps = body.random.between(0, 3); steps > 0 && x.valid(); steps--) {
    Expr other = body.random.chance(60) ? body.number(x, static_cast<double>(body.random.between(0, 3)))
                                        : body.value(builder, type.dtype, type.dims);
    switch (body.random.below(is_float ? 10 : 5)) {
      case 0: x = x + other; break;
      case 1: x = x * other; break;
      case 2: x = x - other; break;
      case 3: x = maximum(x, other); break;
      case 4: x = x + x; break;
      case 5: x = tanh(x); break;
      case 6:
        if (type.rank() > 0) x = builder.op(Op::kSoftmax, {x});
        break;
      case 7:
        if (type.rank() > 0) x = (x - mean(x, {-1})) * 0.5;
        break;
      case 8:
        if (type.rank() > 1 && type.dims.back().is_literal())
          x = matmul(x, body.weight(builder, type.dtype, {type.dims.back(), type.dims.back()}));
        break;
      default: x = x / (1.0 + abs(other));
    }
  }
  // Some of these may have made it larger: a value of the type that is there then stands for it.
  if (x.valid() && x.type() == type) return x;
  return {};
}

// Another output of the body, of this type; none where there is none.
std::optional<Value> random_output(Draw& body, const ValueType& type) {
  std::vector<Value> accepted;
  for (const GraphOutput& output : body.graph.outputs())
    if (body.graph.type(output.value) == type) accepted.push_back(output.value);
  if (accepted.empty()) return std::nullopt;
  return body.random.pick(accepted);
}

// A value of this type: the first that is there, changed by a few steps; anything else may happen beside it. Now and
// then it is an input of the body, a number everywhere, or what another output is.
bool add_result(Draw& body, const ValueType& type, const std::string& name) {
  if (body.random.chance(20))
    if (auto output = random_output(body, type)) return body.graph.add_output(name, *output).ok();
  if (body.random.chance(10) && dtypes::N.has(type.dtype)) {
    Builder builder(body.graph);
    Expr number = builder.scalar(type.dtype, static_cast<double>(body.random.between(0, 3)));
    Expr everywhere = type.rank() > 0 ? broadcast_to(number, type.dims) : number;
    return everywhere.valid() && body.graph.add_output(name, everywhere.value()).ok();
  }
  if (body.random.chance(30))
    if (auto input = random_input(body, [&](const ValueType& other) { return other == type; }))
      return body.graph.add_output(name, *input).ok();
  if (body.random.chance(40))
    for (int64_t more = body.random.between(1, 2); more > 0; more--) add_something(body);
  Value result = kInvalid;
  bool made = body.attempt([&](Draw& of, Builder& builder) -> Expr {
    std::vector<Value> known;
    for (Value value : of.values(DTypeSet{type.dtype}))
      if (of.graph.type(value) == type) known.push_back(value);
    if (known.empty()) return {};
    Expr x = builder.wrap(of.random.pick(known));
    Expr y = dtypes::N.has(type.dtype) ? kept_type(of, builder, x) : x;
    result = y.value();
    return y;
  });
  return made && body.graph.add_output(name, result).ok();
}

// Values that are there, of real numbers; leaves where there are none. Many are of one type, so that they can change
// places.
std::vector<Expr> random_arguments(Draw& draw, Builder& builder, int64_t count) {
  std::vector<Expr> in;
  for (; count > 0; count--) {
    if (!in.empty() && in.back().valid() && draw.random.chance(50))
      in.push_back(draw.value(builder, in.back().dtype(), in.back().type().dims));
    else
      in.push_back(draw.any(builder, draw.random.chance(75) ? DTypeSet{draw.float_type()} : dtypes::N));
  }
  return in;
}

std::optional<std::vector<ValueType>> types_of(const std::vector<Expr>& values, size_t first = 0) {
  std::vector<ValueType> types;
  for (size_t i = first; i < values.size(); i++) {
    if (!values[i].valid()) return std::nullopt;
    types.push_back(values[i].type());
  }
  return types;
}

// ---- if ----

}  // namespace

Expr random_condition(Draw& draw, Builder& builder) {
  Expr limit = builder.scalar(DType::kI64, static_cast<double>(draw.random.between(0, 3)));
  switch (draw.random.below(5)) {
    case 0: return builder.scalar(DType::kBool, static_cast<double>(draw.random.below(2)));
    case 1: return less(builder.size(draw.attribute_dim(Dim::symbol("n")), DType::kI64), limit);
    case 2: {
      Expr x = draw.any(builder, DTypeSet{draw.float_type()});
      return x.valid() ? greater(reduce(x, "sum", trailing_axes(0, x.rank()), KeepDims::kNo), 0) : x;
    }
    default: return draw.value(builder, DType::kBool, {});
  }
}

namespace {

std::optional<Graph> branch(Draw& around, const char* name, const std::vector<ValueType>& in,
                            const std::vector<ValueType>& out) {
  Draw body = Draw::body_of(around, name);
  Builder builder(body.graph);
  if (!add_inputs(body, builder, in)) return std::nullopt;
  for (size_t i = 0; i < out.size(); i++)
    if (!add_result(body, out[i], "y" + std::to_string(i))) return std::nullopt;
  return std::move(body.graph);
}

// Some branches say 1 where their operand has a symbol: the graph then runs at size 1 alone.
void fix_symbols(Random& random, std::vector<ValueType>& types) {
  for (ValueType& type : types)
    for (Dim& dim : type.dims)
      if (dim.symbol_name() != nullptr && random.chance(50)) dim = 1;
}

Expr if_node(Draw& draw, Builder& builder) {
  std::vector<Expr> in = random_arguments(draw, builder, draw.random.between(1, 3));
  Expr condition = random_condition(draw, builder);
  auto types = types_of(in);
  if (!types || !condition.valid()) return {};
  if (draw.random.chance(3)) fix_symbols(draw.random, *types);
  std::vector<ValueType> results;
  for (int64_t count = draw.random.between(1, 2); count > 0; count--) results.push_back(draw.random.pick(*types));
  auto then = branch(draw, "then", *types, results), otherwise = branch(draw, "else", *types, results);
  if (!then || !otherwise) return {};
  in.insert(in.begin(), condition);
  return builder.ops(
      Op::kIf, in,
      {{"then", shared_body(draw, std::move(*then))}, {"else", shared_body(draw, std::move(*otherwise))}})[0];
}

// ---- while ----

// 0 <= counter < limit, and perhaps more. The limit is small: a constant, or the smaller one of a constant and a size.
std::optional<Graph> loop_condition(Draw& around, const std::vector<ValueType>& types) {
  Draw body = Draw::body_of(around, "cond");
  Builder builder(body.graph);
  auto in = add_inputs(body, builder, types);
  if (!in) return std::nullopt;
  Expr limit = builder.scalar(DType::kI64, static_cast<double>(body.random.between(0, 4)));
  if (body.random.chance(20)) limit = minimum(limit, builder.size(body.attribute_dim(Dim::symbol("m")), DType::kI64));
  Expr more = logical_and(less((*in)[0], limit), less_equal(builder.scalar(DType::kI64, 0), (*in)[0]));
  Expr x = body.random.pick(*in);
  if (body.random.chance(25) && dtypes::N.has(x.dtype())) {
    Expr largest = reduce(x, "max", trailing_axes(0, x.rank()), KeepDims::kNo);
    more = logical_and(more, less(largest, scalar_like(largest, 50)));
  }
  if (body.random.chance(10)) more = builder.scalar(DType::kBool, 0);
  if (!builder.status().ok() || !body.graph.add_output("more", more.value()).ok()) return std::nullopt;
  return std::move(body.graph);
}

std::optional<Graph> loop_body(Draw& around, const std::vector<ValueType>& types, size_t carries) {
  Draw body = Draw::body_of(around, "body");
  Builder builder(body.graph);
  auto in = add_inputs(body, builder, types);
  if (!in) return std::nullopt;
  Expr next = (*in)[0] + 1.0;
  if (!next.valid() || !body.graph.add_output("next", next.value()).ok()) return std::nullopt;
  for (size_t i = 1; i < carries; i++)
    if (!add_result(body, types[i], "c" + std::to_string(i))) return std::nullopt;
  return std::move(body.graph);
}

Expr while_node(Draw& draw, Builder& builder) {
  auto carries = static_cast<size_t>(draw.random.between(2, 4));
  std::vector<Expr> in = random_arguments(draw, builder, static_cast<int64_t>(carries) + draw.random.between(-1, 1));
  in.insert(in.begin(), builder.scalar(DType::kI64, draw.random.chance(80) ? 0 : 2));
  auto types = types_of(in);
  if (!types) return {};
  auto cond = loop_condition(draw, *types);
  auto body = loop_body(draw, *types, carries);
  if (!cond || !body) return {};
  NamedAttrs attrs{{"cond", shared_body(draw, std::move(*cond))},
                   {"body", shared_body(draw, std::move(*body))},
                   {"n_carry", static_cast<int64_t>(carries)}};
  if (draw.random.chance(40)) attrs.emplace_back("max_trips", draw.random.between(0, 3));
  return builder.ops(Op::kWhile, in, attrs)[draw.random.chance(80) ? 1 : 0];
}

// ---- scan ----

Expr scan_node(Draw& draw, Builder& builder) {
  int64_t n_carry = draw.random.between(0, 3), n_xs = draw.random.between(n_carry ? 0 : 1, 2);
  std::vector<Expr> in = random_arguments(draw, builder, n_carry);
  Dim length = draw.dim();
  for (int64_t i = 0; i < n_xs; i++) {
    Expr x = draw.any(builder, DTypeSet{draw.float_type()}, 1);
    if (i > 0) x = draw.value(builder, draw.float_type(), {length, 2});
    if (!x.valid()) return {};
    length = x.dim(0);
    in.push_back(x);
  }
  for (Expr extra : random_arguments(draw, builder, draw.random.between(0, 2))) in.push_back(extra);
  auto types = types_of(in);
  if (!types) return {};
  for (size_t i = 0; i < static_cast<size_t>(n_xs); i++) {
    std::vector<Dim>& dims = (*types)[static_cast<size_t>(n_carry) + i].dims;
    dims.erase(dims.begin());
  }
  std::vector<ValueType> results(types->begin(), types->begin() + n_carry);
  for (int64_t ys = draw.random.between(n_carry ? 0 : 1, 2); ys > 0; ys--) results.push_back(draw.random.pick(*types));
  auto body = branch(draw, "body", *types, results);
  if (!body) return {};
  NamedAttrs attrs{{"body", shared_body(draw, std::move(*body))}, {"n_carry", n_carry}, {"n_xs", n_xs}};
  if (n_xs == 0) attrs.emplace_back("length", draw.attribute_dim(length));
  if (draw.random.chance(30)) attrs.emplace_back("reverse", int64_t{1});
  Outputs out = builder.ops(Op::kScan, in, attrs);
  return out[static_cast<size_t>(draw.random.below(static_cast<int64_t>(out.size())))];
}

}  // namespace

bool add_control(Draw& draw) {
  if (draw.depth >= kDeepest) return false;
  return draw.attempt([](Draw& of, Builder& builder) {
    static constexpr Spelling kControl[] = {if_node, while_node, scan_node};
    return of.random.pick(kControl)(of, builder);
  });
}

}  // namespace rlx::test
