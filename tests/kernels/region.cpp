// SPDX-License-Identifier: Apache-2.0
// Elementwise regions: every op against f64 on floats from all exponents, broadcasting, types, and register reuse.
#include "backends/cpu/kernels/region.h"

#include <functional>
#include <string_view>

#include "base/half.h"
#include "guarded.h"

namespace rlx::cpu {
namespace {

using Code = RegionCode;

// Runs one op over rank-1 operands.
Guarded run_op(Isa isa, Code code, const std::vector<const Guarded*>& operands) {
  Guarded y(operands[0]->size());
  RegionOp op{code, 0, 0, 1, 2};
  RegionArgs args{};
  args.rank = 1;
  args.dims[0] = y.size();
  args.input_count = static_cast<int>(operands.size());
  for (int i = 0; i < args.input_count; ++i) {
    args.inputs[i].data = operands[i]->data();
    args.inputs[i].reg = static_cast<uint8_t>(i);
    args.inputs[i].strides[0] = 1;
  }
  op.dst = static_cast<uint8_t>(args.input_count);
  args.ops = &op;
  args.op_count = 1;
  args.register_count = args.input_count + 1;
  args.output_count = 1;
  args.outputs[0] = {y.data(), RegionType::kF32, op.dst};
  run_whole(region_fns(isa).region, args);
  EXPECT_TRUE(y.guards_intact());
  return y;
}

const float kSpecials[] = {
    0.0f,     -0.0f,     1.0f,   -1.0f,  0.5f,    -0.5f,           1.5f,          2.5f,           -2.5f,
    INFINITY, -INFINITY, NAN,    1e-40f, -1e-40f, 1.17549435e-38f, 3.4028235e38f, -3.4028235e38f, 88.72f,
    88.73f,   -103.97f,  -87.4f, 1e-8f,  -1e-8f,  8388608.5f,      0.99999994f,   -0.99999994f,   1e5f,
    1e10f};

// Every float that a stride over all bit patterns meets, then the special values.
Guarded all_exponents(int64_t count) {
  Guarded x(count + std::size(kSpecials));
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = static_cast<uint32_t>(i * ((uint64_t{1} << 32) / count) + 12345 % (i + 1));
    std::memcpy(&x[i], &bits, 4);
  }
  for (size_t i = 0; i < std::size(kSpecials); ++i) x[count + i] = kSpecials[i];
  return x;
}

double ulp_at(double y) {
  int exponent;
  std::frexp(y, &exponent);
  return std::ldexp(1.0, std::max(exponent, -125) - 24);
}

// Units in the last place of f32 between got and want; results below the normal range are all the same (semantics.md
// N5).
double ulps(float got, double want) {
  if (same_special(got, want)) return 0;
  double least = std::ldexp(1.0, -126);
  if (std::fabs(want) < least && std::fabs(got) <= least) return 0;
  if (std::isinf(got) && std::fabs(want) > 3.4028235e38) return 0;  // f64 goes further
  return std::fabs(got - want) / ulp_at(want);
}

struct Function {
  const char* name;
  Code code;
  double (*exact)(double);
  double ulps;  // 0: bit for bit
};
const Function kFunctions[] = {
    {"neg", Code::kNeg, [](double x) { return -x; }, 0},
    {"abs", Code::kAbs, [](double x) { return std::fabs(x); }, 0},
    {"floor", Code::kFloor, [](double x) { return std::floor(x); }, 0},
    {"ceil", Code::kCeil, [](double x) { return std::ceil(x); }, 0},
    {"trunc", Code::kTrunc, [](double x) { return std::trunc(x); }, 0},
    {"round", Code::kRound, [](double x) { return std::nearbyint(x); }, 0},
    {"sign", Code::kSign, [](double x) { return x > 0   ? 1
                                                : x < 0 ? -1
                                                        : x; }, 0},
    {"relu", Code::kRelu, [](double x) { return x < 0 ? 0 : x; }, 0},
    {"square", Code::kSquare, [](double x) { return x * x; }, 1},
    {"recip", Code::kRecip, [](double x) { return 1 / x; }, 1},
    {"sqrt", Code::kSqrt, [](double x) { return std::sqrt(x); }, 1},
    {"rsqrt", Code::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 4},
    {"exp", Code::kExp, [](double x) { return std::exp(x); }, 4},
    {"expm1", Code::kExpm1, [](double x) { return std::expm1(x); }, 4},
    {"log", Code::kLog, [](double x) { return std::log(x); }, 4},
    {"log1p", Code::kLog1p, [](double x) { return std::log1p(x); }, 4},
    {"sin", Code::kSin, [](double x) { return std::sin(x); }, 4},
    {"cos", Code::kCos, [](double x) { return std::cos(x); }, 4},
    {"tanh", Code::kTanh, [](double x) { return std::tanh(x); }, 4},
    {"erf", Code::kErf, [](double x) { return std::erf(x); }, 4},
    // -inf gives NaN where the definition multiplies it by zero.
    {"gelu", Code::kGelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, 4},
    {"gelu_tanh", Code::kGeluTanh,
     [](double x) {
       return std::isinf(x) && x < 0 ? NAN : x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     },
     4},
    {"silu", Code::kSilu, [](double x) { return std::isinf(x) && x < 0 ? NAN : x / (1 + std::exp(-x)); }, 4},
    {"sigmoid", Code::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 4},
    {"softplus", Code::kSoftplus,
     [](double x) {
       return std::isinf(x) ? std::fmax(x, 0.0) : std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
     },
     4},
    {"mish", Code::kMish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 4},
    {"hard_sigmoid", Code::kHardSigmoid, [](double x) { return std::clamp(0.2f * x + 0.5, 0.0, 1.0); }, 4},
    {"hard_swish", Code::kHardSwish, [](double x) { return x * std::clamp((1.0f / 6) * x + 0.5, 0.0, 1.0); }, 4},
};

struct Worst {
  double ulps = 0;
  float at = 0;
};

void note_worst(const Function& f, const Guarded& x, const Guarded& y, Worst& worst) {
  for (int64_t i = 0; i < x.size(); ++i) {
    double error = ulps(y[i], f.exact(x[i]));
    if (!(error <= worst.ulps)) worst.ulps = error, worst.at = x[i];
  }
}

TEST(region, functions_are_accurate_on_floats_of_all_exponents) {
  Guarded x = all_exponents(1 << 18);
  for (const Function& f : kFunctions)
    for (Isa isa : available_isas()) {
      Worst worst;
      note_worst(f, x, run_op(isa, f.code, {&x}), worst);
      EXPECT_LE(worst.ulps, f.ulps) << f.name << ' ' << isa_name(isa) << " at " << testing::PrintToString(worst.at);
    }
}

struct Binary {
  const char* name;
  Code code;
  double (*exact)(double, double);
  double ulps;
};
double nan_or(double a, double b, double value) {
  return std::isnan(a) || std::isnan(b) ? NAN : value;
}
const Binary kBinaries[] = {
    {"add", Code::kAdd, [](double a, double b) { return a + b; }, 1},
    {"sub", Code::kSub, [](double a, double b) { return a - b; }, 1},
    {"mul", Code::kMul, [](double a, double b) { return a * b; }, 1},
    {"div", Code::kDiv, [](double a, double b) { return a / b; }, 1},
    {"rem", Code::kRem, [](double a, double b) { return std::fmod(a, b); }, 0},
    {"pow", Code::kPow, [](double a, double b) { return std::pow(a, b); }, 4},
    {"atan2", Code::kAtan2, [](double a, double b) { return std::atan2(a, b); }, 4},
    {"max", Code::kMax, [](double a, double b) { return nan_or(a, b, std::fmax(a, b)); }, 0},
    {"min", Code::kMin, [](double a, double b) { return nan_or(a, b, std::fmin(a, b)); }, 0},
    {"leaky_relu", Code::kLeakyRelu, [](double a, double b) { return a < 0 ? a * b : a; }, 1},
};

TEST(region, binary_ops_on_all_pairs_of_special_values) {
  std::mt19937 rng(1);
  const int64_t n = std::size(kSpecials), many = 20000;
  Guarded a(n * n + many), b(n * n + many);
  for (int64_t i = 0; i < n * n; ++i) a[i] = kSpecials[i / n], b[i] = kSpecials[i % n];
  for (int64_t i = n * n; i < a.size(); ++i) {
    a[i] = std::uniform_real_distribution<float>(-9, 9)(rng);
    b[i] = std::uniform_real_distribution<float>(-9, 9)(rng);
  }
  for (const Binary& f : kBinaries) {
    for (Isa isa : available_isas()) {
      Guarded y = run_op(isa, f.code, {&a, &b});
      for (int64_t i = 0; i < a.size(); ++i) {
        ASSERT_LE(ulps(y[i], f.exact(a[i], b[i])), f.ulps)
            << f.name << ' ' << isa_name(isa) << ' ' << a[i] << ' ' << b[i];
      }
    }
  }
}

struct Joined {
  const char* name;
  Code code;
  float (*want)(float, float, float);
};
float without_negative(float x) {
  return x < 0 ? 0 : x;
}
const Joined kJoined[] = {
    {"add_add", Code::kAddAdd, [](float a, float b, float c) { return a + b + c; }},
    {"add_sub", Code::kAddSub, [](float a, float b, float c) { return a + b - c; }},
    {"add_sub_from", Code::kAddSubFrom, [](float a, float b, float c) { return c - (a + b); }},
    {"add_mul", Code::kAddMul, [](float a, float b, float c) { return (a + b) * c; }},
    {"sub_add", Code::kSubAdd, [](float a, float b, float c) { return a - b + c; }},
    {"sub_sub", Code::kSubSub, [](float a, float b, float c) { return a - b - c; }},
    {"sub_sub_from", Code::kSubSubFrom, [](float a, float b, float c) { return c - (a - b); }},
    {"sub_mul", Code::kSubMul, [](float a, float b, float c) { return (a - b) * c; }},
    {"mul_add", Code::kMulAdd, [](float a, float b, float c) { return a * b + c; }},
    {"mul_sub", Code::kMulSub, [](float a, float b, float c) { return a * b - c; }},
    {"mul_sub_from", Code::kMulSubFrom, [](float a, float b, float c) { return c - a * b; }},
    {"mul_mul", Code::kMulMul, [](float a, float b, float c) { return a * b * c; }},
    {"add_relu", Code::kAddRelu, [](float a, float b, float) { return without_negative(a + b); }},
    {"sub_relu", Code::kSubRelu, [](float a, float b, float) { return without_negative(a - b); }},
    {"mul_relu", Code::kMulRelu, [](float a, float b, float) { return without_negative(a * b); }},
};

// Both ops round, so nothing differs from two ops but the sign of a relu's 0.
TEST(region, joined_ops_on_all_triples_of_special_values) {
  std::mt19937 rng(1);
  const int64_t n = std::size(kSpecials), many = 20000;
  Guarded a(n * n * n + many), b(a.size()), c(a.size());
  for (int64_t i = 0; i < n * n * n; ++i)
    a[i] = kSpecials[i / n / n], b[i] = kSpecials[i / n % n], c[i] = kSpecials[i % n];
  for (int64_t i = n * n * n; i < a.size(); ++i)
    for (Guarded* x : {&a, &b, &c}) (*x)[i] = std::uniform_real_distribution<float>(-9, 9)(rng);
  for (const Joined& f : kJoined) {
    for (Isa isa : available_isas()) {
      std::vector<const Guarded*> operands{&a, &b, &c};
      operands.resize(static_cast<size_t>(region_operands(f.code)));
      Guarded y = run_op(isa, f.code, operands);
      for (int64_t i = 0; i < a.size(); ++i) {
        float want = f.want(a[i], b[i], c[i]);
        bool same = std::isnan(want) ? std::isnan(y[i])
                                     : y[i] == want && (want != 0 || std::signbit(y[i]) == std::signbit(want) ||
                                                        region_operands(f.code) == 2);
        ASSERT_TRUE(same) << f.name << ' ' << isa_name(isa) << ' ' << a[i] << ' ' << b[i] << ' ' << c[i] << ": "
                          << y[i];
      }
    }
  }
}

TEST(region, elu_stays_in_its_class) {
  Guarded x = all_exponents(1 << 16), alpha(x.size());
  for (int64_t i = 0; i < x.size(); ++i) alpha[i] = 0.75f;
  for (Isa isa : available_isas()) {
    Guarded y = run_op(isa, Code::kElu, {&x, &alpha});
    for (int64_t i = 0; i < x.size(); ++i) {
      double want = x[i] > 0 ? x[i] : 0.75 * std::expm1(std::isnan(x[i]) ? x[i] : std::fmin(x[i], 0.0f));
      ASSERT_LE(ulps(y[i], want), 5) << x[i];
    }
  }
}

// A region under construction: inputs, constants and ops named in order, as assign_registers wants them.
struct Executable {
  RegionArgs args{};
  std::vector<RegionOp> ops;

