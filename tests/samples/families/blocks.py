# SPDX-License-Identifier: Apache-2.0
"""Primitive 59: the fifteen block dtypes, decoded by the formulas of the op set, element by element."""

import numpy as np

from golden import F, Tensor, numbers, oracle, tensor

KV = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


class Block:
    """One block's bytes, and the fields that layouts name."""

    def __init__(self, data):
        self.data = bytes(data)

    def number(self, code, at):
        dtype = np.dtype(code)
        return np.frombuffer(self.data, dtype, 1, at)[0]

    def f16(self, at):
        return float(self.number("<f2", at))

    def u8(self, at):
        return self.data[at]

    def i8(self, at):
        return int(self.number("i1", at))

    def u32(self, at):
        return int(self.number("<u4", at))

    def nibble(self, at, high):
        return self.data[at] >> 4 if high else self.data[at] & 15


def q4_0(b, i):
    return b.f16(0) * (b.nibble(2 + i % 16, i >= 16) - 8)


def q4_1(b, i):
    return b.f16(0) * b.nibble(4 + i % 16, i >= 16) + b.f16(2)


def q5_0(b, i):
    return b.f16(0) * (b.nibble(6 + i % 16, i >= 16) + 16 * (b.u32(2) >> i & 1) - 16)


def q5_1(b, i):
    return b.f16(0) * (b.nibble(8 + i % 16, i >= 16) + 16 * (b.u32(4) >> i & 1)) + b.f16(2)


def q8_0(b, i):
    return b.f16(0) * b.i8(2 + i)


