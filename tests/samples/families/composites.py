# SPDX-License-Identifier: Apache-2.0
"""Composites of the elementwise, norm and fused families, by their formulas in float64."""

import numpy as np
from scipy import special

from families.contractions import ACTIVATIONS
from families.elementwise import int_div, int_rem
from families.movement import like
from golden import WIDE, D, F, I, N, Tensor, Z, numbers, numpy_int, oracle, pairs, specials, tensor, wrap


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


# As the decompositions: x * sigmoid(x) is NaN at -inf.
SMOOTH = {
    "sigmoid": lambda x: np.where(np.isnan(x), np.nan, sigmoid(x)),
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x * special.ndtr(x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x,
    "square": lambda x: x * x,
}
ACT_POINTS = [-3, -0.5, 0.25, 1.5, 6, -6, 20, -20]


def unary(family):
    for op, function in SMOOTH.items():
        for dtype in F:
            x = tensor(dtype, [*specials(dtype).a, *ACT_POINTS])
            family.case(op, [x], oracle(dtype, function(x.a)))
        for shape in ((), (0, 2), (3, 1, 5)):
            x = tensor("f32", np.abs(numbers("f32", shape, 1).a) + 0.25)
            family.case(op, [x], oracle("f32", function(x.a)))
    for dtype in F:
        x = tensor(dtype, ACT_POINTS + [np.nan, np.inf, 0.0, -0.0])
        inner = np.sqrt(2 / np.pi) * (x.a + 0.044715 * x.a**3)
        family.case("gelu", [x], oracle(dtype, x.a * (1 + np.tanh(inner)) / 2), approx="tanh")
        family.case("silu", [x], oracle(dtype, x.a * sigmoid(1.702 * x.a)), beta=1.702)
    check = SMOOTH["gelu"](np.array([-3, -0.5, 0.5, 1.5]))
    assert np.allclose(check, [-0.00404969409, -0.154268769, 0.345731231, 1.3997892], rtol=1e-8)
    for dtype in N:
        x = specials(dtype)
        family.case(
            "relu", [x], like(x, np.where(np.isnan(x.a), x.a, np.maximum(x.a, 0)) if dtype in F else np.maximum(x.a, 0))
        )
        signs = np.where(np.isnan(x.a), np.nan, np.sign(x.a)) if dtype in F else [int(v > 0) - int(v < 0) for v in x.a]
        family.case("sign", [x], tensor(dtype, signs))
    for dtype in I:
        x = specials(dtype)
        family.case("square", [x], tensor(dtype, [wrap(int(v) ** 2, dtype) for v in x.a]))
        family.case("bit_not", [x], like(x, ~x.a))
    family.case("bit_not", [tensor("bool", [0, 1])], tensor("bool", [1, 0]))
    for dtype in F:
        x = specials(dtype)
        for op, function in (("is_nan", np.isnan), ("is_inf", np.isinf), ("is_finite", np.isfinite)):
            family.case(op, [x], tensor("bool", function(x.a)))
        family.case("is_inf", [x], tensor("bool", np.isneginf(x.a)), pos=False)
        family.case("is_inf", [x], tensor("bool", np.isposinf(x.a)), neg=False)


def floor_pair(op, a, b, dtype):
    quotient, rest = int_div(a, b, dtype), int_rem(a, b, dtype)
    if b != 0 and rest != 0 and (rest < 0) != (b < 0):
        quotient, rest = quotient - 1, rest + b
    return wrap(quotient if op == "floor_div" else rest, dtype)


def float_floor_mod(a, b):
    rest = np.fmod(a, b)
    return np.where((b != 0) & (rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def binary(family):
    for op in ("floor_div", "floor_mod"):
        for dtype in I:
            a, b = pairs(dtype)
            values = [floor_pair(op, int(x), int(y), dtype) for x, y in zip(a.a, b.a, strict=True)]
            family.case(op, [a, b], Tensor(dtype, np.array(values, numpy_int(dtype))))
    for dtype in F:
        a = tensor(dtype, [7, -7, 7, -7, 1, -1, 0.5, np.nan, np.inf, 5, -0.0])
        b = tensor(dtype, [2, 2, -2, -2, 3, np.inf, 0.25, 1, 2, 0, 3])
        family.case("floor_div", [a, b], oracle(dtype, np.floor(a.a / b.a)))
        family.case("floor_mod", [a, b], oracle(dtype, float_floor_mod(a.a, b.a)))
    for op, function in (("ne", np.not_equal), ("gt", np.greater), ("ge", np.greater_equal)):
        for dtype in D if op == "ne" else [d for d in D if d not in Z]:
            a, b = pairs(dtype)
            family.case(op, [a, b], tensor("bool", function(a.a, b.a)))
    for dtype in N:
        x = specials(dtype)
        lo, hi = tensor(dtype, 1), tensor(dtype, 3)
        for low, high in ((lo, hi), (None, hi), (lo, None), (hi, lo)):
            y = x.a if low is None else np.maximum(x.a, low.a)
            inputs = [x, low] if high is None else [x, low, high]
            family.case("clamp", inputs, like(x, y if high is None else np.minimum(y, high.a)))


def softmaxes(family):
    def softmax(a, axis):
        e = np.exp(a - np.max(a, axis, keepdims=True))
        return e / np.sum(e, axis, keepdims=True)

    for dtype in F:
        x = numbers(dtype, (3, 5), 1)
        family.case("softmax", [x], oracle(dtype, softmax(x.a, -1)))
        inf = np.inf
        rows = tensor(
            dtype,
            [[1, 2, 3], [-inf, 0, -inf], [1000, 1000, -inf], [-inf] * 3, [inf, 0, 1], [np.nan, 1, 2], [-88, 88, 0]],
        )
        family.case("softmax", [rows], oracle(dtype, softmax(rows.a, -1)))
    for shape, axis in (((2, 3, 4), 1), ((2, 3, 4), 0), ((4,), 0), ((3, 1), -1), ((0, 3), 1), ((2, 130), -1)):
        x = numbers("f32", shape, 2)
        family.case("softmax", [x], oracle("f32", softmax(x.a, axis)), axis=axis)
    empty = numbers("f32", (3, 0))
    family.case("softmax", [empty], empty)


def layer_norm(x, gamma, beta, axes, eps):
    mean = x.mean(axes, keepdims=True)
    scale = 1 / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + eps)
    return (x - mean) * scale * gamma + beta, mean, scale


def rms_norm(x, gamma, beta, axes, eps):
    scale = 1 / np.sqrt(np.square(x).mean(axes, keepdims=True) + eps)
    return x * scale * gamma + beta, scale


def norm_inputs(dtype, shape, parts, seed, wide=False):
    x = numbers(dtype, shape, seed)
    like_x = WIDE[dtype] if wide else dtype
    return x, [numbers(like_x, shape[-1:], seed + i, 1.0) if present else None for i, present in enumerate(parts, 1)]


def applied(parts):
    return [default if p is None else p.a for p, default in zip(parts, (1.0, 0.0), strict=True)]


def given(*inputs):
    """Trailing inputs that are absent are left off."""
    inputs = list(inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    return inputs


def norms(family):
    for op, function, eps in (("layer_norm", layer_norm, 1e-5), ("rms_norm", rms_norm, 1e-6)):
        for dtype in F:
            for parts in ((True, True), (False, False), (True, False), (False, True)):
                x, affine = norm_inputs(dtype, (2, 6), parts, 1)
                y, *statistics = function(x.a, *applied(affine), -1, eps)
                outputs = [oracle(dtype, y), *(oracle(WIDE[dtype], s) for s in statistics)]
                family.case(op, given(x, *affine), outputs)
        for dtype in ("f16", "bf16"):
            x, affine = norm_inputs(dtype, (2, 6), (True, True), 2, wide=True)
            y, *statistics = function(x.a, *applied(affine), -1, eps)
            family.case(op, given(x, *affine), [oracle(dtype, y), *(oracle("f32", s) for s in statistics)])
        for shape in ((1, 1), (2, 3, 7), (0, 4), (33,)):
            x, affine = norm_inputs("f32", shape, (True, True), 3)
            family.case(
                op, given(x, *affine), [oracle("f32", a) for a in function(x.a, *applied(affine), -1, 0.5)], eps=0.5
            )
        x, gamma = numbers("f32", (2, 3, 4), 4), numbers("f32", (3, 4), 5)
        family.case(op, [x, gamma], [oracle("f32", a) for a in function(x.a, gamma.a, 0.0, (1, 2), eps)], axis=1)
        bad = tensor("f32", [[1, np.nan, 2], [np.inf, 1, 2], [3, 3, 3], [0, 0, 0]])
        family.case(op, [bad], [oracle("f32", a) for a in function(bad.a, 1.0, 0.0, -1, eps)])


def residual_norms(family):
    for op, function, eps in (("residual_layer_norm", layer_norm, 1e-5), ("residual_rms_norm", rms_norm, 1e-6)):
        for dtype in F:
            for parts in ((True, True), (True, False), (False, False)):
                for biased in (True, False):
                    x, affine = norm_inputs(dtype, (2, 1, 5), parts, 6)
                    rest, bias = numbers(dtype, (2, 1, 5), 7), numbers(dtype, (5,), 8) if biased else None
                    total = x.a + rest.a + (bias.a if biased else 0)
                    y = function(total, *applied(affine), -1, eps)[0]
                    family.case(op, given(x, rest, bias, *affine), [oracle(dtype, y), oracle(dtype, total)])
        x, rest = numbers("f32", (0, 3)), numbers("f32", (0, 3))
        family.case(op, [x, rest], [x, x], eps=0.01)


def gates(family):
    for dtype in F:
        gate, up = numbers(dtype, (2, 4), 1), numbers(dtype, (2, 4), 2)
        family.case("gated_act", [gate, up], oracle(dtype, up.a * ACTIVATIONS["silu"](gate.a)))
        both = tensor(dtype, np.concatenate([gate.a, up.a], -1))
        family.case("glu", [both], oracle(dtype, gate.a * ACTIVATIONS["silu"](up.a)))
    for act, function in ACTIVATIONS.items():
        gate, up = numbers("f32", (3, 5), 3), numbers("f32", (3, 5), 4)
        family.case("gated_act", [gate, up], oracle("f32", up.a * function(gate.a)), act=act)
        first = tensor("f32", np.concatenate([gate.a, up.a], 0))
        family.case("glu", [first], oracle("f32", up.a * function(gate.a)), axis=0, act=act, gate_first=True)
        family.case("glu", [first], oracle("f32", gate.a * function(up.a)), axis=-2, act=act)
    empty = numbers("f32", (0, 4))
    family.case("glu", [empty], numbers("f32", (0, 2)))


def add(family):
    unary(family)
    binary(family)
    softmaxes(family)
    norms(family)
    residual_norms(family)
    gates(family)