  uint8_t input(const void* data, std::vector<int64_t> strides, RegionType type = RegionType::kF32) {
    RegionInput& in = args.inputs[args.input_count];
    in.data = data;
    in.type = type;
    in.reg = static_cast<uint8_t>(args.input_count);
    std::copy(strides.begin(), strides.end(), in.strides);
    return static_cast<uint8_t>(args.input_count++);
  }
  uint8_t constant(float value) {
    uint8_t name = static_cast<uint8_t>(args.input_count + args.constant_count);
    args.constants[args.constant_count++] = {value, name};
    return name;
  }
  uint8_t op(Code code, uint8_t a, uint8_t b = 0, uint8_t c = 0) {
    uint8_t name = static_cast<uint8_t>(args.input_count + args.constant_count + ops.size());
    ops.push_back({code, name, a, b, c});
    return name;
  }
  void output(void* data, uint8_t name, RegionType type = RegionType::kF32) {
    args.outputs[args.output_count++] = {data, type, name};
  }
  void shape(std::vector<int64_t> dims) {
    args.rank = static_cast<int>(dims.size());
    std::copy(dims.begin(), dims.end(), args.dims);
  }
  void finish() {
    ASSERT_TRUE(assign_registers(args, ops));
    args.ops = ops.data();
    args.op_count = static_cast<int>(ops.size());
  }
};

TEST(region, broadcasts_every_way_and_collapses_dims) {
  std::mt19937 rng(2);
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{3, 5, 7}, {1, 1, 1}, {2, 1, 5000}, {40, 33, 17}, {0, 4, 4}}) {
    int64_t total = dims[0] * dims[1] * dims[2];
    for (int mask = 0; mask < 8; ++mask) {  // which axes the second operand has
      int64_t sizes[3], strides[3], count = 1;
      for (int d = 2; d >= 0; --d) {
        sizes[d] = mask >> d & 1 ? dims[d] : 1;
        strides[d] = mask >> d & 1 ? count : 0;
        count *= sizes[d];
      }
      Guarded a = Guarded::random(total, rng), b = Guarded::random(count, rng, -1, 1, 3), y(total), again(total);
      Executable p;
      p.shape(dims);
      uint8_t x = p.input(a.data(), {dims[1] * dims[2], dims[2], 1}),
              z = p.input(b.data(), {strides[0], strides[1], strides[2]});
      p.output(y.data(), p.op(Code::kSub, x, z));
      p.finish();
      for (Isa isa : available_isas()) {
        SCOPED_TRACE(testing::Message() << isa_name(isa) << " axes " << mask << " of " << testing::PrintToString(dims));
        run_whole(region_fns(isa).region, p.args);
        ASSERT_TRUE(y.guards_intact());
        RegionArgs collapsed = p.args;
        collapse_dims(collapsed);
        ASSERT_LE(collapsed.rank, p.args.rank);
        collapsed.outputs[0].data = again.data();
        run_backwards(region_fns(isa).region, collapsed);
        ASSERT_TRUE(again.same_bits(y));
        for (int64_t i = 0; i < total; ++i) {
          int64_t at[] = {i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]};
          ASSERT_EQ(y[i], a[i] - b[at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2]]) << i;
        }
      }
    }
  }
}

