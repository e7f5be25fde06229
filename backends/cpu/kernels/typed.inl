// SPDX-License-Identifier: Apache-2.0
// Plain loops that the compiler vectorises, and the walk that copies strided operands for them tile by tile.

#include "backends/cpu/kernels/halves.inl"

#if defined(__clang__)
#define RLX_EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#pragma GCC optimize("O3")
#define RLX_EACH _Pragma("GCC ivdep")
#endif

template <class In, class Out, class Body>
void each_one(const void* a, const void*, const void*, void* y, int64_t n) {
  const auto* x = static_cast<const In*>(a);
  auto* to = static_cast<Out*>(y);
  RLX_EACH for (int64_t i = 0; i < n; ++i) to[i] = Body::template of<Out>(x[i]);
}
template <class In, class Out, class Body>
void each_two(const void* a, const void* b, const void*, void* y, int64_t n) {
  const auto *first = static_cast<const In*>(a), *second = static_cast<const In*>(b);
  auto* to = static_cast<Out*>(y);
  RLX_EACH for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Out>(Body::of(first[i], second[i]));
}
template <class T>
void each_where(const void* condition, const void* a, const void* b, void* y, int64_t n) {
  const auto* is = static_cast<const uint8_t*>(condition);
  const auto *yes = static_cast<const T*>(a), *no = static_cast<const T*>(b);
  auto* to = static_cast<T*>(y);
  RLX_EACH for (int64_t i = 0; i < n; ++i) {
    T if_true = yes[i], if_false = no[i];
    to[i] = is[i] ? if_true : if_false;
  }
}

#include "backends/cpu/kernels/typed_bodies.inl"

// ---- casts from and to halves, by way of f32

inline constexpr int64_t kHalfBlock = 256;

template <class Half, class To>
void each_from_half(const void* a, const void*, const void*, void* y, int64_t n) {
  alignas(64) float wide[kHalfBlock];
  for (int64_t first = 0; first < n; first += kHalfBlock) {
    int64_t count = min(n - first, kHalfBlock);
    const Half* from = static_cast<const Half*>(a) + first;
    in_vectors(count, [&](int64_t i, int64_t some) { store(wide + i, load_halves(from + i, some)); });
    each_one<float, To, Conversion>(wide, nullptr, nullptr, static_cast<To*>(y) + first, count);
  }
}

// As round_to_odd of base/half.h, without branches: the second rounding, to a half, is right then. Of an integer that
// f64 may not hold, the bits that are too low become one bit, which no half holds either.
struct RoundingToOdd {
  template <class, class From>
  static float of(From x) {
    if constexpr (std::is_integral_v<From> && sizeof(From) == sizeof(int64_t)) {
      constexpr From kLow = 0xfff;
      From high = static_cast<From>((x & ~kLow) | ((x & kLow) != 0 ? kLow + 1 : 0));
      x = (std::is_signed_v<From> ? x ^ (x >> 63) : x) >> 52 == 0 ? x : high;
    }
    auto value = static_cast<double>(x);
    auto nearest = static_cast<float>(value), size = std::fabs(nearest);
    auto bits = std::bit_cast<uint32_t>(nearest);
    bits -= static_cast<double>(size) > std::fabs(value) ? 1 : 0;  // back to the value toward zero
    return std::bit_cast<float>(bits | (static_cast<double>(nearest) != value ? 1U : 0U));
  }
};
template <class From, class Half>
void each_to_half(const void* a, const void*, const void*, void* y, int64_t n) {
  alignas(64) float wide[kHalfBlock] = {};
  for (int64_t first = 0; first < n; first += kHalfBlock) {
    int64_t count = min(n - first, kHalfBlock);
    each_one<From, float, RoundingToOdd>(static_cast<const From*>(a) + first, nullptr, nullptr, wide, count);
    in_vectors(count, [&](int64_t i, int64_t some) {
      constexpr bool kIsBf16 = std::is_same_v<Half, bf16>;
      Vec v = load(wide + i);
      store_halves(static_cast<Half*>(y) + first + i, kIsBf16 ? from_bits(to_bf16(v)) : v, kIsBf16, some);
    });
  }
}

// ---- quotients of integers in f64, which divides many at once: exact where it holds both operands

