// SPDX-License-Identifier: Apache-2.0
// Windows over planes, for loops with places along the lanes. The rows of x that a block of outputs reads are copied
// once, by residues modulo the strides, with what counts outside around them. Then an output lies a fixed distance from
// each of its taps, and a block of rows is one long row, with some elements between its rows that mean nothing.

inline constexpr int64_t kPlaneCopy = 16384;  // elements of x, on the stack
inline constexpr int64_t kPlaneTaps = 512;
inline constexpr int64_t kPlaneSlack = 8;  // vectors that may be read, or written, behind a long row

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// The copy is [residue of y][row][residue of x][column], so that an output row is `pitch` from the next.
struct PlaneShape {
  int64_t phases_y, phases_x;         // residues that taps read
  int64_t width, pitch;               // of a row of one residue, of all
  int64_t reach;                      // rows of a residue beyond those of outputs
  int64_t rows, columns;              // of outputs in a block, at most; 0: nothing fits
  int64_t row_blocks, column_blocks;  // of a plane
  int64_t blocks() const { return row_blocks * column_blocks; }
};
// So that the outputs of a block are at most `most`, with what lies between them.
inline PlaneShape plane_shape(const ConvAxis& y, const ConvAxis& x, int64_t most) {
  PlaneShape shape{.phases_y = y.taps == 1 ? 1 : y.stride, .phases_x = x.taps == 1 ? 1 : x.stride};
  int64_t reach_x = (x.taps - 1) * x.dilation / x.stride;
  shape.reach = (y.taps - 1) * y.dilation / y.stride;
  int64_t widest = most / shape.phases_x - reach_x, room = kPlaneCopy / (shape.phases_x * shape.phases_y);
  if (room / (1 + shape.reach) - reach_x < widest) widest = room / (1 + shape.reach) - reach_x;
  if (widest < 1 || y.out == 0 || x.out == 0) return shape;
  shape.column_blocks = ceil_div(x.out, widest);
  shape.columns = ceil_div(x.out, shape.column_blocks);
  shape.width = shape.columns + reach_x;
  shape.pitch = shape.width * shape.phases_x;
  int64_t highest = room / shape.width - shape.reach;
  if (most / shape.pitch < highest) highest = most / shape.pitch;
  shape.row_blocks = ceil_div(y.out, highest);
  shape.rows = ceil_div(y.out, shape.row_blocks);
  return shape;
}

struct PlaneBlock {
  int64_t row, rows, column, columns;
};
inline PlaneBlock plane_block(const ConvAxis& y, const ConvAxis& x, const PlaneShape& shape, int64_t index) {
  int64_t row = index / shape.column_blocks * shape.rows, column = index % shape.column_blocks * shape.columns;
  return {row, y.out - row < shape.rows ? y.out - row : shape.rows, column,
          x.out - column < shape.columns ? x.out - column : shape.columns};
}
// Of the long row.
inline int64_t block_length(const PlaneShape& shape, const PlaneBlock& block) {
  return (block.rows - 1) * shape.pitch + block.columns;
}

inline void copy_plane(const ConvAxis& y, const ConvAxis& x, const PlaneShape& shape, const PlaneBlock& block,
                       const float* from, float outside, float* to) {
  for (int64_t phase = 0; phase < shape.phases_y; ++phase) {
    for (int64_t row = 0; row < block.rows + shape.reach; ++row) {
      int64_t at = (block.row + row) * y.stride + phase - y.lo;
      for (int64_t i = 0; i < shape.phases_x; ++i, to += shape.width) {
        if (at < 0 || at >= y.size)
          for (int64_t k = 0; k < shape.width; ++k) to[k] = outside;
        else
          read_phase(x, from + at * x.size, block.column * x.stride + i - x.lo, shape.width, shape.width, outside, to);
      }
    }
  }
}

// Where the taps read the copy for the first output.
inline void list_taps(const ConvAxis& y, const ConvAxis& x, const PlaneShape& shape, const PlaneBlock& block,
                      int32_t* taps) {
  int64_t phase = (block.rows + shape.reach) * shape.pitch;
  for (int64_t tap = 0; tap < y.taps * x.taps; ++tap) {
    int64_t at_y = tap / x.taps * y.dilation, at_x = tap % x.taps * x.dilation;
    taps[tap] = static_cast<int32_t>(at_y % y.stride * phase + at_y / y.stride * shape.pitch +
                                     at_x % x.stride * shape.width + at_x / x.stride);
  }
}

inline bool is_flat(const ConvAxis& z) {
  return z.size == 1 && z.out == 1 && z.taps == 1 && z.lo == 0;
}
