// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit numbers, with positions of a plane along the lanes. A part is a block of a plane for some
// filters of a group. Four channels of a position lie in one lane, as the instructions for products of four numbers
// need them. The sums of a chunk of channels stay in registers. Groups of few channels would leave most of each four
// empty, so they are summed in f32, which is exact for few terms.

#include "backends/cpu/gemm/phases.inl"

#include "backends/cpu/gemm/planes.inl"

#include "backends/cpu/gemm/pairs.inl"
#include "backends/cpu/gemm/plane_sums.inl"
#include "backends/cpu/gemm/small_planes.inl"

inline constexpr int64_t kFourFilters = 64;  // of a part
inline constexpr int64_t kFourPlaces = 256;  // of a part, the gaps between rows included
inline constexpr int64_t kFourCopy = 10240;  // lanes of x, on the stack
inline constexpr int64_t kFourChunk = 4;     // fours of channels in a chunk, at least
inline constexpr int64_t kFewChannels = 3;   // of groups that are summed in f32
inline constexpr int64_t kMaxFewFilters = 8;
inline constexpr int64_t kExactTerms = 256;  // products with |x| <= 255 and |w| <= 255 whose sum f32 holds exactly
inline constexpr int64_t kWidest = 16;       // lanes of the widest instruction set: all use the same sizes

inline bool is_summed_in_f32(const ConvShape& p) {
  return p.channels <= kFewChannels && p.filters <= kMaxFewFilters && p.terms() <= kExactTerms;
}
inline PlaneShape int8_plane_shape(const ConvShape& p) {
  bool few = is_summed_in_f32(p);
  int64_t most = few ? sums_each(filters_at_once(p.filters)) - kPlaneSlack * kWidest : kFourPlaces;
  int64_t copy = few ? kFourCopy : kFourCopy / kFourChunk;
  return plane_shape(p.axes[1], p.axes[2], most, copy / p.axes[0].taps);
}
inline bool int8_conv_fits(const ConvShape& p) {
  for (const ConvAxis& axis : p.axes)
    if (axis.lhs_dilation != 1) return false;
  return p.taps() > 0 && p.taps() <= kPlaneTerms && (p.places() == 0 || p.filters == 0 || int8_plane_shape(p).rows > 0);
}

// ---- the place of a part ----

struct ConvPart {
  int64_t item, group, filter, filters, z;  // `filter` of the group
  PlaneBlock block;
};
inline int64_t int8_conv_parts(const Int8ConvArgs& p) {
  if (p.places() == 0 || p.filters == 0) return 0;
  return p.items * p.groups * ceil_div(p.filters, kFourFilters) * p.axes[0].out * int8_plane_shape(p).blocks();
}
inline ConvPart conv_part(const Int8ConvArgs& p, const PlaneShape& shape, int64_t index) {
  ConvPart part;
  part.block = plane_block(p.axes[1], p.axes[2], shape, index % shape.blocks());
  index /= shape.blocks();
  part.z = index % p.axes[0].out;
  index /= p.axes[0].out;
  int64_t blocks = ceil_div(p.filters, kFourFilters);
  part.filter = index % blocks * kFourFilters;
  part.filters = min(p.filters - part.filter, kFourFilters);
  part.group = index / blocks % p.groups;
  part.item = index / blocks / p.groups;
  return part;
}

inline uint32_t zero_of(const uint8_t* zero, bool is_signed) {
  return !zero ? 0 : static_cast<uint32_t>(is_signed ? static_cast<int8_t>(*zero) : *zero);
}
// The zero point of a filter, adjusted to its packed numbers.
inline uint32_t packed_zero(const Int8ConvArgs& p, int64_t filter) {
  const uint8_t* zero = p.w_zero && p.w_zero_by_filter ? p.w_zero + filter : p.w_zero;
  return zero_of(zero, p.w_signed) - (p.w_signed ? 0 : 128);
}
inline const std::byte* packed_filter(const Int8ConvArgs& p, int64_t filter) {
  return p.packed + filter * int8_filter_bytes(p.channels, p.taps());
}
inline uint32_t packed_sum(const std::byte* filter) {
  uint32_t sum;
  __builtin_memcpy(&sum, filter, sizeof sum);
  return sum;
}

// ---- finishing the sums ----

