# SPDX-License-Identifier: Apache-2.0
"""Primitives 57 and 58 (matmul, conv), and linear."""

import numpy as np
from scipy import special

from golden import E8, F, I, N, Z, numbers, oracle, tensor

EIGHT = ["i8", "u8"]
NO_CONV = [dtype for dtype in I if dtype not in [*EIGHT, "i32"]]


def wide(x):
    return x.a.astype(object) if x.dtype in I else x.a


def result(dtype, a):
    return oracle(dtype, a) if dtype in F + Z else tensor(dtype, a)


def product(a, b):
    """[..., M, K] by [..., K, N] as a sum over k of outer products: exact for integers, zeros for K = 0."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    y = np.zeros((*batch, a.shape[-2], b.shape[-1]), np.result_type(a, b))
    for k in range(a.shape[-1]):
        y = y + a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return y


def matmul_case(family, a, b, to, **attributes):
    x = np.swapaxes(wide(a), -1, -2) if attributes.get("transpose_a") else wide(a)
    y = np.swapaxes(wide(b), -1, -2) if attributes.get("transpose_b") else wide(b)
    family.case("matmul", [a, b], result(to, product(x, y)), **attributes)


def matmuls(family):
    def two(left, right, a_shape, b_shape):
        scale = 0.5 if left in E8 else 1.0
        return numbers(left, a_shape, 1, scale), numbers(right, b_shape, 2, scale)

    for dtype in N + Z:
        if dtype in EIGHT:
            continue
        matmul_case(family, *two(dtype, dtype, (3, 5), (5, 2)), dtype)
    for left in EIGHT:
        for right in EIGHT:
            matmul_case(family, *two(left, right, (2, 7), (7, 3)), "i32")
    for left in E8:
        for right in E8:
            for to in ("f32", "f16", "bf16"):
                matmul_case(family, *two(left, right, (2, 3), (3, 2)), to, out_dtype=None if to == "f32" else to)
    for half in ("f16", "bf16"):
        matmul_case(family, *two(half, half, (2, 9), (9, 2)), "f32", out_dtype="f32")
    big = tensor("i32", [[2**31 - 1, 2**30]])
    matmul_case(family, big, tensor("i32", [[3], [5]]), "i32")
    matmul_case(family, tensor("u8", np.full((1, 3), 255)), tensor("i8", np.full((3, 1), -128)), "i32")
    shapes = [
        ((1, 1), (1, 1)),
        ((1, 7), (7, 1)),
        ((2, 0), (0, 3)),
        ((0, 4), (4, 2)),
        ((4, 2), (2, 0)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((2, 3), (4, 3, 2)),
        ((3, 2, 5), (1, 5, 3)),
        ((0, 2, 3), (3, 2)),
        ((17, 33), (33, 19)),
    ]
    for a_shape, b_shape in shapes:
        matmul_case(family, *two("f32", "f32", a_shape, b_shape), "f32")
    for dtype in ("f32", "i16", "c64", "bf16"):
        for flip_a, flip_b in ((True, False), (False, True), (True, True)):
            a_shape, b_shape = ((2, 5, 3) if flip_a else (2, 3, 5)), ((4, 5) if flip_b else (5, 4))
            matmul_case(family, *two(dtype, dtype, a_shape, b_shape), dtype, transpose_a=flip_a, transpose_b=flip_b)
    bad = tensor("f32", [[1, np.nan, 2], [np.inf, 1, 1], [np.inf, 0, 1]])
    matmul_case(family, bad, tensor("f32", [[0, 1], [1, 1], [0, -1]]), "f32")
    matmul_case(family, *two("f32", "f32", (1, 1100), (1100, 2)), "f32")  # over 512 terms


def convolved(x, w, strides, lo, hi, spread, dilation, groups):
    """Direct sums, position by position, on an input that is spread and padded first."""
    n = x.ndim - 2
    spatial = x.shape[2:]
    wide_dims = tuple((s - 1) * l + 1 if s > 0 else 0 for s, l in zip(spatial, spread, strict=True))
    apart = np.zeros((*x.shape[:2], *wide_dims), x.dtype)
    apart[(..., *(slice(None, None, l) for l in spread))] = x
    out = tuple(
        max(0, (d + a + b - r * (k - 1) - 1) // s + 1)
        for d, a, b, r, k, s in zip(wide_dims, lo, hi, dilation, w.shape[2:], strides, strict=True)
    )
    channels, per_group = w.shape[1], w.shape[0] // groups
    y = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    for at in np.ndindex(*out):
        for step in np.ndindex(*w.shape[2:]):
            place = tuple(p * s + k * r - a for p, s, k, r, a in zip(at, strides, step, dilation, lo, strict=True))
            if not all(0 <= p < d for p, d in zip(place, wide_dims, strict=True)):
                continue
            for o in range(w.shape[0]):
                g = o // per_group
                terms = (
                    apart[(slice(None), slice(g * channels, (g + 1) * channels), *place)] * w[(o, slice(None), *step)]
                )
                y[(slice(None), o, *at)] += terms.sum(1) if channels else 0
    assert len(out) == n
    return y


CONV_DEFAULTS = {"strides": 1, "pad_lo": 0, "pad_hi": 0, "lhs_dilation": 1, "rhs_dilation": 1}


def conv_case(family, x, w, to, **attributes):
    n = x.a.ndim - 2
    lists = [attributes.get(name, [value] * n) for name, value in CONV_DEFAULTS.items()]
    y = convolved(wide(x), wide(w), *lists, attributes.get("groups", 1))
    family.case("conv", [x, w], result(to, y), **attributes)
    return y


def convs(family):
    for dtype in F + ["i32"]:
        conv_case(family, numbers(dtype, (1, 2, 5), 3), numbers(dtype, (3, 2, 2), 4), dtype)
    for left in EIGHT:
        for right in EIGHT:
            conv_case(family, numbers(left, (1, 2, 4), 3), numbers(right, (2, 2, 3), 4), "i32", pad_lo=[1], pad_hi=[1])
    for dtype in NO_CONV:
        family.case("conv", [numbers(dtype, (1, 1, 2)), numbers(dtype, (1, 1, 1))], "RLX_E_DTYPE")
    y = conv_case(
        family,
        tensor("f32", [[[1, 2, 3, 4]]]),
        tensor("f32", [[[1, 2, 3]]]),
        "f32",
        lhs_dilation=[2],
        pad_lo=[1],
        pad_hi=[2],
    )
    assert y.ravel().tolist() == [2, 7, 4, 11, 6, 15, 8, 4]
    y = conv_case(
        family,
        tensor("f32", np.arange(16), (1, 1, 4, 4)),
        tensor("f32", [[[[1, 0], [0, -1]]]]),
        "f32",
        strides=[2, 1],
        pad_lo=[1, 0],
        pad_hi=[0, 1],
        rhs_dilation=[1, 2],
    )
    assert y.ravel().tolist() == [-2, -3, 0, -6, -6, 6]
    y = conv_case(
        family, tensor("f32", np.arange(8), (1, 4, 2)), tensor("f32", np.arange(8), (4, 2, 1)), "f32", groups=2
    )
    assert y.ravel().tolist() == [2, 3, 6, 11, 46, 55, 66, 79]
    for x_shape, w_shape, attributes in (
        ((2, 3, 6, 5), (4, 3, 3, 3), dict(pad_lo=[1, 1], pad_hi=[1, 1])),
        ((1, 4, 7, 7), (4, 1, 3, 3), dict(groups=4, strides=[2, 2], pad_lo=[0, 1], pad_hi=[2, 1])),
        ((1, 2, 6), (2, 2, 3), dict(pad_lo=[-1], pad_hi=[-2])),
        ((1, 1, 3, 4, 3), (2, 1, 2, 2, 2), dict(strides=[1, 2, 1], rhs_dilation=[1, 1, 2])),
        ((1, 1, 2), (1, 1, 5), {}),
        ((0, 2, 4), (3, 2, 2), {}),
        ((2, 0, 4), (3, 0, 2), {}),
        ((1, 2, 0), (1, 2, 2), dict(pad_lo=[2], pad_hi=[1])),
        ((1, 2, 4), (0, 2, 2), {}),
    ):
        conv_case(family, numbers("f32", x_shape, 5, 1.0), numbers("f32", w_shape, 6, 1.0), "f32", **attributes)


SQRT2 = np.sqrt(2.0)
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + special.erf(x / SQRT2)) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "softplus": lambda x: np.logaddexp(0, x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
}


def linears(family):
    for dtype in F:
        x, w, b = numbers(dtype, (2, 5), 1, 1.0), numbers(dtype, (5, 3), 2, 1.0), numbers(dtype, (3,), 3, 1.0)
        family.case("linear", [x, w, b], oracle(dtype, product(x.a, w.a) + b.a))
    for act, function in ACTIVATIONS.items():
        x, w, b = numbers("f32", (3, 4), 4, 1.0), numbers("f32", (4, 2), 5, 1.0), numbers("f32", (2,), 6, 1.0)
        family.case("linear", [x, w, b], oracle("f32", function(product(x.a, w.a) + b.a)), act=act)
    for x_shape in ((5,), (1, 5), (2, 3, 5), (0, 5), (2, 1, 2, 5)):
        x, w = numbers("f32", x_shape, 7), numbers("f32", (4, 5), 8)
        y = product(x.a.reshape(-1, 5), w.a.T).reshape(*x_shape[:-1], 4)
        family.case("linear", [x, w], oracle("f32", y), transpose_w=True)
    x, w = numbers("f32", (3, 4), 10, 1.0), numbers("f32", (4, 2), 11, 1.0)
    y = product(x.a, w.a)
    family.case("linear", [x, w], oracle("f32", np.clip(y, -0.5, 0.25)), lo=-0.5, hi=0.25)
    sloped = np.maximum(np.where(y < 0, 0.125 * y, y), -0.0625)
    family.case("linear", [x, w], oracle("f32", sloped), act="leaky_relu", slope=0.125, lo=-0.0625)
    x, w, b = numbers("f32", (2, 0)), numbers("f32", (0, 3)), numbers("f32", (3,), 9)
    family.case("linear", [x, w, b], oracle("f32", np.tile(b.a, (2, 1))))


def add(family):
    matmuls(family)
    convs(family)
    linears(family)