// Rows so long that tiles end with them; of y too, as memory behind y is guarded.
TEST(region, one_value_a_row_or_one_row_for_all) {
  std::mt19937 rng(5);
  for (int64_t n : {511, 512, 1000, 1030, 2047, 5000, 17000}) {
    const int64_t rows = 5, total = rows * n;
    Guarded scale = Guarded::random(rows, rng), row = Guarded::random(n, rng), y(total);
    std::vector<uint8_t> bytes(rows), truths(rows);
    for (int64_t i = 0; i < rows; ++i) bytes[i] = static_cast<uint8_t>(50 * i + 3), truths[i] = i % 2 ? 7 : 0;
    for (Isa isa : available_isas()) {
      Guarded x = Guarded::random(total, rng), before = x;
      Executable p;
      p.shape({rows, n});
      uint8_t a = p.input(x.data(), {n, 1}), s = p.input(scale.data(), {1, 0}), r = p.input(row.data(), {0, 1});
      uint8_t u = p.input(bytes.data(), {1, 0}, RegionType::kU8), t = p.input(truths.data(), {1, 0}, RegionType::kBool);
      uint8_t half = p.constant(0.5f);
      uint8_t sum = p.op(Code::kAdd, p.op(Code::kMul, a, s), r);
      uint8_t both = p.op(Code::kAdd, p.op(Code::kMul, u, half), s);  // all operands have one value a row
      p.output(x.data(), p.op(Code::kWhere, t, sum, both));
      p.finish();
      run_backwards(region_fns(isa).region, p.args);
      ASSERT_TRUE(x.guards_intact());
      for (int64_t i = 0; i < total; ++i) {
        int64_t at = i / n;
        float want = truths[at] ? before[i] * scale[at] + row[i % n] : bytes[at] * 0.5f + scale[at];
        ASSERT_EQ(x[i], want) << isa_name(isa) << " row of " << n << " at " << i;
      }
    }
  }
}

