// SPDX-License-Identifier: Apache-2.0
// Folds over windows against a plain loop: every Isa and fold, one to three axes, pads, strides, dilations, planes that
// are cut into blocks, NaN.
#include "backends/cpu/kernels/window.h"

#include <algorithm>

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Shape {
  int64_t planes;
  ConvAxis axes[kConvAxes];
};

// size, out, taps, stride, dilation, lhs_dilation, lo
const Shape kShapes[] = {
    {3, {{}, {9, 9, 3, 1, 1, 1, 1}, {9, 9, 3, 1, 1, 1, 1}}},
    {2, {{}, {13, 13, 13, 1, 1, 1, 6}, {13, 13, 13, 1, 1, 1, 6}}},
    {37, {{}, {7, 4, 3, 2, 1, 1, 1}, {9, 5, 3, 2, 1, 1, 1}}},  // planes along the lanes
    {20, {{}, {14, 16, 3, 1, 1, 1, 2}, {15, 11, 3, 1, 2, 1, 0}}},
    {16, {{}, {9, 2, 2, 3, 1, 1, 0}, {8, 3, 2, 3, 1, 1, 0}}},
    {40, {{}, {20, 20, 5, 1, 1, 1, 2}, {20, 20, 5, 1, 1, 1, 2}}},  // in two steps
    {35, {{}, {13, 5, 6, 2, 1, 1, 1}, {11, 4, 4, 2, 2, 1, 1}}},
    {18, {{}, {8, 8, 7, 1, 1, 1, 3}, {9, 3, 3, 3, 1, 1, 0}}},
    {2, {{}, {9, 9, 3, 1, 1, 1, 1}, {35, 35, 3, 1, 1, 1, 1}}},  // bands
    {3, {{}, {7, 8, 2, 1, 1, 1, 1}, {16, 15, 2, 1, 1, 1, 0}}},
    {2, {{}, {9, 5, 2, 2, 1, 1, 1}, {67, 34, 2, 2, 1, 1, 1}}},
    {2, {{}, {6, 3, 3, 2, 1, 1, 0}, {33, 18, 3, 2, 1, 1, 2}}},
    {1, {{}, {1, 5, 3, 1, 1, 1, 2}, {1, 40, 3, 1, 1, 1, 2}}},  // more beyond x than inside
    {1, {{}, {3, 0, 3, 1, 1, 1, 0}, {20, 18, 3, 1, 1, 1, 0}}},
    {1, {{}, {112, 56, 3, 2, 1, 1, 1}, {113, 57, 3, 2, 1, 1, 1}}},
    {2, {{}, {}, {9000, 4499, 4, 2, 1, 1, 0}}},
    {1, {{}, {40, 12, 3, 3, 2, 1, 1}, {41, 9, 4, 4, 2, 1, 2}}},
    {2, {{4, 4, 3, 1, 1, 1, 1}, {5, 3, 3, 2, 1, 1, 1}, {6, 6, 3, 1, 1, 1, 1}}},
    {1, {{}, {700, 700, 2, 1, 1, 1, 0}, {3, 3, 3, 1, 1, 1, 1}}},
    {2, {{}, {}, {8000, 160, 100, 50, 1, 1, 30}}},  // far apart or wide
    {3, {{}, {}, {1003, 50, 20, 20, 1, 1, 0}}},
    {2, {{}, {100, 6, 3, 17, 1, 1, 1}, {101, 7, 3, 17, 1, 1, 2}}},
    {1, {{}, {40, 3, 7, 13, 2, 1, 3}, {900, 29, 5, 29, 7, 1, 9}}},
    {1, {{}, {}, {9000, 4600, 500, 1, 1, 1, 40}}},
    {1, {{}, {}, {9000, 3, 8, 4500, 585, 1, 40}}},
    {1, {{2, 1, 2, 1, 1, 1, 0}, {5, 5, 3, 1, 1, 1, 1}, {300, 9, 33, 40, 1, 1, 20}}},
    {1, {{}, {1, 1, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 1, 0}}},
    {2, {{}, {0, 0, 2, 1, 1, 1, 0}, {3, 3, 1, 1, 1, 1, 0}}},
    {0, {{}, {3, 3, 1, 1, 1, 1, 0}, {3, 3, 1, 1, 1, 1, 0}}},
};

double join(ReduceFn fn, double a, double b) {
  if (fn == ReduceFn::kSum) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return fn == ReduceFn::kMax ? std::max(a, b) : std::min(a, b);
}

double element(const WindowArgs& p, int64_t at) {
  switch (p.type) {
    case WindowArgs::kU8: return static_cast<const uint8_t*>(p.x)[at];
    case WindowArgs::kI8: return static_cast<const int8_t*>(p.x)[at];
    default: return static_cast<const float*>(p.x)[at];
  }
}

// Calls body with the index in x of each element of the window at a place of a plane, in order.
template <class Body>
void visit_window(const ConvAxis (&a)[kConvAxes], int64_t plane, int64_t place, Body body) {
  for (int64_t tap = 0; tap < a[0].taps * a[1].taps * a[2].taps; tap++) {
    int64_t rest_tap = tap, rest = place, offset = 0, scale = 1;
    bool reads = true;
    for (int axis = kConvAxes - 1; axis >= 0; axis--) {
      int64_t at = rest % a[axis].out * a[axis].stride + rest_tap % a[axis].taps * a[axis].dilation - a[axis].lo;
      rest /= a[axis].out, rest_tap /= a[axis].taps;
      reads = reads && at >= 0 && at < a[axis].size;
      offset += at * scale, scale *= a[axis].size;
    }
    if (reads) body(plane * scale + offset);
  }
}

