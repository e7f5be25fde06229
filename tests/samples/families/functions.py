# SPDX-License-Identifier: Apache-2.0
"""Composites of one value at each position: mathematics, activations, and the parts of complex numbers."""

import numpy as np
from scipy import special

from golden import PART, WIDE, F, I, Tensor, Z, complex_of, numbers, oracle, round_float, specials, tensor, wrap

# Besides the special values: ties and edges of domains, and magnitudes where the obvious formula cancels or overflows.
UNIT = [0.25, -0.75, 0.999, -0.999, 1.25, -2]
LARGE = [6, -9, 20, -20, 1e4, -1e4]
FUNCTIONS = {
    "ceil": (np.ceil, [-0.1, 7.0001]),
    "trunc": (np.trunc, [-0.1, 7.9999]),
    "exp2": (np.exp2, [10, -20.5, 127.5, 129, -140]),
    "log2": (np.log2, [8, 0.999, 1e-30, 1e30]),
    "log10": (np.log10, [1000, 0.999, 1e-30, 1e30]),
    "tan": (np.tan, [1.5707964, 3.1415927, 1e4]),
    "asin": (np.arcsin, UNIT),
    "acos": (np.arccos, UNIT),
    "atan": (np.arctan, LARGE),
    "sinh": (np.sinh, [1e-5, 0.999, 20, -20, 88]),
    "cosh": (np.cosh, [1e-5, 0.999, 20, -20, 88]),
    "asinh": (np.arcsinh, [*LARGE, 1e-5, 1e6, 1e9, 1e30]),
    "acosh": (np.arccosh, [1.001, 20, 1e4, 1e6, 1e9, 1e30, -1e4, -1e9, -1e30]),
    "atanh": (np.arctanh, [*UNIT, 1e-5, 1e4, -1e4]),
    "softsign": (lambda x: x / (1 + np.abs(x)), LARGE),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), LARGE),
    "log_sigmoid": (lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))), LARGE),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)), LARGE),
    "hard_swish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), LARGE),
}
SHAPES = ((), (0, 2), (3, 1, 5))


def functions(family):
    for op, (function, more) in FUNCTIONS.items():
        for dtype in F:
            x = tensor(dtype, [*specials(dtype).a, *more])
            family.case(op, [x], oracle(dtype, function(x.a)))
        for shape in SHAPES:
            x = tensor("f32", np.abs(numbers("f32", shape, 1).a) % 1 + (op == "acosh"))
            family.case(op, [x], oracle("f32", function(x.a)))
    assert np.allclose(FUNCTIONS["softplus"][0](np.array([0.0])), np.log(2))


# Those with parameters, which are literals of the dtype that the op computes in.


def elu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


PARAMETRIC = {
    "leaky_relu": (lambda x, alpha: np.where(x < 0, alpha * x, x), [{"alpha": 0.01}, {"alpha": -2.0}]),
    "thresholded_relu": (lambda x, alpha: np.where(x > alpha, x, 0), [{"alpha": 1.0}, {"alpha": -0.5}]),
    "elu": (elu, [{"alpha": 1.0}, {"alpha": 2.5}]),
    "celu": (
        lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)),
        [{"alpha": 1.0}, {"alpha": 0.5}, {"alpha": -0.5}],
    ),
    "selu": (
        lambda x, alpha, gamma: gamma * elu(x, alpha),
        [{"alpha": 1.6732631921768188, "gamma": 1.0507010221481323}, {"alpha": 2.0, "gamma": 0.5}],
    ),
    "hard_sigmoid": (
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        [{"alpha": 0.2, "beta": 0.5}, {"alpha": 0.5, "beta": 0.25}],
    ),
    "shrink": (
        lambda x, lambd, bias: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)),
        [{"lambd": 0.5, "bias": 0.0}, {"lambd": 1.5, "bias": 0.25}],
    ),
}


