// SPDX-License-Identifier: Apache-2.0
// Typed elementwise loops, every op and dtype on every instruction set, against the ops' own functions, bit by bit.
#include "backends/cpu/kernels/typed.h"

#include "guarded.h"
#include "ir/graph.h"
#include "ops/interpret.h"

namespace rlx::cpu {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI8,  DType::kU8,   DType::kI16, DType::kU16, DType::kI32,
                            DType::kU32, DType::kI64, DType::kU64, DType::kBool, DType::kF16, DType::kBF16};
constexpr int64_t kCount = 133;

// Bits of all kinds: small numbers, the ends of every range, NaN and infinities where there are any.
std::vector<std::byte> values_of(DType dtype, std::mt19937& rng) {
  int64_t size = element_bytes(dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(kCount * size));
  for (int64_t i = 0; i < kCount; i++) {
    std::byte* to = bytes.data() + i * size;
    const double kSpecial[] = {0, -0.0, 0.5, -0.5, 1, -1, NAN, INFINITY, 127.5, 255.5, -128.5, 2147483648.,
                               -2147483649., 4294967296., 9.3e18, -9.3e18, 1.9e19, -INFINITY, 3e9, 65535.9, 1e300,
                               -1e300, 1e-310, 2147483583.0, 9007199254740993.,
                               // halfway between two halves, and beside that
                               1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-50, 1 + 0x3p-11, 1 + 0x1p-8 + 0x1p-50, 1 + 0x3p-8, 65520,
                               65519.99999999, 0x1p-25, 0x1p-25 + 0x1p-70, 0x1.8p-133, 0x1p-134};
    double special = kSpecial[rng() % std::size(kSpecial)];
    uint64_t whole = rng() % 3 ? rng() % 7 - 3 : (static_cast<uint64_t>(rng()) << 32 | rng()) >> rng() % 64;
    if (dtype == DType::kBool) whole = rng() % 4 ? rng() % 2 : rng() % 256;  // any byte but 0 is true
    auto narrow = static_cast<float>(special);
    if (dtype == DType::kF64)
      std::memcpy(to, &special, 8);
    else if (dtype == DType::kF32)
      std::memcpy(to, &narrow, 4);
    else
      std::memcpy(to, &whole, static_cast<size_t>(size));
  }
  return bytes;
}

bool same_element(DType dtype, const std::byte* got, const std::byte* want) {
  double a, b;
  float c, d;
  std::memcpy(&a, got, dtype == DType::kF64 ? 8 : 0), std::memcpy(&b, want, dtype == DType::kF64 ? 8 : 0);
  std::memcpy(&c, got, dtype == DType::kF32 ? 4 : 0), std::memcpy(&d, want, dtype == DType::kF32 ? 4 : 0);
  if (is_half(dtype)) {
    uint16_t e, f;
    std::memcpy(&e, got, 2), std::memcpy(&f, want, 2);
    uint16_t infinity = dtype == DType::kF16 ? 0x7c00 : 0x7f80;
    return (f & 0x7fff) > infinity ? (e & 0x7fff) > infinity : e == f;
  }
  if (dtype == DType::kF64 && std::isnan(b)) return std::isnan(a);
  if (dtype == DType::kF32 && std::isnan(d)) return std::isnan(c);
  if (dtype == DType::kF64) return a == b;
  if (dtype == DType::kF32) return c == d;
  return std::memcmp(got, want, static_cast<size_t>(element_bytes(dtype))) == 0;
}