// total = sum - less - zero * (sum of x there)
struct FilterEnd {
  uint32_t less, zero;
  float scale, bias;
};
inline FilterEnd filter_end(const Int8ConvArgs& p, int64_t filter) {
  FilterEnd end{};
  end.less = p.add ? 0 - static_cast<uint32_t>(p.add[filter]) : 0;
  end.scale = p.scale ? p.scale[p.scale_by_filter ? filter : 0] : 1;
  end.bias = p.bias ? p.bias[filter] : 0;
  return end;
}

// Stores the places of a block for one filter. `sums` are numbers, or the bits of i32. x_sums is null if not needed.
template <bool kReal>
inline void finish_filter(const Int8ConvArgs& p, const PlaneShape& shape, const ConvPart& part, int64_t filter,
                          const FilterEnd& end, const float* sums, const int32_t* x_sums) {
  const Word less = end.less - Word{}, zero = end.zero - Word{};
  const Vec scale = splat(end.scale), bias = splat(end.bias), y_scale = splat(p.y_scale ? *p.y_scale : 1);
  const Vec inverse = inverse_of(p.y_scale ? *p.y_scale : 1);
  const Int y_zero = splat(static_cast<int32_t>(zero_of(p.y_zero, p.y_signed)));
  const bool is_scaled = p.scale, is_biased = p.bias, rounds = p.y_scale, relu = p.relu;
  const bool divides = rounds && *p.y_scale != 1;
  const int32_t lo = p.y_signed ? -128 : 0, hi = p.y_signed ? 127 : 255;
  const int64_t rows = part.block.rows, columns = part.block.columns, width = shape.width, row = p.axes[2].out;
  int64_t plane = (part.item * p.groups * p.filters + filter) * p.axes[0].out + part.z;
  int64_t first = (plane * p.axes[1].out + part.block.row) * row + part.block.column;
  auto* y = static_cast<float*>(p.y) + (rounds ? 0 : first);
  auto* bytes = static_cast<uint8_t*>(p.y) + (rounds ? first : 0);
  for (int64_t r = 0; r < rows; ++r, sums += width, y += row, bytes += row) {
    for (int64_t c = 0; c < columns; c += kLanes) {
      int64_t left = columns - c;
      Vec sum = load(sums + c);
      Word total = (kReal ? (Word)to_int(sum) : (Word)bits(sum)) - less;
      if (x_sums) total -= zero * (Word)bits(load(reinterpret_cast<const float*>(x_sums + r * width + c)));
      Vec real = to_float((Int)total) * scale;
      if (is_biased) real = real + bias;  // adding a zero for a missing bias would turn -0 into +0
      if (relu) real = max(real, Vec{});
      if (divides)
        store_bytes(bytes + c, quantized_to_8_bits(real, y_scale, inverse, y_zero, lo, hi), left);
      else if (rounds)
        store_bytes(bytes + c, rounded(real, to_float(y_zero), static_cast<float>(lo), static_cast<float>(hi)), left);
      else
        store_some(y + c, is_scaled ? real : from_bits((Int)total), left);
    }
  }
}

// ---- copies of x ----

// Four channels in a lane, as unsigned numbers.
struct FourRows {
  const uint8_t* x[4];
  uint32_t flip;
  Vec load(int64_t at, int64_t n) const {
    Word four = widened_bytes(load_bytes(x[0] + at, n));
    RLX_UNROLL for (int i = 1; i < 4; ++i) four |= widened_bytes(load_bytes(x[i] + at, n)) << (8 * i);
    return from_bits((Int)(four ^ flip));
  }
  float one(int64_t at) const {
    uint32_t four = uint32_t{x[0][at]} | uint32_t{x[1][at]} << 8 | uint32_t{x[2][at]} << 16 | uint32_t{x[3][at]} << 24;
    return std::bit_cast<float>(four ^ flip);
  }
};

// Copies the planes along z that windows read at one place; row_at(z, row) gives their rows. Layout: [taps of z][copy
// of a plane].
template <class RowAt>
inline void copy_planes(const Int8ConvArgs& p, const PlaneShape& shape, const ConvPart& part, RowAt&& row_at,
                        float outside, float* to) {
  const ConvAxis& z = p.axes[0];
  int64_t length = copy_length(shape, part.block);
  for (int64_t tap = 0; tap < z.taps; ++tap, to += length) {
    int64_t at = read_at(z, part.z, tap);
    if (at < 0)
      fill_vectors(to, length, outside);
    else
      copy_plane(
          p.axes[1], p.axes[2], shape, part.block, [&](int64_t row) { return row_at(at, row); }, outside, to);
  }
}
inline void list_all_taps(const Int8ConvArgs& p, const PlaneShape& shape, const ConvPart& part, TapList& taps) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  int64_t flat = y.taps * x.taps;
  list_taps(y, x, shape, part.block, taps);
  for (int64_t tap = flat; tap < p.taps(); ++tap)
    taps.at[tap] = taps.at[tap - flat] + static_cast<int32_t>(copy_length(shape, part.block));
}
inline const uint8_t* channel_at(const Int8ConvArgs& p, const ConvPart& part, int64_t channel) {
  return p.x + ((part.item * p.groups + part.group) * p.channels + channel) * p.plane();
}

