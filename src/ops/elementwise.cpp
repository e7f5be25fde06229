// SPDX-License-Identifier: Apache-2.0
// Elementwise primitives: one line of code defines each, for every dtype of its row. Integers wrap and never fault,
// floats are IEEE, and NaN wins in max and min (semantics.md N1-N3).
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/eval.h"

namespace rlx {

// ---- inference ----

Status infer_elementwise(InferArgs& args) {
  std::vector<Dim> dims = args.in.empty() ? std::vector<Dim>() : args.in[0]->dims;
  for (const ValueType* in : args.in)
    if (dims != in->dims) dims = RLX_TRY(args.broadcast(dims, in->dims));
  args.out[0].dims = std::move(dims);
  return {};
}

Status infer_abs(InferArgs& args) {
  DType from = args.in[0]->dtype;
  args.out[0] = {from == DType::kC64 ? DType::kF32 : from == DType::kC128 ? DType::kF64 : from, args.dims()};
  return {};
}

Status infer_cast(InferArgs& args) {
  DType from = args.in[0]->dtype, to = args.attrs.dtype("to");
  if (is_complex(from) && !is_complex(to))
    return args.fail(Code::kDtype, "a complex value casts to no real type; use real or abs").with("got", name(to));
  args.out[0] = {to, args.dims()};
  return {};
}

// ---- element arithmetic ----

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Wrapping integer arithmetic: in the unsigned type of at least int's width, where overflow is defined.
template <class T, class Fn>
static T wrapped(T a, T b, Fn fn) {
  using Wide = std::common_type_t<Unsigned<T>, unsigned>;
  return static_cast<T>(fn(static_cast<Wide>(a), static_cast<Wide>(b)));
}

template <class T>
static T quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return static_cast<T>(~T(0));
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return wrapped(T(0), a, [](auto x, auto y) { return x - y; });
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
}

template <class T>
static T remainder_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
}

template <class T>
static T power(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>)
      if (b < 0) return a == 1 ? T(1) : a == T(-1) ? (b & 1 ? T(-1) : T(1)) : a == 0 ? static_cast<T>(-1) : T(0);
    T result = 1;
    for (auto exponent = static_cast<Unsigned<T>>(b); exponent; exponent >>= 1) {
      if (exponent & 1) result = wrapped(result, a, [](auto x, auto y) { return x * y; });
      a = wrapped(a, a, [](auto x, auto y) { return x * y; });
    }
    return result;
  } else {
    return std::pow(a, b);
  }
}

template <class T>
static T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return a < b ? b : a;
}

template <class T>
static T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return b < a ? b : a;
}

// ---- from a function of elements to an eval ----

template <DTypeSet kSet, class Fn>
static Status unary(EvalArgs& args, Fn fn) {
  visit<kSet>(args.in[0].dtype, [&]<class T>() { map1<T, T>(args.out[0], args.in[0], fn); });
  return {};
}

template <DTypeSet kSet, class Fn>
static Status binary(EvalArgs& args, Fn fn) {
  visit<kSet>(args.in[0].dtype, [&]<class T>() { map2<T, T, T>(args.out[0], args.in[0], args.in[1], fn); });
  return {};
}

template <DTypeSet kSet, class Fn>
static Status compare(EvalArgs& args, Fn fn) {
  visit<kSet>(args.in[0].dtype, [&]<class T>() { map2<bool8, T, T>(args.out[0], args.in[0], args.in[1], fn); });
  return {};
}

using namespace dtypes;

Status eval_neg(EvalArgs& args) {
  return unary<N | Z>(args, []<class T>(T x) {
    if constexpr (std::is_integral_v<T>)
      return wrapped(T(0), x, [](auto a, auto b) { return a - b; });
    else
      return -x;
  });
}

Status eval_abs(EvalArgs& args) {
  visit<N | Z>(args.in[0].dtype, [&]<class T>() {
    if constexpr (is_complex_type<T>)
      map1<typename T::value_type, T>(args.out[0], args.in[0], [](T x) { return std::hypot(x.real(), x.imag()); });
    else
      map1<T, T>(args.out[0], args.in[0], []<class C>(C x) {
        if constexpr (std::is_floating_point_v<C>)
          return std::fabs(x);
        else if constexpr (std::is_signed_v<C>)
          return x < 0 ? wrapped(C(0), x, [](auto a, auto b) { return a - b; }) : x;
        else
          return x;
      });
  });
  return {};
}

