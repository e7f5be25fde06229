# SPDX-License-Identifier: Apache-2.0
"""Gradients of softmax and the norms: the Jacobian by complex steps, times the cotangent."""

import numpy as np

from golden import F, WIDE, numbers, oracle, tensor


def pulled_back(function, x, dy):
    """The sum over outputs of dy times their derivative by each element of x."""
    dx = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        moved = x.astype(np.complex128)
        moved[at] += 1e-20j
        dx[at] = (function(moved).imag / 1e-20 * dy).sum()
    return dx


def softmax(x, axis):
    e = np.exp(x - x.real.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def layer_norm(x, axes, eps):
    c = x - x.mean(axes, keepdims=True)
    return c / np.sqrt((c * c).mean(axes, keepdims=True) + eps)


def softmaxes(family):
    for dtype in F:
        for axis in (-1, 0):
            x, dy = numbers(dtype, (3, 4), 1), numbers(dtype, (3, 4), 2)
            y = tensor(dtype, softmax(x.a, axis))
            exact = y.a * (dy.a - (y.a * dy.a).sum(axis, keepdims=True))
            if dtype == "f64":
                assert np.allclose(exact, pulled_back(lambda v, a=axis: softmax(v, a), x.a, dy.a))
            family.case("softmax_grad", [y, dy], oracle(dtype, exact), axis=axis)
            y = tensor(dtype, np.log(softmax(x.a, axis)))
            exact = dy.a - np.exp(y.a) * dy.a.sum(axis, keepdims=True)
            if dtype == "f64":
                assert np.allclose(exact, pulled_back(lambda v, a=axis: np.log(softmax(v, a)), x.a, dy.a))
            family.case("log_softmax_grad", [y, dy], oracle(dtype, exact), axis=axis)


def norm_case(family, dtype, shape, axis, has_gamma):
    x, dy = numbers(dtype, shape, 3), numbers(dtype, shape, 4)
    gamma = numbers(dtype if shape[0] == 3 else WIDE[dtype], shape[axis:], 5) if has_gamma else None
    factor = gamma.a if has_gamma else 1.0
    axes, lead = tuple(range(len(shape)))[axis:], tuple(range(len(shape)))[:axis]
    mean = x.a.mean(axes, keepdims=True)
    wide = WIDE[dtype] if shape[0] == 3 else dtype
    mean = tensor(wide, mean).a
    inv_std = tensor(wide, 1 / np.sqrt(((x.a - mean) ** 2).mean(axes, keepdims=True) + 1e-5))
    h, g = (x.a - mean) * inv_std.a, dy.a * factor
    dx = inv_std.a * (g - g.mean(axes, keepdims=True) - h * (g * h).mean(axes, keepdims=True))
    if dtype == "f64":
        assert np.allclose(dx, pulled_back(lambda v: layer_norm(v, axes, 1e-5) * factor, x.a, dy.a))
    outputs = [oracle(dtype, v) for v in (dx, (dy.a * h).sum(lead), dy.a.sum(lead))]
    family.case("layer_norm_grad", [x, gamma, tensor(wide, mean), inv_std, dy], outputs, axis=axis)
    inv_rms = tensor(wide, 1 / np.sqrt((x.a**2).mean(axes, keepdims=True) + 1e-6))
    dx = inv_rms.a * g - x.a * inv_rms.a**3 * (g * x.a).mean(axes, keepdims=True)
    if dtype == "f64":

        def rms_norm(v):
            return v / np.sqrt((v * v).mean(axes, keepdims=True) + 1e-6) * factor

        assert np.allclose(dx, pulled_back(rms_norm, x.a, dy.a))
    outputs = [oracle(dtype, v) for v in (dx, (dy.a * x.a * inv_rms.a).sum(lead), dy.a.sum(lead))]
    family.case("rms_norm_grad", [x, gamma, inv_rms, dy], outputs, axis=axis)


def groups_case(family, dtype, has_gamma):
    x, dy = numbers(dtype, (2, 4, 3), 6), numbers(dtype, (2, 4, 3), 7)
    gamma = numbers(dtype, (4,), 8) if has_gamma else None
    factor = gamma.a[:, None] if has_gamma else 1.0
    split = x.a.reshape(2, 2, 6)
    wide = dtype if has_gamma else WIDE[dtype]
    mean = tensor(wide, split.mean(2))
    inv_std = tensor(wide, 1 / np.sqrt(split.var(2) + 1e-5))
    h = (split - mean.a[..., None]) * inv_std.a[..., None]
    g = (dy.a * factor).reshape(split.shape)
    dx = inv_std.a[..., None] * (g - g.mean(2, keepdims=True) - h * (g * h).mean(2, keepdims=True))
    h, dx = h.reshape(x.shape), dx.reshape(x.shape)

    def norm(v):
        return layer_norm(v.reshape(2, 2, 6), (2,), 1e-5).reshape(2, 4, 3) * factor

    if dtype == "f64":
        assert np.allclose(dx, pulled_back(norm, x.a, dy.a))
    grads = dx, (dy.a * h).sum((0, 2)), dy.a.sum((0, 2))
    family.case("group_norm_grad", [x, gamma, mean, inv_std, dy], [oracle(dtype, g) for g in grads], groups=2)


def add(family):
    softmaxes(family)
    for dtype in F:
        norm_case(family, dtype, (3, 4), 1, True)
        norm_case(family, dtype, (2, 2, 3), 1, True)
        groups_case(family, dtype, True)
    norm_case(family, "f32", (3, 4), 1, False)
    groups_case(family, "f16", False)
