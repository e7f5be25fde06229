// SPDX-License-Identifier: Apache-2.0
// The CPU's elementwise functions stay within the units in the last place that bound_of names: for samples of f32, and
// for every f16 and bf16. With --every-f32 [--part I/N] [--function NAME], for every f32, or every N-th block of them
// from the I-th on: some hours of one core, a line for each function and way.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>

#include "functions.h"
#include "ops/interpret.h"

namespace rlx::accuracy {

// ---- errors ----

struct Precision {
  int digits;          // of the significand, the leading one included
  int least_exponent;  // of a normal number
  double least;        // normal number
  double beyond;       // what follows the largest number
  bool flushes;        // smaller numbers may be 0 (semantics.md N5)
};
static Precision precision_of(DType dtype) {
  if (dtype == DType::kF16) return {11, -14, 0x1p-14, 65536, false};
  if (dtype == DType::kBF16) return {8, -126, 0x1p-126, 0x1p128, true};
  return {24, -126, 0x1p-126, 0x1p128, true};
}

// Of a number whose magnitude is at least that of the least normal one, the distance to the next one.
static double spacing(const Precision& of, double value) {
  auto exponent = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff) - 1023;
  int biased = std::max(exponent, of.least_exponent) - of.digits + 1 + 1023;
  return std::bit_cast<double>(static_cast<uint64_t>(biased) << 52);
}

// Infinite if one of them is a NaN or an infinity that the other is not. A result beyond the largest number is where
// that number's successor would be.
static double error(const Precision& of, double got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : HUGE_VAL;
  if (std::isinf(want)) return got == want ? 0 : HUGE_VAL;
  if (of.flushes && std::fabs(want) < of.least && std::fabs(got) <= of.least) return 0;
  double near = std::clamp(want, -of.beyond, of.beyond), size = std::min(std::fabs(near), of.beyond / 2);
  return std::fabs(std::clamp(got, -of.beyond, of.beyond) - near) / spacing(of, size);
}

static std::vector<double> in_f64(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.count()));
  if (tensor.dtype() == DType::kF32)
    std::copy_n(tensor.as<float>(), values.size(), values.begin());
  else
    for (size_t i = 0; i < values.size(); i++) values[i] = element_as_f64(tensor, static_cast<int64_t>(i));
  return values;
}

// ---- one function, all ways ----

struct Worst {
  double ulps = 0;
  int64_t faults = 0;
  std::string at;  // the operands of the greatest error
};

// One function, computed in all ways and compared with f64, block by block.
class Judge {
 public:
  Judge(Function function, DType dtype)
      : function_(std::move(function)),
        dtype_(dtype),
        bound_(bound_of(function_, dtype)),
        ways_(ways_of(function_, dtype)),
        worst_(ways_.size()) {}

  void compare(std::span<const Tensor> operands) {
    std::vector<double> want = exact(function_, operands), want_of_zeros;
    for (size_t way = 0; way < ways_.size(); way++) {
      Tensor y = ways_[way].program->run({}, operands, {}, 1).value()[0];
      std::vector<double> got = in_f64(y);
      Precision precision = precision_of(y.dtype());
      for (size_t i = 0; i < want.size(); i++) {
        double ulps = error(precision, got[i], want[i]);
        if (ulps <= worst_[way].ulps && ulps <= bound_) continue;
        if (precision_of(dtype_).flushes && has_subnormal(operands, i)) {
          if (want_of_zeros.empty()) want_of_zeros = exact(function_, flushed(operands));
          ulps = std::min(ulps, error(precision, got[i], want_of_zeros[i]));
        }
        note(worst_[way], ulps, operands, i, got[i], want[i]);
      }
    }
  }

  double bound() const { return bound_; }
  size_t ways() const { return ways_.size(); }
  const Function& function() const { return function_; }
  const std::string& way(size_t i) const { return ways_[i].name; }
  const Worst& worst(size_t i) const { return worst_[i]; }

 private:
  static bool has_subnormal(std::span<const Tensor> operands, size_t i) {
    return std::ranges::any_of(operands, [i](const Tensor& operand) {
      double x = element_as_f64(operand, static_cast<int64_t>(i));
      return x != 0 && std::fabs(x) < 0x1p-126;
    });
  }

  static std::vector<Tensor> flushed(std::span<const Tensor> operands) {
    std::vector<Tensor> zeros;
    for (const Tensor& operand : operands) {
      Tensor wide = *convert(operand, DType::kF64);
      for (double& x : std::span(wide.as<double>(), static_cast<size_t>(kBlock)))
        if (std::fabs(x) < 0x1p-126) x = std::copysign(0.0, x);
      zeros.push_back(*convert(wide, operand.dtype()));
    }
    return zeros;
  }

  void note(Worst& worst, double ulps, std::span<const Tensor> operands, size_t i, double got, double want) {
    worst.faults += ulps > bound_;
    if (ulps <= worst.ulps) return;
    worst.ulps = ulps;
    worst.at.clear();
    for (const Tensor& operand : operands)
      worst.at += format("{}{:.9}", worst.at.empty() ? "" : ", ", element_as_f64(operand, static_cast<int64_t>(i)));
    worst.at += format(": {:.9}, not {:.9}", got, want);
  }

  Function function_;
  DType dtype_;
  double bound_;
  std::vector<Way> ways_;
  std::vector<Worst> worst_;
};

