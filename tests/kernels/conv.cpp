// SPDX-License-Identifier: Apache-2.0
// Convolutions against a plain f64 loop: every Isa, one to three axes, strides, dilations, pads, groups,
// packed or not, one part and many.
#include "backends/cpu/gemm/conv.h"

#include <optional>

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Shape {
  int64_t items, groups, channels, filters;
  ConvAxis axes[kConvAxes];
};

// size, out, taps, stride, dilation, lhs_dilation, lo
const Shape kShapes[] = {
    {1, 1, 3, 5, {{}, {}, {9, 9, 3, 1, 1, 1, 1}}},
    {2, 1, 16, 33, {{}, {14, 14, 3, 1, 1, 1, 1}, {14, 14, 3, 1, 1, 1, 1}}},
    {1, 1, 3, 64, {{}, {23, 12, 7, 2, 1, 1, 3}, {21, 11, 7, 2, 1, 1, 3}}},
    {1, 1, 40, 300, {{}, {7, 7, 1, 1, 1, 1, 0}, {7, 7, 1, 1, 1, 1, 0}}},
    {1, 4, 8, 12, {{}, {10, 8, 3, 1, 2, 1, 1}, {40, 38, 3, 1, 1, 1, 0}}},
    {1, 1, 2, 3, {{}, {5, 11, 3, 1, 1, 2, 1}, {4, 8, 2, 1, 1, 2, 0}}},
    {2, 1, 2, 4, {{4, 4, 3, 1, 1, 1, 1}, {5, 3, 3, 2, 1, 1, 1}, {6, 6, 3, 1, 1, 1, 1}}},
    {1, 1, 1, 4, {{}, {}, {300, 201, 100, 1, 1, 1, 0}}},
    {1, 3, 1, 1, {{}, {9, 9, 3, 1, 1, 1, 1}, {9, 9, 3, 1, 1, 1, 1}}},
    {2, 5, 1, 2, {{}, {20, 10, 5, 2, 1, 1, 2}, {400, 200, 5, 2, 1, 1, 2}}},
    {1, 2, 2, 2, {{}, {6, 6, 3, 1, 2, 1, 2}, {50, 17, 3, 3, 2, 1, 2}}},
    {1, 4, 1, 1, {{}, {}, {33, 33, 4, 1, 1, 1, 3}}},
    {1, 1, 2, 2, {{}, {}, {3, 6, 2, 1, 1, 1, 2}}},
    {1, 1, 2, 2, {{}, {0, 0, 2, 1, 1, 1, 0}, {3, 3, 1, 1, 1, 1, 0}}},
    {1, 1, 24, 70, {{}, {9, 9, 3, 1, 1, 1, 1}, {30, 30, 3, 1, 1, 1, 1}}},
    {1, 2, 70, 40, {{}, {7, 7, 3, 1, 1, 1, 1}, {7, 7, 3, 1, 1, 1, 1}}},
    {1, 1, 600, 48, {{}, {}, {49, 49, 1, 1, 1, 1, 0}}},
    {2, 3, 1, 1, {{}, {9, 9, 3, 1, 1, 1, 1}, {40, 40, 3, 1, 1, 1, 1}}},  // bands
    {1, 2, 1, 1, {{}, {11, 7, 5, 1, 1, 1, 0}, {35, 33, 5, 1, 1, 1, 2}}},
    {2, 2, 1, 1, {{}, {12, 6, 3, 2, 1, 1, 1}, {67, 34, 3, 2, 1, 1, 2}}},
    {1, 3, 1, 1, {{}, {9, 5, 5, 2, 1, 1, 2}, {35, 17, 5, 2, 1, 1, 1}}},
    {1, 2, 1, 1, {{}, {1, 1, 3, 1, 1, 1, 1}, {5, 16, 3, 1, 1, 1, 2}}},
    {1, 2, 1, 1, {{}, {9, 9, 7, 1, 1, 1, 3}, {40, 40, 7, 1, 1, 1, 3}}},
    {2, 1, 1, 1, {{}, {13, 7, 7, 2, 1, 1, 3}, {67, 34, 7, 2, 1, 1, 3}}},
    {1, 2, 1, 1, {{}, {3, 1, 7, 1, 1, 1, 2}, {35, 30, 7, 1, 1, 1, 1}}},
    {1, 1, 1, 1, {{}, {9, 9, 3, 1, 1, 1, 1}, {40, 40, 7, 1, 1, 1, 3}}},
    {2, 3, 1, 1, {{}, {14, 14, 3, 1, 1, 1, 1}, {14, 14, 3, 1, 1, 1, 1}}},
    {1, 2, 1, 1, {{}, {25, 13, 5, 2, 1, 1, 2}, {24, 12, 5, 2, 1, 1, 2}}},
    {2, 3, 1, 1, {{}, {17, 16, 9, 1, 1, 1, 4}, {49, 48, 9, 1, 1, 1, 4}}},
    {1, 2, 1, 1, {{}, {19, 10, 9, 2, 1, 1, 4}, {71, 35, 9, 2, 1, 1, 3}}},
    {1, 3, 1, 1, {{}, {14, 12, 7, 1, 1, 1, 2}, {14, 14, 1, 1, 1, 1, 0}}},
    {1, 2, 1, 1, {{}, {23, 23, 5, 1, 1, 1, 2}, {113, 112, 2, 1, 1, 1, 0}}},
    {2, 3, 5, 40, {{}, {17, 17, 1, 1, 1, 1, 0}, {19, 19, 1, 1, 1, 1, 0}}},  // strips of points
    {1, 1, 140, 70, {{}, {}, {208, 208, 1, 1, 1, 1, 0}}},
    {2, 3, 20, 40, {{4, 2, 1, 3, 1, 1, 0}, {10, 5, 1, 2, 1, 1, 0}, {20, 9, 1, 2, 1, 1, 0}}},
    {2, 1, 512, 9, {{3, 3, 1, 1, 1, 1, 0}, {3, 3, 1, 1, 1, 1, 0}, {5, 5, 1, 1, 1, 1, 0}}},
    {1, 1, 5, 20, {{}, {9, 5, 1, 2, 1, 1, 0}, {17, 9, 1, 2, 1, 1, 0}}},
    {1, 1, 6, 9, {{}, {5, 10, 2, 1, 1, 2, 1}, {8, 16, 2, 1, 1, 2, 1}}},
    {1, 1, 6, 1, {{}, {5, 14, 1, 1, 1, 3, 0}, {8, 24, 4, 1, 2, 3, 5}}},
    {1, 1, 4, 17, {{}, {6, 6, 3, 1, 1, 1, 1}, {500, 496, 5, 1, 1, 1, 0}}},
    {1, 1, 2, 100, {{}, {40, 5, 3, 3, 7, 1, 2}, {50, 9, 4, 5, 3, 1, 0}}},
    {1, 1, 3, 65, {{}, {3, 3, 1, 1, 1, 1, 0}, {4, 4, 1, 1, 1, 1, 0}}},
    {1, 3, 1, 1, {{}, {7, 7, 3, 1, 1, 1, 1}, {7, 7, 3, 1, 1, 1, 1}}},
    {2, 19, 1, 1, {{}, {7, 7, 3, 1, 1, 1, 1}, {9, 9, 3, 1, 1, 1, 1}}},  // planes along the lanes
    {1, 33, 1, 1, {{}, {28, 14, 5, 2, 1, 1, 2}, {13, 6, 3, 2, 2, 1, 1}}},
    {1, 2, 1, 1, {{}, {70, 70, 3, 1, 1, 1, 1}, {130, 130, 3, 1, 1, 1, 1}}},
    {1, 2, 1, 1, {{}, {20, 7, 5, 3, 2, 1, 1}, {31, 10, 4, 3, 2, 1, 2}}},
    {1, 2, 1, 3, {{}, {9, 5, 1, 2, 1, 1, 0}, {9, 5, 1, 2, 1, 1, 0}}},
    {1, 2, 3, 7, {{}, {172, 58, 5, 3, 1, 1, 2}, {64, 64, 9, 1, 1, 1, 4}}},
    {1, 1, 2, 1, {{}, {}, {9000, 4498, 5, 2, 1, 1, 0}}},
    {1, 1, 1, 1, {{}, {}, {600, 173, 256, 2, 1, 1, 0}}},
    {1, 1, 1, 70, {{}, {}, {2000, 16, 130, 128, 1, 1, 60}}},  // long windows, far apart
    {1, 1, 2, 3, {{}, {}, {1500, 901, 600, 1, 1, 1, 0}}},
    {1, 1, 1, 1, {{}, {41, 6, 36, 1, 1, 1, 0}, {41, 6, 36, 1, 1, 1, 0}}},
    {1, 2, 2, 3, {{}, {5, 3, 3, 2, 1, 1, 1}, {400, 40, 40, 10, 1, 1, 9}}},
    {1, 1, 2, 2, {{}, {}, {900, 41, 33, 20, 2, 1, 0}}},
    {1, 1, 3, 20, {{}, {9, 5, 3, 1, 1, 1, -1}, {9, 6, 2, 1, 1, 1, -2}}},
    {1, 1, 3, 4, {{}, {9, 5, 3, 1, 1, 1, -1}, {9, 6, 2, 1, 1, 1, -2}}},
    {1, 1, 5, 20, {{}, {33, 33, 3, 1, 18, 1, 18}, {33, 33, 3, 1, 18, 1, 18}}},  // most taps read beyond x
    {1, 1, 3, 5, {{3, 6, 2, 1, 1, 2, 1}, {4, 8, 2, 1, 1, 2, 1}, {5, 10, 2, 1, 1, 2, 1}}},
    {1, 1, 5, 1, {{}, {9, 18, 4, 1, 1, 2, 1}, {40, 80, 4, 1, 1, 2, 1}}},  // lhs_dilation
    {2, 3, 2, 3, {{}, {9, 18, 2, 1, 1, 2, 1}, {11, 22, 2, 1, 1, 2, 1}}},
    {1, 1, 300, 3, {{}, {9, 18, 4, 1, 1, 2, 1}, {33, 66, 4, 1, 1, 2, 2}}},
    {1, 2, 3, 5, {{}, {5, 10, 3, 1, 1, 2, 1}, {40, 40, 3, 1, 1, 1, 1}}},
    {2, 1, 4, 3, {{}, {9, 10, 3, 1, 1, 2, -3}, {20, 25, 5, 1, 1, 2, -6}}},
    {1, 9, 1, 1, {{}, {7, 13, 3, 1, 1, 2, 1}, {7, 14, 3, 1, 1, 2, 1}}},
    {1, 1, 3, 6, {{}, {130, 259, 3, 1, 1, 2, 1}, {140, 280, 3, 1, 3, 2, 4}}},
    {1, 1, 4, 5, {{}, {3, 16, 5, 1, 2, 6, 3}, {5, 30, 4, 1, 9, 6, -2}}},
    {1, 1, 70, 40, {{}, {6, 12, 2, 1, 1, 2, 1}, {19, 37, 3, 1, 1, 2, 1}}},
    {1, 1, 20, 66, {{}, {}, {300, 899, 7, 1, 1, 3, 4}}},
    {1, 2, 9, 33, {{}, {3, 12, 8, 1, 1, 4, 5}, {30, 120, 8, 1, 1, 4, 5}}},
    {2, 1, 9, 34, {{}, {}, {40, 321, 16, 1, 1, 8, 11}}},
    {1, 1, 9, 34, {{}, {3, 2, 3, 1, 1, 3, 1}, {4, 36, 12, 1, 1, 9, 8}}},
    {2, 1, 7, 3, {{}, {}, {13, 480, 100, 1, 1, 32, 50}}},  // x far apart
    {1, 1, 2, 1, {{}, {}, {1400, 33000, 30, 1, 1, 24, 20}}},
    {1, 1, 2, 1, {{}, {}, {9, 150, 20, 1, 3, 17, 11}}},
    {1, 1, 300, 2, {{}, {}, {5, 90, 40, 1, 1, 20, 0}}},
    {1, 3, 2, 3, {{}, {4, 66, 20, 1, 1, 18, 7}, {5, 100, 37, 1, 2, 19, 33}}},
    {1, 1, 2, 1, {{}, {6, 200, 5, 1, 1, 33, 1}, {130, 256, 3, 1, 1, 2, 3}}},
    {1, 2, 2, 3, {{3, 7, 2, 1, 1, 3, 1}, {3, 50, 3, 1, 7, 20, 5}, {4, 9, 3, 1, 1, 2, -1}}},
    {1, 1, 40, 9, {{}, {5, 10, 2, 1, 1, 2, 1}, {7, 14, 2, 1, 1, 2, 1}}},  // many taps of few filters, few of many
    {2, 2, 3, 40, {{8, 4, 3, 2, 1, 1, 1}, {20, 10, 7, 2, 1, 1, 3}, {18, 9, 7, 2, 1, 1, 3}}},
    {1, 1, 0, 2, {{}, {}, {3, 3, 1, 1, 1, 1, 0}}},
    {1, 1, 2, 3, {{}, {}, {0, 1, 0, 1, 1, 1, 0}}},
    {1, 2, 2, 3, {{}, {0, 1, 0, 1, 1, 1, 0}, {3, 2, 0, 2, 1, 1, 0}}},
    {1, 1, 2, 3, {{}, {3, 4, 0, 1, 1, 1, 0}, {3, 3, 1, 1, 1, 1, 0}}},
    {1, 2, 2, 2, {{}, {3, 2, 2, 1, 1, 1, 0}, {3, 3, 0, 1, 1 << 30, 1, 0}}},  // an end that cuts off what such taps add
    {1, 1, 3, 16, {{}, {8, 8, 1, 1, 1, 1, 0}, {8, 3, 1, 3, 1, 1, int64_t{1} << 32}}},  // far outside of x
    {1, 1, 3, 16, {{}, {8, 3, 1, 3, 1, 1, int64_t{1} << 32}, {8, 8, 3, 1, 1, 1, 1}}},
    {1, 1, 3, 16, {{}, {8, 8, 2, 1, 1, 1, -(int64_t{1} << 33)}, {8, 4, 2, 1, 2, 3, (int64_t{3} << 40) + 1}}},
    {1, 17, 1, 1, {{}, {8, 8, 2, 1, 1, 1, int64_t{1} << 31}, {8, 4, 2, 1, 2, 1, -(int64_t{3} << 40)}}},
};

