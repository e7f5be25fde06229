// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/keep_boxes.h"

#include <algorithm>
#include <cstring>

namespace rlx::cpu {

namespace {

template <class T>
struct Box {
  T y_low, x_low, y_high, x_high;
  T area() const { return (y_high - y_low) * (x_high - x_low); }
};

// Rounds as the definition does (decompose_keep_boxes), so that the answer is the same at the limit too.
template <class T>
bool overlap(const Box<T>& a, const Box<T>& b, T iou) {
  T height = std::max(std::min(a.y_high, b.y_high) - std::max(a.y_low, b.y_low), T(0));
  T width = std::max(std::min(a.x_high, b.x_high) - std::max(a.x_low, b.x_low), T(0));
  T both = height * width, all = a.area() + b.area() - both;
  bool is_real = a.area() > 0 && b.area() > 0 && all > 0;
  return iou < (is_real ? both / all : T(0));
}

template <class T>
class Line {
 public:
  Line(const KeepBoxesArgs& args, int64_t number)
      : boxes_(static_cast<const Box<T>*>(args.boxes) + number / args.classes * args.n),
        order_(args.order + number * args.n),
        good_(args.good + number * args.n),
        kept_(args.kept + number * args.n),
        n_(args.n),
        iou_(static_cast<T>(args.iou)) {}

  void keep(int64_t most) {
    std::memset(kept_, 0, static_cast<size_t>(n_));
    int64_t count = 0;
    for (int64_t i = 0; i < n_ && count < most; i++) {
      if (!good_[i] || is_covered(i)) continue;
      kept_[i] = 1;
      count++;
    }
  }

 private:
  const Box<T>& box(int64_t i) const { return boxes_[std::clamp<int64_t>(order_[i], 0, n_ - 1)]; }

  bool is_covered(int64_t i) const {
    const Box<T> here = box(i);
    for (int64_t j = next_kept(0, i); j < i; j = next_kept(j + 1, i))
      if (overlap(here, box(j), iou_)) return true;
    return false;
  }

  int64_t next_kept(int64_t from, int64_t end) const {
    const void* found = std::memchr(kept_ + from, 1, static_cast<size_t>(end - from));
    return found ? static_cast<const uint8_t*>(found) - kept_ : end;
  }

  const Box<T>* boxes_;
  const int64_t* order_;
  const uint8_t* good_;
  uint8_t* kept_;
  int64_t n_;
  T iou_;
};

int64_t keep_boxes_parts(const KeepBoxesArgs& args) {
  return args.n ? args.batch * args.classes : 0;
}

void keep_boxes_run(const KeepBoxesArgs& args, int64_t begin, int64_t end) {
  for (int64_t line = begin; line < end; line++)
    if (args.dtype == DType::kF64)
      Line<double>(args, line).keep(*args.most);
    else
      Line<float>(args, line).keep(*args.most);
}

}  // namespace

Loop<KeepBoxesArgs> keep_boxes_loop() {
  return {keep_boxes_parts, keep_boxes_run};
}

}  // namespace rlx::cpu