static void expect_close(const Judge& judge) {
  EXPECT_GT(judge.ways(), 0u) << judge.function().name;
  for (size_t way = 0; way < judge.ways(); way++)
    EXPECT_LE(judge.worst(way).ulps, judge.bound()) << judge.function().name << " (" << judge.way(way) << ") has "
                                                    << judge.worst(way).faults << " faults; " << judge.worst(way).at;
}

// ---- operands ----

template <class Bits>
static Tensor block_of(DType dtype, const std::function<Bits(int64_t)>& bits) {
  Tensor block = *Tensor::create(dtype, std::array{kBlock});
  for (int64_t i = 0; i < kBlock; i++) {
    Bits value = bits(i);
    std::memcpy(block.data() + i * int64_t{sizeof(Bits)}, &value, sizeof value);
  }
  return block;
}

// Numbers at which functions change their form, overflow, or have their zeros.
static constexpr float kCorners[] = {0,     0.5f,  0.93f, 1,      1.5f,    2,     2.5f,   3,       4,     6,
                                     8,     10,    14,    30,     88.72f,  87.3f, 103.9f, 110,     1e-7f, 1e5f,
                                     0.71f, 1.41f, 1.57f, 2.356f, 3.1416f, 128,   150,    8388608, 1e10f, 3.4e38f};

// Bit patterns of f32: around the corners and all powers of two, of either sign; then a stride over all of them.
static std::vector<uint32_t> samples() {
  std::vector<uint32_t> centres, all;
  for (uint32_t exponent = 0; exponent < 256; exponent++) centres.push_back(exponent << 23);
  for (float corner : kCorners) centres.push_back(std::bit_cast<uint32_t>(corner));
  for (uint32_t centre : centres)
    for (uint32_t sign : {0u, 1u << 31})
      for (uint32_t near = 0; near < 64; near++) all.push_back((centre + near - 32) ^ sign);
  all.resize((all.size() + kBlock - 1) / kBlock * kBlock);
  for (uint64_t i = 0; i < 8 * kBlock; i++)
    all.push_back(static_cast<uint32_t>(i * ((1ull << 32) / (8 * kBlock)) + i % 8191));
  return all;
}

TEST(accuracy, of_every_function_on_samples) {
  std::vector<uint32_t> bits = samples();
  std::vector<Function> functions = functions_of(DType::kF32, 1);
  EXPECT_GT(functions.size(), 40u);
  for (const Function& function : functions) {
    Judge judge(function, DType::kF32);
    for (size_t at = 0; at < bits.size(); at += kBlock)
      judge.compare(
          std::array{block_of<uint32_t>(DType::kF32, [&](int64_t i) { return bits[at + static_cast<size_t>(i)]; })});
    expect_close(judge);
  }
}

TEST(accuracy, of_every_function_on_all_halves) {
  for (DType dtype : {DType::kF16, DType::kBF16})
    for (const Function& function : functions_of(dtype, 1)) {
      Judge judge(function, dtype);
      judge.compare(std::array{block_of<uint16_t>(dtype, [](int64_t i) { return static_cast<uint16_t>(i); })});
      expect_close(judge);
    }
}

// Half of the operands anywhere, half of them near 1, where functions of two numbers do not overflow.
TEST(accuracy, of_every_function_of_two_numbers) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> small(-9, 9);
  for (const Function& function : functions_of(DType::kF32, 2)) {
    Judge judge(function, DType::kF32);
    for (int block = 0; block < 4; block++) {
      auto draw = [&](int64_t i) { return i % 2 ? std::bit_cast<uint32_t>(small(random)) : uint32_t(random()); };
      judge.compare(std::array{block_of<uint32_t>(DType::kF32, draw), block_of<uint32_t>(DType::kF32, draw)});
    }
    expect_close(judge);
  }
}

// ---- all of f32 ----

static int walk(uint64_t part, uint64_t parts, std::string_view only) {
  int64_t faults = 0;
  for (const Function& function : functions_of(DType::kF32, 1)) {
    if (!only.empty() && function.info->name != only) continue;
    Judge judge(function, DType::kF32);
    for (uint64_t block = part; block < (1ull << 32) / kBlock; block += parts)
      judge.compare(std::array{block_of<uint32_t>(DType::kF32, [block](int64_t i) {
        return static_cast<uint32_t>(block * kBlock + static_cast<uint64_t>(i));
      })});
    for (size_t way = 0; way < judge.ways(); way++) {
      const Worst& worst = judge.worst(way);
      faults += worst.faults;
      std::printf("%-28s %-18s %8.3f ulp of %g, %lld faults, at %s\n", function.name.c_str(), judge.way(way).c_str(),
                  worst.ulps, judge.bound(), static_cast<long long>(worst.faults), worst.at.c_str());
    }
    std::fflush(stdout);
  }
  return faults ? 1 : 0;
}

}  // namespace rlx::accuracy

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  bool every = false;
  unsigned long long part = 0, parts = 1;
  std::string_view only;
  for (int i = 1; i < argc; i++) {
    if (!std::strcmp(argv[i], "--every-f32")) every = true;
    if (i + 1 == argc) break;
    if (!std::strcmp(argv[i], "--part")) std::sscanf(argv[i + 1], "%llu/%llu", &part, &parts);
    if (!std::strcmp(argv[i], "--function")) only = argv[i + 1];
  }
  return every ? rlx::accuracy::walk(part, parts, only) : RUN_ALL_TESTS();
}
