// SPDX-License-Identifier: Apache-2.0
#include "ops/expr.h"

#include <algorithm>
#include <cmath>

#include "base/lasting.h"
#include "base/visit.h"
#include "ir/normal.h"
#include "ir/outputs.h"

namespace rlx {

const ValueType& Expr::type() const {
  // The type of an invalid Expr: what is built on it is invalid too.
  static const ValueType& kNothing = lasting([] { return ValueType(); });
  return valid() ? builder_->graph().type(value_) : kNothing;
}

const Dim& Expr::dim(int64_t axis) const {
  static const Dim& kZero = lasting([] { return Dim(0); });
  auto at = checked_axis(axis, rank());
  return at.ok() ? dims()[static_cast<size_t>(*at)] : kZero;
}

Expr Builder::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
  return Expr(this, kInvalid);
}

static Result<std::vector<Value>> add_plainly(Graph& graph, const OpInfo& info, std::span<const Value> in, Attrs attrs,
                                              std::string name) {
  return outputs_of(graph, RLX_TRY(graph.add(info, in, std::move(attrs), std::move(name))).node);
}

// As many as a node of the row has outputs, at least one.
static Outputs invalid_outputs(Builder& builder, const OpInfo& info) {
  return Outputs(std::max<size_t>(info.signature.out.size(), 1), Expr(&builder, kInvalid));
}

Outputs Builder::add(const OpInfo& info, std::span<const Expr> in, Attrs attrs, std::string name) {
  std::vector<Value> values;
  for (const Expr& input : in) {
    if (input.value() == kInvalid) {
      if (status_.ok()) status_ = Status(Code::kInternal, std::string(info.name) + ": an input was never built");
      return invalid_outputs(*this, info);
    }
    values.push_back(input.value());
  }
  if (add_ && !info.attrs.empty()) {  // a hook looks nodes up by the normal form of their attributes
    auto normal = normal_attrs(info, input_types(*graph_, info, values), std::move(attrs));
    if (!normal.ok()) {
      fail(graph_->with_subject(info, "", std::move(normal).status()));
      return invalid_outputs(*this, info);
    }
    attrs = std::move(*normal);
  }
  auto added = add_ ? add_(info, values, std::move(attrs), std::move(name))
                    : add_plainly(*graph_, info, values, std::move(attrs), std::move(name));
  if (!added.ok()) {
    fail(std::move(added).status());
    return invalid_outputs(*this, info);
  }
  Outputs outputs;
  for (Value value : *added) outputs.push_back(wrap(value));
  return outputs;
}

Outputs Builder::ops(Op op, std::span<const Expr> in, const NamedAttrs& attrs, std::string name) {
  const OpInfo& info = graph_->info(op);
  auto bound = bind_attrs(info, attrs);
  if (!bound.ok()) {
    fail(graph_->with_subject(info, "", std::move(bound).status()));
    return invalid_outputs(*this, info);
  }
  return add(info, in, std::move(*bound), std::move(name));
}

Expr Builder::op(Op op, std::initializer_list<Expr> in, const NamedAttrs& attrs) {
  return ops(op, std::span<const Expr>(in.begin(), in.size()), attrs)[0];
}

Expr Builder::constant(Tensor value) {
  return op(Op::kConstant, {}, {{"value", std::move(value)}});
}

static bool holds_exactly(DType integer, double value) {
  return visit<dtypes::I>(integer, [&]<class T>() {
    double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return value == std::floor(value) && value < end && value >= (std::is_signed_v<T> ? -end : 0.0);
  });
}

Expr Builder::scalar(DType dtype, double value) {
  if (dtype == DType::kNone) return Expr(this, kInvalid);
  if (is_integer(dtype) && !holds_exactly(dtype, value))
    return fail(Status(Code::kOption, format("{} is not a value of {}", value, dtype)));
  auto tensor = scalar_tensor(dtype, value);
  return tensor.ok() ? constant(*tensor) : fail(std::move(tensor).status());
}

