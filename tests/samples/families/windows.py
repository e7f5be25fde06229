# SPDX-License-Identifier: Apache-2.0
"""Convolutions that are others turned round, pools of other kinds, windows as columns, norms of neighbours."""

import itertools

import numpy as np

from families.contractions import EIGHT, NO_CONV, convolved, result, wide
from families.reductions import windows
from golden import A, F, I, N, WIDE, X, numbers, oracle, tensor

# ---- convolutions ----


def transposed(x, w, strides, lo, hi, dilation, more, groups):
    """Each element of x adds the kernel, times itself, to where it stands."""
    n = x.shape[2:]
    kernel = w.shape[2:]
    full = [(n[i] - 1) * strides[i] + dilation[i] * (kernel[i] - 1) + 1 + more[i] for i in range(len(n))]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *full), x.dtype)
    per_in, per_out = x.shape[1] // groups, w.shape[1]
    for at in np.ndindex(*n):
        for tap in np.ndindex(*kernel):
            place = tuple(a * s + t * d for a, s, t, d in zip(at, strides, tap, dilation, strict=True))
            for c, o in np.ndindex(x.shape[1], per_out):
                g = c // per_in
                y[(slice(None), g * per_out + o, *place)] += x[(slice(None), c, *at)] * w[(c, o, *tap)]
    cut = np.zeros((*y.shape[:2], *(f - a - b for f, a, b in zip(full, lo, hi, strict=True))), y.dtype)
    for at in np.ndindex(*cut.shape[2:]):
        place = tuple(p + a for p, a in zip(at, lo, strict=True))
        if all(0 <= p < f for p, f in zip(place, full, strict=True)):
            cut[(..., *at)] = y[(..., *place)]
    return cut


def transposed_convs(family):
    def case(x, w, to, bias=None, **given):
        n = x.a.ndim - 2
        defaults = {"strides": 1, "pad_lo": 0, "pad_hi": 0, "dilation": 1, "output_padding": 0}
        y = transposed(wide(x), wide(w), *(given.get(k, [v] * n) for k, v in defaults.items()), given.get("groups", 1))
        if bias is not None:
            y = y + wide(bias).reshape(-1, *[1] * n)
        family.case("conv_transpose", [x, w] if bias is None else [x, w, bias], result(to, y), **given)
        return y

    one = tensor("f32", [[[1, 2, 3, 4]]]), tensor("f32", [[[1, 2, 3]]])
    assert case(*one, "f32", strides=[2]).ravel().tolist() == [1, 2, 5, 4, 9, 6, 13, 8, 12]
    y = case(*one, "f32", strides=[2], pad_lo=[1], pad_hi=[1], output_padding=[1])
    assert y.ravel().tolist() == [2, 5, 4, 9, 6, 13, 8, 12]
    for dtype in F + ["i32"]:
        x, w = numbers(dtype, (2, 4, 3), 1), numbers(dtype, (4, 1, 2), 2)
        case(x, w, dtype, numbers(dtype, (2,), 3), groups=2, dilation=[2], pad_lo=[-1], pad_hi=[2])
    for left, right in itertools.product(EIGHT, EIGHT):
        case(numbers(left, (1, 2, 4), 4), numbers(right, (2, 2, 3), 5), "i32", numbers("i32", (2,), 6))
    for dtype in NO_CONV:
        family.case("conv_transpose", [numbers(dtype, (1, 1, 2)), numbers(dtype, (1, 1, 1))], "RLX_E_DTYPE")
    one = numbers("f32", (1, 1, 2)), numbers("f32", (1, 1, 1))
    for dtype in I:
        if dtype != "i32":
            family.case("conv_transpose", [*one, numbers(dtype, (1,))], "RLX_E_DTYPE")
    family.case("conv_transpose", [*one], "RLX_E_OPTION", output_padding=[1])
    x, w = numbers("f32", (1, 2, 3, 4), 7), numbers("f32", (2, 3, 2, 3), 8)
    case(x, w, "f32", strides=[2, 3], dilation=[1, 2], output_padding=[1, 0], pad_lo=[0, 1], pad_hi=[1, 0])
    case(numbers("f32", (1, 1, 2, 3, 2), 9), numbers("f32", (1, 2, 2, 2, 1), 10), "f32", strides=[2, 1, 2])
    case(numbers("f32", (0, 2, 3), 11), numbers("f32", (2, 1, 2), 12), "f32")