struct Sum {
  double value = 0, size = 0;
};

Sum plain(const ConvArgs& p, int64_t item, int64_t filter, int64_t place) {
  Sum sum;
  int64_t group = filter / p.filters, w = filter * p.terms();
  for (int64_t term = 0; term < p.terms(); term++) {
    int64_t tap = term % p.taps(), rest_tap = tap, rest_place = place, offset = 0, scale = 1;
    bool reads = true;
    for (int axis = kConvAxes - 1; axis >= 0; axis--) {
      const ConvAxis& a = p.axes[axis];
      int64_t at = rest_place % a.out * a.stride + rest_tap % a.taps * a.dilation - a.lo;
      rest_place /= a.out, rest_tap /= a.taps;
      reads = reads && at >= 0 && at % a.lhs_dilation == 0 && at / a.lhs_dilation < a.size;
      offset += at / a.lhs_dilation * scale;
      scale *= a.size;
    }
    int64_t channel = (item * p.groups + group) * p.channels + term / p.taps();
    double product = (reads ? double(p.x[channel * p.plane() + offset]) : 0) * double(p.w[w + term]);
    sum.value += product;
    sum.size += std::fabs(product);
  }
  return sum;
}

// One shape on random numbers, and what is right.
struct Problem {
  // `odd`: what the weights hold now and then.
  Problem(const Shape& shape, std::mt19937& rng, std::optional<float> odd = std::nullopt) {
    args.items = shape.items, args.groups = shape.groups, args.channels = shape.channels, args.filters = shape.filters;
    std::copy_n(shape.axes, kConvAxes, args.axes);
    filters = shape.groups * shape.filters, outputs = shape.items * filters * args.places();
    x = Guarded::random(shape.items * shape.groups * shape.channels * args.plane(), rng);
    w = Guarded::random(filters * args.terms(), rng, -1, 1, 3);
    for (int64_t i = 0; odd && i < w.size(); i += 7) w[i] = *odd;
    form = Guarded(packed_filters(shape.groups, shape.filters, args.terms()), 0);
    bias = Guarded::random(filters, rng, -1, 1, 5), residual = Guarded::random(outputs, rng, -1, 1, 7);
    args.x = x.data(), args.w = w.data();
    FilterPackArgs pack{w.data(), shape.groups, shape.filters, args.terms(), form.data()};
    kPackFilters.run(pack, 0, kPackFilters.parts(pack));
    for (int64_t i = 0; i < outputs; i++) {
      int64_t place = i % args.places(), filter = i / args.places() % filters, item = i / args.places() / filters;
      sums.push_back(plain(args, item, filter, place));
    }
  }
  Problem(const Problem&) = delete;

