# SPDX-License-Identifier: Apache-2.0
"""Composites at positions that are values, and those whose size their contents decide."""

import itertools

import numpy as np

from families.indexing import gather, resolve, scatter
from families.movement import like, source
from golden import A, D, F, I, N, U, X, int_range, numbers, specials, tensor

# ---- ranges ----


def ranges(family):
    def case(dtype, start, limit, step, **attributes):
        n = max(0, -((start - limit) // step)) if step and limit == limit else 0
        y = tensor(dtype, [start + step * i for i in range(int(n))])
        family.case("dynamic_range", [tensor(dtype, v) for v in (start, limit, step)], y, **attributes)

    for dtype in N:
        for start, limit, step in ((2, 9, 3), (0, 4, 1), (5, 5, 1), (7, 2, 2), (1, 2, 5), (3, 9, 0)):
            case(dtype, start, limit, step)
        if dtype not in U:
            for start, limit, step in ((9, -2, -3), (-4, 4, 2), (0, 5, -1)):
                case(dtype, start, limit, step)
        case(dtype, 1, 6, 2, max=3)
        family.case("dynamic_range", [tensor(dtype, v) for v in (1, 8, 2)], "RLX_E_RANGE", max=3)
    for dtype in F:
        case(dtype, 0.5, 2, 0.25)
        case(dtype, -0.0, 1.125, 0.5)
        case(dtype, 0.0, np.nan, 1.0)
    family.case("dynamic_range", [tensor("i32", [1]), tensor("i32", 2), tensor("i32", 1)], "RLX_E_SHAPE")
    # Distances that i64 does not hold.
    low, high = int_range("i64")
    case("u64", 0, 2**63 + 5, 2**61)
    case("u64", 2**64 - 1, 2, 1)
    case("u64", 3, 2**64 - 1, 2**63)
    for start, limit, step in ((low, high, 2**62), (high, low, -(2**62)), (high, low, low), (low, low + 3, 2)):
        case("i64", start, limit, step)
    for dtype, start, limit in (("i64", low, high), ("u64", 0, 2**64 - 1)):
        family.case("dynamic_range", [tensor(dtype, v) for v in (start, limit, 1)], "RLX_E_RANGE")


# ---- windows and caches ----


def window(start, n, size):
    return np.arange(size) + (start + n if start < 0 else start)


def windows(family):
    for dtype in A:
        x, u, at = source(dtype, (2, 3)), source(dtype, (2, 2), 7), tensor("i64", 1)
        family.case("dynamic_slice", [x, at], like(x, x.a[:, 1:3]), axis=1, size=2)
        family.case("dynamic_update_slice", [x, u, at], like(x, np.hstack([x.a[:, :1], u.a])), axis=1)
    for shape, axis, size in (((5,), 0, 3), ((5, 2), -2, 1), ((2, 1, 5), 2, 5), ((3, 0), 0, 2), ((4,), 0, 0)):
        x = source("i32", shape)
        n = shape[axis]
        for index, start in itertools.product(X, (0, n - size, -size if size else -1)):
            at, places = tensor(index, start), window(start, n, size)
            y = like(x, np.take(x.a, places, axis))
            family.case("dynamic_slice", [x, at], y, axis=axis, size=size)
            u = source("i32", y.shape, 20)
            written = scatter(x.a, places, u.a, axis % len(shape), "none")
            family.case("dynamic_update_slice", [x, u, at], like(x, written), axis=axis)
    x, u = source("i32", (4, 2)), source("i32", (3, 2), 30)
    for start in (3, 9, -2):  # every index obeys the rule of bounds: the window is not moved
        at, places = tensor("i64", start), window(start, 4, 3)
        family.case("dynamic_slice", [x, at], "RLX_E_RANGE", axis=0, size=3)
        family.case("dynamic_update_slice", [x, u, at], "RLX_E_RANGE", axis=0)
        for rule in ("clamp", "drop"):
            option = f"bounds={rule}"
            family.case("dynamic_slice", [x, at], like(x, gather(x.a, places, 0, rule)), option, axis=0, size=3)
            y = scatter(x.a, places, u.a, 0, "none", rule)
            family.case("dynamic_update_slice", [x, u, at], like(x, y), option, axis=0)
    family.case("dynamic_slice", [x, tensor("i64", 0)], "RLX_E_SHAPE", axis=0, size=5)
    family.case("dynamic_slice", [x, tensor("i64", [0])], "RLX_E_SHAPE", axis=0, size=1)


def appended(cache, rows, position, axis, wrap, rule="error"):
    if position.ndim:  # each row of the batch has its own
        items = zip(cache, rows, position, strict=True)
        return np.stack([appended(c, r, p, axis - 1, wrap, rule) for c, r, p in items])
    n, steps = cache.shape[axis], np.arange(rows.shape[axis])
    return scatter(cache, (position % n + steps) % n if wrap else position + steps, rows, axis, "none", rule)


def caches(family):
    def case(cache, rows, position, axis, wrap=False):
        y = like(cache, appended(cache.a, rows.a, position.a, axis % cache.a.ndim, wrap))
        family.case("kv_append", [cache, rows, position], y, axis=axis, wrap=wrap or None)

    for dtype in A:
        case(source(dtype, (2, 3)), source(dtype, (2, 1), 7), tensor("i64", 1), 1)
        case(source(dtype, (2, 3)), source(dtype, (2, 1), 7), tensor("i32", [2, 0]), 1)
    cache = source("f32", (2, 1, 5, 3))
    for index, (axis, steps, position) in itertools.product(
        X, ((2, 2, 3), (-2, 1, 0), (2, 0, 4), (2, 2, [3, 0]), (-2, 5, [0, 0]), (3, 1, [2, 1]), (0, 1, 1))
    ):
        shape = [steps if k == axis % 4 else n for k, n in enumerate(cache.shape)]
        case(cache, source("f32", shape, 40), tensor(index, position), axis)
    for position in (4, 9, [4, 12]):
        case(cache, source("f32", (2, 1, 3, 3), 60), tensor("i64", position), 2, True)
    ring, rows = source("f32", (3,)), source("f32", (2,), 70)
    for index, end in itertools.product(X, (0, 1)):  # the positions behind the last one are those that follow
        case(ring, rows, tensor(index, int_range(index)[end]), 0, True)
        at = tensor(index, [int_range(index)[end], 1])
        case(source("f32", (2, 3)), source("f32", (2, 2), 70), at, 1, True)
    rows = source("f32", (2, 1, 2, 3), 80)
    for position in (4, [1, 4]):
        at = tensor("i64", position)
        family.case("kv_append", [cache, rows, at], "RLX_E_RANGE", axis=2)
        for rule in ("clamp", "drop"):
            y = like(cache, appended(cache.a, rows.a, at.a, 2, False, rule))
            family.case("kv_append", [cache, rows, at], y, f"bounds={rule}", axis=2)
    family.case("kv_append", [cache, source("f32", (1, 1, 5, 3)), tensor("i64", [0, 0])], "RLX_E_OPTION", axis=0)


# ---- sizes that contents decide ----


def padded(a, size, value):
    widths = [(0, size - a.shape[0])] + [(0, 0)] * (a.ndim - 1)
    return np.pad(a, widths, constant_values=value)


def nonzeros(family):
    def case(x, most=None, bounded=False):
        k = x.a.size if most is None else most
        # np.argwhere takes no scalar: its one index tuple is empty.
        index = np.argwhere(x.a) if x.a.ndim else np.zeros((int(bool(x.a)), 0), np.int64)
        index = index[:k]
        count = tensor("i64", len(index))
        index = tensor("i64", padded(index, k, -1) if bounded else index)
        family.case("nonzero", [x], [index, count], max_count=most, bounded=bounded or None)

    for dtype in D:
        for bounded in (False, True):
            case(specials(dtype), bounded=bounded)
    for shape in ((), (1,), (0, 3), (3, 5), (2, 1, 3)):
        x = tensor("i32", numbers("bool", shape, 1).a)
        for bounded in (False, True):
            case(x, bounded=bounded)
            for most in (0, 2, 40):
                case(x, most, bounded)


def compresses(family):
    def case(x, condition, axis=None, most=None, bounded=False):
        c = tensor("bool", condition)
        a, along = (x.a, axis) if axis is not None else (x.a.ravel(), 0)
        k = c.a.size if most is None else most
        y = np.moveaxis(a, along, 0)[np.flatnonzero(c.a)[:k]]
        count = tensor("i64", len(y))
        y = like(x, np.moveaxis(padded(y, k, 0) if bounded else y, 0, along))
        family.case("compress", [x, c], [y, count], axis=axis, max_count=most, bounded=bounded or None)

    for dtype in A:
        for bounded in (False, True):
            case(source(dtype, (3, 2)), [1, 0, 1], 0, bounded=bounded)
    x = source("f32", (2, 1, 3))
    for bounded in (False, True):
        for axis, condition in ((2, [0, 1, 1]), (-1, [0, 0, 0]), (0, [1, 1]), (1, [1]), (None, [1, 0, 0, 1, 0, 1])):
            case(x, condition, axis, bounded=bounded)
            case(x, condition, axis, 1, bounded)
        case(source("f32", (0, 2)), [], 0, bounded=bounded)
        case(source("f32", (0, 2)), [], bounded=bounded)
    for axis in (0, None):  # padding reads nothing of x
        case(source("f32", (0, 2)), [], axis, 3, True)
        case(source("f32", (0, 2)), [0, 0], axis, bounded=True)
    for n in (0, 2):
        given = [source("f32", (n, 2)), tensor("bool", [0, 0, 1])]
        family.case("compress", given, "RLX_E_RANGE", axis=0, bounded=True)


def groups(values, in_order):
    """(first, members) of each distinct value; a NaN is equal to nothing."""
    found = []
    for i, v in enumerate(values.tolist()):
        same = [g for g in found if values[g[0]] == v]
        if same:
            same[0].append(i)
        else:
            found.append([i])
    if in_order:
        found.sort(key=lambda g: (bool(np.isnan(values[g[0]])), values[g[0]]))
    return found


def uniques(family):
    def case(x, in_order=True, bounded=False):
        found, n = groups(x.a, in_order), x.a.size
        inverse = np.zeros(n, np.int64)
        for number, members in enumerate(found):
            inverse[members] = number
        first, counts = (np.array([f(g) for g in found], np.int64) for f in (min, len))
        values = x.a[first] if n else x.a
        if bounded:
            values, first, counts = padded(values, n, 0), padded(first, n, -1), padded(counts, n, 0)
        outputs = [like(x, values), *(tensor("i64", a) for a in (first, inverse, counts, np.array(len(found))))]
        family.case("unique", [x], outputs, sorted=None if in_order else False, bounded=bounded or None)

    for in_order, bounded in itertools.product((True, False), (False, True)):
        for dtype in N:
            case(tensor(dtype, [3, 1, 2, 3, 0, 1, 3]), in_order, bounded)
        for dtype in F:
            case(tensor(dtype, [np.inf, np.nan, -0.0, 1, 0, np.nan, -np.inf, 1, np.inf]), in_order, bounded)
        for dtype in I:
            x = specials(dtype)
            case(tensor(dtype, np.tile(x.a[::-1], 2)), in_order, bounded)
        for values in ([], [5], [2, 2, 2]):
            case(tensor("f32", values), in_order, bounded)
    family.case("unique", [numbers("f32", (2, 2))], "RLX_E_SHAPE")


def add(family):
    ranges(family)
    windows(family)
    caches(family)
    nonzeros(family)
    compresses(family)
    uniques(family)
