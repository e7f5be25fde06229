# SPDX-License-Identifier: Apache-2.0
"""Primitives 52-56, and the composites built on them: sum, mean, any, all, top_k, arg_max, arg_min."""

import itertools

import numpy as np

from golden import B, F, I, N, Tensor, Z, int_range, numbers, oracle, specials, tensor

FOLD = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def identity(fn, dtype):
    if fn in ("sum", "prod"):
        return int(fn == "prod")
    if dtype == "bool":
        return fn == "min"
    low, high = (-np.inf, np.inf) if dtype in F else int_range(dtype)
    return low if fn == "max" else high


def result(dtype, a):
    """Exact integers are wrapped to the dtype, floats are the oracle's."""
    return oracle(dtype, a) if dtype in F + Z else tensor(dtype, a)


def wide(x):
    """Exact arithmetic: Python's integers for integers."""
    return x.a.astype(object) if x.dtype in I else x.a


def fold(fn, dtype, a, axis):
    """Along one axis, from the identity on."""
    a = np.moveaxis(a, axis, 0)
    y = np.full(a.shape[1:], identity(fn, dtype), a.dtype)
    for row in a:
        y = np.asarray(FOLD[fn](y, row), a.dtype)
    return y


def reduced(x, fn, axes, keep):
    a = wide(x)
    axes = range(a.ndim) if axes is None else [k % a.ndim for k in axes]
    for axis in sorted(axes, reverse=True):
        a = fold(fn, x.dtype, a, axis)
        a = np.expand_dims(a, axis) if keep else a
    return result(x.dtype, a)


def legal(fn):
    return N + Z if fn in ("sum", "prod") else N + B


def values(dtype, shape, seed=0):
    """Small enough that halves and products stay finite."""
    return numbers(dtype, shape, seed, 1.0)


def reduces(family):
    for fn in FOLD:
        for dtype in legal(fn):
            x = values(dtype, (3, 4))
            family.case("reduce", [x], reduced(x, fn, [1], False), fn=fn, axes=[1])
            big = specials(dtype)
            if dtype in I:
                family.case("reduce", [big], reduced(big, fn, None, False), fn=fn)
        x = values("f32", (2, 3, 5))
        for axes, keep in ((None, False), (None, True), ([0, 2], False), ([-1], True), ([], False), ([1, 0, 2], True)):
            family.case("reduce", [x], reduced(x, fn, axes, keep), fn=fn, axes=axes, keep_dims=keep)
        for dtype in ("f32", "i8", "u16") + (("bool",) if fn in ("max", "min") else ()):
            for shape, axes in (((0,), None), ((2, 0, 3), [1]), ((2, 0, 3), [0]), ((0, 2), [1])):
                empty = values(dtype, shape)
                family.case("reduce", [empty], reduced(empty, fn, axes, False), fn=fn, axes=axes)
        scalar = values("f32", ())
        family.case("reduce", [scalar], scalar, fn=fn)
        for dtype in F:
            rows = tensor(
                dtype, [[1, np.nan, 3], [np.inf, 1, 2], [np.inf, -np.inf, 1], [-0.0, -0.0, -0.0], [1.5, -2, 0]]
            )
            family.case("reduce", [rows], reduced(rows, fn, [1], False), fn=fn, axes=[-1])
    long = values("f32", (1500,), 3)  # long enough that accumulators are folded
    family.case("reduce", [long], reduced(long, "sum", None, False), fn="sum")


def accumulated(x, fn, axis, exclusive, reverse):
    a = np.moveaxis(wide(x), axis, 0)
    a = a[::-1] if reverse else a
    y, so_far = np.empty(a.shape, a.dtype), np.full(a.shape[1:], identity(fn, x.dtype), a.dtype)
    for i, row in enumerate(a):
        y[i] = so_far if exclusive else FOLD[fn](so_far, row)
        so_far = FOLD[fn](so_far, row)
    return result(x.dtype, np.moveaxis(y[::-1] if reverse else y, 0, axis))


def cumulatives(family):
    for fn in FOLD:
        for dtype in legal(fn):
            x = values(dtype, (2, 4), 1)
            family.case("cumulative", [x], accumulated(x, fn, 1, False, False), fn=fn, axis=1)
        for exclusive, reverse in itertools.product((False, True), repeat=2):
            for dtype, shape, axis in (
                ("f32", (3, 2, 4), 1),
                ("i32", (5,), -1),
                ("f32", (0, 2), 0),
                ("f32", (2, 0), 0),
                ("i8", (1,), 0),
            ):
                x = values(dtype, shape, 2)
                family.case(
                    "cumulative",
                    [x],
                    accumulated(x, fn, axis, exclusive, reverse),
                    fn=fn,
                    axis=axis,
                    exclusive=exclusive,
                    reverse=reverse,
                )
        x = tensor("f32", [1, 2, np.nan, 3, np.inf])
        family.case("cumulative", [x], accumulated(x, fn, 0, False, False), fn=fn, axis=0)


