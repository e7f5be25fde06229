// SPDX-License-Identifier: Apache-2.0
// Padding against a plain loop: every element size, any rank, crops, empty sides, no value.
#include "backends/cpu/kernels/pad.h"

#include <algorithm>

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Shape {
  std::vector<int64_t> from, lo, hi;
};
const Shape kShapes[] = {
    {{}, {}, {}},
    {{5}, {2}, {3}},
    {{5}, {-2}, {1}},
    {{5}, {-7}, {9}},
    {{0}, {2}, {1}},
    {{3, 4}, {1, 0}, {0, 2}},
    {{3, 4}, {-1, 2}, {2, -1}},
    {{2, 3, 4}, {1, 1, 0}, {0, 1, 1}},
    {{2, 0, 4}, {1, 1, 1}, {0, 0, 0}},
    {{3, 20000}, {1, 3}, {0, 5}},
    {{3, 4}, {0, -4}, {0, 0}},
    {{2, 3, 4, 5}, {0, 1, 0, 0}, {0, 2, 0, 0}},
    {{2, 3, 4, 5}, {0, 0, -1, 0}, {0, 0, 2, 0}},
    {{2, 3, 4, 5}, {0, 0, 0, 1}, {0, 0, 0, 1}},
    {{2, 300, 100}, {1, 0, 0}, {0, 0, 0}},
};

// Axes that are joined change nothing.
void expect_the_same_collapsed(PadArgs args, const Guarded& want) {
  Guarded y(want.size());
  args.to = reinterpret_cast<std::byte*>(y.data());
  collapse_axes(args);
  run_backwards(pad_loop(), args);
  ASSERT_TRUE(y.guards_intact() && y.same_bits(want)) << "rank " << args.rank;
}

TEST(pad, equals_a_plain_loop) {
  std::mt19937 rng(1);
  for (const Shape& shape : kShapes)
    for (int64_t element : {1, 2, 4, 8, 16})
      for (bool has_value : {false, true}) {
        PadArgs args{.element = element, .rank = static_cast<int32_t>(shape.from.size())};
        int64_t from_count = 1, to_count = 1;
        for (size_t i = 0; i < shape.from.size(); i++) {
          args.from_dims[i] = shape.from[i], args.lo[i] = shape.lo[i];
          args.to_dims[i] = shape.from[i] + shape.lo[i] + shape.hi[i];
          from_count *= args.from_dims[i], to_count *= args.to_dims[i];
        }
        std::vector<std::byte> x(static_cast<size_t>(from_count * element)), value(static_cast<size_t>(element));
        for (auto* list : {&x, &value})
          for (std::byte& byte : *list) byte = static_cast<std::byte>(rng());
        Guarded y((to_count * element + 3) / 4), again(y.size());
        args.from = x.data(), args.value = has_value ? value.data() : nullptr;
        args.to = reinterpret_cast<std::byte*>(y.data());
        run_whole(pad_loop(), args);
        args.to = reinterpret_cast<std::byte*>(again.data());
        run_backwards(pad_loop(), args);
        ASSERT_TRUE(y.guards_intact() && y.same_bits(again));
        ASSERT_NO_FATAL_FAILURE(expect_the_same_collapsed(args, y));
        for (int64_t i = 0; i < to_count; i++) {
          int64_t rest = i, offset = 0, scale = 1;
          bool inside = true;
          for (int32_t axis = args.rank - 1; axis >= 0; axis--) {
            int64_t at = rest % args.to_dims[axis] - args.lo[axis];
            rest /= args.to_dims[axis];
            inside = inside && at >= 0 && at < args.from_dims[axis];
            offset += at * scale, scale *= args.from_dims[axis];
          }
          for (int64_t b = 0; b < element; b++) {
            std::byte want = inside      ? x[static_cast<size_t>(offset * element + b)]
                             : has_value ? value[static_cast<size_t>(b)]
                                         : std::byte{0};
            ASSERT_EQ(reinterpret_cast<const std::byte*>(y.data())[i * element + b], want)
                << "shape " << &shape - kShapes << ", element " << element << ", at " << i;
          }
        }
      }
}

// Where position i of an axis of n reads, found by steps from inside.
int64_t walked(PadMode mode, int64_t i, int64_t n) {
  if (mode == PadMode::kEdge) return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == PadMode::kWrap) return ((i % n) + n) % n;
  while (n > 1 && (i < 0 || i >= n)) i = i < 0 ? -i : 2 * (n - 1) - i;
  return n == 1 ? 0 : i;
}

TEST(pad, what_is_around_is_of_x) {
  const Shape kModeShapes[] = {{{5}, {12}, {13}},
                               {{1}, {2}, {3}},
                               {{3, 4}, {1, 0}, {0, 9}},
                               {{3, 4}, {-1, 2}, {7, -1}},
                               {{2, 3, 4}, {1, 5, 0}, {0, 1, 3}},
                               {{3, 20000}, {1, 3}, {0, 5}},
                               {{4, 6}, {0, -6}, {0, 3}},
                               {{2, 3, 4, 5}, {0, 0, 2, 0}, {0, 0, 1, 0}},
                               {{2, 3, 4, 5}, {0, 0, 1, 2}, {0, 0, 3, 2}},
                               {{3, 4, 5}, {1, 0, 0}, {2, 0, 0}}};
  for (PadMode mode : {PadMode::kEdge, PadMode::kReflect, PadMode::kWrap})
    for (const Shape& shape : kModeShapes) {
      PadArgs args{.element = 4, .mode = mode, .rank = static_cast<int32_t>(shape.from.size())};
      int64_t from_count = 1, to_count = 1;
      for (size_t i = 0; i < shape.from.size(); i++) {
        args.from_dims[i] = shape.from[i], args.lo[i] = shape.lo[i];
        args.to_dims[i] = shape.from[i] + shape.lo[i] + shape.hi[i];
        from_count *= args.from_dims[i], to_count *= args.to_dims[i];
      }
      Guarded x(from_count), y(to_count);
      for (int64_t i = 0; i < from_count; i++) x[i] = static_cast<float>(i);
      args.from = reinterpret_cast<const std::byte*>(x.data());
      args.to = reinterpret_cast<std::byte*>(y.data());
      run_backwards(pad_loop(), args);
      ASSERT_TRUE(y.guards_intact());
      ASSERT_NO_FATAL_FAILURE(expect_the_same_collapsed(args, y));
      for (int64_t i = 0; i < to_count; i++) {
        int64_t rest = i, offset = 0, scale = 1;
        for (int32_t axis = args.rank - 1; axis >= 0; axis--) {
          offset += walked(mode, rest % args.to_dims[axis] - args.lo[axis], args.from_dims[axis]) * scale;
          rest /= args.to_dims[axis], scale *= args.from_dims[axis];
        }
        ASSERT_EQ(y[i], x[offset]) << "mode " << static_cast<int>(mode) << ", shape " << &shape - kModeShapes << " at "
                                   << i;
      }
    }
}

}  // namespace
}  // namespace rlx::cpu
