// SPDX-License-Identifier: Apache-2.0
// Elements and rows picked by index.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernels/interleave.h"
#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/kernels/places.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kElementsPart = 1 << 14;  // elements, about

// ---- rows along an axis ----

// k if the indices are 0, 1, 2 ..., each k times in succession, as in resizing by a whole factor; 0 for other indices.
template <class Index>
int64_t repeats_of(const Index* index, int64_t count, int64_t n) {
  int64_t times = 0;
  while (times < count && index[times] == 0) times++;
  if (times < 2 || count % times || count / times > n) return 0;
  for (int64_t i = times, at = 1; i < count; at++)
    for (int64_t k = 0; k < times; k++)
      if (index[i++] != at) return 0;
  return times;
}

template <class Number>
void repeat_elements(const std::byte* from, std::byte* to, int64_t count, int64_t times) {
  using Row [[gnu::vector_size(16)]] = Number;
  constexpr int64_t kSize = sizeof(Number), kWidth = 16 / kSize;
  int64_t i = 0;
  for (Row row, low, high; times == 2 && i + kWidth <= count; i += kWidth, to += 2 * sizeof(Row)) {
    std::memcpy(&row, from + i * kSize, sizeof row);
    interleave(row, row, low, high, std::make_integer_sequence<int, kWidth>());
    std::memcpy(to, &low, sizeof low);
    std::memcpy(to + sizeof low, &high, sizeof high);
  }
  for (; i < count; i++)
    for (int64_t k = 0; k < times; k++, to += kSize) std::memcpy(to, from + i * kSize, kSize);
}

template <size_t kBytes>
using NumberOf =
    std::conditional_t<kBytes == 1, uint8_t,
                       std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

// Rows [first, last) of single elements: a copy of each by a call would cost more than the element.
template <size_t kBytes, class Index>
int64_t gather_singles(const GatherArgs& args, int64_t first, int64_t last) {
  struct Element {
    std::byte bytes[kBytes];
  };
  constexpr auto kSize = static_cast<int64_t>(kBytes);
  constexpr int64_t kLinesPerSearch = 4;  // else a search for repeats costs too much
  const auto* index = static_cast<const Index*>(args.index);
  int64_t times = last - first >= kLinesPerSearch * args.count ? repeats_of(index, args.count, args.n) : 0;
  while (first < last) {
    int64_t begin = first % args.count, end = std::min(args.count, begin + last - first);
    const std::byte* from = args.from + first / args.count * args.n * kSize;
    std::byte* to = args.to + first * kSize;
    first += end - begin;
    if (times > 0 && end - begin == args.count) {
      repeat_elements<NumberOf<kBytes>>(from, to, args.count / times, times);
      continue;
    }
    for (int64_t i = begin; i < end; i++, to += kSize) {
      int64_t at = index[i];
      bool is_inside = at >= 0 && at < args.n;  // the usual case: no call is needed
      if (!is_inside && !find_place(args.bounds, index[i], args.n, at)) return i;
      Element element{};
      if (at >= 0) std::memcpy(&element, from + at * kSize, kBytes);
      std::memcpy(to, &element, kBytes);
    }
  }
  return -1;
}

template <size_t kBytes>
int64_t gather_singles(const GatherArgs& args, int64_t first, int64_t last) {
  return args.index_is_i64 ? gather_singles<kBytes, int64_t>(args, first, last)
                           : gather_singles<kBytes, int32_t>(args, first, last);
}

}  // namespace

int64_t gather_parts(const GatherArgs& args) {
  return ceil_div(args.outer * args.count, kGatherPart);
}

int64_t gather_rows(const GatherArgs& args, int64_t begin, int64_t end) {
  int64_t last = std::min(end * kGatherPart, args.outer * args.count);
  switch (args.bytes) {
    case 1: return gather_singles<1>(args, begin * kGatherPart, last);
    case 2: return gather_singles<2>(args, begin * kGatherPart, last);
    case 4: return gather_singles<4>(args, begin * kGatherPart, last);
    case 8: return gather_singles<8>(args, begin * kGatherPart, last);
    default: break;
  }
  int64_t row = begin * kGatherPart, outer = row / args.count, i = row % args.count, at = -1;
  for (; row < last; row++) {
    if (!find_place(args.bounds, index_at(args, i), args.n, at)) return i;
    std::byte* to = args.to + row * args.bytes;
    if (at < 0)
      std::memset(to, 0, static_cast<size_t>(args.bytes));
    else
      std::memcpy(to, args.from + (outer * args.n + at) * args.bytes, static_cast<size_t>(args.bytes));
    if (++i == args.count) i = 0, outer++;
  }
  return -1;
}

// ---- slices at index tuples ----

