// SPDX-License-Identifier: Apache-2.0
// Block-quantised types (semantics.md Q1): a formula for element i of a block each, in the letters of that page. Every
// formula is exact in f64, so a result is rounded only once, to f32. The bit layouts are those of GGUF files.
#include "ops/blocks.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace rlx {

namespace {

// The bytes of one block. Offsets are those of the table in semantics.md.
struct Block {
  const std::byte* bytes;

  template <class T>
  T field(int offset) const {
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
  }
  int byte(int offset) const { return std::to_integer<int>(bytes[offset]); }
  int signed_byte(int offset) const { return field<int8_t>(offset); }
  double half(int offset) const { return static_cast<double>(static_cast<float>(field<f16>(offset))); }
  int bits(int offset, int shift, int mask) const { return byte(offset) >> shift & mask; }
  int lo(int offset) const { return bits(offset, 0, 15); }
  int hi(int offset) const { return bits(offset, 4, 15); }
  int nibble(int offset, bool is_high) const { return is_high ? hi(offset) : lo(offset); }
};

constexpr double kKV[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr double kFP4[16] = {0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6};

// Bit i of a 32-bit word, as the fifth bit of a quantised number.
int fifth(Block b, int offset, int i) {
  return static_cast<int>(b.field<uint32_t>(offset) >> i & 1) * 16;
}

double q4_0(Block b, int i) {
  return b.half(0) * (b.nibble(2 + i % 16, i >= 16) - 8);
}
double q4_1(Block b, int i) {
  return b.half(0) * b.nibble(4 + i % 16, i >= 16) + b.half(2);
}
double q5_0(Block b, int i) {
  return b.half(0) * (b.nibble(6 + i % 16, i >= 16) + fifth(b, 2, i) - 16);
}
double q5_1(Block b, int i) {
  return b.half(0) * (b.nibble(8 + i % 16, i >= 16) + fifth(b, 4, i)) + b.half(2);
}
double q8_0(Block b, int i) {
  return b.half(0) * b.signed_byte(2 + i);
}

double q2_k(Block b, int i) {
  int scales = i / 16, j = i % 128 / 32;
  int q = b.bits(16 + 32 * (i / 128) + i % 32, 2 * j, 3);
  return b.half(80) * b.lo(scales) * q - b.half(82) * b.hi(scales);
}

double q3_k(Block b, int i) {
  int s = i / 16, j = i % 128 / 32;
  int c = b.nibble(96 + s % 8, s >= 8) + 16 * b.bits(96 + 8 + s % 4, 2 * (s / 4), 3);
  int q = b.bits(32 + 32 * (i / 128) + i % 32, 2 * j, 3) + 4 * b.bits(i % 32, i / 32, 1);
  return b.half(108) * (c - 32) * (q - 4);
}

// The 6-bit scale and min of group s, from the 12 bytes at offset 4: sm(s) of semantics.md.
struct ScaleMin {
  int scale, min;
  ScaleMin(Block b, int s) {
    if (s < 4) {
      scale = b.byte(4 + s) & 63, min = b.byte(4 + s + 4) & 63;
    } else {
      scale = b.lo(4 + s + 4) + 16 * b.bits(4 + s - 4, 6, 3);
      min = b.hi(4 + s + 4) + 16 * b.bits(4 + s, 6, 3);
    }
  }
};

double q4_k(Block b, int i) {
  ScaleMin sm(b, i / 32);
  return b.half(0) * sm.scale * b.nibble(16 + 32 * (i / 64) + i % 32, i % 64 >= 32) - b.half(2) * sm.min;
}
double q5_k(Block b, int i) {
  ScaleMin sm(b, i / 32);
  int q = b.nibble(48 + 32 * (i / 64) + i % 32, i % 64 >= 32) + 16 * b.bits(16 + i % 32, i / 32, 1);
  return b.half(0) * sm.scale * q - b.half(2) * sm.min;
}

double q6_k(Block b, int i) {
  int h = i / 128, t = i % 128 / 32, l = i % 32;
  int q = b.nibble(64 * h + 32 * (t % 2) + l, t >= 2) + 16 * b.bits(128 + 32 * h + l, 2 * t, 3);
  return b.half(208) * b.signed_byte(192 + i / 16) * (q - 32);
}

double q8_k(Block b, int i) {
  return static_cast<double>(b.field<float>(0)) * b.signed_byte(4 + i);
}

double iq4_nl(Block b, int i) {
  return b.half(0) * kKV[b.nibble(2 + i % 16, i >= 16)];
}
double iq4_xs(Block b, int i) {
  int s = i / 32;
  int c = b.bits(4 + s / 2, 4 * (s % 2), 15) + 16 * (b.field<uint16_t>(2) >> 2 * s & 3);
  return b.half(0) * (c - 32) * kKV[b.nibble(8 + 16 * s + i % 16, i % 32 >= 16)];
}

double mxfp4(Block b, int i) {
  if (b.byte(0) == 255) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(kFP4[b.nibble(1 + i % 16, i >= 16)], b.byte(0) - 127);
}
double nvfp4(Block b, int i) {
  int s = i / 16;
  f8e4m3 scale;
  scale.bits = static_cast<uint8_t>(b.byte(s) & 0x7f);
  if (scale.bits == 0x7f) scale.bits = 0;
  return static_cast<double>(static_cast<float>(scale)) * kFP4[b.nibble(4 + 8 * s + i % 8, i % 16 >= 8)];
}

constexpr struct {
  DType dtype;
  double (*element)(Block, int);
} kFormats[] = {
    {DType::kQ4_0, q4_0},     {DType::kQ4_1, q4_1},   {DType::kQ5_0, q5_0},   {DType::kQ5_1, q5_1},
    {DType::kQ8_0, q8_0},     {DType::kQ2_K, q2_k},   {DType::kQ3_K, q3_k},   {DType::kQ4_K, q4_k},
    {DType::kQ5_K, q5_k},     {DType::kQ6_K, q6_k},   {DType::kQ8_K, q8_k},   {DType::kIQ4_NL, iq4_nl},
    {DType::kIQ4_XS, iq4_xs}, {DType::kMXFP4, mxfp4}, {DType::kNVFP4, nvfp4},
};

}  // namespace

void decode_blocks(DType dtype, const std::byte* blocks, int64_t count, float* out) {
  const DTypeInfo& type = info(dtype);
  for (const auto& format : kFormats) {
    if (format.dtype != dtype) continue;
    for (int64_t block = 0; block < count / type.block; block++)
      for (int i = 0; i < type.block; i++)
        *out++ = static_cast<float>(format.element({blocks + block * type.bytes}, i));
  }
}

Result<Tensor> decoded(const Operand& operand) {
  Tensor tensor = RLX_TRY(Tensor::create(DType::kF32, operand.dims));
  decode_blocks(operand.dtype, operand.data, tensor.count(), tensor.as<float>());
  return tensor;
}

// ---- dequantize ----

Status infer_dequantize(InferArgs& args) {
  args.out[0] = {args.attrs.dtype("out_dtype"), args.dims()};
  return {};
}

Status eval_dequantize(EvalArgs& args) {
  Tensor values = RLX_TRY(decoded(args.in[0]));
  visit<dtypes::F>(args.out[0].dtype, [&]<class T>() {
    map1<T, float>(args.out[0], Operand::of(values), [](float x) { return static_cast<Compute<T>>(x); });
  });
  return {};
}

}  // namespace rlx