// `in` dtypes to what the op makes of them; "" where the op takes them not.
void check(Op op, const std::vector<DType>& in, DType to, std::mt19937& rng) {
  Graph graph;
  std::vector<Value> values;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Operand> operands;
  for (DType dtype : in) {
    values.push_back(*graph.add_input(std::string(1, static_cast<char>('a' + values.size())), dtype, {kCount}));
    bytes.push_back(values_of(dtype, rng));
    operands.push_back({dtype, {kCount}, bytes.back().data()});
  }
  NamedAttrs attrs;
  if (op == Op::kCast) attrs.push_back({"to", to});
  auto made = graph.add(op, values, attrs);
  if (!made.ok()) return;
  const Node& node = graph.node(made->node);
  TypedFn baseline = typed_fns(Isa::kBaseline).find(op, in.back(), node.out[0].dtype);
  if (!baseline) return;
  int64_t size = element_bytes(node.out[0].dtype);
  std::vector<std::byte> want(static_cast<size_t>(kCount * size));
  Operand out{node.out[0].dtype, {kCount}, want.data()};
  if (!graph.info(node).eval) return;  // a composite: its decomposition is tested with whole programs
  ASSERT_TRUE(eval_node(graph, node, operands, std::span(&out, 1), {}, {EvalMode::kTyped, Bounds::kError}).ok());
  for (Isa isa : available_isas()) {
    std::vector<std::byte> got(want.size() + 8, std::byte{0x5a});
    const void* from[kMaxTypedInputs] = {};
    for (size_t i = 0; i < in.size(); i++) from[i] = bytes[i].data();
    typed_fns(isa).find(op, in.back(), out.dtype)(from[0], from[1], from[2], got.data(), kCount);
    for (size_t i = want.size(); i < got.size(); i++) ASSERT_EQ(got[i], std::byte{0x5a});
    for (int64_t i = 0; i < kCount; i++)
      ASSERT_TRUE(same_element(out.dtype, got.data() + i * size, want.data() + i * size))
          << graph.info(node).name << " of " << name(in.back()) << " to " << name(out.dtype) << " at " << i << ", "
          << isa_name(isa);
  }
}

TEST(typed, every_op_and_dtype_is_the_ops_own_function) {
  std::mt19937 rng(3);
  for (DType dtype : kTypes) {
    for (Op op : {Op::kNeg, Op::kAbs, Op::kSqrt, Op::kFloor, Op::kRound, Op::kBitNot})
      ASSERT_NO_FATAL_FAILURE(check(op, {dtype}, DType::kNone, rng));
    for (Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kRem, Op::kMax, Op::kMin, Op::kBitAnd, Op::kBitOr,
                  Op::kBitXor, Op::kShl, Op::kShr, Op::kEq, Op::kLt, Op::kLe})
      ASSERT_NO_FATAL_FAILURE(check(op, {dtype, dtype}, DType::kNone, rng));
    ASSERT_NO_FATAL_FAILURE(check(Op::kWhere, {DType::kBool, dtype, dtype}, DType::kNone, rng));
    for (DType to : kTypes) ASSERT_NO_FATAL_FAILURE(check(Op::kCast, {dtype}, to, rng));
  }
}

