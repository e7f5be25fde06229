// SPDX-License-Identifier: Apache-2.0
// Copies of views: row by row, or as transposes in blocks.
#include "backends/cpu/kernels/movement.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/kernels/collapse.h"
#include "backends/cpu/kernels/fill.h"
#include "backends/cpu/kernels/interleave.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kCopyPart = 1 << 14;  // elements, about
constexpr int64_t kLine = 64;           // bytes of a cache line: of rows that are transposed together

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

// An axis other than the last along which `from` is contiguous, or -1. Such rows are transposed in strips. A strip may
// read beyond a row, into the one after it, so the last axis has to run forwards.
int32_t transposed_axis(const CopyArgs& args) {
  if (args.rank < 2 || args.strides[args.rank - 1] == args.element || args.strides[args.rank - 1] <= 0) return -1;
  for (int32_t i = 0; i + 1 < args.rank; i++)
    if (args.strides[i] == args.element) return i;
  return -1;
}

// A part of a transpose is a block of rows and columns of `to`.
struct TransposeBlocks {
  int64_t rows, columns;              // of a block, at most
  int64_t row_blocks, column_blocks;  // of a matrix
};
TransposeBlocks blocks_of_transpose(const CopyArgs& args, int32_t transposed) {
  int64_t line = kLine / args.element, rows = std::max<int64_t>(1, args.dims[transposed]);
  int64_t columns = std::max<int64_t>(1, row_length(args));
  TransposeBlocks cut;
  cut.rows = std::max(line, kCopyPart / columns / line * line);
  cut.columns = std::max(line, kCopyPart / std::min(cut.rows, rows) / line * line);
  cut.row_blocks = ceil_div(rows, cut.rows);
  cut.column_blocks = ceil_div(columns, cut.columns);
  return cut;
}

int64_t copy_parts(const CopyArgs& args) {
  int64_t rows = row_length(args) ? row_count(args) : 0, part = rows_in_part(args);
  if (int32_t transposed = transposed_axis(args); transposed >= 0 && rows) {
    TransposeBlocks cut = blocks_of_transpose(args, transposed);
    return rows / args.dims[transposed] * cut.row_blocks * cut.column_blocks;
  }
  return ceil_div(rows, part);
}

template <size_t kBytes>
struct Element {
  std::byte bytes[kBytes];
};