  ConvArgs args;
  int64_t filters = 0, outputs = 0;
  Guarded x{0}, w{0}, form{0}, bias{0}, residual{0};
  std::vector<Sum> sums;
};

enum class Way {
  kProduct,
  kPackedProduct,
  kLanes,
  kDirect,
  kPlanes,
  kPackedPlanes,
  kPoints,
  kDepthwise,
  kPackedDepthwise,
  kScatter
};
constexpr Way kWays[] = {Way::kProduct,         Way::kPackedProduct, Way::kLanes,  Way::kDirect,
                         Way::kPlanes,          Way::kPackedPlanes,  Way::kPoints, Way::kDepthwise,
                         Way::kPackedDepthwise, Way::kScatter};

bool is_packed(Way way) {
  return way == Way::kPackedProduct || way == Way::kLanes || way == Way::kPackedPlanes || way == Way::kPoints ||
         way == Way::kPackedDepthwise;
}

const Loop<ConvArgs>* loop_of(const ConvFns& fns, Way way, const ConvArgs& args) {
  switch (way) {
    case Way::kProduct:
    case Way::kPackedProduct: return &fns.product;
    case Way::kLanes: return fits_lanes(args) ? &fns.lanes : nullptr;
    case Way::kDirect: return fits_direct(args.axes[2]) ? &fns.direct : nullptr;
    case Way::kPlanes:
    case Way::kPackedPlanes: return fits_planes(args) ? &fns.planes : nullptr;
    case Way::kPoints: return fits_points(args) ? &fns.points : nullptr;
    case Way::kDepthwise:
    case Way::kPackedDepthwise: return fits_depthwise(args) ? &fns.depthwise : nullptr;
    case Way::kScatter: return fits_scatter(args) ? &fns.scatter : nullptr;
  }
  return nullptr;
}

