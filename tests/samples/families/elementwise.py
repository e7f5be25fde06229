# SPDX-License-Identifier: Apache-2.0
"""Primitives 4-34: one value, or two, or a choice, at each position."""

import numpy as np
from scipy import special

from golden import E8, B, D, F, I, N, Tensor, Z, int_range, numbers, numpy_int, oracle, pairs, specials, tensor, wrap

EXACT_FLOAT = {"neg": np.negative, "abs": np.abs, "floor": np.floor, "round": np.rint}
FLOAT = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": special.erf,
}
COMPLEX = {"neg": np.negative, "exp": np.exp, "log": np.log, "sqrt": np.sqrt}
MORE = {
    "exp": [88.5, 89.5, -87, 20, -20],
    "expm1": [1e-5, -1e-5, 88.5, -40],
    "log": [1e-30, 1e30, 0.999],
    "log1p": [1e-6, -0.999, 1e6],
    "sqrt": [4, 2, 1e-20, 1e20],
    "sin": [1e4, 3.1415927, 1e6],
    "cos": [1e4, 1.5707964],
    "tanh": [1e-5, 9, -20],
    "erf": [1e-5, 2, -3.5, 4],
}


def unary(family):
    for op, function in EXACT_FLOAT.items():
        for dtype in F:
            x = specials(dtype)
            family.case(op, [x], oracle(dtype, function(x.a)))
    for op in ("neg", "abs"):
        for dtype in I:
            x = specials(dtype)
            sign = -1 if op == "neg" else 1
            y = [wrap(sign * int(v) if op == "neg" else abs(int(v)), dtype) for v in x.a]
            family.case(op, [x], tensor(dtype, y))
    for op, function in FLOAT.items():
        for dtype in F:
            x = tensor(dtype, [*specials(dtype).a, *MORE[op]])
            family.case(op, [x], oracle(dtype, function(x.a)))
    for op, function in COMPLEX.items():
        for dtype in Z:
            x = specials(dtype)
            x.a = x.a[x.a != 0] if op == "log" else x.a
            family.case(op, [x], oracle(dtype, function(x.a)))
    for dtype, part in (("c64", "f32"), ("c128", "f64")):
        x = tensor(dtype, [0, 3 + 4j, -5, 1j, 3e30 + 4e30j, 3e-30 - 4e-30j])
        family.case("abs", [x], oracle(part, np.hypot(x.a.real, x.a.imag)))
    for op, function in {**EXACT_FLOAT, **FLOAT}.items():
        for shape in ((), (0,), (2, 0, 3), (1, 3, 5)):
            x = tensor("f32", np.abs(numbers("f32", shape, 1).a) + 0.125)
            family.case(op, [x], oracle("f32", function(x.a)))


def int_div(a, b, dtype):
    if b == 0:
        return -1 if dtype[0] == "i" else int_range(dtype)[1]
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def int_rem(a, b, dtype):
    return a if b == 0 else a - b * int_div(a, b, dtype)


def int_pow(a, b, dtype):
    bits = 2 ** int(dtype[1:])
    return pow(a, b, bits) if b >= 0 else int_div(1, wrap(pow(a, -b, bits), dtype), dtype)


def int_shl(a, b, dtype):
    bits = int(dtype[1:])
    b %= 2**bits
    return a << b if b < bits else 0


def int_shr(a, b, dtype):
    bits = int(dtype[1:])
    return a >> min(b % 2**bits, bits)  # Python shifts negative numbers arithmetically


