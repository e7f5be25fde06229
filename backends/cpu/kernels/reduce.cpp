// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/reduce.h"

#include <algorithm>
#include <limits>

namespace rlx::cpu {

namespace {

constexpr int64_t kBlock = 512;  // terms of one accumulator
constexpr int64_t kLanes = 32;   // accumulators side by side
constexpr int64_t kTile = 256;   // inner elements of a part

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Sum {
  static constexpr float kIdentity = 0;
  static float join(float a, float b) { return a + b; }
};
struct Prod {
  static constexpr float kIdentity = 1;
  static float join(float a, float b) { return a * b; }
};
struct Max {
  static constexpr float kIdentity = -kInf;
  static float join(float a, float b) { return a > b || a != a ? a : b; }
};
struct Min {
  static constexpr float kIdentity = kInf;
  static float join(float a, float b) { return a < b || a != a ? a : b; }
};

// A row whose terms are adjacent.
template <class Fn>
float reduce_row(const float* x, int64_t n) {
  float total = Fn::kIdentity;
  if (n < kLanes) {
    for (int64_t i = 0; i < n; i++) total = Fn::join(total, x[i]);
    return total;
  }
  for (int64_t block = 0; block < n; block += kBlock * kLanes) {
    int64_t end = std::min(n, block + kBlock * kLanes), i = block;
    float lanes[kLanes];
    std::fill_n(lanes, kLanes, Fn::kIdentity);
    for (; i + kLanes <= end; i += kLanes)
      for (int64_t k = 0; k < kLanes; k++) lanes[k] = Fn::join(lanes[k], x[i + k]);
    for (int64_t k = 0; i < end; i++, k++) lanes[k] = Fn::join(lanes[k], x[i]);
    for (int64_t width = kLanes / 2; width > 0; width /= 2)
      for (int64_t k = 0; k < width; k++) lanes[k] = Fn::join(lanes[k], lanes[k + width]);
    total = Fn::join(total, lanes[0]);
  }
  return total;
}

// Columns [first, last) of x[n, inner]: neighbours stay neighbours.
template <class Fn>
void reduce_columns(const ReduceArgs& args, int64_t outer, int64_t first, int64_t last) {
  const float* x = args.x + outer * args.n * args.inner + first;
  float* y = args.y + outer * args.inner + first;
  int64_t width = last - first;
  std::fill_n(y, width, Fn::kIdentity);
  for (int64_t block = 0; block < args.n; block += kBlock) {
    float sums[kTile];
    std::fill_n(sums, width, Fn::kIdentity);
    int64_t end = std::min(args.n, block + kBlock);
    for (int64_t i = block; i < end; i++)
      for (int64_t k = 0; k < width; k++) sums[k] = Fn::join(sums[k], x[i * args.inner + k]);
    for (int64_t k = 0; k < width; k++) y[k] = Fn::join(y[k], sums[k]);
  }
}

int64_t tiles(const ReduceArgs& args) {
  return (args.inner + kTile - 1) / kTile;
}

int64_t reduce_parts(const ReduceArgs& args) {
  return args.outer * tiles(args);
}

template <class Fn>
void reduce_parts_of(const ReduceArgs& args, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; part++) {
    if (args.inner == 1) {
      args.y[part] = reduce_row<Fn>(args.x + part * args.n, args.n);
      continue;
    }
    int64_t first = part % tiles(args) * kTile;
    reduce_columns<Fn>(args, part / tiles(args), first, std::min(args.inner, first + kTile));
  }
}

void reduce_run(const ReduceArgs& args, int64_t begin, int64_t end) {
  switch (args.fn) {
    case ReduceFn::kSum: return reduce_parts_of<Sum>(args, begin, end);
    case ReduceFn::kProd: return reduce_parts_of<Prod>(args, begin, end);
    case ReduceFn::kMax: return reduce_parts_of<Max>(args, begin, end);
    case ReduceFn::kMin: return reduce_parts_of<Min>(args, begin, end);
  }
}

}  // namespace

Loop<ReduceArgs> reduce_loop() {
  return {reduce_parts, reduce_run};
}

}  // namespace rlx::cpu