Status eval_floor(EvalArgs& args) {
  return unary<F>(args, [](auto x) { return std::floor(x); });
}
Status eval_round(EvalArgs& args) {
  return unary<F>(args, [](auto x) { return std::nearbyint(x); });
}
Status eval_exp(EvalArgs& args) {
  return unary<F | Z>(args, [](auto x) { return std::exp(x); });
}
Status eval_expm1(EvalArgs& args) {
  return unary<F>(args, [](auto x) { return std::expm1(x); });
}
Status eval_log(EvalArgs& args) {
  return unary<F | Z>(args, [](auto x) { return std::log(x); });
}
Status eval_log1p(EvalArgs& args) {
  return unary<F>(args, [](auto x) { return std::log1p(x); });
}
Status eval_sqrt(EvalArgs& args) {
  return unary<F | Z>(args, [](auto x) { return std::sqrt(x); });
}
Status eval_sin(EvalArgs& args) {
  return unary<F>(args, [](auto x) { return std::sin(x); });
}
Status eval_cos(EvalArgs& args) {
  return unary<F>(args, [](auto x) { return std::cos(x); });
}
Status eval_tanh(EvalArgs& args) {
  return unary<F>(args, [](auto x) { return std::tanh(x); });
}
Status eval_erf(EvalArgs& args) {
  return unary<F>(args, [](auto x) { return std::erf(x); });
}
Status eval_stop_gradient(EvalArgs& args) {
  visit<A>(args.in[0].dtype, [&]<class T>() { map1<T, T>(args.out[0], args.in[0], [](auto x) { return x; }); });
  return {};
}

Status eval_add(EvalArgs& args) {
  return binary<N | Z>(args, []<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return wrapped(a, b, [](auto x, auto y) { return x + y; });
    else
      return a + b;
  });
}

Status eval_sub(EvalArgs& args) {
  return binary<N | Z>(args, []<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return wrapped(a, b, [](auto x, auto y) { return x - y; });
    else
      return a - b;
  });
}

Status eval_mul(EvalArgs& args) {
  return binary<N | Z>(args, []<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return wrapped(a, b, [](auto x, auto y) { return x * y; });
    else
      return a * b;
  });
}

Status eval_div(EvalArgs& args) {
  return binary<N | Z>(args, [](auto a, auto b) { return quotient(a, b); });
}
Status eval_rem(EvalArgs& args) {
  return binary<N>(args, [](auto a, auto b) { return remainder_of(a, b); });
}
Status eval_pow(EvalArgs& args) {
  return binary<N>(args, [](auto a, auto b) { return power(a, b); });
}
Status eval_max(EvalArgs& args) {
  return binary<N | B>(args, [](auto a, auto b) { return larger(a, b); });
}
Status eval_min(EvalArgs& args) {
  return binary<N | B>(args, [](auto a, auto b) { return smaller(a, b); });
}
Status eval_atan2(EvalArgs& args) {
  return binary<F>(args, [](auto a, auto b) { return std::atan2(a, b); });
}
Status eval_bit_and(EvalArgs& args) {
  return binary<I | B>(args, []<class T>(T a, T b) { return static_cast<T>(a & b); });
}
Status eval_bit_or(EvalArgs& args) {
  return binary<I | B>(args, []<class T>(T a, T b) { return static_cast<T>(a | b); });
}
Status eval_bit_xor(EvalArgs& args) {
  return binary<I | B>(args, []<class T>(T a, T b) { return static_cast<T>(a ^ b); });
}

Status eval_shl(EvalArgs& args) {
  return binary<I>(args, []<class T>(T a, T b) {
    auto by = static_cast<Unsigned<T>>(b);
    return by >= sizeof(T) * 8 ? T(0) : wrapped(a, b, [](auto x, auto y) { return x << y; });
  });
}

Status eval_shr(EvalArgs& args) {
  return binary<I>(args, []<class T>(T a, T b) {
    auto by = static_cast<Unsigned<T>>(b);
    constexpr auto kBits = sizeof(T) * 8;
    if (by >= kBits) return std::is_signed_v<T> && a < 0 ? static_cast<T>(~T(0)) : T(0);
    return static_cast<T>(a >> by);
  });
}

