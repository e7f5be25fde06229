// SPDX-License-Identifier: Apache-2.0
// Reductions against plain loops: rows and columns, any axes, any dtype, short and long, none at all, NaN.
#include "backends/cpu/kernels/reduce.h"

#include <array>
#include <type_traits>

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Size {
  int64_t outer, n, inner;
};
const Size kSizes[] = {{5, 0, 1},    {5, 0, 3},     {0, 4, 1},  {7, 1, 1},   {9, 2, 1},    {3, 31, 1},
                       {3, 32, 1},   {2, 33, 1},    {37, 4, 1}, {35, 20, 1}, {40, 100, 1}, {33, 128, 1},
                       {18, 600, 1}, {1, 20000, 1}, {3, 5, 7},  {2, 700, 3}, {1, 9, 300},  {4, 2, 1025}};

double join(ReduceFn fn, double a, double b) {
  if (fn == ReduceFn::kSum) return a + b;
  if (fn == ReduceFn::kProd) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return fn == ReduceFn::kMax ? std::max(a, b) : std::min(a, b);
}

std::vector<std::pair<Isa, bool>> isas_with_and_without_nan() {
  std::vector<std::pair<Isa, bool>> list;
  for (Isa isa : available_isas()) list.insert(list.end(), {{isa, false}, {isa, true}});
  return list;
}

TEST(reduce, equals_a_plain_loop) {
  std::mt19937 rng(1);
  const double identities[] = {0, 1, -HUGE_VAL, HUGE_VAL};
  for (const Size& size : kSizes)
    for (ReduceFn fn : {ReduceFn::kSum, ReduceFn::kProd, ReduceFn::kMax, ReduceFn::kMin})
      for (auto [isa, has_nan] : isas_with_and_without_nan()) {
        Guarded x = Guarded::random(size.outer * size.n * size.inner, rng, -1, 1.5);
        if (has_nan && x.size()) x[x.size() / 3] = std::numeric_limits<float>::quiet_NaN();
        Guarded y(size.outer * size.inner, 2), again(size.outer * size.inner, 2);
        ReduceArgs args{.x = x.data(), .y = y.data(), .fn = fn};
        set_axes(args, std::array{size.outer, size.n, size.inner}, 2);
        run_whole(reduce_fns(isa).reduce, args);
        args.y = again.data();
        run_backwards(reduce_fns(isa).reduce, args);
        ASSERT_TRUE(y.same_bits(again) && y.guards_intact());
        for (int64_t i = 0; i < y.size(); i++) {
          double want = identities[static_cast<int>(fn)], sum = 0;
          for (int64_t k = 0; k < size.n; k++) {
            float value = x[(i / size.inner * size.n + k) * size.inner + i % size.inner];
            want = join(fn, want, value), sum += std::fabs(value);
          }
          double bound = fn == ReduceFn::kSum    ? 1e-6 * (16 + sum)
                         : fn == ReduceFn::kProd ? 1e-4 * std::fabs(want) + 1e-30
                                                 : 0;
          ASSERT_TRUE(same_special(y[i], want) || std::fabs(y[i] - want) <= bound)
              << size.outer << 'x' << size.n << 'x' << size.inner << ", fold " << static_cast<int>(fn) << " at " << i
              << ": " << y[i] << ", not " << want;
        }
      }
}

template <class T>
T plain_join(ReduceFn fn, T a, T b) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  switch (fn) {
    case ReduceFn::kSum: return static_cast<T>(Wide(a) + Wide(b));
    case ReduceFn::kProd: return static_cast<T>(Wide(a) * Wide(b));
    case ReduceFn::kMax: return std::max(a, b);
    default: return std::min(a, b);
  }
}

struct Of {  // what is summed, and what becomes of the sum
  bool squares = false, root = false;
};

// Small whole numbers, so that floats are exact too.
template <class T>
void check_axes(Isa isa, DType dtype, const std::vector<int64_t>& dims, uint32_t axes, ReduceFn fn, Of of = {}) {
  int64_t count = 1, results = 1;
  for (size_t i = 0; i < dims.size(); i++) count *= dims[i], results *= axes >> i & 1 ? 1 : dims[i];
  std::vector<T> x(static_cast<size_t>(count)), want(static_cast<size_t>(results)), y(want.size() + 1, T(77));
  std::vector<bool> is_first(want.size(), true);
  for (size_t i = 0; i < x.size(); i++) {
    x[i] = static_cast<T>(fn == ReduceFn::kProd ? (i % 97 == 5 ? 2 : 1) : 1 + (i * 7919) % 9);
    size_t at = 0, scale = 1, rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= static_cast<size_t>(dims[d])) {
      if (axes >> d & 1) continue;
      at += rest % static_cast<size_t>(dims[d]) * scale;
      scale *= static_cast<size_t>(dims[d]);
    }
    T term = of.squares ? static_cast<T>(x[i] * x[i]) : x[i];
    want[at] = is_first[at] ? term : plain_join(fn, want[at], term);
    is_first[at] = false;
  }
  for (T& result : want)
    if (of.root) result = static_cast<T>(std::sqrt(result));
  ReduceArgs args{.x = x.data(), .y = y.data(), .dtype = dtype, .fn = fn, .squares = of.squares, .root = of.root};
  set_axes(args, dims, axes);
  std::vector<double> partial(partial_bytes(static_cast<double>(count), static_cast<double>(results)) / sizeof(double));
  if (ReduceArgs pieces; cut_rows(args, pieces, partial.data())) run_backwards(reduce_fns(isa).reduce, pieces);
  run_backwards(reduce_fns(isa).reduce, args);
  ASSERT_EQ(y.back(), T(77));
  auto differ = std::mismatch(want.begin(), want.end(), y.begin());
  ASSERT_TRUE(differ.first == want.end())
      << name(dtype) << ", axes " << axes << ", fold " << static_cast<int>(fn) << " at " << differ.first - want.begin();
}