def q2_k(b, i):
    scale, shift = b.u8(i // 16), 2 * (i % 128 // 32)
    return b.f16(80) * (scale & 15) * (b.u8(16 + 32 * (i // 128) + i % 32) >> shift & 3) - b.f16(82) * (scale >> 4)


def q3_k(b, i):
    s, shift = i // 16, 2 * (i % 128 // 32)
    scale = b.nibble(96 + s % 8, s >= 8) + 16 * (b.u8(96 + 8 + s % 4) >> 2 * (s // 4) & 3)
    low = b.u8(32 + 32 * (i // 128) + i % 32) >> shift & 3
    return b.f16(108) * (scale - 32) * (low + 4 * (b.u8(i % 32) >> i // 32 & 1) - 4)


def scale_min(b, at, s):
    if s < 4:
        return b.u8(at + s) & 63, b.u8(at + s + 4) & 63
    return (
        b.nibble(at + s + 4, False) + 16 * (b.u8(at + s - 4) >> 6),
        b.nibble(at + s + 4, True) + 16 * (b.u8(at + s) >> 6),
    )


def q4_k(b, i):
    a, m = scale_min(b, 4, i // 32)
    return b.f16(0) * a * b.nibble(16 + 32 * (i // 64) + i % 32, i % 64 >= 32) - b.f16(2) * m


def q5_k(b, i):
    a, m = scale_min(b, 4, i // 32)
    code = b.nibble(48 + 32 * (i // 64) + i % 32, i % 64 >= 32) + 16 * (b.u8(16 + i % 32) >> i // 32 & 1)
    return b.f16(0) * a * code - b.f16(2) * m


def q6_k(b, i):
    h, t, l = i // 128, i % 128 // 32, i % 32
    code = b.nibble(64 * h + 32 * (t % 2) + l, t >= 2) + 16 * (b.u8(128 + 32 * h + l) >> 2 * t & 3)
    return b.f16(208) * b.i8(192 + i // 16) * (code - 32)


def q8_k(b, i):
    return float(b.number("<f4", 0)) * b.i8(4 + i)


def iq4_nl(b, i):
    return b.f16(0) * KV[b.nibble(2 + i % 16, i >= 16)]


def iq4_xs(b, i):
    s = i // 32
    scale = (b.u8(4 + s // 2) >> 4 * (s % 2) & 15) + 16 * (int(b.number("<u2", 2)) >> 2 * s & 3)
    return b.f16(0) * (scale - 32) * KV[b.nibble(8 + 16 * s + i % 16, i % 32 >= 16)]


def mxfp4(b, i):
    exponent = b.u8(0)
    return np.nan if exponent == 255 else 2.0 ** (exponent - 127) * FP4[b.nibble(1 + i % 16, i >= 16)]


def f8e4m3(code):
    code &= 127
    if code == 127:
        return 0.0
    exponent, mantissa = code >> 3, code & 7
    return mantissa * 2.0**-9 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)


def nvfp4(b, i):
    s = i // 16
    return f8e4m3(b.u8(s)) * FP4[b.nibble(4 + 8 * s + i % 8, i % 16 >= 8)]


# dtype: decoder, elements and bytes of a block, where f16 scales lie, the sum of the block that the op set lists.
HALF, QUARTER = bytes.fromhex("0038"), bytes.fromhex("0034")
FORMATS = {
    "q4_0": (q4_0, 32, 18, {0: HALF}, -10.5),
    "q4_1": (q4_1, 32, 20, {0: HALF, 2: QUARTER}, 130.5),
    "q5_0": (q5_0, 32, 22, {0: HALF}, 7.5),
    "q5_1": (q5_1, 32, 24, {0: HALF, 2: QUARTER}, 260.5),
    "q8_0": (q8_0, 32, 34, {0: HALF}, -88),
    "q2_k": (q2_k, 256, 84, {80: HALF, 82: QUARTER}, 1029.5),
    "q3_k": (q3_k, 256, 110, {108: HALF}, 479),
    "q4_k": (q4_k, 256, 144, {0: HALF, 2: QUARTER}, 27220),
    "q5_k": (q5_k, 256, 176, {0: HALF, 2: QUARTER}, 58108),
    "q6_k": (q6_k, 256, 210, {208: HALF}, 2306),
    "q8_k": (q8_k, 256, 292, {0: np.float32(0.5).tobytes()}, -64),
    "iq4_nl": (iq4_nl, 32, 18, {0: HALF}, -128.5),
    "iq4_xs": (iq4_xs, 256, 136, {0: HALF}, -5502.5),
    "mxfp4": (mxfp4, 32, 17, {0: bytes([126])}, 6.25),
    "nvfp4": (nvfp4, 64, 36, {0: bytes([0x30, 0x38, 8, 1])}, 1.74511719),
}


def fill(size, fields, step=37, start=11):
    data = bytearray((step * k + start) % 256 for k in range(size))
    for at, field in fields.items():
        data[at : at + len(field)] = field
    return data


def decode(decoder, count, data):
    block = Block(data)
    return np.array([decoder(block, i) for i in range(count)], np.float64)


def consumers(family):
    """The ops that take a block dtype as it is, on two rows of one block."""
    for dtype, (decoder, count, size, fields, _) in FORMATS.items():
        blocks = [fill(size, fields), fill(size, fields, 11, 5)]
        rows = np.stack([decode(decoder, count, b) for b in blocks])
        w = Tensor(dtype, np.frombuffer(b"".join(map(bytes, blocks)), np.uint8), rows.shape)
        none = Tensor(dtype, np.zeros(0, np.uint8), (0, count))
        family.case("gather", [w, tensor("i64", [-1])], tensor("f32", rows[[1]]))
        family.case("dim_size", [none], tensor("i64", count), axis=1)
        x = tensor("f32", numbers("i8", (1, count), 1).a.clip(-2, 2))  # so that all sums are exact
        y = oracle("f32", x.a @ rows.T)
        family.case("matmul", [x, w], y, transpose_b=True)
        family.case("linear", [x, w], y, transpose_w=True)
        bank = Tensor(dtype, w.a, (1, *rows.shape))
        family.case("grouped_matmul", [x, bank, tensor("i64", [0])], y, transpose_w=True)
        one, first, ones = tensor("f32", [[1]]), tensor("i64", [[0]]), tensor("f32", np.ones((1, 2, 2)))
        up, wide = np.maximum(y.a, 0) * y.a, tensor("f32", np.eye(2, count)[None].swapaxes(1, 2))
        inputs = [x, bank, ones, first, one, bank]
        family.case("moe_ffn", inputs, oracle("f32", up @ ones.a[0].T), act="relu", transpose_w=True)
        inputs = [tensor("f32", [[2, 3]]), wide, bank, first, one]
        family.case("moe_ffn", inputs, oracle("f32", [2 * rows[:, 0] + 3 * rows[:, 1]]), act="none", transpose_w=True)
        several = Tensor(dtype, np.concatenate([w.a.ravel(), w.a.ravel()[: len(w.a.ravel()) // 2]]), (3, count))
        seen = tensor("f32", x.a[None])  # by one key, so that attention gives v
        value = x.a @ rows[:1].T
        block = oracle("f32", [value * [[2, 3]]])
        family.case("attention_block", [seen, several, tensor("f32", [[2], [3]])], block, num_heads=1, transpose_w=True)
        plain = tensor("f32", np.tile(x.a.T, (3, 1)))
        block = oracle("f32", [x.a @ rows.T])
        family.case("attention_block", [tensor("f32", [[[1]]]), plain, w], block, num_heads=1, transpose_w=True)
        family.case("matmul", [none, none], "RLX_E_DTYPE", transpose_b=True)
        if dtype != "q8_0":
            continue
        bias = numbers("f32", (2,), 2)
        family.case("linear", [x, w, bias], oracle("f32", np.maximum(y.a + bias.a, 0)), transpose_w=True, act="relu")
        for to in F:
            family.case("gather", [w, tensor("i32", 0)], tensor(to, rows[0]), dequant=to)
            half = tensor(to, x.a)
            family.case("matmul", [half, w], "RLX_E_DTYPE" if to == "f64" else oracle(to, y.a), transpose_b=True)
        family.case("matmul", [x, w], "RLX_E_SHAPE")
        family.case("gather", [w, tensor("i64", [0])], "RLX_E_SHAPE", axis=1)
        family.case("gather", [w, tensor("i64", [2])], "RLX_E_RANGE")


def add(family):
    consumers(family)
    for dtype, (decoder, count, size, fields, total) in FORMATS.items():
        first = fill(size, fields)
        y = decode(decoder, count, first)
        assert abs(y.sum() - total) < 1e-6 * max(1, abs(total)), dtype
        x = Tensor(dtype, np.frombuffer(bytes(first), np.uint8), (count,))
        family.case("dequantize", [x], tensor("f32", y))
        if count > 64:
            continue  # two rows of two blocks, and the other results, for the short formats only
        blocks = [first, *(fill(size, fields, step, 5) for step in (11, 29, 91))]
        raw = np.frombuffer(b"".join(map(bytes, blocks)), np.uint8)
        rows = np.concatenate([decode(decoder, count, b) for b in blocks]).reshape(2, 2 * count)
        family.case("dequantize", [Tensor(dtype, raw, rows.shape)], tensor("f32", rows), out_dtype="f32")
        for to in F:
            family.case("dequantize", [x], tensor(to, np.float32(y)), out_dtype=to)
    nan = Tensor("mxfp4", np.frombuffer(bytes(fill(17, {0: b"\xff"})), np.uint8), (32,))
    family.case("dequantize", [nan], Tensor("f32", np.full(32, np.nan)))