// Quotients in f64: of whole numbers up to where it no longer holds them all, beside multiples of what divides them.
template <class T>
void check_quotients(DType dtype, std::mt19937& rng) {
  constexpr auto kEdge = uint64_t{1} << (sizeof(T) == 8 ? 52 : 31);
  std::vector<T> a(3000), b(a.size()), y(a.size());
  for (Isa isa : available_isas())
    for (int wide = 0; wide < 2; wide++) {
      for (size_t i = 0; i < a.size(); i++) {
        b[i] = static_cast<T>(rng() % 2 ? rng() % 1000 : static_cast<uint64_t>(rng()) * rng() % (kEdge - 1));
        T times = b[i] ? static_cast<T>((kEdge - 1) / static_cast<uint64_t>(b[i])) : T(0);
        a[i] = static_cast<T>(rng() % 2 ? b[i] * times - rng() % 2 : (static_cast<uint64_t>(rng()) << 20) % kEdge);
        if (std::is_signed_v<T> && rng() % 2) a[i] = static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a[i]));
        if (std::is_signed_v<T> && rng() % 2) b[i] = static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(b[i]));
      }
      if (wide)
        a[700] = std::numeric_limits<T>::min(), b[700] = static_cast<T>(-1), a[701] = std::numeric_limits<T>::max();
      for (Op op : {Op::kDiv, Op::kRem}) {
        typed_fns(isa).find(op, dtype, dtype)(a.data(), b.data(), nullptr, y.data(), static_cast<int64_t>(a.size()));
        for (size_t i = 0; i < a.size(); i++) {
          bool wraps = std::is_signed_v<T> && b[i] == static_cast<T>(-1);
          T quotient = wraps  ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a[i]))
                       : b[i] ? a[i] / b[i]
                              : T(~T(0));
          T rest = wraps ? T(0) : b[i] ? a[i] % b[i] : a[i];
          ASSERT_EQ(y[i], op == Op::kDiv ? quotient : rest) << +a[i] << " and " << +b[i] << ", " << isa_name(isa);
        }
      }
    }
}
TEST(typed, quotients_of_integers) {
  std::mt19937 rng(8);
  ASSERT_NO_FATAL_FAILURE(check_quotients<int64_t>(DType::kI64, rng));
  ASSERT_NO_FATAL_FAILURE(check_quotients<uint64_t>(DType::kU64, rng));
  ASSERT_NO_FATAL_FAILURE(check_quotients<int32_t>(DType::kI32, rng));
  ASSERT_NO_FATAL_FAILURE(check_quotients<uint32_t>(DType::kU32, rng));
}

// y = a - b with operands of every layout, against a walk by indices.
TEST(typed, operands_are_walked_as_they_lie) {
  struct Layout {
    std::vector<int64_t> dims, a, b;
  };
  const Layout kLayouts[] = {
      {{}, {}, {}},
      {{5}, {1}, {0}},
      {{5}, {2}, {-1}},
      {{0, 4}, {4, 1}, {0, 1}},
      {{3, 700}, {700, 1}, {0, 1}},
      {{700, 3}, {3, 1}, {1, 0}},
      {{600, 4}, {4, 1}, {0, 1}},
      {{4, 5, 6}, {1, 4, 20}, {0, 6, 1}},
      {{2, 3, 2000}, {0, 0, 0}, {2000, 0, 1}},
      {{40, 1, 500}, {500, 7, 1}, {0, 0, 2}},
      {{40000}, {1}, {1}},
  };
  for (Isa isa : available_isas())
    for (const Layout& it : kLayouts) {
      std::vector<int64_t> storage(90000), y;
      for (size_t i = 0; i < storage.size(); i++) storage[i] = static_cast<int64_t>(i * i % 1009);
      const int64_t* middle = storage.data() + 45000;
      TypedArgs args{.fn = typed_fns(isa).find(Op::kSub, DType::kI64, DType::kI64), .input_count = 2, .element = 8};
      args.rank = static_cast<int32_t>(it.dims.size());
      int64_t count = 1;
      for (size_t i = 0; i < it.dims.size(); i++) {
        count *= args.dims[i] = it.dims[i];
        args.inputs[0].strides[i] = it.a[i], args.inputs[1].strides[i] = it.b[i];
      }
      for (TypedInput& input : args.inputs) input.data = reinterpret_cast<const std::byte*>(middle), input.element = 8;
      y.assign(static_cast<size_t>(count) + 1, -7777);
      args.y = reinterpret_cast<std::byte*>(y.data());
      collapse_dims(args);
      run_backwards(typed_fns(isa).loop, args);
      ASSERT_EQ(y.back(), -7777);
      for (int64_t i = 0; i < count; i++) {
        int64_t a = 0, b = 0, rest = i;
        for (size_t d = it.dims.size(); d-- > 0; rest /= it.dims[d])
          a += rest % it.dims[d] * it.a[d], b += rest % it.dims[d] * it.b[d];
        ASSERT_EQ(y[static_cast<size_t>(i)], middle[a] - middle[b]) << &it - kLayouts << " at " << i;
      }
    }
}

}  // namespace
}  // namespace rlx::cpu
