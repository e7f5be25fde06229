// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that work element by element. Most are one op of ours. Those that may compute shapes also have a fold
// on sizes.
#include "import/onnx/call.h"
#include "import/onnx/e2m1.h"
#include "import/onnx/fold.h"
#include "import/onnx/tensor.h"

namespace rlx::onnx {

namespace {

// The attributes that are numbers, by the row.
NamedAttrs number_attrs(Call& call) {
  NamedAttrs attrs;
  for (const AttrRow& row : call.kind().attrs)
    if (row.theirs) attrs.emplace_back(row.ours, call.f64(row.theirs, row.fallback));
  return attrs;
}

// Every input to the op of the same meaning.
void build_same(Call& call) {
  std::vector<Expr> in;
  for (size_t i = 0; i < call.inputs(); i++) in.push_back(call.in(i));
  call.out(0, call.ops(call.kind().op, in, number_attrs(call))[0]);
}

// Integers and 8-bit floats, which ONNX takes and our op does not, as a dtype that holds them.
Expr widened(const Expr& x) {
  if (!x.valid()) return x;
  if (dtypes::E.has(x.dtype())) return cast(x, DType::kF32);
  return is_integer(x.dtype()) ? cast(x, DType::kF64) : x;
}

// Of integers, the result is rounded towards 0.
void build_in_floats(Call& call) {
  call.out(0, cast(call.op(call.kind().op, {widened(call.in(0))}, number_attrs(call)), call.type(0).dtype));
}

void build_is_nan(Call& call) {
  call.out(0, call.op("is_nan", {widened(call.in(0))}));
}

// Before opset 6 the defaults were rounded.
void build_selu(Call& call) {
  bool is_rounded = call.opset() < 6;
  double alpha = call.f64("alpha", is_rounded ? 1.67320000171661376953125 : 1.67326319217681884765625);
  double gamma = call.f64("gamma", is_rounded ? 1.05069994926452636718750 : 1.05070102214813232421875);
  call.out(0, call.op("selu", {call.in(0)}, {{"alpha", alpha}, {"gamma", gamma}}));
}

// Before opset 7 the second operand is broadcast only if 'broadcast' is set, from 'axis' on.
Expr aligned_second(Call& call) {
  Expr a = call.in(0), b = call.in(1);
  bool aligns = call.opset() < 7 && call.i64("broadcast", 0) != 0;
  if (!aligns || !call.has_attr("axis")) return b;
  int64_t axis = call.axis(call.i64("axis", 0), a.rank());
  std::vector<Dim> dims = b.dims();
  while (static_cast<size_t>(axis) + dims.size() < a.rank()) dims.emplace_back(1);
  return reshape(b, dims);
}

void build_pair(Call& call) {
  Expr a = call.in(0), b = aligned_second(call);
  if (call.kind().op == "pow") b = cast(b, a.dtype());  // the exponent may have a dtype of its own (T1)
  call.out(0, call.op(call.kind().op, {a, b}));
}

// A power of an integer to a float, a root for example, is computed in doubles and truncated.
void build_pow(Call& call) {
  Expr a = call.in(0), b = call.in(1);
  if (!a.valid() || !b.valid()) return;
  if (!is_integer(a.dtype()) || !is_float(b.dtype())) return build_pair(call);
  call.out(0, cast(binary(Op::kPow, cast(a, DType::kF64), cast(b, DType::kF64)), a.dtype()));
}

// max, min, add of one or more.
void build_chain(Call& call) {
  Expr y = call.in(0);
  for (size_t i = 1; i < call.inputs(); i++) y = call.op(call.kind().op, {y, call.in(i)});
  call.out(0, y);
}

void build_mean(Call& call) {
  Expr y = call.in(0);
  for (size_t i = 1; i < call.inputs(); i++) y = y + call.in(i);
  call.out(0, call.inputs() == 1 ? y : y / static_cast<double>(call.inputs()));
}

// a > b is b < a.
void build_swapped(Call& call) {
  call.out(0, call.op(call.kind().op, {aligned_second(call), call.in(0)}));
}

// Before opset 7 the slope was one number, or one a channel.
void build_prelu(Call& call) {
  Expr x = call.in(0), slope = call.in(1);
  if (call.opset() < 7 && x.valid() && slope.valid() && slope.rank() == 1 && x.rank() > 1 && !slope.dim(0).is(1)) {
    std::vector<Dim> dims(x.rank() - 1, Dim(1));
    dims[0] = slope.dim(0);
    slope = reshape(slope, dims);
  }
  bool is_integer = x.valid() && slope.valid() && !is_float(x.dtype());
  call.out(0, is_integer ? where(less(x, 0), x * slope, x) : call.op("prelu", {x, slope}));
}

void build_not(Call& call) {
  call.out(0, binary(Op::kBitXor, call.in(0), call.builder().scalar(DType::kBool, 1)));
}

void build_reciprocal(Call& call) {
  call.out(0, 1.0 / call.in(0));
}

void build_mod(Call& call) {
  bool truncates = call.i64("fmod", 0) != 0;
  call.out(0, call.op(truncates ? "rem" : "floor_mod", {call.in(0), call.in(1)}));
}

void build_bit_shift(Call& call) {
  std::string_view direction = call.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") call.fail(Code::kData, "'direction' is neither LEFT nor RIGHT");
  call.out(0, binary(direction == "LEFT" ? Op::kShl : Op::kShr, call.in(0), call.in(1)));
}

// Casts x to `to`, or, with `bits`, to numbers of that few bits: x is rounded to an integer (of two as near to the even
// one), of which only the low bits stay; the highest of them is the sign.
void put_cast(Call& call, Expr x, DType to, int bits, bool saturate) {
  if (!x.valid()) return;
  if (is_e2m1(to, bits)) {
    call.out(0, is_e2m1(x.dtype(), call.bits(0)) ? x : to_e2m1(call, x));
    return call.set_bits(0, bits);
  }
  if (bits == 0 || (bits == call.bits(0) && x.dtype() == to)) {
    if (x.dtype() != to) x = call.op("cast", {x}, {{"to", to}, {"saturate", int64_t{saturate}}});
  } else {
    Expr unused = call.builder().scalar(DType::kI8, 8 - bits);
    x = binary(Op::kShl, cast(is_float(x.dtype()) ? cast(call.op("round", {x}), DType::kI32) : x, DType::kI8), unused);
    x = to == DType::kI8 ? binary(Op::kShr, x, unused)
                         : binary(Op::kShr, cast(x, to), call.builder().scalar(to, 8 - bits));
  }
  call.out(0, x);
  call.set_bits(0, bits);
}

void build_cast(Call& call) {
  call.ignore("round_mode");  // only for float8e8m0, which is refused
  bool saturate = call.i64("saturate", 1) != 0;
  int32_t type = call.element_type("to");
  auto to = dtype_of(type);
  if (!to.ok()) return call.fail(to.status().code(), std::string(to.status().message()));
  Expr x = call.in(0);
  put_cast(call, x, *to, bits_of(type), saturate);
}

void build_cast_like(Call& call) {
  call.ignore("round_mode");
  bool saturate = call.i64("saturate", 1) != 0;
  Expr x = call.in(0);
  DType to = call.type(1).dtype;
  put_cast(call, x, to, call.bits(1), saturate);
}

void build_is_inf(Call& call) {
  int64_t pos = call.i64("detect_positive", 1), neg = call.i64("detect_negative", 1);
  call.out(0, call.op("is_inf", {widened(call.in(0))}, {{"pos", pos}, {"neg", neg}}));
}

// Before opset 11 bounds are attributes; since then they are optional inputs.
void build_clip(Call& call) {
  Expr x = call.in(0), lo = call.in(1), hi = call.in(2);
  if (call.opset() < 11) {
    if (call.has_attr("min")) lo = scalar_like(x, call.f64("min", 0));
    if (call.has_attr("max")) hi = scalar_like(x, call.f64("max", 0));
  }
  if (!lo && !hi) return call.out(0, x);
  call.out(0, call.op("clamp", {x, lo, hi}));
}

void build_gelu(Call& call) {
  std::string approx(call.text("approximate", "none"));
  call.out(0, call.op("gelu", {call.in(0)}, {{"approx", approx}}));
}

void build_bit_cast(Call& call) {
  auto to = dtype_of(static_cast<int32_t>(call.i64("to", 0)));
  if (!to.ok()) return call.fail(to.status().code(), std::string(to.status().message()));
  Expr x = call.in(0);
  if (!x.valid() || element_bytes(x.dtype()) != element_bytes(*to))
    return call.fail(Code::kData, "the widths of its dtypes differ");
  // A bool has two values only, so its bits are those of a number.
  bool from_bool = x.dtype() == DType::kBool, to_bool = *to == DType::kBool;
  if (from_bool) x = cast(x, DType::kU8);
  DType inner = to_bool ? DType::kU8 : *to;
  if (x.dtype() != inner) x = call.op("bitcast", {x}, {{"to", inner}});
  call.out(0, to_bool ? cast(x, *to) : x);
}

constexpr NodeKind kKinds[] = {
    {"Abs", build_same, "abs"},
    {"Neg", build_same, "neg", fold_neg},
    {"Ceil", build_same, "ceil", fold_identity},
    {"Floor", build_same, "floor", fold_identity},
    {"Round", build_same, "round", fold_identity},
    {"Sign", build_same, "sign"},
    {"Exp", build_same, "exp"},
    {"Log", build_same, "log"},
    {"Sqrt", build_same, "sqrt"},
    {"Erf", build_in_floats, "erf"},
    {"Sin", build_same, "sin"},
    {"Cos", build_same, "cos"},
    {"Tan", build_same, "tan"},
    {"Asin", build_same, "asin"},
    {"Acos", build_same, "acos"},
    {"Atan", build_same, "atan"},
    {"Sinh", build_same, "sinh"},
    {"Cosh", build_same, "cosh"},
    {"Tanh", build_same, "tanh"},
    {"Asinh", build_same, "asinh"},
    {"Acosh", build_same, "acosh"},
    {"Atanh", build_same, "atanh"},
    {"Add", build_pair, "add", fold_add},
    {"Sub", build_pair, "sub", fold_sub},
    {"Mul", build_pair, "mul", fold_mul},
    {"Div", build_pair, "div", fold_div},
    {"Pow", build_pow, "pow"},
    {"Mod", build_mod, "", fold_mod},
    {"Reciprocal", build_reciprocal},
    {"Min", build_chain, "min", fold_min},
    {"Max", build_chain, "max", fold_max},
    {"Sum", build_chain, "add", fold_add},
    {"Mean", build_mean},
    {"And", build_pair, "bit_and", fold_and},
    {"Or", build_pair, "bit_or", fold_or},
    {"Xor", build_pair, "bit_xor"},
    {"Not", build_not, "", fold_not},
    {"BitwiseAnd", build_same, "bit_and"},
    {"BitwiseOr", build_same, "bit_or"},
    {"BitwiseXor", build_same, "bit_xor"},
    {"BitwiseNot", build_same, "bit_not"},
    {"BitShift", build_bit_shift},
    {"Equal", build_pair, "eq", fold_equal},
    {"Less", build_pair, "lt", fold_less},
    {"LessOrEqual", build_same, "le", fold_less_equal},
    {"Greater", build_swapped, "lt", fold_greater},
    {"GreaterOrEqual", build_swapped, "le", fold_greater_equal},
    {"Where", build_same, "where", fold_where},
    {"Cast", build_cast, "", fold_cast},
    {"CastLike", build_cast_like, "", fold_cast_like},
    {"IsNaN", build_is_nan},
    {"IsInf", build_is_inf},
    {"Clip", build_clip},
    {"Relu", build_same, "relu"},
    {"LeakyRelu", build_same, "leaky_relu", nullptr, {{"alpha", "alpha", 0.01}}},
    {"PRelu", build_prelu},
    {"ThresholdedRelu", build_same, "thresholded_relu", nullptr, {{"alpha", "alpha", 1}}},
    {"Elu", build_same, "elu", nullptr, {{"alpha", "alpha", 1}}},
    {"Celu", build_same, "celu", nullptr, {{"alpha", "alpha", 1}}},
    {"Selu", build_selu},
    {"Gelu", build_gelu},
    {"HardSigmoid", build_same, "hard_sigmoid", nullptr, {{"alpha", "alpha", 0.2}, {"beta", "beta", 0.5}}},
    {"HardSwish", build_same, "hard_swish"},
    {"Mish", build_same, "mish"},
    {"Sigmoid", build_same, "sigmoid"},
    {"Softplus", build_same, "softplus"},
    {"Softsign", build_same, "softsign"},
    {"Swish", build_same, "silu", nullptr, {{"alpha", "beta", 1}}},
    {"Shrink", build_in_floats, "shrink", nullptr, {{"lambd", "lambd", 0.5}, {"bias", "bias", 0}}},
    {"BitCast", build_bit_cast},
};

}  // namespace

std::span<const NodeKind> elementwise_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