// ---- sums of fours ----

struct FourSpan {
  const float* x;
  const int8_t* w;  // of the first filter
  const int32_t* taps;
  int64_t count, fours, x_four, w_filter;  // numbers of taps and of fours of channels; strides
  int64_t left;                            // fours from the first block on, also those behind the span
  float* sums;                             // rows of kFourPlaces, as bits
};

// The part of a span in one block of packed fours.
struct FourBlock {
  const float* x;
  const int8_t* w;
  int64_t fours, w_tap;
};
// A span begins with a block or lies in one; `first` counts from its beginning.
inline FourBlock four_block(const FourSpan& s, int64_t first) {
  auto at_most = [](int64_t n) { return min(n, kFourBlock); };
  return {s.x + first * s.x_four, s.w + first * s.count * 4, at_most(s.fours - first), 4 * at_most(s.left - first)};
}

// Calls add(x, w) for every tap and four.
template <class Add>
[[gnu::always_inline]] inline void for_each_four(const FourSpan& s, Add&& add) {
  for (int64_t first = 0; first < s.fours; first += kFourBlock) {
    const FourBlock block = four_block(s, first);
    for (int64_t tap = 0; tap < s.count; ++tap) {
      const float* x = block.x + s.taps[tap];
      const int8_t* w = block.w + tap * block.w_tap;
      for (int64_t four = 0; four < block.fours; ++four, x += s.x_four, w += 4) add(x, w);
    }
  }
}

template <class Sums, int Filters>
void add_length(const FourSpan& s, int64_t length) {
  int64_t at = 0;
  for (; at + (Sums::kVecs - 1) * kLanes < length; at += Sums::kVecs * kLanes)
    Sums::template add<Filters, Sums::kVecs>(s, at);
  if constexpr (Sums::kVecs > 2) {
    for (; at + kLanes < length; at += 2 * kLanes) Sums::template add<Filters, 2>(s, at);
  }
  for (; at < length; at += kLanes) Sums::template add<Filters, 1>(s, at);
}
template <class Sums>
void add_some_filters(FourSpan s, int64_t filters, int64_t length) {
  auto skip = [&](int64_t count) {
    s.w += count * s.w_filter;
    s.sums += count * kFourPlaces;
    return count;
  };
  for (; filters >= Sums::kFilters; filters -= skip(Sums::kFilters)) add_length<Sums, Sums::kFilters>(s, length);
  for (; filters >= 2; filters -= skip(2)) add_length<Sums, 2>(s, length);
  for (; filters >= 1; filters -= skip(1)) add_length<Sums, 1>(s, length);
}

// Unsigned numbers of x and signed numbers of w, in even and odd bytes.
struct PairSums {
  static constexpr int kFilters = RLX_ISA == 2 ? 4 : 2, kVecs = 2;
  static void add_filters(const FourSpan& s, int64_t filters, int64_t length) {
    add_some_filters<PairSums>(s, filters, length);
  }
  template <int Filters, int Vecs>
  static void add(const FourSpan& s, int64_t at) {
    Int acc[Filters][Vecs];
    RLX_UNROLL for (int f = 0; f < Filters; ++f) {
      RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[f][v] = bits(load(s.sums + f * kFourPlaces + at + v * kLanes));
    }
    for_each_four(
        s, [&](const float* x_four, const int8_t* w) __attribute__((always_inline)) {
          const float* from = x_four + at;
          Half even[Vecs], odd[Vecs];
          RLX_UNROLL for (int v = 0; v < Vecs; ++v) {
            Word x = (Word)bits(load(from + v * kLanes));
            even[v] = (Half)(x & 0xff00ff);
            odd[v] = (Half)(x >> 8 & 0xff00ff);
          }
          RLX_UNROLL for (int f = 0; f < Filters; ++f) {
            int32_t numbers;
            __builtin_memcpy(&numbers, w + f * s.w_filter, 4);
            Half both = (Half)splat(numbers), w_even = (both << 8) >> 8, w_odd = both >> 8;
            RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[f][v] +=
                add_pairs(even[v], w_even) + add_pairs(odd[v], w_odd);
          }
        });
    RLX_UNROLL for (int f = 0; f < Filters; ++f) {
      RLX_UNROLL for (int v = 0; v < Vecs; ++v) store(s.sums + f * kFourPlaces + at + v * kLanes, from_bits(acc[f][v]));
    }
  }
};

