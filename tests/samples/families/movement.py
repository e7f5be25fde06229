# SPDX-License-Identifier: Apache-2.0
"""Primitives 37-42, and the composites that only move elements."""

import numpy as np

from golden import FLOATS, PART, A, D, N, Tensor, numbers, specials, tensor


def like(x, a):
    return Tensor(x.dtype, np.array(a, order="C"))


def source(dtype, shape, seed=0):
    """Small distinct values, and the special ones at the front, so that a move is seen to keep the bits."""
    size = int(np.prod(shape))
    if dtype == "bool":
        return numbers(dtype, shape, seed)
    values = np.arange(1, size + 1) % 100 + seed
    if dtype in FLOATS:
        first = specials(dtype).a[:5][:size]
        values = np.concatenate([first, values[first.size :] / 4])
    elif dtype in PART:
        values = values + 1j * values[::-1]
    return tensor(dtype, values, shape)


def every_dtype(family):
    for dtype in A:
        x, y = source(dtype, (2, 3)), source(dtype, (2, 1), 7)
        family.case("reshape", [x], like(x, x.a.reshape(3, 2)), shape=[3, 2])
        family.case("transpose", [x], like(x, x.a.T), perm=[1, 0])
        family.case("broadcast_to", [y], like(y, np.broadcast_to(y.a, (2, 2, 3))), shape=[2, 2, 3])
        family.case("concat", [x, y], like(x, np.concatenate([x.a, y.a], 1)), axis=1)
        family.case("slice", [x], like(x, x.a[:, ::-2]), starts=[-1], ends=[-4], axes=[1], steps=[-2])
        padded = np.zeros((2, 6), x.a.dtype)
        padded[:, 1:4] = x.a
        family.case("pad", [x], like(x, padded), lo=[0, 1], hi=[0, 2])
        value = like(x, x.a[1, 2])
        padded[:, [0, 4, 5]] = value.a
        family.case("pad", [x, value], like(x, padded), lo=[0, 1], hi=[0, 2])
        family.case("stop_gradient", [x], x)
        family.case("dim_size", [x], tensor("i64", 3), axis=-1)


def every_dtype_of_composites(family):
    for dtype in A:
        x, y, z = source(dtype, (2, 1, 3)), source(dtype, (2, 3)), source(dtype, (2, 3), 7)
        family.case("squeeze", [x], like(x, x.a[:, 0]))
        family.case("unsqueeze", [y], like(y, y.a[:, None]), axes=[1])
        family.case("flatten", [x], like(x, x.a.reshape(2, 3)), axis=1)
        family.case("tile", [y], like(y, np.tile(y.a, (2, 1))), repeats=[2, 1])
        family.case("split", [y], [like(y, y.a[:, :1]), like(y, y.a[:, 1:])], axis=1, sizes=[1, 2])
        family.case("stack", [y, z], like(y, np.stack([y.a, z.a])))
        family.case("flip", [y], like(y, y.a[:, ::-1]), axes=[1])
        family.case("trilu", [y], like(y, np.where(np.tri(2, 3, 0, bool), y.a, np.zeros_like(y.a))), upper=False)
        on, off = like(y, y.a[1, 2]), like(z, z.a[1, 1])
        hot = np.where(np.eye(3, dtype=bool)[[2, 0]], on.a, off.a)
        family.case("one_hot", [tensor("i32", [-1, 0]), on, off], like(y, hot), depth=3)


def reshapes(family):
    for before, shape in (
        ((2, 3, 4), [6, -1]),
        ((2, 3, 4), [24]),
        ((), [1, 1]),
        ((1, 1), []),
        ((0, 3), [3, 0]),
        ((4,), [2, 2, 1]),
        ((0, 4), [-1, 2]),
        ((5,), [-1]),
    ):
        x = source("i32", before)
        family.case("reshape", [x], like(x, x.a.reshape(shape)), shape=shape)
    for shape, perm in (
        ((2, 3, 4), [2, 0, 1]),
        ((2, 3, 4), [0, 2, 1]),
        ((2, 1, 3, 2), [3, 1, 0, 2]),
        ((0, 2), [1, 0]),
        ((), []),
        ((5,), [0]),
        ((2, 3, 1, 2, 1), [4, 2, 0, 3, 1]),
    ):
        x = source("i32", shape)
        family.case("transpose", [x], like(x, x.a.transpose(perm)), perm=perm)
    for before, shape in (
        ((), [2, 2]),
        ((1,), [0]),
        ((3, 1), [3, 4]),
        ((1, 3), [2, 2, 3]),
        ((3,), [3]),
        ((0, 1), [2, 0, 3]),
    ):
        x = source("i32", before)
        family.case("broadcast_to", [x], like(x, np.broadcast_to(x.a, shape)), shape=shape)