TEST(region, without_ops_converts_or_copies) {
  for (int64_t n : {1, 15, 16, 33, 1000, 40000}) {
    std::vector<uint8_t> bytes(n);
    std::vector<int64_t> longs(n);
    for (int64_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(i * 7), longs[i] = (i - 9) * 10000019;
    Guarded x(n);
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i) - 7.5f;
    struct From {
      const void* data;
      RegionType type;
      std::vector<int64_t> strides;
      std::function<float(int64_t)> want;
    };
    const From froms[] = {{bytes.data(), RegionType::kU8, {1}, [&](int64_t i) { return bytes[i]; }},
                          {longs.data(), RegionType::kI64, {1}, [&](int64_t i) { return longs[i]; }},
                          {bytes.data(), RegionType::kU8, {0}, [&](int64_t) { return bytes[0]; }},
                          {x.data(), RegionType::kF32, {1}, [&](int64_t i) { return x[i]; }},
                          {&x[n - 1], RegionType::kF32, {-1}, [&](int64_t i) { return x[n - 1 - i]; }}};
    for (Isa isa : available_isas())
      for (const From& from : froms) {
        Guarded y(n, 3);
        Executable p;
        p.shape({n});
        p.output(y.data(), p.input(from.data, from.strides, from.type));
        p.finish();
        run_backwards(region_fns(isa).region, p.args);
        ASSERT_TRUE(y.guards_intact());
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], from.want(i)) << isa_name(isa) << ' ' << n << " at " << i;
      }
  }
}