// What follows the sums: nothing, bias and bounds, or a residual, too.
enum class Fused { kNothing, kBounds, kResidual };

void check(Isa isa, const Problem& problem, Way way, Fused what) {
  const bool fused = what != Fused::kNothing, adds = what == Fused::kResidual;
  ConvArgs args = problem.args;
  Guarded y(problem.outputs, 2), again(problem.outputs, 2);
  args.y = y.data();
  if (fused) args.epilogue.row_bias = problem.bias.data();
  if (adds) args.epilogue.residual = problem.residual.data();
  if (fused) args.epilogue.act = Activation::kRelu, args.epilogue.hi = 0.5f;
  if (is_packed(way)) args.w = problem.form.data(), args.is_packed = true;
  const Loop<ConvArgs>* loop = loop_of(conv_fns(isa), way, args);
  if (!loop) return;
  run_whole(*loop, args);
  args.y = again.data();
  run_backwards(*loop, args);
  ASSERT_TRUE(y.same_bits(again));
  ASSERT_TRUE(y.guards_intact());
  for (int64_t i = 0; i < problem.outputs; i++) {
    int64_t filter = i / args.places() % problem.filters;
    Sum sum = problem.sums[static_cast<size_t>(i)];
    if (fused) sum.value += double(problem.bias[filter]), sum.size += 1;
    if (adds) sum.value += double(problem.residual[i]), sum.size += 1;
    double want = fused ? std::clamp(sum.value, 0.0, 0.5) : sum.value;
    double terms = static_cast<double>(args.terms());
    double bound = std::ldexp(1.0, -24) * (16 + 2 * std::sqrt(terms)) * sum.size + 1e-30;
    ASSERT_NEAR(y[i], want, bound) << "filter " << filter << ", place " << i % args.places();
  }
}

