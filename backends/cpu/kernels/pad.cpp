// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/pad.h"

#include <algorithm>
#include <cstring>

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
  int64_t period = mode == PadMode::kWrap ? n : 2 * (n - 1), at = i % period;
  if (at < 0) at += period;
  return at < n ? at : period - at;
}

// The row of `from` that a row of `to` reads, or -1.
int64_t source_row(const PadArgs& args, int64_t row) {
  int64_t source = 0, scale = 1;
  for (int32_t axis = args.rank - 2; axis >= 0; axis--) {
    int64_t at = source_of(args.mode, row % args.to_dims[axis] - args.lo[axis], args.from_dims[axis]);
    row /= args.to_dims[axis];
    if (at < 0) return -1;
    source += at * scale;
    scale *= args.from_dims[axis];
  }
  return source;
}

template <size_t kBytes>
void pad_rows(const PadArgs& args, int64_t first, int64_t last) {
  struct Element {
    std::byte bytes[kBytes];
  };
  Element value{};
  if (args.value) std::memcpy(&value, args.value, kBytes);
  int64_t length = row_length(args), n = args.rank ? args.from_dims[args.rank - 1] : 1;
  int64_t lo = args.rank ? args.lo[args.rank - 1] : 0;
  int64_t begin = std::clamp<int64_t>(lo, 0, length), end = std::clamp<int64_t>(lo + n, begin, length);
  auto* to = reinterpret_cast<Element*>(args.to);
  for (int64_t row = first; row < last; row++) {
    Element* out = to + row * length;
    bool is_constant = args.mode == PadMode::kConstant;
    int64_t source = begin < end || !is_constant ? source_row(args, row) : -1;
    if (source < 0) {
      std::fill_n(out, length, value);
      continue;
    }
    const std::byte* from = args.from + source * n * static_cast<int64_t>(kBytes);
    auto fill = [&](int64_t i, int64_t past) {
      if (is_constant) return std::fill(out + i, out + past, value);
      for (; i < past; i++)
        std::memcpy(out + i, from + source_of(args.mode, i - lo, n) * static_cast<int64_t>(kBytes), kBytes);
    };
    fill(0, begin);
    if (begin < end)
      std::memcpy(out + begin, from + (begin - lo) * static_cast<int64_t>(kBytes),
                  static_cast<size_t>(end - begin) * kBytes);
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

}  // namespace rlx::cpu
