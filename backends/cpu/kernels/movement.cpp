// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/movement.h"

#include <algorithm>
#include <cstring>

namespace rlx::cpu {

namespace {

constexpr int64_t kCopyPart = 1 << 14;  // elements, about

int64_t row_count(const CopyArgs& args) {
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < args.rank; i++) rows *= args.dims[i];
  return rows;
}

int64_t row_length(const CopyArgs& args) {
  return args.rank ? args.dims[args.rank - 1] : 1;
}

int64_t rows_in_part(const CopyArgs& args) {
  return std::max<int64_t>(1, kCopyPart / std::max<int64_t>(1, row_length(args)));
}

int64_t copy_parts(const CopyArgs& args) {
  int64_t rows = row_length(args) ? row_count(args) : 0, part = rows_in_part(args);
  return (rows + part - 1) / part;
}

template <size_t kBytes>
void copy_row(const std::byte* from, std::byte* to, int64_t length, int64_t stride) {
  struct Element {
    std::byte bytes[kBytes];
  };
  for (int64_t i = 0; i < length; i++) {
    Element element;
    std::memcpy(&element, from + i * stride, kBytes);
    std::memcpy(to + i * static_cast<int64_t>(kBytes), &element, kBytes);
  }
}

using RowFn = void (*)(const std::byte*, std::byte*, int64_t, int64_t);

RowFn row_fn(int64_t element) {
  switch (element) {
    case 1: return copy_row<1>;
    case 2: return copy_row<2>;
    case 4: return copy_row<4>;
    case 8: return copy_row<8>;
    default: return copy_row<16>;
  }
}

void copy_run(const CopyArgs& args, int64_t begin, int64_t end) {
  int64_t length = row_length(args), part = rows_in_part(args), rows = row_count(args);
  int64_t stride = args.rank ? args.strides[args.rank - 1] : args.element;
  bool whole = stride == args.element;
  RowFn copy = row_fn(args.element);
  int64_t first = begin * part, last = std::min(end * part, rows);
  int64_t index[kMaxRank] = {}, offset = 0;
  for (int64_t rest = first, axis = args.rank - 2; axis >= 0; axis--) {
    index[axis] = rest % args.dims[axis];
    rest /= args.dims[axis];
    offset += index[axis] * args.strides[axis];
  }
  std::byte* to = args.to + first * length * args.element;
  for (int64_t row = first; row < last; row++, to += length * args.element) {
    if (whole)
      std::memcpy(to, args.from + offset, static_cast<size_t>(length * args.element));
    else
      copy(args.from + offset, to, length, stride);
    for (int32_t axis = args.rank - 2; axis >= 0; axis--) {
      offset += args.strides[axis];
      if (++index[axis] < args.dims[axis]) break;
      offset -= args.strides[axis] * args.dims[axis];
      index[axis] = 0;
    }
  }
}

int64_t index_at(const GatherArgs& args, int64_t i) {
  return args.index_is_i64 ? static_cast<const int64_t*>(args.index)[i] : static_cast<const int32_t*>(args.index)[i];
}

// The place of an index, or -1 where the row is 0; false: it is an error.
bool find_place(const GatherArgs& args, int64_t index, int64_t& at) {
  at = index < 0 ? index + args.n : index;
  if (at >= 0 && at < args.n) return true;
  if (args.bounds == Bounds::kError) return false;
  at = args.bounds == Bounds::kClamp && args.n > 0 ? std::clamp<int64_t>(at, 0, args.n - 1) : -1;
  return true;
}

// Rows [first, last) of single elements: a copy of each by a call would cost more than the element.
template <size_t kBytes, class Index>
int64_t gather_elements(const GatherArgs& args, int64_t first, int64_t last) {
  struct Element {
    std::byte bytes[kBytes];
  };
  constexpr auto kSize = static_cast<int64_t>(kBytes);
  const auto* index = static_cast<const Index*>(args.index);
  while (first < last) {
    int64_t begin = first % args.count, end = std::min(args.count, begin + last - first);
    const std::byte* from = args.from + first / args.count * args.n * kSize;
    std::byte* to = args.to + first * kSize;
    first += end - begin;
    for (int64_t i = begin; i < end; i++, to += kSize) {
      int64_t at = -1;
      if (!find_place(args, index[i], at)) return i;
      Element element{};
      if (at >= 0) std::memcpy(&element, from + at * kSize, kBytes);
      std::memcpy(to, &element, kBytes);
    }
  }
  return -1;
}

template <size_t kBytes>
int64_t gather_elements(const GatherArgs& args, int64_t first, int64_t last) {
  return args.index_is_i64 ? gather_elements<kBytes, int64_t>(args, first, last)
                           : gather_elements<kBytes, int32_t>(args, first, last);
}

}  // namespace

Loop<CopyArgs> copy_loop() {
  return {copy_parts, copy_run};
}

void collapse_dims(CopyArgs& args) {
  int32_t rank = 0;
  for (int32_t i = 0; i < args.rank; i++) {
    if (args.dims[i] == 1) continue;
    if (rank > 0 && args.strides[rank - 1] == args.strides[i] * args.dims[i]) {
      args.dims[rank - 1] *= args.dims[i];
      args.strides[rank - 1] = args.strides[i];
    } else {
      args.dims[rank] = args.dims[i];
      args.strides[rank++] = args.strides[i];
    }
  }
  args.rank = rank;
}

int64_t gather_parts(const GatherArgs& args) {
  return (args.outer * args.count + kGatherPart - 1) / kGatherPart;
}

