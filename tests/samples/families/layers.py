# SPDX-License-Identifier: Apache-2.0
"""Composites of vision and quantised models, by their formulas in float64: norms per channel, pools, fused convolution,
affine quantisation, products by an equation, rotary tables.
"""

import itertools

import numpy as np

from families.composites import given
from families.contractions import ACTIVATIONS, EIGHT, NO_CONV, convolved, product, result, wide
from golden import E8, FLOATS, WIDE, F, I, N, Z, int_range, numbers, oracle, tensor

# ---- norms ----


def channels(a, rank):
    return a.reshape(-1, *[1] * (rank - 2))


def normalised(x, axes, eps):
    mean = x.mean(axes, keepdims=True)
    inv_std = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)
    return (x - mean) * inv_std, mean, inv_std


def group_norm(x, gamma, beta, groups, eps):
    split = x.reshape(x.shape[0], groups, int(np.prod(x.shape[1:])) // groups)
    y, mean, inv_std = normalised(split, (2,), eps)
    y = y.reshape(x.shape) * channels(gamma, x.ndim) + channels(beta, x.ndim)
    return y, mean[..., 0], inv_std[..., 0]


def norms(family):
    for dtype, shape, groups in [(d, (2, 4, 3), 2) for d in F] + [("f32", s, g) for s, g in SHAPES]:
        x, gamma, beta = numbers(dtype, shape, 1), numbers(dtype, shape[1:2], 2), numbers(dtype, shape[1:2], 3)
        y, mean, inv_std = group_norm(x.a, gamma.a, beta.a, groups, 1e-5)
        outputs = [oracle(dtype, y), oracle(WIDE[dtype], mean), oracle(WIDE[dtype], inv_std)]
        family.case("group_norm", [x, gamma, beta], outputs, groups=groups)
        outputs = [oracle("f32", a) for a in group_norm(x.a, gamma.a, beta.a, groups, 0.5)]
        if dtype == "f32":
            family.case("group_norm", [x, gamma, beta], outputs, groups=groups, eps=0.5)
        y = group_norm(x.a, gamma.a, beta.a, shape[1], 0.25)[0]
        family.case("instance_norm", [x, gamma, beta], oracle(dtype, y), eps=0.25)
        mean, var = numbers(dtype, shape[1:2], 4), tensor(dtype, np.abs(numbers(dtype, shape[1:2], 5).a))
        of = [channels(p.a, x.a.ndim) for p in (gamma, beta, mean, var)]
        for eps in (1e-5, 0.25):
            y = (x.a - of[2]) / np.sqrt(of[3] + eps) * of[0] + of[1]
            family.case("batch_norm", [x, gamma, beta, mean, var], oracle(dtype, y), eps=eps)
    x = tensor("f32", np.arange(1, 9), (1, 4, 2))
    gamma, beta = tensor("f32", [1, 0.5, 2, 1]), tensor("f32", [0, 1, 0, -1])
    y = group_norm(x.a, gamma.a, beta.a, 2, 1e-5)[0]
    assert np.allclose(y.ravel()[:4], [-1.34163542, -0.447211807, 1.2236059, 1.67081771])
    for dtype in F:
        x, gamma, beta = numbers(dtype, (2, 3, 2, 2), 6), numbers(dtype, (3,), 7), numbers(dtype, (3,), 8)
        y = normalised(x.a, (1,), 1e-6)[0] * channels(gamma.a, 4)
        family.case("layer_norm_2d", [x, gamma], oracle(dtype, y))
        family.case("layer_norm_2d", [x, gamma, beta], oracle(dtype, y + channels(beta.a, 4)))
        family.case("layer_norm_2d", [x], oracle(dtype, normalised(x.a, (1,), 0.5)[0]), eps=0.5)
    cases = [("f32", s, axis) for s, axis in (((2, 5), -1), ((3, 4), 0), ((1, 1), 1), ((0, 3), 1))]
    for dtype, shape, axis in cases + [(dtype, (2, 3), 1) for dtype in F]:
        x = numbers(dtype, shape, 8)
        z = x.a - x.a.max(axis, keepdims=True) if x.a.size else x.a
        y = z - np.log(np.exp(z).sum(axis, keepdims=True))
        family.case("log_softmax", [x], oracle(dtype, y), axis=axis)


SHAPES = [((1, 6, 2, 2), 3), ((2, 2), 1), ((1, 1, 1), 1), ((0, 4, 3), 2)]


# ---- pools and convolution ----


def pooled(x, kernel, fold, strides=None, pad_lo=None, pad_hi=None, dilation=None, ceil_mode=False, pads_count=False):
    """fold(the elements of a window, how many places of it count)."""
    n = len(kernel)
    s, lo, hi, d = strides or [1] * n, pad_lo or [0] * n, pad_hi or [0] * n, dilation or [1] * n
    out = []
    for size, k, step, a, b, r in zip(x.shape[2:], kernel, s, lo, hi, d, strict=True):
        room = size + a + b - (r * (k - 1) + 1)
        count = (-(-room // step) if ceil_mode else room // step) + 1
        out.append(count - (ceil_mode and (count - 1) * step >= size + a))
    y = np.zeros((*x.shape[:2], *out))
    for at in np.ndindex(*out):
        places = [[p * step + k * r - a for k in range(width)] for p, step, width, r, a in zip(at, s, kernel, d, lo)]
        inside = [[p for p in row if 0 <= p < size] for row, size in zip(places, x.shape[2:], strict=True)]
        padded = [[p for p in row if p < size + b] for row, size, b in zip(places, x.shape[2:], hi, strict=True)]
        window = x[np.ix_(range(x.shape[0]), range(x.shape[1]), *inside)].reshape(*x.shape[:2], -1)
        y[(..., *at)] = fold(window, np.prod([len(row) for row in (padded if pads_count else inside)]))
    return y


POOLS = [
    ((1, 2, 6), {"kernel": [3], "strides": [2], "pad_lo": [1], "pad_hi": [1]}),
    ((2, 1, 5, 4), {"kernel": [2, 3], "strides": [1, 2], "pad_lo": [0, 1], "pad_hi": [1, 1]}),
    ((1, 1, 7), {"kernel": [2], "dilation": [3]}),
    ((1, 1, 4, 4, 3), {"kernel": [2, 2, 2]}),
]


def pools(family):
    def mean(window, count):
        return window.sum(-1) / count

    def largest(window, count):
        return window.max(-1) if window.shape[-1] else -np.inf

    x = tensor("f32", [[[1, 3, 2, 5, 4, 6]]])
    y = pooled(x.a, [3], mean, [2], [1], [1], ceil_mode=True, pads_count=True)
    assert np.allclose(y, [[[4 / 3, 10 / 3, 5, 3]]])
    for (shape, attributes), ceil_mode in itertools.product(
        [*POOLS, ((1, 1, 5), EDGE), ((1, 1, 6), WIDER)], (False, True)
    ):
        x = numbers("f32", shape, 9)
        family.case(
            "max_pool",
            [x],
            oracle("f32", pooled(x.a, fold=largest, ceil_mode=ceil_mode, **attributes)),
            ceil_mode=ceil_mode,
            **attributes,
        )
        for pads_count in (False, True):
            y = pooled(x.a, fold=mean, ceil_mode=ceil_mode, pads_count=pads_count, **attributes)
            family.case(
                "avg_pool", [x], oracle("f32", y), ceil_mode=ceil_mode, count_include_pad=pads_count, **attributes
            )
    for dtype in ("f16", "bf16", "f64"):
        x = numbers(dtype, (1, 2, 4), 10)
        family.case("avg_pool", [x], oracle(dtype, pooled(x.a, [2], mean)), kernel=[2])
    for dtype in N:
        x = numbers(dtype, (1, 2, 4), 11)
        family.case("max_pool", [x], tensor(dtype, pooled(x.a, [3], largest)), kernel=[3])


EDGE = {"kernel": [2], "strides": [3], "pad_lo": [1], "pad_hi": [1]}
WIDER = {"kernel": [2], "strides": [2], "pad_lo": [0], "pad_hi": [2]}


def fused_convs(family):
    for dtype, act in [(d, "relu") for d in F] + [("f32", a) for a in ACTIVATIONS]:
        x, w = numbers(dtype, (2, 3, 4, 4), 12, 1.0), numbers(dtype, (2, 3, 2, 2), 13, 1.0)
        bias = numbers(dtype, (2,), 14, 1.0)
        y = convolved(x.a, w.a, [2, 1], [1, 0], [0, 0], [1, 1], [1, 1], 1) + channels(bias.a, 4)
        residual = numbers(dtype, y.shape, 15, 1.0)
        attributes = {"strides": [2, 1], "pad_lo": [1, 0], "act": act}
        family.case("conv_bias_act", [x, w, bias], oracle(dtype, ACTIVATIONS[act](y)), **attributes)
        y = oracle(dtype, ACTIVATIONS[act](y + residual.a))
        family.case("conv_bias_act", [x, w, bias, residual], y, **attributes)
    x, w = numbers("f32", (1, 4, 3, 3), 20, 1.0), numbers("f32", (2, 2, 2, 2), 21, 1.0)
    geometry = dict(strides=[1, 2], pad_lo=[1, 0], pad_hi=[0, 1], lhs_dilation=[2, 1], rhs_dilation=[1, 2], groups=2)
    y = convolved(x.a, w.a, *geometry.values())
    family.case("conv_bias_act", [x, w], oracle("f32", ACTIVATIONS["elu"](y)), act="elu", **geometry)
    for dtype, weights in (("u8", "i8"), ("i8", "u8"), ("i32", "i32")):
        x, w = numbers(dtype, (1, 2, 3), 16), numbers(weights, (2, 2, 2), 17)
        sums = convolved(x.a.astype(np.int64), w.a.astype(np.int64), [1], [0], [0], [1], [1], 1)
        for to in I:  # bias and residual have the dtype of the product, which is i32
            bias, residual = numbers(to, (2,), 18), numbers(to, sums.shape, 19)
            y = tensor("i32", sums + channels(bias.a.astype(np.int64), 3) + residual.a.astype(np.int64))
            family.case("conv_bias_act", [x, w, bias, residual], y if to == "i32" else "RLX_E_DTYPE")
    x, w = numbers("f32", (1, 2, 5), 22, 1.0), numbers("f32", (2, 2, 2), 23, 1.0)
    y = convolved(x.a, w.a, [1], [0], [0], [1], [1], 1)
    family.case("conv_bias_act", [x, w], oracle("f32", np.clip(y, -0.5, 0.25)), lo=-0.5, hi=0.25)
    y = oracle("f32", np.minimum(np.where(y < 0, 0.125 * y, y), 0.5))
    family.case("conv_bias_act", [x, w], y, act="leaky_relu", slope=0.125, hi=0.5)
    for dtype in NO_CONV:
        family.case("conv_bias_act", [numbers(dtype, (1, 1, 2)), numbers(dtype, (1, 1, 1))], "RLX_E_DTYPE")


# ---- quantisation ----


def spread(p, x, axis, block):
    if p.ndim == 0:
        return p
    if block:
        return np.repeat(p, block, axis).take(range(x.shape[axis]), axis)
    return p.reshape(-1, *[1] * (x.ndim - axis - 1))


def quantised(x, scale, zp, dtype):
    low, high = int_range(dtype)
    y = np.clip(np.rint(x / scale) + zp, low, high)
    return tensor(dtype, np.where(np.isnan(y), 0, y))


def quantisation(family):
    x = tensor("f32", [-3, -1.25, -0.26, 0, 0.25, 0.75, 1.25, 3, 200, np.nan, np.inf, -np.inf])
    half = tensor("f32", 0.5)
    assert quantised(x.a, 0.5, 128, "u8").a.tolist()[:9] == [122, 126, 127, 128, 128, 130, 130, 134, 255]
    for dtype in ("i8", "u8", "i16", "u16"):
        family.case("quantize_linear", [x, half], quantised(x.a, 0.5, 0, dtype), dtype=dtype)
        zp = tensor(dtype, 3)
        family.case("quantize_linear", [x, half, zp], quantised(x.a, 0.5, 3, dtype))
    for scale_shape, zp_dtype, attributes in (
        ((3,), "u8", {"axis": 1}),
        ((4,), "i8", {"axis": -1}),
        ((2, 3, 2), "i8", {"axis": 2, "block_size": 3}),
        ((2, 1, 4), "u8", {"axis": 1, "block_size": 4}),
    ):
        for wide in ("f32", "f16", "bf16"):
            x = numbers(wide, (2, 3, 4), 19, 8.0)
            scale = tensor(wide, 2.0 ** numbers("i8", scale_shape, 20).a.clip(-3, 3))
            zp, axis = numbers(zp_dtype, scale_shape, 21), attributes["axis"] % 3
            s, z = (
                spread(np.asarray(p.a, np.float64), x.a, axis, attributes.get("block_size", 0)) for p in (scale, zp)
            )
            q = quantised(x.a, s, z, zp_dtype)
            family.case("quantize_linear", [x, scale, zp], q, **attributes)
            y = (q.a.astype(np.float64) - z) * s
            family.case("dequantize_linear", [q, scale, zp], oracle(wide, y), **attributes)
            family.case("dequantize_linear", [q, scale, zp], oracle("f32", y), out_dtype="f32", **attributes)
    for dtype in I + E8:
        q, zp = numbers(dtype, (3,), 22), tensor(dtype, 3)
        wide = q.a.astype(np.float64)
        family.case("dequantize_linear", [q, half], oracle("f32", wide * 0.5))
        family.case("dequantize_linear", [q, half, zp], oracle("f32", (wide - 3) * 0.5))
        narrow = dtype in ("i8", "u8", "i16", "u16")
        y = quantised(x.a, 0.5, 3, dtype) if narrow else "RLX_E_DTYPE"
        if dtype in E8:  # what is no number or too large stays or saturates; the zero point has no part in it
            y, zp = tensor(dtype, np.clip(x.a / 0.5, -FLOATS[dtype][2], FLOATS[dtype][2])), tensor(dtype, 0)
        family.case("quantize_linear", [x, half, zp], y)
    # The difference is exact, whatever f32 holds of its operands.
    for dtype, base in (("i32", 2**24), ("u32", 2**32 - 8), ("i64", 2**62), ("u64", 2**63)):
        q, zp = tensor(dtype, [base + 1, base + 3]), tensor(dtype, base)
        family.case("dequantize_linear", [q, tensor("f32", 1), zp], tensor("f32", [1, 3]))
    ends = int_range("i32")
    for q, zp in ((ends[0], ends[1]), (ends[1], ends[0])):
        y = tensor("f32", np.float32(q - zp))
        family.case("dequantize_linear", [tensor("i32", q), tensor("f32", 1), tensor("i32", zp)], y)
    q = tensor("f8e4m3", [-448, 0.5, 2, np.nan])
    family.case("dequantize_linear", [q, half], oracle("f32", q.a * 0.5))
    double = tensor("f64", x.a), tensor("f64", 0.5)
    family.case("quantize_linear", [double[0], half], quantised(x.a, 0.5, 0, "i8"), dtype="i8")
    family.case("quantize_linear", [*double], "RLX_E_DTYPE", dtype="i8")
    family.case("dequantize_linear", [numbers("i8", (3,)), double[1]], "RLX_E_DTYPE")
    for dtype, outside in (("f8e4m3", np.nan), ("f8e5m2", np.inf)):
        y = tensor(dtype, [3.0, outside, outside, np.nan])
        x = tensor("f32", [1.5, 1e6, np.inf, np.nan])
        family.case("quantize_linear", [x, half], y, dtype=dtype, saturate=False)
    q = tensor("f8e4m3", [3.0, -0.25, 448.0])
    family.case("quantize_linear", [tensor("f32", [1.5, -0.125, 1000]), half], q, dtype="f8e4m3")
    for values in ([-1, 0, 0.25, 0.75, 2], [0, 0], [1, 2, 4], [-8, -3]):
        x = tensor("f32", values)
        hi, lo = max(0, x.a.max()), min(0, x.a.min())
        scale = np.float64((hi - lo) or 1) / 255
        zp = np.clip(np.rint(-lo / scale), 0, 255)
        y = quantised(x.a, scale, zp, "u8")
        family.case("dynamic_quantize_linear", [x], [y, oracle("f32", scale), tensor("u8", zp)])
    packed = tensor("u8", [[0xE4, 0x01], [0xFF, 0x80]])
    for bits in (1, 2, 4):
        flat = [int(b) >> shift & (2**bits - 1) for b in packed.a.ravel() for shift in range(0, 8, bits)]
        family.case("unpack_bits", [packed], tensor("u8", flat, (2, 16 // bits)), bits=bits)
        signed = [v - 2**bits if v >= 2 ** (bits - 1) else v for v in flat]
        family.case("unpack_bits", [packed], tensor("i8", signed, (2, 16 // bits)), bits=bits, signed=True)


# ---- products by an equation, and rotary tables ----

EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("bij,bjk", (2, 2, 3), (2, 3, 2)),
    ("...ij,jk->...ik", (2, 1, 3, 2), (2, 4)),
    ("...d,...d->...", (2, 3), (3,)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ijj->ji", (2, 3, 3)),
    ("ba", (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("ij,kj,l->ikl", (2, 3), (4, 3), (2,)),
    ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 2, 4)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("aij,ajk->ik", (2, 2, 3), (2, 3, 2)),
    ("ij,jk->k", (0, 3), (3, 2)),
    ("i,i->i", (3,), (1,)),
]


def equations(family):
    for equation, *shapes in EQUATIONS:
        operands = [numbers("f32", shape, 23 + i) for i, shape in enumerate(shapes)]
        y = np.einsum(equation, *(x.a for x in operands))
        family.case("einsum", operands, oracle("f32", y), equation=f'"{equation}"')
    for dtype in N + Z + E8:  # the dtypes are those of matmul
        to = "i32" if dtype in EIGHT else "f32" if dtype in E8 else dtype
        a, b = numbers(dtype, (2, 3), 24, 0.5), numbers(dtype, (3, 2), 25, 0.5)
        y = product(wide(a), wide(b))
        if dtype not in E8:
            family.case("einsum", [a, b], result(to, y), equation='"ij,jk->ik"')
        family.case("dot_general", [a, b], result(to, y), contract_a=[1], contract_b=[0])
    a, b = numbers("f32", (2, 3, 4, 5), 26), numbers("f32", (4, 6, 2, 3), 27)
    y = np.einsum("bcke,kfbc->bcef", a.a, b.a)
    attributes = {"batch_a": [0, 1], "batch_b": [2, -1], "contract_a": [2], "contract_b": [0]}
    family.case("dot_general", [a, b], oracle("f32", y), **attributes)
    y = np.einsum("abce,cfab->ef", a.a, numbers("f32", (4, 6, 2, 3), 27).a)
    family.case("dot_general", [a, b], oracle("f32", y), contract_a=[0, 1, 2], contract_b=[2, 3, 0])
    y = np.einsum("abce,kfgh->abcekfgh", a.a, b.a)
    assert y.ndim == 8
    small = numbers("f32", (2,), 28), numbers("f32", (3,), 29)
    family.case("dot_general", [*small], oracle("f32", np.outer(small[0].a, small[1].a)), contract_a=[], contract_b=[])


def rope_tables(family):
    for positions, factors, dim, attributes in (
        (tensor("i64", [3]), None, 6, {}),
        (tensor("i32", [[0, 1, 2], [1000, 31, 7]]), None, 8, {"scale": 0.25, "mscale": 1.5}),
        (tensor("i64", [5, 100000]), tensor("f32", [1, 2, 4]), 6, {"base": 500000.0}),
        (tensor("i64", 2), None, 2, {"dtype": "f64"}),
        (tensor("i64", [2, 9]), None, 4, {"dtype": "bf16"}),
        (tensor("i64", np.zeros(0)), None, 4, {}),
    ):
        frequency = attributes.get("base", 10000.0) ** (-2.0 * np.arange(dim // 2) / dim)
        angle = (
            attributes.get("scale", 1.0) * positions.a[..., None] * frequency / (1 if factors is None else factors.a)
        )
        parts = [attributes.get("mscale", 1.0) * function(angle) for function in (np.cos, np.sin)]
        dtype = attributes.get("dtype", "f32")
        family.case("rope_table", given(positions, factors), [oracle(dtype, p) for p in parts], dim=dim, **attributes)


def add(family):
    norms(family)
    pools(family)
    fused_convs(family)
    quantisation(family)
    equations(family)
    rope_tables(family)