// Makes the result from the quotient, which is right if b is neither 0 nor -1.
struct QuotientOf {
  using Exact = Quotient;
  template <class T>
  static T of(T a, T b, T quotient) {
    quotient = b == static_cast<T>(-1) && std::is_signed_v<T> ? Negative::of(a) : quotient;
    return b == 0 ? static_cast<T>(~T(0)) : quotient;
  }
};
struct RemainderOf {
  using Exact = Remainder;
  template <class T>
  static T of(T a, T b, T quotient) {
    T rest = Sub::of(a, Mul::of(quotient, b));
    rest = b == static_cast<T>(-1) && std::is_signed_v<T> ? T(0) : rest;
    return b == 0 ? a : rest;
  }
};

// Whether f64 holds all of these integers exactly. Cheaper than a test of each: a bit above the 52 lowest ones, in any
// of them, makes the answer no.
template <class T>
bool are_exact_in_f64(const T* a, const T* b, int64_t n) {
  constexpr int kDigits = 52;
  T digits = 0;
  for (int64_t i = 0; i < n; ++i)
    digits |= std::is_signed_v<T> ? (a[i] ^ (a[i] >> 63)) | (b[i] ^ (b[i] >> 63)) : a[i] | b[i];
  return digits >> kDigits == 0;
}

template <class T, class Body>
void each_quotient(const void* a, const void* b, const void*, void* y, int64_t n) {
  constexpr int64_t kBlock = 256;
  const auto *above = static_cast<const T*>(a), *below = static_cast<const T*>(b);
  auto* to = static_cast<T*>(y);
  for (int64_t first = 0; first < n; first += kBlock) {
    int64_t end = min(n, first + kBlock);
    if constexpr (sizeof(T) == sizeof(int64_t)) {
      if (!are_exact_in_f64(above + first, below + first, end - first)) {
        for (int64_t i = first; i < end; ++i) to[i] = Body::Exact::of(above[i], below[i]);
        continue;
      }
    }
    RLX_EACH for (int64_t i = first; i < end; ++i) {
      T one = above[i], two = below[i];
      T divisor = two == 0 || (std::is_signed_v<T> && two == static_cast<T>(-1)) ? T(1) : two;
      to[i] = Body::of(one, two, static_cast<T>(static_cast<double>(one) / static_cast<double>(divisor)));
    }
  }
}
template <class T, class Body>
constexpr TypedFn kEachQuotient = sizeof(T) < sizeof(int32_t) ? each_two<T, T, typename Body::Exact>
                                                              : each_quotient<T, Body>;

// ---- from an op and its types to a loop