def concats(family):
    for shapes, axis in (
        (((2, 3),), 0),
        (((2, 3), (0, 3), (1, 3)), 0),
        (((2, 1, 2), (2, 3, 2)), -2),
        (((0,), (0,)), 0),
        (((1,), (2,), (3,), (4,)), -1),
        (((2, 0), (2, 3)), 1),
    ):
        xs = [source("i32", s, i) for i, s in enumerate(shapes)]
        family.case("concat", xs, like(xs[0], np.concatenate([x.a for x in xs], axis)), axis=axis)


def sliced(x, starts, ends, axes, steps):
    """By the rule of the op: each bound gets +n once if negative, and is then clamped."""
    a = x.a
    for b, e, axis, s in zip(starts, ends, axes, steps, strict=True):
        n = a.shape[axis]
        b, e = (v + n if v < 0 else v for v in (b, e))
        low, high = (0, n) if s > 0 else (-1, n - 1)
        b, e = min(max(b, low), high), min(max(e, low), high)
        a = np.take(a, list(range(b, e, s)), axis)
    return like(x, a)


def slices(family):
    six = source("i32", (6,))
    for b, e, s in (
        (4, 1, -2),
        (-1, -7, -1),
        (2, -9, -1),
        (7, 9, 1),
        (0, 6, 1),
        (1, 100, 2),
        (-3, -1, 1),
        (3, 3, 1),
        (5, 0, -5),
        (-100, 2, 1),
        (10, -100, -3),
        (2, 5, -1),
    ):
        family.case("slice", [six], sliced(six, [b], [e], [0], [s]), starts=[b], ends=[e], steps=[s])
    x = source("i32", (3, 4, 5))
    family.case("slice", [x], sliced(x, [1, 0], [3, 4], [0, 1], [1, 1]), starts=[1, 0], ends=[3, 4])
    family.case(
        "slice",
        [x],
        sliced(x, [4, 1], [-9, 3], [2, 0], [-2, 1]),
        starts=[4, 1],
        ends=[-9, 3],
        axes=[-1, 0],
        steps=[-2, 1],
    )
    empty = source("i32", (0, 2))
    family.case("slice", [empty], sliced(empty, [0], [5], [0], [1]), starts=[0], ends=[5])
    family.case("slice", [empty], sliced(empty, [0], [-9], [0], [-1]), starts=[0], ends=[-9], steps=[-1])


def spread(a, axis, lo, hi, interior, value):
    """One axis of a constant pad; negative lo and hi crop."""
    a = np.moveaxis(a, axis, 0)
    n = a.shape[0]
    out = np.full((max(0, n + max(n - 1, 0) * interior + lo + hi), *a.shape[1:]), value, a.dtype)
    for i in range(n):
        to = i * (interior + 1) + lo
        if 0 <= to < out.shape[0]:
            out[to] = a[i]
    return np.moveaxis(out, 0, axis)


def padded(x, value, lo, hi, interior=None):
    a = x.a
    for axis in range(a.ndim):
        a = spread(a, axis, lo[axis], hi[axis], (interior or [0] * a.ndim)[axis], value)
    return like(x, a)


def pads(family):
    x, value = source("i32", (3,)), tensor("i32", 9)
    for lo, hi, interior in (
        ([1], [-1], [1]),
        ([2], [3], None),
        ([-1], [0], None),
        ([-2], [-2], None),
        ([0], [0], [2]),
        ([-3], [4], [1]),
    ):
        family.case("pad", [x, value], padded(x, 9, lo, hi, interior), lo=lo, hi=hi, interior=interior)
    y = source("f32", (2, 3))
    family.case(
        "pad",
        [y, tensor("f32", np.nan)],
        padded(y, np.nan, [1, -1], [0, 2], [1, 0]),
        lo=[1, -1],
        hi=[0, 2],
        interior=[1, 0],
    )
    empty = source("i32", (0, 2))
    family.case("pad", [empty, value], padded(empty, 9, [1, 0], [1, 1]), lo=[1, 0], hi=[1, 1])
    scalar = source("i32", ())
    family.case("pad", [scalar, value], scalar, lo=[], hi=[])
    one = source("i32", (1, 4))
    for mode in ("reflect", "edge", "wrap"):
        for lo, hi in ((1, 2), (4, 3), (0, 7), (-1, 2)):
            y = np.pad(x.a, (max(0, lo), hi), mode)[max(0, -lo) :]  # cropped from what a pad by 0 keeps
            family.case("pad", [x], like(x, y), lo=[lo], hi=[hi], mode=mode)
        family.case("pad", [one], like(one, np.pad(one.a, ((2, 1), (1, 2)), mode)), lo=[2, 1], hi=[1, 2], mode=mode)


