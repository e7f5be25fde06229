// SPDX-License-Identifier: Apache-2.0
// Random bits: Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). A block of four
// words is a pure function of key and counter, so any part of a stream can be computed separately.
#include "ops/eval.h"

namespace rlx {

Status infer_rng_bits(InferArgs& args) {
  DType dtype = args.attrs.dtype("dtype");
  if (dtype != DType::kU32 && dtype != DType::kU64)
    return args.fail(Code::kDtype, "bits come as u32 or u64, not " + std::string(name(dtype)));
  for (size_t i = 0; i < 2; i++) {
    const char* port = i ? "counter" : "key";
    int64_t words = i ? 4 : 2;
    if (args.rank(i) != 1) return wrong_rank(port, "1", args.rank(i));
    RLX_TRY(args.same(words, args.dims(i)[0], port));
  }
  args.out[0] = {dtype, args.attrs.dims("shape")};
  args.out[1].dims = {4};
  return {};
}

using Words = std::array<uint32_t, 4>;

static Words philox(Words c, uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  return c;
}

// Addition modulo 2^128; word 0 is the least significant.
static Words advanced(Words counter, uint64_t blocks) {
  uint64_t carry = 0;
  for (size_t i = 0; i < 4; i++) {
    uint64_t sum = counter[i] + (i < 2 ? blocks >> (32 * i) & 0xffffffff : 0) + carry;
    counter[i] = static_cast<uint32_t>(sum);
    carry = sum >> 32;
  }
  return counter;
}

Status eval_rng_bits(EvalArgs& args) {
  const uint32_t *key = args.in[0].as<uint32_t>(), *start = args.in[1].as<uint32_t>();
  const Operand& out = args.out[0];
  Words first{start[0], start[1], start[2], start[3]};
  // A u64 is two words, the lower first: in memory the stream is the same.
  auto words = static_cast<uint64_t>(out.count() * element_bytes(out.dtype) / 4);
  for (uint64_t j = 0; j < words; j += 4) {
    Words block = philox(advanced(first, j / 4), key[0], key[1]);
    for (uint64_t i = 0; i < std::min<uint64_t>(4, words - j); i++) out.as<uint32_t>()[j + i] = block[i];
  }
  Words next = advanced(first, (words + 3) / 4);
  std::copy(next.begin(), next.end(), args.out[1].as<uint32_t>());
  return {};
}

}  // namespace rlx
