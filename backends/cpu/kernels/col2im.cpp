// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/col2im.h"

#include <algorithm>
#include <cstring>

namespace rlx::cpu {

namespace {

// The windows whose tap lies in the result, and where the tap of the first window would lie.
struct Span {
  int64_t begin, end, shift;
};

Span windows_inside(const Col2imAxis& axis, int64_t tap) {
  int64_t shift = tap * axis.dilation - axis.lo;
  int64_t begin = shift < 0 ? ceil_div(-shift, axis.stride) : 0;
  int64_t end = shift < axis.size ? (axis.size - 1 - shift) / axis.stride + 1 : 0;
  end = std::min(end, axis.count);
  return {std::min(begin, end), end, shift};
}

// Said in vectors, because the compiler does not know that `to` and `from` never overlap.
template <class T>
void add_adjacent(T* to, const T* from, int64_t count) {
  constexpr int kBytes = 32, kAtOnce = kBytes / sizeof(T);
  using Some [[gnu::vector_size(kBytes)]] = T;
  int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    Some sum, more;
    std::memcpy(&sum, to + i, kBytes);
    std::memcpy(&more, from + i, kBytes);
    sum += more;
    std::memcpy(to + i, &sum, kBytes);
  }
  for (; i < count; i++) to[i] += from[i];
}

template <class T>
void add_row(T* to, const T* from, const Span& span, int64_t stride) {
  to += span.shift;
  if (stride == 1) return add_adjacent(to + span.begin, from + span.begin, span.end - span.begin);
  for (int64_t i = span.begin; i < span.end; i++) to[i * stride] += from[i];
}

// What one tap gives to the plane.
template <class T>
void add_tap(const Col2imArgs& args, const T* from, const Span (&spans)[kCol2imAxes], T* to) {
  const Col2imAxis *outer = &args.axes[0], *middle = &args.axes[1], *inner = &args.axes[2];
  for (int64_t i = spans[0].begin; i < spans[0].end; i++)
    for (int64_t j = spans[1].begin; j < spans[1].end; j++) {
      int64_t row = (i * outer->stride + spans[0].shift) * middle->size + j * middle->stride + spans[1].shift;
      add_row(to + row * inner->size, from + (i * middle->count + j) * inner->count, spans[2], inner->stride);
    }
}

template <class T>
void add_plane(const Col2imArgs& args, int64_t plane) {
  int64_t size = 1, windows = 1, taps = 1;
  for (const Col2imAxis& axis : args.axes) size *= axis.size, windows *= axis.count, taps *= axis.taps;
  const T* from = static_cast<const T*>(args.from) + plane * taps * windows;
  T* to = static_cast<T*>(args.to) + plane * size;
  std::fill_n(to, size, T(0));
  for (int64_t tap = 0; tap < taps; tap++, from += windows) {
    Span spans[kCol2imAxes];
    int64_t rest = tap;
    for (int axis = kCol2imAxes - 1; axis >= 0; axis--) {
      spans[axis] = windows_inside(args.axes[axis], rest % args.axes[axis].taps);
      rest /= args.axes[axis].taps;
    }
    add_tap(args, from, spans, to);
  }
}

int64_t col2im_parts(const Col2imArgs& args) {
  return args.planes;
}

void col2im_run(const Col2imArgs& args, int64_t begin, int64_t end) {
  for (int64_t plane = begin; plane < end; plane++)
    if (args.dtype == DType::kF64)
      add_plane<double>(args, plane);
    else
      add_plane<float>(args, plane);
}

}  // namespace

Loop<Col2imArgs> col2im_loop() {
  return {col2im_parts, col2im_run};
}

}  // namespace rlx::cpu
