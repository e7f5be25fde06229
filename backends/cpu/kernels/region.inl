// SPDX-License-Identifier: Apache-2.0
// The interpreter of regions: for each tile of elements, loads, then one loop over the tile per op, then stores. Floats
// that are adjacent are read and written where they lie; one value for all of a tile is one vector.

inline constexpr int64_t kPartElements = 16384;
// All registers together: so they and the inputs stay in the cache.
inline constexpr int64_t kRegisterFloats = 16384;

inline Vec sign(Vec v) {
  return select(v > splat(0.0f), splat(1.0f), select(v < splat(0.0f), splat(-1.0f), v));
}
// The walk may set arithmetic to treat subnormal numbers as 0. Functions that look at bits must then treat them as 0
// too.
inline Vec as_compared(Vec v) {
  return select(v == splat(0.0f), copysign(Vec{}, v), v);
}
#include "backends/cpu/kernels/angle.inl"
#include "backends/cpu/kernels/halves.inl"
#include "backends/cpu/kernels/power.inl"

// ---- ops: n is a whole number of vectors

// Where a tile lies. With step 0, one vector stands for all of it: the value of every element.
struct Tile {
  const float* at;
  int64_t step;  // between vectors: kLanes or 0
};
using DenseOp = void (*)(float* dst, const float* a, const float* b, const float* c, int64_t n);
using TileOp = void (*)(float* dst, Tile a, Tile b, Tile c, int64_t n);  // some operand has step 0

template <RegionCode code>
inline Vec evaluate(Vec a, Vec b, Vec c);
#define RLX_REGION(name, operands, value)                                                                            \
  template <>                                                                                                        \
  inline Vec evaluate<RegionCode::k##name>([[maybe_unused]] Vec a, [[maybe_unused]] Vec b, [[maybe_unused]] Vec c) { \
    return value;                                                                                                    \
  }
#include "backends/cpu/kernels/region.def"
#undef RLX_REGION

template <RegionCode code, int Operands>
void run_dense(float* dst, const float* a, const float* b, const float* c, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Vec second = Operands > 1 ? load(b + i) : Vec{}, third = Operands > 2 ? load(c + i) : Vec{};
    store(dst + i, evaluate<code>(load(a + i), second, third));
  }
}
template <RegionCode code, int Operands>
void run_tile(float* dst, Tile a, Tile b, Tile c, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Vec second = Operands > 1 ? load(b.at) : Vec{}, third = Operands > 2 ? load(c.at) : Vec{};
    store(dst + i, evaluate<code>(load(a.at), second, third));
    a.at += a.step, b.at += b.step, c.at += c.step;
  }
}

inline constexpr int kTileOperands[] = {
#define RLX_REGION(name, operands, value) operands,
#include "backends/cpu/kernels/region.def"
#undef RLX_REGION
};
inline constexpr DenseOp kDenseOps[] = {
#define RLX_REGION(name, operands, value) run_dense<RegionCode::k##name, operands>,
#include "backends/cpu/kernels/region.def"
#undef RLX_REGION
};
inline constexpr TileOp kTileOps[] = {
#define RLX_REGION(name, operands, value) run_tile<RegionCode::k##name, operands>,
#include "backends/cpu/kernels/region.def"
#undef RLX_REGION
};

// One vector of which only n elements exist.
inline void run_rest(RegionCode code, float* dst, Tile a, Tile b, Tile c, int64_t n) {
  alignas(64) float in[3][kLanes], out[kLanes];
  const Tile from[3] = {a, b, c};
  for (int i = 0; i < kTileOperands[static_cast<int>(code)]; ++i)
    store(in[i], from[i].step == 0 ? load(from[i].at) : load(from[i].at, n));
  kDenseOps[static_cast<int>(code)](out, in[0], in[1], in[2], kLanes);
  store(dst, load(out), n);
}
// The first n elements of a tile, and no memory behind them.
inline void run_op(RegionCode code, float* dst, Tile a, Tile b, Tile c, int64_t n) {
  const int64_t rest = n & (kLanes - 1), whole = n - rest;
  const bool is_dense = (a.step & b.step & c.step) != 0;
  if (whole > 0 && is_dense) kDenseOps[static_cast<int>(code)](dst, a.at, b.at, c.at, whole);
  if (whole > 0 && !is_dense) kTileOps[static_cast<int>(code)](dst, a, b, c, whole);
  if (rest == 0) return;
  for (Tile* tile : {&a, &b, &c}) tile->at += tile->step != 0 ? whole : 0;
  run_rest(code, dst + whole, a, b, c, rest);
}