Expr Builder::size(const Dim& dim, DType dtype) {
  if (dim.is_literal() && dtype != DType::kNone) {
    auto tensor = Tensor::create(DType::kI64, {});
    if (!tensor.ok()) return fail(std::move(tensor).status());
    *tensor->as<int64_t>() = dim.literal();
    return cast(constant(*tensor), dtype);
  }
  // Every size expression is the length of a tensor. This tensor stores nothing.
  Expr carrier = broadcast_to(scalar(DType::kBool, 0), {dim});
  return cast(op(Op::kDimSize, {carrier}, {{"axis", int64_t{0}}}), dtype);
}

// ---- decomposition ----

// For halves: the same composite over f32, rounded once (semantics.md N7).
static Outputs widened(Builder& builder, const OpInfo& info, std::vector<Expr> in, DType half, const Attrs& attrs) {
  for (Expr& input : in)
    if (input && input.valid() && is_half(input.dtype())) input = cast(input, DType::kF32);
  Outputs outputs = builder.add(info, in, attrs);
  for (size_t i = 0; i < outputs.size(); i++) {
    const auto& ports = info.signature.out;
    bool is_statistic = ports[std::min(i, ports.size() - 1)].letter.empty();  // stays f32
    if (!is_statistic && outputs[i].valid() && outputs[i].dtype() == DType::kF32) outputs[i] = cast(outputs[i], half);
  }
  return outputs;
}

Outputs decompose(Builder& builder, const OpInfo& info, std::span<const Expr> in, const Attrs& attrs) {
  std::vector<Expr> inputs(in.begin(), in.end());
  inputs.resize(std::max(inputs.size(), info.signature.in.size()));
  auto is_typed = [](const Expr& input) { return input && input.valid() && is_float(input.dtype()); };
  auto first = std::find_if(inputs.begin(), inputs.end(), is_typed);
  if (info.is(kWide) && first != inputs.end() && is_half(first->dtype()))
    return widened(builder, info, inputs, first->dtype(), attrs);
  return info.decompose(Inputs(builder, inputs), attrs);
}

Result<Outputs> decompose_aside(Builder& builder, const OpInfo& info, std::span<const ValueType* const> types,
                                const Attrs& attrs) {
  Graph& aside = builder.graph();
  std::vector<Expr> in;
  for (size_t i = 0; i < types.size(); i++) {
    if (!types[i]) {
      in.push_back(Expr(&builder, kAbsent));
      continue;
    }
    auto leaf = is_block(types[i]->dtype) ? aside.add_param("in" + std::to_string(i), types[i]->dtype, types[i]->dims)
                                          : aside.add_input("in" + std::to_string(i), types[i]->dtype, types[i]->dims);
    in.push_back(builder.wrap(RLX_TRY(std::move(leaf))));
  }
  Outputs outputs = decompose(builder, info, in, attrs);
  RLX_TRY(builder.status());
  return outputs;
}

// Drops the attribute `symbol` if the node decides no size because its results are padded.
static void drop_idle_symbol(InferArgs& args, const Graph& definition) {
  if (!args.info.decides_sizes || !args.attrs.has("symbol")) return;
  std::vector<DecidedSize> decided = decided_sizes(definition);
  bool is_decided = std::any_of(decided.begin(), decided.end(),
                                [&](const DecidedSize& size) { return size.symbol == args.attrs.str("symbol"); });
  if (!is_decided) args.attrs = args.attrs.with("symbol", std::monostate());
}