def parametric(family):
    for op, (function, variants) in PARAMETRIC.items():
        for dtype in F:
            x = tensor(dtype, [*specials(dtype).a, 6, -3, 1e-5, -20])
            for i, parameters in enumerate(variants):
                literals = {key: round_float(value, WIDE[dtype]) for key, value in parameters.items()}
                given = parameters if i > 0 else {}  # the first are the defaults
                family.case(op, [x], oracle(dtype, function(x.a, **literals)), **given)
        for shape in SHAPES:
            x = numbers("f32", shape, 2)
            family.case(op, [x], oracle("f32", function(x.a, **{k: np.float32(v) for k, v in variants[0].items()})))
    for dtype in I:
        x = specials(dtype)
        for lambd, bias in ((0.5, 0), (2, 1), (1.5, 3)):
            y = [v + bias if v < -lambd else v - bias if v > lambd else 0 for v in map(int, x.a)]
            family.case("shrink", [x], tensor(dtype, [wrap(v, dtype) for v in y]), lambd=lambd, bias=bias)
    family.case("celu", [numbers("f32", (2,))], "RLX_E_OPTION", alpha=0.0)


def prelu(family):
    for dtype in F:
        x = specials(dtype)
        for values in (0.25, -2, np.resize([0, 0.5, -0.0, np.nan], x.shape)):
            slope = tensor(dtype, values)
            family.case("prelu", [x, slope], oracle(dtype, np.where(x.a < 0, slope.a * x.a, x.a)))
    for x_shape, slope_shape in (((2, 3, 5), (3, 1)), ((0, 3), (3,)), ((1, 1), (1,)), ((3, 1), (1, 5))):
        x, slope = numbers("f32", x_shape, 3), numbers("f32", slope_shape, 4)
        family.case("prelu", [x, slope], oracle("f32", np.where(x.a < 0, slope.a * x.a, x.a)))


# ---- complex numbers ----

PARTS = [0.0, -0.0, 1, -1.5, 3, -4, np.inf, -np.inf, np.nan]


def complex_numbers(family):
    re, im = (a.ravel() for a in np.meshgrid(PARTS, PARTS))
    for dtype, part in PART.items():
        x = Tensor(dtype, complex_of(re, im))
        family.case("complex", [tensor(part, re), tensor(part, im)], x)
        family.case("real", [x], tensor(part, re))
        family.case("imag", [x], tensor(part, im))
        family.case("conj", [x], Tensor(dtype, complex_of(re, -im)))
        family.case("angle", [x], oracle(part, np.arctan2(im, re)))
        family.case("abs_squared", [x], oracle(part, re * re + im * im))
        for a_shape, b_shape in (((), ()), ((0, 3), (1,)), ((3, 1), (5,))):
            a, b = numbers(part, a_shape, 5), numbers(part, b_shape, 6)
            shape = np.broadcast_shapes(a_shape, b_shape)
            y = Tensor(dtype, complex_of(np.broadcast_to(a.a, shape), np.broadcast_to(b.a, shape)))
            family.case("complex", [a, b], y)
        for shape in SHAPES:
            x = numbers(dtype, shape, 7)
            for op, function in (("real", np.real), ("imag", np.imag)):
                family.case(op, [x], tensor(part, function(x.a)))
            family.case("conj", [x], tensor(dtype, np.conj(x.a)))
            family.case("angle", [x], oracle(part, np.angle(x.a)))
            family.case("abs_squared", [x], oracle(part, np.abs(x.a) ** 2))
    for dtype in ("f16", "bf16"):
        family.case("complex", [tensor(dtype, [1]), tensor(dtype, [2])], "RLX_E_DTYPE")
    for dtype in Z:  # of the elementwise composites, those that take complex numbers too
        x = specials(dtype)
        family.case("square", [x], oracle(dtype, x.a * x.a))
        family.case("recip", [tensor(dtype, x.a[1:])], oracle(dtype, 1 / x.a[1:]))
        odd = Tensor(dtype, complex_of(re, im))
        family.case("is_nan", [odd], tensor("bool", np.isnan(re) | np.isnan(im)))
        family.case("is_finite", [odd], tensor("bool", np.isfinite(re) & np.isfinite(im)))


def add(family):
    functions(family)
    parametric(family)
    prelu(family)
    complex_numbers(family)
