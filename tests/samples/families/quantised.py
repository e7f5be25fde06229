# SPDX-License-Identifier: Apache-2.0
"""Products of quantised numbers, weights of few bits, scaled and grouped products, rounding in training."""

import itertools

import numpy as np

from families.contractions import EIGHT, convolved
from golden import E8, F, I, S, U, WIDE, X, numbers, oracle, tensor

OTHER = [dtype for dtype in I if dtype not in EIGHT]


def requantised(total, bias, mult, out_zp, to):
    low, high = (-128, 127) if to == "i8" else (0, 255)
    y = np.rint((total + bias).astype(np.float64) * mult) + out_zp
    return tensor(to, np.clip(y, low, high))


def products(family):
    for left, right, to in itertools.product(EIGHT, EIGHT, EIGHT):
        x, w = numbers(left, (2, 3, 4), 1), numbers(right, (4, 3), 2)
        zps = [tensor(left, 1), tensor(right, [2, 0, 3]), tensor(to, 5)]
        bias, mult = numbers("i32", (3,), 3), tensor("f32", [0.25, 0.515625, 0.0625])
        total = (x.a.astype(np.int64) - 1) @ (w.a.astype(np.int64) - [2, 0, 3])
        y = requantised(total, bias.a, mult.a, 5, to)
        family.case("q_matmul", [x, w, zps[0], zps[1], bias, mult, zps[2]], y, out_dtype=to)
        y = requantised((x.a.astype(np.int64) - 1) @ (w.a.astype(np.int64) - 2), 0, 0.375, 5, to)
        inputs = [x, w, zps[0], tensor(right, 2), None, tensor("f32", 0.375), zps[2]]
        family.case("q_matmul", inputs, y, out_dtype=to)
        x, w = numbers(left, (1, 2, 5), 4), numbers(right, (2, 1, 3), 5)
        rule = {"strides": [2], "pad_lo": [1], "pad_hi": [2], "groups": 2}
        centred = x.a.astype(np.int64) - 1, w.a.astype(np.int64) - np.array([2, 3]).reshape(2, 1, 1)
        total = convolved(*centred, [2], [1], [2], [1], [1], 2)
        y = requantised(total, np.array([7, -9]).reshape(2, 1), np.array([0.25, 0.5]).reshape(2, 1), 5, to)
        inputs = [x, w, zps[0], tensor(right, [2, 3]), tensor("i32", [7, -9]), tensor("f32", [0.25, 0.5]), zps[2]]
        family.case("q_conv", inputs, y, out_dtype=to, **rule)
    for op, dims, w_dims in (("q_matmul", (2, 2), (2, 2)), ("q_conv", (1, 1, 2), (1, 1, 1))):
        for dtype in OTHER:
            for x, w, to in ((dtype, "i8", "i8"), ("i8", dtype, "i8"), ("i8", "i8", dtype)):
                inputs = [numbers(x, dims), numbers(w, w_dims), tensor(x, 0), tensor(w, 0), None, tensor("f32", 1)]
                family.case(op, [*inputs, tensor(to, 0)], "RLX_E_DTYPE")