def views(family):
    x = source("f32", (1, 3, 1, 2))
    family.case("squeeze", [x], like(x, x.a.reshape(3, 2)))
    family.case("squeeze", [x], like(x, x.a.reshape(1, 3, 2)), axes=[-2])
    family.case("unsqueeze", [x], like(x, x.a.reshape(1, 1, 3, 1, 2, 1)), axes=[0, -1])
    for axis in (0, 1, 2, 4, -1):
        rows = int(np.prod(x.a.shape[:axis])) if axis != -1 else int(np.prod(x.a.shape[:-1]))
        family.case("flatten", [x], like(x, x.a.reshape(rows, -1)), axis=axis)
    empty = source("f32", (2, 0, 3))
    family.case("flatten", [empty], like(empty, empty.a.reshape(0, 3)), axis=2)
    family.case("flatten", [source("f32", ())], like(x, source("f32", ()).a.reshape(1, 1)), axis=0)
    y = source("i32", (2, 3))
    for repeats in ([2, 1], [1, 3], [2, 2], [0, 2]):
        family.case("tile", [y], like(y, np.tile(y.a, repeats)), repeats=repeats)
    for axes in ([0], [-1], [0, 1]):
        family.case("flip", [y], like(y, np.flip(y.a, axes)), axes=axes)
    for axis in (0, 1, -1):
        z = source("i32", (2, 3), 50)
        family.case("stack", [y, z], like(y, np.stack([y.a, z.a], axis)), axis=axis)
    long = source("i32", (7, 2))
    family.case("split", [long], [like(long, p) for p in np.split(long.a, [1, 4])], axis=0, sizes=[1, 3, 3])
    family.case("split", [long], [like(long, p) for p in np.split(long.a, [3, 6])], axis=0, parts=3)
    family.case("split", [y], [like(y, p) for p in np.split(y.a, 3, 1)], axis=-1, parts=3)
    for upper in (True, False):
        for k in (0, 1, -1, 5):
            w = source("i32", (2, 3, 4))
            family.case("trilu", [w], like(w, (np.triu if upper else np.tril)(w.a, k)), upper=upper, k=k)


def made(family):
    for dtype in D:
        family.case("full", [], tensor(dtype, np.full((2, 3), 1)), shape=[2, 3], value=1, dtype=dtype)
    family.case("full", [], tensor("f64", np.full((), -2.5)), shape=[], value=-2.5, dtype="f64")
    family.case("full", [], tensor("f32", np.full((0, 2), 3)), shape=[0, 2], value=3, dtype="f32")
    family.case("range", [], tensor("f32", 1.5 + 0.25 * np.arange(5)), start=1.5, step=0.25, count=5, dtype="f32")
    family.case("range", [], tensor("i64", 10 - 3 * np.arange(4)), start=10, step=-3, count=4, dtype="i64")
    for dtype in N:
        family.case("range", [], tensor(dtype, np.arange(3)), count=3, dtype=dtype)
    family.case("range", [], tensor("f32", np.zeros(0)), count=0, dtype="f32")
    indices, on, off = tensor("i64", [[1, -1], [5, 0]]), tensor("f32", 2.5), tensor("f32", -1)
    hot = np.where((indices.a % 4)[..., None] == np.arange(4), 2.5, -1.0)
    hot[1, 0] = -1.0  # 5 is outside, and matches nothing
    for axis in (-1, 0, 1):
        family.case("one_hot", [indices, on, off], tensor("f32", np.moveaxis(hot, -1, axis)), depth=4, axis=axis)


def add(family):
    every_dtype(family)
    every_dtype_of_composites(family)
    reshapes(family)
    concats(family)
    slices(family)
    pads(family)
    views(family)
    made(family)