Status eval_eq(EvalArgs& args) {
  return compare<D>(args, [](auto a, auto b) { return a == b; });
}
Status eval_lt(EvalArgs& args) {
  return compare<N | B>(args, [](auto a, auto b) { return a < b; });
}
Status eval_le(EvalArgs& args) {
  return compare<N | B>(args, [](auto a, auto b) { return a <= b; });
}

Status eval_where(EvalArgs& args) {
  const Operand &cond = args.in[0], &a = args.in[1], &b = args.in[2], &out = args.out[0];
  visit<A>(a.dtype, [&]<class T>() {
    Odometer<3> at(out.dims, {broadcast_strides(cond.dims, out.dims), broadcast_strides(a.dims, out.dims),
                              broadcast_strides(b.dims, out.dims)});
    int64_t count = out.count();
    for (int64_t i = 0; i < count; i++, at.next())
      out.as<T>()[i] = cond.as<bool8>()[at.offset(0)] ? a.as<T>()[at.offset(1)] : b.as<T>()[at.offset(2)];
  });
  return {};
}

// ---- cast (semantics.md T8) ----

template <class To, class From>
static To float_to_integer(From x) {
  if (std::isnan(x)) return 0;
  // 2^digits is exact in every float type, max() is not: compare against it.
  const From end = std::ldexp(From(1), std::numeric_limits<To>::digits);
  if (x >= end) return std::numeric_limits<To>::max();
  if (x <= (std::is_signed_v<To> ? -end : From(0))) return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

template <class To, class From>
static To cast_element(From x, [[maybe_unused]] bool saturate) {
  if constexpr (std::is_same_v<To, bool8>) {
    return x != From(0);
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>)
      return To(x);
    else
      return To();  // refused by inference
  } else if constexpr (is_complex_type<To>) {
    return To(static_cast<typename To::value_type>(x), 0);
  } else if constexpr (is_small_float<To>) {
    float narrow = round_to_odd(x);
    if constexpr (requires { To::saturating(narrow); })
      if (saturate) return To::saturating(narrow);
    return To(narrow);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return float_to_integer<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// An integer that no f64 holds becomes the neighbour whose last bit is set, as round_to_odd does for f32.
template <std::integral T>
static double odd_double(T value) {
  bool negative = std::is_signed_v<T> && value < T{};
  uint64_t size = negative ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  int dropped = std::max(static_cast<int>(std::bit_width(size)) - std::numeric_limits<double>::digits, 0);
  uint64_t kept = size >> dropped;
  if (kept << dropped != size) kept |= 1;
  double rounded = std::ldexp(static_cast<double>(kept), dropped);
  return negative ? -rounded : rounded;
}

// In the oracle too, an integer that the declared dtype does not hold is rounded once: what is folded and what is
// computed then agree. f32 is rounded to here, halves only where the result leaves the oracle.
static void cast_integers_in_oracle(EvalArgs& args) {
  bool is_half_type = is_half(args.declared_out[0]);
  auto number = [=](auto x) { return is_half_type ? odd_double(x) : static_cast<float>(x); };
  visit<I>(args.in[0].dtype, [&]<class From>() {
    if (is_complex(args.out[0].dtype))
      map1<std::complex<double>, From>(args.out[0], args.in[0], number);
    else
      map1<double, From>(args.out[0], args.in[0], number);
  });
}

Status eval_cast(EvalArgs& args) {
  bool saturate = args.attrs.flag("saturate");
  if (args.in[0].dtype == args.out[0].dtype) return eval_stop_gradient(args);  // the identity: even inf stays
  bool is_widened = args.declared_out[0] != args.out[0].dtype;
  if (is_widened && dtypes::I.has(args.in[0].dtype)) {
    cast_integers_in_oracle(args);
    return {};
  }
  visit<A>(args.in[0].dtype, [&]<class From>() {
    visit<A>(args.out[0].dtype, [&]<class To>() {
      map1<To, From>(args.out[0], args.in[0], [=](auto x) { return cast_element<To>(x, saturate); });
    });
  });
  return {};
}

}  // namespace rlx