int64_t gather_rows(const GatherArgs& args, int64_t begin, int64_t end) {
  int64_t last = std::min(end * kGatherPart, args.outer * args.count);
  switch (args.bytes) {
    case 1: return gather_elements<1>(args, begin * kGatherPart, last);
    case 2: return gather_elements<2>(args, begin * kGatherPart, last);
    case 4: return gather_elements<4>(args, begin * kGatherPart, last);
    case 8: return gather_elements<8>(args, begin * kGatherPart, last);
    default: break;
  }
  for (int64_t row = begin * kGatherPart; row < last; row++) {
    int64_t outer = row / args.count, i = row % args.count, at = -1;
    if (!find_place(args, index_at(args, i), at)) return i;
    std::byte* to = args.to + row * args.bytes;
    if (at < 0)
      std::memset(to, 0, static_cast<size_t>(args.bytes));
    else
      std::memcpy(to, args.from + (outer * args.n + at) * args.bytes, static_cast<size_t>(args.bytes));
  }
  return -1;
}

// ---- rows written into an axis ----

namespace {

constexpr int64_t kPartBytes = 1 << 17;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t number_at(const WriteRowsArgs& args, int64_t i) {
  return args.index_is_i64 ? static_cast<const int64_t*>(args.index)[i] : static_cast<const int32_t*>(args.index)[i];
}

// Integers wrap, an i32 as an i32.
int64_t add(const WriteRowsArgs& args, int64_t a, int64_t b) {
  auto sum = static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return args.index_is_i64 ? sum : static_cast<int32_t>(sum);
}

// What row i is to go to, as the op says it: not yet checked.
int64_t target_of(const WriteRowsArgs& args, int64_t b, int64_t i) {
  if (args.from == WriteRowsArgs::kIndex) return number_at(args, i);
  int64_t at = number_at(args, args.per_batch ? b : 0);
  if (args.from == WriteRowsArgs::kStart) return add(args, at < 0 ? add(args, at, args.n) : at, i);
  at = add(args, at, i);
  if (!args.wraps) return at;
  if (args.n == 0) return 0;
  return at % args.n < 0 ? at % args.n + args.n : at % args.n;
}

// The place of an index in n, or -1 where it is ignored; false: it is an error.
bool place_of(const WriteRowsArgs& args, int64_t index, int64_t n, int64_t& at) {
  at = index < 0 ? index + n : index;
  if (at >= 0 && at < n) return true;
  if (args.bounds == Bounds::kError) return false;
  at = args.bounds == Bounds::kClamp && n > 0 ? std::clamp<int64_t>(at, 0, n - 1) : -1;
  return true;
}

// The row that row i of batch b goes to, or -1.
BadIndex find_row(const WriteRowsArgs& args, int64_t b, int64_t i, int64_t& at) {
  constexpr BadIndex kGood{0, 0, -1};
  if (args.from != WriteRowsArgs::kTuple) {
    int64_t index = target_of(args, b, i);
    return place_of(args, index, args.n, at) ? kGood : BadIndex{index, args.per_batch ? b * args.count + i : i, args.n};
  }
  at = 0;
  for (int32_t k = 0; k < args.depth; k++) {
    int64_t position = (b * args.count + i) * args.depth + k, one = 0, index = number_at(args, position);
    if (!place_of(args, index, args.tuple_dims[k], one)) return {index, position, args.tuple_dims[k]};
    at = one < 0 || at < 0 ? -1 : at * args.tuple_dims[k] + one;
  }
  return kGood;
}

// Positions [first, last) of one [b, m].
BadIndex write_slice(const WriteRowsArgs& args, int64_t slice, int64_t first, int64_t last) {
  int64_t b = slice / args.mid;
  if (args.x != args.y && last > first && args.bytes)
    std::memcpy(args.y + (slice * args.n + first) * args.bytes, args.x + (slice * args.n + first) * args.bytes,
                static_cast<size_t>((last - first) * args.bytes));
  for (int64_t i = 0; i < args.count; i++) {
    int64_t at = -1;
    if (BadIndex bad = find_row(args, b, i, at); bad.n >= 0) return bad;
    if (at < first || at >= last || !args.bytes) continue;
    std::memcpy(args.y + (slice * args.n + at) * args.bytes, args.rows + (slice * args.count + i) * args.bytes,
                static_cast<size_t>(args.bytes));
  }
  return {0, 0, -1};
}

}  // namespace

// A slice that is copied is cut, as long as its indices are few enough to be looked at again by each part.
void cut_rows(WriteRowsArgs& args) {
  int64_t whole = (args.x == args.y ? std::min(args.count, args.n) : args.n) * args.bytes;
  args.slices = std::max<int64_t>(1, kPartBytes / std::max<int64_t>(1, whole + args.count));
  args.blocks = 1;
  if (args.x != args.y && args.slices == 1)
    args.blocks = std::clamp<int64_t>(std::min(whole / kPartBytes, args.n / (1 + 4 * args.count)), 1, 1024);
}

int64_t write_rows_parts(const WriteRowsArgs& args) {
  return ceil_div(args.batch * args.mid, args.slices) * args.blocks;
}

BadIndex write_rows(const WriteRowsArgs& args, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; part++) {
    int64_t slice = part / args.blocks * args.slices, block = part % args.blocks;
    int64_t rows = ceil_div(args.n, args.blocks), first = std::min(block * rows, args.n);
    int64_t last = std::min(first + rows, args.n);
    for (int64_t end_slice = std::min(slice + args.slices, args.batch * args.mid); slice < end_slice; slice++)
      if (BadIndex bad = write_slice(args, slice, first, last); bad.n >= 0) return bad;
  }
  return {0, 0, -1};
}

}  // namespace rlx::cpu
