// SPDX-License-Identifier: Apache-2.0
// Kept boxes against the definition, pair by pair.
#include "backends/cpu/kernels/keep_boxes.h"

#include <array>

#include "guarded.h"

namespace rlx::cpu {
namespace {

template <class T>
using Box = std::array<T, 4>;

// Corners on a grid, so that many ratios are exactly the limit; some boxes have no area, no end, or NaN.
template <class T>
T corner(std::mt19937& rng, uint32_t grid) {
  const T kOdd[] = {T(NAN), T(INFINITY), T(-INFINITY), T(-0.0), T(1e-40)};
  return rng() % 40 == 0 ? kOdd[rng() % 5] : T(rng() % grid) / T(2);
}

template <class T>
bool shares(const Box<T>& a, const Box<T>& b, T iou) {
  T areas[2], sides[2];
  for (int i = 0; i < 2; i++) {
    const Box<T>& it = i ? b : a;
    areas[i] = (it[2] - it[0]) * (it[3] - it[1]);
    sides[i] = std::min(a[i + 2], b[i + 2]) - std::max(a[i], b[i]);
    if (sides[i] < 0) sides[i] = 0;
  }
  T both = sides[0] * sides[1], all = areas[0] + areas[1] - both;
  if (!(areas[0] > 0) || !(areas[1] > 0) || !(all > 0)) return iou < 0;
  return both / all > iou;
}

template <class T>
void check(DType dtype, int64_t batch, int64_t classes, int64_t n, int64_t most, T iou, std::mt19937& rng,
           uint32_t grid = 9) {
  std::vector<Box<T>> boxes(static_cast<size_t>(batch * n));
  for (auto& box : boxes)
    for (T& it : box) it = corner<T>(rng, grid);
  auto count = static_cast<size_t>(batch * classes * n);
  std::vector<int64_t> order(count);
  std::vector<uint8_t> good(count), kept(count + 1, 7), again = kept;
  for (auto& it : order) it = static_cast<int64_t>(rng() % static_cast<uint32_t>(n + 2)) - 1;
  for (auto& it : good) it = rng() % 4 > 0;
  KeepBoxesArgs args{.boxes = boxes.data(), .dtype = dtype, .order = order.data(), .good = good.data(), .most = &most};
  args.iou = iou, args.batch = batch, args.classes = classes, args.n = n, args.kept = kept.data();
  run_whole(keep_boxes_loop(), args);
  args.kept = again.data();
  run_backwards(keep_boxes_loop(), args);
  ASSERT_EQ(kept, again);
  ASSERT_EQ(kept[count], 7);
  for (int64_t line = 0; line < batch * classes; line++) {
    std::vector<Box<T>> held;
    for (int64_t i = 0; i < n; i++) {
      auto at = static_cast<size_t>(line * n + i);
      const Box<T>& box = boxes[static_cast<size_t>(line / classes * n + std::clamp<int64_t>(order[at], 0, n - 1))];
      bool keeps = good[at] && static_cast<int64_t>(held.size()) < most;
      for (const Box<T>& other : held) keeps &= !shares(box, other, iou);
      ASSERT_EQ(kept[at], keeps) << "line " << line << ", place " << i;
      if (keeps) held.push_back(box);
    }
  }
}

TEST(keep_boxes, overlap_none_that_was_kept_before) {
  std::mt19937 rng(1);
  for (int64_t n : {0, 1, 2, 33, 200})
    for (int64_t most : {-1, 0, 3, 1000})
      for (double iou : {-0.5, 0.0, 0.25, 0.5, 1.0}) {
        ASSERT_NO_FATAL_FAILURE(check<float>(DType::kF32, 2, 3, n, most, static_cast<float>(iou), rng));
        ASSERT_NO_FATAL_FAILURE(check<double>(DType::kF64, 1, 2, n, most, iou, rng));
      }
  ASSERT_NO_FATAL_FAILURE(check<float>(DType::kF32, 0, 3, 5, 2, 0.5F, rng));
  ASSERT_NO_FATAL_FAILURE(check<float>(DType::kF32, 1, 1, 3000, 5000, 0.9F, rng, 500));  // keeps most of them
}

}  // namespace
}  // namespace rlx::cpu