namespace {

// Rows [first, last) of rows of kBytes, or of any size if that is 0.
template <size_t kBytes, class Index>
BadIndex gather_tuples_of(const GatherTuplesArgs& args, int64_t first, int64_t last) {
  const auto* index = static_cast<const Index*>(args.index) + first * args.depth;
  const size_t bytes = kBytes ? kBytes : static_cast<size_t>(args.bytes);
  std::byte* to = args.to + first * args.bytes;
  int64_t left = args.count - first % args.count;  // of the batch
  const std::byte* from = args.from + first / args.count * args.n * args.bytes;
  for (int64_t row = first; row < last; row++, to += args.bytes) {
    int64_t at = 0;
    for (int32_t k = 0; k < args.depth; k++, index++) {
      int64_t one = *index, n = args.dims[k];
      bool is_inside = one >= 0 && one < n;  // the usual case: no call is needed
      if (!is_inside && !find_place(args.bounds, *index, n, one)) return {*index, row * args.depth + k, n};
      at = one < 0 || at < 0 ? -1 : at * n + one;
    }
    if (bytes == 0) continue;
    if (at < 0)
      std::memset(to, 0, bytes);
    else
      std::memcpy(to, from + at * args.bytes, bytes);
    if (--left == 0) left = args.count, from += args.n * args.bytes;
  }
  return kAllGood;
}
template <class Index>
BadIndex gather_tuples_by(const GatherTuplesArgs& args, int64_t first, int64_t last) {
  switch (args.bytes) {
    case 1: return gather_tuples_of<1, Index>(args, first, last);
    case 2: return gather_tuples_of<2, Index>(args, first, last);
    case 4: return gather_tuples_of<4, Index>(args, first, last);
    case 8: return gather_tuples_of<8, Index>(args, first, last);
    default: return gather_tuples_of<0, Index>(args, first, last);
  }
}

}  // namespace

int64_t gather_tuples_parts(const GatherTuplesArgs& args) {
  return ceil_div(args.batch * args.count, kGatherPart);
}

BadIndex gather_tuples(const GatherTuplesArgs& args, int64_t begin, int64_t end) {
  int64_t first = begin * kGatherPart, last = std::min(end * kGatherPart, args.batch * args.count);
  if (first >= last) return kAllGood;
  return (args.index_is_i64 ? gather_tuples_by<int64_t> : gather_tuples_by<int32_t>)(args, first, last);
}

// ---- single elements, each with an index of its own ----

namespace {

int64_t index_rows(const GatherElementsArgs& args) {
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < args.rank; i++) rows *= args.dims[i];
  return args.dims[args.rank - 1] ? rows : 0;
}
int64_t index_rows_in_part(const GatherElementsArgs& args) {
  return std::max<int64_t>(1, kElementsPart / std::max<int64_t>(1, args.dims[args.rank - 1]));
}

template <class T, class Index>
int64_t gather_row(const GatherElementsArgs& args, const T* x, const Index* index, T* y) {
  int64_t length = args.dims[args.rank - 1], stride = args.strides[args.axis];
  int64_t step = args.axis + 1 == args.rank ? 0 : args.strides[args.rank - 1];
  const auto n = static_cast<uint64_t>(args.n);
  for (int64_t i = 0; i < length; i++, x += step) {
    int64_t at = index[i];
    if (static_cast<uint64_t>(at) < n) {  // the usual case: no call is needed
      y[i] = x[at * stride];
    } else {
      if (!find_place(args.bounds, index[i], args.n, at)) return i;
      y[i] = at < 0 ? T() : x[at * stride];
    }
  }
  return -1;
}

template <class T, class Index>
int64_t gather_elements_of(const GatherElementsArgs& args, int64_t begin, int64_t end) {
  int64_t length = args.dims[args.rank - 1], part = index_rows_in_part(args);
  for (int64_t row = begin * part; row < std::min(end * part, index_rows(args)); row++) {
    int64_t offset = 0;
    for (int64_t rest = row, axis = args.rank - 2; axis >= 0; axis--) {
      if (axis != args.axis) offset += rest % args.dims[axis] * args.strides[axis];
      rest /= args.dims[axis];
    }
    int64_t bad =
        gather_row(args, reinterpret_cast<const T*>(args.from) + offset,
                   static_cast<const Index*>(args.index) + row * length, reinterpret_cast<T*>(args.to) + row * length);
    if (bad >= 0) return row * length + bad;
  }
  return -1;
}

template <class T>
int64_t gather_elements_of(const GatherElementsArgs& args, int64_t begin, int64_t end) {
  return args.index_is_i64 ? gather_elements_of<T, int64_t>(args, begin, end)
                           : gather_elements_of<T, int32_t>(args, begin, end);
}

}  // namespace

int64_t gather_elements_parts(const GatherElementsArgs& args) {
  return ceil_div(index_rows(args), index_rows_in_part(args));
}

int64_t gather_elements(const GatherElementsArgs& args, int64_t begin, int64_t end) {
  switch (args.element) {
    case 1: return gather_elements_of<uint8_t>(args, begin, end);
    case 2: return gather_elements_of<uint16_t>(args, begin, end);
    case 4: return gather_elements_of<uint32_t>(args, begin, end);
    default: return gather_elements_of<uint64_t>(args, begin, end);
  }
}

}  // namespace rlx::cpu