template <class T>
TypedFn find_compare(Op op) {
  switch (op) {
    case Op::kEq: return each_two<T, uint8_t, Equal>;
    case Op::kNe: return each_two<T, uint8_t, Unequal>;
    case Op::kLt: return each_two<T, uint8_t, Less>;
    case Op::kLe: return each_two<T, uint8_t, NotMore>;
    case Op::kGt: return each_two<T, uint8_t, More>;
    case Op::kGe: return each_two<T, uint8_t, NotLess>;
    default: return nullptr;
  }
}
template <class T>
TypedFn find_float(Op op) {
  switch (op) {
    case Op::kAdd: return each_two<T, T, Add>;
    case Op::kSub: return each_two<T, T, Sub>;
    case Op::kMul: return each_two<T, T, Mul>;
    case Op::kDiv: return each_two<T, T, Quotient>;
    case Op::kMax: return each_two<T, T, Larger>;
    case Op::kMin: return each_two<T, T, Smaller>;
    case Op::kNeg: return each_one<T, T, Negative>;
    case Op::kAbs: return each_one<T, T, Absolute>;
    case Op::kSqrt: return each_one<T, T, Root>;
    case Op::kFloor: return each_one<T, T, Floor>;
    case Op::kRound: return each_one<T, T, Nearest>;
    default: return nullptr;
  }
}
// Ops that are the same for signed and unsigned numbers.
template <class T>
TypedFn find_bits(Op op) {
  switch (op) {
    case Op::kAdd: return each_two<T, T, Add>;
    case Op::kSub: return each_two<T, T, Sub>;
    case Op::kMul: return each_two<T, T, Mul>;
    case Op::kBitAnd: return each_two<T, T, And>;
    case Op::kBitOr: return each_two<T, T, Or>;
    case Op::kBitXor: return each_two<T, T, Xor>;
    case Op::kBitNot: return each_one<T, T, Complement>;
    case Op::kShl: return each_two<T, T, ShiftLeft>;
    case Op::kNeg: return each_one<T, T, Negative>;
    default: return nullptr;
  }
}
template <class T>
TypedFn find_integer(Op op) {
  switch (op) {
    case Op::kDiv: return kEachQuotient<T, QuotientOf>;
    case Op::kRem: return kEachQuotient<T, RemainderOf>;
    case Op::kMax: return each_two<T, T, Larger>;
    case Op::kMin: return each_two<T, T, Smaller>;
    case Op::kAbs: return each_one<T, T, Absolute>;
    case Op::kShr: return each_two<T, T, ShiftRight>;
    default: return find_bits<std::make_unsigned_t<T>>(op);
  }
}
template <class Body>
constexpr TypedFn kEachTruths = each_two<uint8_t, uint8_t, OfTruths<Body>>;
inline TypedFn find_truth(Op op) {
  switch (op) {
    case Op::kBitAnd:
    case Op::kMin: return kEachTruths<And>;
    case Op::kBitOr:
    case Op::kMax: return kEachTruths<Or>;
    case Op::kNe:
    case Op::kBitXor: return kEachTruths<Xor>;
    case Op::kEq: return kEachTruths<Equal>;
    case Op::kLt: return kEachTruths<Less>;
    case Op::kLe: return kEachTruths<NotMore>;
    case Op::kGt: return kEachTruths<More>;
    case Op::kGe: return kEachTruths<NotLess>;
    case Op::kBitNot: return each_one<uint8_t, uint8_t, Falsehood>;
    default: return nullptr;
  }
}
template <class From>
TypedFn find_cast(DType to) {
  TypedFn found = nullptr;
  if (to == DType::kBool) return each_one<From, uint8_t, Truth>;
  visit<kTypedNumbers>(to, [&]<class To>() { found = each_one<From, To, Conversion>; });
  return found;
}

// Between a half and any other number.
inline TypedFn find_half_cast(DType from, DType to) {
  TypedFn found = nullptr;
  if (kTypedNumbers.has(to))
    visit<kTypedHalves>(
        from, [&]<class Half>() { visit<kTypedNumbers>(to, [&]<class To>() { found = each_from_half<Half, To>; }); });
  else
    visit<kTypedHalves>(
        to, [&]<class Half>() { visit<kTypedNumbers>(from, [&]<class From>() { found = each_to_half<From, Half>; }); });
  return found;
}

inline TypedFn find_where(int64_t element) {
  switch (element) {
    case 1: return each_where<uint8_t>;
    case 2: return each_where<uint16_t>;
    case 4: return each_where<uint32_t>;
    case 8: return each_where<uint64_t>;
    default: return nullptr;
  }
}

inline TypedFn find_typed(Op op, DType from, DType to) {
  if (op == Op::kWhere) return find_where(element_bytes(to));
  if (op == Op::kIsNan) return from == DType::kF64 ? each_one<double, uint8_t, NotANumber> : nullptr;
  if (op == Op::kCast && from == to) return nullptr;
  TypedFn found = nullptr;
  if (from == DType::kBool && op == Op::kCast) {
    if (kTypedNumbers.has(to)) visit<kTypedNumbers>(to, [&]<class To>() { found = each_one<uint8_t, To, OfTruth>; });
    return found;
  }
  if (from == DType::kBool) return to == from ? find_truth(op) : nullptr;
  bool is_half_cast =
      (kTypedHalves.has(from) && kTypedNumbers.has(to)) || (kTypedNumbers.has(from) && kTypedHalves.has(to));
  if (op == Op::kCast && is_half_cast) return find_half_cast(from, to);
  if (!kTypedNumbers.has(from) || !(kTypedNumbers.has(to) || to == DType::kBool)) return nullptr;
  visit<kTypedNumbers>(from, [&]<class T>() {
    if (op == Op::kCast)
      found = find_cast<T>(to);
    else if (to == DType::kBool)
      found = find_compare<T>(op);
    else if constexpr (std::is_floating_point_v<T>)
      found = find_float<T>(op);
    else
      found = find_integer<T>(op);
  });
  return found;
}

