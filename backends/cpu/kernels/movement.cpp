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
  for (int64_t row = begin * kGatherPart; row < last; row++) {
    int64_t outer = row / args.count, i = row % args.count, at = index_at(args, i);
    if (at < 0) at += args.n;
    if (at < 0 || at >= args.n) {
      if (args.bounds == Bounds::kError) return i;
      at = args.bounds == Bounds::kClamp && args.n > 0 ? std::clamp<int64_t>(at, 0, args.n - 1) : -1;
    }
    std::byte* to = args.to + row * args.bytes;
    if (at < 0)
      std::memset(to, 0, static_cast<size_t>(args.bytes));
    else
      std::memcpy(to, args.from + (outer * args.n + at) * args.bytes, static_cast<size_t>(args.bytes));
  }
  return -1;
}

}  // namespace rlx::cpu
