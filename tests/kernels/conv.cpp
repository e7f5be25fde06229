// SPDX-License-Identifier: Apache-2.0
// Convolutions against a plain f64 loop: every Isa, one to three axes, strides, dilations, spreads, pads, groups,
// packed or not, one part and many.
#include "backends/cpu/gemm/conv.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Shape {
  int64_t items, groups, channels, filters;
  ConvAxis axes[kConvAxes];
};

// size, out, taps, stride, dilation, spread, lo
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
    {2, 1, 600, 48, {{}, {}, {49, 49, 1, 1, 1, 1, 0}}},
    {1, 1, 5, 20, {{}, {9, 5, 1, 2, 1, 1, 0}, {17, 9, 1, 2, 1, 1, 0}}},
    {1, 1, 6, 9, {{}, {5, 10, 2, 1, 1, 2, 1}, {8, 16, 2, 1, 1, 2, 1}}},
    {1, 1, 6, 1, {{}, {5, 14, 1, 1, 1, 3, 0}, {8, 24, 4, 1, 2, 3, 5}}},
    {1, 1, 4, 17, {{}, {6, 6, 3, 1, 1, 1, 1}, {500, 496, 5, 1, 1, 1, 0}}},
    {1, 1, 2, 100, {{}, {40, 5, 3, 3, 7, 1, 2}, {50, 9, 4, 5, 3, 1, 0}}},
    {1, 1, 3, 65, {{}, {3, 3, 1, 1, 1, 1, 0}, {4, 4, 1, 1, 1, 1, 0}}},
    {1, 3, 1, 1, {{}, {7, 7, 3, 1, 1, 1, 1}, {7, 7, 3, 1, 1, 1, 1}}},
    {1, 2, 1, 1, {{}, {112, 112, 3, 1, 1, 1, 1}, {130, 130, 3, 1, 1, 1, 1}}},
    {1, 2, 1, 1, {{}, {20, 7, 5, 3, 2, 1, 1}, {31, 10, 4, 3, 2, 1, 2}}},
    {1, 2, 1, 3, {{}, {9, 5, 1, 2, 1, 1, 0}, {9, 5, 1, 2, 1, 1, 0}}},
    {1, 1, 0, 2, {{}, {}, {3, 3, 1, 1, 1, 1, 0}}},
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
      reads = reads && at >= 0 && at % a.spread == 0 && at / a.spread < a.size;
      offset += at / a.spread * scale;
      scale *= a.size;
    }
    if (!reads) continue;
    int64_t channel = (item * p.groups + group) * p.channels + term / p.taps();
    double product = double(p.x[channel * p.plane() + offset]) * double(p.w[w + term]);
    sum.value += product;
    sum.size += std::fabs(product);
  }
  return sum;
}

enum class Way { kProduct, kPackedProduct, kLanes, kDirect, kPlanes };

void check(Isa isa, const Shape& shape, Way way, bool fused, std::mt19937& rng) {
  ConvArgs args;
  args.items = shape.items, args.groups = shape.groups, args.channels = shape.channels, args.filters = shape.filters;
  std::copy_n(shape.axes, kConvAxes, args.axes);
  int64_t filters = shape.groups * shape.filters, outputs = shape.items * filters * args.places();
  Guarded x = Guarded::random(shape.items * shape.groups * shape.channels * args.plane(), rng);
  Guarded w = Guarded::random(filters * args.terms(), rng, -1, 1, 3),
          form(packed_filters(shape.groups, shape.filters, args.terms()), 0);
  Guarded bias = Guarded::random(filters, rng, -1, 1, 5), residual = Guarded::random(outputs, rng, -1, 1, 7);
  Guarded y(outputs, 2), again(outputs, 2);
  args.x = x.data(), args.w = w.data(), args.y = y.data();
  if (fused) args.epilogue.row_bias = bias.data(), args.epilogue.residual = residual.data();
  if (fused) args.epilogue.act = Activation::kRelu;
  ConvArgs run = args;
  if (way == Way::kPackedProduct || way == Way::kLanes) {
    pack_filters(w.data(), shape.groups, shape.filters, args.terms(), form.data());
    ASSERT_TRUE(form.guards_intact());
    run.w = form.data(), run.is_packed = true;
  }
  const ConvFns& fns = conv_fns(isa);
  if (way == Way::kLanes && !fits_lanes(run)) return;
  if (way == Way::kPlanes && !fits_planes(run)) return;
  const Loop<ConvArgs>& loop = way == Way::kDirect   ? fns.direct
                               : way == Way::kPlanes ? fns.planes
                               : way == Way::kLanes  ? fns.lanes
                                                     : fns.product;
  run_whole(loop, run);
  run.y = again.data();
  run_backwards(loop, run);
  ASSERT_TRUE(y.same_bits(again));
  ASSERT_TRUE(y.guards_intact());
  for (int64_t i = 0; i < outputs; i++) {
    int64_t place = i % args.places(), filter = i / args.places() % filters, item = i / args.places() / filters;
    Sum sum = plain(args, item, filter, place);
    if (fused) sum.value += double(bias[filter]) + double(residual[i]), sum.size += 2;
    double want = fused && sum.value < 0 ? 0 : sum.value;
    double terms = static_cast<double>(args.terms());
    double bound = std::ldexp(1.0, -24) * (16 + 2 * std::sqrt(terms)) * sum.size + 1e-30;
    ASSERT_NEAR(y[i], want, bound) << "filter " << filter << ", place " << place;
  }
}

TEST(conv, is_a_plain_loops) {
  std::mt19937 rng(1);
  for (Isa isa : available_isas()) {
    for (const Shape& shape : kShapes)
      for (bool fused : {false, true}) {
        SCOPED_TRACE(::testing::Message() << isa_name(isa) << ", shape " << &shape - kShapes << ", fused " << fused);
        for (Way way : {Way::kProduct, Way::kPackedProduct, Way::kLanes, Way::kPlanes})
          check(isa, shape, way, fused, rng);
        if (fits_direct(shape.axes[2])) check(isa, shape, Way::kDirect, fused, rng);
      }
  }
}

}  // namespace
}  // namespace rlx::cpu