const std::vector<int64_t> kShapes[] = {{3, 5, 4, 33}, {7, 2, 1, 9}, {1, 600, 3, 5}, {2, 3, 2, 300},
                                        {6},           {3, 70001},   {1000, 2, 130}};

TEST(reduce, squares_and_roots_over_any_axes) {
  for (Isa isa : available_isas())
    for (const auto& dims : kShapes)
      for (uint32_t axes = 0; axes < 1U << dims.size(); axes++)
        for (Of of : {Of{true, true}, Of{true, false}, Of{false, true}}) {
          ASSERT_NO_FATAL_FAILURE(check_axes<float>(isa, DType::kF32, dims, axes, ReduceFn::kSum, of));
          ASSERT_NO_FATAL_FAILURE(check_axes<double>(isa, DType::kF64, dims, axes, ReduceFn::kSum, of));
        }
}

TEST(reduce, norms_of_special_values) {
  const float inf = INFINITY, nan = NAN;
  const std::vector<float> rows[] = {{}, {-0.0f}, {-inf, 2}, {nan, inf}, {-3, 4}, {1e30f, 1}};
  const float wants[] = {0, 0, inf, nan, 5, inf};
  for (Isa isa : available_isas())
    for (size_t i = 0; i < std::size(rows); i++) {
      float y[2] = {7, 77};
      ReduceArgs args{.x = rows[i].data(), .y = y, .squares = true, .root = true};
      set_axes(args, std::array{int64_t{1}, std::ssize(rows[i])}, 2);
      run_whole(reduce_fns(isa).reduce, args);
      EXPECT_TRUE(same_special(y[0], wants[i]) || y[0] == wants[i]) << i << ": " << y[0];
      EXPECT_FALSE(std::signbit(y[0])) << i;
      EXPECT_EQ(y[1], 77);
    }
}

TEST(reduce, any_axes_of_any_numbers) {
  for (Isa isa : available_isas())
    for (const auto& dims : kShapes)
      for (uint32_t axes = 0; axes < 1U << dims.size(); axes++)
        for (ReduceFn fn : {ReduceFn::kSum, ReduceFn::kProd, ReduceFn::kMax, ReduceFn::kMin}) {
          ASSERT_NO_FATAL_FAILURE(check_axes<float>(isa, DType::kF32, dims, axes, fn));
          ASSERT_NO_FATAL_FAILURE(check_axes<double>(isa, DType::kF64, dims, axes, fn));
          ASSERT_NO_FATAL_FAILURE(check_axes<int8_t>(isa, DType::kI8, dims, axes, fn));
          ASSERT_NO_FATAL_FAILURE(check_axes<uint8_t>(isa, DType::kU8, dims, axes, fn));
          ASSERT_NO_FATAL_FAILURE(check_axes<int16_t>(isa, DType::kI16, dims, axes, fn));
          ASSERT_NO_FATAL_FAILURE(check_axes<uint16_t>(isa, DType::kU16, dims, axes, fn));
          ASSERT_NO_FATAL_FAILURE(check_axes<int32_t>(isa, DType::kI32, dims, axes, fn));
          ASSERT_NO_FATAL_FAILURE(check_axes<uint32_t>(isa, DType::kU32, dims, axes, fn));
          ASSERT_NO_FATAL_FAILURE(check_axes<int64_t>(isa, DType::kI64, dims, axes, fn));
          ASSERT_NO_FATAL_FAILURE(check_axes<uint64_t>(isa, DType::kU64, dims, axes, fn));
        }
}