// ---- loads

template <class T>
inline float to_register(T value) {
  return static_cast<float>(value);
}
struct Truth {
  uint8_t byte;  // any but 0 is true
};
inline float to_register(Truth value) {
  return std::bit_cast<float>(value.byte ? -1 : 0);
}

// Bytes to words and back, one byte per lane.
using Bytes [[gnu::vector_size(kLanes)]] = uint8_t;

inline Int widen_bytes(Bytes bytes) {
#if RLX_ISA == 2
  return (Int)_mm512_cvtepu8_epi32((__m128i)bytes);
#elif RLX_ISA == 1
  return (Int)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(std::bit_cast<int64_t>(bytes)));
#else
  return __builtin_convertvector(bytes, Int);
#endif
}
inline Bytes narrow_to_bytes(Int v) {
#if RLX_ISA == 2
  return (Bytes)_mm512_cvtepi32_epi8((__m512i)v);
#else
  return __builtin_convertvector((Word)v, Bytes);
#endif
}

// Loads adjacent elements.
template <class T>
inline Vec load_vector(const T* from, int64_t count) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) return load_halves(from, count);
  using Elements [[gnu::vector_size(sizeof(T) * kLanes)]] =
      std::conditional_t<std::is_same_v<T, Truth>, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, T>>;
  Elements elements;
  load_part(elements, from, count * static_cast<int64_t>(sizeof(T)));
  if constexpr (std::is_same_v<T, Truth>)
    return from_bits(widen_bytes(elements) != splat(0));
  else if constexpr (std::is_same_v<T, uint8_t>)
    return to_float(widen_bytes(elements));
  else
    return __builtin_convertvector(elements, Vec);
}

// Loads `count` elements that are `stride` apart. Rows may be so short that a call would show.
template <class T>
[[gnu::always_inline]] inline void load_run(const T* from, int64_t stride, int64_t count, float* to) {
  if (stride == 0) {
    Vec value = splat(to_register(*from));
    in_vectors(count, [&](int64_t i, int64_t n) { store_some(to + i, value, n); });
  } else if (std::is_same_v<T, float> && stride == 1) {
    __builtin_memcpy(to, from, count * sizeof(float));
  } else if (stride == 1) {
    in_vectors(count, [&](int64_t i, int64_t n) { store_some(to + i, load_vector(from + i, n), n); });
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = to_register(from[i * stride]);
  }
}

// Where a row of the region begins in an input.
inline int64_t offset_of_row(const RegionArgs& p, const RegionInput& input, int64_t row) {
  int64_t offset = 0;
  int d = p.rank - 2;
  for (; d > 0; row /= p.dims[d--]) offset += row % p.dims[d] * input.strides[d];
  return d == 0 ? offset + row * input.strides[0] : 0;
}