double plain(const WindowArgs& p, int64_t plane, int64_t place) {
  double folded = p.fn == ReduceFn::kSum ? 0 : p.fn == ReduceFn::kMax ? -HUGE_VAL : HUGE_VAL;
  visit_window(p.axes, plane, place, [&](int64_t at) { folded = join(p.fn, folded, element(p, at)); });
  return folded;
}

TEST(window, equals_a_plain_loop) {
  std::mt19937 rng(1);
  for (const Shape& shape : kShapes)
    for (ReduceFn fn : {ReduceFn::kSum, ReduceFn::kMax, ReduceFn::kMin})
      for (bool has_nan : {false, true}) {
        WindowArgs args{.planes = shape.planes, .fn = fn};
        std::copy_n(shape.axes, kConvAxes, args.axes);
        const ConvAxis* a = args.axes;
        int64_t size = a[0].size * a[1].size * a[2].size, outs = a[0].out * a[1].out * a[2].out;
        Guarded x = Guarded::random(shape.planes * size, rng);
        if (has_nan && x.size()) x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
        args.x = x.data();
        std::vector<double> want;
        for (int64_t i = 0; i < shape.planes * outs; i++) want.push_back(plain(args, i / outs, i % outs));
        for (Isa isa : available_isas()) {
          Guarded y(shape.planes * outs, 2), again(shape.planes * outs, 2);
          const Loop<WindowArgs>& loop = window_fns(isa).fold;
          args.y = y.data();
          run_whole(loop, args);
          args.y = again.data();
          run_backwards(loop, args);
          ASSERT_TRUE(y.same_bits(again) && y.guards_intact());
          for (int64_t i = 0; i < y.size(); i++) {
            double right = want[static_cast<size_t>(i)], bound = fn == ReduceFn::kSum ? 1e-4 : 0;
            ASSERT_TRUE(same_special(y[i], right) || std::abs(y[i] - right) <= bound)
                << isa_name(isa) << ", shape " << &shape - kShapes << ", fold " << static_cast<int>(fn) << " at " << i
                << ": " << y[i] << ", not " << right;
          }
        }
      }
}

TEST(window, of_bytes_equals_a_plain_loop) {
  std::mt19937 rng(2);
  for (const Shape& shape : kShapes)
    for (ReduceFn fn : {ReduceFn::kMax, ReduceFn::kMin})
      for (auto type : {WindowArgs::kU8, WindowArgs::kI8}) {
        WindowArgs args{.type = type, .planes = shape.planes, .fn = fn};
        std::copy_n(shape.axes, kConvAxes, args.axes);
        const ConvAxis* a = args.axes;
        int64_t size = a[0].size * a[1].size * a[2].size, outs = a[0].out * a[1].out * a[2].out;
        std::vector<uint8_t> x(static_cast<size_t>(shape.planes * size)),
            y(static_cast<size_t>(shape.planes * outs) + 1);
        for (uint8_t& byte : x) byte = static_cast<uint8_t>(rng());
        args.x = x.data(), args.y = y.data();
        double lo = type == WindowArgs::kI8 ? -128 : 0, hi = lo + 255;
        for (Isa isa : available_isas()) {
          y.back() = 77;
          run_backwards(window_fns(isa).fold, args);
          ASSERT_EQ(y.back(), 77);
          for (int64_t i = 0; i < shape.planes * outs; i++) {
            uint8_t byte = y[static_cast<size_t>(i)];
            double got = type == WindowArgs::kI8 ? static_cast<int8_t>(byte) : byte;
            ASSERT_EQ(got, std::clamp(plain(args, i / outs, i % outs), lo, hi)) << isa_name(isa) << " at " << i;
          }
        }
      }
}

int64_t plain_place(const ArgWindowArgs& p, int64_t plane, int64_t place) {
  int64_t found = -1;
  visit_window(p.axes, plane, place, [&](int64_t at) {
    float value = p.x[at], best = found < 0 ? 0 : p.x[found];
    if (found < 0 || (p.is_min ? value < best : value > best) || (std::isnan(value) && !std::isnan(best))) found = at;
  });
  return found;
}

// With values that occur more than once, NaN and denormals among them.
TEST(window, extremes_are_found_where_they_are_first) {
  std::mt19937 rng(3);
  for (const Shape& shape : kShapes)
    for (bool is_min : {false, true}) {
      ArgWindowArgs args{.planes = shape.planes, .is_min = is_min};
      std::copy_n(shape.axes, kConvAxes, args.axes);
      const ConvAxis* a = args.axes;
      int64_t outs = a[0].out * a[1].out * a[2].out;
      Guarded x = Guarded::random(shape.planes * a[0].size * a[1].size * a[2].size, rng);
      const float kValues[] = {0, -0.0f, 1e-40f, -1e-40f, 1, -1, INFINITY, -INFINITY, 2, 3};
      for (int64_t i = 0; i < x.size(); i++) x[i] = rng() % 40 ? kValues[rng() % std::size(kValues)] : NAN;
      std::vector<int64_t> y(static_cast<size_t>(shape.planes * outs) + 1);
      args.x = x.data(), args.y = y.data();
      for (Isa isa : available_isas()) {
        y.assign(y.size(), 77);
        run_backwards(window_fns(isa).arg, args);
        ASSERT_EQ(y.back(), 77);
        for (int64_t i = 0; i < shape.planes * outs; i++)
          ASSERT_EQ(y[static_cast<size_t>(i)], plain_place(args, i / outs, i % outs))
              << isa_name(isa) << ", shape " << &shape - kShapes << " at " << i;
      }
    }
}

}  // namespace
}  // namespace rlx::cpu