def gradients(family):
    """By what a change of one number changes: the sum over places where input, weight and result meet."""

    def meet(x_shape, w_shape, strides, lo, spread, dilation, groups, out):
        channels, per_group = w_shape[1], w_shape[0] // groups
        for item, o in np.ndindex(x_shape[0], w_shape[0]):
            for at in np.ndindex(*out):
                for c, *tap in np.ndindex(*w_shape[1:]):
                    place = [p * s + t * d - a for p, s, t, d, a in zip(at, strides, tap, dilation, lo, strict=True)]
                    if any(p < 0 or p % l or p // l >= n for p, l, n in zip(place, spread, x_shape[2:], strict=True)):
                        continue
                    source = (item, o // per_group * channels + c, *(p // l for p, l in zip(place, spread, strict=True)))
                    yield source, (o, c, *tap), (item, o, *at)

    def case(dtype, x_shape, w_shape, **given):
        n = len(x_shape) - 2
        names = {"strides": 1, "pad_lo": 0, "pad_hi": 0, "lhs_dilation": 1, "rhs_dilation": 1}
        strides, lo, hi, spread, dilation = (given.get(k, [v] * n) for k, v in names.items())
        groups = given.get("groups", 1)
        x, w = numbers(dtype, x_shape, 13), numbers(dtype, w_shape, 14)
        out = convolved(x.a, w.a, strides, lo, hi, spread, dilation, groups).shape[2:]
        dy = numbers(dtype, (x_shape[0], w_shape[0], *out), 15)
        dx, dw = np.zeros(x_shape), np.zeros(w_shape)
        for i, j, k in meet(x_shape, w_shape, strides, lo, spread, dilation, groups, out):
            dx[i] += dy.a[k] * w.a[j]
            dw[j] += dy.a[k] * x.a[i]
        family.case("conv_input_grad", [dy, w], oracle(dtype, dx), input_shape=list(x_shape[2:]), **given)
        family.case("conv_weight_grad", [x, dy], oracle(dtype, dw), kernel=list(w_shape[2:]), **given)

    for dtype in F:
        case(dtype, (2, 2, 5), (3, 2, 2))
    case("f32", (1, 4, 6), (2, 2, 3), strides=[2], pad_lo=[1], pad_hi=[2], groups=2)
    case("f32", (2, 2, 5, 4), (4, 1, 2, 3), strides=[2, 1], pad_lo=[1, 0], pad_hi=[0, 1], rhs_dilation=[1, 2], groups=2)
    case("f32", (1, 1, 4), (1, 1, 3), lhs_dilation=[2], pad_lo=[1], pad_hi=[2])
    # No place at all: the input's gradient is 0 in its own size.
    case("f32", (1, 1, 1), (1, 1, 3), strides=[3], pad_lo=[1])
    case("f32", (1, 1, 2, 4), (2, 1, 5, 2), strides=[4, 2], rhs_dilation=[2, 1])
    case("f32", (1, 1, 0), (1, 1, 2), lhs_dilation=[3], pad_lo=[2], pad_hi=[1])
    dy = tensor("f32", np.arange(1, 9), (1, 1, 8))
    rule = {"lhs_dilation": [2], "pad_lo": [1], "pad_hi": [2]}
    out = tensor("f32", [[[4, 16, 28, 40]]])
    family.case("conv_input_grad", [dy, tensor("f32", [[[1, 2, 3]]])], out, input_shape=[4], **rule)
    out = tensor("f32", [[[60, 50, 40]]])
    family.case("conv_weight_grad", [tensor("f32", [[[1, 2, 3, 4]]]), dy], out, kernel=[3], **rule)


def causal(family):
    for dtype, act, parts in [(d, "silu", 3) for d in F] + [("f32", "none", k) for k in range(4)]:
        x, w = numbers(dtype, (2, 4, 3), 16), numbers(dtype, (3, 3), 17, 0.5)
        bias = numbers(dtype, (3,), 18) if parts & 1 else None
        state = numbers(dtype, (2, 2, 3), 19) if parts & 2 else None
        before = np.zeros((2, 2, 3)) if state is None else state.a
        joined = np.concatenate([before, x.a], 1)
        y = np.stack([(joined[:, s : s + 3] * w.a.T).sum(1) for s in range(4)], 1) + (0 if bias is None else bias.a)
        y = y / (1 + np.exp(-y)) if act == "silu" else y
        outputs = [oracle(dtype, y), tensor(dtype, joined[:, -2:])]
        family.case("causal_conv1d", [x, w, bias, state], outputs, act=act)


# ---- pools ----


def pool_geometry(shape, rule):
    """window, strides, lo, hi, dilation per axis, with what ceil_mode adds."""
    kernel = rule["kernel"]
    n = len(kernel)
    strides, dilation = rule.get("strides", [1] * n), rule.get("dilation", [1] * n)
    lo, hi = list(rule.get("pad_lo", [0] * n)), list(rule.get("pad_hi", [0] * n))
    for i in range(n if rule.get("ceil_mode") else 0):
        e = dilation[i] * (kernel[i] - 1) + 1
        size = shape[2 + i]
        o = -(-(size + lo[i] + hi[i] - e) // strides[i]) + 1
        o -= (o - 1) * strides[i] >= size + lo[i]
        hi[i] = max(0, (o - 1) * strides[i] + e - size - lo[i])
    return [1, 1, *kernel], [1, 1, *strides], [0, 0, *lo], [0, 0, *hi], [1, 1, *dilation]


def extreme(values, largest):
    best = None
    for i, v in values:
        if best is None or (best[1] == best[1] and (v != v or (v > best[1] if largest else v < best[1]))):
            best = (i, v)
    return -1 if best is None else best[0]


def placed(x, fn, geometry):
    flat = np.arange(x.size).reshape(x.shape)
    out, inside = windows(x.shape, *geometry)
    y = np.full(out, -1, object)
    for o in np.ndindex(*out):
        y[o] = extreme([(int(flat[p]), x[p]) for p in inside(o)], fn == "max")
    return y


POOLS = [
    ((1, 2, 5), {"kernel": [2]}),
    ((2, 1, 6), {"kernel": [3], "strides": [2], "pad_lo": [1], "pad_hi": [1], "ceil_mode": True}),
    ((1, 2, 4, 5), {"kernel": [2, 3], "strides": [1, 2], "pad_lo": [1, 0], "pad_hi": [0, 1], "dilation": [2, 1]}),
    ((1, 1, 2, 3, 4), {"kernel": [1, 2, 2], "strides": [1, 1, 2]}),
    ((1, 1, 2, 3), {"kernel": [2, 7]}),
]


def pools(family):
    for shape, rule in POOLS:
        geometry = pool_geometry(shape, rule)
        for dtype in N if shape == POOLS[0][0] else ["f32"]:
            x = numbers(dtype, shape, 20)
            index = placed(x.a, "max", geometry)
            outputs = [tensor(dtype, x.a.ravel()[index.astype(int)]), tensor("i64", index)]
            family.case("max_pool_with_indices", [x], outputs, **rule)
        for dtype, p in [(d, 2) for d in F] + [("f32", 1), ("f32", 3)]:
            x = numbers(dtype, shape, 21)
            out, inside = windows(shape, *geometry)
            y = np.zeros(out)
            for o in np.ndindex(*out):
                y[o] = sum(abs(x.a[q]) ** p for q in inside(o)) ** (1 / p)
            family.case("lp_pool", [x], oracle(dtype, y), p=p, **rule)
    for dtype, fn in [(d, f) for d in N for f in ("max", "min")]:
        x = numbers(dtype, (3, 4), 22)
        geometry = [[2, 2], [1, 2], [1, 0], [0, 1], [1, 1]]
        names = ("window", "strides", "pad_lo", "pad_hi", "dilation")
        rule = dict(zip(names, geometry, strict=True))
        family.case("arg_reduce_window", [x], tensor("i64", placed(x.a, fn, geometry)), fn=fn, **rule)
    x = tensor("f32", [np.nan, 1, np.inf, np.nan, -np.inf, 2, 2])
    for fn in ("max", "min"):
        y = tensor("i64", placed(x.a, fn, [[3], [1], [4], [0], [1]]))
        family.case("arg_reduce_window", [x], y, fn=fn, window=[3], pad_lo=[4])
    family.case("arg_reduce_window", [numbers("f32", (0,))], tensor("i64", [-1, -1]), fn="max", window=[1], pad_lo=[2])
    for dtype in A:
        x = numbers(dtype, (1, 1, 2, 2), 23)
        y = np.zeros((1, 1, 4, 3), x.a.dtype)
        y.ravel()[[1, 11, 6, 4]] = x.a.ravel()
        index = tensor("i64" if dtype != "f32" else "i32", [1, 11, 6, -8], (1, 1, 2, 2))
        family.case("max_unpool", [x, index], tensor(dtype, y), shape=[1, 1, 4, 3])


# ---- columns ----


def columns(x, kernel, strides, lo, hi, dilation):
    padded = np.zeros((*x.shape[:2], *(n + a + b for n, a, b in zip(x.shape[2:], lo, hi, strict=True))), x.dtype)
    padded[(..., *(slice(a, a + n) for a, n in zip(lo, x.shape[2:], strict=True)))] = x
    out = [
        max(0, (n - d * (k - 1) - 1) // s + 1)
        for n, d, k, s in zip(padded.shape[2:], dilation, kernel, strides, strict=True)
    ]
    y = np.zeros((*x.shape[:2], *kernel, *out), x.dtype)
    for tap in np.ndindex(*kernel):
        for at in np.ndindex(*out):
            place = tuple(p * s + t * d for p, s, t, d in zip(at, strides, tap, dilation, strict=True))
            y[(slice(None), slice(None), *tap, *at)] = padded[(..., *place)]
    return y.reshape(x.shape[0], x.shape[1] * int(np.prod(kernel)), int(np.prod(out)))


def added(p, shape, kernel, strides, lo, hi, dilation):
    """Where each number of im2col comes from, that of p is added."""
    channels = p.shape[1] // int(np.prod(kernel))
    flat = np.arange(1, p.shape[0] * channels * int(np.prod(shape)) + 1).reshape(p.shape[0], channels, *shape)
    places = columns(flat, kernel, strides, lo, hi, dilation)
    y = np.zeros(flat.size + 1, object)
    for at in np.ndindex(*p.shape):
        y[places[at]] += p[at]
    return y[1:].reshape(flat.shape)


def columns_and_back(family):
    for shape, kernel, strides, lo, hi, dilation in (
        ((2, 2, 5), [2], [2], [1], [0], [2]),
        ((1, 2, 3, 4), [2, 3], [1, 2], [0, 1], [1, 1], [1, 1]),
        ((1, 1, 2, 3, 3), [1, 2, 2], [1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 2]),
        ((1, 1, 2, 3), [2, 7], [1, 1], [0, 0], [0, 0], [1, 1]),
    ):
        rule = {"kernel": kernel, "strides": strides, "pad_lo": lo, "pad_hi": hi, "dilation": dilation}
        for dtype in A if len(kernel) == 1 else ["f32"]:
            x = numbers(dtype, shape, 24)
            y = columns(x.a, **{k: v for k, v in zip(("kernel", "strides", "lo", "hi", "dilation"), rule.values(), strict=True)})
            family.case("im2col", [x], tensor(dtype, y), **rule)
        for dtype in N if len(kernel) == 1 else ["f32"]:
            p = numbers(dtype, columns(np.zeros(shape), kernel, strides, lo, hi, dilation).shape, 25)
            y = added(p.a.astype(object), shape[2:], kernel, strides, lo, hi, dilation)
            family.case("col2im", [p], result(dtype, y.astype(np.float64) if dtype in F else y), shape=list(shape[2:]), **rule)
    p = numbers("f32", (1, 4, 6), 26)
    y = added(p.a, (3, 4), [2, 2], [1, 1], [0, 0], [0, 0], [1, 1])
    family.case("col2im", [p], oracle("f32", y.astype(np.float64)), shape=[3, 4], kernel=[2, 2])


# ---- norms ----


def norms(family):
    for dtype in F:
        x = numbers(dtype, (2, 5, 3), 27)
        for size, rule in ((3, {}), (4, {"alpha": 0.5, "beta": 0.5, "bias": 2.0})):
            alpha, beta, bias = rule.get("alpha", 1e-4), rule.get("beta", 0.75), rule.get("bias", 1.0)
            y = np.zeros(x.a.shape)
            for c in range(5):
                near = x.a[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1]
                y[:, c] = x.a[:, c] / (bias + alpha / size * (near**2).sum(1)) ** beta
            family.case("lrn", [x], oracle(dtype, y), size=size, **rule)
        for axis, p in ((-1, 2), (1, 1)):
            a = x.a.copy()
            a[0, 0 if axis == -1 else slice(None), slice(None) if axis == -1 else 1] = 0
            n = (np.abs(a) ** p).sum(axis, keepdims=True) ** (1 / p)
            y = a / np.where(n == 0, 1, n)
            family.case("lp_norm", [tensor(dtype, a)], oracle(dtype, y), axis=axis, p=p)
        x = numbers(dtype, (2, 3, 2, 2), 28)
        for axes in ([0, 2, 3], [1]):
            c = x.a - x.a.mean(tuple(axes), keepdims=True)
            y = c / (np.sqrt((c**2).mean(tuple(axes), keepdims=True)) + 1e-9)
            family.case("mean_variance_norm", [x], oracle(dtype, y), axes=axes)
        for eps, momentum, of in ((1e-5, 0.9, dtype), (0.5, 0.25, WIDE[dtype])):
            running = [*(numbers(of, (3,), 29 + k) for k in range(3)), tensor(of, np.abs(numbers(of, (3,), 32).a))]
            mean, var = x.a.mean((0, 2, 3)), x.a.var((0, 2, 3))
            inv_std = 1 / np.sqrt(var + eps)
            along = [v.reshape(3, 1, 1) for v in (mean, inv_std, running[0].a, running[1].a)]
            y = (x.a - along[0]) * along[1] * along[2] + along[3]
            new = [r.a * momentum + s * (1 - momentum) for r, s in zip(running[2:], (mean, var), strict=True)]
            outputs = [oracle(dtype, y), *(oracle(WIDE[dtype], v) for v in (*new, mean, inv_std))]
            family.case("batch_norm_train", [x, *running], outputs, eps=eps, momentum=momentum)
        x, scale, shift = numbers(dtype, (2, 3, 4), 33), numbers(dtype, (2, 1, 4), 34), numbers(dtype, (4,), 35)
        for eps in (1e-6, 0.5):
            c = x.a - x.a.mean(-1, keepdims=True)
            y = c / np.sqrt((c**2).mean(-1, keepdims=True) + eps) * (1 + scale.a) + shift.a
            family.case("ada_layer_norm", [x, scale, shift], oracle(dtype, y), eps=eps)
        gate = numbers(dtype, (2, 1, 4), 36)
        family.case("gated_residual", [x, gate, shift], oracle(dtype, x.a + gate.a * shift.a))
    wrong = numbers("f32", (1, 2, 3)), *(numbers("f64", (2,)) for _ in range(4))
    family.case("batch_norm_train", [*wrong], "RLX_E_DTYPE")


def add(family):
    transposed_convs(family)
    gradients(family)
    causal(family)
    pools(family)
    columns_and_back(family)
    norms(family)