template <class T>
void check_running(Isa isa, DType dtype, ReduceFn fn, bool exclusive, bool reverse, int64_t outer, int64_t n,
                   int64_t inner) {
  std::vector<T> x(static_cast<size_t>(outer * n * inner)), y(x.size() + 1, T(7));
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<T>(1 + (i * 7919) % (fn == ReduceFn::kProd ? 2 : 9));
  CumulativeArgs args{.x = x.data(), .y = y.data(), .dtype = dtype, .fn = fn, .outer = outer, .n = n, .inner = inner};
  args.exclusive = exclusive, args.reverse = reverse;
  std::vector<double> totals(static_cast<size_t>(kManyParts));
  args.totals = totals.data();
  if (inner == 1) run_backwards(reduce_fns(isa).totals, args);
  run_backwards(inner == 1 ? reduce_fns(isa).lines : reduce_fns(isa).cumulate, args);
  ASSERT_EQ(y.back(), T(7));
  for (int64_t line = 0; line < outer * inner; line++) {
    T running = 0;
    for (int64_t i = 0; i < n; i++) {
      auto at = static_cast<size_t>((line / inner * n + (reverse ? n - 1 - i : i)) * inner + line % inner);
      T next = i == 0 ? x[at] : plain_join(fn, running, x[at]);
      if (i > 0 || !exclusive) {
        ASSERT_EQ(y[at], exclusive ? running : next) << name(dtype) << " at " << at;
      }
      running = next;
    }
  }
}

TEST(reduce, running_folds_equal_a_plain_loop) {
  for (Isa isa : available_isas())
    for (ReduceFn fn : {ReduceFn::kSum, ReduceFn::kProd, ReduceFn::kMax, ReduceFn::kMin})
      for (int bits = 0; bits < 4; bits++)
        for (auto [outer, n, inner] : {std::array<int64_t, 3>{2, 11, 300}, {7, 11, 1}, {1, 1, 1}, {2, 20001, 1}}) {
          auto check = [&]<class T>(DType dtype) {
            check_running<T>(isa, dtype, fn, bits & 1, bits & 2, outer, n, inner);
          };
          ASSERT_NO_FATAL_FAILURE(check.operator()<float>(DType::kF32));
          ASSERT_NO_FATAL_FAILURE(check.operator()<double>(DType::kF64));
          ASSERT_NO_FATAL_FAILURE(check.operator()<int64_t>(DType::kI64));
          ASSERT_NO_FATAL_FAILURE(check.operator()<uint8_t>(DType::kU8));
        }
}

TEST(reduce, truth_values_and_none) {
  for (Isa isa : available_isas()) {
    const uint8_t x[] = {0, 1, 1, 1, 0, 0};
    uint8_t y[3] = {};
    ReduceArgs args{.x = x, .y = y, .dtype = DType::kBool, .fn = ReduceFn::kMax};
    set_axes(args, std::array<int64_t, 2>{3, 2}, 2);
    run_whole(reduce_fns(isa).reduce, args);
    EXPECT_TRUE(y[0] == 1 && y[1] == 1 && y[2] == 0);
    args.fn = ReduceFn::kMin;
    run_whole(reduce_fns(isa).reduce, args);
    EXPECT_TRUE(y[0] == 0 && y[1] == 1 && y[2] == 0);
    ReduceArgs none{.x = x, .y = y, .dtype = DType::kBool, .fn = ReduceFn::kMin};
    set_axes(none, std::array<int64_t, 2>{3, 0}, 2);
    run_whole(reduce_fns(isa).reduce, none);
    EXPECT_TRUE(y[0] == 1 && y[1] == 1 && y[2] == 1);
  }
}

// Any byte but 0 is true (semantics.md T6); bytes without a common bit are too.
TEST(reduce, bytes_that_are_true) {
  constexpr int64_t kRows = 3, kLong = 301;
  std::vector<uint8_t> x(static_cast<size_t>(kRows * kLong));
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<uint8_t>(1 << i % 8);
  x[kLong + 9] = 0;
  for (Isa isa : available_isas()) {
    for (ReduceFn fn : {ReduceFn::kMax, ReduceFn::kMin}) {
      for (uint32_t axes : {1U, 2U, 3U}) {
        std::vector<uint8_t> y(x.size(), 77);
        ReduceArgs args{.x = x.data(), .y = y.data(), .dtype = DType::kBool, .fn = fn};
        set_axes(args, std::array{kRows, kLong}, axes);
        run_whole(reduce_fns(isa).reduce, args);
        int64_t zero_at = axes == 2 ? 1 : axes == 1 ? 9 : 0, results = axes == 2 ? kRows : axes == 1 ? kLong : 1;
        for (int64_t i = 0; i < results; i++)
          ASSERT_EQ(y[static_cast<size_t>(i)], fn == ReduceFn::kMax || i != zero_at) << axes << " at " << i;
      }
      for (int64_t inner : {int64_t{1}, kLong}) {
        std::vector<uint8_t> y(x.size(), 77);
        CumulativeArgs args{.x = x.data(), .y = y.data(), .dtype = DType::kBool, .fn = fn};
        args.outer = inner == 1 ? kRows : 1, args.n = inner == 1 ? kLong : kRows, args.inner = inner;
        run_whole(inner == 1 ? reduce_fns(isa).lines : reduce_fns(isa).cumulate, args);
        for (int64_t i = 0; i < kRows * kLong; i++) {
          int64_t row = i / kLong, column = i % kLong;
          bool has_zero = inner == 1 ? row == 1 && column >= 9 : row >= 1 && column == 9;
          ASSERT_EQ(y[static_cast<size_t>(i)], fn == ReduceFn::kMax || !has_zero) << inner << " at " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rlx::cpu