def windows(shape, window, strides, lo, hi, dilation):
    """(output shape, output position -> the positions of x in its window, in row-major order)."""
    out = tuple(
        max(0, (n + a + b - d * (w - 1) - 1) // s + 1)
        for n, w, s, a, b, d in zip(shape, window, strides, lo, hi, dilation, strict=True)
    )

    def inside(at):
        for step in np.ndindex(*window):
            place = tuple(o * s + k * d - a for o, s, k, d, a in zip(at, strides, step, dilation, lo, strict=True))
            if all(0 <= p < n for p, n in zip(place, shape, strict=True)):
                yield place

    return out, inside


def windowed(x, fn, *geometry):
    a = wide(x)
    out, inside = windows(a.shape, *geometry)
    y = np.full(out, identity(fn, x.dtype), a.dtype)
    for at in np.ndindex(*out):
        for place in inside(at):
            y[at] = FOLD[fn](np.array(y[at], a.dtype), np.array(a[place], a.dtype))
    return result(x.dtype, y)


GEOMETRIES = [
    ((6,), [3], [1], [0], [0], [1]),
    ((7,), [2], [3], [1], [2], [2]),
    ((4, 5), [2, 3], [2, 1], [0, 1], [1, 1], [1, 1]),
    ((1, 2, 4, 4), [1, 1, 2, 2], [1, 1, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]),
    ((3,), [2], [1], [4], [0], [1]),
    ((0, 3), [1, 2], [1, 1], [0, 0], [0, 0], [1, 1]),
    ((2,), [4], [1], [0], [0], [1]),
    ((0,), [2], [1], [2], [2], [1]),
]
NAMES = ("window", "strides", "pad_lo", "pad_hi", "dilation")


def reduce_windows(family):
    for fn in ("sum", "max", "min"):
        for dtype in legal(fn):
            x = values(dtype, (5,), 4)
            geometry = ([2], [1], [1], [0], [1])
            family.case("reduce_window", [x], windowed(x, fn, *geometry), fn=fn, window=[2], pad_lo=[1])
        for shape, *geometry in GEOMETRIES:
            x = values("f32", shape, 5)
            family.case(
                "reduce_window", [x], windowed(x, fn, *geometry), fn=fn, **dict(zip(NAMES, geometry, strict=True))
            )
    x = tensor("f32", [1, np.nan, 3, -np.inf, 2])
    for fn in ("sum", "max", "min"):
        family.case("reduce_window", [x], windowed(x, fn, [2], [1], [0], [0], [1]), fn=fn, window=[2])


def selected(x, u, fn, *geometry):
    y = np.zeros(x.a.shape)
    _, inside = windows(x.a.shape, *geometry)
    sign = 1 if fn == "max" else -1
    for at in np.ndindex(*u.a.shape):
        places = list(inside(at))
        keys = [np.inf if np.isnan(x.a[p]) else sign * x.a[p] for p in places]
        nans = [p for p in places if np.isnan(x.a[p])]
        if places:
            y[nans[0] if nans else places[int(np.argmax(keys))]] += u.a[at]
    return oracle(x.dtype, y)


def select_and_scatters(family):
    for fn in ("max", "min"):
        for dtype in F:
            x, u = tensor(dtype, [2, 2, 1, 3, 3]), tensor(dtype, [10, 20, 30])
            family.case(
                "select_and_scatter",
                [x, u],
                selected(x, u, fn, [3], [1], [0], [0], [1]),
                fn=fn,
                window=[3],
                strides=[1],
                pad_lo=[0],
                pad_hi=[0],
                dilation=[1],
            )
        for shape, *geometry in GEOMETRIES:
            x = values("f32", shape, 6)
            u = values("f32", windows(shape, *geometry)[0], 7)
            family.case(
                "select_and_scatter",
                [x, u],
                selected(x, u, fn, *geometry),
                fn=fn,
                **dict(zip(NAMES, geometry, strict=True)),
            )
        x, u = tensor("f32", [1, np.nan, 3, np.nan, np.inf]), tensor("f32", [1, 2, 4, 8])
        geometry = ([2], [1], [0], [0], [1])
        family.case(
            "select_and_scatter",
            [x, u],
            selected(x, u, fn, *geometry),
            fn=fn,
            **dict(zip(NAMES, geometry, strict=True)),
        )


def sort_order(a, descending):
    """Stable both ways, NaN above everything: the positions of one row in order."""
    ranks = [
        (np.isnan(v) if isinstance(v, float) else False, 0.0 if isinstance(v, float) and np.isnan(v) else v)
        for v in a.tolist()
    ]
    if not descending:
        return sorted(range(len(ranks)), key=lambda i: ranks[i])
    return sorted(range(len(ranks) - 1, -1, -1), key=lambda i: ranks[i])[::-1]


def order(x, axis, descending):
    rows = np.moveaxis(x.a, axis, -1)
    flat = np.array(
        [sort_order(r, descending) for r in rows.reshape(-1, rows.shape[-1])] if rows.size else [], np.int64
    )
    return np.moveaxis(flat.reshape(rows.shape), -1, axis)


def sorts(family):
    def case(x, **attributes):
        i = order(x, attributes.get("axis", -1), attributes.get("descending", False))
        y = np.take_along_axis(x.a, i, attributes.get("axis", -1))
        family.case("sort", [x], [Tensor(x.dtype, y), tensor(attributes.get("index_dtype", "i64"), i)], **attributes)

    for dtype in N + B:
        x = tensor(dtype, [3, 1, 2, 3, 1, 0])
        case(x)
        case(x, descending=True)
    mixed = tensor("f32", [1, np.nan, 3, 3, -1, np.nan, np.inf, -np.inf, 0.0, -0.0])
    assert order(tensor("f32", [1, np.nan, 3, 3, -1, np.nan]), 0, True).tolist() == [1, 5, 2, 3, 0, 4]
    for descending in (False, True):
        case(mixed, descending=descending)
        for shape, axis in (((3, 4), 0), ((2, 3, 2), -2), ((0,), 0), ((2, 0), 1), ((0, 2), 1), ((1,), -1)):
            case(values("i16", shape, 8), axis=axis, descending=descending, index_dtype="i32")


def selections(family):
    x = tensor("f32", [2, 5, 5, 1, 5, 2])
    matrix = values("i32", (3, 4), 9)
    for source, axis in ((x, -1), (matrix, 0), (matrix, 1), (tensor("f32", [1, np.nan, 3, -np.inf]), 0)):
        for largest in (True, False):
            for k in (0, 1, 3):
                i = np.take(order(source, axis, largest), range(k), axis)
                y = Tensor(source.dtype, np.take_along_axis(source.a, i, axis))
                family.case("top_k", [source], [y, tensor("i64", i)], k=k, axis=axis, largest=largest)
    for dtype in N:
        t = tensor(dtype, [[3, 1, 3], [0, 2, 1]])
        outputs = [tensor(dtype, [[3, 3], [2, 1]]), tensor("i32", [[0, 2], [1, 2]])]
        family.case("top_k", [t], outputs, k=2, index_dtype="i32")
    for op, descending in (("arg_max", True), ("arg_min", False)):
        for dtype in N + B:
            t = tensor(dtype, [[0, 1, 1, 0], [1, 0, 0, 1]])
            family.case(op, [t], tensor("i64", [[1], [0]] if descending else [[0], [1]]), axis=1)
        family.case(op, [tensor("f32", [1, np.nan, -3, np.nan])], tensor("i64", 1), axis=0, keep_dims=False)
        t = tensor("i32", [[1, 1], [1, 1], [0, 2]])
        last = [[1, 2]] if descending else [[2, 1]]
        first = [0, 2] if descending else [2, 0]
        family.case(op, [t], tensor("i64", last), axis=0, last=True)
        family.case(op, [t], tensor("i32", first), axis=0, keep_dims=False, index_dtype="i32")
    for dtype in F + Z:
        t = values(dtype, (2, 3, 2), 10)
        for axes, keep in ((None, False), ([1], True), ([0, -1], False)):
            y = np.mean(t.a, tuple(axes) if axes is not None else None, keepdims=keep)
            family.case("mean", [t], oracle(dtype, y), axes=axes, keep_dims=keep)
    family.case("mean", [values("f32", (2, 0))], tensor("f32", [np.nan, np.nan]), axes=[1])
    for dtype in N + Z:
        t = values(dtype, (2, 3, 2), 12)
        for axes, keep in ((None, False), ([1], True)):
            family.case("sum", [t], reduced(t, "sum", axes, keep), axes=axes, keep_dims=keep)
    flags = values("bool", (3, 4), 11)
    for op, function in (("any", np.any), ("all", np.all)):
        family.case(op, [flags], tensor("bool", function(flags.a)))
        family.case(op, [flags], tensor("bool", function(flags.a, 1, keepdims=True)), axes=[1], keep_dims=True)
        family.case(op, [values("bool", (2, 0))], tensor("bool", function(np.zeros((2, 0), bool), 1)), axes=[-1])


def add(family):
    reduces(family)
    cumulatives(family)
    reduce_windows(family)
    select_and_scatters(family)
    sorts(family)
    selections(family)
