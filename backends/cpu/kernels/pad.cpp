// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/pad.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/fill.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kPadPart = 1 << 14;  // elements, about

int64_t row_length(const PadArgs& args) {
  return args.rank ? args.to_dims[args.rank - 1] : 1;
}
int64_t row_count(const PadArgs& args) {
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < args.rank; i++) rows *= args.to_dims[i];
  return rows;
}
int64_t rows_in_part(const PadArgs& args) {
  return std::max<int64_t>(1, kPadPart / std::max<int64_t>(1, row_length(args)));
}
int64_t pad_parts(const PadArgs& args) {
  int64_t part = rows_in_part(args);
  return row_length(args) ? ceil_div(row_count(args), part) : 0;
}

// The position that position i of a padded axis of n reads, or -1.
int64_t source_of(PadMode mode, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge || n == 1) return i < 0 ? 0 : n - 1;
  int64_t period = mode == PadMode::kWrap ? n : 2 * (n - 1), at = i;
  if (at < -period || at >= 2 * period) at %= period;  // seldom: a division takes as long as copying a short row
  if (at < 0) at += period;
  if (at >= period) at -= period;
  return at < n ? at : period - at;
}

// Rows of `to`, one after another.
class Rows {
 public:
  Rows(const PadArgs& args, int64_t first) : args_(args) {
    for (int32_t axis = args.rank - 2; axis >= 0; axis--) {
      at_[axis] = first % args.to_dims[axis];
      first /= args.to_dims[axis];
    }
  }
  // The row of `from` that this one reads, or -1.
  int64_t source() const {
    int64_t source = 0;
    for (int32_t axis = 0; axis + 1 < args_.rank; axis++) {
      int64_t at = source_of(args_.mode, at_[axis] - args_.lo[axis], args_.from_dims[axis]);
      if (at < 0) return -1;
      source = source * args_.from_dims[axis] + at;
    }
    return source;
  }
  void advance() {
    for (int32_t axis = args_.rank - 2; axis >= 0; axis--) {
      if (++at_[axis] < args_.to_dims[axis]) return;
      at_[axis] = 0;
    }
  }

 private:
  const PadArgs& args_;
  int64_t at_[kMaxRank] = {};
};

template <size_t kBytes>
void pad_rows(const PadArgs& args, int64_t first, int64_t last) {
  constexpr auto kSize = static_cast<int64_t>(kBytes);
  std::byte value[kBytes] = {};
  if (args.value) std::memcpy(value, args.value, kBytes);
  int64_t length = row_length(args), n = args.rank ? args.from_dims[args.rank - 1] : 1;
  int64_t lo = args.rank ? args.lo[args.rank - 1] : 0;
  int64_t begin = std::clamp<int64_t>(lo, 0, length), end = std::clamp<int64_t>(lo + n, begin, length);
  bool is_constant = args.mode == PadMode::kConstant;
  Rows rows(args, first);
  for (int64_t row = first; row < last; row++, rows.advance()) {
    std::byte* out = args.to + row * length * kSize;
    int64_t source = begin < end || !is_constant ? rows.source() : -1;
    if (source < 0) {
      fill_row<kBytes>(value, out, length);
      continue;
    }
    const std::byte* from = args.from + source * n * kSize;
    auto fill = [&](int64_t i, int64_t past) {
      if (is_constant) return fill_row<kBytes>(value, out + i * kSize, past - i);
      for (; i < past; i++) std::memcpy(out + i * kSize, from + source_of(args.mode, i - lo, n) * kSize, kBytes);
    };
    fill(0, begin);
    if (begin < end)
      std::memcpy(out + begin * kSize, from + (begin - lo) * kSize, static_cast<size_t>((end - begin) * kSize));
    fill(end, length);
  }
}

void pad_run(const PadArgs& args, int64_t begin, int64_t end) {
  int64_t part = rows_in_part(args), first = begin * part, last = std::min(end * part, row_count(args));
  switch (args.element) {
    case 1: return pad_rows<1>(args, first, last);
    case 2: return pad_rows<2>(args, first, last);
    case 4: return pad_rows<4>(args, first, last);
    case 8: return pad_rows<8>(args, first, last);
    default: return pad_rows<16>(args, first, last);
  }
}

}  // namespace

Loop<PadArgs> pad_loop() {
  return {pad_parts, pad_run};
}

void collapse_axes(PadArgs& args) {
  if (args.rank == 0) return;
  auto is_whole = [&](int32_t axis) { return args.lo[axis] == 0 && args.from_dims[axis] == args.to_dims[axis]; };
  int32_t last = args.rank - 1, to = last;
  for (int32_t axis = last - 1; axis >= 0; axis--) {
    int64_t size = args.to_dims[to];
    bool joins = is_whole(to) && (is_whole(axis) || args.mode == PadMode::kConstant);
    if (joins && (to < last || args.to_dims[axis] * size <= kPadPart)) {
      args.lo[to] = args.lo[axis] * size;
      args.from_dims[to] = args.from_dims[axis] * size, args.to_dims[to] = args.to_dims[axis] * size;
    } else {
      --to;
      args.lo[to] = args.lo[axis], args.from_dims[to] = args.from_dims[axis], args.to_dims[to] = args.to_dims[axis];
    }
  }
  for (int64_t* list : {args.lo, args.from_dims, args.to_dims}) std::copy(list + to, list + args.rank, list);
  args.rank -= to;
}

}  // namespace rlx::cpu