template <size_t kBytes>
void copy_row(const std::byte* from, std::byte* to, int64_t length, int64_t stride) {
  if (stride == 0) return fill_row<kBytes>(from, to, length);
  Element<kBytes> element;
  for (int64_t i = 0; i < length; i++) {
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

// Loops over registers must be unrolled; otherwise the registers are spilled to memory.
#if defined(__clang__)
#define RLX_TURNS _Pragma("clang loop unroll(full)")
#else
#define RLX_TURNS _Pragma("GCC unroll 16")
#endif

// ---- transpose: to[i, j] = from[j, i], in blocks that fill 16-byte vectors

template <class Number>
using BlockRow [[gnu::vector_size(16)]] = Number;
template <class Number>
constexpr int kBlockWidth = 16 / sizeof(Number);

// `columns` rows of `from` become columns of `rows` rows of `to`. Each round interleaves row r with row r + half; after
// log2(width) rounds every row is a column. What only rows from kRows on need is not computed. Reads and writes 16
// bytes of each row.
template <class Number, int kColumns, int kRows>
[[gnu::always_inline]] inline void transpose_some(const std::byte* from, int64_t from_stride, int64_t columns,
                                                  std::byte* to, int64_t to_stride, int64_t rows_of_to) {
  using Row = BlockRow<Number>;
  constexpr int kWidth = kBlockWidth<Number>;
  Row rows[kWidth], next[kWidth];
  RLX_TURNS for (int i = 0; i < kWidth; i++) rows[i] = Row{};
  RLX_TURNS for (int i = 0; i < kColumns; i++) if (i < columns)
      std::memcpy(&rows[i], from + i * from_stride, sizeof(Row));
  RLX_TURNS for (int round = 1; round < kWidth; round *= 2) {
    RLX_TURNS for (int i = 0; i < kWidth / 2; i++) interleave(
        rows[i], rows[i + kWidth / 2], next[2 * i], next[2 * i + 1], std::make_integer_sequence<int, kWidth>());
    RLX_TURNS for (int i = 0; i < kWidth; i++) rows[i] = next[i];
  }
  RLX_TURNS for (int i = 0; i < kRows; i++) if (i < rows_of_to) std::memcpy(to + i * to_stride, &rows[i], sizeof(Row));
}

template <class Number, int kColumns, int kRows>
void transpose_block(const std::byte* from, int64_t from_stride, int64_t columns, std::byte* to, int64_t to_stride,
                     int64_t rows) {
  transpose_some<Number, kColumns, kRows>(from, from_stride, columns, to, to_stride, rows);
}
using BlockFn = void (*)(const std::byte*, int64_t, int64_t, std::byte*, int64_t, int64_t);
template <class Number, int kMost = kBlockWidth<Number>>
BlockFn block_of_columns(int64_t columns) {
  if constexpr (kMost > 2)
    if (columns <= kMost / 2) return block_of_columns<Number, kMost / 2>(columns);
  return transpose_block<Number, kMost, kBlockWidth<Number>>;
}
// The same for blocks of few rows side by side, as long as what they read belongs to `length` rows of `from`. Returns
// how many columns they have.
template <class Number, int kRows>
int64_t transpose_rows(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t rows,
                       int64_t length) {
  constexpr int64_t kSize = sizeof(Number), kWidth = kBlockWidth<Number>;
  int64_t j = 0;
  for (; (length - j - kWidth) * from_stride >= (kWidth - rows) * kSize; j += kWidth)
    transpose_some<Number, kWidth, kRows>(from + j * from_stride, from_stride, kWidth, to + j * kSize, to_stride, rows);
  return j;
}
using RowsFn = int64_t (*)(const std::byte*, int64_t, std::byte*, int64_t, int64_t, int64_t);
template <class Number, int kMost = kBlockWidth<Number>>
RowsFn transpose_of_rows(int64_t rows) {
  if constexpr (kMost > 2)
    if (rows <= kMost / 2) return transpose_of_rows<Number, kMost / 2>(rows);
  return transpose_rows<Number, kMost>;
}

// One by one.
template <class Number>
void transpose_singles(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t rows,
                       int64_t columns) {
  constexpr int64_t kSize = sizeof(Number);
  for (int64_t j = 0; j < columns; j++)
    for (int64_t i = 0; i < rows; i++)
      std::memcpy(to + i * to_stride + j * kSize, from + j * from_stride + i * kSize, kSize);
}

// Whole blocks.
template <class Number>
void transpose_blocks(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t rows,
                      int64_t columns) {
  constexpr int64_t kSize = sizeof(Number), kWidth = kBlockWidth<Number>;
  if (rows == 0) return;
  for (int64_t j = 0; j < columns; j += kWidth, from += kWidth * from_stride, to += kWidth * kSize) {
    int64_t i = 0;
    std::byte* row = to;
    do {
      transpose_some<Number, kWidth, kWidth>(from + i * kSize, from_stride, kWidth, row, to_stride, kWidth);
      row += kWidth * to_stride;
    } while ((i += kWidth) < rows);
  }
}

// Fewer rows than a block has, and whole blocks of columns of `length`.
template <class Number>
void transpose_last_rows(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t rows,
                         int64_t length) {
  constexpr int64_t kSize = sizeof(Number), kWidth = kBlockWidth<Number>;
  int64_t j = transpose_of_rows<Number>(rows)(from, from_stride, to, to_stride, rows, length);
  transpose_singles<Number>(from + j * from_stride, from_stride, to + j * kSize, to_stride, rows,
                            length / kWidth * kWidth - j);
}

// `count` rows of `to`, of `length` elements each. Where few columns or rows are left, a block reads or writes more of
// them than there are, if these bytes belong to neighbours that are read too, or are written afterwards.
template <class Number>
void transpose_strip(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count,
                     int64_t length) {
  constexpr int64_t kSize = sizeof(Number), kWidth = kBlockWidth<Number>;
  int64_t rows = count / kWidth * kWidth, columns = length / kWidth * kWidth;
  if (int64_t left = length - columns; left > 0) {
    const std::byte* block = from + columns * from_stride;
    std::byte* target = to + columns * kSize;
    BlockFn transpose = block_of_columns<Number>(left);
    int64_t i = 0;
    if (to_stride == length * kSize)
      for (; (count - i - kWidth) * length >= kWidth - left; i += kWidth)
        transpose(block + i * kSize, from_stride, left, target + i * to_stride, to_stride, kWidth);
    transpose_singles<Number>(block + i * kSize, from_stride, target + i * to_stride, to_stride, count - i, left);
  }
  transpose_blocks<Number>(from, from_stride, to, to_stride, rows, columns);
  if (rows < count)
    transpose_last_rows<Number>(from + rows * kSize, from_stride, to + rows * to_stride, to_stride, count - rows,
                                length);
}

using StripFn = void (*)(const std::byte*, int64_t, std::byte*, int64_t, int64_t, int64_t);

StripFn strip_fn(int64_t element) {
  switch (element) {
    case 1: return transpose_strip<uint8_t>;
    case 2: return transpose_strip<uint16_t>;
    case 4: return transpose_strip<uint32_t>;
    case 8: return transpose_strip<uint64_t>;
    default: return transpose_strip<unsigned __int128>;
  }
}

// The matrices of a transpose, one after another: where each begins, in bytes.
class Matrices {
 public:
  Matrices(const CopyArgs& args, int32_t transposed, int64_t first) {
    int64_t to_stride = args.element;
    for (int32_t axis = args.rank - 1; axis >= 0; to_stride *= args.dims[axis--]) {
      if (axis == transposed) row_bytes_ = to_stride;
      if (axis == transposed || axis + 1 == args.rank) continue;
      int64_t size = args.dims[axis];
      axes_.push_back({size, first % size, args.strides[axis], to_stride});
      from_ += first % size * args.strides[axis];
      to_ += first % size * to_stride;
      first /= size;
    }
  }
  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  int64_t row_bytes() const { return row_bytes_; }  // between rows of `to`
  void advance() {
    for (Axis& axis : axes_) {
      from_ += axis.from_stride;
      to_ += axis.to_stride;
      if (++axis.at < axis.size) return;
      from_ -= axis.size * axis.from_stride;
      to_ -= axis.size * axis.to_stride;
      axis.at = 0;
    }
  }

 private:
  struct Axis {
    int64_t size, at, from_stride, to_stride;
  };
  StaticVector<Axis, kMaxRank> axes_;  // from the last
  int64_t from_ = 0, to_ = 0, row_bytes_ = 0;
};

void copy_transposed(const CopyArgs& args, int32_t transposed, int64_t begin, int64_t end) {
  TransposeBlocks cut = blocks_of_transpose(args, transposed);
  int64_t length = row_length(args), from_stride = args.strides[args.rank - 1];
  int64_t blocks = cut.row_blocks * cut.column_blocks, block = begin % blocks;
  StripFn transpose = strip_fn(args.element);
  Matrices at(args, transposed, begin / blocks);
  for (int64_t part = begin; part < end; part++) {
    int64_t column = block % cut.column_blocks * cut.columns, columns = std::min(cut.columns, length - column);
    int64_t row = block / cut.column_blocks * cut.rows, last = std::min(args.dims[transposed], row + cut.rows);
    int64_t from = at.from() + column * from_stride, to = at.to() + column * args.element;
    // Short rows are written one after another, others a cache line of each at a time.
    int64_t strip = columns * args.element <= kLine ? cut.rows : kLine / args.element;
    for (; row < last; row += strip)
      transpose(args.from + from + row * args.element, from_stride, args.to + to + row * at.row_bytes(), at.row_bytes(),
                std::min(strip, last - row), columns);
    if (++block == blocks) block = 0, at.advance();
  }
}

// ---- row by row

void copy_rows(const CopyArgs& args, int64_t begin, int64_t end) {
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

void copy_run(const CopyArgs& args, int64_t begin, int64_t end) {
  if (int32_t transposed = transposed_axis(args); transposed >= 0) return copy_transposed(args, transposed, begin, end);
  copy_rows(args, begin, end);
}

}  // namespace

Loop<CopyArgs> copy_loop() {
  return {copy_parts, copy_run};
}

void collapse_dims(CopyArgs& args) {
  int32_t rank = collapse(args.rank, args.dims, std::array{&args.strides[0]});
  args.rank = rank;
  // A short contiguous run becomes one larger element.
  if (rank < 2 || args.strides[rank - 1] != args.element) return;
  int64_t bytes = args.dims[rank - 1] * args.element;
  if (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16) return;
  args.element = bytes;
  args.rank = rank - 1;
}

}  // namespace rlx::cpu