#if RLX_ISA == 2
#define RLX_VNNI [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c,bmi,bmi2")]]

// Unsigned numbers of x and signed numbers of w, four products in one instruction.
struct FourSums {
  static constexpr int kFilters = 6, kVecs = 4;
  static void add_filters(const FourSpan& s, int64_t filters, int64_t length) {
    add_some_filters<FourSums>(s, filters, length);
  }
  // Adds one four of channels at one tap.
  template <int Filters, int Vecs>
  RLX_VNNI [[gnu::always_inline]] static inline void add_four(const float* x_four, const int8_t* w, int64_t w_filter,
                                                              __m512i (&acc)[Filters][Vecs]) {
    __m512i x[Vecs];
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) x[v] = _mm512_loadu_si512(x_four + v * kLanes);
    RLX_UNROLL for (int f = 0; f < Filters; ++f) {
      int32_t numbers;
      __builtin_memcpy(&numbers, w + f * w_filter, 4);
      __m512i weight = _mm512_set1_epi32(numbers);
      RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[f][v] = _mm512_dpbusd_epi32(acc[f][v], x[v], weight);
    }
  }
  // As for_each_four, which cannot be used: what it inlines may not need more of the instruction set than it does.
  template <int Filters, int Vecs>
  RLX_VNNI static void add(const FourSpan& s, int64_t at) {
    __m512i acc[Filters][Vecs];
    RLX_UNROLL for (int f = 0; f < Filters; ++f) {
      RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[f][v] =
          _mm512_loadu_si512(s.sums + f * kFourPlaces + at + v * kLanes);
    }
    for (int64_t first = 0; first < s.fours; first += kFourBlock) {
      const FourBlock block = four_block(s, first);
      for (int64_t tap = 0; tap < s.count; ++tap) {
        const float* x = block.x + s.taps[tap] + at;
        const int8_t* w = block.w + tap * block.w_tap;
        for (int64_t four = 0; four < block.fours; ++four, x += s.x_four, w += 4) add_four(x, w, s.w_filter, acc);
      }
    }
    RLX_UNROLL for (int f = 0; f < Filters; ++f) {
      RLX_UNROLL for (int v = 0; v < Vecs; ++v)
          _mm512_storeu_si512(s.sums + f * kFourPlaces + at + v * kLanes, acc[f][v]);
    }
  }
};
#undef RLX_VNNI

#include "backends/cpu/gemm/int8_conv_amx.inl"
#endif

// Whether packed numbers of a filter of this part have a zero point, so that the sums of x are needed.
inline bool needs_x_sums(const Int8ConvArgs& p, const ConvPart& part) {
  for (int64_t f = 0; f < part.filters; ++f)
    if (packed_zero(p, part.group * p.filters + part.filter + f) != 0) return true;
  return false;
}

// Adds the numbers of x in the windows, for these fours of channels.
inline void add_x(const FourSpan& s, int64_t channels, int64_t length, int32_t* x_sums) {
  for (int64_t four = 0; four < s.fours; ++four, channels -= 4) {
    uint32_t mask = channels >= 4 ? 0xffffffff : (1u << (8 * channels)) - 1;
    for (int64_t at = 0; at < length; at += kLanes) {
      auto* to = reinterpret_cast<float*>(x_sums + at);
      Word sum = (Word)bits(load(to));
      for (int64_t tap = 0; tap < s.count; ++tap) {
        Word x = (Word)bits(load(s.x + four * s.x_four + s.taps[tap] + at)) & mask;
        Word pairs = (x & 0xff00ff) + (x >> 8 & 0xff00ff);
        sum += (pairs & 0xffff) + (pairs >> 16);
      }
      store(to, from_bits((Int)sum));
    }
  }
}

// The fours of a chunk: as many as the copy has room for, in whole blocks, or within one block.
inline int64_t fours_in_chunk(int64_t x_four, int64_t from, int64_t fours) {
  const int64_t room = kFourCopy / x_four, rest = kFourBlock - from % kFourBlock;
  const int64_t most = room < kFourBlock ? min(room, rest) : room / kFourBlock * kFourBlock;
  return min(most, fours - from);
}