def integer_products(family):
    for left, right in itertools.product(EIGHT, EIGHT):
        a, b = numbers(left, (2, 3, 5), 1), numbers(right, (5, 4), 2)
        zeros = tensor("i32", 3), tensor("i32", [1, 0, -2, 300])
        scale, bias = tensor("f32", [0.5, 0.25, 2, 0.125]), numbers("f32", (4,), 3)
        plain = a.a.astype(np.int64) @ b.a.astype(np.int64)
        family.case("integer_matmul", [a, b], tensor("i32", plain))
        total = (a.a.astype(np.int64) - 3) @ (b.a.astype(np.int64) - zeros[1].a.astype(np.int64))
        family.case("integer_matmul", [a, b, *zeros], tensor("i32", total))
        real = total.astype(np.float32) * scale.a + bias.a
        family.case("integer_matmul", [a, b, *zeros, scale, bias], tensor("f32", real))
    for left, right in itertools.product(EIGHT, EIGHT):
        x, w = numbers(left, (1, 4, 5), 4), numbers(right, (6, 2, 3), 5)
        zeros = tensor(left, 3), tensor(right, [1, 0, 2, 4, 0, 7])
        rule = {"strides": [2], "pad_lo": [1], "pad_hi": [2], "groups": 2}
        plain = convolved(x.a.astype(np.int64), w.a.astype(np.int64), [2], [1], [2], [1], [1], 2)
        family.case("integer_conv", [x, w], tensor("i32", plain), **rule)
        centred = x.a.astype(np.int64) - 3, w.a.astype(np.int64) - zeros[1].a.astype(np.int64).reshape(6, 1, 1)
        add, scale = numbers("i32", (6,), 6), tensor("f32", [0.5, 0.25, 2, 0.125, 1, 0.75])
        bias = tensor("f32", [0.5, -3, 0, 1.25, -100, 7])
        total = convolved(*centred, [2], [1], [2], [1], [1], 2) + add.a.reshape(6, 1)
        family.case("integer_conv", [x, w, *zeros, add], tensor("i32", total), **rule)
        real = total * scale.a.reshape(6, 1) + bias.a.reshape(6, 1)
        family.case("integer_conv", [x, w, *zeros, add, scale, bias], tensor("f32", real), **rule)
        for to in EIGHT:
            y = requantised(total, 0, 0.25, 5, to)
            ends = [tensor("f32", 0.5), None, tensor("f32", 2), tensor(to, 5)]
            family.case("integer_conv", [x, w, *zeros, add, *ends], y, **rule)
            y = requantised(np.maximum(total, 0), 0, 0.25, 5, to)
            family.case("integer_conv", [x, w, *zeros, add, *ends], y, relu=1, **rule)
    for dtype in OTHER:
        family.case("integer_conv", [numbers(dtype, (1, 2, 2)), numbers("i8", (1, 2, 2)), tensor(dtype, 0)], "RLX_E_DTYPE")
        zero = [None, tensor(dtype, 0)]
        family.case("integer_conv", [numbers("i8", (1, 2, 2)), numbers(dtype, (1, 2, 2)), *zero], "RLX_E_DTYPE")
        ends = [None, None, None, tensor("f32", 1), None, tensor("f32", 1), tensor(dtype, 0)]
        family.case("integer_conv", [numbers("i8", (1, 2, 2)), numbers("i8", (1, 2, 2)), *ends], "RLX_E_DTYPE")
        family.case("integer_matmul", [numbers(dtype, (2, 2)), numbers("i8", (2, 2))], "RLX_E_DTYPE")
        family.case("integer_matmul", [numbers("i8", (2, 2)), numbers(dtype, (2, 2))], "RLX_E_DTYPE")


def pairs(family):
    numbers_of = tensor("f32", 0.5), tensor("f32", 0.25), tensor("f32", 0.75)
    for left, right, to in itertools.product(EIGHT, EIGHT, EIGHT):
        a, b = numbers(left, (2, 9), 1), numbers(right, (2, 9), 2)
        zeros = tensor(left, 3), tensor(right, 7), tensor(to, 100)
        real = [(x.a.astype(np.float32) - np.float32(z.a)) * s.a for x, z, s in zip((a, b), zeros, numbers_of)]
        inputs = [a, b, numbers_of[0], zeros[0], numbers_of[1], zeros[1], numbers_of[2], zeros[2]]
        lo, hi = (-128, 127) if to == "i8" else (0, 255)
        for product, y in ((0, real[0] + real[1]), (1, real[0] * real[1])):
            family.case("quantized_pair", inputs, tensor(to, np.clip(np.rint(y / numbers_of[2].a) + 100, lo, hi)), product=product)
    one = tensor("f32", 1)
    for dtype in OTHER:
        for dtypes in ((dtype, "i8", "i8"), ("i8", dtype, "i8"), ("i8", "i8", dtype)):
            zeros = [tensor(it, 0) for it in dtypes]
            inputs = [numbers(dtypes[0], (2,)), numbers(dtypes[1], (2,)), one, zeros[0], one, zeros[1], one, zeros[2]]
            family.case("quantized_pair", inputs, "RLX_E_DTYPE")