// The input is read where it lies, and no memory behind it: AddressSanitizer sees that.
TEST(region, without_ops_narrows_an_input) {
  for (int64_t n : {1, 15, 33, 1000}) {
    std::vector<float> x(n);
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i) / 4;
    for (Isa isa : available_isas())
      for (RegionType type : {RegionType::kF16, RegionType::kBF16}) {
        std::vector<uint16_t> y(n + 1, 77);
        Executable p;
        p.shape({n});
        p.output(y.data(), p.input(x.data(), {1}), type);
        p.finish();
        run_backwards(region_fns(isa).region, p.args);
        ASSERT_EQ(y[n], 77);
        for (int64_t i = 0; i < n; ++i) {
          uint16_t want = type == RegionType::kF16 ? f16(x[i]).bits : bf16(x[i]).bits;
          ASSERT_EQ(y[i], want) << isa_name(isa) << ' ' << n << " at " << i;
        }
      }
  }
}

TEST(region, transposed_input_and_in_place_output) {
  std::mt19937 rng(3);
  const int64_t m = 70, n = 90;
  Guarded t = Guarded::random(n * m, rng);
  for (Isa isa : available_isas()) {
    Guarded x = Guarded::random(m * n, rng), before = x;
    Executable p;
    p.shape({m, n});
    uint8_t a = p.input(x.data(), {n, 1}), b = p.input(t.data(), {1, m});
    p.output(x.data(), p.op(Code::kAdd, p.op(Code::kMul, a, b), a));
    p.finish();
    run_whole(region_fns(isa).region, p.args);
    ASSERT_TRUE(x.guards_intact());
    for (int64_t i = 0; i < m * n; ++i) ASSERT_EQ(x[i], before[i] * t[i % n * m + i / n] + before[i]);
  }
}