// Some fours of channels of x, and where their copies lie: `apart` from one another.
struct FourCopies {
  int64_t from, count, apart;
  float outside;  // what stands beyond the planes
  float* to;
};
inline void copy_fours(const Int8ConvArgs& p, const PlaneShape& shape, const ConvPart& part, const FourCopies& fours) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  for (int64_t four = 0; four < fours.count; ++four) {
    int64_t channel = 4 * (fours.from + four);
    FourRows at;
    at.flip = p.x_signed ? 0x80808080 : 0;
    auto row_at = [&](int64_t z, int64_t row) {
      for (int64_t i = 0; i < 4; ++i) {  // weights beyond the last channel are 0
        int64_t c = channel + i < p.channels ? channel + i : channel;
        at.x[i] = channel_at(p, part, c) + (z * y.size + row) * x.size;
      }
      return at;
    };
    copy_planes(p, shape, part, row_at, fours.outside, fours.to + four * fours.apart);
  }
}

template <class Sums>
void four_part(const Int8ConvArgs& p, const PlaneShape& shape, const ConvPart& part, TapList& taps) {
  alignas(64) float copy[kFourCopy + 4 * kWidest];
  alignas(64) float sums[kFourFilters * kFourPlaces + kWidest];
  alignas(64) int32_t x_sums[kFourPlaces + kWidest];
  list_all_taps(p, shape, part, taps);
  const uint32_t x_zero = zero_of(p.x_zero, p.x_signed) + (p.x_signed ? 128 : 0);
  const float outside = std::bit_cast<float>((x_zero & 0xff) * 0x01010101);
  int64_t first = part.group * p.filters + part.filter, length = block_length(shape, part.block);
  int64_t x_four = p.axes[0].taps * copy_length(shape, part.block), fours = ceil_div(p.channels, 4);
  const bool sums_x = needs_x_sums(p, part);
  __builtin_memset(sums, 0, static_cast<size_t>(part.filters * kFourPlaces) * sizeof(float));
  __builtin_memset(x_sums, 0, sizeof x_sums);
  for (int64_t from = 0, now; from < fours; from += now) {
    now = fours_in_chunk(x_four, from, fours);
    copy_fours(p, shape, part, {from, now, x_four, outside, copy});
    const int64_t inside = from % kFourBlock, begin = from - inside;
    const auto* w = reinterpret_cast<const int8_t*>(packed_filter(p, first)) + 4 + (begin * p.taps() + inside) * 4;
    FourSpan span{.x = copy, .w = w, .taps = taps.at, .count = p.taps(), .fours = now, .x_four = x_four};
    span.w_filter = int8_filter_bytes(p.channels, p.taps());
    span.left = fours - begin;
    span.sums = sums;
    Sums::add_filters(span, part.filters, length);
    if (sums_x) add_x(span, p.channels - 4 * from, length, x_sums);
  }
  for (int64_t f = 0; f < part.filters; ++f) {
    FilterEnd end = filter_end(p, first + f);
    end.zero = packed_zero(p, first + f);
    end.less += x_zero * (packed_sum(packed_filter(p, first + f)) - static_cast<uint32_t>(p.terms()) * end.zero);
    finish_filter<false>(p, shape, part, first + f, end, sums + f * kFourPlaces, sums_x ? x_sums : nullptr);
  }
}

// ---- sums in f32 ----

// Writes the weights of a filter, less their zero point, `apart` from one another.
inline FilterEnd few_filter(const Int8ConvArgs& p, int64_t filter, uint32_t x_zero, float* w, int64_t apart) {
  const std::byte* packed = packed_filter(p, filter);
  const auto* numbers = reinterpret_cast<const int8_t*>(packed) + 4;
  auto zero = static_cast<int32_t>(packed_zero(p, filter));
  FilterEnd end = filter_end(p, filter);
  end.less += x_zero * (packed_sum(packed) - static_cast<uint32_t>(p.terms()) * static_cast<uint32_t>(zero));
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t tap = 0; tap < p.taps(); ++tap, w += apart) *w = static_cast<float>(numbers[4 * tap + c] - zero);
  return end;
}