def byte_tables(family):
    rng = np.random.default_rng(10)
    for of, to in ((x, y) for x in ("i8", "u8") for y in ("i8", "u8")):
        table = rng.integers(0, 256, 256).astype(np.uint8)
        x = np.array([[0, 1, 127, 128, 129, 255], [7, 200, 254, 64, 7, 100]], np.uint8)
        view = {"i8": np.int8, "u8": np.uint8}
        family.case("byte_table", [tensor(of, x.view(view[of])), tensor(to, table.view(view[to]))], tensor(to, table[x].view(view[to])))
    for dtype in OTHER:
        for of, to in ((dtype, "i8"), ("u8", dtype)):
            family.case("byte_table", [numbers(of, (2,)), numbers(to, (256,))], "RLX_E_DTYPE")
    family.case("byte_table", [numbers("u8", (2,)), numbers("u8", (255,))], "RLX_E_SHAPE")
    family.case("byte_table", [numbers("u8", (2,)), numbers("u8", (2, 128))], "RLX_E_SHAPE")


def packed(q, bits):
    """Numbers of a few bits in bytes, low bits first."""
    per = 8 // bits
    q = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, -q.shape[-1] % per)]).reshape(*q.shape[:-1], -1, per)
    return (q << (np.arange(per) * bits)).sum(-1)