// ---- the walk

inline constexpr int64_t kTypedPart = 16384;  // elements
inline constexpr int64_t kTypedTile = 1024;
inline constexpr int64_t kLongRow = 256;  // a tile ends with a row that is at least this long

inline int64_t typed_count(const TypedArgs& p) {
  int64_t count = 1;
  for (int32_t d = 0; d < p.rank; ++d) count *= p.dims[d];
  return count;
}
inline int64_t typed_parts(const TypedArgs& p) {
  return (typed_count(p) + kTypedPart - 1) / kTypedPart;
}

// Copies `count` elements that are `stride` apart.
template <class T>
void gather_run(const T* from, int64_t stride, int64_t count, T* to) {
  if (stride == 0) {
    T value = *from;
    for (int64_t i = 0; i < count; ++i) to[i] = value;
  } else if (stride == 1) {
    __builtin_memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

// Elements [begin, begin + count) in row-major order of the dims; returns where they lie: in place, or in `tile`.
template <class T>
const void* bring(const TypedArgs& p, const TypedInput& input, int64_t begin, int64_t count, std::byte* tile) {
  int64_t at[kMaxRank] = {}, offset = 0, rest = begin;
  int32_t last = p.rank - 1;
  for (int32_t d = last; d >= 0; --d) {
    at[d] = rest % p.dims[d];
    rest /= p.dims[d];
    offset += at[d] * input.strides[d];
  }
  const T* data = reinterpret_cast<const T*>(input.data);
  auto* to = reinterpret_cast<T*>(tile);
  if (input.strides[last] == 1 && p.dims[last] - at[last] >= count) return data + offset;
  while (count > 0) {
    int64_t run = min(p.dims[last] - at[last], count);
    gather_run(data + offset, input.strides[last], run, to);
    to += run;
    count -= run;
    offset += run * input.strides[last];
    at[last] += run;
    for (int32_t d = last; d > 0 && at[d] == p.dims[d]; --d) {  // carry
      offset += input.strides[d - 1] - p.dims[d] * input.strides[d];
      at[d] = 0;
      ++at[d - 1];
    }
  }
  return tile;
}
inline const void* bring(const TypedArgs& p, const TypedInput& input, int64_t begin, int64_t count, std::byte* tile) {
  switch (input.element) {
    case 1: return bring<uint8_t>(p, input, begin, count, tile);
    case 2: return bring<uint16_t>(p, input, begin, count, tile);
    case 4: return bring<uint32_t>(p, input, begin, count, tile);
    default: return bring<uint64_t>(p, input, begin, count, tile);
  }
}

inline void typed_run(const TypedArgs& p, int64_t begin, int64_t end) {
  alignas(64) std::byte tiles[kMaxTypedInputs][kTypedTile * sizeof(uint64_t)];
  const void* from[kMaxTypedInputs] = {};
  bool is_one[kMaxTypedInputs] = {};  // a single value: copied once
  int64_t row = p.dims[p.rank - 1], last = min(end * kTypedPart, typed_count(p));
  for (int32_t i = 0; i < p.input_count; ++i) {
    is_one[i] = true;
    for (int32_t d = 0; d < p.rank; ++d) is_one[i] = is_one[i] && p.inputs[i].strides[d] == 0;
    int64_t most = min(typed_count(p), kTypedTile);
    if (is_one[i] && begin < end) from[i] = bring(p, p.inputs[i], 0, most, tiles[i]);
  }
  for (int64_t at = begin * kTypedPart; at < last;) {
    int64_t count = min(last - at, kTypedTile), left = row - at % row;
    if (left >= kLongRow && left < count) count = left;
    for (int32_t i = 0; i < p.input_count; ++i)
      if (!is_one[i]) from[i] = bring(p, p.inputs[i], at, count, tiles[i]);
    p.fn(from[0], from[1], from[2], p.y + at * p.element, count);
    at += count;
  }
}

inline constexpr TypedFns kTyped = {find_typed, {typed_parts, typed_run}};

#undef RLX_EACH