// An input of each type that is contiguous along each other axis, beside one of the region's own layout, one with a
// value a row, and one with a row for all. Outputs of each type.
TEST(region, transposed_inputs_are_read_in_blocks) {
  std::mt19937 rng(4);
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{3, 16, 90}, {25, 41, 16}, {40, 5, 77}, {17, 33, 130}, {300, 2, 17}})
    for (int axis : {0, 1}) {
      const int64_t total = dims[0] * dims[1] * dims[2], plane = dims[axis] * dims[2];
      // The axis lies innermost, then the last one, then the other.
      int64_t strides[3] = {plane, plane, dims[axis]};
      strides[axis] = 1;
      Guarded t = Guarded::random(total, rng), row = Guarded::random(dims[2], rng), y(total, 5);
      Guarded scale = Guarded::random(dims[0], rng);
      std::vector<uint8_t> truths(total), answers(total + 1, 77);
      std::vector<int64_t> longs(total);
      std::vector<f16> halves(total);
      std::vector<uint16_t> rounded(total + 1, 77);
      for (int64_t i = 0; i < total; ++i)
        truths[i] = i % 3 ? 9 : 0, longs[i] = i * 5 % 1001 - 400, halves[i] = f16(static_cast<float>(i % 99) / 8);
      for (Isa isa : available_isas()) {
        Guarded x = Guarded::random(total, rng), before = x;
        Executable p;
        p.shape(dims);
        std::vector<int64_t> across(strides, strides + 3), own{dims[1] * dims[2], dims[2], 1};
        uint8_t a = p.input(x.data(), own), b = p.input(t.data(), across), s = p.input(scale.data(), {1, 0, 0});
        uint8_t c = p.input(row.data(), {0, 0, 1}), w = p.input(truths.data(), across, RegionType::kBool);
        uint8_t l = p.input(longs.data(), across, RegionType::kI64);
        uint8_t h = p.input(halves.data(), across, RegionType::kF16);
        // More registers make smaller tiles.
        for (int i = axis * static_cast<int>(dims[0]) % 21; i > 0; --i) p.constant(1);
        uint8_t sum = p.op(Code::kAdd, p.op(Code::kMul, b, s), p.op(Code::kSub, c, a));
        p.output(x.data(), p.op(Code::kWhere, w, sum, l));
        p.output(answers.data(), p.op(Code::kLt, l, h), RegionType::kBool);
        p.output(rounded.data(), h, RegionType::kF16);
        p.output(y.data(), s);
        p.finish();
        run_backwards(region_fns(isa).region, p.args);
        ASSERT_TRUE(x.guards_intact() && y.guards_intact());
        ASSERT_TRUE(answers[total] == 77 && rounded[total] == 77);
        for (int64_t i = 0; i < total; ++i) {
          int64_t at[] = {i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]};
          int64_t from = at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2];
          float sum_there = t[from] * scale[at[0]] + (row[at[2]] - before[i]), number = static_cast<float>(longs[from]);
          ASSERT_EQ(x[i], truths[from] ? sum_there : number) << isa_name(isa) << " axis " << axis << " at " << i;
          ASSERT_EQ(answers[i], number < static_cast<float>(halves[from])) << i;
          ASSERT_EQ(rounded[i], halves[from].bits) << i;
          ASSERT_EQ(y[i], scale[at[0]]) << i;
        }
      }
    }
}

TEST(region, integers_truth_values_and_where) {
  const int64_t n = 1001;
  std::vector<int64_t> longs(n);
  std::vector<int32_t> ints(n);
  std::vector<uint8_t> bytes(n), truths(n), answers(n + 1, 77);
  for (int64_t i = 0; i < n; ++i) {
    longs[i] = (i - 500) * 1000000007, ints[i] = static_cast<int32_t>(i * 7919 - 100000);
    bytes[i] = static_cast<uint8_t>(i), truths[i] = i % 3 ? static_cast<uint8_t>(i % 5 * 50) : 0;
  }
  for (Isa isa : available_isas()) {
    Guarded y(n);
    Executable p;
    p.shape({n});
    uint8_t l = p.input(longs.data(), {1}, RegionType::kI64), i = p.input(ints.data(), {1}, RegionType::kI32);
    uint8_t u = p.input(bytes.data(), {1}, RegionType::kU8), t = p.input(truths.data(), {1}, RegionType::kBool);
    uint8_t half = p.constant(0.5f);
    uint8_t less = p.op(Code::kLt, l, i);
    uint8_t both = p.op(Code::kOr, p.op(Code::kAnd, less, t), p.op(Code::kNot, p.op(Code::kXor, less, t)));
    uint8_t chosen = p.op(Code::kWhere, t, p.op(Code::kMul, u, half), p.op(Code::kMaskToFloat, less));
    p.output(y.data(), chosen);
    p.output(answers.data(), both, RegionType::kBool);
    p.finish();
    run_backwards(region_fns(isa).region, p.args);
    ASSERT_TRUE(y.guards_intact());
    ASSERT_EQ(answers[n], 77);
    for (int64_t k = 0; k < n; ++k) {
      bool is_less = static_cast<float>(longs[k]) < static_cast<float>(ints[k]), truth = truths[k] != 0;
      ASSERT_EQ(y[k], truth ? bytes[k] * 0.5f : is_less) << k;
      ASSERT_EQ(answers[k], (is_less && truth) || is_less == truth) << k;
    }
  }
}