def few_bits(family):
    rng = np.random.default_rng(6)
    for dtype, bits, k, zp_dtype in [(d, 4, 37, "u8") for d in F] + [
        ("f32", 2, 32, "u8"),
        ("f32", 8, 20, "u8"),
        ("f32", 4, 48, None),
        *(("f32", 4, 32, d) for d in F),
    ]:
        blocks = -(-k // 16)
        q = rng.integers(0, 2**bits, (3, blocks, 16))
        scale = numbers(dtype if zp_dtype in ("u8", None) else zp_dtype, (3, blocks), 7, 0.1)
        zp, centre = None, np.full((3, blocks), 2.0 ** (bits - 1))
        if zp_dtype == "u8":
            centre = rng.integers(0, 2**bits, (3, blocks))
            zp = tensor("u8", packed(centre, bits))
        elif zp_dtype:
            zp = numbers(zp_dtype, (3, blocks), 8)
            centre = zp.a
        x, bias = numbers(dtype, (2, 2, k), 9), numbers(dtype, (3,), 10)
        w = ((q - centre[..., None]) * scale.a[..., None]).reshape(3, -1)[:, :k]
        y = x.a @ w.T + bias.a
        inputs = [x, tensor("u8", packed(q, bits)), scale, zp, bias]
        family.case("matmul_nbits", inputs, oracle(dtype, y), bits=bits, block=16)
    for dtype in [d for d in U if d != "u8"]:
        inputs = [numbers("f32", (1, 16)), numbers("u8", (1, 1, 8)), numbers("f32", (1, 1)), numbers(dtype, (1, 1))]
        family.case("matmul_nbits", inputs, "RLX_E_DTYPE", block=16)


def scaled(family):
    def case(a, b, sa, sb, bias=None, block=0, out="f32"):
        def spread(s, k):
            return np.repeat(s.a, block, -1)[..., :k] if block and s.a.ndim > 1 else s.a

        y = (a.a * spread(sa, a.a.shape[-1])) @ np.swapaxes(b.a * spread(sb, b.a.shape[-1]), -1, -2)
        y = y + (0 if bias is None else bias.a)
        rule = {"block": block or None, "out_dtype": None if out == "f32" else out}
        family.case("scaled_matmul", [a, b, sa, sb, bias], oracle(out, y), **rule)

    one = tensor("f32", 0.5)
    for dtype in F + E8:
        case(numbers(dtype, (2, 3), 11, 0.5), numbers("f32", (4, 3), 12, 0.5), one, one)
        case(numbers("f32", (2, 3), 11, 0.5), numbers(dtype, (4, 3), 12, 0.5), one, one)
    for dtype in F:
        rows = numbers(dtype, (2, 1), 13), numbers(dtype, (4, 1), 14)
        case(numbers("f8e4m3", (2, 3), 15), numbers("f8e4m3", (4, 3), 16), *rows, numbers(dtype, (4,), 17), out=dtype)
    blocks = numbers("f32", (2, 3), 18), numbers("f32", (4, 3), 19)
    case(numbers("f8e4m3", (2, 5), 20), numbers("f8e5m2", (4, 5), 21), *blocks, block=2)


def others(family):
    for dtype, turned in itertools.product(F, (False, True)):
        x, a, b = numbers(dtype, (2, 2, 4), 22), numbers(dtype, (4, 2), 23), numbers(dtype, (2, 3), 24)
        w = numbers(dtype, (3, 4) if turned else (4, 3), 25)
        y = x.a @ (w.a.T if turned else w.a) + 0.5 * ((x.a @ a.a) @ b.a)
        family.case("lora_matmul", [x, w, a, b], oracle(dtype, y), scale=0.5, transpose_w=turned)
        x, w = numbers(dtype, (5, 3), 26), numbers(dtype, (3, 2, 3) if turned else (3, 3, 2), 27)
        index = tensor("i64" if turned else "i32", [0, 2, 1, -1, 2])
        bank = np.swapaxes(w.a, 1, 2) if turned else w.a
        y = np.stack([row @ bank[i] for row, i in zip(x.a, index.a, strict=True)])
        family.case("grouped_matmul", [x, w, index], oracle(dtype, y), transpose_w=turned)


def training(family):
    def fake(x, s, most):
        return np.clip(np.rint(x / s), -most, most) * s

    for dtype, mode, axis, bits in itertools.product(F, ("batch", "ema", "fixed"), (None, 1), (8, 4)):
        x = numbers(dtype, (2, 3), 28)
        state = tensor(WIDE[dtype], np.abs(numbers(WIDE[dtype], () if axis is None else (3,), 29).a) + 0.5)
        m = np.abs(x.a).max() if axis is None else np.abs(x.a).max(0)
        amax = {"batch": m, "ema": 0.9 * state.a + (1 - 0.9) * m, "fixed": state.a}[mode]
        most = 2 ** (bits - 1) - 1
        outputs = [oracle(dtype, fake(x.a, amax / most, most)), oracle(WIDE[dtype], amax)]
        inputs = [x] if mode == "batch" else [x, state]
        family.case("fake_quantize", inputs, outputs, mode=mode, axis=axis, bits=bits, decay=0.9)
        y = fake(x.a, state.a / most, most)
        scale = tensor(WIDE[dtype], state.a / most)
        family.case("fake_quantize_lsq", [x, scale], oracle(dtype, fake(x.a, scale.a, most)), axis=axis, bits=bits)
    x = tensor("f32", [-2, -0.9, -0.15, 0, 0.2, 0.5, 1.4])
    y = [-2, -0.857142857, -0.285714286, 0, 0.285714286, 0.571428571, 1.42857143]
    assert np.allclose(fake(x.a, 2 / 7, 7), y)
    for ste in ("identity", "tanh", "hard_tanh", "clipped"):
        family.case("fake_quantize", [x], [oracle("f32", fake(x.a, 2 / 7, 7)), tensor("f32", 2)], bits=4, ste=ste)
    zeros = tensor("f32", [0, 0])
    family.case("fake_quantize", [zeros], [zeros, tensor("f32", 0)])
    for dtype in ("f16", "bf16"):
        family.case("fake_quantize", [numbers(dtype, (2,)), tensor(dtype, 1)], "RLX_E_OPTION")
        scale = tensor(dtype, 0.25)
        family.case("fake_quantize_lsq", [numbers(dtype, (4,), 30), scale], oracle(dtype, fake(numbers(dtype, (4,), 30).a, 0.25, 127)))


def add(family):
    products(family)
    integer_products(family)
    pairs(family)
    byte_tables(family)
    few_bits(family)
    scaled(family)
    others(family)
    training(family)