Status infer_composite(InferArgs& args) {
  Graph aside("", &args.graph.table(), &args.graph);
  aside.set_definition();
  Builder builder(aside);
  Outputs outputs = RLX_TRY(decompose_aside(builder, args.info, args.in, args.attrs));
  if (outputs.empty()) return args.fail(Code::kShape, "its definition gives nothing for inputs of these types");
  args.out.clear();
  for (const Expr& output : outputs) args.out.push_back(output.type());
  drop_idle_symbol(args, aside);
  for (const auto& [symbol, range] : aside.symbols()) {
    // A composite with a size that contents decide keeps the symbol's name, as `dynamic_iota` does.
    if (!args.graph.has_symbol(symbol) && args.info.decides_sizes && !args.attrs.has("symbol"))
      args.attrs = args.attrs.with("symbol", symbol);
    RLX_TRY(args.graph.declare_symbol(symbol, range));
  }
  for (const Guard& guard : aside.guards()) RLX_TRY(args.require(guard.relation, guard.a, guard.b));
  return {};
}

// ---- arithmetic ----

Expr unary(Op op, Expr x) {
  return x.builder().op(op, {x});
}
Expr binary(Op op, Expr a, Expr b) {
  return a.builder().op(op, {a, b});
}
Expr scalar_like(Expr x, double value) {
  return x.builder().scalar(x.dtype(), value);
}
Expr logical_not(Expr x) {
  return binary(Op::kBitXor, x, x.builder().scalar(DType::kBool, 1));
}
Expr where(Expr condition, Expr a, Expr b) {
  return a.builder().op(Op::kWhere, {condition, a, b});
}

Expr operator+(Expr a, Expr b) {
  return binary(Op::kAdd, a, b);
}
Expr operator-(Expr a, Expr b) {
  return binary(Op::kSub, a, b);
}
Expr operator*(Expr a, Expr b) {
  return binary(Op::kMul, a, b);
}
Expr operator/(Expr a, Expr b) {
  return binary(Op::kDiv, a, b);
}
Expr operator-(Expr x) {
  return unary(Op::kNeg, x);
}
Expr operator+(Expr a, double b) {
  return a + scalar_like(a, b);
}
Expr operator-(Expr a, double b) {
  return a - scalar_like(a, b);
}
Expr operator*(Expr a, double b) {
  return a * scalar_like(a, b);
}
Expr operator/(Expr a, double b) {
  return a / scalar_like(a, b);
}
Expr operator+(double a, Expr b) {
  return scalar_like(b, a) + b;
}
Expr operator-(double a, Expr b) {
  return scalar_like(b, a) - b;
}
Expr operator*(double a, Expr b) {
  return scalar_like(b, a) * b;
}
Expr operator/(double a, Expr b) {
  return scalar_like(b, a) / b;
}

// ---- shapes and reductions ----

Expr cast(Expr x, DType to) {
  return x.dtype() == to ? x : x.builder().op(Op::kCast, {x}, {{"to", to}});
}
Expr reshape(Expr x, std::vector<Dim> dims) {
  return x.builder().op(Op::kReshape, {x}, {{"shape", std::move(dims)}});
}
Expr transpose(Expr x, Axes perm) {
  return x.builder().op(Op::kTranspose, {x}, {{"perm", std::move(perm)}});
}
Expr broadcast_to(Expr x, std::vector<Dim> dims) {
  return x.builder().op(Op::kBroadcastTo, {x}, {{"shape", std::move(dims)}});
}
Expr concat(std::span<const Expr> parts, int64_t axis) {
  return parts[0].builder().ops(Op::kConcat, parts, {{"axis", axis}})[0];
}
Expr slice(Expr x, int64_t axis, Dim start, Dim end, int64_t step) {
  return x.builder().op(Op::kSlice, {x},
                        {{"starts", std::vector<Dim>{start}},
                         {"ends", std::vector<Dim>{end}},
                         {"axes", Axes{axis}},
                         {"steps", Axes{step}}});
}
Expr unsqueeze(Expr x, int64_t axis) {
  std::vector<Dim> dims = x.dims();
  auto at = checked_axis(axis, dims.size() + 1);
  if (!at.ok()) return x.builder().fail(std::move(at).status());
  dims.insert(dims.begin() + *at, Dim(1));
  return reshape(x, dims);
}
Expr gather(Expr x, Expr indices, int64_t axis) {
  return x.builder().op(Op::kGather, {x, indices}, {{"axis", axis}});
}
Expr iota(Builder& builder, std::vector<Dim> dims, int64_t axis, DType dtype) {
  return builder.op(Op::kIota, {}, {{"shape", std::move(dims)}, {"axis", axis}, {"dtype", dtype}});
}
Expr reduce(Expr x, const char* fn, Axes axes, KeepDims keep_dims) {
  return x.builder().op(Op::kReduce, {x},
                        {{"fn", fn}, {"axes", std::move(axes)}, {"keep_dims", static_cast<int64_t>(keep_dims)}});
}
Expr cumulative(Expr x, const char* fn, int64_t axis) {
  return x.builder().op(Op::kCumulative, {x}, {{"fn", fn}, {"axis", axis}});
}
Expr cumulative_before(Expr x, const char* fn, int64_t axis) {
  return x.builder().op(Op::kCumulative, {x}, {{"fn", fn}, {"axis", axis}, {"exclusive", int64_t{1}}});
}
Expr as_index(Expr position, Expr n) {
  return cast(maximum(minimum(position, n - 1.0), 0), DType::kI64);
}