template <bool kSigned>
void few_part(const Int8ConvArgs& p, const PlaneShape& shape, const ConvPart& part, TapList& taps) {
  alignas(64) float copy[kFourCopy + kPlaneSlack * kWidest];
  alignas(64) float sums[kPlaneSums];
  float w[kPlaneFilters * kExactTerms];
  list_all_taps(p, shape, part, taps);
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  const uint32_t x_zero = zero_of(p.x_zero, kSigned);
  const auto outside = static_cast<float>(static_cast<int32_t>(x_zero));
  int64_t length = block_length(shape, part.block);
  for (int64_t f = 0, now; f < part.filters; f += now) {
    now = filters_at_once(part.filters - f);
    int64_t first = part.group * p.filters + part.filter + f, apart = sums_each(now);
    FilterEnd ends[kPlaneFilters];
    for (int64_t i = 0; i < now; ++i) {
      ends[i] = few_filter(p, first + i, x_zero, w + i * kExactTerms, 1);
    }
    for (int64_t c = 0; c < p.channels; ++c) {
      auto row_at = [&](int64_t z, int64_t row) {
        return ByteRow<kSigned>{channel_at(p, part, c) + (z * y.size + row) * x.size};
      };
      if (p.channels > 1 || f == 0) copy_planes(p, shape, part, row_at, outside, copy);
      sum_planes(now, {copy, w + c * p.taps(), taps.at, p.taps(), kExactTerms, 1, sums, apart}, length, c > 0);
    }
    if (p.channels == 0) fill_vectors(sums, kPlaneSums, 0);
    for (int64_t i = 0; i < now; ++i)
      finish_filter<true>(p, shape, part, first + i, ends[i], sums + i * apart, nullptr);
  }
}

// Small planes with a filter each.
inline bool are_small(const Int8ConvArgs& p) {
  return p.channels == 1 && p.filters == 1 && is_summed_in_f32(p) && is_small_plane(p.axes, p.items * p.groups) &&
         int8_plane_shape(p).blocks() == 1;
}
template <bool kSigned>
void small_run(const Int8ConvArgs& p, int64_t begin, int64_t end) {
  const uint32_t x_zero = zero_of(p.x_zero, kSigned);
  SmallPlanes planes(p.axes[1], p.axes[2], static_cast<float>(static_cast<int32_t>(x_zero)));
  SmallSums sums;
  const PlaneShape shape{.width = planes.outs};
  const int64_t last = min(end * kLanes, p.items * p.groups);
  for (int64_t first = begin * kLanes, count; first < last; first += count) {
    count = min(last - first, kLanes);
    planes.read(count, [&](int64_t i) { return ByteRow<kSigned>{p.x + (first + i) * p.plane()}; });
    FilterEnd ends[kLanes];
    for (int64_t i = 0; i < count; ++i) ends[i] = few_filter(p, (first + i) % p.groups, x_zero, sums.w + i, kLanes);
    sums.compute(planes, count);
    for (int64_t i = 0; i < count; ++i) {
      int64_t group = (first + i) % p.groups;
      ConvPart part{(first + i) / p.groups, group, 0, 1, 0, {0, 1, 0, planes.outs}};
      finish_filter<true>(p, shape, part, group, ends[i], sums.sums + i * kSmallOuts, nullptr);
    }
  }
}

template <class Sums>
void int8_conv_run(const Int8ConvArgs& p, int64_t begin, int64_t end) {
  if (are_small(p)) return (p.x_signed ? small_run<true> : small_run<false>)(p, begin, end);
  PlaneShape shape = int8_plane_shape(p);
  TapList taps;
  for (int64_t index = begin; index < end; ++index) {
    ConvPart part = conv_part(p, shape, index);
    if (!is_summed_in_f32(p))
      four_part<Sums>(p, shape, part, taps);
    else
      (p.x_signed ? few_part<true> : few_part<false>)(p, shape, part, taps);
  }
}

// Small planes are computed side by side: fewer at once would take as long.
inline int64_t int8_conv_shares(const Int8ConvArgs& p) {
  return p.places() > 0 && are_small(p) ? ceil_div(p.items * p.groups, kLanes) : int8_conv_parts(p);
}

inline constexpr Loop<Int8ConvArgs> kConvByPairs = {int8_conv_shares, int8_conv_run<PairSums>};
#if RLX_ISA == 2
inline constexpr Loop<Int8ConvArgs> kInt8Convs[] = {  // in the order of ByteProducts
    kConvByPairs,
    {int8_conv_shares, int8_conv_run<FourSums>},
    {int8_conv_shares, int8_conv_run<AmxSums>}};
#endif
