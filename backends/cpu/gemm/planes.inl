// SPDX-License-Identifier: Apache-2.0
// Windows over planes, for loops with positions of a plane along the lanes. The rows of x that a block of outputs reads
// are copied once. In the copy, positions are sorted by their residue modulo the strides, with the value for positions
// outside x around them. Then an output lies at a fixed distance from each of its taps. A block of rows is one long
// row, with some unused elements between its rows.

inline constexpr int64_t kPlaneCopy = 16384;  // elements of x, on the stack
inline constexpr int64_t kPlaneTaps = 2048;   // of a window
inline constexpr int64_t kPlaneTerms = 512;   // that run in one accumulator
inline constexpr int64_t kPlaneSlack = 8;     // vectors that may be read or written after a long row

// The copy is [residue of y][residue of x][row][column], so that an output row is `width` from the next.
struct PlaneShape {
  int64_t phases_y, phases_x;         // the residues that taps read
  int64_t width;                      // of a row of one residue
  int64_t reach;                      // rows of a residue in addition to those of outputs
  int64_t rows, columns;              // of outputs in a block, at most; 0: nothing fits
  int64_t row_blocks, column_blocks;  // of a plane
  int64_t blocks() const { return row_blocks * column_blocks; }
};
// Chooses the shape of a block: at most `most` outputs, gaps included, and at most `copy` elements of x in its copy.
inline PlaneShape plane_shape(const ConvAxis& y, const ConvAxis& x, int64_t most, int64_t copy = kPlaneCopy) {
  auto phases = [&](const ConvAxis& axis) {  // one more than fits stands for all that do not
    return axis.taps == 1 ? 1 : axis.stride <= copy ? axis.stride : copy + 1;
  };
  PlaneShape shape{.phases_y = phases(y), .phases_x = phases(x)};
  int64_t reach_x = x.reach() / x.stride;
  shape.reach = y.reach() / y.stride;
  int64_t widest = most - reach_x, room = copy / (shape.phases_x * shape.phases_y);
  if (room / (1 + shape.reach) - reach_x < widest) widest = room / (1 + shape.reach) - reach_x;
  if (widest < 1 || y.out == 0 || x.out == 0) return shape;
  shape.column_blocks = ceil_div(x.out, widest);
  shape.columns = ceil_div(x.out, shape.column_blocks);
  shape.width = shape.columns + reach_x;
  int64_t highest = room / shape.width - shape.reach;
  if (most / shape.width < highest) highest = most / shape.width;
  shape.row_blocks = ceil_div(y.out, highest);
  shape.rows = ceil_div(y.out, shape.row_blocks);
  return shape;
}

struct PlaneBlock {
  int64_t row, rows, column, columns;
};
inline PlaneBlock plane_block(const ConvAxis& y, const ConvAxis& x, const PlaneShape& shape, int64_t index) {
  int64_t row = index / shape.column_blocks * shape.rows, column = index % shape.column_blocks * shape.columns;
  return {row, min(y.out - row, shape.rows), column, min(x.out - column, shape.columns)};
}
// The length of the long row.
inline int64_t block_length(const PlaneShape& shape, const PlaneBlock& block) {
  return (block.rows - 1) * shape.width + block.columns;
}
inline int64_t copy_length(const PlaneShape& shape, const PlaneBlock& block) {
  return shape.phases_y * shape.phases_x * (block.rows + shape.reach) * shape.width;
}

// Writes `value` to [0, count) and to the rest of the last vector.
inline void fill_vectors(float* to, int64_t count, float value) {
  for (int64_t i = 0; i < count; i += kLanes) store(to + i, splat(value));
}

// As read_phase, but the last vector is also overwritten beyond `length`, so that short rows need no masks.
template <class Row>
inline void copy_row(const ConvAxis& axis, const Row& row, int64_t from, int64_t length, float outside, float* to) {
  int64_t begin = from >= 0 ? 0 : steps_in(axis.stride - 1 - from, axis.stride);
  int64_t inside = from < axis.size ? steps_in(axis.size - from + axis.stride - 1, axis.stride) : 0;
  if (inside > length) inside = length;
  if (begin > inside) begin = inside;
  fill_vectors(to, begin, outside);
  if (axis.stride == 1)
    for (int64_t i = begin; i < inside; i += kLanes) store(to + i, row.load(from + i, inside - i));
  else
    copy_stepped(row, from + begin * axis.stride, axis.stride, inside - begin, to + begin);
  fill_vectors(to + inside, length - inside, outside);
}

// Copies the rows of a block; row_at(i) is row i of the plane. Up to a vector after the last row is overwritten.
template <class RowAt>
inline void copy_plane(const ConvAxis& y, const ConvAxis& x, const PlaneShape& shape, const PlaneBlock& block,
                       RowAt&& row_at, float outside, float* to) {
  for (int64_t phase = 0; phase < shape.phases_y * shape.phases_x; ++phase) {
    int64_t phase_y = phase / shape.phases_x, phase_x = phase % shape.phases_x;
    for (int64_t row = 0; row < block.rows + shape.reach; ++row, to += shape.width) {
      int64_t at = (block.row + row) * y.stride + phase_y - y.lo;
      if (at < 0 || at >= y.size)
        fill_vectors(to, shape.width, outside);
      else
        copy_row(x, row_at(at), block.column * x.stride + phase_x - x.lo, shape.width, outside, to);
    }
  }
}

// The offsets in the copy that the taps read for the first output. The list is kept while blocks have the same shape,
// because making it takes many divisions.
struct TapList {
  int32_t at[kPlaneTaps];
  int64_t rows = -1;  // of the block that this is for
};
inline void list_taps(const ConvAxis& y, const ConvAxis& x, const PlaneShape& shape, const PlaneBlock& block,
                      TapList& list) {
  if (list.rows == block.rows) return;
  list.rows = block.rows;
  int64_t phase = (block.rows + shape.reach) * shape.width;
  for (int64_t tap = 0; tap < y.taps * x.taps; ++tap) {
    int64_t at_y = tap / x.taps * y.dilation, at_x = tap % x.taps * x.dilation;
    list.at[tap] = static_cast<int32_t>((at_y % y.stride * shape.phases_x + at_x % x.stride) * phase +
                                        at_y / y.stride * shape.width + at_x / x.stride);
  }
}
