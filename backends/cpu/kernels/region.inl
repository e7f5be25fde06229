// SPDX-License-Identifier: Apache-2.0
// The interpreter of regions: for each tile of elements, loads, then one loop over the tile per op, then stores. Ops
// run over whole vectors of a register; only loads and stores know where the tile ends.

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

using TileOp = void (*)(float* dst, const float* a, const float* b, const float* c, int64_t n);

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
void run_tile(float* dst, const float* a, const float* b, const float* c, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Vec second = Operands > 1 ? load(b + i) : Vec{}, third = Operands > 2 ? load(c + i) : Vec{};
    store(dst + i, evaluate<code>(load(a + i), second, third));
  }
}

inline constexpr TileOp kTileOps[] = {
#define RLX_REGION(name, operands, value) run_tile<RegionCode::k##name, operands>,
#include "backends/cpu/kernels/region.def"
#undef RLX_REGION
};

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

// Loads `count` elements that are `stride` apart.
template <class T>
inline void load_run(const T* from, int64_t stride, int64_t count, float* to) {
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

// Fills a tile with elements, or with the one value for all of them.
template <class T>
inline void load_typed(const RegionArgs& p, const RegionInput& input, bool once, int64_t begin, int64_t count,
                       float* to) {
  if (once) return load_run(static_cast<const T*>(input.data), 0, count, to);
  load_elements<T>(p, input, begin, count, to);
}
inline void load_input(const RegionArgs& p, const RegionInput& input, bool once, int64_t begin, int64_t count,
                       float* to) {
  switch (input.type) {
    case RegionType::kF32: return load_typed<float>(p, input, once, begin, count, to);
    case RegionType::kBool: return load_typed<Truth>(p, input, once, begin, count, to);
    case RegionType::kI32: return load_typed<int32_t>(p, input, once, begin, count, to);
    case RegionType::kI64: return load_typed<int64_t>(p, input, once, begin, count, to);
    case RegionType::kU8: return load_typed<uint8_t>(p, input, once, begin, count, to);
    case RegionType::kF16: return load_typed<f16>(p, input, once, begin, count, to);
    case RegionType::kBF16: return load_typed<bf16>(p, input, once, begin, count, to);
  }
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

inline void store_output(const RegionOutput& output, int64_t begin, int64_t count, const float* from) {
  if (output.type == RegionType::kF32) {
    __builtin_memcpy(static_cast<float*>(output.data) + begin, from, count * sizeof(float));
    return;
  }
  auto* to = static_cast<uint8_t*>(output.data);
  if (output.type == RegionType::kF16 || output.type == RegionType::kBF16) {
    auto step = [&](int64_t i, int64_t n) {  // a register holds whole vectors
      store_halves(to + 2 * (begin + i), load(from + i), output.type == RegionType::kBF16, n);
    };
    return in_vectors(count, step);
  }
  in_vectors(count, [&](int64_t i, int64_t n) {
    store_part(to + begin + i, narrow_to_bytes(bits(load(from + i)) & splat(1)), n);
  });
}

// ---- the region

inline int64_t element_count(const RegionArgs& p) {
  int64_t count = 1;
  for (int d = 0; d < p.rank; ++d) count *= p.dims[d];
  return count;
}

inline int64_t region_parts(const RegionArgs& p) {
  return ceil_div(element_count(p), kPartElements);
}

struct Registers {
  alignas(64) float storage[kRegisterFloats];
  const float* at[kMaxRegionRegisters];  // where each register is read: its storage, or a dense input itself
  Walk walks[kMaxRegionInputs];
  int64_t filled[kMaxRegionInputs];  // by the one value of this row; -1: by something else
  int64_t tile;
  float* own(int reg) { return storage + reg * tile; }
};

inline void prepare(const RegionArgs& p, Registers& r) {
  int64_t share = kRegisterFloats / max(p.register_count, 1) / 64 * 64;
  int64_t needed = ceil_div(element_count(p), kLanes) * kLanes;
  r.tile = min(share, 1024);
  if (needed < r.tile) r.tile = needed;
  for (int i = 0; i < p.register_count; ++i) r.at[i] = r.own(i);
  for (int i = 0; i < p.constant_count; ++i) {
    const RegionConstant& constant = p.constants[i];
    for (int64_t e = 0; e < r.tile; e += kLanes) store(r.own(constant.reg) + e, splat(constant.value));
  }
  for (int i = 0; i < p.input_count; ++i) {
    r.walks[i] = walk_of(p, p.inputs[i]);
    r.filled[i] = -1;
    if (r.walks[i] == Walk::kOnce) load_input(p, p.inputs[i], true, 0, r.tile, r.own(p.inputs[i].reg));
  }
}

// The row in which these elements lie if the input has one value for all of it; else -1.
inline int64_t row_of_one_value(const RegionArgs& p, const RegionInput& input, int64_t begin, int64_t count) {
  const int last = p.rank - 1;
  if (last < 0 || input.strides[last] != 0) return -1;
  int64_t row = begin / p.dims[last];
  return (begin + count - 1) / p.dims[last] == row ? row : -1;
}

inline void run_one_tile(const RegionArgs& p, Registers& r, int64_t begin, int64_t count) {
  int64_t whole = ceil_div(count, kLanes) * kLanes;
  for (int i = 0; i < p.input_count; ++i) {
    const RegionInput& input = p.inputs[i];
    if (r.walks[i] == Walk::kDense && whole == count) {
      r.at[input.reg] = static_cast<const float*>(input.data) + begin;
    } else if (r.walks[i] != Walk::kOnce) {
      r.at[input.reg] = r.own(input.reg);
      int64_t row = row_of_one_value(p, input, begin, count);
      if (row < 0 || row != r.filled[i]) load_input(p, input, false, begin, count, r.own(input.reg));
      r.filled[i] = row;  // tiles before the last are full, so the register is too
    }
  }
  // The last op writes to the output itself, unless it would write behind its end.
  bool is_direct = p.op_count > 0 && p.output_count == 1 && p.outputs[0].type == RegionType::kF32 &&
                   p.outputs[0].reg == p.ops[p.op_count - 1].dst && whole == count;
  for (int i = 0; i < p.op_count; ++i) {
    const RegionOp& op = p.ops[i];
    bool ends = is_direct && i + 1 == p.op_count;
    float* dst = ends ? static_cast<float*>(p.outputs[0].data) + begin : r.own(op.dst);
    kTileOps[static_cast<int>(op.code)](dst, r.at[op.a], r.at[op.b], r.at[op.c], whole);
    r.at[op.dst] = dst;
  }
  if (is_direct) return;
  for (int i = 0; i < p.output_count; ++i) store_output(p.outputs[i], begin, count, r.at[p.outputs[i].reg]);
}

inline void region_run(const RegionArgs& p, int64_t begin, int64_t end) {
  Registers registers;
  prepare(p, registers);
  int64_t total = element_count(p), last = min(end * kPartElements, total);
  for (int64_t at = begin * kPartElements; at < last; at += registers.tile) {
    run_one_tile(p, registers, at, min(last - at, registers.tile));
  }
}

inline constexpr RegionFns kRegion = {{region_parts, region_run}};