// NaN and infinity where a plain loop has them; of numbers, nothing.
void expect_special_numbers(Isa isa, const Problem& problem, Way way) {
  ConvArgs args = problem.args;
  if (is_packed(way)) args.w = problem.form.data(), args.is_packed = true;
  const Loop<ConvArgs>* loop = loop_of(conv_fns(isa), way, args);
  if (!loop) return;
  Guarded y(problem.outputs, 2);
  args.y = y.data();
  run_whole(*loop, args);
  for (int64_t i = 0; i < problem.outputs; i++) {
    double want = problem.sums[static_cast<size_t>(i)].value;
    ASSERT_EQ(std::isnan(y[i]), std::isnan(want)) << "element " << i;
    if (std::isinf(want) || std::isinf(y[i])) {
      ASSERT_EQ(double(y[i]), want) << "element " << i;
    }
  }
}

TEST(conv, equals_a_plain_loop) {
  std::mt19937 rng(1);
  for (const Shape& shape : kShapes) {
    Problem problem(shape, rng);
    ASSERT_TRUE(problem.form.guards_intact());
    for (Isa isa : available_isas())
      for (Fused fused : {Fused::kNothing, Fused::kBounds, Fused::kResidual})
        for (Way way : kWays) {
          SCOPED_TRACE(::testing::Message() << isa_name(isa) << ", shape " << &shape - kShapes << ", way "
                                            << static_cast<int>(way) << ", fused " << static_cast<int>(fused));
          check(isa, problem, way, fused);
        }
  }
}

