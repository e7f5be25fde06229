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

// Some values of T side by side.
template <class T>
using Several [[gnu::vector_size(16)]] = T;
template <class T>
constexpr int64_t kWidth = 16 / sizeof(T);

template <class V>
V larger(V a, V b) {
  return a < b ? b : a;
}
template <class V>
V smaller(V a, V b) {
  return b < a ? b : a;
}

// Boxes that a line has kept, coordinate by coordinate; places that are not taken hold no area.
template <class T>
class Kept {
 public:
  bool is_full() const { return count_ == kMost; }
  void add(const Box<T>& box) {
    const T all[] = {box.y_low, box.x_low, box.y_high, box.x_high, box.area()};
    for (int c = 0; c < kNumbers; c++) numbers_[c][count_] = all[c];
    count_++;
    for (auto& numbers : numbers_)
      for (int64_t i = count_; i % kWidth<T>; i++) numbers[i] = 0;
  }
  // Whether the box overlaps one of these. Rounds as the definition does (decompose_keep_boxes), so that the answer is
  // the same at the limit too.
  bool cover(const Box<T>& a, T iou) const {
    const Several<T> none{}, area = a.area() - none;
    for (int64_t i = 0; i < count_; i += kWidth<T>) {
      Several<T> b[kNumbers];
      for (int c = 0; c < kNumbers; c++) std::memcpy(&b[c], numbers_[c] + i, sizeof b[c]);
      Several<T> height = larger(smaller(a.y_high - none, b[2]) - larger(a.y_low - none, b[0]), none);
      Several<T> width = larger(smaller(a.x_high - none, b[3]) - larger(a.x_low - none, b[1]), none);
      Several<T> both = height * width, all = area + b[4] - both;
      auto is_real = (area > none) & (b[4] > none) & (all > none);
      auto over = iou < (is_real ? both / all : none);
      uint64_t halves[2];
      std::memcpy(halves, &over, sizeof halves);
      if (halves[0] | halves[1]) return true;
    }
    return false;
  }

 private:
  static constexpr int kNumbers = 5;
  static constexpr int64_t kMost = 512;
  T numbers_[kNumbers][kMost];
  int64_t count_ = 0;
};

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
    for (int64_t i = 0; i < n_; i++) kept_[i] = good_[i] ? kOpen : kOut;
    Kept<T> kept;
    int64_t count = 0;
    for (int64_t i = 0; i < n_ && count < most; i++) {
      if (kept_[i] == kOut || kept.cover(box(i), iou_)) continue;
      kept_[i] = kIn;
      count++;
      kept.add(box(i));
      if (kept.is_full()) {
        drop_covered(i + 1, kept);
        kept = {};
      }
    }
    for (int64_t i = 0; i < n_; i++) kept_[i] = kept_[i] == kIn;
  }

 private:
  enum State : uint8_t { kOpen, kIn, kOut };

  const Box<T>& box(int64_t i) const { return boxes_[std::clamp<int64_t>(order_[i], 0, n_ - 1)]; }
  void drop_covered(int64_t from, const Kept<T>& kept) {
    for (int64_t i = from; i < n_; i++)
      if (kept_[i] == kOpen && kept.cover(box(i), iou_)) kept_[i] = kOut;
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