// Elements [begin, begin + count) of the region, in row-major order of its dims.
template <class T>
inline void load_elements(const RegionArgs& p, const RegionInput& input, int64_t begin, int64_t count, float* to) {
  int64_t at[kMaxRegionRank] = {}, offset = 0, rest = begin;
  int last = p.rank - 1;
  for (int d = last; d >= 0; --d) {
    at[d] = rest % p.dims[d];
    rest /= p.dims[d];
    offset += at[d] * input.strides[d];
  }
  const T* data = static_cast<const T*>(input.data);
  while (count > 0) {
    int64_t run = min(p.dims[last] - at[last], count);
    load_run(data + offset, input.strides[last], run, to);
    to += run;
    count -= run;
    offset += run * input.strides[last];
    at[last] += run;
    for (int d = last; d > 0 && at[d] == p.dims[d]; --d) {  // carry
      offset += input.strides[d - 1] - p.dims[d] * input.strides[d];
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

// Calls f<T>() for the type of the elements.
template <class F>
inline void visit_elements(RegionType type, F&& f) {
  switch (type) {
    case RegionType::kF32: return f.template operator()<float>();
    case RegionType::kBool: return f.template operator()<Truth>();
    case RegionType::kI32: return f.template operator()<int32_t>();
    case RegionType::kI64: return f.template operator()<int64_t>();
    case RegionType::kU8: return f.template operator()<uint8_t>();
    case RegionType::kF16: return f.template operator()<f16>();
    case RegionType::kBF16: return f.template operator()<bf16>();
  }
}
inline void load_input(const RegionArgs& p, const RegionInput& input, int64_t begin, int64_t count, float* to) {
  visit_elements(input.type, [&]<class T>() { load_elements<T>(p, input, begin, count, to); });
}
// Fills a vector with one element.
inline void load_one_value(const RegionInput& input, int64_t offset, float* to) {
  visit_elements(input.type,
                 [&]<class T>() { store(to, splat(to_register(static_cast<const T*>(input.data)[offset]))); });
}

enum class Walk { kOnce, kDense, kTiled };  // one value for all; the region's own layout; anything else

inline Walk walk_of(const RegionArgs& p, const RegionInput& input) {
  int64_t dense = 1;
  bool once = true, in_order = true;
  for (int d = p.rank - 1; d >= 0; --d) {
    once = once && (input.strides[d] == 0 || p.dims[d] == 1);
    in_order = in_order && (input.strides[d] == dense || p.dims[d] == 1);
    dense *= p.dims[d];
  }
  return once ? Walk::kOnce : in_order && input.type == RegionType::kF32 ? Walk::kDense : Walk::kTiled;
}

// ---- stores

// `from` may be an input itself, with no memory behind.
inline void store_output(const RegionOutput& output, int64_t begin, int64_t count, const float* from) {
  if (output.type == RegionType::kF32) {
    __builtin_memcpy(static_cast<float*>(output.data) + begin, from, count * sizeof(float));
    return;
  }
  auto* to = static_cast<uint8_t*>(output.data);
  if (output.type == RegionType::kF16 || output.type == RegionType::kBF16) {
    auto step = [&](int64_t i, int64_t n) {
      store_halves(to + 2 * (begin + i), load_some(from + i, n), output.type == RegionType::kBF16, n);
    };
    return in_vectors(count, step);
  }
  in_vectors(count, [&](int64_t i, int64_t n) {
    store_part(to + begin + i, narrow_to_bytes(bits(load_some(from + i, n)) & splat(1)), n);
  });
}

// ---- the region

inline int64_t element_count(const RegionArgs& p) {
  int64_t count = 1;
  for (int d = 0; d < p.rank; ++d) count *= p.dims[d];
  return count;
}

inline constexpr int64_t kMaxTile = 1024;
inline constexpr int64_t kLineFloats = 16;
static_assert(kRegisterFloats / kMaxRegionRegisters >= kLineFloats * kLineFloats, "a tile holds a block");
inline int64_t most_in_tile(const RegionArgs& p) {
  return min(kRegisterFloats / max(p.register_count, 1) / 64 * 64, kMaxTile);
}

// Where an input is contiguous along an axis other than the last, elements in the order of the region lie in a cache
// line each, and lines are gone before their other elements are needed. Such a region is computed in blocks: tiles of
// several rows along that axis, as many as fill whole lines with f32. Returns that axis, or -1.
inline int axis_of_blocks(const RegionArgs& p) {
  const int last = p.rank - 1;
  if (last < 1 || p.dims[last] < kLineFloats || element_count(p) < kMaxTile) return -1;
  for (int i = 0; i < p.input_count; ++i)
    if (const int64_t* strides = p.inputs[i].strides; strides[last] >= kLineFloats)
      for (int d = 0; d < last; ++d)
        if (strides[d] == 1 && p.dims[d] >= kLineFloats) return d;
  return -1;
}

struct Blocks {
  int axis;                           // of their rows
  int64_t rows, columns;              // of a block, at most
  int64_t row_blocks, column_blocks;  // of a matrix
  int64_t count, per_part;
};
inline Blocks blocks_of(const RegionArgs& p, int axis) {
  auto whole_lines = [](int64_t count) { return ceil_div(count, kLineFloats) * kLineFloats; };
  const int64_t tile = most_in_tile(p), most_columns = tile / kLineFloats / kLineFloats * kLineFloats;
  const int64_t rows = p.dims[axis], columns = p.dims[p.rank - 1];
  Blocks cut;
  cut.axis = axis;
  cut.column_blocks = ceil_div(columns, most_columns);
  cut.columns = min(columns, whole_lines(ceil_div(columns, cut.column_blocks)));
  cut.column_blocks = ceil_div(columns, cut.columns);
  cut.rows = tile / cut.columns / kLineFloats * kLineFloats;
  cut.row_blocks = ceil_div(rows, cut.rows);
  cut.count = element_count(p) / rows / columns * cut.row_blocks * cut.column_blocks;
  cut.per_part = kPartElements / (cut.rows * cut.columns);
  return cut;
}

inline int64_t region_parts(const RegionArgs& p) {
  const int axis = axis_of_blocks(p);
  if (axis < 0) return ceil_div(element_count(p), kPartElements);
  const Blocks cut = blocks_of(p, axis);
  return ceil_div(cut.count, cut.per_part);
}

struct Registers {
  alignas(64) float storage[kRegisterFloats];
  Tile tiles[kMaxRegionRegisters];  // where each register is read: its storage, or a dense input itself
  Walk walks[kMaxRegionInputs];
  int64_t filled[kMaxRegionInputs];  // by the one value of this row; -1: not yet
  int64_t tile;
  bool ends_with_rows;  // whether tiles do
  float* own(int reg) { return storage + reg * tile; }
};

// Shorter rows are loaded several to a tile.
inline constexpr int64_t kLongRow = 512;

// Whether an input has one value, or adjacent floats, for each row of the region, so that a tile inside a row need not
// be loaded.
inline bool profits_from_rows(const RegionArgs& p, const Registers& r) {
  if (p.dims[p.rank - 1] < kLongRow) return false;
  for (int i = 0; i < p.input_count; ++i) {
    int64_t stride = p.inputs[i].strides[p.rank - 1];
    if (r.walks[i] == Walk::kTiled && (stride == 0 || (stride == 1 && p.inputs[i].type == RegionType::kF32)))
      return true;
  }
  return false;
}

inline void prepare(const RegionArgs& p, Registers& r) {
  int64_t needed = ceil_div(element_count(p), kLanes) * kLanes;
  r.tile = most_in_tile(p);
  if (needed < r.tile) r.tile = needed;
  for (int i = 0; i < p.register_count; ++i) r.tiles[i] = {r.own(i), kLanes};
  for (int i = 0; i < p.constant_count; ++i) {
    const RegionConstant& constant = p.constants[i];
    store(r.own(constant.reg), splat(constant.value));
    r.tiles[constant.reg].step = 0;
  }
  for (int i = 0; i < p.input_count; ++i) {
    const RegionInput& input = p.inputs[i];
    r.walks[i] = walk_of(p, input);
    r.filled[i] = -1;
    if (r.walks[i] != Walk::kOnce) continue;
    load_one_value(input, 0, r.own(input.reg));
    r.tiles[input.reg].step = 0;
  }
  r.ends_with_rows = p.rank > 0 && profits_from_rows(p, r);
}

// Brings elements, which lie in this row of the region unless it is below 0.
inline void bring_tile(const RegionArgs& p, Registers& r, int i, int64_t begin, int64_t count, int64_t row) {
  const RegionInput& input = p.inputs[i];
  const int64_t stride = input.strides[p.rank - 1];
  float* own = r.own(input.reg);
  Tile& tile = r.tiles[input.reg];
  if (row >= 0 && stride == 0) {
    if (row != r.filled[i]) load_one_value(input, offset_of_row(p, input, row), own);
    r.filled[i] = row;
    tile = {own, 0};
    return;
  }
  if (row >= 0 && stride == 1 && input.type == RegionType::kF32) {
    tile = {static_cast<const float*>(input.data) + offset_of_row(p, input, row) + (begin - row * p.dims[p.rank - 1]),
            kLanes};
    return;
  }
  load_input(p, input, begin, count, own);
  tile = {own, kLanes};
}

// Returns where the elements of an output lie, all of them.
inline const float* whole_tile(const RegionOutput& output, Registers& r, int64_t count) {
  const Tile tile = r.tiles[output.reg];
  float* own = r.own(output.reg);
  if (tile.step == 0)
    for (int64_t i = kLanes; i < count; i += kLanes) store(own + i, load(own));
  return tile.at;
}

// Whether the region only converts its one input: then it is loaded to where the output lies.
inline bool only_loads(const RegionArgs& p, const Registers& r) {
  return p.op_count == 0 && p.input_count == 1 && r.walks[0] == Walk::kTiled && p.output_count == 1 &&
         p.outputs[0].type == RegionType::kF32 && p.outputs[0].reg == p.inputs[0].reg;
}

// Runs all ops over the first elements of the registers. The last one writes to `last` unless that is null.
inline void run_ops(const RegionArgs& p, Registers& r, int64_t count, float* last) {
  for (int i = 0; i < p.op_count; ++i) {
    const RegionOp& op = p.ops[i];
    float* dst = last && i + 1 == p.op_count ? last : r.own(op.dst);
    run_op(op.code, dst, r.tiles[op.a], r.tiles[op.b], r.tiles[op.c], count);
    r.tiles[op.dst].at = dst;
  }
}

inline void run_one_tile(const RegionArgs& p, Registers& r, int64_t begin, int64_t count, int64_t row) {
  for (int i = 0; i < p.input_count; ++i) {
    if (r.walks[i] == Walk::kDense)
      r.tiles[p.inputs[i].reg].at = static_cast<const float*>(p.inputs[i].data) + begin;
    else if (r.walks[i] != Walk::kOnce)
      bring_tile(p, r, i, begin, count, row);
  }
  // The last op writes to the output itself.
  bool is_direct = p.op_count > 0 && p.output_count == 1 && p.outputs[0].type == RegionType::kF32 &&
                   p.outputs[0].reg == p.ops[p.op_count - 1].dst;
  run_ops(p, r, count, is_direct ? static_cast<float*>(p.outputs[0].data) + begin : nullptr);
  if (is_direct) return;
  for (int i = 0; i < p.output_count; ++i) store_output(p.outputs[i], begin, count, whole_tile(p.outputs[i], r, count));
}

// ---- blocks

// rows x columns elements, at most kLanes each way, that are adjacent along the rows' axis.
template <class T>
[[gnu::always_inline]] inline void load_square(const T* from, int64_t stride, int64_t rows, int64_t columns, float* to,
                                               int64_t to_stride) {
  Vec square[kLanes];
  RLX_UNROLL for (int i = 0; i < kLanes; ++i) {
    if constexpr (std::is_same_v<T, float>)
      square[i] = i < columns ? load_some(from + i * stride, rows) : Vec{};
    else
      square[i] = i < columns ? load_vector(from + i * stride, rows) : Vec{};
  }
  transpose(square);
  RLX_UNROLL for (int i = 0; i < kLanes; ++i) if (i < rows) store_some(to + i * to_stride, square[i], columns);
}

// Loads a block, row by row: of columns that are `stride` apart, and rows that are `row_stride` apart.
template <class T>
inline void load_block(const T* from, int64_t row_stride, int64_t stride, int64_t rows, int64_t columns, float* to) {
  if (row_stride != 1 || stride == 0 || stride == 1) {
    for (int64_t i = 0; i < rows; ++i) load_run(from + i * row_stride, stride, columns, to + i * columns);
    return;
  }
  in_vectors(columns, [&](int64_t j, int64_t some_columns) {
    in_vectors(rows, [&](int64_t i, int64_t some_rows) {
      const T* at = from + j * stride + i;
      float* square = to + i * columns + j;
      if (some_columns == kLanes && some_rows == kLanes)
        return load_square(at, stride, kLanes, kLanes, square, columns);
      load_square(at, stride, some_rows, some_columns, square, columns);
    });
  });
}

inline void run_block(const RegionArgs& p, Registers& r, const Blocks& cut, int64_t number) {
  const int last = p.rank - 1;
  int64_t at[kMaxRegionRank] = {}, begin = 0, below = 1, row_step = 1;
  at[last] = number % cut.column_blocks * cut.columns, number /= cut.column_blocks;
  at[cut.axis] = number % cut.row_blocks * cut.rows, number /= cut.row_blocks;
  const int64_t rows = min(cut.rows, p.dims[cut.axis] - at[cut.axis]),
                columns = min(cut.columns, p.dims[last] - at[last]);
  for (int d = last; d >= 0; --d) {
    if (d != last && d != cut.axis) at[d] = number % p.dims[d], number /= p.dims[d];
    begin += at[d] * below;
    if (d == cut.axis) row_step = below;
    below *= p.dims[d];
  }
  for (int i = 0; i < p.input_count; ++i) {
    const RegionInput& input = p.inputs[i];
    if (r.walks[i] == Walk::kOnce) continue;
    int64_t offset = 0;
    for (int d = 0; d <= last; ++d) offset += at[d] * input.strides[d];
    visit_elements(input.type, [&]<class T>() {
      load_block(static_cast<const T*>(input.data) + offset, input.strides[cut.axis], input.strides[last], rows,
                 columns, r.own(input.reg));
    });
  }
  run_ops(p, r, rows * columns, nullptr);
  for (int i = 0; i < p.output_count; ++i) {
    const float* from = whole_tile(p.outputs[i], r, rows * columns);
    for (int64_t row = 0; row < rows; ++row)
      store_output(p.outputs[i], begin + row * row_step, columns, from + row * columns);
  }
}

// Elements of the next tile: all that are left, or half of them, or as many as a tile has.
inline int64_t next_count(int64_t left, int64_t tile) {
  return left <= tile ? left : left < 2 * tile ? ceil_div(left, 2 * kLanes) * kLanes : tile;
}

inline void region_run(const RegionArgs& p, int64_t begin, int64_t end) {
  if (begin >= end) return;
  Registers registers;
  prepare(p, registers);
  if (const int axis = axis_of_blocks(p); axis >= 0) {
    const Blocks cut = blocks_of(p, axis);
    for (int64_t i = begin * cut.per_part; i < min(end * cut.per_part, cut.count); ++i) run_block(p, registers, cut, i);
    return;
  }
  const int64_t last = min(end * kPartElements, element_count(p));
  if (only_loads(p, registers)) {
    const int64_t first = begin * kPartElements;
    return load_input(p, p.inputs[0], first, last - first, static_cast<float*>(p.outputs[0].data) + first);
  }
  const int64_t n = registers.ends_with_rows ? p.dims[p.rank - 1] : last;
  int64_t at = begin * kPartElements, row = registers.ends_with_rows ? at / n : 0, row_end = (row + 1) * n;
  while (at < last) {
    int64_t count = next_count(min(last, row_end) - at, registers.tile);
    run_one_tile(p, registers, at, count, registers.ends_with_rows ? row : -1);
    at += count;
    if (at == row_end) ++row, row_end += n;
  }
}

inline constexpr RegionFns kRegion = {{region_parts, region_run}};