// Padding and what lies between the elements of a dilated x are zeros: with an infinite weight they give NaN.
TEST(conv, infinite_weights_meet_the_zeros_around_x) {
  std::mt19937 rng(3);
  for (const Shape& shape : kShapes) {
    Problem problem(shape, rng, -std::numeric_limits<float>::infinity());
    for (Isa isa : available_isas())
      for (Way way : kWays) {
        SCOPED_TRACE(::testing::Message()
                     << isa_name(isa) << ", shape " << &shape - kShapes << ", way " << static_cast<int>(way));
        expect_special_numbers(isa, problem, way);
      }
  }
}

// NaN and infinity reach the outputs whose windows hold them, and no others.
TEST(conv, nan_stays_in_its_windows) {
  std::mt19937 rng(2);
  for (const Shape& shape : {kShapes[1], kShapes[8]}) {
    Problem problem(shape, rng);
    ConvArgs args = problem.args;
    problem.x[3 * args.axes[2].size + 4] = std::numeric_limits<float>::quiet_NaN();  // row 3, column 4
    for (Isa isa : available_isas())
      for (Way way : kWays) {
        if (way == Way::kPackedProduct || way == Way::kLanes || way == Way::kPackedPlanes)
          args.w = problem.form.data(), args.is_packed = true;
        else
          args.w = problem.w.data(), args.is_packed = false;
        const Loop<ConvArgs>* loop = loop_of(conv_fns(isa), way, args);
        if (!loop) continue;
        Guarded y(problem.outputs, 2);
        args.y = y.data();
        run_whole(*loop, args);
        for (int64_t i = 0; i < args.filters * args.places(); i++) {
          int64_t row = i % args.places() / args.axes[2].out, column = i % args.axes[2].out;
          EXPECT_EQ(std::isnan(y[i]), std::abs(row - 3) <= 1 && std::abs(column - 4) <= 1) << i;
        }
      }
  }
}

}  // namespace
}  // namespace rlx::cpu