Expr mean(Expr x, Axes axes) {
  return x.builder().op(Op::kMean, {x}, {{"axes", std::move(axes)}, {"keep_dims", int64_t{1}}});
}
Expr matmul(Expr a, Expr b, Transposed transposed) {
  return a.builder().op(Op::kMatmul, {a, b},
                        {{"transpose_a", int64_t{transposed.a}}, {"transpose_b", int64_t{transposed.b}}});
}
Expr swap_last_axes(Expr x) {
  Axes perm = trailing_axes(0, x.rank());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(x, perm);
}
Expr stop_gradient(Expr x) {
  return unary(Op::kStopGradient, x);
}

Axes trailing_axes(int64_t first, size_t rank) {
  Axes axes;
  for (int64_t axis = first; axis < static_cast<int64_t>(rank); axis++) axes.push_back(axis);
  return axes;
}

// ---- checked sizes ----

bool require(Expr x, Guard::Relation relation, const Dim& a, const Dim& b) {
  Status status = x.builder().graph().add_guard({relation, a, b, "size"});
  if (status.ok()) return true;
  x.builder().fail(std::move(status));
  return false;
}

// A size of x that must equal another one.
static auto agree_in(Expr x) {
  return [x](const Dim& expected, const Dim& got) -> Result<Dim> {
    RLX_TRY(x.builder().graph().add_guard({Guard::kEqual, got, expected, "size"}));
    return expected;
  };
}

// Fails, and returns false.
static bool refuse_shape(Expr x, std::string_view what, std::string_view fault, std::span<const Dim> dims) {
  std::string expected = text_of({dims.begin(), dims.end()});
  x.builder().fail(Status(Code::kShape, format("{} is {}, which {} {}", what, x.dims(), fault, expected))
                       .with("input", what)
                       .with("expected", expected)
                       .with("got", text_of(x.dims())));
  return false;
}

bool require_shape(Expr x, std::string_view what, std::span<const Dim> dims) {
  if (!x.valid()) return false;
  bool fits = x.rank() == dims.size();
  for (size_t i = 0; i < x.rank() && fits; i++) fits = agree_in(x)(dims[i], x.dims()[i]).ok();
  return fits || refuse_shape(x, what, "is not", dims);
}

bool require_stretch(Expr x, std::string_view what, std::span<const Dim> dims) {
  if (!x.valid()) return false;
  return stretch(x.dims(), dims, agree_in(x)).ok() || refuse_shape(x, what, "does not stretch to", dims);
}

std::optional<Dim> divided(Expr x, const Dim& a, const Dim& b) {
  if (auto exact = exact_quotient(a, b)) return exact;
  Dim quotient = floor_div(a, b);
  if (b.is(0) || !require(x, Guard::kEqual, a, quotient * b)) return std::nullopt;
  return quotient;
}

}  // namespace rlx