TEST(region, comparisons_with_nan_are_false) {
  Guarded a(4), b(4);
  a[0] = 1, a[1] = NAN, a[2] = -0.0f, a[3] = -INFINITY;
  b[0] = 2, b[1] = 1, b[2] = 0, b[3] = -INFINITY;
  struct Want {
    Code code;
    uint8_t y[4];
  };
  for (const Want& want : {Want{Code::kEq, {0, 0, 1, 1}},
                           {Code::kNe, {1, 1, 0, 0}},
                           {Code::kLt, {1, 0, 0, 0}},
                           {Code::kLe, {1, 0, 1, 1}},
                           {Code::kIsNan, {0, 1, 0, 0}},
                           {Code::kIsFinite, {1, 0, 1, 0}}}) {
    for (Isa isa : available_isas()) {
      uint8_t y[4];
      Executable p;
      p.shape({4});
      uint8_t x = p.input(a.data(), {1}), z = p.input(b.data(), {1});
      p.output(y, p.op(want.code, x, z), RegionType::kBool);
      p.finish();
      run_whole(region_fns(isa).region, p.args);
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(y[i], want.y[i]) << isa_name(isa) << " code " << int(want.code) << " at " << i;
    }
  }
}

TEST(region, clamp_keeps_nan_and_prefers_the_upper_bound) {
  for (Isa isa : available_isas()) {
    Guarded x(5), lo(5), hi(5);
    const float xs[] = {NAN, 5, -5, 0.5f, 0}, los[] = {0, 0, 0, 0, 3}, his[] = {1, 1, 1, 1, 2};
    for (int i = 0; i < 5; ++i) x[i] = xs[i], lo[i] = los[i], hi[i] = his[i];
    Guarded y = run_op(isa, Code::kClamp, {&x, &lo, &hi});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], 0.5f);
    EXPECT_EQ(y[4], 2);
  }
}

TEST(region, long_chains_reuse_few_registers) {
  const int64_t n = 5000;
  Guarded x(n), y(n);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i);
  Executable p;
  p.shape({n});
  uint8_t a = p.input(x.data(), {1}), one = p.constant(1);
  uint8_t at = a;
  for (int i = 0; i < 200; ++i) at = p.op(Code::kAdd, at, one);
  uint8_t twice = p.op(Code::kAdd, at, at);
  p.output(y.data(), p.op(Code::kSub, twice, a));
  p.finish();
  EXPECT_LE(p.args.register_count, 4);
  for (Isa isa : available_isas()) {
    run_whole(region_fns(isa).region, p.args);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], 2 * (x[i] + 200) - x[i]);
  }
}

TEST(region, too_many_live_values_are_refused_and_left_alone) {
  Executable p;
  p.shape({4});
  uint8_t x = p.input(nullptr, {1});
  for (int i = 0; i < 100; ++i) p.op(Code::kNeg, x);
  uint8_t sum = p.op(Code::kAdd, 1, 2);
  for (uint8_t i = 3; i <= 100; ++i) sum = p.op(Code::kAdd, sum, i);
  std::vector<RegionOp> before = p.ops;
  EXPECT_FALSE(assign_registers(p.args, p.ops));
  EXPECT_EQ(std::memcmp(before.data(), p.ops.data(), before.size() * sizeof(RegionOp)), 0);
}

}  // namespace
}  // namespace rlx::cpu