INT = {
    "add": lambda a, b, d: a + b,
    "sub": lambda a, b, d: a - b,
    "mul": lambda a, b, d: a * b,
    "div": int_div,
    "rem": int_rem,
    "pow": int_pow,
    "max": lambda a, b, d: max(a, b),
    "min": lambda a, b, d: min(a, b),
    "bit_and": lambda a, b, d: a & b,
    "bit_or": lambda a, b, d: a | b,
    "bit_xor": lambda a, b, d: a ^ b,
    "shl": int_shl,
    "shr": int_shr,
}
FLOAT2 = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rem": np.fmod,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "atan2": np.arctan2,
}
COMPLEX2 = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
BOOL2 = {
    "max": np.logical_or,
    "min": np.logical_and,
    "bit_and": np.logical_and,
    "bit_or": np.logical_or,
    "bit_xor": np.logical_xor,
}
COMPARE = {"eq": np.equal, "lt": np.less, "le": np.less_equal}


def int_operands(op, dtype):
    """pow of -MIN, and of a negative exponent whose power wraps to 0, are left to nobody: they are not sampled."""
    a, b = pairs(dtype)
    if op != "pow":
        return a, b
    keep = (np.abs(b.a.astype(float)) <= 7) & ((b.a >= 0) | (np.abs(a.a.astype(float)) <= 3))
    return tensor(dtype, a.a[keep]), tensor(dtype, b.a[keep])


def int_result(op, a, b):
    values = [wrap(INT[op](int(x), int(y), a.dtype), a.dtype) for x, y in zip(a.a.ravel(), b.a.ravel(), strict=True)]
    return Tensor(a.dtype, np.array(values, numpy_int(a.dtype)).reshape(a.a.shape))


def binary(family):
    for op in INT:
        for dtype in I:
            a, b = int_operands(op, dtype)
            family.case(op, [a, b], int_result(op, a, b))
    for op, function in FLOAT2.items():
        for dtype in F:
            a, b = pairs(dtype)
            family.case(op, [a, b], oracle(dtype, function(a.a, b.a)))
    for op, function in COMPLEX2.items():
        for dtype in Z:
            a, b = pairs(dtype)
            keep = b.a != 0 if op == "div" else slice(None)
            a, b = tensor(dtype, a.a[keep]), tensor(dtype, b.a[keep])
            family.case(op, [a, b], oracle(dtype, function(a.a, b.a)))
    a, b = pairs("bool")
    for op, function in BOOL2.items():
        family.case(op, [a, b], tensor("bool", function(a.a, b.a)))
    for op, function in FLOAT2.items():
        for left, right in (
            ((), ()),
            ((3, 1), (1, 5)),
            ((2, 1, 3), (3,)),
            ((0, 3), (1, 3)),
            ((1,), (0,)),
            ((), (2, 3)),
        ):
            a, b = numbers("f32", left, 2), numbers("f32", right, 3)
            a.a = np.abs(a.a) if op == "pow" else a.a
            family.case(op, [a, b], oracle("f32", function(a.a, b.a)))


def compare(family):
    for op, function in COMPARE.items():
        for dtype in D if op == "eq" else N + B:
            a, b = pairs(dtype)
            family.case(op, [a, b], tensor("bool", function(a.a, b.a)))
        a, b = numbers("i32", (2, 1, 3), 4), numbers("i32", (4, 1), 5)
        family.case(op, [a, b], tensor("bool", function(a.a, b.a)))
        family.case(op, [numbers("f32", (0, 2)), numbers("f32", (2,))], tensor("bool", np.zeros((0, 2))))


def where(family):
    for dtype in D + E8:
        x = specials(dtype)
        n = x.a.size
        c, y = tensor("bool", np.arange(n) % 2), tensor(dtype, x.a[::-1].copy())
        family.case("where", [c, x, y], tensor(dtype, np.where(c.a, x.a, y.a)))
    for shapes in (((2, 1), (3,), (2, 3)), ((), (2, 2), ()), ((0,), (1,), ()), ((3, 1, 1), (1, 2, 1), (1, 1, 2))):
        c, a, b = (numbers(d, s, 6) for d, s in zip(("bool", "f32", "f32"), shapes, strict=True))
        family.case("where", [c, a, b], tensor("f32", np.where(c.a, a.a, b.a)))


def add(family):
    unary(family)
    binary(family)
    compare(family)
    where(family)
